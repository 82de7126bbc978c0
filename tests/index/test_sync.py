"""The store follows the files: only what changed, safely interrupted, recovered from damage."""

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from code_intel_server import process
from code_intel_server.codebase.files.ignore import FileListing
from code_intel_server.index import sync
from code_intel_server.index.storage.contents import model_number
from code_intel_server.index.storage.postings import CHUNKS, find_postings
from code_intel_server.index.storage.store import Store
from code_intel_server.index.sync import PARTLY_LISTED, Synchroniser
from code_intel_server.index.values import ChunkStrategy, IndexSettings
from tests.index.builders import SAMPLE, HashEncoder, lister, write_files


class Bench:
    """A project with a store and a synchroniser."""

    def __init__(self, root: Path, settings: IndexSettings | None = None, encoder: HashEncoder | None = None) -> None:
        self.root = root
        self.encoder = encoder or HashEncoder()
        self.store = Store(root / ".code-intel" / "cache" / "index.sqlite3", writable=True)
        self.sync = Synchroniser(root, self.store, settings or IndexSettings(), lister(root), lambda: self.encoder)

    def age(self) -> None:
        """Make every file look old, so that its stat alone is trusted."""
        for path in lister(self.root)().paths:
            os.utime(self.root / path, ns=(10**18, 10**18))
        self.sync.run()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    write_files(tmp_path, SAMPLE)
    made = Bench(tmp_path)
    yield made
    made.store.close()


def test_a_first_sync_indexes_every_file_and_a_second_does_nothing(bench: Bench) -> None:
    first, encoded = bench.sync.run(), bench.encoder.encoded
    second = bench.sync.run()
    assert first.added == len(SAMPLE)
    assert (second.unchanged, second.chunks, bench.encoder.encoded) == (len(SAMPLE), 0, encoded)


def test_the_end_of_a_large_sync_stops_nobody_who_writes_beside_it(bench: Bench) -> None:
    done = threading.Event()

    def end_one_after_the_other() -> None:
        while not done.is_set():
            with bench.store.in_bulk():
                pass

    other = threading.Thread(target=end_one_after_the_other)
    other.start()
    try:
        for number in range(400):
            bench.store.set_meta(number=str(number))
    finally:
        done.set()
        other.join()
    assert bench.store.meta("number") == "399"


def test_the_log_beside_the_index_is_short_after_a_sync_that_wrote_much_at_once(bench: Bench) -> None:
    body = "\n".join(f"    total += {number} * {number}" for number in range(40))
    text = "".join(f"def function_{number}(total):\n{body}\n\n\n" for number in range(20))
    write_files(bench.root, {f"many/f{number}.py": text.replace("total", f"total_{number}") for number in range(200)})
    bench.sync.run()
    index = bench.store.contents.path
    assert index.stat().st_size > 2_500_000
    write_files(bench.root, {"many/f0.py": "def needle():\n    pass\n"})
    bench.sync.run()
    assert index.with_name(f"{index.name}-wal").stat().st_size < 4_500_000


def test_an_edit_with_the_same_size_and_time_is_noticed_while_the_file_is_young(bench: Bench) -> None:
    bench.sync.run()
    target = bench.root / "src/store/database.py"
    before = target.stat()
    target.write_text(target.read_text().replace("sqlite", "mariad"))
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert bench.sync.run().changed == 1


def test_an_edit_with_the_same_size_and_time_is_noticed_however_old_the_file_looks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "RACY_NS", -(10**19))  # as where all files are old: their looks alone are trusted
    bench.age()
    target = bench.root / "src/store/database.py"
    target.write_text(target.read_text().replace("sqlite", "mariad"))
    os.utime(target, ns=(10**18, 10**18))
    assert bench.sync.run().changed == 1


def test_a_file_of_any_date_is_indexed(bench: Bench) -> None:
    os.utime(bench.root / "README.md", ns=(15 * 10**18, 15 * 10**18))  # beyond 2262: more than a table's column holds
    assert bench.sync.run().added == len(SAMPLE)
    assert bench.sync.run().unchanged == len(SAMPLE)


def test_a_touched_file_is_compared_by_content_and_not_cut_again(bench: Bench) -> None:
    bench.sync.run()
    os.utime(bench.root / "README.md")
    report = bench.sync.run()
    assert (report.changed, report.unchanged) == (0, len(SAMPLE))


def test_only_changed_chunks_are_embedded_again(bench: Bench) -> None:
    functions = "\n\n".join(f"def function_{n}(value):\n" + f"    value += {n}\n" * 60 for n in range(10))
    write_files(bench.root, {"src/many.py": functions})
    bench.sync.run()
    write_files(bench.root, {"src/many.py": functions.replace("value += 7\n", "value -= 7\n")})
    assert bench.sync.run().embedded == 1


def test_a_renamed_file_is_recognised_and_not_embedded_again(bench: Bench) -> None:
    bench.sync.run()
    encoded = bench.encoder.encoded
    (bench.root / "src/auth/throttle.py").rename(bench.root / "src/auth/limiter.py")
    report = bench.sync.run()
    assert (report.renamed, report.added, report.removed, bench.encoder.encoded) == (1, 0, 0, encoded)
    assert "src/auth/throttle.py" not in bench.store.files()


def test_a_deleted_file_leaves_nothing_behind(bench: Bench) -> None:
    bench.sync.run()
    for path in SAMPLE:
        (bench.root / path).unlink()
    assert bench.sync.run().removed == len(SAMPLE)
    assert [bench.store.count(table) for table in ("files", "chunks", "definitions")] == [0, 0, 0]


def test_a_cancelled_sync_keeps_what_it_did_and_the_next_goes_on(tmp_path: Path) -> None:
    write_files(tmp_path, {f"src/m{n}.py": f"def f{n}():\n" + f"    x = {n}\n" * 90 for n in range(400)})
    bench = Bench(tmp_path)
    cancelled = bench.sync.run(should_stop=lambda: bench.store.count("files") > 0)
    done = bench.store.count("files")
    assert cancelled.cancelled
    assert 0 < done < 400
    assert bench.sync.pending == 400 - done
    assert bench.store.meta("pending") == str(400 - done)  # for `status`, which looks from outside
    resumed = bench.sync.run()
    assert (resumed.added, resumed.unchanged, bench.sync.pending) == (400 - done, done, 0)
    assert bench.store.meta("pending") == "0"
    bench.store.close()


def test_progress_counts_up_to_all_files(bench: Bench) -> None:
    seen: list[tuple[int, int]] = []
    bench.sync.run(progress=lambda done, total, _: seen.append((done, total)))
    assert seen[-1] == (len(SAMPLE), len(SAMPLE))
    assert seen == sorted(seen)


def test_source_dirs_size_and_binaries_are_honoured(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "src/a.py": "a = 1\n",
            "lib/b.py": "b = 1\n",
            "other/d.py": "d = 1\n",
            "src/big.txt": "x" * 2000,
            "src/image.bin": b"\x89PNG\0\0\0",
        },
    )
    chosen = IndexSettings(source_dirs=("src", "lib"), max_file_bytes=1000)
    bench = Bench(tmp_path, chosen)
    report = bench.sync.run()
    with bench.store.reading() as connection:
        indexed = {row[0] for row in connection.execute("SELECT DISTINCT path FROM chunks")}
    assert indexed == {"src/a.py", "lib/b.py"}
    assert report.skipped == {"excluded": 1, "too_large": 1, "binary": 1}
    bench.store.close()


def test_a_project_without_text_files_is_an_empty_index(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.bin": b"\0\0\0"})
    bench = Bench(tmp_path)
    assert (bench.sync.run().chunks, bench.sync.run().chunks) == (0, 0)
    bench.store.close()


def test_what_a_listing_missed_stays_in_the_index_unless_it_is_gone(tmp_path: Path) -> None:
    """A listing that ended early (a slow disk, a folder that cannot be read) says nothing of the files it lacks."""
    write_files(tmp_path, SAMPLE)
    bench = Bench(tmp_path)
    bench.sync.run()
    gone, *others = sorted(SAMPLE)
    (tmp_path / gone).unlink()
    early = FileListing((others[0],), ("ripgrep did not finish within 15 s.",))
    bench.sync = Synchroniser(tmp_path, bench.store, IndexSettings(), lambda: early, lambda: bench.encoder)
    report = bench.sync.run()
    assert {*bench.store.files()} == {*others}
    assert (report.removed, report.notes) == (1, (f"{PARTLY_LISTED} {early.problems[0]}",))
    whole = Synchroniser(
        tmp_path, bench.store, IndexSettings(), lambda: FileListing((others[0],)), lambda: bench.encoder
    )
    assert (whole.run().removed, {*bench.store.files()}) == (len(others) - 1, {others[0]})
    bench.store.close()


def test_a_file_that_vanishes_while_syncing_is_no_failure(tmp_path: Path) -> None:
    write_files(tmp_path, SAMPLE)
    bench = Bench(tmp_path)
    listed = lister(tmp_path)()
    (tmp_path / "README.md").unlink()
    bench.sync = Synchroniser(tmp_path, bench.store, IndexSettings(), lambda: listed, lambda: bench.encoder)
    assert bench.sync.run().added == len(SAMPLE) - 1
    bench.store.close()


def test_names_with_newlines_dashes_and_broken_bytes_are_files_like_others(tmp_path: Path) -> None:
    names = ["-rf.py", "a\nb.py", "ü b.py", os.fsdecode(b"bad\xff.py")]
    write_files(tmp_path, dict.fromkeys(names, "def unusual():\n    return 1\n"))
    bench = Bench(tmp_path)
    report = bench.sync.run()
    assert set(bench.store.files()) == {"-rf.py", "a\nb.py", "ü b.py"}
    assert report.skipped == {"undecodable_name": 1}
    bench.store.close()


def test_another_model_replaces_every_vector_without_reading_a_file(bench: Bench) -> None:
    bench.sync.run()
    for path in SAMPLE:
        os.utime(bench.root / path, ns=(10**18, 10**18))
    bench.sync.run()
    bench.encoder = HashEncoder(dim=48, name="other")
    report = bench.sync.run()
    assert report.chunks == 0
    assert bench.encoder.encoded == bench.store.count("chunks")
    with bench.store.reading() as connection:
        model = "SELECT length(vector) FROM chunks c JOIN shared.vectors v ON v.passage = c.passage AND v.model = ?"
        assert {row[0] for row in connection.execute(model, (model_number("other/48"),))} == {96}


def test_another_chunk_size_cuts_everything_again(bench: Bench) -> None:
    bench.sync.run()
    chosen = IndexSettings(chunk_strategy=ChunkStrategy.TEXT, chunk_max_tokens=64)
    again = Synchroniser(bench.root, bench.store, chosen, lister(bench.root), lambda: bench.encoder)
    assert again.run().added == len(SAMPLE)


def test_a_damaged_file_is_set_aside_and_said_so(bench: Bench) -> None:
    bench.sync.run()
    bench.store.close()
    bench.store.path.write_bytes(b"SQLite format 3\0" + os.urandom(8192))
    again = Bench(bench.root)
    assert any("set aside" in note for note in again.store.notes)
    assert bench.store.path.with_name("index.sqlite3.damaged").is_file()
    assert again.sync.run().added == len(SAMPLE)
    again.store.close()


def test_an_index_of_another_version_is_built_anew(bench: Bench) -> None:
    bench.sync.run()
    bench.store.set_meta(schema="0")
    bench.store.close()
    again = Bench(bench.root)
    assert any("another version" in note for note in again.store.notes)
    assert again.sync.run().added == len(SAMPLE)
    again.store.close()


def test_a_full_disk_rolls_the_batch_back_and_the_next_sync_goes_on(bench: Bench) -> None:
    lines = "".join(f"    x_{{0}}_{i} = {i}\n" for i in range(90))
    write_files(bench.root, {f"src/m{n}.py": f"def f{n}():\n{lines.format(n)}" for n in range(60)})
    bench.store.contents._writer.execute("PRAGMA max_page_count = 20")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        bench.sync.run()
    bench.store.contents._writer.execute("PRAGMA max_page_count = 1000000")
    assert bench.sync.run().cancelled is False
    assert bench.store.count("files") == len(SAMPLE) + 60


def test_parallel_syncs_and_reads_end_in_one_whole_index(bench: Bench) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            bench.sync.run()
            bench.store.files()
        except BaseException as error:  # noqa: BLE001 - reported by the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert bench.store.count("files") == len(SAMPLE)
    with bench.store.reading() as connection:
        assert connection.execute("SELECT count(*) - count(DISTINCT id) FROM chunks").fetchone()[0] == 0


def test_a_file_that_changes_after_it_was_cut_is_indexed_anew_by_the_next_sync(bench: Bench) -> None:
    target = bench.root / "src/store/database.py"
    encode = bench.encoder.encode

    def meanwhile(texts: Sequence[str], kind: Literal["query", "passage"]) -> NDArray[np.float32]:
        target.write_text("def renamed_meanwhile(path):\n    return path\n")
        return encode(texts, kind)

    bench.encoder.encode = meanwhile  # type: ignore[method-assign]
    bench.sync.run()
    assert "src/store/database.py" in bench.sync.stale(bench.store.files())
    assert bench.sync.run().changed == 1
    assert bench.sync.stale(bench.store.files()) == []


def test_a_large_sync_is_the_same_with_and_without_processes_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"src/m{n}.py": f"class C{n}:\n    def method_{n}(self):\n        return {n}\n" for n in range(260)}
    stored = []
    for number, spawn in enumerate((process.spawn, _refused)):
        monkeypatch.setattr(process, "spawn", spawn)
        write_files(tmp_path / str(number), files)
        bench = Bench(tmp_path / str(number))
        report = bench.sync.run()
        with bench.store.reading() as connection:
            rows: list[object] = connection.execute(
                "SELECT c.id, c.path, c.start_line, c.end_line, c.at, c.size, c.names, v.vector FROM chunks c "
                "JOIN shared.vectors v ON v.passage = c.passage ORDER BY c.id"
            ).fetchall()
            words = find_postings(connection, CHUNKS, ["method", "class", "method7"])
            rows.append({term: sorted(found[["first", "second"]].tolist()) for term, found in words.items()})
        stored.append((report.added, report.chunks, rows))
        assert any("no process for it works" in note for note in report.notes) == (spawn is _refused)
        bench.store.close()
    assert stored[0] == stored[1]


def _refused(*_: object, **__: object) -> object:
    raise OSError("no more processes")
