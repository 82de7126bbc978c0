"""What of a change counts as work: a difference of syntax, base against now (SPEC 4).

References say where an agent's evidence is; `ProjectEvidence` looks there.
"""

from code_intel_server.codebase.evidence.location import (
    RangeVerdict,
    Reference,
    Replaced,
    find_claims,
    parse_references,
    references_in,
)
from code_intel_server.codebase.evidence.reader import ProjectEvidence

__all__ = [
    "ProjectEvidence",
    "RangeVerdict",
    "Reference",
    "Replaced",
    "find_claims",
    "parse_references",
    "references_in",
]
