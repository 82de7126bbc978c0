"""Whether two versions of a file of tests differ in nothing but whole tests, and the imports for them, that were added.

An inserted line can switch an old test off as well as a removed one (a return, a mark that skips, a quotation around it),
so trees are compared: each node of before is there as it was.
"""

import re
from typing import TYPE_CHECKING

from code_intel_server.codebase.files.languages import Language
from code_intel_server.codebase.syntax.grammars import node_text, parse

if TYPE_CHECKING:
    import tree_sitter

    Node = tree_sitter.Node

_CALL = re.compile(r"""(?:describe|it|test)\(\s*(['"`])(.+?)\1""")
_TEST = {
    "python": re.compile(r"(?:async\s+)?(?:def\s+(?=test)|class\s+(?=\w*Test))()(\w+)"),
    "go": re.compile(r"func\s+(?=Test)(?!TestMain\b)()(\w+)"),
    **dict.fromkeys(("javascript", "typescript", "tsx"), _CALL),
}
"""How a test begins in each language; the second group is its name."""
_SWITCHES_OTHERS_OFF = re.compile(r"\.only\b")
_IMPORTS = frozenset({"import_statement", "import_from_statement", "import_declaration"})
_WORD = re.compile(r"""['"][^'"\n]*['"]|[\w.]+|\*""")
_OTHER_NAMES = frozenset({"*", "as"})


def only_adds_tests(before: bytes, after: bytes, language: Language | None) -> bool:
    """Whether nothing was done but to add tests, of names that were not in the file, with what they import."""
    if language is None or language.name not in _TEST:
        return False
    old, new = parse(before, language), parse(after, language)
    if old is None or new is None or old.has_errors or new.has_errors:
        return False
    return _Comparison(before.decode("utf-8", "replace"), _TEST[language.name]).adds(old.root, new.root)


class _Comparison:
    def __init__(self, before: str, test: re.Pattern[str]) -> None:
        self._before, self._test = before, test
        self._words = {*_WORD.findall(before)}

    def adds(self, old: "Node", new: "Node") -> bool:
        """Whether `new` is `old`, with additions at most."""
        pending = [(old, new)]
        while pending:
            old, new = pending.pop()
            if old.type != new.type:
                return False
            if old.text == new.text or (old.type in _IMPORTS and self._imports_more(old, new)):
                continue
            left = [*old.children]
            for node in new.children:
                if left and left[0].text == node.text:
                    del left[0]
                elif not self._is_added(node):
                    if not left:
                        return False
                    pending.append((left.pop(0), node))
            if left or not old.children:
                return False
        return True

    def _imports_more(self, old: "Node", new: "Node") -> bool:
        """Whether an import brings names that were not in the file, besides those that it brought."""
        said, says = _WORD.findall(node_text(old)), _WORD.findall(node_text(new))
        rest = [word for word in says if word not in said]
        return [word for word in says if word in said] == said and self._unknown(rest)

    def _unknown(self, brought: list[str]) -> bool:
        return self._words.isdisjoint(brought) and _OTHER_NAMES.isdisjoint(brought)

    def _is_added(self, node: "Node") -> bool:
        definition = node.child_by_field_name("definition") or node  # below its decorators
        said = node_text(definition)
        if node.type in _IMPORTS:
            brought = _WORD.findall(said.rpartition("import ")[2].partition(" from ")[0])
            return self._unknown(brought)
        if found := self._test.match(said):
            named = re.search(rf"(?<!\w){re.escape(found[2])}(?!\w)", self._before)
            return not named and not _SWITCHES_OTHERS_OFF.search(said)
        return node.type == "comment" or said.strip() in {"", ";"}
