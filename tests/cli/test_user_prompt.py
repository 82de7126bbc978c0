"""The prompt hook hears what a user chooses, keeps nothing else of it, and never holds a prompt up (SPEC 12)."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from code_intel_server.cli import hook
from code_intel_server.contract.clients import CLIENTS
from code_intel_server.flow.phases import Flags
from code_intel_server.flow.ports import Author
from code_intel_server.tools.current_project import CurrentProject
from code_intel_server.tools.session.user_words import SessionUser
from code_intel_server.workspace.state import heard
from tests.cli.helpers import project, session, state

TALK = "11111111-2222"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = project(tmp_path / "my pröject")
    (made / ".code-intel").mkdir()
    return made


def hear(
    monkeypatch: pytest.MonkeyPatch, root: Path, event: dict[str, object] | bytes, *arguments: str
) -> tuple[int, str]:
    """What the hook answers to an event, and prints."""
    given = event if isinstance(event, bytes) else json.dumps({"cwd": str(root), "session_id": TALK} | event).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    monkeypatch.setattr(sys, "stdout", said := io.StringIO())
    return hook.main([*arguments]), said.getvalue()


def prompt(text: str) -> dict[str, object]:
    return {"hook_event_name": "UserPromptSubmit", "prompt": text}


def user(root: Path, session_id: str = heard.NO_SESSION, conversation: str = TALK, **more: object) -> SessionUser:
    bench = CurrentProject(root, root)
    return SessionUser(bench.services, bench.contract(), session_id, conversation, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        (prompt("/code -q Say goodbye."), ()),
        ({"hook_event_name": "BeforeAgent", "prompt": "-q Say goodbye."}, ("--client", "gemini")),
        ({"hook_event_name": "beforeSubmitPrompt", "prompt": "/code -q x"}, ("--client", "cursor")),
        (prompt("/code -q x"), ("--client", "opencode")),
    ],
)
def test_a_flag_that_the_user_typed_is_heard_and_its_text_is_kept_nowhere(
    monkeypatch: pytest.MonkeyPatch, root: Path, event: dict[str, object], arguments: tuple[str, ...]
) -> None:
    assert hear(monkeypatch, root, event, *arguments) == (0, "")
    given, marks = user(root).flags(Flags(quick=True, no_verify=True))
    assert given == Flags(quick=True, no_verify=True)
    assert marks == {"--no_verify": "said by the agent", "--quick": "heard by the hook"}
    (file,) = (root / ".git" / "code-intel" / heard.HEARD_FOLDER).iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert "goodbye" not in file.read_text()
    assert not [*(root / ".code-intel").iterdir()]


def test_what_begins_no_session_is_not_noted_and_a_new_request_takes_the_place_of_the_last(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    hear(monkeypatch, root, prompt("delete the old branches"))
    assert not (root / ".git" / "code-intel" / heard.HEARD_FOLDER).exists()
    for text in ("/code -q a", "/code -f b", "yes, continue"):
        hear(monkeypatch, root, prompt(text))
    _, marks = user(root).flags(Flags(quick=True))
    assert marks == {"--quick": "said by the agent"}


@pytest.mark.parametrize("live", [True, False], ids=["led", "interrupted"])
def test_an_answer_counts_for_the_session_that_waits_for_it_and_only_once(
    monkeypatch: pytest.MonkeyPatch, root: Path, live: bool
) -> None:
    with session(root, state(), live=live):
        hear(monkeypatch, root, prompt("stop"))
        question: dict[str, object] = {"hook_event_name": "PostToolUse", "tool_name": "AskUserQuestion"}
        answered: dict[str, object] = {"tool_response": {"answers": {"And the branches?": "Delete all of them"}}}
        hear(monkeypatch, root, question | answered)
        hear(monkeypatch, root, question | {"tool_response": "none"})
    now, later = (heard.since("20260201_123456", state().submits + more) for more in (0, 1))
    one = user(root, now)
    assert one.decides("stale_branches", "delete", ("delete", "continue")) == ("delete", Author.HOOK)
    assert one.decides("user_decision", "continue", ("continue", "stop")) == ("continue", Author.AGENT)
    assert user(root, now, "").decides("user_decision", "stop", ("stop",)) == ("stop", Author.HOOK)
    assert user(root, now, "another").decides("user_decision", "stop", ("stop",)) == ("stop", Author.AGENT)
    assert user(root, later).decides("user_decision", "stop", ("stop",)) == ("stop", Author.AGENT)


def test_what_was_not_heard_is_asked_and_the_answer_is_the_users(root: Path) -> None:
    asked: list[str] = []

    def no(question: str, choices: object) -> str:
        asked.append(question)
        return "no"

    given, marks = user(root, ask=no).flags(Flags(quick=True, no_verify=True))
    assert (given, marks) == (Flags(), {})
    assert "no_verify, quick" in asked[0]
    _, marks = user(root, ask=lambda _question, _choices: "yes").flags(Flags(fast=True))
    assert marks == {"--fast": "answered by the user"}
    other = user(root, ask=lambda _question, _choices: "continue")
    assert other.decides("stale_branches", "delete", ("delete", "continue")) == ("continue", Author.USER)
    lying = user(root, ask=lambda _question, _choices: "burn it")
    assert lying.decides("stale_branches", "delete", ("delete", "continue")) == ("delete", Author.AGENT)


def pipe_in_place(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(file.read_bytes()[:-9]),
        lambda file: file.write_bytes(file.read_bytes().replace(b"--quick", b"--clean")),
        lambda file: file.write_bytes(b"[" * 100_000),
        lambda file: file.write_bytes(b""),
        lambda file: (file.unlink(), file.symlink_to("/dev/zero")),
        lambda file: (file.unlink(), file.mkdir()),
        pipe_in_place,
        lambda file: file.rename(file.with_name("20260201_123456.0000000000000000.json")),
    ],
)
def test_a_damaged_forged_renamed_or_huge_record_says_nothing_and_is_in_nobodys_way(
    monkeypatch: pytest.MonkeyPatch, root: Path, damage: object
) -> None:
    hear(monkeypatch, root, prompt("/code -q x"))
    (file,) = (root / ".git" / "code-intel" / heard.HEARD_FOLDER).iterdir()
    damage(file)  # type: ignore[operator]
    for name in (heard.NO_SESSION, "20260201_123456"):
        _, marks = user(root, name, "").flags(Flags(quick=True, clean=True))
        assert set(marks.values()) == {"said by the agent"}
    assert hear(monkeypatch, root, prompt("/code -q x")) == (0, "")


def test_no_prompt_is_held_up(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    with session(root, state()):
        whole = json.dumps({"session_id": TALK, "cwd": str(root), **prompt("x" * 100)}).encode()
        monkeypatch.chdir(root)
        assert hear(monkeypatch, root, whole[:-20]) == (0, "")
        (root / ".git" / "code-intel" / heard.HEARD_FOLDER).write_text("a file in its place")
        assert hear(monkeypatch, root, prompt("stop")) == (0, "")
        assert hear(monkeypatch, root, {"hook_event_name": "UserPromptSubmit", "prompt": {"no": "text"}}) == (0, "")
        assert hear(monkeypatch, root, {"hook_event_name": "UserPromptSubmit", "session_id": 7}) == (0, "")


def test_rows_and_files_are_bounded_and_two_conversations_keep_their_own(root: Path) -> None:
    services = CurrentProject(root, root).services
    for number in range(heard.FILES_AT_MOST + 5):
        heard.add(services.local, services.key, "next", f"talk {number}", ["--quick"], afresh=False)
    for _ in range(heard.ROWS_AT_MOST + 5):
        heard.add(services.local, services.key, "next", "mine", ["stop"], afresh=False)
    assert len(heard.rows(services.local, services.key, "next", "mine")) == heard.ROWS_AT_MOST
    assert heard.rows(services.local, services.key, "next", "talk 36") == [["--quick"]]
    assert heard.rows(services.local, services.key, "next", "talk 0") == []
    assert len([*(services.local / heard.HEARD_FOLDER).iterdir()]) == heard.FILES_AT_MOST


def test_the_session_takes_what_was_heard_with_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hear(monkeypatch, root, prompt("/code -q Say goodbye."))
    bench = CurrentProject(root, root)
    bench.sessions.conversation = TALK
    answer = bench.sessions.start("Say goodbye.", "IMPLEMENT", {"quick": True})
    assert answer["decisions"] == {"--quick": "heard by the hook"}
    folder = root / ".git" / "code-intel" / heard.HEARD_FOLDER
    assert not [*folder.iterdir()]
    hear(monkeypatch, root, prompt("stop"))
    assert [*folder.iterdir()]
    cleaned = bench.sessions.start("", "IMPLEMENT", {"clean": True})
    assert cleaned["decisions"] == {"--clean": "said by the agent"}
    assert not [*folder.iterdir()]
    bench.sessions.start("Say goodbye.", "IMPLEMENT", {"quick": True})
    hear(monkeypatch, root, prompt("/code -c -f Something else."))
    again = bench.sessions.start("Something else.", "IMPLEMENT", {"clean": True, "fast": True})
    assert again["decisions"] == {"--clean": "heard by the hook", "--fast": "heard by the hook"}
    assert not [*folder.iterdir()]
    bench.services.close()


def test_every_client_with_a_prompt_hook_has_it_registered() -> None:
    prompts = {"UserPromptSubmit", "BeforeAgent", "beforeSubmitPrompt", "chat.message"}
    assert [one.name for one in CLIENTS if not prompts & {*one.events}] == []


def test_it_takes_less_than_a_hundred_milliseconds_of_processor_time(root: Path) -> None:
    event = json.dumps({"cwd": str(root), "session_id": TALK, **prompt("/code -q x")}).encode()
    took = []
    for _ in range(5):
        before = os.times()
        subprocess.run([sys.executable, "-m", "code_intel_server", "hook"], input=event, check=True)
        after = os.times()
        took.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(took) < 0.1, took
