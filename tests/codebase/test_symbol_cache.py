"""The symbol cache: fresh before it answers, shared by processes, disposable, never trusted further than the files."""

import contextlib
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.codebase.lookup_project import explorer, write

from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.project import ProjectScope
from code_intel_server.codebase.symbols import cache, definitions, store, store_file, tagging
from code_intel_server.codebase.symbols.cache import CacheDifference
from code_intel_server.codebase.symbols.ctags import Tag
from code_intel_server.codebase.symbols.definitions import NameMatch
from code_intel_server.codebase.symbols.store import Stamp, StoredFile, SymbolStore
from code_intel_server.codebase.symbols.store_file import SYMBOLS_SCHEMA

SOURCE = Path(__file__).parents[2] / "src"
CACHE = f".code-intel/cache/symbols-{SYMBOLS_SCHEMA}.sqlite3"


def places(found: Explorer, symbol: str) -> list[tuple[str, int]]:
    return [(row.path, row.start_line) for row in found.find_definitions(symbol).results]


def stored(store: SymbolStore) -> set[str]:
    """The files that are in the cache."""
    return set(store.stamps())


def test_an_edit_is_seen_by_the_next_lookup(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n"})
    assert places(found, "needle") == [("a.py", 1)]
    write(tmp_path, {"a.py": "\n\n\ndef needle(): pass\n"})
    assert places(found, "needle") == [("a.py", 4)]
    write(tmp_path, {"a.py": "def renamed(): pass\n"})
    assert places(found, "needle") == []
    assert places(found, "renamed") == [("a.py", 1)]


def test_a_new_file_is_found_although_the_cache_was_just_compared(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n"})
    found.refresh_all()
    assert places(found, "later") == []
    write(tmp_path, {"b.py": "def later(): pass\n"})
    assert places(found, "later") == [("b.py", 1)]


def test_what_was_not_compared_in_time_is_said_and_nothing_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n", "b.py": "def other(): pass\n"})
    monkeypatch.setattr(cache, "COMPARE_SECONDS", -1.0)
    cold = found.find_definitions("needle")
    assert [row.path for row in cold.results] == ["a.py"] and not cold.complete, "tagged as it holds the name"
    assert found.refresh_all().tagged == 1, "a refresh takes its time"
    found.cache.verify(fresh=True)
    answer = found.find_definitions("needle")
    assert [row.path for row in answer.results] == ["a.py"]
    assert answer.incomplete_because == ("2 files were not compared with the symbol cache in time",)
    assert stored(found.cache.store) == {"a.py", "b.py"}


def test_nothing_is_said_to_be_there_after_one_walk_and_not_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks: list[ProjectScope] = []
    walk = ripgrep.list_files

    def counted(project: ProjectScope, extra: Sequence[str] = ()) -> tuple[tuple[str, ...], tuple[str, ...]]:
        walks.append(project)
        return walk(project, extra)

    monkeypatch.setattr(ripgrep, "list_files", counted)
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n"})
    assert places(found, "nowhere") == []
    assert len(walks) == 1
    assert places(found, "nowhere") == []
    assert len(walks) == 2, "the next time the tree is walked anew"


def test_a_walk_of_another_thread_is_not_taken_for_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this lookup did not find was looked for in the comparison from before that walk."""
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n"})
    found.refresh_all()
    looked_up = definitions._found

    def meanwhile(*given: object) -> object:
        write(tmp_path, {"b.py": "def later(): pass\n"})
        monkeypatch.setattr(definitions, "_found", looked_up)
        found.cache.verify(fresh=True)
        return []

    monkeypatch.setattr(definitions, "_found", meanwhile)
    assert places(found, "later") == [("b.py", 1)]


def test_a_lookup_does_not_wait_for_a_refresh_that_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n"})
    found.cache.verify()
    compares, go_on = threading.Event(), threading.Event()
    compare = found.cache._compare

    def slowly(seconds: float) -> CacheDifference:
        if seconds == math.inf:
            compares.set()
            go_on.wait(30)
        return compare(seconds)

    monkeypatch.setattr(found.cache, "_compare", slowly)
    refresh = threading.Thread(target=found.refresh_all)
    refresh.start()
    assert compares.wait(30)
    assert places(found, "needle") == [("a.py", 1)], "while the refresh still compares"
    go_on.set()
    refresh.join()


def test_what_a_lookup_tags_while_a_refresh_walks_is_not_taken_for_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n"})
    walk = ripgrep.list_files

    def files(*given: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
        listing = walk(*given)
        write(tmp_path, {"b.py": "def needle(): pass\n"})
        found.cache.refresh(["b.py"])
        return listing

    monkeypatch.setattr(ripgrep, "list_files", files)
    found.cache.verify(force=True)
    assert stored(found.cache.store) == {"b.py"}


def test_names_that_are_no_text_are_compared_like_all_others(tmp_path: Path) -> None:
    names = [b"a.py", b"\xff.py", "\uff21.py".encode(), "\u00e9.py".encode(), "\U00010000.py".encode(), b"b/\xc3.py"]
    (tmp_path / "b").mkdir()
    for name in names:
        (tmp_path / os.fsdecode(name)).write_text("def needle(): pass\n")
    found = explorer(tmp_path, {})
    assert found.refresh_all().tagged == len(names)
    difference = found.cache.verify(force=True)
    assert (difference.pending, difference.gone) == ((), ())
    (tmp_path / os.fsdecode(names[1])).unlink()
    (tmp_path / os.fsdecode(names[2])).write_text("def other(): pass\n")
    difference = found.cache.verify(force=True)
    assert (difference.pending, difference.gone) == ((os.fsdecode(names[2]),), (os.fsdecode(names[1]),))


def test_one_refresh_takes_edited_new_and_vanished_files(tmp_path: Path) -> None:
    found = explorer(tmp_path, {f"m{number}.py": f"def needle_{number}(): pass\n" for number in range(8)})
    found.refresh_all()
    (tmp_path / "m4.py").write_text("def edited(): pass\n")
    (tmp_path / "m5.py").unlink()
    (tmp_path / "new.py").write_text("def added(): pass\n")
    refresh = found.refresh_all()
    assert (refresh.tagged, refresh.removed) == (2, 1)
    assert places(found, "edited") == [("m4.py", 1)]
    assert places(found, "added") == [("new.py", 1)]
    assert places(found, "needle_0") == [("m0.py", 1)]
    assert places(found, "needle_5") == []


def test_a_removed_file_is_forgotten(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n", "b.py": "def needle(): pass\n"})
    found.refresh_all()
    (tmp_path / "b.py").unlink()
    assert places(found, "needle") == [("a.py", 1)]
    found.refresh_all()
    assert stored(found.cache.store) == {"a.py"}


def test_an_edit_that_keeps_size_and_time_is_seen(tmp_path: Path) -> None:
    """As where an archive is unpacked in which every file bears the same time."""
    found = explorer(tmp_path, {"a.py": "def one(): pass\n"})
    os.utime(tmp_path / "a.py", (1, 1))
    found.refresh_all()
    write(tmp_path, {"a.py": "def two(): pass\n"})
    os.utime(tmp_path / "a.py", (1, 1))
    assert places(found, "two") == [("a.py", 1)]
    assert places(found, "one") == []


@pytest.mark.parametrize("nanoseconds", [15 * 10**18, -(2**31) * 10**9])
def test_a_file_of_any_date_is_found(tmp_path: Path, nanoseconds: int) -> None:
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n"})
    os.utime(tmp_path / "a.py", ns=(nanoseconds, nanoseconds))
    found.refresh_all()
    assert places(found, "needle") == [("a.py", 1)]


def test_a_cold_cache_tags_only_files_that_hold_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("code_intel_server.codebase.symbols.definitions.INLINE_LIMIT", 5)
    files = {f"f{number}.py": f"def other{number}(): pass\n" for number in range(20)} | {"a.py": "def needle(): pass\n"}
    found = explorer(tmp_path, files)
    answer = found.find_definitions("needle")
    assert [row.path for row in answer.results] == ["a.py"]
    assert answer.complete
    assert answer.pending == 20
    assert stored(found.cache.store) == {"a.py"}


def test_a_fuzzy_lookup_on_a_cold_cache_says_that_it_is_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_intel_server.codebase.symbols.definitions.INLINE_LIMIT", 5)
    found = explorer(tmp_path, {f"f{number}.py": f"def other{number}(): pass\n" for number in range(20)})
    answer = found.find_definitions("othr", match=NameMatch.FUZZY)
    assert not answer.complete
    assert "20 files" in answer.incomplete_because[0]
    found.refresh_all()
    answer = found.find_definitions("othr", match=NameMatch.FUZZY)
    assert (answer.total, answer.complete, answer.pending) == (20, True, 0)


def test_a_second_process_finds_the_cache_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explorer(tmp_path, {"a.py": "def needle(): pass\n"}).refresh_all()
    monkeypatch.setattr(cache, "tag_files", lambda *_arguments, **_options: pytest.fail("tagged again"))
    assert places(Explorer(tmp_path), "needle") == [("a.py", 1)]


def test_the_log_beside_the_cache_is_short_after_a_refresh_that_wrote_much_at_once(tmp_path: Path) -> None:
    text = "".join(f"def a_function_with_a_long_name_{number}(): pass\n" for number in range(300))
    found = explorer(tmp_path, {f"f{number}.py": text for number in range(300)})
    found.refresh_all()
    assert (tmp_path / CACHE).stat().st_size > 6_000_000
    write(tmp_path, {"f0.py": "def needle(): pass\n"})
    assert places(found, "needle") == [("f0.py", 1)]
    assert (tmp_path / f"{CACHE}-wal").stat().st_size < 4_500_000


def test_progress_is_told_and_a_cancel_keeps_what_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "FILES_A_BATCH", 2)
    found = explorer(tmp_path, {f"f{number}.py": f"def f{number}(): pass\n" for number in range(60)})
    steps: list[tuple[int, int]] = []
    refresh = found.cache.refresh_all(lambda done, total: steps.append((done, total)), lambda: len(steps) >= 2)
    assert refresh.cancelled
    assert steps[:2] == [(2, 60), (4, 60)]
    assert 4 <= len(stored(found.cache.store)) < 60
    assert found.cache.refresh_all().tagged == 60 - refresh.tagged


def test_readers_and_a_refresh_work_side_by_side(tmp_path: Path) -> None:
    found = explorer(
        tmp_path, {f"f{number}.py": f"def f{number}(): pass\nclass Shared{number % 3}: pass\n" for number in range(60)}
    )
    with ThreadPoolExecutor(8) as pool:
        refresh = pool.submit(found.refresh_all)
        answers = list(pool.map(lambda number: places(found, f"f{number}"), range(60)))
        refresh.result()
    assert answers == [[(f"f{number}.py", 1)] for number in range(60)]


@pytest.mark.parametrize("damage", ["garbage", "empty", "truncated", "while open"])
def test_a_damaged_cache_is_thrown_away_and_made_again(tmp_path: Path, damage: str) -> None:
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n"})
    found.refresh_all()
    found.cache.store.close()
    path = tmp_path / CACHE
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    data = path.read_bytes()
    over = os.urandom(8192) + data[8192:]
    bad = {"garbage": os.urandom(5000), "empty": b"", "truncated": data[: len(data) // 2], "while open": over}
    path.write_bytes(bad[damage])
    assert places(found if damage == "while open" else Explorer(tmp_path), "needle") == [("a.py", 1)]


def test_a_cache_that_the_disk_once_opened_for_reading_only_is_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by an error at every point: SQLite falls back to reading, and the connection was kept for good."""
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n"})
    assert places(found, "needle") == [("a.py", 1)]
    found.cache.store.close()
    connect, refused = store_file.connect, [True]

    def once_for_reading(path: Path) -> sqlite3.Connection:
        if not refused:
            return connect(path)
        refused.clear()
        return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False)

    monkeypatch.setattr(store, "connect", once_for_reading)
    write(tmp_path, {"a.py": "\n\ndef needle(): pass\n"})
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        places(found, "needle")
    assert places(found, "needle") == [("a.py", 3)]


def test_a_cache_that_came_with_a_clone_is_not_believed(tmp_path: Path) -> None:
    original = explorer(tmp_path / "original", {"a.py": "def needle(): pass\n"})
    original.refresh_all()
    original.cache.store.put(
        [
            StoredFile(
                "a.py",
                cache.stamp_of(original.project, "a.py") or Stamp(0, 0),
                "x",
                [Tag("lie", "function", "", "", 1, 1, "Python")],
            )
        ]
    )
    original.cache.store.close()
    shutil.copytree(tmp_path / "original", tmp_path / "clone", copy_function=shutil.copy2)
    assert places(Explorer(tmp_path / "clone"), "lie") == []
    assert places(Explorer(tmp_path / "clone"), "needle") == [("a.py", 1)]


def test_a_cache_of_an_older_version_is_made_again_and_not_believed(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n"})
    found.refresh_all()
    found.cache.store.close()
    with sqlite3.connect(tmp_path / CACHE) as older:
        older.execute("UPDATE symbols SET name = 'lie', start_line = 7")
        older.execute(f"PRAGMA user_version = {SYMBOLS_SCHEMA - 1}")
    older.close()
    again = Explorer(tmp_path)
    assert places(again, "lie") == []
    assert places(again, "needle") == [("a.py", 1)]
    with sqlite3.connect(tmp_path / CACHE) as made:
        assert made.execute("PRAGMA user_version").fetchone() == (SYMBOLS_SCHEMA,)
    made.close()


def test_two_versions_of_the_server_beside_each_other_read_none_of_each_others_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_file, "SYMBOLS_SCHEMA", SYMBOLS_SCHEMA - 1)
    older = explorer(tmp_path, {"a.py": "def needle(): pass  # by_other_rules\n"})
    older.refresh_all()
    monkeypatch.undo()
    newer = Explorer(tmp_path)
    newer.refresh_all()
    with newer.cache.store._write() as connection:  # what its rules, and no others, make of the same file
        connection.execute("UPDATE symbols SET name = 'by_other_rules'")
    with ThreadPoolExecutor(1) as another_thread:  # with a connection that it opens now
        assert another_thread.submit(places, older, "needle").result() == [("a.py", 1)]
        assert another_thread.submit(places, older, "by_other_rules").result() == []
    monkeypatch.setattr(store_file, "SYMBOLS_SCHEMA", SYMBOLS_SCHEMA - 1)
    assert places(Explorer(tmp_path), "needle") == [("a.py", 1)]
    with ThreadPoolExecutor(1) as another_thread:
        assert another_thread.submit(places, newer, "by_other_rules").result() == [("a.py", 1)]


def lettered(found: Explorer, symbol: str) -> list[tuple[str, str]]:
    found.cache.verify(fresh=True)
    return [(row.path, row.symbol) for row in found.find_definitions(symbol, match=NameMatch.FUZZY).results]


def test_a_fuzzy_lookup_knows_every_name_whenever_it_came(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.py": "def first_one(): pass\n", "b.py": "def second_one(): pass\n"})
    assert lettered(found, "fone") == [("a.py", "first_one")]  # before any full refresh
    found.refresh_all()
    assert lettered(found, "fone") == [("a.py", "first_one")]
    write(tmp_path, {"b.py": "def FIRST_ONE(): pass\n"})  # the last one noted gives its place to another
    assert lettered(found, "fone") == [("a.py", "first_one"), ("b.py", "FIRST_ONE")]
    assert lettered(found, "scone") == []
    write(tmp_path, {"b.py": "def second_one(): pass\n", "c.py": "def first_one(): pass\n"})
    assert lettered(Explorer(tmp_path), "fone") == [("a.py", "first_one"), ("c.py", "first_one")]
    assert lettered(found, "scone") == [("b.py", "second_one")]


@pytest.mark.parametrize("link", [".code-intel", ".code-intel/cache", CACHE])
def test_a_cache_is_not_written_through_a_link(tmp_path: Path, link: str) -> None:
    outside = write(tmp_path / "outside", {"file": "kept\n"})
    root = write(tmp_path / "project", {"a.py": "def needle(): pass\n"})
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to(outside / "file" if link == CACHE else outside)
    found = Explorer(root)
    assert places(found, "needle") == [("a.py", 1)]
    assert not found.cache.store.persistent
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "kept\n"


def test_where_the_folder_cannot_be_written_the_cache_lives_in_memory_and_the_answer_says_so(tmp_path: Path) -> None:
    # A file in the folder's place fails for root as well, whom permissions do not stop.
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n", ".code-intel": "a file\n"})
    answer = found.find_definitions("needle")
    assert [row.path for row in answer.results] == ["a.py"]
    assert answer.notes == ("the symbol cache lives in memory: its folder cannot be written",)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: places(found, "needle"), range(20))) == [[("a.py", 1)]] * 20


WRITER = """
    import sys
    from code_intel_server.codebase.symbols.ctags import Tag
    from code_intel_server.codebase.files.project import ProjectScope
    from code_intel_server.codebase.symbols.store_file import SYMBOLS_SCHEMA
    from code_intel_server.codebase.symbols.store import StoredFile, Stamp, SymbolStore
    store = SymbolStore(ProjectScope.at(sys.argv[1]))
    mark, rounds = sys.argv[2], int(sys.argv[3])
    for number in range(rounds):
        tags = [Tag(f"{mark}{number}_{row}", "function", "", "", row, row, "Python") for row in range(1, 51)]
        store.put([StoredFile(f"{mark}{number}.py", Stamp(1, 1), "test", tags), StoredFile("shared.py", Stamp(number, 1), mark, tags)])
        print(number, flush=True)
"""


def writer(root: Path, mark: str, rounds: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(root), mark, str(rounds)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_write_at_once_and_lose_nothing(tmp_path: Path) -> None:
    children = [writer(tmp_path, mark, 30) for mark in "ab"]
    for child in children:
        child.communicate(timeout=60)
    assert [child.returncode for child in children] == [0, 0]
    store = SymbolStore(ProjectScope.at(tmp_path))
    assert [len(store.in_file(path)) for path in store.stamps()] == [50] * 61
    assert len({symbol.engine for symbol in store.in_file("shared.py")}) == 1
    with contextlib.closing(sqlite3.connect(tmp_path / CACHE)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_killed_writer_leaves_whole_files_or_none(tmp_path: Path) -> None:
    for kill_after in range(1, 8):
        child = writer(tmp_path, f"k{kill_after}x", 1000)
        assert child.stdout is not None
        acknowledged = [child.stdout.readline() for _ in range(kill_after)]
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=30)
        store = SymbolStore(ProjectScope.at(tmp_path))
        known = stored(store)
        assert all(f"k{kill_after}x{number}.py" in known for number in range(len(acknowledged)))
        assert all(len(store.in_file(path)) == 50 for path in known)
        store.close()


def test_a_lookup_does_not_wait_for_a_writer_of_another_process(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.py": "def needle(): pass\n"})
    found.refresh_all()
    assert places(found, "needle") == [("a.py", 1)]
    other = sqlite3.connect(tmp_path / CACHE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    assert places(found, "needle") == [("a.py", 1)]
    assert lettered(found, "ndl") == [("a.py", "needle")]
    assert time.monotonic() - started < store_file._BUSY_SECONDS, "it waited"
    other.execute("ROLLBACK")
    other.close()


def test_refreshes_go_one_after_the_other_so_that_no_file_is_tagged_twice(tmp_path: Path) -> None:
    found = explorer(tmp_path, {f"f{number}.py": f"def f{number}(): pass\n" for number in range(300)})
    with ThreadPoolExecutor(3) as pool:
        refreshes = [one.result() for one in [pool.submit(found.refresh_all) for _ in range(3)]]
    assert sum(one.tagged for one in refreshes) == 300


def test_a_file_of_every_listed_language_is_tagged_by_one_engine_or_the_other(tmp_path: Path) -> None:
    files = {
        "a.kt": "class Needle { fun run() {} }\n",
        "b.swift": "struct Needle { func run() {} }\n",
        "c.go": "package c\n\ntype Needle struct{}\n\nfunc (n Needle) run() {}\n",
        "d.rs": "struct Needle;\nimpl Needle { fn run(&self) {} }\n",
        "e.rb": "class Needle\n  def run; end\nend\n",
        "f.tsx": "export class Needle { run() { return <b/>; } }\n",
        "g.java": "class Needle { void run() {} }\n",
        "h.cpp": "class Needle { void run() {} };\n",
        "i.php": "<?php\nclass Needle { function run() {} }\n",
        "script": "#!/usr/bin/env python3\nclass Needle:\n    def run(self): pass\n",
    }
    found = explorer(tmp_path, files)
    answer = found.find_definitions("Needle", kind="class")
    assert {row.path for row in answer.results} == set(files)
    assert {row.engine for row in answer.results} <= {tagging.SYNTAX_TREE, "universal-ctags"}
    methods = found.find_definitions("run", kind="function")
    assert {row.path for row in methods.results} == set(files)


def test_no_reader_waits_for_a_writer_of_the_same_process(tmp_path: Path) -> None:
    store = SymbolStore(ProjectScope.at(tmp_path))
    store.put([StoredFile("a.py", Stamp(1, 1), "test", [])])
    read: list[set[str]] = []
    with store._write():
        reader = threading.Thread(target=lambda: read.append(stored(store)), daemon=True)
        reader.start()
        reader.join(20)
        assert read == [{"a.py"}]


def test_who_finds_the_cache_removed_keeps_the_one_that_another_has_made_since(tmp_path: Path) -> None:
    store = SymbolStore(ProjectScope.at(tmp_path))
    store.put([])
    looked, go_on = threading.Event(), threading.Event()
    late = threading.Thread(target=store.stamps)

    class Watched(type(tmp_path)):  # type: ignore[misc]
        def exists(self) -> bool:
            there = bool(super().exists())
            if threading.current_thread() is late:
                looked.set()
                go_on.wait(20)
            return there

    assert store._path is not None
    shutil.rmtree(store._path.parent)
    store._path = Watched(store._path)
    late.start()
    assert looked.wait(20)
    store.put([StoredFile("a.py", Stamp(1, 1), "test", [])])
    go_on.set()
    late.join(20)
    assert stored(store) == {"a.py"}
