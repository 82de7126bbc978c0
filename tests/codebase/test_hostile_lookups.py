"""Hostile input: a clear error or a marked partial answer in time, and nothing runs that the agent or the repository named."""

import contextlib
import os
import resource
import shlex
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.codebase.lookup_project import explorer, only_on_path, program, write

from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.project import ProjectScope
from code_intel_server.codebase.symbols import cache, ctags, tagging
from code_intel_server.codebase.symbols.definitions import NameMatch
from code_intel_server.codebase.text_search.search import search_text
from code_intel_server.common import globs
from code_intel_server.errors import Rejected, Unavailable

MARK = "MARKER"
OPTIONS = [
    f"--pre=touch {MARK}", f"--pre touch {MARK}", "-f/etc/passwd", "--file=/etc/passwd",
    f"--search-zip --pre=./{MARK}.sh", "--hostname-bin=touch", "--debug", "-", "--", "-e", "--files", "--type-add=x:*",
    "--options=./evil.ctags", "-o evil", "--_interactive",
]  # fmt: skip


@pytest.mark.parametrize("payload", OPTIONS)
def test_a_pattern_that_looks_like_an_option_is_a_literal_pattern(tmp_path: Path, payload: str) -> None:
    found = explorer(tmp_path, {"held.txt": f"a line with {payload} in it\n", "other.txt": "nothing\n"})
    assert [(row.path, row.start_line) for row in found.search_text(payload, regex=False).results] == [("held.txt", 1)]
    assert not (tmp_path / MARK).exists()


@pytest.mark.parametrize("payload", OPTIONS)
def test_a_symbol_path_or_glob_that_looks_like_an_option_is_none(tmp_path: Path, payload: str) -> None:
    found = explorer(tmp_path, {"a.py": "def f(): pass\n", f"{MARK}.sh": f"#!/bin/sh\ntouch {MARK}\n"})
    for lookup in (
        lambda: found.find_definitions(payload),
        lambda: found.find_references(payload),
        lambda: found.search_files(payload),
        lambda: found.search_text("f", globs=[payload]),
        lambda: found.search_text("f", payload),
        lambda: found.get_symbols(payload),
        lambda: found.analyze_impact([payload]),
    ):
        with contextlib.suppress(Rejected):
            lookup()
    assert not (tmp_path / MARK).exists()
    assert {path.name for path in tmp_path.iterdir()} <= {"a.py", f"{MARK}.sh", ".code-intel"}


NAMES = [
    "line\nbreak.py", "carriage\rreturn.py", "-leading.py", "--options=x.py", " space .py", "'quote\".py",
    "back\\slash.py", "$(touch MARKER).py", "a:12:3:b.py", "ünï.py",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_any_name_is_searched_and_tagged(tmp_path: Path, name: str) -> None:
    found = explorer(tmp_path, {name: "def needle():\n    return 1\n", "plain.py": "def other(): pass\n"})
    assert [(row.path, row.start_line) for row in found.search_text("needle").results] == [(name, 1)]
    assert [row.path for row in found.search_files("*.py").results] == sorted([name, "plain.py"])
    assert [row.path for row in found.find_references("needle").results] == [name]
    assert [row.symbol for row in found.get_symbols(name).results] == ["needle"]
    assert [row.path for row in found.find_definitions("needle").results] == [name]
    assert [row.path for row in found.find_definitions("other").results] == ["plain.py"]
    assert not (tmp_path / "MARKER").exists()


def test_a_name_that_is_no_utf8_becomes_valid_text(tmp_path: Path) -> None:
    write(tmp_path, {os.fsdecode(b"caf\xe9.py"): "def needle(): pass\n"})
    (row,) = Explorer(tmp_path).search_text("needle").results
    assert row.path == "caf?.py"
    (definition,) = Explorer(tmp_path).find_definitions("needle").results
    assert definition.path == "caf?.py"


@pytest.mark.parametrize("content", [
    "café needle\n".encode("latin-1"), "café needle\n".encode("utf-16"), b"\xef\xbb\xbfcaf\xc3\xa9 needle\n",
    b"\xff\xfe\xfd needle caf\xe9\n",
], ids=["latin-1", "utf-16", "utf-8 with mark", "neither"])  # fmt: skip
def test_text_of_any_encoding_is_found_and_shown_as_valid_text(tmp_path: Path, content: bytes) -> None:
    if content.startswith(b"\xff\xfe\xfd"):
        content = b"x " + content  # not a byte order mark
    (row,) = explorer(tmp_path, {"a.txt": content}).search_text("needle", context_lines=1).results
    row.text.encode("utf-8")
    assert "needle" in row.text


def test_utf16_source_is_outlined_and_its_references_are_found(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.py": "def needle():\n    pass\n\nneedle()\n".encode("utf-16")})
    assert [(row.symbol, row.start_line) for row in found.get_symbols("a.py").results] == [("needle", 1)]
    assert [(row.start_line, row.kind.value) for row in found.find_references("needle").results] == [
        (1, "definition"),
        (4, "call"),
    ]


def test_links_that_lead_in_circles_or_out_are_not_followed(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.py": "needle = 1\n"})
    root = write(tmp_path / "in", {"a/real.py": "needle = 2\n"})
    (root / "a" / "loop").symlink_to(root / "a")
    (root / "self").symlink_to("self")
    (root / "out").symlink_to(outside)
    (root / "secret.py").symlink_to(outside / "secret.py")
    found = Explorer(root)
    assert {row.path for row in found.search_text("needle").results} == {"a/real.py"}
    assert {row.path for row in found.search_files("*.py").results} == {"a/real.py"}
    assert {row.path for row in found.find_definitions("needle").results} == {"a/real.py"}
    for path in ("out", "out/secret.py", "secret.py", "self"):
        with pytest.raises(Rejected, match=r"path_outside_project|path_not_found"):
            found.search_text("needle", path)


@pytest.mark.parametrize("path", [
    "..", "../x", "/etc/passwd", "a/../../x", "a\0b", "", ".git", ".git/config", ".code-intel", "nowhere", "a" * 5000,
    "\ud800",
])  # fmt: skip
def test_a_path_outside_the_project_or_of_nothing_is_refused(tmp_path: Path, path: str) -> None:
    found = explorer(tmp_path / "project", {"a/b.py": "x = 1\n", ".git/config": "x\n"})
    for lookup in (
        found.get_symbols,
        found.analyze_structure,
        lambda path: found.search_text("x", path),
        lambda path: found.find_definitions("x", path=path),
    ):
        with pytest.raises(Rejected):
            lookup(path)


@pytest.mark.parametrize("path", [".git", ".git/config", ".code-intel", ".code-intel/config.json", "a/../.git"])
def test_of_what_is_gits_or_our_own_it_is_not_said_that_it_lies_outside(tmp_path: Path, path: str) -> None:
    files = {"a/b.py": "x = 1\n", ".git/config": "x\n", ".code-intel/config.json": "{}\n"}
    found = explorer(tmp_path / "project", files)
    with pytest.raises(Rejected, match="path_closed"):
        found.search_text("x", path)
    if "/" in path:
        with pytest.raises(Rejected, match="path_closed"):
            found.analyze_impact([path])


def test_a_sibling_whose_name_begins_like_the_project_is_outside(tmp_path: Path) -> None:
    write(tmp_path, {"root-evil/a.py": "x = 1\n"})
    found = explorer(tmp_path / "root", {"b.py": "y = 1\n"})
    with pytest.raises(Rejected, match="path_outside_project"):
        found.get_symbols("../root-evil/a.py")


def test_a_pipe_or_device_is_neither_waited_on_nor_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    found = explorer(tmp_path, {"a.py": "needle = 1\n"})
    started = time.monotonic()
    assert {row.path for row in found.search_text("needle").results} == {"a.py"}
    assert {row.path for row in found.find_definitions("needle").results} == {"a.py"}
    with pytest.raises(Rejected, match="not_a_file"):
        found.get_symbols("pipe.py")
    assert not found.search_text("needle", "pipe.py").complete
    assert time.monotonic() - started < 5


def test_a_file_that_cannot_be_read_is_named_and_the_answer_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root reads everything, so ripgrep's own complaint is played by a wrapper that adds it.
    real = ripgrep.ripgrep_program()
    program(
        tmp_path / "bin",
        "rg",
        f'"{real}" "$@" || exit $?; case "$*" in *"-- ./"*) echo "rg: ./locked.py: Permission denied (os error 13)" >&2; exit 2;; esac',
    )
    found = explorer(tmp_path / "project", {"a.py": "needle = 1\n", "locked.py": ""})
    only_on_path(monkeypatch, tmp_path / "bin")
    answer = search_text(found.project, "needle")
    assert [row.path for row in answer.results] == ["a.py"]
    assert not answer.complete
    assert "locked.py" in answer.incomplete_because[0]


def test_a_hundred_megabytes_in_one_line_are_skipped_and_cost_no_memory(tmp_path: Path) -> None:
    with (tmp_path / "huge.js").open("wb") as stream:
        for _ in range(100):
            stream.write(b"needle " * 150_000)
    found = explorer(tmp_path, {"small.js": "needle\n"})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert {row.path for row in found.search_text("needle").results} == {"small.js"}
    assert not found.search_text("needle", "huge.js").complete
    assert not found.get_symbols("huge.js").complete
    assert found.skips.refresh().too_large == 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_binary_files_hold_no_matches(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.bin": b"needle\0needle\n", "a.txt": "needle\n"})
    assert {row.path for row in found.search_text("needle").results} == {"a.txt"}
    named = found.search_text("needle", "a.bin")
    assert (named.results, named.complete) == ((), False)


HEAD = b"# x\n" * 4000
FAR = b"# x\n" * 60_000


@pytest.mark.parametrize("text", [
    HEAD + b"needle\n\0\nneedle()\n", HEAD + b"\0\nneedle()\n", b"needle\n" + FAR + b"\0\nneedle()\n",
    FAR + b"needle\n\0\nneedle()\n", FAR + b"\0\nneedle()\n",
], ids=["near", "near and before", "far and behind", "far", "far and before"])  # fmt: skip
def test_a_file_that_turns_binary_further_on_makes_the_answer_incomplete(tmp_path: Path, text: bytes) -> None:
    found = explorer(tmp_path, {"late.py": text, "a.py": "needle()\nother()\n"})
    said = ("late.py is binary; only its beginning was searched",)
    assert found.find_references("needle").incomplete_because == said
    assert found.search_text("needle").incomplete_because == said
    named = found.search_text("needle", "late.py")  # one large file ripgrep maps, and then reads it all
    assert named.incomplete_because == said or named.total == text.count(b"needle")
    assert found.search_text("other").complete
    assert found.find_references("other").complete


def test_files_that_are_binary_from_the_beginning_are_no_gap_in_an_answer(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.bin": b"needle\0needle\n", "b.bin": b"\0" + FAR + b"needle\n", "a.py": "needle()\n"})
    assert found.search_text("needle").complete
    assert found.find_references("needle").complete


def test_of_many_files_that_turn_binary_the_first_are_named(tmp_path: Path) -> None:
    found = explorer(tmp_path, {f"{number}.py": HEAD + b"\0\nneedle()\n" for number in range(8)})
    reasons = found.search_text("needle").incomplete_because
    assert len(reasons) == 6
    assert reasons[-1] == "3 more files are binary; only their beginnings were searched"


def test_a_line_that_reads_like_ripgreps_word_on_binary_files_is_a_line(tmp_path: Path) -> None:
    text = 'note = "./a.py: binary file matches (found needle)"\nb: WARNING: stopped searching binary file after match needle\n'
    answer = explorer(tmp_path, {"a.py": text}).search_text("needle")
    assert ([row.start_line for row in answer.results], answer.complete) == ([1, 2], True)


def test_a_regex_that_explodes_elsewhere_ends_in_time(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.txt": "a" * 50_000 + "!\n"})
    started = time.monotonic()
    found.search_text(r"(a+)+$")
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("name", ["RIPGREP_CONFIG_PATH", "CTAGS", "ETAGS"])
def test_the_environment_cannot_hand_options_to_the_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    config = tmp_path / "config"
    config.write_text("--pre=false\n--invert-match\n", encoding="utf-8")
    monkeypatch.setenv(name, str(config) if name == "RIPGREP_CONFIG_PATH" else "--languages=C --nonsense")
    found = explorer(tmp_path / "project", {"a.py": "def needle(): pass\n"})
    assert found.search_text("needle").total == 1
    assert found.find_definitions("needle").total == 1


def test_option_files_of_a_repository_are_not_read(tmp_path: Path) -> None:
    found = explorer(
        tmp_path,
        {
            ".ctags.d/evil.ctags": f"-o {tmp_path}/written\n--languages=C\n",
            ".ctags": f"-f {tmp_path}/written\n",
            "a.py": "def needle(): pass\n",
        },
    )
    assert found.find_definitions("needle").total == 1
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize("name", ["rg", "ctags"])
def test_a_program_of_the_project_is_not_run_even_where_path_holds_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    program(tmp_path, name, f"touch {tmp_path}/{MARK}")
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}:")
    monkeypatch.chdir(tmp_path)
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n"})
    assert found.search_text("needle").total >= 1
    assert found.find_definitions("needle").total == 1
    assert not (tmp_path / MARK).exists()


def test_without_ripgrep_the_lookup_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))
    with pytest.raises(Unavailable) as problem:
        explorer(tmp_path, {"a.py": "x\n"}).search_text("x")
    assert problem.value.key == "tool_errors.generic.program_missing"


def test_without_ripgrep_on_path_the_one_in_the_wheel_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert explorer(tmp_path, {"a.py": "x\n"}).search_text("x").total == 1


def test_a_ripgrep_that_hangs_is_ended_and_the_answer_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "rg", "printf './a.py\\0001:needle\\n'; sleep 600")
    only_on_path(monkeypatch, tmp_path / "bin")
    root = write(tmp_path / "project", {"a.py": "needle\n"})
    started = time.monotonic()
    answer = search_text(ProjectScope.at(root), "needle", seconds=0.5)
    assert time.monotonic() - started < 5
    assert [row.path for row in answer.results] == ["a.py"]
    assert not answer.complete


def test_a_ripgrep_that_prints_without_end_is_ended_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "rg", "printf './a.py\\000'; yes '1:needle'")
    only_on_path(monkeypatch, tmp_path / "bin")
    root = write(tmp_path / "project", {"a.py": "needle\n"})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = search_text(ProjectScope.at(root), "needle", seconds=10)
    assert (answer.total_at_least, answer.complete) == (True, False)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


@pytest.mark.parametrize(
    "script", ["kill -SEGV $$", "exit 3", "echo rubbish"], ids=["crashes", "fails", "talks nonsense"]
)
def test_a_broken_ripgrep_never_makes_an_answer_look_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    found = explorer(tmp_path / "project", {"a.py": "def needle(): pass\n"})
    program(tmp_path / "bin", "rg", script)
    only_on_path(monkeypatch, tmp_path / "bin")
    for answer in (found.search_text("needle"), found.find_references("needle"), found.search_files("a")):
        assert (answer.results, answer.complete) == ((), False)


def test_without_ctags_the_syntax_tree_finds_the_definitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctags, "ctags_program", lambda: None)
    answer = explorer(tmp_path, {"a.py": "class A:\n    def needle(self): pass\n"}).find_definitions("A.needle")
    assert [(row.path, row.start_line, row.kind) for row in answer.results] == [("a.py", 2, "method")]
    assert answer.engine == tagging.SYNTAX_TREE
    assert answer.complete


@pytest.mark.parametrize(
    "script",
    ["sleep 600", 'yes \'{"_type": "tag", "name": "x"}\'', "exit 3", "kill -SEGV $$", "echo 'no json'; exit 1"],
    ids=["hangs", "prints for ever", "fails", "crashes", "talks nonsense"],
)
def test_a_broken_ctags_is_passed_over_in_time_for_the_syntax_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    # It answers the question for its features like a sound one, and goes wrong with the files.
    program(tmp_path / "bin", "ctags", f'case "$*" in *list-features*) echo "json  supports json";; *) {script};; esac')
    only_on_path(monkeypatch, tmp_path / "bin")
    monkeypatch.setattr(cache, "LOOKUP_SECONDS", 1.0)
    monkeypatch.setattr(ctags, "MAX_TAGS_OUTPUT", 1_000_000)
    found = explorer(tmp_path / "project", {"a.py": "def needle(): pass\n"})
    started = time.monotonic()
    answer = found.find_definitions("needle")
    assert time.monotonic() - started < 10
    assert [(row.path, row.engine) for row in answer.results] == [("a.py", tagging.SYNTAX_TREE)]


def test_a_ctags_that_hung_once_is_not_waited_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = shlex.quote(str(tmp_path / "calls"))
    program(
        tmp_path / "bin",
        "ctags",
        f'case "$*" in *list-features*) echo "json  x";; *list-maps*) echo "Python *.py";; *) echo >> {calls}; sleep 600;; esac',
    )
    only_on_path(monkeypatch, tmp_path / "bin")
    monkeypatch.setattr(cache, "LOOKUP_SECONDS", 2.5)
    found = explorer(tmp_path / "project", {"a.py": "def needle(): pass\n"})
    found.find_definitions("needle")
    for number in range(3):
        write(tmp_path / "project", {f"b{number}.py": f"def later{number}(): pass\n"})
        assert found.find_definitions(f"later{number}").total == 1
    assert (tmp_path / "calls").read_text().count("\n") == 1


def test_a_ctags_that_does_not_say_what_it_knows_is_not_taken_to_know_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "ctags", 'case "$*" in *list-features*) echo "json  x";; *list-maps*) exit 3;; esac')
    only_on_path(monkeypatch, tmp_path / "bin")
    found = explorer(tmp_path / "project", {"a.nim": "proc needle() = discard\n", "b.py": "def other(): pass\n"})
    assert not found.find_definitions("needle").complete
    assert found.find_definitions("other").total == 1


def test_a_ctags_that_cannot_write_json_is_taken_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "ctags", "echo wildcards")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert ctags.ctags_program() is None


TOO_LONG = "a" * 10_001


@pytest.mark.parametrize(
    "ask",
    [
        lambda found: found.find_definitions(TOO_LONG, match=NameMatch.FUZZY),
        lambda found: found.find_definitions("\U00020000" * 10_000, match=NameMatch.FUZZY),
        lambda found: found.find_references(TOO_LONG),
        lambda found: found.search_text(TOO_LONG),
        lambda found: found.search_text([f"{number}{'a' * 9000}" for number in range(9)] + [TOO_LONG]),
        lambda found: found.search_files(TOO_LONG),
        lambda found: found.analyze_impact([TOO_LONG]),
        lambda found: found.search_text("f", globs=["g" * 200_000]),
    ],
)
def test_what_no_program_can_be_asked_is_refused_and_not_laid_on_the_cache(
    tmp_path: Path, ask: Callable[[Explorer], object]
) -> None:
    found = explorer(tmp_path, {"a.py": "def f(): pass\n"})
    with pytest.raises(Rejected, match=r"argument_invalid"):
        ask(found)


@pytest.mark.parametrize("match", NameMatch)
def test_the_longest_name_that_may_be_asked_for_is_looked_for(tmp_path: Path, match: NameMatch) -> None:
    found = explorer(tmp_path, {"a.py": "def f(): pass\n"})
    for longest in ("_" * 10_000, "\U00020000" * 2_500):
        assert found.find_definitions(longest, match=match).total == 0


def test_more_globs_than_anybody_writes_are_refused_and_each_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = explorer(tmp_path, {f"d{number}/a.py": "needle\n" for number in range(60)})
    read: list[str] = []
    real = globs.matcher

    def matcher(pattern: str) -> Callable[[str], bool]:
        """The real one, with a note."""
        read.append(pattern)
        return real(pattern)

    monkeypatch.setattr(globs, "matcher", matcher)
    assert found.search_text("needle", globs=[f"**/d{number}/*" for number in range(50)]).total == 50
    assert len(read) == 50
    with pytest.raises(Rejected, match="argument_invalid"):
        found.search_text("needle", globs=[f"**/d{number}/*" for number in range(51)])
