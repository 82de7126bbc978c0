"""What a project's own tools say a name means: a SCIP index or a language server, where its configuration names one.

Ask `ExternalSources` for the symbol at a place. What they do not know, or not in time, is left to `codebase.resolution`.
"""

from code_intel_server.codebase.external_resolution.sources import Asked, ExternalSources, SourceSettings
from code_intel_server.codebase.external_resolution.values import KnownSymbol, NamePlace

__all__ = ["Asked", "ExternalSources", "KnownSymbol", "NamePlace", "SourceSettings"]
