"""ChromaDB is in use and never needed: the same tests against a child on a folder and against a real server."""

import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from code_intel_server.index.values import ChromaMode, ChromaSettings, Collection, IndexSettings
from code_intel_server.index.vectors.chroma_link import ChromaLink
from tests.index.builders import (
    SAMPLE,
    HashEncoder,
    children_of,
    engine_of,
    everything_found,
    make_index,
    manager_of,
    ready,
    write_files,
)
from tests.index.cases import Case
from tests.index.chroma_server import chroma_server, free_port


@pytest.fixture(scope="module")
def server_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    port = free_port()
    with chroma_server(tmp_path_factory.mktemp("server"), port):
        yield port


EITHER = pytest.mark.parametrize("chroma", [ChromaMode.LOCAL, ChromaMode.HTTP], indirect=True)
"""Also in an ordinary run against a server, whose client takes a second to load: what differs where it is not a folder."""


@pytest.fixture(params=[ChromaMode.LOCAL, pytest.param(ChromaMode.HTTP, marks=pytest.mark.full)])
def chroma(request: pytest.FixtureRequest) -> ChromaSettings:
    mode = ChromaMode(request.param)
    if mode is ChromaMode.HTTP:
        return ChromaSettings(mode=mode, host="127.0.0.1", port=request.getfixturevalue("server_port"))
    return ChromaSettings(mode=mode, min_chunks=0)


@pytest.fixture
def case(tmp_path: Path, chroma: ChromaSettings) -> Iterator[Case]:
    write_files(tmp_path, SAMPLE)
    made = Case(tmp_path, chroma)
    made.index.sync()
    assert ready(made.index)
    yield made
    made.index.close()


def test_what_set_up_leaves_out_is_needed_neither_for_a_folder_nor_for_a_server(
    tmp_path: Path, server_port: int
) -> None:
    folder = {"mode": "local", "path": str(tmp_path / "chroma"), "lock": str(tmp_path / "lock")}
    server = {"mode": "http", "host": "127.0.0.1", "port": server_port, "ssl": False, "headers": {}}
    server |= {"tenant": "default_tenant", "database": "default_database"}
    script = (Path(__file__).parents[2] / "init-project.sh").read_text(encoding="utf-8")
    absent = re.findall(r"(\w+)-[\d.]+", re.findall(r"for one in (.*); do", script)[0])
    assert {"onnxruntime", "kubernetes"} < {*absent}
    done = subprocess.run(
        [sys.executable, "-c", _USED, repr(absent), repr([folder, server])], capture_output=True, text=True, check=True
    ).stdout
    assert done == "['a'] []\n" * 2


_USED = """
import sys
import numpy as np
from code_intel_server.index.vectors.chroma_child import Collections, connect_client

sys.modules |= dict.fromkeys(eval(sys.argv[1]))
for request in eval(sys.argv[2]):
    one = Collections(connect_client(request), {"forest": {"store": "a"}}, {"forest": "left-out"})
    vectors = np.array([[1.0, 0.0]], dtype=np.float32)
    one.open(), one.put("forest", ["a"], vectors), one.near("forest", 5, vectors)
    found = one.known("forest", ["a", "b"])["ids"]
    one.drop("forest", ["a"])
    print(found, one.known("forest", ["a"])["ids"])
"""


def test_a_system_that_sets_no_limit_to_open_files_lets_chromadb_open_its_graphs(tmp_path: Path) -> None:
    link = ChromaLink(tmp_path)
    hard = resource.prlimit(link.pid, resource.RLIMIT_NOFILE)[1]
    try:
        if hard != resource.RLIM_INFINITY:
            pytest.skip("this system sets a limit that only its administrator can lift")
        resource.prlimit(link.pid, resource.RLIMIT_NOFILE, (hard, hard))
        opening = {"op": "open", "mode": "local", "path": str(tmp_path / "chroma"), "lock": str(tmp_path / "lock")}
        opened = link.ask(
            opening | {"names": {"forest": "forest-of-one"}, "identities": {"forest": {"format": 1}}}, timeout=60
        )
    finally:
        link.close()
    assert opened == {"created": ["forest"], "counts": {"forest": 0}}


@EITHER
def test_chromadb_answers_once_it_has_everything(case: Case) -> None:
    assert case.index.search("login throttle").engine == "chromadb+bm25"
    assert everything_found(case.index)


@EITHER
def test_changes_reach_chromadb(case: Case) -> None:
    write_files(case.root, {"src/new.py": "def brand_new_thing():\n    return 1\n"})
    (case.root / "src/web/router.js").unlink()
    case.index.sync()
    assert ready(case.index) and everything_found(case.index)
    assert case.index.search("brand new thing").hits[0].path == "src/new.py"
    assert not [hit for hit in case.index.search("match route url").hits if hit.path.endswith("router.js")]


def test_chromadb_and_the_store_give_the_same_order(case: Case) -> None:
    with_chroma = [hit.chunk_id for hit in case.index.search("attempts of a user").hits]
    case.index.close()
    case.chroma = ChromaSettings(mode=ChromaMode.OFF)
    case.open().sync()
    assert [hit.chunk_id for hit in case.index.search("attempts of a user").hits] == with_chroma


def test_a_restart_finds_everything_without_embedding_anything(case: Case) -> None:
    case.index.close()
    encoded = case.encoder.encoded
    case.open().sync()
    assert ready(case.index) and everything_found(case.index)
    assert (case.encoder.encoded, manager_of(case.index).rebuilt) == (encoded, [])


def test_chunks_that_chromadb_was_never_sent_do_not_make_it_look_damaged(case: Case) -> None:
    case.index.close()
    chroma, case.chroma = case.chroma, ChromaSettings(mode=ChromaMode.OFF)
    write_files(case.root, {f"src/more{n}.py": f"def more_{n}():\n    return {n}\n" for n in range(40)})
    case.open().sync()
    case.index.close()
    case.chroma = chroma
    manager = manager_of(case.open())
    manager.kick()
    assert ready(case.index) and everything_found(case.index)
    assert manager.rebuilt == []
    assert not (case.root / ".code-intel/cache/chroma.damaged").exists()


def test_a_child_killed_while_it_opens_a_healthy_folder_does_not_cost_the_folder(tmp_path: Path) -> None:
    write_files(tmp_path, SAMPLE)
    index = make_index(tmp_path, mode=ChromaMode.LOCAL)
    index.sync()
    assert ready(index)
    index.close()
    index = make_index(tmp_path, mode=ChromaMode.LOCAL)
    manager = manager_of(index)
    before = set(children_of(os.getpid()))
    manager.kick()
    killed = None
    while killed is None:
        # Its interpreter is starting, or it is opening the folder: the parent waits for its first answer.
        killed = next(iter(set(children_of(os.getpid())) - before), None)
    os.kill(killed, signal.SIGKILL)
    assert ready(index) and everything_found(index)
    assert manager.child_pid != killed
    assert manager.rebuilt == []
    assert not (tmp_path / ".code-intel/cache/chroma.damaged").exists()
    index.close()


@EITHER
def test_a_killed_child_is_replaced_and_answers_go_on_meanwhile(case: Case) -> None:
    pid = manager_of(case.index).child_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    meanwhile = case.index.search("login throttle")
    assert meanwhile.engine == "sqlite-vectors+bm25"
    assert meanwhile.hits[0].path == "src/auth/throttle.py"
    assert ready(case.index) and everything_found(case.index)
    assert manager_of(case.index).child_pid != pid


def test_a_child_that_hangs_is_replaced_within_its_time_limit(tmp_path: Path, chroma: ChromaSettings) -> None:
    write_files(tmp_path, SAMPLE)
    index = make_index(tmp_path, IndexSettings(chroma=replace(chroma, timeout=0.3)))
    index.sync()
    assert ready(index)
    pid = manager_of(index).child_pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    assert index.search("login throttle").engine == "sqlite-vectors+bm25"
    manager_of(index)._settings = chroma  # the next one answers, as late as a busy machine lets it
    assert ready(index) and everything_found(index)
    index.close()


def test_another_model_fills_chromadb_anew(case: Case) -> None:
    case.index.close()
    case.encoder = HashEncoder(dim=24, name="another")
    case.open().sync()
    assert ready(case.index) and everything_found(case.index)


def test_a_lost_store_does_not_trust_what_chromadb_still_holds(case: Case) -> None:
    case.index.close()
    (case.root / ".code-intel/cache/index.sqlite3").unlink()
    (case.root / "src/store/database.py").unlink()
    case.open().sync()
    assert ready(case.index) and everything_found(case.index)


def test_agreements_are_found_through_chromadb(case: Case) -> None:
    case.index.record("how are logins slowed down?", ["LoginThrottle.allow"], ["src/auth/throttle.py"], "s1")
    assert ready(case.index)
    near = manager_of(case.index).near("map", case.encoder.encode(["how are logins slowed down?"], "query")[0], 5)
    assert near is not None
    assert max(near.values()) > 0.99
    assert case.index.search("How are logins slowed down?").collection is Collection.MAP


def test_parallel_searches_and_a_sync_do_not_disturb_each_other(case: Case) -> None:
    write_files(case.root, {f"src/extra{n}.py": f"def extra_{n}():\n    return {n}\n" for n in range(50)})
    engines: list[str] = []
    threads = [threading.Thread(target=lambda: engines.append(engine_of(case.index))) for _ in range(12)]
    for thread in threads:
        thread.start()
    case.index.sync()
    for thread in threads:
        thread.join()
    assert len(engines) == 12
    assert ready(case.index) and everything_found(case.index)


SEAL = ".code-intel/cache/chroma.seal"


def segments(root: Path) -> list[Path]:
    return sorted(path for path in (root / ".code-intel/chroma").rglob("*") if path.is_file())


def test_a_deleted_folder_is_filled_again_without_embedding(local: Case) -> None:
    import shutil

    encoded = local.encoder.encoded
    shutil.rmtree(local.root / ".code-intel/chroma")
    local.open().sync()
    assert ready(local.index) and everything_found(local.index)
    assert local.encoder.encoded == encoded


@pytest.mark.parametrize("damage", ["garbage", "truncated", "empty"])
@pytest.mark.parametrize("name", ["chroma.sqlite3", "data_level0.bin", "header.bin", "link_lists.bin", "length.bin"])
def test_damage_is_noticed_or_harmless_and_everything_is_found_again(local: Case, name: str, damage: str) -> None:
    """Also where no owner ended in order, so that only ChromaDB itself can tell."""
    (local.root / SEAL).unlink()
    encoded = local.encoder.encoded
    targets = [path for path in segments(local.root) if path.name == name]
    assert targets
    for target in targets:
        content = target.read_bytes()
        target.write_bytes(
            {"garbage": os.urandom(len(content)), "truncated": content[: len(content) // 2], "empty": b""}[damage]
        )
    local.open().sync()
    assert ready(local.index) and everything_found(local.index)
    assert local.encoder.encoded == encoded


def test_a_missing_segment_folder_is_noticed_though_the_count_is_right(local: Case) -> None:
    import shutil

    (local.root / SEAL).unlink()
    for folder in [path for path in (local.root / ".code-intel/chroma").iterdir() if path.is_dir()]:
        shutil.rmtree(folder)
    local.open().sync()
    assert ready(local.index) and everything_found(local.index)


@pytest.mark.parametrize("name", ["chroma.sqlite3", "data_level0.bin", "length.bin"])
def test_one_changed_bit_is_noticed_whatever_chromadb_makes_of_it(local: Case, name: str) -> None:
    target = next(path for path in segments(local.root) if path.name == name)
    content = bytearray(target.read_bytes())
    content[len(content) // 2] ^= 1
    target.write_bytes(content)
    local.open().sync()
    assert ready(local.index)
    (said,) = manager_of(local.index).rebuilt
    assert said.startswith("The ChromaDB folder was set aside as chroma.damaged")
    assert f"{name} was changed while nobody had it open" in said
    assert everything_found(local.index)


def test_a_folder_that_was_left_in_order_is_taken_up_as_it_is(local: Case) -> None:
    before = {path for path in segments(local.root) if path.name != "chroma.sqlite3"}
    for _ in range(3):
        local.open().sync()
        assert ready(local.index)
        assert local.index.search("login throttle").hits
        assert manager_of(local.index).rebuilt == []
        local.index.close()
    assert before <= set(segments(local.root))


@pytest.mark.parametrize("note", ["", "{", "[]", "[" * 100_000, '{"chroma.sqlite3": null}', None])
def test_a_note_that_nobody_can_read_costs_at_most_a_refill(local: Case, note: str | None) -> None:
    if note is None:
        (local.root / SEAL).unlink()
        (local.root / SEAL).mkdir()
    else:
        (local.root / SEAL).write_text(note)
    local.open().sync()
    assert ready(local.index) and everything_found(local.index)


def test_two_owners_never_open_chromadb_at_once(local: Case) -> None:
    local.open().sync()
    assert ready(local.index)
    other = make_index(local.root, IndexSettings(chroma=local.chroma), HashEncoder())
    answer = other.search("login throttle")
    assert (answer.engine, answer.complete) == ("sqlite-vectors+bm25", True)
    assert any("keeps the index up to date" in note for note in answer.notes)
    assert answer.hits[0].path == "src/auth/throttle.py"
    assert other._open().chroma is None
    other.close()


def test_a_server_that_is_away_costs_nothing_but_speed(tmp_path: Path) -> None:
    write_files(tmp_path, SAMPLE)
    index = make_index(
        tmp_path, IndexSettings(chroma=ChromaSettings(mode=ChromaMode.HTTP, host="127.0.0.1", port=free_port()))
    )
    index.sync()
    said = False
    for _ in range(20):  # a busy machine takes long to import ChromaDB, and only then can it fail
        assert not ready(index, timeout=4)
        answer = index.search("login throttle")
        assert answer.hits[0].path == "src/auth/throttle.py"
        said = any("ChromaDB failed" in note for note in answer.notes)
        if said:
            break
    assert said
    index.close()
