"""Reads source text by syntax tree: outlines, uses, imports, calls and places to cut (SPEC 2, SPEC 8).

Ask `parse` once for a file and hand the result on; every other function takes it. The values are in `syntax`, which
costs nothing to import; this module brings the grammars with it, so import it on first use.
"""

from code_intel_server.codebase.files.languages import Language
from code_intel_server.codebase.syntax.blocks import Borders, blocks_of, lead_line
from code_intel_server.codebase.syntax.grammars import Parsed, has_queries, parse, readable
from code_intel_server.codebase.syntax.outlines import outline_of
from code_intel_server.codebase.syntax.uses import Uses, structure_of, symbol_at
from code_intel_server.codebase.syntax.values import Outline

__all__ = [
    "Borders",
    "Parsed",
    "Uses",
    "blocks_of",
    "has_queries",
    "lead_line",
    "outline",
    "outline_of",
    "parse",
    "readable",
    "structure_of",
    "symbol_at",
]


def outline(data: bytes, language: Language) -> Outline:
    """The symbols of a file, nested; empty and not `complete` where it cannot be parsed."""
    parsed = parse(data, language)
    return outline_of(parsed) if parsed else Outline((), complete=False)
