"""Honest work in unusual repositories, as rows: each goes through the real server from start to merge without a refusal."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.driver import repository
from tests.e2e.stage import APP, APP_DONE, FILES, TESTS, Stage, plan, report, verdict

Content = str | bytes | None
"""What a file holds; None where it is deleted."""


def _nothing(stage: Stage) -> None:
    """Nothing besides."""


@dataclass(frozen=True)
class Unusual:
    """A session: the files before it, what else the user has set up, what the agent writes, and its evidence."""

    name: str
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    edits: Mapping[str, Content] = field(default_factory=lambda: {"app.py": APP_DONE})
    evidence: str = "app.py:2"
    reason: str = ""
    before: Callable[[Stage], None] = _nothing
    work: Callable[[Stage], None] = _nothing
    """Done behind the edits: by a program of the agent's, or by the user."""
    meanwhile: Callable[[Stage], None] = _nothing
    """Done by the user between the commit and the merge."""
    commit: Mapping[str, object] = field(default_factory=dict)
    decisions: tuple[Mapping[str, object], ...] = ()
    flags: Mapping[str, object] = field(default_factory=dict)
    allowed: tuple[str, ...] = ()
    """Further files that are asked for before they are written."""
    again: tuple[Mapping[str, object], ...] | None = None
    """The decisions of a second look and commit, as the refusal of the first says."""
    committed: tuple[str, ...] | None = None
    """The paths of the commit; those of the edits, where not said."""

    def __str__(self) -> str:
        return self.name


def write(root: Path, path: str, content: Content) -> None:
    """Write or delete a file as an editor does."""
    file = root / path
    if content is None:
        file.unlink()
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)


def lines(*more: str) -> Callable[[Stage], None]:
    """Git commands of the user's."""

    def run(stage: Stage) -> None:
        for one in more:
            stage.git(*one.split())

    return run


def hook(name: str, script: str) -> Callable[[Stage], None]:
    """A hook of the repository's."""

    def install(stage: Stage) -> None:
        file = stage.root / ".git/hooks" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    return install


def user(path: str, text: str, *commands: str) -> Callable[[Stage], None]:
    """An edit of the user's, and what the user tells git of it."""

    def edit(stage: Stage) -> None:
        stage.write(path, text)
        lines(*commands)(stage)

    return edit


def chmod(path: str) -> Callable[[Stage], None]:
    return lambda stage: (stage.root / path).chmod(0o755)


def _formatted(stage: Stage) -> None:
    for number in range(200):
        stage.write(f"src/m{number:03}.py", f"VALUE = [{number}, 1]\n")


def _fresh_branch(name: str) -> Callable[[Stage], None]:
    return lines(f"switch -q -c {name}", "switch -q main")


def _base_moves(stage: Stage) -> None:
    here = stage.git("branch", "--show-current").strip()
    stage.git("switch", "-q", "main")
    stage.write("NEWS", "moved\n")
    stage.git("add", "NEWS")
    stage.git("commit", "-qm", "User")
    stage.git("switch", "-q", here)


def _linked(stage: Stage) -> None:
    (stage.root / "link.py").symlink_to("app.py")
    lines("add -A", "commit -qm Link")(stage)


def _symlink(stage: Stage) -> None:
    (stage.root / "link.py").unlink()
    (stage.root / "link.py").symlink_to("lib.py")


def _file_to_folder(stage: Stage) -> None:
    (stage.root / "conf").unlink()
    stage.write("conf/main.ini", "[a]\nx = 2\n")


def _nested(stage: Stage) -> None:
    repository(stage.root / "other", {"x.py": "x = 1\n"})
    stage.write(".git/info/exclude", "other/\n")


def _licensed(stage: Stage) -> None:
    for path in ("app.py", "lib.py", "pkg/deep.py"):
        stage.write(path, f"# SPDX-License-Identifier: MIT\n{stage.read(path)}")


def _notebook(source: str) -> str:
    cell: dict[str, object] = {
        "cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": [source],
    }  # fmt: skip
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 3\n"
UNSAFE = "print('%s')\n" % ("x" * 50_000)
LFS = {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "model.bin": POINTER.format("a" * 64)}
SPEC = "def test_one():\n    assert True is not False\n"
MOVED = TESTS.split("\n\n\ndef test_spare")[0] + "\n"
SPLIT = "from app import helper\n\n\ndef test_spare" + TESTS.split("\n\n\ndef test_spare")[1]

ROWS = (
    Unusual("a pointer of LFS without the program", LFS, {"model.bin": POINTER.format("b" * 64)}, "model.bin:2"),
    Unusual(
        "a formatter over 200 files", {f"src/m{n:03}.py": f"VALUE = [{n},1]\n" for n in range(200)}, {"pyproject.toml": "[tool.ruff]\nline-length = 100\n"},
        "pyproject.toml:2", work=_formatted, commit={"reviewed_files": ["src/*", "pyproject.toml"]},
    ),
    Unusual("a pre-commit hook that rewrites", before=hook("pre-commit", "printf '# formatted\\n' >> app.py; git add app.py")),
    Unusual("a pre-commit hook that rewrites and fails once", before=hook("pre-commit", "grep -q formatted app.py && exit 0; printf '# formatted\\n' >> app.py; echo 'files were modified by this hook'; exit 1"), again=()),
    Unusual("a pre-commit hook that rewrites a second file", before=hook("pre-commit", "printf '# formatted\\n' >> lib.py; git add lib.py"), committed=("app.py", "lib.py")),
    Unusual("a pre-commit hook that rewrites a second file and fails once", before=hook("pre-commit", "grep -q formatted lib.py && exit 0; printf '# formatted\\n' >> lib.py; exit 1"), again=({"path": "lib.py", "decision": "leave", "reason": "A hook of the user's rewrote it."},)),
    Unusual("a test file split in two", {}, {"tests/test_app.py": MOVED, "tests/test_spare.py": SPLIT}, "tests/test_spare.py:4", decisions=({"path": "tests/test_app.py", "decision": "keep", "reason": "test_spare is in a file of its own."},)),
    Unusual("a commit-msg hook that adds a line", before=hook("commit-msg", "printf '\\nChange-Id: I1\\n' >> $1")),
    Unusual("a post-commit hook that writes", before=hook("post-commit", "echo done > .git/after")),
    Unusual("a prepare-commit-msg hook", before=hook("prepare-commit-msg", "sed -i '1s/^/[APP-1] /' $1")),
    Unusual("the base moves meanwhile", meanwhile=_base_moves),
    Unusual("a notebook", {"a.ipynb": _notebook("x = 1")}, {"a.ipynb": _notebook("x = 2")}, "a.ipynb:9"),
    Unusual("CRLF throughout", {"win.py": "a = 1\r\nb = 2\r\n"}, {"win.py": "a = 1\r\nb = 3\r\n"}, "win.py:2"),
    Unusual("eol by attribute", {".gitattributes": "*.bat text eol=crlf\n", "a.bat": "echo 1\r\n"}, {"a.bat": "echo 2\r\n"}, "a.bat:1"),
    Unusual("a sparse checkout", {"far/x.py": "x = 1\n", "near/y.py": "y = 1\n"}, {"near/y.py": "y = 2\n"}, "near/y.py:1", before=lines("sparse-checkout set near tests .code-intel")),
    Unusual("a branch named like a path", before=_fresh_branch("lib.py")),
    Unusual("a branch and a tag of one name", before=lines("tag main")),
    Unusual("a stash is there", before=lambda stage: (stage.write("lib.py", "LIMIT = 1\n"), stage.git("stash", "-q"), None)[-1]),
    Unusual("a nested repository that is ignored", before=_nested),
    Unusual("an ignored file that the tests need", before=user(".env", "MODE=1\n")),
    Unusual("a unicode path", {"größe/测试.py": "x = 1\n"}, {"größe/测试.py": "x = 2\n"}, "größe/测试.py:1"),
    Unusual("letters, blanks and quotes in a path", {"wörter und 'zeichen'.py": "x = 1\n"}, {"wörter und 'zeichen'.py": "x = 2\n"}, "wörter und 'zeichen'.py:1"),
    Unusual("spaces and quotes in a path", {"a b/it's \"x\".py": "x = 1\n"}, {"a b/it's \"x\".py": "x = 2\n"}, "a b/it's \"x\".py:1"),
    Unusual("a path that looks like an option", {"-rf.py": "x = 1\n"}, {"-rf.py": "x = 2\n"}, "-rf.py:1"),
    Unusual("brackets and stars in a path", {"app/[id]/*.ts": "let x = 1;\n"}, {"app/[id]/*.ts": "let x = 2;\n"}, "app/[id]/*.ts:1"),
    Unusual("a very long line", {"long.py": UNSAFE}, {"long.py": UNSAFE + "x = 2\n"}, "long.py:2"),
    Unusual("a long line that changes", {"long.py": UNSAFE}, {"long.py": UNSAFE.replace("x'", "y'")}, "long.py:1"),
    Unusual("a binary replaced", {"a.bin": b"\0\1"}, {"a.bin": b"\0\2"}, "a.bin"),
    Unusual("latin-1", {"a.py": b"# -*- coding: latin-1 -*-\nx = '\xe9'\n"}, {"a.py": b"# -*- coding: latin-1 -*-\nx = '\xe8'\n"}, "a.py:2"),
    Unusual("UTF-16", {"a.txt": "one\n".encode("utf-16")}, {"a.txt": "two\n".encode("utf-16")}, "a.txt:1"),
    Unusual("a byte order mark", {"a.cs": b"\xef\xbb\xbfclass A { int x = 1; }\n"}, {"a.cs": b"\xef\xbb\xbfclass A { int x = 2; }\n"}, "a.cs:1"),
    Unusual("no newline at the end", {"a.py": "x = 1"}, {"a.py": "x = 2"}, "a.py:1"),
    Unusual("a vendored copy", {"vendor/lib/a.js": "exports.a = 1;\n"}, {"vendor/lib/a.js": "exports.a = 2;\n"}, "vendor/lib/a.js:1"),
    Unusual("a translation", {"po/de.po": 'msgid "one"\nmsgstr "eins"\n'}, {"po/de.po": 'msgid "one"\nmsgstr "ein"\n'}, "po/de.po:2"),
    Unusual("a migration in SQL", {}, {"migrations/002.sql": "ALTER TABLE a ADD COLUMN b int;\n"}, "migrations/002.sql:1"),
    Unusual("a Dockerfile", {"Dockerfile": "FROM a\nRUN b\n"}, {"Dockerfile": "FROM a\nRUN c\n"}, "Dockerfile:2"),
    Unusual("steps of CI", {".github/workflows/ci.yml": "on: push\njobs: {}\n"}, {".github/workflows/ci.yml": "on: [push, pull_request]\njobs: {}\n"}, ".github/workflows/ci.yml:1"),
    Unusual("a lock file", {"package-lock.json": '{\n"a": "1.0.0"\n}\n'}, {"package-lock.json": '{\n"a": "1.0.1"\n}\n'}, "package-lock.json:2"),
    Unusual("a version", {"VERSION": "1.0\n"}, {"VERSION": "1.1\n"}, "VERSION:1"),
    Unusual("a changelog only", {"CHANGELOG.md": "# Changes\n"}, {"CHANGELOG.md": "# Changes\n\n- Two.\n"}, "CHANGELOG.md:3"),
    Unusual("a licence over all files", {}, {"LICENSE": "MIT\n"}, "LICENSE:1", work=_licensed, allowed=("app.py", "lib.py")),
    Unusual("a licence as the only change", {}, {"app.py": f"# SPDX-License-Identifier: MIT\n{APP}"}, "app.py:1", "The task is the licence."),
    Unusual("a file becomes a folder", {"conf": "x = 1\n"}, {}, "conf/main.ini:2", work=_file_to_folder, committed=("conf", "conf/main.ini")),
    Unusual("a link becomes another", {}, {}, "link.py:1", before=_linked, work=_symlink, committed=("link.py",)),
    Unusual("only a mode", {}, {}, "lib.py", work=chmod("lib.py"), committed=("lib.py",)),
    Unusual("only deletions", {}, {"lib.py": None}, "lib.py"),
    Unusual("a deleted file with a line of it as evidence", {}, {"lib.py": None}, "lib.py:5"),
    Unusual("deleted lines", {}, {"app.py": APP.split("\n\n\ndef spare")[0] + "\n"}, "app.py:6"),
    Unusual("a rename with a line of the old file as evidence", {}, {}, "lib.py:5", work=lines("mv lib.py library.py"), allowed=("lib.py", "library.py"), committed=("lib.py", "library.py")),
    Unusual("a rename with an edit", {}, {"lib.py": None, "library.py": FILES["lib.py"].replace("return LIMIT", "return LIMIT + 1")}, "library.py:5"),
    Unusual("another letter case of a name", {}, {}, "lib.py:1", work=lines("mv lib.py Lib.py"), allowed=("lib.py", "Lib.py"), committed=("lib.py", "Lib.py")),
    Unusual("a mode with a line as evidence", {}, {}, "app.py:1", work=chmod("app.py"), committed=("app.py",)),
    Unusual("documentation only", {}, {"README.md": "# App\n\nSays two.\n"}, "README.md:3"),
    Unusual("only a rename", {}, {}, "limits.py", work=lines("mv lib.py limits.py"), committed=("lib.py", "limits.py")),
    Unusual("a folder renamed", {}, {}, "package/deep.py", work=lines("mv pkg package"), committed=("package/deep.py", "pkg/deep.py")),
    Unusual("a test file renamed", {"tests/test_one.py": SPEC}, {}, "tests/test_first.py", work=lines("mv tests/test_one.py tests/test_first.py"), committed=("tests/test_first.py", "tests/test_one.py"), decisions=({"path": "tests/test_first.py", "decision": "keep", "reason": "It checks the same as before."},)),
    Unusual("generated files beside their source", {"a.proto": 'syntax = "proto3";\n', "a_pb2.py": "# Generated\nX = 1\n"}, {"a.proto": 'syntax = "proto3";\nmessage A {}\n', "a_pb2.py": "# Generated\nX = 2\n"}, "a.proto:2"),
    Unusual("tracked build output", {"dist/a.min.js": "a=1\n", "a.js": "a = 1;\n"}, {"a.js": "a = 2;\n", "dist/a.min.js": "a=2\n"}, "a.js:1"),
    Unusual("a snapshot of a test", {"tests/__snapshots__/a.snap": "one\n"}, {"tests/__snapshots__/a.snap": "two\n", "app.py": APP_DONE}, decisions=({"path": "tests/__snapshots__/a.snap", "decision": "keep", "reason": "It checks the same as before."},)),
    Unusual("a type stub", {"a.pyi": "def f() -> int: ...\n"}, {"a.pyi": "def f() -> str: ...\n"}, "a.pyi:1"),
    Unusual("signing without a key", before=lines("config gpg.format openpgp", "config user.signingkey nobody")),
    Unusual("hooks kept in another folder", before=lambda stage: (stage.git("config", "core.hooksPath", ".hooks"), None)[-1]),
    Unusual("a message in a template", before=lambda stage: (stage.write(".git/message", "# say why\n"), stage.git("config", "commit.template", ".git/message"), None)[-1]),
    Unusual("packed refs and objects", before=lines("gc -q")),
    Unusual("file modes not kept", before=lines("config core.fileMode false")),
    Unusual("an untracked cache and a split index", before=lines("config core.untrackedCache true", "update-index --split-index")),
    Unusual("assume unchanged of another file", before=lines("update-index --assume-unchanged lib.py")),
    Unusual("many files staged by the agent", work=lines("add -A")),
    Unusual("a long message", commit={"commit_message": "Return two\n\n" + "Why it is so. " * 400}),
    Unusual("a message with a trailer of the team", commit={"commit_message": "Return two\n\nSigned-off-by: A <a@example.invalid>"}),
    Unusual("a merge in the history", before=lines("switch -q -c side", "commit -q --allow-empty -m Side", "switch -q main", "merge -q --no-ff -m Merge side")),
    Unusual("a revert of an older commit", {}, {}, "lib.py:1", before=lambda stage: (stage.write("lib.py", "LIMIT = 11\n"), lines("commit -qam Eleven")(stage))[-1], work=lines("revert --no-commit HEAD", "revert --quit"), committed=("lib.py",)),
    Unusual("the user's untracked folder", before=user("scratch/notes.txt", "mine\n")),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_an_unusual_session_goes_from_start_to_merge(stage: Stage, row: Unusual) -> None:
    for path, content in row.files.items():
        write(stage.root, path, content)
    if row.files:
        stage.git("add", "-A")
        stage.git("commit", "-qm", "More")
    row.before(stage)
    paths = [*row.edits, *row.allowed] or [row.evidence.split(":")[0]]
    stage.ready("app.py", *(path for path in paths if path != "app.py"), **row.flags)
    stage.accepted(**plan())
    assert stage.call("check_write_target", paths=paths)["allowed"]
    for path, edited in row.edits.items():
        write(stage.root, path, edited)
    row.work(stage)
    reported = stage.agent.submit(**report(evidence=row.evidence, reason=row.reason))
    if not reported["success"]:
        assert reported["unexplored"], reported
        stage.call("add_explored_files", paths=reported["unexplored"], reason="A program of the task wrote it.")
        stage.accepted(**report(evidence=row.evidence, reason=row.reason))
    stage.accepted(summary="All tasks are done.")
    stage.accepted(**verdict())
    if row.again is not None:
        refused = stage.refused("review_changes and submit again", **stage.commit(*row.decisions, **row.commit))
        assert refused["error"] == "finalize_failed"
    stage.accepted(**stage.commit(*row.decisions, *(row.again or ()), **row.commit))
    row.meanwhile(stage)
    assert stage.accepted(summary="Merged.")["phase"] == "SESSION_COMPLETE"
    assert stage.git("branch", "--show-current").strip() == "main"
    shown = stage.git("show", "-z", "--no-renames", "--name-only", "--format=", "HEAD^2").split("\0")
    expected = row.committed if row.committed is not None else row.edits
    assert {*expected} <= {*shown}


def test_a_formatter_changes_thousands_of_files(stage: Stage) -> None:
    many = {f"many/f{number}.py": f"x = {number}\n" for number in range(2_100)}
    for path, text in many.items():
        stage.write(path, text)
    stage.git("add", "many")
    stage.git("commit", "-qm", "Many")
    stage.planned()
    stage.edit()
    for path, text in many.items():
        stage.write(path, f"{text}\n")
    reported = stage.agent.submit(**report())
    assert len(reported["unexplored"]) == len(many)
    stage.call("add_explored_files", paths=reported["unexplored"], reason="The formatter of the task wrote them.")
    stage.accepted_list(report(), {"summary": "Done."})
    stage.accepted(**verdict())
    page = stage.call("review_changes", limit=200)
    while following := page.get("next_offset"):
        page = stage.call("review_changes", limit=200, offset=following)
    review = {
        "commit_message": "Return two",
        "review_prompt_used": "garbage_detection",
        "tools_used": ["review_changes"],
    }
    stage.accepted(reviewed_files=["app.py", "many/"], **review)
    assert len(stage.git("show", "--name-only", "--format=", "HEAD").split()) == len(many) + 1
