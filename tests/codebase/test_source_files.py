"""The files behind an answer: read once, looked at again where references are named."""

import random
from pathlib import Path

import pytest
from tests.codebase.lookup_project import explorer, only_on_path, program

from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.text import Lines, split_lines
from code_intel_server.codebase.references import classify
from code_intel_server.codebase.references.classify import NameQuery
from code_intel_server.codebase.symbols import freshness as module
from code_intel_server.codebase.symbols.freshness import SourceFiles


def ripgrep_that_prints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, printed: str, *, kind: str = "-e") -> None:
    """A ripgrep that prints this of a project (runs with `kind` among their options), as where a folder was swapped meanwhile."""
    real = ripgrep.ripgrep_program()
    script = f"""case "$*" in *"{kind} "*"-- ./"*) printf '{printed}';; *) exec "{real}" "$@";; esac"""
    program(tmp_path / "bin", "rg", script)
    only_on_path(monkeypatch, tmp_path / "bin")


def test_a_file_that_is_not_there_has_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = explorer(tmp_path / "project", {"a.py": "needle = 1\n"})
    ripgrep_that_prints(monkeypatch, tmp_path, r"./gone/b.py\0001:needle = 4711\n\n")
    references = found.find_references("needle", include_comments=True)
    assert (references.results, references.complete) == ((), False)
    assert references.incomplete_because == ("1 files were found but could not be read",)


@pytest.mark.parametrize("name", ["a.py", "a.vim", "a.md"])
def test_references_are_those_of_the_file_where_other_lines_were_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    found = explorer(tmp_path / "project", {name: "one\nneedle(2)\nneedle(3)\n"})
    ripgrep_that_prints(monkeypatch, tmp_path, rf"./{name}\0001:needle 4711\n2:needle(2)\n\n")
    answer = found.find_references("needle", include_comments=True)
    assert [(row.start_line, row.text) for row in answer.results] == [(2, "needle(2)"), (3, "needle(3)")]


def test_a_file_that_could_not_be_read_is_not_remembered_as_empty(tmp_path: Path) -> None:
    found = explorer(tmp_path / "project", {"a/x.py": "needle(1)\n"})
    (tmp_path / "outside").mkdir()
    classified, where = found._classified, tmp_path / "project" / "a"
    assert classified.known("key", "look") is None
    where.rename(tmp_path / "aside")
    where.symlink_to(tmp_path / "outside")
    assert found.find_references("needle").results == ()
    where.unlink()
    (tmp_path / "aside").rename(where)
    assert [row.path for row in found.find_references("needle").results] == ["a/x.py"]


@pytest.mark.parametrize("text", [b"", b"\n", b"a", b"a\n", b"a\r\n\nb", b"\n" * 300, b"x" * 5000 + b"\nlast"])
def test_a_line_is_found_as_if_the_text_were_split(text: bytes) -> None:
    chosen = random.Random(7)  # noqa: S311
    text += b"".join(b"l" * chosen.randrange(chosen.choice([1, 3, 200])) + b"\n" for _ in range(chosen.randrange(900)))
    split = text.split(b"\n")
    forward, anywhere = Lines(text), Lines(text)
    assert [forward.at(number) for number in range(1, len(split) + 1)] == split
    assert forward.at(len(split) + 1) is None
    for _ in range(300):
        number = chosen.randrange(1, len(split) + 3)
        assert anywhere.at(number) == (split[number - 1] if number <= len(split) else None)


def test_lines_are_forgotten_with_the_bytes_they_are_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = explorer(tmp_path, {"a.txt": "x\n" * 50 + "needle\n", "b.txt": "y\n" * 500})
    (file,) = ripgrep.search(found.project, ripgrep.Query(("needle",), regex=False, word=True)).files
    asked = NameQuery(classify.occurrences(("needle",)), include_comments=True)
    standing = SourceFiles(tmp_path)
    assert standing.matches(file, asked.names) == file
    monkeypatch.setattr(module, "_REMEMBERED_BYTES", 1050)
    standing.content("b.txt")
    (tmp_path / "a.txt").write_text("needle\n")
    rows = classify.classify(standing, file, asked)
    assert rows is not None
    assert [(row.start_line, row.text) for row in rows] == [(1, "needle")]


@pytest.mark.needs("universal-ctags")
@pytest.mark.parametrize(("file", "text", "name", "signature"), [
    ("a.c", "int long_one(\n    int a __attribute__((unused)),\n    const char *b\n)\n{ return a; }\n", "long_one",
     "long_one(int a,const char * b)"),
    ("a.f90", "subroutine sub1(a, &\n     b)\nend subroutine\n", "sub1", "sub1(a, b)"),
    ("vendor/a.php", '<?php\nfunction h(string $a = "x",\n   int $b = 2) {}\n', "h", "h(string $a = 'x', int $b = 2)"),
    ("a.py", "def f(a,  # don't ) say\n      url='http://x/y',  # (it\n      b=1): pass\n", "f", "f(a, url='http://x/y', b=1)"),
    ("a.m", "@implementation P\n- (void)move:(int)x to:(int)y { }\n@end\n", "move:to:", "move:to:(int,int)"),
    ("a.pp", "define thing (\n  $a = 1,\n  # about b\n  $b = 'x',\n) {\n}\n", "thing", "thing($a,$b)"),
])  # fmt: skip
def test_a_signature_that_ctags_writes_in_its_own_way_stands(
    tmp_path: Path, file: str, text: str, name: str, signature: str
) -> None:
    rows = explorer(tmp_path, {file: text}).find_definitions(name).results
    assert [(row.signature, row.engine) for row in rows] == [(signature, "universal-ctags")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_lines_around_a_match_are_those_that_an_editor_shows(tmp_path: Path, encoding: str) -> None:
    chance = random.Random(5)  # noqa: S311 - which lines are asked for is no secret
    for number in range(300):
        text = "".join(chance.choices(["a", "é", "\n", "\n", "\r\n", "x\r"], k=chance.randrange(12)))
        (tmp_path / f"f{number}").write_bytes(text.encode(encoding))
        line, count = chance.randrange(1, 8), chance.randrange(5)
        lines, standing = split_lines(text), SourceFiles(tmp_path)
        assert (
            standing.texts(f"f{number}", range(max(line - count, 1), line))
            == lines[max(line - 1 - count, 0) : line - 1]
        )
        assert standing.texts(f"f{number}", range(line + 1, line + 1 + count)) == lines[line : line + count]
