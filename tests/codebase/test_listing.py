"""The remembered listing of a project's files: the same as a new one, whatever happened to the tree since."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.codebase.lookup_project import write

from code_intel_server.codebase.files import listing, ripgrep
from code_intel_server.codebase.files.listing import Lister
from code_intel_server.codebase.files.project import ProjectScope

FILES = {
    ".gitignore": "*.log\nbuild/\n",
    "a.py": "",
    "src/b.py": "",
    "src/deep/c.py": "",
    "build/out/made.py": "",
    "logs/only.log": "",
    "src/.gitignore": "secret.py\n",
    "src/secret.py": "",
}


def settled(root: Path) -> Path:
    """The tree with times long past, as one that nobody touched for a while."""
    for path in [root, *root.rglob("*")]:
        os.utime(path, (1_000_000_000, 1_000_000_000))
    return root


def listed_now(project: ProjectScope) -> tuple[str, ...]:
    return Lister(project).files().paths


def walks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    real = ripgrep.list_files
    calls: list[object] = []

    def counted(*arguments: object) -> object:
        calls.append(arguments)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ripgrep, "list_files", counted)
    return calls


def test_a_tree_that_nobody_touched_is_walked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lister = Lister(ProjectScope.at(settled(write(tmp_path, FILES))))
    calls = walks(monkeypatch)
    first = lister.files()
    assert first.paths == (".gitignore", "a.py", "src/.gitignore", "src/b.py", "src/deep/c.py")
    (tmp_path / "a.py").write_text("edited in place\n", encoding="utf-8")
    assert lister.files() is first
    assert len(calls) == 1


def test_a_file_saved_under_its_own_name_again_needs_no_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lister = Lister(ProjectScope.at(settled(write(tmp_path, FILES))))
    lister.files()
    calls = walks(monkeypatch)
    (tmp_path / "src" / "b.tmp").write_text("saved\n", encoding="utf-8")
    (tmp_path / "src" / "b.tmp").replace(tmp_path / "src" / "b.py")
    assert "src/b.py" in lister.files().paths
    assert calls == []


def test_what_a_server_writes_in_a_project_within_this_one_needs_no_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = "sub/.code-intel"
    files = {"a.py": "", f"{inner}/verifiers/v.md": "", f"{inner}/cache/x": "", "sub/cache/z.py": ""}
    lister = Lister(ProjectScope.at(settled(write(tmp_path, files))))
    assert lister.files().paths == ("a.py", f"{inner}/verifiers/v.md", "sub/cache/z.py")
    calls = walks(monkeypatch)
    write(tmp_path, {f"{inner}/cache/y": ""})
    lister.files()
    assert calls == []
    write(tmp_path, {f"{inner}/verifiers/w.md": ""})
    assert f"{inner}/verifiers/w.md" in lister.files().paths


def folder_to_link(folder: Path) -> None:
    folder.symlink_to(folder.rename(folder.parent.parent / "elsewhere"))


def file_to_folder(file: Path) -> None:
    file.unlink()
    write(file, {"inside.py": ""})


CHANGES: dict[str, Callable[[Path], object]] = {
    "new file": lambda root: write(root, {"src/new.py": ""}),
    "new file in a new folder": lambda root: write(root, {"fresh/deeper/new.py": ""}),
    "new file where all was ignored": lambda root: write(root, {"logs/new.py": ""}),
    "removed file": lambda root: (root / "src" / "deep" / "c.py").unlink(),
    "renamed folder": lambda root: (root / "src" / "deep").rename(root / "src" / "deeper"),
    "edited ignore file": lambda root: write(root, {"src/.gitignore": "b.py\n"}),
    "new ignore file": lambda root: write(root, {"src/deep/.ignore": "c.py\n"}),
    "removed ignore file": lambda root: (root / ".gitignore").unlink(),
    "folder becomes a link": lambda root: folder_to_link(root / "src" / "deep"),
    "file becomes a folder": lambda root: file_to_folder(root / "a.py"),
    "excluded by git's own file": lambda root: write(root, {".git/info/exclude": "a.py\n"}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("age", ["long untouched", "just written"])
def test_after_any_change_the_remembered_listing_is_the_new_one(tmp_path: Path, change: str, age: str) -> None:
    root = write(tmp_path / "project", {**FILES, ".git/info/description": ""})
    project = ProjectScope.at(settled(root) if age == "long untouched" else root)
    lister = Lister(project)
    before = lister.files().paths
    CHANGES[change](root)
    assert lister.files().paths == listed_now(project)
    assert lister.files().paths != before


def test_a_file_made_while_the_tree_is_walked_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = ProjectScope.at(settled(write(tmp_path, FILES)))
    real = ripgrep.list_files

    def walked_then_changed(*arguments: object) -> object:
        found = real(*arguments)  # type: ignore[arg-type]
        write(tmp_path, {"src/late.py": ""})
        return found

    lister = Lister(project)
    monkeypatch.setattr(ripgrep, "list_files", walked_then_changed)
    assert "src/late.py" not in lister.files().paths
    monkeypatch.setattr(ripgrep, "list_files", real)
    assert "src/late.py" in lister.files().paths


def test_a_file_made_while_its_folder_is_read_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lister = Lister(ProjectScope.at(settled(write(tmp_path, FILES))))
    real = os.scandir

    def changed_then_read(path: str) -> object:
        if path.endswith("/src"):
            write(tmp_path, {"src/late.py": ""})
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", changed_then_read)
        assert "src/late.py" not in lister.files().paths
    assert "src/late.py" in lister.files().paths


def test_a_folder_that_vanishes_while_it_is_read_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lister = Lister(ProjectScope.at(write(tmp_path, FILES)))
    real = os.lstat
    seen: list[object] = []

    def read_then_gone(path: str) -> os.stat_result:
        status = real(path)
        if str(path).endswith("/src/deep"):
            seen.append(path)
            if len(seen) == 2:
                (tmp_path / "src" / "deep").rename(tmp_path / "elsewhere")
                return real(path)
        return status

    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", read_then_gone)
        lister.files()
    assert len(seen) == 2
    after = lister.files().paths
    assert after == listed_now(ProjectScope.at(tmp_path))
    assert "elsewhere/c.py" in after


def test_no_listing_is_believed_for_longer_than_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    lister = Lister(ProjectScope.at(settled(write(tmp_path, FILES))), clock=lambda: now[0])
    lister.files()
    calls = walks(monkeypatch)
    now[0] = listing.BELIEVED_SECONDS
    lister.files()
    assert calls == []
    now[0] += 0.1
    lister.files()
    assert len(calls) == 1


def test_a_fresh_listing_is_walked_whatever_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lister = Lister(ProjectScope.at(settled(write(tmp_path, FILES))))
    lister.files()
    calls = walks(monkeypatch)
    lister.files(fresh=True)
    assert len(calls) == 1


def test_of_a_large_ignored_tree_only_the_top_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_UNLISTED_FOLDERS", 5)
    ignored = {f"build/d{number}/x/y/f.js": "" for number in range(40)}
    project = ProjectScope.at(settled(write(tmp_path, FILES | ignored)))
    lister = Lister(project)
    lister.files()
    write(tmp_path, {"src/new.py": ""})
    started = time.monotonic()
    assert lister.files().paths == listed_now(project)
    assert time.monotonic() - started < 5
