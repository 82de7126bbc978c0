"""Outside of sessions the hook says once what no run has proven, or has it run, and never holds a turn twice (SPEC 12)."""

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from code_intel_server import process
from code_intel_server.cli import hook, status
from code_intel_server.cli.hook import background_run
from code_intel_server.cli.hook.outside_sessions import locked, place_of, runs_now
from code_intel_server.tools.services import ProjectServices
from code_intel_server.tools.session.endings import Endings
from code_intel_server.workspace.project.trust import Approvals
from tests.cli.helpers import Said, project, session, state
from tests.e2e.driver import git

TEST = "from app import greet\n\n\ndef test_greet():\n    assert greet('you') == 'Hello, you!'\n"
CONFIG = ".code-intel/config.json"

Event = Callable[..., str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = project(tmp_path / "repo", **{"test_app.py": TEST, "conftest.py": ""})
    configure(made)
    return made


def configure(root: Path, mode: str | None = None, command: tuple[str, ...] = ("python", "-m", "pytest", "-q")) -> None:
    (root / ".code-intel").mkdir(exist_ok=True)
    config: dict[str, Any] = {"verify_commands": [[*command]]} | ({"outside_sessions": mode} if mode else {})
    (root / CONFIG).write_text(json.dumps(config))
    git(root, "add", "-f", CONFIG)
    git(root, "commit", "-q", "--allow-empty", "-m", "configure")
    Approvals().trust(root / CONFIG)


@pytest.fixture
def event(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said) -> Event:
    """Send one event of a conversation; what the hook printed."""

    def send(name: str, conversation: str = "one", arguments: tuple[str, ...] = (), **more: object) -> str:
        given = {"hook_event_name": name, "cwd": str(root), "session_id": conversation, **more}
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(given).encode())))
        capsys.readouterr()
        assert hook.main([*arguments]) == 0
        return capsys.readouterr().out

    return send


def held(said: str) -> str:
    """The reason for which a turn is held; '' where it ends."""
    return str(json.loads(said).get("reason", "")) if said else ""


def noted(said: str) -> str:
    return str(json.loads(said).get("systemMessage", "")) if said else ""


def edit(root: Path, text: str = "Hi", path: str = "app.py") -> None:
    file = root / path
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'def greet(name: str) -> str:\n    return f"{text}, {{name}}!"\n')


def run_here(root: Path) -> None:
    """The run that the hook starts in the background, in this process."""
    place = place_of(str(root))
    assert place is not None
    lock = locked(place)
    assert lock is not None
    assert locked(place) is None
    background_run.verify(str(root), place.head, lock)


class TestRemind:
    def test_a_turn_that_edits_is_held_once_with_what_is_known(self, root: Path, event: Event) -> None:
        event("SessionStart")
        edit(root)
        edit(root, path="pkg/né w.py")
        said = held(event("Stop"))
        assert "2 files changed outside a session in this turn: app.py, pkg/né w.py" in said
        assert "`python -m pytest -q`" in said
        assert event("Stop", stop_hook_active=True) == ""
        assert event("Stop") == ""

    def test_a_turn_without_an_edit_ends_whatever_lay_there_before(self, root: Path, event: Event) -> None:
        edit(root)
        event("SessionStart")
        assert event("Stop") == ""
        event("UserPromptSubmit")
        assert event("Stop") == ""

    def test_what_the_user_edits_between_two_turns_is_not_the_agents(self, root: Path, event: Event) -> None:
        event("SessionStart")
        event("Stop")
        edit(root)
        event("UserPromptSubmit")
        assert event("Stop") == ""

    def test_a_turn_that_the_user_broke_off_counts_with_the_next(self, root: Path, event: Event) -> None:
        event("UserPromptSubmit")
        edit(root)
        event("UserPromptSubmit")
        assert held(event("Stop"))

    def test_a_stubborn_model_is_held_once_for_a_tree_and_again_for_another(self, root: Path, event: Event) -> None:
        event("SessionStart")
        edit(root)
        assert held(event("Stop"))
        before = (root / "app.py").read_bytes()
        (root / "app.py").write_bytes(before)  # touched, the same
        assert event("Stop") == ""
        edit(root, "Other")
        assert held(event("Stop"))
        (root / "app.py").write_bytes(before)
        assert event("Stop") == "", "these files were spoken of"
        assert event("Stop", stop_hook_active=True) == ""

    def test_where_a_hook_already_keeps_the_turn_going_it_is_never_held(self, root: Path, event: Event) -> None:
        event("SessionStart")
        for number in range(5):
            edit(root, str(number))
            assert event("Stop", stop_hook_active=True) == ""

    def test_a_commit_of_what_was_spoken_of_is_nothing_new(self, root: Path, event: Event) -> None:
        event("SessionStart")
        edit(root)
        assert held(event("Stop"))
        git(root, "commit", "-qam", "greet otherwise")
        event("UserPromptSubmit")
        assert event("Stop") == ""

    def test_a_commit_within_the_turn_hides_no_edit(self, root: Path, event: Event) -> None:
        event("SessionStart")
        edit(root)
        git(root, "commit", "-qam", "greet otherwise")
        assert "app.py" in held(event("Stop"))

    def test_a_pull_of_older_commits_and_a_checkout_are_no_edits(self, root: Path, event: Event) -> None:
        git(root, "checkout", "-q", "-b", "theirs")
        edit(root)
        old = {"GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z", "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z"}
        process.run(["git", "commit", "-qam", "theirs"], cwd=root, timeout=20, env={**os.environ, **old})
        git(root, "checkout", "-q", "main")
        event("SessionStart")
        git(root, "merge", "-q", "--ff-only", "theirs")
        assert event("Stop") == ""

    def test_an_edit_that_was_undone_is_none_and_prose_needs_no_tests(self, root: Path, event: Event) -> None:
        event("SessionStart")
        edit(root)
        git(root, "checkout", "-q", "app.py")
        (root / "README.md").write_text("# Other\n")
        assert event("Stop") == ""

    @pytest.mark.parametrize(("command", "counts"), [
        ("python3 -m pytest -q tests", True), ("cd sub && FOO=1 .venv/bin/pytest | tail -3", True),
        ("uv run pytest", True), ("pip install pytest-xdist", False), ("cat pytest.ini", False), ("ls", False),
    ])  # fmt: skip
    def test_an_agent_that_ran_the_tests_after_its_last_edit_is_not_reminded(
        self, root: Path, event: Event, command: str, counts: bool
    ) -> None:
        event("SessionStart")
        edit(root)
        event("PostToolUse", tool_name="Bash", tool_input={"command": command})
        assert bool(held(event("Stop"))) is not counts
        edit(root, "Later")
        assert held(event("Stop"))

    def test_a_run_in_the_clients_background_is_not_known_to_have_ended_well(self, root: Path, event: Event) -> None:
        event("SessionStart")
        edit(root)
        event("PostToolUse", tool_name="Bash", tool_input={"command": "pytest", "run_in_background": True})
        assert held(event("Stop"))

    def test_two_conversations_each_have_their_own_turn(self, root: Path, event: Event) -> None:
        event("SessionStart", "one")
        edit(root)
        event("SessionStart", "two")
        assert event("Stop", "two") == ""
        assert held(event("Stop", "one"))

    def test_what_a_session_has_ended_with_is_accounted_for(self, root: Path, event: Event) -> None:
        event("SessionStart")
        edit(root)
        services = ProjectServices(root)
        Endings(services).keep_accounted("20260201_123456")
        services.close()
        assert event("Stop") == ""
        edit(root, "Later")
        assert "since session 20260201_123456: app.py" in held(event("Stop"))

    def test_an_interrupted_session_is_named_too(self, root: Path, event: Event) -> None:
        event("SessionStart")
        tip = git(root, "rev-parse", "main").strip()
        with session(root, state(base="main", tip=tip), live=False):
            edit(root)
            assert "Session 20260201_123456 waits unfinished at step 13 of 19." in held(event("Stop"))

    @pytest.mark.parametrize("client", ["gemini", "copilot", "cursor"])
    def test_every_client_is_held_in_its_own_words(self, root: Path, event: Event, client: str) -> None:
        arguments = ("--client", client)
        event("SessionStart", arguments=arguments)
        edit(root)
        assert "app.py" in event("Stop", arguments=arguments)


class TestSilence:
    @pytest.mark.parametrize("mode", ["off", "remind", "verify"])
    def test_off_says_nothing_and_keeps_nothing(self, root: Path, event: Event, mode: str) -> None:
        configure(root, mode)
        event("SessionStart")
        kept = [*(root / ".git/code-intel").glob("outside*")]
        assert bool(kept) is (mode != "off")

    @pytest.mark.parametrize(
        "kept", [b"", b"[]", b"{", b'{"begun": 3}', b'{"begun": {"one": {"head": 1}}}', b"\xff" * 99]
    )
    def test_a_damaged_file_of_ours_holds_nobody_up(self, root: Path, event: Event, kept: bytes) -> None:
        event("SessionStart")
        edit(root)
        (root / ".git/code-intel/outside.turns.json").write_bytes(kept)
        assert event("Stop") == ""

    @pytest.mark.parametrize(
        "content", [b"{}", b"{", b"[1]", b'{"verify_commands": 3}', b'{"verify_commands": [{}]}', b"\xff"]
    )
    def test_a_config_without_commands_or_a_broken_one_holds_nobody_up(
        self, root: Path, event: Event, content: bytes
    ) -> None:
        event("SessionStart")
        edit(root)
        (root / CONFIG).write_bytes(content)
        assert event("Stop") == ""

    def test_a_git_that_fails_holds_nobody_up(self, root: Path, event: Event, monkeypatch: pytest.MonkeyPatch) -> None:
        event("SessionStart")
        edit(root)
        monkeypatch.setenv("PATH", "/nowhere")
        assert event("Stop") == ""

    def test_nothing_of_the_repository_is_executed(self, root: Path, event: Event, tmp_path: Path) -> None:
        """A clean filter, fsmonitor and a hook that git status would run."""
        trap = tmp_path / "trap"
        git(root, "config", "filter.x.clean", f"touch {trap}; cat")
        git(root, "config", "core.fsmonitor", f"touch {trap}")
        (root / ".gitattributes").write_text("*.py filter=x\n")
        event("SessionStart")
        edit(root)
        assert held(event("Stop"))
        assert not trap.exists()

    def test_a_forged_verdict_is_not_believed(self, root: Path, event: Event) -> None:
        event("SessionStart")
        edit(root)
        ProjectServices(root).key  # noqa: B018 - a machine with a key
        place = place_of(str(root))
        assert place is not None
        place.write("verdict", {"proven": place.look().kept(), "by": "me"}, b"x" * 32)
        assert held(event("Stop"))


class TestVerify:
    @pytest.fixture(autouse=True)
    def _verify(self, root: Path) -> None:
        configure(root, "verify", (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"))

    @pytest.fixture
    def started(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """The processes that were started in the background."""
        pids: list[int] = []
        detach = process.detach

        def noting(*given: Any, **more: Any) -> int:
            pids.append(detach(*given, **more))
            return pids[-1]

        monkeypatch.setattr(process, "detach", noting)
        return pids

    def test_it_runs_in_the_background_and_the_next_stop_tells_once(
        self, root: Path, event: Event, started: list[int]
    ) -> None:
        event("SessionStart")
        edit(root)
        assert "are running in the background" in noted(event("Stop"))
        os.waitpid(started[0], 0)
        said = held(event("Stop"))
        assert "1 test failed\ntest_app.py::test_greet" in said
        assert "Try 1" not in said
        assert event("Stop") == ""
        assert len(started) == 1
        edit(root, "Hello")
        (root / "more.py").write_text("x = 1\n")
        assert noted(event("Stop"))
        os.waitpid(started[1], 0)
        assert "verified" in noted(event("Stop"))
        assert event("Stop") == ""
        git(root, "add", "-A")
        git(root, "commit", "-qm", "more")
        assert event("Stop") == "", "a commit of what was proven"
        assert len(started) == 2

    def test_a_test_that_is_gone_is_asked_for_and_one_that_shows_nothing_new_is_not(
        self, root: Path, event: Event
    ) -> None:
        event("SessionStart")
        (root / "test_app.py").write_text(TEST.replace("greet():", "greeting():"))
        (root / "app.py").write_text((root / "app.py").read_text() + "# nothing else\n")
        run_here(root)
        assert "verified" in noted(event("Stop"))
        (root / "test_app.py").write_text("def test_nothing():\n    assert True\n")
        edit(root, "Hi")
        run_here(root)
        assert "test_app.py::test_greet: passed before this change and fails with it" in held(event("Stop"))

    def test_while_one_runs_no_other_is_started_and_its_owner_is_told(
        self, root: Path, event: Event, started: list[int], capsys: Said, tmp_path: Path
    ) -> None:
        gate = tmp_path / "gate"
        os.mkfifo(gate)
        configure(root, "verify", ("cat", str(gate)))
        event("SessionStart")
        edit(root)
        event("Stop")
        place = place_of(str(root))
        assert place is not None
        with gate.open("w"):  # opens when the command reads: it is running
            said = runs_now(place)
            assert said["pid"] == started[0]
            edit(root, "Later")
            told = noted(event("Stop"))
            assert "on the files as they were before" in told
            assert str(said["until"]) in told
            assert status.main(["--project", str(root)]) == 0
            assert f"process {started[0]}" in capsys.readouterr().out
        os.waitpid(started[0], 0)
        assert runs_now(place) == {}
        assert len(started) == 1

    def test_a_run_that_is_ended_leaves_no_orphan(
        self, root: Path, event: Event, started: list[int], tmp_path: Path
    ) -> None:
        gate = tmp_path / "gate"
        os.mkfifo(gate)
        configure(root, "verify", ("cat", str(gate)))
        event("SessionStart")
        edit(root)
        event("Stop")
        with gate.open("w") as stream:
            os.kill(started[0], 15)
            os.waitpid(started[0], 0)
            with pytest.raises(BrokenPipeError):
                for _ in range(1_000):
                    stream.write("x" * 65_536)  # nobody reads any more
            os.set_blocking(stream.fileno(), False)
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

    def test_after_two_runs_without_a_verdict_none_is_started(
        self, root: Path, event: Event, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(process, "detach", lambda *_, **__: 0)
        for conversation in ("one", "two", "three"):
            event("SessionStart", conversation)
        edit(root)
        assert noted(event("Stop", "one"))
        assert noted(event("Stop", "two"))
        assert "no verdict was left" in held(event("Stop", "three"))

    def test_commands_that_are_not_trusted_do_not_run(self, root: Path, event: Event) -> None:
        Approvals().revoke(root / CONFIG)
        event("SessionStart")
        edit(root)
        run_here(root)
        assert "is not trusted: code-intel-server trust" in held(event("Stop"))

    def test_a_live_session_ends_the_run(self, root: Path) -> None:
        edit(root)
        with session(root, state()):
            run_here(root)
        place = place_of(str(root))
        assert place is not None
        assert place.read("verdict", ProjectServices(root).key) == {}

    def test_it_ends_at_its_time_limit_with_a_verdict_that_says_so(
        self, root: Path, event: Event, started: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        configure(root, "verify", ("sleep", "600"))
        config = json.loads((root / CONFIG).read_text())
        config["verify_commands"] = [{"argv": ["sleep", "600"], "timeout": 0.3}]
        (root / CONFIG).write_text(json.dumps(config))
        Approvals().trust(root / CONFIG)
        event("SessionStart")
        edit(root)
        event("Stop")
        os.waitpid(started[0], 0)
        assert "time limit" in held(event("Stop"))
