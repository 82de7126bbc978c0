"""A file that makes a grammar abort or hang is not given to it: the server lives on, and the file is read without."""

import pytest

from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.syntax import structure

DEADLY = {
    "nested.yaml": "".join(" " * level + "a:\n" for level in range(400)),
    "dashes.yaml": "- " * 400 + "a\n",
    "marked.yaml": "\ufeff" + "- " * 400,
    "returns.yaml": "- a\r" + "".join(" " * level + "-\r" for level in range(600)),
    "strings.kt": '"${' * 5_000,
    "comments.swift": "/*" * 2_000,
    "closed.swift": "/*" * 2_000 + "*/" * 2_000,
    "rows.swift": ("#" * 255 + "\n") * 2_000,
    "raw.swift": "#" * 100_000 + '"',
}
HARMLESS = {
    "nested.yaml": "".join(" " * level + "a:\n" for level in range(100)) + "text: |\n" + " " * 200 + "far right\n",
    "strings.kt": "fun a() {\n" + '  println("${a} ${b}")\n' * 400 + "}\n",
    "comments.swift": "/* one /* in another */ */\nfunc a() {}\n" * 300,
    "raw.swift": 'func a() {\n  let x = ###"raw"###\n}\n',
}


@pytest.mark.parametrize("name", DEADLY)
def test_a_text_that_a_grammar_does_not_survive_is_not_parsed(name: str) -> None:
    language = language_of(name, b"")
    assert language is not None
    assert structure.parse(DEADLY[name].encode(), language) is None


@pytest.mark.parametrize("name", HARMLESS)
def test_an_unusual_text_is_parsed_all_the_same(name: str) -> None:
    language = language_of(name, b"")
    assert language is not None
    assert structure.parse(HARMLESS[name].encode(), language) is not None
