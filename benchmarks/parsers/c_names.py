"""What Clang says of the C files named on stdin: one line of JSON a file, {path, definitions, names}. See uses_vs_parsers.py.

Folders named as arguments are where headers are looked for. What a condition leaves out, Clang does not see.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from clang.cindex import Cursor, CursorKind, Index, TokenKind, TranslationUnit

KINDS = {
    CursorKind.FUNCTION_DECL: "function",
    CursorKind.STRUCT_DECL: "struct",
    CursorKind.UNION_DECL: "union",
    CursorKind.ENUM_DECL: "enum",
    CursorKind.TYPEDEF_DECL: "type",
    CursorKind.ENUM_CONSTANT_DECL: "member",
    CursorKind.FIELD_DECL: "field",
    CursorKind.MACRO_DEFINITION: "macro",
    CursorKind.VAR_DECL: "variable",
}
MADE_UP = re.compile(r"\(|^$| ")


def callee(call: Cursor) -> Cursor | None:
    """The name that is called."""
    node = next(call.get_children(), None)
    while node is not None and node.kind in {CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR}:
        node = next(node.get_children(), None)
    return node if node is not None and node.kind in {CursorKind.DECL_REF_EXPR, CursorKind.MEMBER_REF_EXPR} else None


def visit(node: Cursor, path: str, scope: str, found: dict, text: bytes) -> None:
    for child in node.get_children():
        if child.location.file is None or child.location.file.name != path:
            continue
        inner, offset, kind = scope, child.location.offset, KINDS.get(child.kind)
        if offset in found["definitions"]:
            continue  # a structure within a declaration has been told before it
        is_top = node.kind is CursorKind.TRANSLATION_UNIT
        if kind and not MADE_UP.search(child.spelling) and (is_top or kind not in {"variable", "function"}):
            is_whole = child.is_definition() or kind == "macro"
            if not text.startswith(child.spelling.encode(), offset):
                # A structure without a name is called as the type it is given to.
                inner = f"{scope}.{child.spelling}" if scope else child.spelling
                found["unnamed"].add(child.spelling)
            elif is_whole or (kind == "variable" and is_top):
                inner = f"{scope}.{child.spelling}" if scope else child.spelling
                kind = "struct" if kind == "type" and child.spelling in found["unnamed"] else kind
                found["definitions"][offset] = (kind, inner, child.location.line)
                found["names"][offset] = (child.spelling, "definition")
        elif child.kind is CursorKind.CALL_EXPR and (called := callee(child)) is not None:
            found["names"].setdefault(called.location.offset, (called.spelling, "call"))
        elif child.kind is CursorKind.MEMBER_REF_EXPR and child.spelling:
            found["names"].setdefault(offset, (child.spelling, "attribute"))
        elif child.kind is CursorKind.TYPE_REF:
            found["names"].setdefault(offset, (child.spelling.rpartition(" ")[2], "type"))
        elif child.kind is CursorKind.DECL_REF_EXPR:
            found["names"].setdefault(offset, (child.spelling, "other"))
        visit(child, path, inner, found, text)


def words(tree: TranslationUnit, found: dict) -> Iterator[tuple[int, str, str]]:
    """Every name the file holds, with its role where that is known."""
    for token in tree.get_tokens(extent=tree.cursor.extent):
        name = token.spelling
        if token.kind is not TokenKind.IDENTIFIER or token.location.file.name != tree.spelling:
            continue
        known = found["names"].get(token.location.offset)
        yield token.location.offset, name, known[1] if known and known[0] == name else "other"


def main() -> None:
    index, options = Index.create(), TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
    for path in sys.stdin.read().split("\n"):
        if not path:
            continue
        tree = index.parse(path, [f"-I{folder}" for folder in (*sys.argv[1:], str(Path(path).parent))], options=options)
        if any(problem.severity >= 4 for problem in tree.diagnostics):
            continue
        found: dict = {"definitions": {}, "names": {}, "unnamed": set()}
        visit(tree.cursor, path, "", found, Path(path).read_bytes())
        names = list(words(tree, found))
        print(
            json.dumps({"path": path, "definitions": list(found["definitions"].values()), "names": names}), flush=True
        )


if __name__ == "__main__":
    main()
