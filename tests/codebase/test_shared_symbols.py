"""What files define is kept once for all checkouts of a repository: nothing taken on trust, nothing lost."""

import contextlib
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.codebase.lookup_project import write
from tests.codebase.test_symbol_cache import SOURCE, places

from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.symbols import cache, store, tagging
from code_intel_server.codebase.symbols.store_file import SYMBOLS_SCHEMA

FILES = {f"src/m{n}.py": f"def function_{n}():\n    return {n}\n" for n in range(30)}


@pytest.fixture(autouse=True)
def _files_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "RACY_NS", -(10**12))


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """The folder that worktrees have in common."""
    return tmp_path / "git" / "code-intel"


@pytest.fixture
def tagged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were tagged, as they are."""
    seen: list[str] = []
    tag_files = tagging.tag_files

    def noted(root: Path, paths: list[str], *, seconds: float = 20.0) -> tagging.Tagging:
        seen.extend(paths)
        return tag_files(root, paths, seconds=seconds)

    monkeypatch.setattr(cache, "tag_files", noted)
    return seen


def explorer(root: Path, shared: Path) -> Explorer:
    return Explorer(root, shared=lambda: shared)


def first_and_second(tmp_path: Path, shared: Path) -> tuple[Explorer, Explorer]:
    """Two worktrees with the same files, the first with its symbols known."""
    first = explorer(write(tmp_path / "first", FILES), shared)
    first.refresh_all()
    shutil.copytree(tmp_path / "first", tmp_path / "second", ignore=shutil.ignore_patterns(".code-intel"))
    return first, explorer(tmp_path / "second", shared)


def test_another_worktree_tags_only_what_differs_and_finds_its_own(
    tmp_path: Path, shared: Path, tagged: list[str]
) -> None:
    first, second = first_and_second(tmp_path, shared)
    write(tmp_path / "second", {"src/m3.py": "\ndef function_3():\n    pass\n", "src/new.py": "def new():\n    pass\n"})
    (tmp_path / "second/src/m4.py").unlink()
    tagged.clear()
    report = second.refresh_all()
    assert sorted(tagged) == ["src/m3.py", "src/new.py"]
    assert report.tagged == len(FILES)
    assert places(second, "function_3") == [("src/m3.py", 2)]
    assert places(second, "function_4") == []
    assert places(second, "function_5") == places(first, "function_5") == [("src/m5.py", 1)]
    assert places(first, "function_3") == [("src/m3.py", 1)]
    assert places(first, "new") == []


def test_a_file_of_the_same_content_is_found_by_its_own_name_and_language(
    tmp_path: Path, shared: Path, tagged: list[str]
) -> None:
    same = "function same() {\n}\n"
    found = explorer(write(tmp_path / "first", {"a.js": same}), shared)
    found.refresh_all()
    write(tmp_path / "first", {"b/a.js": same, "a.ts": same})
    tagged.clear()
    found.refresh_all()
    assert places(found, "same") == [("a.js", 1), ("a.ts", 1), ("b/a.js", 1)]
    assert tagged == ["a.ts"]


def test_what_was_just_written_is_believed_of_its_own_file_only(
    tmp_path: Path, shared: Path, tagged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "RACY_NS", 10**12)
    _, second = first_and_second(tmp_path, shared)
    tagged.clear()
    second.refresh_all()
    assert len(tagged) == len(FILES)


def test_a_worktree_that_is_gone_leaves_nothing_after_a_day(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = first_and_second(tmp_path, shared)
    write(tmp_path / "second", {"src/own.py": "def of_the_second():\n    pass\n"})
    second.refresh_all()
    shutil.rmtree(tmp_path / "second")
    monkeypatch.setattr(store, "_PART", 1)
    first.refresh_all()
    assert rows(shared) == (2, len(FILES) + 1)
    monkeypatch.setattr(store, "CLEAN_UP_SECONDS", 0.0)
    first.refresh_all()
    assert rows(shared) == (1, len(FILES))
    assert places(first, "function_5") == [("src/m5.py", 1)]


def rows(shared: Path) -> tuple[int, int]:
    """How many checkouts and contents a store has."""
    with contextlib.closing(sqlite3.connect(next(shared.glob("*.sqlite3")))) as connection:
        query = "SELECT (SELECT count(*) FROM checkouts), (SELECT count(DISTINCT content) FROM symbols)"
        found: tuple[int, int] = connection.execute(query).fetchone()
        return found


def test_nobody_else_can_read_it_and_one_that_was_copied_is_not_believed(tmp_path: Path, shared: Path) -> None:
    first_and_second(tmp_path, shared)
    (file,) = shared.glob("*.sqlite3")
    assert [stat.S_IMODE(one.stat().st_mode) for one in (shared, file)] == [0o700, 0o600]
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE symbols SET start_line = 2")
    shutil.copytree(shared, tmp_path / "clone")
    assert places(explorer(tmp_path / "second", tmp_path / "clone"), "function_7") == [("src/m7.py", 1)]


def test_without_a_folder_to_share_a_checkout_has_a_store_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = explorer(write(tmp_path / "first", FILES), tmp_path / "file" / "code-intel")
    found.refresh_all()
    assert (tmp_path / f"first/.code-intel/cache/symbols-{SYMBOLS_SCHEMA}.sqlite3").is_file()
    assert found.cache.store.persistent


REFRESH = """
import sys
from pathlib import Path
from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.symbols import cache
cache.FILES_A_BATCH, cache.RACY_NS = 2, -(10**12)
root, shared = map(Path, sys.argv[1:])
Explorer(root, shared=lambda: shared).refresh_all(lambda done, total: print(done, flush=True))
"""


@pytest.mark.parametrize("kill_after", [1, 3, 7, 12])
def test_kills_while_worktrees_share_lose_nothing(tmp_path: Path, shared: Path, kill_after: int) -> None:
    roots = [write(tmp_path / name, FILES | {f"src/{name}.py": f"def {name}():\n    pass\n"}) for name in "abc"]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", REFRESH, str(root), str(shared)],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for root in roots
    ]
    for child in children[:2]:
        assert child.stdout is not None
        for _ in range(kill_after):
            child.stdout.readline()
        child.send_signal(signal.SIGKILL)
    for child in children:
        child.communicate(timeout=60)
    assert children[0].returncode == -signal.SIGKILL and children[2].returncode == 0  # the second may have been through
    for root in roots:
        found = explorer(root, shared)
        found.refresh_all()
        store = found.cache.store
        assert [len(store.in_file(path)) for path in store.stamps()] == [1] * (len(FILES) + 1)
        assert places(found, root.name) == [(f"src/{root.name}.py", 1)]
        assert places(found, "function_29") == [("src/m29.py", 1)]
    with contextlib.closing(sqlite3.connect(next(shared.glob("*.sqlite3")))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
