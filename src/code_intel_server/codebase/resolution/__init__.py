"""What a name means, by scope, imports and annotations, without a language server and without running anything.

Ask a `Resolver` where the name at a place is defined, which symbol a qualified name is, and whether occurrences of a name
mean that symbol: `certain`, `possible` where the text does not tell, `other` where it certainly means something else.
"""

from code_intel_server.codebase.resolution.resolver import Definition, Resolution, ResolvedTarget, Resolver
from code_intel_server.codebase.resolution.store import resolver_of
from code_intel_server.codebase.resolution.values import Binding

__all__ = ["Binding", "Definition", "Resolution", "ResolvedTarget", "Resolver", "resolver_of"]
