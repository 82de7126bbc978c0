"""Files are cut by their syntax, nothing is lost, and ids are stable."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from code_intel_server.codebase.files.languages import language_of
from code_intel_server.index.chunks.chunker import chunk_file
from code_intel_server.index.chunks.windows import Span, TokenLines
from code_intel_server.index.values import Chunk, ChunkStrategy

CLASS = '''"""Module."""

import os

LIMIT = 5


# Counts attempts.
# By user.
@dataclass
class Throttle:
    """Slows down."""

    def allow(self, user):
        """Whether the user may try."""
        return self.count(user) < LIMIT

    def count(self, user):
        return 0


def helper(value):
    return value + 1
'''


def chunks_of(
    text: str, path: str = "src/a.py", limit: int = 512, strategy: ChunkStrategy = ChunkStrategy.AST
) -> list[Chunk]:
    data = text.encode("utf-8", "surrogateescape")
    return chunk_file(path, data, language_of(path, data), max_tokens=limit, strategy=strategy)


def named(chunks: list[Chunk], name: str) -> Chunk:
    return next(chunk for chunk in chunks if chunk.symbol == name)


def covered(chunks: list[Chunk]) -> set[int]:
    return {line for chunk in chunks for line in range(chunk.start_line, chunk.end_line + 1)}


def test_a_definition_keeps_its_comment_and_decorators() -> None:
    throttle = named(chunks_of(CLASS, limit=60), "Throttle")
    assert throttle.text.startswith("# Counts attempts.\n# By user.\n@dataclass\nclass Throttle")


def test_a_class_that_does_not_fit_is_cut_into_members_under_its_header() -> None:
    chunks = chunks_of(CLASS, limit=40)
    allow = named(chunks, "allow")
    assert allow.scope == "Throttle"
    assert "class Throttle" in allow.header
    assert "def count" not in allow.text


def test_a_class_that_fits_stays_whole() -> None:
    chunks = chunks_of(CLASS, limit=512)
    throttle = named(chunks, "Throttle")
    assert "def allow" in throttle.text
    assert "def count" in throttle.text
    assert {"Throttle", "allow", "count"} <= set(throttle.names)


def test_small_neighbours_are_put_together() -> None:
    text = "\n\n".join(f"def f{number}():\n    return {number}" for number in range(6))
    assert len(chunks_of(text)) == 1
    assert set(chunks_of(text)[0].names) == {f"f{number}" for number in range(6)}


def test_an_oversized_function_is_cut_where_statements_begin() -> None:
    body = "\n".join(f"    if x > {n}:\n        y = call(\n            {n},\n        )" for n in range(60))
    chunks = chunks_of(f"def big(x):\n{body}\n", limit=100)
    assert len(chunks) > 5
    assert all(chunk.text.lstrip().startswith(("def ", "if ")) for chunk in chunks)
    assert all("def big" in chunk.header and chunk.scope == "big" for chunk in chunks[1:])


@pytest.mark.parametrize("limit", [40, 128, 512])
def test_no_chunk_of_ordinary_lines_exceeds_the_limit(limit: int) -> None:
    text = CLASS * 10
    for chunk in chunks_of(text, limit=limit):
        lines = TokenLines(chunk.text)
        assert lines.tokens(Span(0, len(lines))) <= limit


def test_a_file_without_a_grammar_is_cut_into_windows_and_its_definitions_are_guessed() -> None:
    text = "\n\n".join(f"function thing{n}(a)\n  do something with a {n}\nend" for n in range(80))
    chunks = chunks_of(text, "src/a.unknownlanguage", limit=100)
    assert len(chunks) > 3
    assert {name for chunk in chunks for name in chunk.names} == {f"thing{n}" for n in range(80)}
    assert all(chunk.text.startswith("function") for chunk in chunks)


def test_markdown_is_cut_by_heading_and_knows_what_stands_above() -> None:
    text = (
        "# Guide\n\nIntro.\n\n## Install\n\n"
        + "word " * 300
        + "\n\n```sh\n# no heading\n```\n\nUse\n---\n\n"
        + "more " * 300
    )
    chunks = chunks_of(text, "docs/guide.md", limit=256)
    install, use = named(chunks, "Install"), named(chunks, "Use")
    assert install.scope == "Guide"
    assert use.scope == "Guide"
    assert "no heading" not in {chunk.symbol for chunk in chunks}


def test_the_text_strategy_cuts_no_syntax() -> None:
    assert all(chunk.kind == "text" for chunk in chunks_of(CLASS, limit=40, strategy=ChunkStrategy.TEXT))


def test_the_same_file_gives_the_same_ids_and_a_moved_one_others() -> None:
    first = [chunk.id for chunk in chunks_of(CLASS, limit=40)]
    assert first == [chunk.id for chunk in chunks_of(CLASS, limit=40)]
    assert not set(first) & {chunk.id for chunk in chunks_of(CLASS, "src/b.py", limit=40)}


def test_an_edit_leaves_the_ids_of_other_chunks_alone() -> None:
    before = {chunk.id for chunk in chunks_of(CLASS, limit=40)}
    after = {chunk.id for chunk in chunks_of(CLASS.replace("value + 1", "value + 2"), limit=40)}
    assert len(before - after) == 1
    assert len(after - before) == 1


def test_chunks_that_are_alike_to_the_letter_have_different_ids() -> None:
    block = "\n".join(f"line {n} of the block that is repeated" for n in range(12)) + "\n\n"
    chunks = chunks_of(block * 6, "a.txt", limit=200)
    assert len(chunks) > 2
    assert len({chunk.id for chunk in chunks}) == len(chunks)


def test_an_enormous_line_is_indexed_in_part_only() -> None:
    chunks = chunks_of("x = [" + "1, " * 300_000 + "]", limit=512)
    assert 1 <= len(chunks) <= 8
    assert all(len(chunk.text) <= 512 * 3 for chunk in chunks)


def test_utf16_and_latin1_files_are_read() -> None:
    assert "wörld" in chunk_file("a.txt", "héllo wörld".encode("utf-16"), None, max_tokens=512)[0].text
    assert "caf" in chunk_file("a.txt", "café".encode("latin-1"), None, max_tokens=512)[0].text


def test_nothing_visible_gives_no_chunk() -> None:
    assert chunks_of("") == []
    assert chunks_of("\n \n\t\n") == []


@pytest.mark.parametrize("path", ["a.py", "a.md", "a.js", "a.txt", "a.go", "a.html"])
@settings(max_examples=60)
@given(
    text=st.text(alphabet=st.sampled_from(list("abc{}()#=:'\"`-<>/ \n\t\r\u2028é☃")), max_size=400),
    limit=st.integers(8, 200),
)
def test_every_visible_line_is_in_some_chunk_and_ids_differ(path: str, text: str, limit: int) -> None:
    chunks = chunks_of(text, path, limit)
    visible = {number for number, line in enumerate(text.split("\n"), 1) if line.strip()}
    assert visible <= covered(chunks)
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert all(1 <= chunk.start_line <= chunk.end_line for chunk in chunks)
