"""Which project a call works for, and what a start that is cancelled leaves (SPEC 2, 12)."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from tests.e2e.driver import git, repository
from tests.index.builders import indexed

from code_intel_server.errors import Rejected, Unavailable, UserActionNeeded
from code_intel_server.flow.payloads import digest
from code_intel_server.flow.session import SessionState
from code_intel_server.index.values import SyncReport
from code_intel_server.tools.current_project import CurrentProject
from code_intel_server.tools.exploration import semantic_search
from code_intel_server.tools.guard import Guard
from code_intel_server.tools.maintenance import cleanup_stale_branches
from code_intel_server.tools.services import ProjectServices, made_once
from code_intel_server.tools.session.archives import KEPT_ARCHIVES
from code_intel_server.tools.shaping import DEFAULT_CHARACTERS

QUICK = {"quick": True, "no_doc": True}
FILES = {"app.py": "def main():\n    return 1\n", ".code-intel/config.json": json.dumps({"sync_on_start": False})}


@pytest.fixture
def current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CurrentProject]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("home", "other"):
        repository(tmp_path / name, FILES)
    made = CurrentProject(tmp_path / "home")
    yield made
    made.services.close()


def test_a_dot_is_the_project_the_server_was_started_for(current: CurrentProject, tmp_path: Path) -> None:
    current.take_up("../other")
    assert current.services.root == tmp_path / "other"
    current.take_up(".")
    assert current.services.root == tmp_path / "home"


def test_while_a_session_is_active_a_dot_is_its_project_and_another_is_refused(
    current: CurrentProject, tmp_path: Path
) -> None:
    sessions = current.take_up("../other")
    started = sessions.start("Change main", "MODIFY", QUICK)
    assert current.take_up(".") is sessions
    assert current.take_up(".").status()["session_id"] == started["session_id"]
    with pytest.raises(Rejected) as refused:
        current.take_up(str(tmp_path / "home"))
    assert refused.value.key == "tool_errors.start_session.session_active"
    sessions.start("", "MODIFY", {"clean": True})
    assert current.take_up(".") is not sessions


def test_no_project_is_left_in_the_middle_of_a_call(current: CurrentProject, tmp_path: Path) -> None:
    before = current.sessions
    with current.services.mutex:
        other = threading.Thread(target=current.take_up, args=("../other",))
        other.start()
        other.join(0.2)
        assert other.is_alive()
        assert current.sessions is before
    other.join(10)
    assert current.services.root == tmp_path / "other"
    with pytest.raises(Unavailable) as refused:
        before.start("Change main", "MODIFY", QUICK)
    assert refused.value.key == "tool_errors.generic.project_left"


def test_the_project_that_was_asked_for_is_handed_out_though_another_call_takes_up_another(
    current: CurrentProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, others = current.sessions, ["../other"]

    def root(services: ProjectServices) -> Path:
        while others:  # once, between the look at the project and the answer
            current.take_up(others.pop())
        return services.project.root

    monkeypatch.setattr(ProjectServices, "root", property(root))
    assert current.take_up(".") is home
    assert current.services.root == tmp_path / "other"


def test_what_was_repaired_is_no_reason_for_a_complete_answer_to_be_incomplete(current: CurrentProject) -> None:
    cache = current.services.project.folder / "cache"
    cache.mkdir(parents=True)
    (cache / "index.sqlite3").write_bytes(b"no database" * 1000)
    current.services.index.sync()
    answer = semantic_search(current, "main", 3, ".", None, "auto")
    assert answer["complete"] and answer["results"]
    assert "incomplete_because" not in answer
    assert "set aside" in json.dumps(answer["notes"])


def test_a_rebuild_that_could_not_be_written_does_not_say_that_it_is_done(
    current: CurrentProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = current.services.index
    stopped = SyncReport(notes=("The index could not be written: database or disk is full",), cancelled=True)
    monkeypatch.setattr(index, "sync", lambda **_: stopped)
    with pytest.raises(Unavailable) as refused:
        current.sessions.start("", "MODIFY", {"rebuild": True})
    assert refused.value.key == "tool_errors.sync_index.rebuild_unfinished"
    assert "disk is full" in str(refused.value.params)
    started = current.sessions.start("Change main", "MODIFY", {**QUICK, "rebuild": True})
    assert started["phase"] == "QUERY_FRAME"
    assert "disk is full" in str(started["warnings"])
    cleaned = current.sessions.start("", "MODIFY", {"clean": True, "rebuild": True})
    assert "disk is full" in str(cleaned["warnings"])
    assert "Index rebuilt" not in str(cleaned["message"])


def test_a_clean_that_rebuilds_the_index_too_tells_of_both(current: CurrentProject) -> None:
    current.sessions.start("Change main", "MODIFY", QUICK)
    answer = current.sessions.start("", "MODIFY", {"clean": True, "rebuild": True})
    assert (answer["phase"], current.sessions.active) == ("SESSION_ABANDONED", None)
    assert str(answer["message"]).startswith("Cleaned: ")
    assert f"Index rebuilt: {indexed(current.services.index)} files" in str(answer["message"])
    assert "rebuilt" not in str(current.sessions.start("Change main", "MODIFY", {**QUICK, "rebuild": True}))


def test_a_rebuild_that_is_cancelled_leaves_no_session(current: CurrentProject) -> None:
    def cancelled(_done: float, _total: float, _message: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        current.sessions.start("Change main", "MODIFY", {**QUICK, "rebuild": True}, cancelled)
    assert current.sessions.active is None
    assert current.services.store.usable() == ()
    assert current.services.lock.owner() is None
    answer = current.sessions.start("Change main", "MODIFY", {**QUICK, "rebuild": True})
    assert answer["phase"] == "QUERY_FRAME"


def test_a_compaction_that_is_told_during_a_submit_is_known_to_the_next_one(
    current: CurrentProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = current.sessions.start("Where is main?", "INVESTIGATE", {})
    marker = current.services.project.sessions / f"{started['session_id']}.compacted"
    save = current.services.store.save

    def told_meanwhile(session_id: str, body: Mapping[str, object]) -> int:
        marker.touch()
        return save(session_id, body)

    with monkeypatch.context() as patched:
        patched.setattr(current.services.store, "save", told_meanwhile)
        first = current.sessions.submit({"summary": "None.", "tools_used": [], "documents_reviewed": []})
    assert first["success"] and "phase_summaries" not in first
    assert marker.exists()
    second = current.sessions.submit({"summary": "Framed.", "tools_used": [], "action_type": "find"})
    assert second["phase_summaries"]
    assert not marker.exists()


def test_two_first_calls_at_once_get_the_same_part(tmp_path: Path) -> None:
    inside, both = [], threading.Event()

    class Slow(ProjectServices):
        @made_once
        def part(self) -> object:
            """Takes its time."""
            inside.append(1)
            both.wait(0.2)  # for as long as a second caller would need to come in too
            return object()

    services, parts = Slow(tmp_path), []
    callers = [threading.Thread(target=lambda: parts.append(services.part)) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(10)
    assert len(inside) == 1
    assert parts[0] is parts[1] is services.part


def test_links_that_lead_nowhere_do_not_keep_the_projects_texts_from_being_looked_at(
    current: CurrentProject, tmp_path: Path
) -> None:
    folder = tmp_path / "home/.code-intel"
    (folder / "loop").symlink_to("loop")
    (folder / "gone.md").symlink_to("nowhere.md")
    before = current.services.text_digests()
    (folder / "config.json").write_text('{"sync_on_start": false, "finish": "branch"}')
    assert current.services.text_digests() != before


def test_what_is_excluded_from_lookups_and_only_that_is_excluded_from_the_index(current: CurrentProject) -> None:
    """Found by a review: the index took `*` for any number of folders, as no lookup does."""
    settings = {"sync_on_start": False, "exclude_patterns": ["src/*.py"], "chroma": {"mode": "off"}}
    home = current.services.root
    for name, text in {"src/a.py": "def first(): pass\n", "src/deep/b.py": "def second(): pass\n"}.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    (home / ".code-intel" / "config.json").write_text(json.dumps(settings))
    current.services.index.sync()
    assert current.services.explorer.search_text("def second").total == 1
    shown = {hit.path for word in ("first", "second") for hit in current.services.index.search(word).hits}
    assert "src/deep/b.py" in shown
    assert "src/a.py" not in shown


def test_no_agreement_however_long_crowds_out_what_was_found(current: CurrentProject) -> None:
    """The files may have come with the repository, or a query may have been a page."""
    folder = current.services.project.folder / "agreements"
    folder.mkdir()
    names = "".join(f"- `{'x' * 900}{number}`\n" for number in range(40))
    for number in range(8):
        text = f"# main {'main ' * 4000}{number}\n\n## Symbols\n\n- `main`\n{names}"
        (folder / f"{number}.md").write_text(text, encoding="utf-8")
    answer = semantic_search(current, "main main", 10, ".", None, "auto")
    assert answer["results"] and answer["agreements"]
    assert len(json.dumps(answer)) < DEFAULT_CHARACTERS


def test_old_archives_are_removed_through_no_link(current: CurrentProject, tmp_path: Path) -> None:
    """A repository, or an agent meanwhile, could aim one at any folder of the user's that holds JSON."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for number in range(KEPT_ARCHIVES + 5):
        (theirs / f"2020010{number % 9}_{number:06}.json").write_text("{}")
    archived = current.services.project.logs / "sessions"
    current.sessions.start("Change main", "MODIFY", QUICK)
    shutil.rmtree(archived, ignore_errors=True)
    archived.symlink_to(theirs)
    with pytest.raises(UserActionNeeded, match="state_folder_unsafe"):
        current.sessions.start("", "MODIFY", {"clean": True})
    assert len([*theirs.iterdir()]) == KEPT_ARCHIVES + 5
    archived.unlink()
    current.sessions.start("", "MODIFY", {"clean": True})
    archived.rename(tmp_path / "kept")
    archived.symlink_to(theirs)
    with pytest.raises(UserActionNeeded, match="state_folder_unsafe"):
        current.sessions.start("Change main", "MODIFY", QUICK)


def test_only_archives_are_removed_when_they_are_too_many(current: CurrentProject) -> None:
    archived = current.services.project.logs / "sessions"
    archived.mkdir(parents=True)
    for number in range(KEPT_ARCHIVES + 5):
        (archived / f"20200101_{number:06}.json").write_text("{}")
    (archived / "0 a note.json").write_text("{}")
    current.sessions.start("Change main", "MODIFY", QUICK)
    current.sessions.start("", "MODIFY", {"clean": True})
    names = {path.stem for path in archived.iterdir()}
    assert len(names) == KEPT_ARCHIVES + 1
    assert "0 a note" in names and "20200101_000000" not in names


@pytest.mark.parametrize("name", ["", "sessions"])
def test_a_file_where_our_folder_has_to_be_is_said(current: CurrentProject, name: str) -> None:
    shutil.rmtree(current.services.project.folder)
    if name:
        current.services.project.folder.mkdir()
    (current.services.project.folder / name).write_text("a file")
    start = Guard(current).call("start_session", lambda: current.sessions.start("Change main", "MODIFY", QUICK))
    assert start.fields["error"] == "state_unavailable"
    assert "Not a directory" in str(start.fields["message"])


def refreshed() -> None:
    """Until no refresh of the symbols is under way."""
    for thread in threading.enumerate():
        if thread.name == "symbol-refresh":
            assert thread.daemon
            thread.join(60)


def test_a_refresh_of_the_symbols_ends_with_the_desk(current: CurrentProject) -> None:
    current.services.close()
    current.services.refresh_symbols()
    refreshed()
    assert current.services.explorer.cache.store.empty


def test_lookups_outside_a_session_leave_no_trace_in_git(current: CurrentProject, tmp_path: Path) -> None:
    """Symbol cache and index are written at the first lookup, before any session has prepared the folder."""
    root = repository(tmp_path / "bare", {"app.py": "def main():\n    return 1\n"})
    sessions = current.take_up(str(root))
    assert current.services.explorer.find_definitions("main").total == 1
    assert git(root, "status", "--porcelain") == ""
    current.services.index.sync()
    assert (root / ".code-intel" / "cache").is_dir()
    assert git(root, "status", "--porcelain") == ""
    assert "No .code-intel folder" in str(sessions.start("Change it", "MODIFY", QUICK)["warnings"])


class _Overtaken:
    """A mutex that another call is quicker to take."""

    def __init__(self, mutex: Any, other: Callable[[], object]) -> None:
        self._mutex = mutex
        self._others = [other]

    def __enter__(self) -> None:
        if self._others:
            self._others.pop()()
        self._mutex.acquire()

    def __exit__(self, *_: object) -> None:
        self._mutex.release()


def test_a_clean_up_that_was_overtaken_removes_nothing_of_the_other_project(
    current: CurrentProject, tmp_path: Path
) -> None:
    other = CurrentProject(tmp_path / "other")
    left = other.sessions.start("Change main", "MODIFY", QUICK)["session_id"]
    other.services.close()
    services = current.services
    really = services.mutex

    def take_up_the_other() -> None:
        services.mutex = really
        current.take_up("../other")

    setattr(services, "mutex", _Overtaken(really, take_up_the_other))  # noqa: B010 - another type
    with pytest.raises(Unavailable):
        cleanup_stale_branches(current, dry_run=False)
    assert [loaded.session_id for loaded in current.services.store.usable()] == [left]


def test_after_the_branches_were_cleaned_up_the_session_says_what_is_next_without_them(current: CurrentProject) -> None:
    git(current.services.root, "branch", "llm_task_20200101_000000")
    started = current.sessions.start("Change main", "MODIFY", {})
    assert "see branches" in str(started["instruction"])
    dry = cleanup_stale_branches(current, dry_run=True)
    assert "see branches" in str(dry["instruction"])
    cleaned = cleanup_stale_branches(current, dry_run=False)
    assert (cleaned["branches"], cleaned["phase"]) == (["llm_task_20200101_000000"], "BRANCH_INTERVENTION")
    assert "are gone" in str(cleaned["instruction"])
    assert current.sessions.status()["instruction"] == cleaned["instruction"]
    (loaded,) = current.services.store.usable()
    assert SessionState.from_checkpoint(loaded.body).last_submit == current.sessions.active.state.last_submit  # type: ignore[union-attr]
    assert "are gone" in str(current.sessions.active.state.last_submit.response)  # type: ignore[union-attr]
    after = current.sessions.submit({"choice": "delete", "summary": "Gone.", "tools_used": [], "compaction_count": 0})
    assert (after["success"], after["phase"]) == (True, "DOCUMENT_RESEARCH")


def test_outside_a_session_a_clean_up_tells_of_no_next_step(current: CurrentProject) -> None:
    git(current.services.root, "branch", "llm_task_20200101_000000")
    cleaned = cleanup_stale_branches(current, dry_run=False)
    assert (cleaned["branches"], "instruction" in cleaned) == (["llm_task_20200101_000000"], False)


def test_a_project_whose_git_cannot_be_read_can_be_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("home", "other"):
        repository(tmp_path / name, FILES)
    (tmp_path / "home" / ".git" / "config").write_text("[core\n")
    current = CurrentProject(tmp_path / "home")
    current.take_up("../other")
    assert current.services.root == tmp_path / "other"
    current.services.check_open()
    current.services.close()


def test_what_of_a_project_cannot_be_closed_does_not_keep_the_rest_open(
    current: CurrentProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = current.services
    left.lock.acquire()
    ended: list[str] = []
    monkeypatch.setattr(left.explorer, "close", lambda: ended.append("explorer"))

    def refuse() -> None:
        raise OSError("a disk that fails")

    monkeypatch.setattr(left.index, "close", refuse)
    with pytest.raises(OSError, match="fails"):
        current.take_up("../other")
    assert (ended, left.lock.owner()) == (["explorer"], None)
    assert current.take_up("../other").services.root == tmp_path / "other"
    current.services.check_open()


def test_a_submit_that_was_overtaken_takes_up_no_session_of_the_project_left(
    current: CurrentProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data: dict[str, JsonValue] = {"summary": "Done.", "tools_used": []}
    before, services = current.sessions, current.services
    session_id = before.start("Change main", "MODIFY", QUICK)["session_id"]
    before.active = None  # as a kill between the last answer and the end leaves it
    services.lock.release()
    monkeypatch.setattr(before._ends, "finals", lambda: [{"session_id": session_id, "digest": digest(data)}])
    current.take_up("../other")
    with pytest.raises(Unavailable):
        before.submit(data)
    assert (before.active, services.lock.owner()) == (None, None)


def test_a_start_beside_a_submit_that_takes_long_is_refused_at_once(current: CurrentProject) -> None:
    current.sessions.start("Change main", "MODIFY", QUICK)
    refused: list[str] = []

    def begin(repo_path: str) -> None:
        try:
            current.take_up(repo_path).start("Change main", "MODIFY", QUICK)
        except Rejected as error:
            refused.append(error.key)

    with current.services.mutex:  # as a verification has it for minutes
        for place in (".", "../other"):
            late = threading.Thread(target=begin, args=(place,), daemon=True)
            late.start()
            late.join(20)
    assert refused == ["tool_errors.start_session.session_active"] * 2


@pytest.mark.parametrize("dropping", [False, True])
def test_the_ledger_goes_on_with_a_session_that_could_not_be_ended(
    current: CurrentProject, monkeypatch: pytest.MonkeyPatch, *, dropping: bool
) -> None:
    sessions = current.sessions
    session_id = str(sessions.start("Change main", "MODIFY", QUICK)["session_id"])
    active = sessions.active
    assert active is not None

    def failing(*_: object) -> None:
        raise Unavailable("tool_errors.git.failed")

    monkeypatch.setattr(sessions._ends, "drop" if dropping else "clean", failing)
    monkeypatch.setattr("code_intel_server.tools.session.sessions.to_restore", lambda store, *_: store.load(session_id))
    with pytest.raises(Unavailable):
        sessions.status(discard_active=True) if dropping else sessions.start("", "MODIFY", {"clean": True})
    assert sessions.active is not None
    active.ledger.add("search_text", "EXPLORATION", "ok")
    assert [call.tool for call in current.services.ledger(session_id).entries()][-1:] == ["search_text"]


def test_a_lookup_that_ends_behind_its_session_leaves_no_ledger(current: CurrentProject) -> None:
    current.sessions.start("Change main", "MODIFY", QUICK)
    begun, go_on = threading.Event(), threading.Event()

    def look() -> dict[str, JsonValue]:
        begun.set()
        go_on.wait(20)
        return {"results": []}

    looking = threading.Thread(target=Guard(current).call, args=("search_text", look))
    looking.start()
    assert begun.wait(20)
    current.sessions.start("", "MODIFY", {"clean": True})
    go_on.set()
    looking.join(20)
    assert list((current.services.project.logs / "ledger").glob("*")) == []


@pytest.mark.parametrize(("replaced", "error"), [(True, "program_replaced"), (False, "internal_error")])
def test_a_program_that_was_replaced_under_its_server_is_said_to_be_so(
    current: CurrentProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, replaced: bool, error: str
) -> None:
    """Found by a user: after an upgrade with a client open the advice was to try once more."""
    if replaced:
        monkeypatch.setattr("code_intel_server.tools.guard.__file__", str(tmp_path / "gone.py"))

    def work() -> dict[str, object]:
        from code_intel_server import moved_elsewhere  # type: ignore[attr-defined]

        return {"moved": moved_elsewhere}

    answer = Guard(current).call("query", work).fields  # type: ignore[arg-type]
    assert answer["error"] == error and ("start it again" in str(answer)) is replaced
