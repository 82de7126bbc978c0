"""Cutting many files in processes of their own: the same result as here, whatever happens to the processes."""

import errno
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from code_intel_server import process
from code_intel_server.common.child_link import ChildLink
from code_intel_server.common.child_wire import frame
from code_intel_server.index.chunks import cutter as cutter_module
from code_intel_server.index.chunks.cutter import MIN_FILES_FOR_PROCESSES, Cutter, Job
from code_intel_server.index.chunks.cutting import Cut, Rules, cut_file, from_frame, to_frame
from code_intel_server.index.retrieval.lexical import words_of
from code_intel_server.index.retrieval.words import Vocabulary, packed_bag
from code_intel_server.index.values import ChunkStrategy, FileState
from code_intel_server.index.vectors.embedding import MODEL_DIR, load_encoder
from tests.index.builders import children_of, write_files

RULES = Rules(ChunkStrategy.AST, 512, 1_000_000)
FILES = MIN_FILES_FOR_PROCESSES + 40
NAMES = [f"src/m{number:03}.py" for number in range(FILES)]
HEAVY = "".join(
    f"class C{n}:\n    def m{n}(self, a):\n        return [a, {n}, 'x', (a or {n})]\n\n" for n in range(11_000)
)


def vocabulary() -> Vocabulary:
    return Vocabulary.read(MODEL_DIR / "vocabulary.txt")


def many(root: Path, extra: dict[str, str] | None = None) -> list[str]:
    """Enough small files for processes of their own, and others between them."""
    files = {
        name: f'"""Module {name}, Ünïcode: 日本."""\n\n\ndef f{at}():\n    return {at}\n'
        for at, name in enumerate(NAMES)
    }
    write_files(root, files | (extra or {}))
    return sorted({*files, *(extra or {})})


def cutter(root: Path, *, stop: Callable[[], bool] = lambda: False, cpu_seconds: float = 20.0) -> Cutter:
    return Cutter(Job(root, RULES, vocabulary(), cpu_seconds), root / ".cache", stop)


def timeless(cuts: Iterator[Cut | None]) -> dict[str, Cut]:
    """What was cut by path, without the moment at which that was."""
    return {cut.state.path: replace(cut, state=replace(cut.state, indexed_ns=0)) for cut in cuts if cut is not None}


def here(root: Path, paths: list[str]) -> dict[str, Cut]:
    known = vocabulary()
    return timeless(cut_file(root, path, RULES, known) for path in paths)


def test_processes_cut_exactly_as_the_server_does(tmp_path: Path) -> None:
    extra = {"data.bin.py": "a\0b", "package-lock.json": "{}", "README.md": "# A\n\ntext\n\n## B\n\nmore\n"}
    paths = many(tmp_path, extra)
    one = cutter(tmp_path)
    assert timeless(one.cut([*paths, "gone.py"])) == here(tmp_path, paths)
    assert (one.notes, one.stopped, one.process_ids) == ([], False, ())


def test_processes_find_the_files_of_a_relative_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = many(tmp_path / "project")
    monkeypatch.chdir(tmp_path)
    assert timeless(cutter(Path("project")).cut(paths)) == here(tmp_path / "project", paths)


def test_few_files_start_no_process(tmp_path: Path) -> None:
    paths = many(tmp_path)[: MIN_FILES_FOR_PROCESSES - 1]
    one = cutter(tmp_path)
    cuts = one.cut(paths)
    next(cuts)
    assert one.process_ids == ()
    assert len(list(cuts)) == len(paths) - 1


def test_a_killed_process_is_replaced_and_every_file_is_cut(tmp_path: Path) -> None:
    paths = many(tmp_path)
    one = cutter(tmp_path)
    found = []
    killed = 0
    for number, cut in enumerate(one.cut(paths)):
        found.append(cut)
        if number in {20, 90, 150} and one.process_ids:
            os.kill(one.process_ids[0], signal.SIGKILL)
            killed += 1
    assert killed
    assert len(found) == len(paths)
    assert timeless(iter(found)) == here(tmp_path, paths)


def test_processes_that_always_end_leave_the_work_to_the_server_which_says_so(tmp_path: Path) -> None:
    paths = many(tmp_path)
    one = cutter(tmp_path)
    found = []
    for cut in one.cut(paths):
        found.append(cut)
        for pid in one.process_ids:
            os.kill(pid, signal.SIGKILL)
    assert {cut.state.path for cut in found if cut} == set(paths)
    assert any("no process for it works" in note for note in one.notes)


def test_where_no_process_can_be_started_the_server_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> object:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(process, "spawn", refused)
    paths = many(tmp_path)
    one = cutter(tmp_path)
    assert timeless(one.cut(paths)) == here(tmp_path, paths)
    assert any("Resource temporarily unavailable" in note for note in one.notes)


def test_a_file_that_takes_too_long_is_cut_by_lines_and_named(tmp_path: Path) -> None:
    paths = many(tmp_path, {"src/m100_heavy.py": HEAVY})
    one = cutter(tmp_path, cpu_seconds=0.5)
    found = timeless(one.cut(paths))
    assert set(found) == set(paths)
    assert {chunk.kind for chunk in found["src/m100_heavy.py"].chunks} == {"text"}
    assert found["src/m101.py"].chunks[0].names == ("f101",)
    assert [note for note in one.notes if "m100_heavy" in note and "took too long" in note]


def test_a_process_that_stands_still_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutter_module, "FILE_SECONDS", 2.0)
    paths = many(tmp_path)
    one = cutter(tmp_path)
    found = []
    for number, cut in enumerate(one.cut(paths)):
        found.append(cut)
        if number == 40 and one.process_ids:
            os.kill(one.process_ids[0], signal.SIGSTOP)
    assert {cut.state.path for cut in found if cut} == set(paths)


def test_it_stops_when_it_should_and_leaves_no_process(tmp_path: Path) -> None:
    paths = many(tmp_path)
    stop = False
    one = cutter(tmp_path, stop=lambda: stop)
    cuts = one.cut(paths)
    for _ in range(20):
        next(cuts)
    pids = one.process_ids
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)  # nothing more comes
    stop = True
    assert len(list(cuts)) < len(paths) - 20
    assert one.stopped
    assert not set(pids) & set(children_of(os.getpid()))


def test_a_closed_iterator_leaves_no_process(tmp_path: Path) -> None:
    one = cutter(tmp_path)
    cuts = one.cut(many(tmp_path))
    next(cuts)
    pids = one.process_ids
    assert pids
    cuts.close()
    assert not set(pids) & set(children_of(os.getpid()))


def test_what_is_no_regular_file_or_too_large_is_not_read(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": "a = 1\n", "big.py": "a = 1\n" * 200_000})
    os.mkfifo(tmp_path / "fifo.py")
    (tmp_path / "link.py").symlink_to("a.py")
    (tmp_path / "folder.py").mkdir()
    names = ("big.py", "fifo.py", "link.py", "folder.py", "none.py", "a\0b.py")
    assert [cut_file(tmp_path, name, RULES) for name in names] == [None] * 6


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nested.js", "function a(){\n" * 30_000 + "}\n" * 30_000),
        ("one_line.js", "function a(){" * 60_000 + "}" * 60_000),
        ("one_line.py", 'x = "' + "a" * 999_000 + '"'),
        ("nested.yaml", "".join(" " * level + "a:\n" for level in range(1_300))),
    ],
)
def test_a_hostile_file_is_cut_by_lines(tmp_path: Path, name: str, text: str) -> None:
    write_files(tmp_path, {name: text})
    found = cut_file(tmp_path, name, RULES)
    assert found is not None
    assert found.chunks
    assert {chunk.kind for chunk in found.chunks} == {"text"}


@pytest.mark.parametrize(
    ("lead", "text"),
    [
        ("", "read_config(path, HTTPServer2)\n__init__ x_y"),
        ("Class.method", "def method(self):\n    return self._other_name"),
        ("class Ä:", "plain ascii text"),
        ("", "accents: élan, 日本 and snake_case_é"),
        ("class A:", "snake_case word " * 4_000),
    ],
)
def test_a_bag_made_of_found_words_is_the_bag_of_the_passage(lead: str, text: str) -> None:
    encoder = load_encoder()
    passage = f"{lead}\n{text}" if lead else text
    known = vocabulary()
    assert packed_bag(known.passage_bag(lead, text, words_of(text))) == packed_bag(known.bag(passage))
    assert encoder.encode([passage], "passage").any()


def test_bags_that_do_not_fit_their_body_are_refused() -> None:
    head, body = to_frame("a.py", Cut(FileState("a.py", 1, 2, b"d", 3), skipped="binary"))
    assert from_frame(head, body) is not None
    with pytest.raises(ValueError, match="do not fit"):
        from_frame(head, b"more")


def test_an_answer_that_came_in_time_is_taken_by_a_reader_who_comes_late(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": "def f():\n    return 1\n"})
    link = ChildLink("code_intel_server.index.chunks.cutter_child", tmp_path, {})
    opening = Job(tmp_path, RULES, vocabulary()).opening()
    link.send(frame(opening) + frame({}, b"a.py"), time.monotonic() + 60)
    link.receive(time.monotonic() + 60)
    assert select.select([link.answers], [], [], 60)[0]
    assert link.receive(time.monotonic() - 1)[0]["path"] == "a.py"
    with pytest.raises(TimeoutError):
        link.receive(time.monotonic() - 1)
    link.close()
