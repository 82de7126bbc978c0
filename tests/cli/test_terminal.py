"""What people see at their terminal: from any folder, at any width, in any locale, after any slip of the hand."""

import io
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from code_intel_server import __main__
from code_intel_server.cli import console, find, init, report, serve, trash, trust
from tests.cli.helpers import Said, own_state, project, session, state
from tests.e2e.driver import git


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project that was set up, with a file of the user's own where set-up has put some."""
    folder = tmp_path_factory.mktemp("terminal")
    with pytest.MonkeyPatch.context() as monkeypatch:
        own_state(monkeypatch, folder)
        made = project(folder / "repo", **{"lib/shop.py": "def price() -> int:\n    return 1\n"})
        (made / ".claude").mkdir()
        (made / ".claude/mine.md").write_text("Mine.\n")
        assert init.main([str(made), "--no-proof", "--no-index"]) == 0
        yield made


@pytest.fixture(autouse=True)
def _own_state(root: Path) -> None:
    """The state is that of the project, which all tests share."""


class Terminal(io.TextIOWrapper):
    """Standard output as a terminal of an encoding."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)

    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode(self.encoding)


def at_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, encoding: str = "utf-8") -> Terminal:
    monkeypatch.setenv("COLUMNS", str(columns))
    made = Terminal(encoding)
    monkeypatch.setattr(sys, "stdout", made)
    monkeypatch.setattr(sys, "stderr", made)
    return made


# paths


def test_paths_are_typed_and_shown_from_where_one_stands(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(root / "lib")
    assert find.main(["symbols", "shop.py"]) == 0
    assert find.main(["symbols", "../app.py"]) == 0
    assert find.main(["text", "return", "--path", "."]) == 0
    assert find.main(["impact", "shop.py"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said if not line.startswith("-- ")] == [
        "shop.py",
        "../app.py",
        "shop.py",
        "shop.py",
    ]


def test_without_a_path_the_whole_project_is_searched_from_a_folder_of_it_too(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(root / "lib")
    assert find.main(["def", "greet"]) == 0
    assert capsys.readouterr().out.startswith("../app.py:1: ")


def test_from_outside_the_project_a_path_is_meant_from_its_root(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find.main(["--project", str(root), "symbols", "lib/shop.py"]) == 0
    assert capsys.readouterr().out.startswith("lib/shop.py:1: ")
    assert find.main(["--project", str(root), "symbols", "shop.py"]) == 1
    assert "Paths are from where you stand; outside the project, from its root." in capsys.readouterr().err


def test_every_command_finds_the_project_and_takes_its_files_from_a_folder_of_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(root / "lib")
    decision = {"session_id": "20260201_123456", "what": "submit", "step": 4, "next_step": 5, "event": "ok"}
    with session(root, state()) as services:
        services.decisions.append(decision)
        assert report.main(["--out", "mine.html"]) == 0
    assert "Say goodbye too." in (root / "lib/mine.html").read_text(encoding="utf-8")
    (root / "lib/mine.html").unlink()
    assert trust.main(["--check"]) == 0
    assert init.main(["..", "--include", ".", "--dry-run"]) == 0
    assert f"setting up {root}\n" in capsys.readouterr().out
    assert init.main(["..", "--include", "lib", "--dry-run"]) == 1
    assert "--include lib: no folder of the project" in capsys.readouterr().err


# slips of the hand


def test_a_mistyped_command_is_asked_about(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["code-intel-server", "stauts"])
    assert __main__.main() == 2
    assert "no command 'stauts': did you mean 'status'?" in capsys.readouterr().err
    for main, typed, meant in ((trash.main, "lsit", "list"), (find.main, "symbol", "symbols")):
        with pytest.raises(SystemExit) as ended:
            main([typed])
        assert ended.value.code == 2
        assert f"no '{typed}': did you mean '{meant}'? (there are: " in capsys.readouterr().err


def test_serve_typed_by_hand_says_what_to_type_instead_of_waiting(
    capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert serve.main([]) == 2
    said = capsys.readouterr().err
    assert "clients start it" in said
    assert "code-intel-server init DIR" in said
    assert max(map(len, said.splitlines())) <= 60


# widths, encodings, locales


def test_the_list_of_commands_is_wrapped_at_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_terminal(monkeypatch, 60)
    monkeypatch.setattr(sys, "argv", ["code-intel-server"])
    assert __main__.main() == 0
    lines = terminal.shown().splitlines()
    assert max(map(len, lines)) <= 60
    assert "put away" in map(str.strip, lines)  # the rest of what trash does, below the first line of it


def test_the_trash_is_listed_under_headings_and_an_entry_stays_whole_to_be_copied(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy = project(tmp_path / "repo")
    git(copy, "update-ref", "refs/code-intel/archive/20260201_123456/1-branch", _tag(copy))
    monkeypatch.chdir(copy)
    for width in (60, 200):
        terminal = at_terminal(monkeypatch, width)
        assert trash.main(["list"]) == 0
        lines = terminal.shown().splitlines()
        assert max(map(len, lines)) <= width
        assert lines[0].split() == ["ENTRY", "HOLDS", "SINCE", "(UTC)", "BRANCH"]
        assert "20260201_123456/1-branch  a branch  2026-02-01 12:34" in "\n".join(lines)
    assert "llm_task_20260201_123456" in lines[1]


def _tag(root: Path) -> str:
    told = '{"kind": "branch", "session": "20260201_123456", "branch": "llm_task_20260201_123456"}'
    head = git(root, "rev-parse", "HEAD").strip()
    text = f"object {head}\ntype commit\ntag kept\ntagger T <t@example.invalid> 1769949240 +0000\n\n{told}\n"
    made = subprocess.run(["git", "mktag"], cwd=root, input=text.encode(), capture_output=True, check=True, timeout=60)
    return made.stdout.decode().strip()


def test_signs_that_the_encoding_does_not_have_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_terminal(monkeypatch, 80, "ascii")
    console.show_anything()
    console.show("✓ 12  a → b")
    assert terminal.shown() == "\\u2713 12  a \\u2192 b\n"


# the commit after a set-up


def test_the_printed_commit_names_our_files_alone_and_leaves_what_was_staged(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(root)
    for left in (root / ".code-intel/sessions").glob("*.json"):
        left.unlink()
    (root / "app.py").write_text("staged = 1\n")
    git(root, "add", "app.py")
    assert init.main([".", "--no-proof", "--no-index"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "not committed yet" in line)
    typed = line.partition("To do it: ")[2]
    assert {".claude", ".claude/", ".claude/mine.md"}.isdisjoint(shlex.split(typed))
    assert ".code-intel/" in shlex.split(typed)
    subprocess.run(["sh", "-c", typed], check=True, cwd=root, capture_output=True, timeout=60)
    assert git(root, "status", "--porcelain").splitlines() == ["M  app.py", "?? .claude/mine.md"]
