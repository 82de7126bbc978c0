"""Checkpoints under faults: a writer that is killed or failed at every step it takes towards the disk."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from code_intel_server.errors import Unavailable
from code_intel_server.workspace import files
from code_intel_server.workspace.state.checkpoints import CheckpointStore

KEY = bytes(32)
SESSION = "20260201_123456"
STEPS = ("open", "write", "fsync", "link", "rename", "replace")

WRITER = """
import os, signal, sys
from pathlib import Path
from code_intel_server.workspace.state.checkpoints import CheckpointStore
folder, deadly = Path(sys.argv[1]), int(sys.argv[2])
store = CheckpointStore(folder, bytes(32))
store.load("20260201_123456")
steps = 0
def watched(name):
    real = getattr(os, name)
    def call(*args, **kwargs):
        global steps
        steps += 1
        if steps == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)
    setattr(os, name, call)
for name in ("open", "write", "fsync", "link", "rename", "replace", "close"):
    watched(name)
store.save("20260201_123456", {"n": 3, "text": "x" * 5000})
sys.stdout.write("saved")
"""


def prepared(folder: Path) -> CheckpointStore:
    """A folder with two generations of one session."""
    store = CheckpointStore(folder, KEY)
    store.save(SESSION, {"n": 1})
    store.save(SESSION, {"n": 2})
    return store


def test_a_writer_killed_at_any_step_leaves_the_old_or_the_new_generation_and_no_third(tmp_path: Path) -> None:
    outcomes = []
    for deadly in range(1, 200):
        folder = tmp_path / str(deadly)
        prepared(folder)
        child = subprocess.run(
            [sys.executable, "-c", WRITER, str(folder), str(deadly)], capture_output=True, check=False, timeout=30
        )
        loaded = CheckpointStore(folder, KEY).load(SESSION)
        assert not loaded.restored_previous, f"step {deadly}: the newest file was not whole"
        assert loaded.body["n"] in {2, 3}
        outcomes.append(loaded.body["n"])
        CheckpointStore(folder, KEY).sweep()
        assert {path.name for path in folder.iterdir()} == {f"{SESSION}.json", f"{SESSION}.previous.json"}
        if child.stdout == b"saved":
            break
    assert child.stdout == b"saved"
    assert outcomes == sorted(outcomes), "once new, it stays new"
    assert outcomes[0] == 2 and outcomes[-2] == 3, "the kill points lie on both sides of the rename"
    assert len(outcomes) >= 10


class Failing:
    """Makes the Nth of the system calls under test fail with `number`, and counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, number: int) -> None:
        self.calls = 0
        self.at = at
        self.number = number
        for name in STEPS:
            monkeypatch.setattr(os, name, self.wrap(getattr(os, name)))

    def wrap(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """`real`, but failing when it is the chosen call."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls == self.at:
                raise OSError(self.number, os.strerror(self.number))
            return real(*args, **kwargs)

        return call


@pytest.mark.parametrize("restarted", [True, False])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS], ids=["ENOSPC", "EIO", "EROFS"])
def test_a_failing_disk_at_any_step_is_a_typed_error_and_saving_again_succeeds(
    tmp_path: Path, number: int, restarted: bool
) -> None:
    told = set()
    for at in range(1, 100):
        folder = tmp_path / str(at)
        store = prepared(folder)
        if restarted:
            store = CheckpointStore(folder, KEY)
        with pytest.MonkeyPatch.context() as patch:
            failing = Failing(patch, at, number)
            outcome = attempt(store)
        now = CheckpointStore(folder, KEY).load(SESSION)
        assert not now.restored_previous
        if failing.calls < at:
            break
        told.add(outcome)
        assert now.body == ({"n": 2} if outcome == "checkpoint_not_saved" else {"n": 3})
        store.save(SESSION, {"n": 3})
        assert CheckpointStore(folder, KEY).load(SESSION).body == {"n": 3}
        assert {path.name for path in folder.iterdir()} == {f"{SESSION}.json", f"{SESSION}.previous.json"}
    assert at > 6
    # Only reading an old file that we did not write ourselves may fail without an error: the new one is safe.
    assert told == {"checkpoint_not_saved", "checkpoint_unconfirmed", *(["saved"] if restarted else [])}


def attempt(store: CheckpointStore) -> str:
    """Save and tell how it ended, by the last part of the error's key."""
    try:
        store.save(SESSION, {"n": 3})
    except Unavailable as error:
        return error.key.rpartition(".")[2]
    return "saved"


def test_an_unconfirmed_save_says_that_its_outcome_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = prepared(tmp_path)

    def no_sync(_: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("code_intel_server.workspace.files.sync_folder", no_sync)
    with pytest.raises(Unavailable, match="checkpoint_unconfirmed"):
        store.save(SESSION, {"n": 3})
    monkeypatch.undo()
    assert store.save(SESSION, {"n": 3}) == 4


@pytest.mark.needs("strace")
def test_the_new_content_is_on_disk_before_it_gets_the_name_and_the_name_before_save_returns(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    folder = tmp_path / "sessions"
    prepared(folder)
    traced = ["strace", "-f", "-y", "-e", "trace=fsync,rename,renameat,renameat2,link,linkat", "-o", str(trace)]
    subprocess.run(
        [*traced, sys.executable, "-c", WRITER, str(folder), "0"], check=True, capture_output=True, timeout=60
    )
    calls = [line.split(maxsplit=1)[1] for line in trace.read_text().splitlines() if str(folder) in line]
    kinds = [call.partition("(")[0].removesuffix("at").removesuffix("at2") for call in calls]
    assert kinds == ["fsync", "link", "rename", "rename", "fsync"]
    assert ".tmp>" in calls[0] and f"{SESSION}.json" in calls[3]
    assert calls[4].startswith("fsync") and f"{folder}>" in calls[4]


# The order shown above leaves three changes of names between the sync of the content and the sync of the folder; a file
# system may have kept any of them, in any order, when the power failed.
NAMES = [kept for count in range(4) for kept in permutations(("link", "previous", "new"), count)]


@pytest.mark.parametrize("kept", NAMES, ids=lambda kept: "+".join(kept) or "nothing")
def test_a_power_loss_that_keeps_any_part_of_the_unsynced_names_leaves_a_whole_generation(
    tmp_path: Path, kept: tuple[str, ...]
) -> None:
    store = prepared(tmp_path)
    newest, previous = tmp_path / f"{SESSION}.json", tmp_path / f"{SESSION}.previous.json"
    written = files.stage(newest, store._sealed(SESSION, 3, {"n": 3}))
    for name in kept:
        if name == "link":
            os.link(newest, tmp_path / f".{previous.name}.0000000000000000.tmp")
        elif name == "previous":
            previous.write_bytes(newest.read_bytes())
        else:
            written.replace(newest)
    loaded = CheckpointStore(tmp_path, KEY).load(SESSION)
    assert loaded.body == ({"n": 3} if "new" in kept else {"n": 2})
    assert not loaded.restored_previous
    again = CheckpointStore(tmp_path, KEY)
    again.sweep()
    again.save(SESSION, {"n": 4})
    newest.unlink()
    assert again.load(SESSION).body == loaded.body
    assert [path.name for path in tmp_path.iterdir()] == [previous.name]


BUSY_WRITER = """
import sys
from pathlib import Path
from code_intel_server.workspace.state.checkpoints import CheckpointStore
store = CheckpointStore(Path(sys.argv[1]), bytes(32))
print("ready", flush=True)
for number in range(3, 100_000):
    store.save("20260201_123456", {"n": number, "text": "x" * 20_000})
"""


def test_whoever_reads_while_another_process_writes_always_finds_a_whole_newest_generation(tmp_path: Path) -> None:
    prepared(tmp_path)
    writer = subprocess.Popen([sys.executable, "-c", BUSY_WRITER, str(tmp_path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"ready\n"
    reader = CheckpointStore(tmp_path, KEY)
    seen: list[int] = []
    while len(set(seen)) < 30:
        loaded = reader.load(SESSION)
        assert not loaded.restored_previous, loaded.why
        seen.append(loaded.generation)
    writer.kill()
    writer.communicate()
    assert seen == sorted(seen)
    assert CheckpointStore(tmp_path, KEY).load(SESSION).generation >= seen[-1]
