"""What a kind of node means as evidence: tables that serve every grammar, by the words that grammars share in their names.

    prose       comments and docstrings; directives that a compiler obeys are none
    idle        statements that do nothing: an empty one, `x = x`, a value that nobody takes
    dead        what cannot run: behind a jump, under a condition that is never true

What is in no row counts: a decorator, a field, a column, a key, a step.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from code_intel_server.codebase.evidence.definition_parts import BLOCK
from code_intel_server.codebase.evidence.stubs import LONGEST_STUB
from code_intel_server.codebase.syntax.grammars import node_text

if TYPE_CHECKING:
    from tree_sitter import Node

KINDS = {
    "prose": re.compile(r"[cC]omment|^pod$|haddock|^dis_expr$|^preproc_(?:end)?region$|^php_tag$"),
    "quoted": re.compile(r"string(?:_literal|_fragment)?$|heredoc|quote_scalar$|quoted_attribute_value|^color_value$|^char(?:acter)?_literal$|regex|^(?:raw_)?text$|jsx_text"),
    "jump": re.compile(
        r"^(?:return|throw|raise|break|continue|goto|jump|control_transfer|next)(?:_statement|_expression)?$"
        r"|^exit_statement$"
    ),
    "condition": re.compile(r"^(?:if|elif|elsif|else_if|while|until|unless|preproc_if|preproc_elif|for|conditional|do)(?:_|$)"),
    "otherwise": re.compile(r"^(?:else|elif|elsif|elseif|preproc_el|else_if)"),
    "sequence": re.compile(
        r"block$|^compound_statement$|^body_statement$|function_body$|^body$|^statements$|statement_list$|^braced_expression$"
        r"|declaration_list$|^(?:module|program|source_file|translation_unit|chunk|script|closure|do|then|else|case\w*)$"
    ),
    "statement": re.compile(r"^expression_statement$|^simple_statement$"),
    "assignment": re.compile(r"^(?:assignment|augmented_assignment|compound_assignment|let_declaration|short_var)"),
    "effect": re.compile(
        r"call|invocation|assign|await|yield|new_|creation|update|macro|delete|throw|raise|send|receive|command|import"
        r"|^(?:class|module|method|singleton|go|defer|assert|print|let|var|const|inc|dec|alias|undef|postfix|prefix|unary|subshell|pipeline)(?:_|$)"
        r"|declaration|definition|_item$|statement$(?<!expression_statement)|^ERROR$"
    ),
    "bound": re.compile(r"^(?:block|block_mapping|block_sequence|block_node|suite|declarations|do)$"),
    "imports": re.compile(r"^(?:import|using|preproc_include|namespace_use)(?:_|$)"),
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


IMPERATIVE = frozenset((
    "python", "javascript", "typescript", "tsx", "java", "c", "cpp", "csharp", "go", "rust", "php", "dart",
    "kotlin", "swift", "bash", "objective-c", "cuda", "groovy", "r", "lua",
))  # fmt: skip
"""Languages whose statements are no values: one that only names something does nothing."""

CALLS_BY_NAME = frozenset({"ruby", "scala", "perl", "elixir", "bash", "groovy"})
"""Languages in which a name alone may be a call."""

ENDS_ON_ITS_OWN = frozenset((
    "python", "javascript", "typescript", "tsx", "go", "kotlin", "scala", "swift", "groovy", "lua", "ruby", "r",
    "bash", "css", "scss", "less",
))  # fmt: skip
"""Languages in which a semicolon at the end of a line says nothing."""

CLOSED_BY_END = frozenset((
    "ruby", "lua", "luau", "elixir", "julia", "fortran", "ada", "vhdl", "verilog", "matlab", "pascal", "erlang",
    "ocaml", "scala", "sql", "cmake",
))  # fmt: skip
"""Languages in which `end` closes a block; in the others it is a name."""

INDENTED = frozenset(("python", "yaml", "starlark", "gdscript", "nim", "haskell", "fsharp", "makefile"))
SAME_QUOTES = frozenset(
    ("python", "javascript", "typescript", "tsx", "lua", "css", "scss", "less", "html", "vue", "svelte")
)
SAME_QUOTES_OF_PLAIN_TEXT = frozenset(("ruby", "php", "groovy", "dart", "r"))
"""Languages in which the quotes of a text decide only what a backslash or a sigil in it means."""

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
JUMPS_BY_CALL = re.compile(
    r"(?:panic|sys\.exit|os\._exit|os\.Exit|log\.Fatal\w*|process\.exit|System\.exit|exit|abort|die|fatalError|unreachable|return|stop"
    r"|std::process::exit|Environment\.Exit)!?\s*\(|(?:exit|return|raise|die|fail|throw)\b(?![\w.]*\s*[=:])"
)
NEVER_COMPILED = re.compile(r"#!?\[cfg\((?:any\(\s*\)|not\(all\(\s*\)\)|false|FALSE|never)\)\]")
_BUILT_IF = re.compile(rb"\A(?:\s|//[^\n]*\n)*?//(?:go:build| \+build)\s+([^\n]+)\n")
_NO_TAGS = frozenset({"ignore", "never", "none", "false", "disabled"})
_TAGS_AT_MOST = 8
_SYSTEMS = frozenset(
    {"linux", "windows", "darwin", "freebsd", "openbsd", "netbsd", "plan9", "js", "android", "ios", "solaris"}
)
PROGRAM = re.compile(rb"^package\s+main\b", re.MULTILINE)
_FALSE = frozenset({"false", "False", "FALSE", "0", "nil", "None", "null", "NULL", "NO", "''", '""', "0.0", "$false"})
_TRUE = frozenset({"true", "True", "TRUE", "1", "YES", "$true"})
FRAME = re.compile(r"[\W_]*|end|begin|do|then|in|where|fi|done|esac")
ASSERTED = re.compile(r"(?:static_)?assert!?(?:\s*\(\s*|\s+)(?:true|True|1)\b\s*(?:,[^\n]*)?\)?\s*;?")
EMPTY_CALL = re.compile(
    r"(?:defer|go|void|await|!)?\(*(?:async)?(?:func(?:tion\w*)?)?\(\)(?:=>)?\{\}\)*\(\)\)*;?|doend"
)
NO_COMMAND = re.compile(r"(?:RUN\s+|[@+-]+)?(?::|true)\s*")
RETHROWS = re.compile(
    r"except\b[^:]*:\s*raise|catch\s*(?:\([^)]*?(?P<name>\w*)\s*\))?\s*\{\s*throw(?:\s+(?P=name))?\s*;?\s*\}"
)
NOTHING_ADDED = re.compile(
    r"(?:(?P<same>\w+)\s*=\s*(?P=same)\s*(?:or|and|\|\|?|&&?)\s*(?P=same)|(\w+)\s*[-+|^]=\s*0|(\w+)\s*[*/]=\s*1|(?P<kept>\w+)\s*=\s*(?P=kept)\s*(?:[-+]\s*0|[*/]\s*1))\s*;?"
)
BLANK = re.compile(r"(?:(?:let|var|val|const)\s+)?_\s*:?=\s*[^=].*", re.DOTALL)
VOID = re.compile(r"(?:\(?\s*void\s*\)?|static_cast<void>)\s*\(?[\w.]+\)?\s*;?")
LAST_RETURN = re.compile(r"return(?:\s+None)?\s*;?")
NO_ROUNDS = re.compile(r"\[\]|\(\)|\{\}|range\(0\)|\[\].*")
WRAPS = re.compile(
    r"decorated|export|template_decl|lexical_declaration|variable_decl|declarator|assignment_expression|expression_statement"
    r"|^pair$|^object$"
)
UNREACHED, UNCOMPILED = "code that is never reached", "code that is never compiled"
VALUE = re.compile(
    r"(?:[\w<>\[\]*&?, ]+[\s*&])?(?P<name>(?!__)[A-Za-z_]\w*)(?:\s*:\s*[\w<>\[\]?]+)?\s*:?=\s*(?!(?:await|yield|new)\b)[\w.\"'+\-*/% ]+;?"
)


def constant(node: "Node", depth: int = 0) -> bool | None:
    """The truth of an expression of literals; None where it depends on anything."""
    text = node_text(node) if node.end_byte - node.start_byte < LONGEST_STUB else ""
    if text in _FALSE or text in _TRUE:
        return text in _TRUE
    if not text or depth > 20:
        return None
    parts = [child for child in node.children if child.type not in {"(", ")"}]
    if len(parts) == 1:
        return constant(parts[0], depth + 1)
    if len(parts) == 2 and parts[0].type in {"!", "not"}:
        value = constant(parts[1], depth + 1)
        return None if value is None else not value
    if len(parts) != 3:
        return None
    sides = [constant(parts[0], depth + 1), constant(parts[2], depth + 1)]
    if parts[1].type in {"&&", "and"}:
        return False if False in sides else True if sides == [True, True] else None
    if parts[1].type in {"||", "or"}:
        return True if True in sides else False if sides == [False, False] else None
    if parts[1].type in {"=", "==", "!=", "===", "!=="}:
        words = [node_text(parts[0]), node_text(parts[2])]
        if all(re.fullmatch(r"[\d.]+|([\"'])[^\"']*\1", word) for word in words):
            return (words[0] == words[1]) is parts[1].type.startswith("=")
    return None


def is_pure(node: "Node", language: str) -> bool:
    """Whether an expression only names and computes."""
    pending, seen = [node], 0
    while pending:
        one = pending.pop()
        seen += 1
        if seen > 60:
            return False
        if is_decided(one):
            continue
        if one.is_named and (means("effect", one.type) or means("jump", one.type)):
            return False
        if language in CALLS_BY_NAME and one.type in {"identifier", "word", "command_name"}:
            return False
        if one.type in {"++", "--", "<-", "await", "new", "delete", "!"} and not one.is_named and one.type != "!":
            return False
        pending += one.children
    return True


def is_decided(node: "Node") -> bool:
    """Whether an operator never asks for its right side."""
    if node.child_count != 3 or node.children[1].type not in {"&&", "and", "||", "or"}:
        return False
    return constant(node.children[0]) is (node.children[1].type in {"||", "or"})


def normal_text(node: "Node", language: str) -> str:
    """The text of a leaf, alike where a language makes no difference: a number's base, the case of a keyword or colour, a block's marks."""
    text = node_text(node)
    if node.type == "color_value":
        return re.sub(r"\A#(\w)(\w)(\w)\Z", r"#\1\1\2\2\3\3", text.lower())
    if node.type.startswith("keyword_") or (language == "html" and node.type == "tag_name"):
        return text.lower()
    if language == "html" and text == "/>":
        return ">"
    if not node.is_named and text != node.type and text.lower() == node.type.lower():
        return node.type  # a keyword that may be written in any case
    if language == "ruby" and node.type in {"do", "end"} and node.parent is not None and node.parent.type == "do_block":
        return "{" if node.type == "do" else "}"
    if node.parent is not None and node.parent.type == "array_creation_expression" and text in {"(", ")"}:
        return "[" if text == "(" else "]"
    if re.fullmatch(r"0[xXbBoO][\da-fA-F_]+|[1-9][\d_]*", text):
        return str(int(text.replace("_", ""), 0))
    return text


def never_built(source: bytes) -> bool:
    """Whether the build constraint at the head of a Go file holds for no system and no tags."""
    found = _BUILT_IF.match(source)
    if found is None:
        return False
    words = re.findall(r"\w[\w.]*|&&|\|\||[!()]", found[1].decode("utf-8", "replace"))
    names = sorted({word for word in words if re.match(r"\w", word)})
    if len(names) > _TAGS_AT_MOST:
        return False
    chosen = (dict(zip(names, row, strict=True)) for row in product((True, False), repeat=len(names)))
    possible = (
        tags
        for tags in chosen
        if sum(tags[name] for name in names if name in _SYSTEMS) < 2
        and not any(tags[name] for name in names if name in _NO_TAGS)
    )
    return not any(_built(words, tags) for tags in possible)


def _built(words: Sequence[str], tags: Mapping[str, bool]) -> bool:
    """Whether a constraint holds: the innermost brackets first, then `!`, `&&` and `||`. What cannot be read holds."""
    text = " ".join(str(tags[word]) if word in tags else word for word in words)
    for _ in words:
        text = re.sub(r"\( (True|False) \)|! (True|False)", lambda m: m[1] or str(m[2] != "True"), text)
        text = re.sub(r"(?<!! )(True|False) && (True|False)", lambda m: str(m[1] == m[2] == "True"), text)
        text = re.sub(r"(?<!! )(?<!&& )(True|False) \|\| (True|False)(?! &&)", lambda m: str("True" in m[0]), text)
    return text != "False"
