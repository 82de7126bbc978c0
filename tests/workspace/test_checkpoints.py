"""Checkpoints: an acknowledged save is never lost, and nothing but our own whole file is ever obeyed."""

import json
import os
import resource
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import cast

import pytest
from benchmarks.faults.results import Record, size
from hypothesis import given, settings
from hypothesis import strategies as st

from code_intel_server.errors import Rejected, Unavailable, UserActionNeeded
from code_intel_server.workspace import files
from code_intel_server.workspace.state import checkpoints
from code_intel_server.workspace.state.checkpoints import CheckpointProblem, CheckpointStore, Loaded, new_session_id
from code_intel_server.workspace.state.signature import CHECKPOINT_SCHEMA, MAX_CHECKPOINT_BYTES, signed, verified

KEY = bytes(range(32))
SESSION = "20260201_123456"
OWN_FIELDS = ("schema_version", "generation", "session_id")
GOLDEN = Path(__file__).parent / "golden"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def store(folder: Path, key: bytes = KEY) -> CheckpointStore:
    """A store that has never looked at `folder` before, as after a restart."""
    return CheckpointStore(folder, key)


def written(folder: Path, *bodies: dict[str, object], session: str = SESSION) -> Path:
    """Save `bodies` one after the other and return the session's newest file."""
    one = store(folder)
    for body in bodies:
        one.save(session, body)
    return folder / f"{session}.json"


def resealed(folder: Path, rest: bytes) -> None:
    """Put a file there whose seal is right for `rest`, whatever that is."""
    (folder / f"{SESSION}.json").write_bytes(signed(KEY, rest))


@given(st.dictionaries(st.text(max_size=8).filter(lambda name: name not in OWN_FIELDS), json_values))
def test_what_was_saved_comes_back_equal_after_a_restart(
    tmp_path_factory: pytest.TempPathFactory, body: dict[str, object]
) -> None:
    folder = tmp_path_factory.mktemp("sessions")
    store(folder).save(SESSION, body)
    assert store(folder).load(SESSION) == Loaded(SESSION, 1, body)


def test_a_checkpoint_is_one_json_object_in_the_layout_of_v1_13(tmp_path: Path) -> None:
    path = written(tmp_path, {"orchestrator_state": {"phase_state": {"step": 5}}, "phase_payloads": {}})
    content = json.loads(path.read_text())
    assert list(content)[:5] == ["checksum", "mac", "schema_version", "generation", "session_id"]
    assert content["orchestrator_state"] == {"phase_state": {"step": 5}}


def test_only_the_user_may_read_a_checkpoint(tmp_path: Path) -> None:
    assert written(tmp_path, {}).stat().st_mode & 0o777 == 0o600


def test_generations_count_up_over_all_sessions_and_restarts(tmp_path: Path) -> None:
    assert store(tmp_path).save(SESSION, {}) == 1
    assert store(tmp_path).save("20260201_123457", {}) == 2
    again = store(tmp_path)
    assert [again.save(SESSION, {}), again.save(SESSION, {})] == [3, 4]


def test_the_newest_is_the_last_saved_whatever_the_clock_said(tmp_path: Path) -> None:
    written(tmp_path, {"which": "first"}, session="20991231_235959")
    written(tmp_path, {"which": "second"}, session="20000101_000000")
    os.utime(tmp_path / "20000101_000000.json", (0, 0))
    newest, _ = store(tmp_path).usable()
    assert newest.body == {"which": "second"}


def test_no_folder_at_all_means_no_checkpoint(tmp_path: Path) -> None:
    absent = store(tmp_path / "absent")
    assert absent.usable() == ()
    assert absent.unusable() == ()
    assert absent.delete_all() == ()
    with pytest.raises(Rejected, match="checkpoint_not_found"):
        absent.load(SESSION)


def test_every_truncation_gives_the_previous_generation_and_says_so(tmp_path: Path, record_property: Record) -> None:
    path = written(tmp_path, {"n": 1}, {"n": 2, "text": "ü" * 40})
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        loaded = store(tmp_path).load(SESSION)
        assert (loaded.body, loaded.generation, loaded.restored_previous) == ({"n": 1}, 1, True), length
        assert loaded.why
    record_property("executions", len(whole))


@pytest.mark.timeout(3600)
def test_every_flipped_bit_is_noticed(tmp_path: Path, record_property: Record) -> None:
    path = written(tmp_path, {"n": 1}, {"n": 2, "text": "ü" * size(0, 600)})
    whole = path.read_bytes()
    bits = size(1, 8)  # of each byte
    for position in range(len(whole)):
        for bit in range(position, position + bits):
            path.write_bytes(whole[:position] + bytes([whole[position] ^ 1 << bit % 8]) + whole[position + 1 :])
            assert store(tmp_path).load(SESSION).restored_previous, (position, bit)
    record_property("executions", bits * len(whole))


@given(st.binary(max_size=400))
@settings(max_examples=300)
def test_any_bytes_at_all_are_a_typed_error_and_never_a_crash(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("sessions")
    (folder / f"{SESSION}.json").write_bytes(data)
    with pytest.raises(Unavailable, match="checkpoint_damaged"):
        store(folder).load(SESSION)
    assert store(folder).usable() == ()


def test_both_generations_damaged_is_a_clear_error_and_the_files_stay(tmp_path: Path) -> None:
    path = written(tmp_path, {"n": 1}, {"n": 2})
    previous = tmp_path / f"{SESSION}.previous.json"
    path.write_bytes(b"")
    previous.write_bytes(b"{}")
    with pytest.raises(Unavailable) as raised:
        store(tmp_path).load(SESSION)
    assert raised.value.key == "tool_errors.get_session_status.checkpoint_damaged"
    assert raised.value.params["file"] == path.name
    assert path.exists() and previous.exists()
    (entry,) = store(tmp_path).unusable()
    assert entry.problem is CheckpointProblem.DAMAGED


def test_a_checkpoint_of_another_machine_is_not_obeyed(tmp_path: Path) -> None:
    store(tmp_path, key=b"x" * 32).save(SESSION, {"orchestrator_state": {"phase_state": {"current_phase": "MERGE"}}})
    with pytest.raises(Unavailable, match="checkpoint_foreign"):
        store(tmp_path).load(SESSION)
    assert store(tmp_path).usable() == ()


def test_an_edit_with_its_checksum_put_right_is_not_obeyed(tmp_path: Path) -> None:
    path = written(tmp_path, {"phase": "READY"})
    before = path.read_bytes()
    rest = verified(KEY, before).replace(b"READY", b"MERGE")[1:]
    mac = before.index(b'"mac"')
    path.write_bytes(signed(KEY, rest)[:mac] + before[mac : -len(rest)] + rest)
    with pytest.raises(Unavailable, match="checkpoint_foreign"):
        store(tmp_path).load(SESSION)


def test_a_checkpoint_does_not_pass_under_another_sessions_name(tmp_path: Path) -> None:
    path = written(tmp_path, {})
    path.rename(tmp_path / "20260201_999999.json")
    with pytest.raises(Unavailable, match="checkpoint_foreign"):
        store(tmp_path).load("20260201_999999")


def test_a_newer_versions_checkpoint_is_named_and_not_replaced_by_an_older_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, {"n": 1})
    monkeypatch.setattr(checkpoints, "CHECKPOINT_SCHEMA", 2)
    written(tmp_path, {"n": 2})
    monkeypatch.undo()
    with pytest.raises(Unavailable) as raised:
        store(tmp_path).load(SESSION)
    assert raised.value.key == "tool_errors.get_session_status.checkpoint_version"
    assert raised.value.params["version"] == "2"


@pytest.mark.parametrize("rest", [
    b"]",
    b"}}",
    b'"a": 1, "a": 2}',
    b'"a": NaN}',
    b'"a": -Infinity}',
    b'"a": ' + b"9" * 5000 + b"}",
    b'"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    b'"schema_version": true, "generation": 1, "session_id": "20260201_123456"}',
    b'"schema_version": "1", "generation": 1, "session_id": "20260201_123456"}',
    b'"schema_version": 1, "generation": "1", "session_id": "20260201_123456"}',
    b'"schema_version": 1, "generation": 1, "session_id": null}',
    b'"a": "\xff"}',
], ids=lambda rest: rest[:24].decode("latin-1"))  # fmt: skip
def test_even_with_a_right_seal_only_strict_json_of_the_right_form_is_taken(tmp_path: Path, rest: bytes) -> None:
    ours = (
        b"" if b"schema_version" in rest else b'"schema_version": 1, "generation": 1, "session_id": "20260201_123456", '
    )
    resealed(tmp_path, ours + rest)
    with pytest.raises(Unavailable):
        store(tmp_path).load(SESSION)


def test_a_right_seal_over_the_right_form_is_taken(tmp_path: Path) -> None:
    resealed(tmp_path, b'"schema_version": 1, "generation": 1, "session_id": "20260201_123456", "a": 1}')
    assert store(tmp_path).load(SESSION).body == {"a": 1}


def make_fifo(path: Path) -> None:
    """A named pipe nobody writes to."""
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    """A socket somebody listened on."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def make_sparse(path: Path) -> None:
    """A gigabyte of nothing."""
    with path.open("wb") as stream:
        stream.truncate(1 << 30)


def make_link_to_a_good_one(path: Path) -> None:
    """A link to a checkpoint that would be obeyed under its own name."""
    elsewhere = path.parent / "elsewhere"
    written(elsewhere, {"n": 1})
    path.symlink_to(elsewhere / path.name)


@pytest.mark.parametrize("make", [
    make_fifo, make_sparse, make_link_to_a_good_one, lambda path: path.mkdir(), lambda path: path.symlink_to(path.name),
    lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to("/dev/tty"),
    lambda path: path.symlink_to("nowhere"), make_socket,
], ids=["fifo", "sparse", "link", "folder", "loop", "device", "terminal", "dangling", "socket"])  # fmt: skip
def test_what_is_no_plain_file_is_refused_at_once_without_reading_it(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / f"{SESSION}.json")
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.raises(Unavailable, match="checkpoint_damaged"):
        store(tmp_path).load(SESSION)
    assert time.monotonic() - started < 5  # at once, on any machine
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kilobytes


def test_a_file_of_more_than_a_megabyte_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, {"n": 1}, {"n": 2})
    path.write_bytes(path.read_bytes() + b" " * MAX_CHECKPOINT_BYTES)
    assert store(tmp_path).load(SESSION).restored_previous


def test_a_body_that_could_not_be_loaded_again_is_not_saved(tmp_path: Path) -> None:
    path = written(tmp_path, {"n": 1})
    before = path.read_bytes()
    with pytest.raises(Rejected, match="checkpoint_too_large"):
        store(tmp_path).save(SESSION, {"text": "x" * MAX_CHECKPOINT_BYTES})
    assert path.read_bytes() == before


@pytest.mark.parametrize("body", [{"n": float("nan")}, {"n": float("inf")}, {"generation": 7}, {"session_id": "x"}])
def test_a_body_that_is_no_json_or_takes_our_names_is_our_own_mistake(tmp_path: Path, body: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"JSON|hold"):
        store(tmp_path).save(SESSION, body)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("session_id", [
    "", ".", "..", "../20260201_123456", "20260201_123456/../../x", "/etc/passwd", "20260201_123456\0", "20260201_123456\n",
    "２０２６0201_123456", "20260201_123456.previous", "20260201_1234567", "20260201_123456_12345", "a" * 5000, None, 7,
    "\ud800", "20260201_123456_x", "-rf",
])  # fmt: skip
def test_a_session_id_can_name_nothing_but_a_checkpoint(tmp_path: Path, session_id: object) -> None:
    for call in (store(tmp_path).load, store(tmp_path).delete):
        with pytest.raises(Rejected, match="checkpoint_not_found"):
            cast("Callable[[object], object]", call)(session_id)


def test_a_damaged_file_never_displaces_the_good_generation_before_it(tmp_path: Path) -> None:
    path = written(tmp_path, {"n": 1}, {"n": 2})
    path.write_bytes(b"torn")
    again = store(tmp_path)
    assert again.load(SESSION).body == {"n": 1}
    again.save(SESSION, {"n": 3})
    path.write_bytes(b"torn once more")
    assert store(tmp_path).load(SESSION).body == {"n": 1}


def test_a_save_after_one_killed_before_its_rename_leaves_nothing_behind(tmp_path: Path) -> None:
    path = written(tmp_path, {"n": 1}, {"n": 2})
    previous = tmp_path / f"{SESSION}.previous.json"
    previous.unlink()
    os.link(path, previous)  # as a kill between the two renames leaves it
    store(tmp_path).save(SESSION, {"n": 3})
    assert {entry.name for entry in tmp_path.iterdir()} == {path.name, previous.name}
    path.unlink()
    assert store(tmp_path).load(SESSION).body == {"n": 2}


def test_without_hard_links_the_previous_generation_is_kept_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    path = written(tmp_path, {"n": 1}, {"n": 2})
    assert store(tmp_path).load(SESSION).body == {"n": 2}
    path.unlink()
    assert store(tmp_path).load(SESSION) == Loaded(SESSION, 1, {"n": 1}, restored_previous=True, why="no such file")


def test_when_links_fail_for_another_reason_nothing_is_saved_and_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    path = written(tmp_path, {"n": 1})
    monkeypatch.setattr(os, "link", broken)
    with pytest.raises(Unavailable, match="Input/output error"):
        store(tmp_path).save(SESSION, {"n": 2})
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert store(tmp_path).load(SESSION).body == {"n": 1}


@pytest.mark.parametrize("link", [".code-intel", ".code-intel/sessions"])
def test_a_folder_that_a_repository_aims_elsewhere_is_neither_written_nor_read_nor_emptied(
    tmp_path: Path, link: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    target = elsewhere / "sessions" if link == ".code-intel" else elsewhere
    path = written(target, {"n": 1})
    files.stage(path, b"somebody else's")
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(elsewhere)
    before = sorted(target.iterdir())
    one = store(tmp_path / ".code-intel" / "sessions")
    with pytest.raises(UserActionNeeded, match="state_folder_unsafe"):
        one.save(SESSION, {"n": 2})
    assert (one.usable(), one.delete(SESSION), one.delete_all(), one.sweep()) == ((), False, (), 0)
    assert sorted(target.iterdir()) == before


def test_deleting_removes_both_generations_and_nothing_else(tmp_path: Path) -> None:
    written(tmp_path, {}, {})
    written(tmp_path, {}, session="20260201_123457")
    (tmp_path / "notes.json").write_text("{}")
    one = store(tmp_path)
    assert one.delete(SESSION) is True
    assert one.delete(SESSION) is False
    assert sorted(path.name for path in tmp_path.iterdir()) == ["20260201_123457.json", "notes.json"]


def test_deleting_all_takes_the_unusable_ones_and_leftovers_with_it(tmp_path: Path) -> None:
    written(tmp_path, {}, {})
    (tmp_path / "20260201_000000.json").write_bytes(b"damaged")
    files.stage(tmp_path / "20260201_000001.json", b"left by a killed writer")
    (tmp_path / "notes.json").write_text("{}")
    assert store(tmp_path).delete_all() == ("20260201_000000", SESSION)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.json"]


def test_sweeping_removes_only_what_killed_writers_left(tmp_path: Path) -> None:
    written(tmp_path, {}, {})
    files.stage(tmp_path / f"{SESSION}.json", b"x")
    (tmp_path / ".gitignore").write_text("*\n")
    assert store(tmp_path).sweep() == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".gitignore",
        f"{SESSION}.json",
        f"{SESSION}.previous.json",
    ]


def test_checkpoints_of_every_released_schema_can_be_read() -> None:
    found = {path.parent.name: store(path.parent).load(SESSION) for path in GOLDEN.glob("schema-*/*.json")}
    assert found.keys() == {f"schema-{number}" for number in range(1, CHECKPOINT_SCHEMA + 1)}
    assert found["schema-1"].body["phase_payloads"] == {
        "step_05": {"summary": "Read src/auth.py:42, größer als gedacht."}
    }


def test_ids_say_the_time_and_get_a_number_when_it_is_taken(tmp_path: Path) -> None:
    now = datetime(2026, 2, 1, 12, 34, 56, tzinfo=UTC)
    assert new_session_id(now, tmp_path, taken=lambda _: False) == SESSION
    assert new_session_id(now, tmp_path, taken=lambda _: False) == f"{SESSION}_2"
    assert new_session_id(now, tmp_path, taken=lambda candidate: candidate == f"{SESSION}_3") == f"{SESSION}_4"


def test_a_second_without_a_free_id_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no session id is left"):
        new_session_id(datetime(2026, 2, 1, 12, 34, 56, tzinfo=UTC), tmp_path, taken=lambda _: True)


def test_many_who_ask_in_the_same_second_get_different_ids(tmp_path: Path) -> None:
    now = datetime(2026, 2, 1, 12, 34, 56, tzinfo=UTC)
    ids: list[str] = []
    threads = [
        Thread(target=lambda: ids.append(new_session_id(now, tmp_path, taken=lambda _: False))) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 20


def test_reservations_do_not_pile_up(tmp_path: Path) -> None:
    for second in range(60):
        for minute in range(2):
            new_session_id(datetime(2026, 2, 1, 12, minute, second, tzinfo=UTC), tmp_path, taken=lambda _: False)
    assert len(list((tmp_path / "session-ids").iterdir())) == 64
