"""What a kind of node means as evidence: tables that serve every grammar, by the words that grammars share in their names.

What is in no row counts: a decorator, a field, a column, a key, a step.
"""

import re
from functools import cache

from code_intel_server.codebase.evidence.definition_parts import BLOCK

KINDS = {
    "prose": re.compile(r"[cC]omment|^pod$|haddock|^dis_expr$|^preproc_(?:end)?region$|^php_tag$"),
    "quoted": re.compile(r"string(?:_literal|_fragment)?$|heredoc|quote_scalar$|quoted_attribute_value|^color_value$|^char(?:acter)?_literal$|regex|^(?:raw_)?text$|jsx_text"),
    "jump": re.compile(
        r"^(?:return|throw|raise|break|continue|goto|jump|control_transfer|next)(?:_statement|_expression)?$"
        r"|^exit_statement$"
    ),
    "condition": re.compile(r"^(?:if|elif|elsif|else_if|while|preproc_if|preproc_elif)(?:_|$)"),
    "otherwise": re.compile(r"^(?:else|elif|elsif|elseif|preproc_el|else_if)"),
    "sequence": re.compile(
        r"block$|^compound_statement$|^body_statement$|function_body$|^body$|^statements$|statement_list$|^braced_expression$"
        r"|declaration_list$|^(?:module|program|source_file|translation_unit|chunk|script|closure|do|then|else|case\w*)$"
    ),
    "statement": re.compile(r"^expression_statement$|^simple_statement$"),
    "bound": re.compile(r"^(?:block|block_mapping|block_sequence|block_node|suite|declarations|do)$"),
    "hoisted": re.compile(r"function_declaration|local_function|class_declaration|_item$|label|^case|^when|^default"),
}  # fmt: skip
"""What a kind of node means, by its name."""


@cache
def means(meaning: str, kind: str) -> bool:
    """Whether a kind of node has a meaning of the table."""
    return bool(KINDS[meaning].search(kind))


@cache
def is_block(kind: str) -> bool:
    """Whether a kind of node only holds others."""
    return bool(BLOCK.search(kind))


ENDS_ON_ITS_OWN = frozenset((
    "python", "javascript", "typescript", "tsx", "go", "kotlin", "scala", "swift", "groovy", "lua", "ruby", "r",
    "bash", "css", "scss", "less",
))  # fmt: skip
"""Languages in which a semicolon at the end of a line says nothing."""

INDENTED = frozenset(("python", "yaml", "starlark", "gdscript", "nim", "haskell", "fsharp", "makefile"))

WORD_BY_WORD = frozenset({"dockerfile", "makefile"})
"""Languages whose lines may be broken between any two words."""

DIRECTIVE = re.compile(
    r"//go:\w|//export \w|// \+build|//\s*(?:swift-tools-version|@jsx)|///\s*<reference|/\*\*?\s*@jsx|/\*[+!]"
    r"|#\s*(?:frozen_string_literal|encoding|syntax|escape|check)\s*[:=]|#!|#cgo|#\s*(?:nullable|pragma|line|load|r|warning)\b|\{-#|--\+"
)
"""Comments that a compiler, an interpreter or a server obeys."""

AT_THE_HEAD = re.compile(r"#\s*(?:frozen_string_literal|encoding|syntax|escape|check)\s*[:=]|//go:build|// \+build")
"""Those of them that are obeyed only above all code."""
HEAD = re.compile(rb"(?:\s|(?:#|//)[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*")
FRAME = re.compile(r"[\W_]*|end|begin|do|then|in|where|fi|done|esac")
WRAPS = re.compile(
    r"decorated|export|template_decl|lexical_declaration|variable_decl|declarator|assignment_expression|expression_statement"
    r"|^pair$|^object$"
)
