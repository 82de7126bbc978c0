"""The gate outside of sessions: at the end of a turn that changed files, say once what no run has proven (SPEC 12).

`outside_sessions` in config.json: `off`, `remind`, or `verify`, which has the trusted verify commands run in the background
(`background_run`) and says what they showed when the next turn ends. A turn is held at most once for one state of the files,
and never where it goes on because of a hook already. Whatever fails here lets the turn end.
"""

import json
import os
import re
from typing import TYPE_CHECKING

from code_intel_server.cli.hook import dialects
from code_intel_server.cli.hook.sessions import Session, head_of, signing_key
from code_intel_server.common.locks import noted_by_holder, take_lock
from code_intel_server.common.own_folder import CONFIG_FILE
from code_intel_server.common.printable import printable

if TYPE_CHECKING:
    from code_intel_server.workspace.state.tree_state import TreeState, Worktree

Fields = dict[str, object]

MODES = ("off", "remind", "verify")
DEFAULT = "remind"
_CONFIG_LIMIT = 256 * 1024
_PROSE = (".md", ".rst", ".txt", ".adoc")
_STARTS_OTHERS = re.compile(r"python[\d.]*|uvx?|run|poetry|hatch|pdm|bundle|exec|npx|env|[A-Za-z_]\w*=.*")
_CONVERSATIONS = 8
_HELD_AT_MOST = 50
_TRIES = 2
_NAMED = 5


def answer_turn(event: Fields, root: str, left: list[Session]) -> None:
    """Note the files as a turn begins; where it ends, hold it once or report the state of a run."""
    mode, commands = settings(root)
    if mode == "off" or not commands or (place := place_of(root)) is None:
        return
    turns = place.read("turns")
    conversation = str(event.get("session_id") or event.get("conversation_id") or "")
    begun = {name: one for name, one in _members(turns, "begun").items() if isinstance(one, dict)}
    turn = begun.pop(conversation, {})
    name = event.get("hook_event_name")
    if name == "PostToolUse":
        if not _ran_one(event, commands):
            return
        turns["ran"] = place.look().kept()
    elif name == "Stop":
        now = place.look()
        turns["begun"] = {**dict([*begun.items()][1 - _CONVERSATIONS :]), conversation: {**now.kept(), "ended": True}}
        _at_the_end(_Stop(event, place, turns, turn, now, mode, commands, left))
    elif not turn or (turn.get("ended") and name in {"UserPromptSubmit", "SessionStart"}):
        turns["begun"] = {**dict([*begun.items()][1 - _CONVERSATIONS :]), conversation: place.look().kept()}
    else:
        return
    place.write("turns", turns)


def _ran_one(event: Fields, commands: list[str]) -> bool:
    """Whether a shell command that succeeded in the client's foreground ran a verify command, as far as its words tell."""
    given = event.get("tool_input")
    values = given if isinstance(given, dict) else {}
    if values.get("run_in_background") or event.get("tool_name") != "Bash":
        return False
    said = f" {' '.join(_words(str(values.get('command') or '')))} "
    return any(core and f" {core} " in said for core in (" ".join(_words(one)[:2]) for one in commands))


def _words(command: str) -> list[str]:
    """A command without what starts others, options and paths of programs: `python3 -m pytest -q` is `pytest`."""
    words = [word.rpartition("/")[2] for word in re.split(r"[\s;&|()'\"]+", command)[:400] if word[:1] != "-"]
    return [word for word in words if word and not _STARTS_OTHERS.fullmatch(word)]


def place_of(root: str) -> "Worktree | None":
    """Where a project is; None without git, without a commit, or where refs are in tables."""
    from code_intel_server.workspace.state.tree_state import Worktree

    top, git_dir, common, head = head_of(root)
    return Worktree(root, top, git_dir, common, head) if head else None


def settings(root: str) -> tuple[str, list[str]]:
    """`outside_sessions` and the verify commands, as far as config.json can be read."""
    try:
        with open(os.path.join(root, CONFIG_FILE), encoding="utf-8-sig") as stream:
            config = json.loads(stream.read(_CONFIG_LIMIT))
        mode = config.get("outside_sessions", DEFAULT)
        given = [one["argv"] if isinstance(one, dict) else one for one in config.get("verify_commands", ())]
        commands = [printable(" ".join(map(str, argv))) for argv in given if isinstance(argv, list)]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return "off", []
    return (mode if mode in MODES else DEFAULT), commands


class _Stop:
    """The end of a turn: `turn` is how its files were when it began, `now` how they are."""

    def __init__(
        self,
        event: Fields,
        place: "Worktree",
        turns: dict[str, object],
        turn: dict[str, object],
        now: "TreeState",
        mode: str,
        commands: list[str],
        left: list[Session],
    ) -> None:
        from code_intel_server.workspace.state.tree_state import tree_state

        self.event, self.place, self.turns, self.now = event, place, turns, now
        self.verify, self.commands, self.left = mode == "verify", commands, left
        self.verdict = place.read("verdict", key) if (key := signing_key(place.common)) else {}
        self.begun = tree_state(turn)
        self.proven = tree_state(self.verdict.get("proven"))
        self.ran = tree_state(turns.get("ran"))
        of_turn = place.changed(self.begun, now) if self.begun else set[str]()
        self.unproven = place.changed(self.proven, now) if self.proven else of_turn
        self.edited = of_turn & self.unproven

    def tested(self) -> bool:
        """Whether the client was seen to run a verify command after the last edit; a run of its own, which proves nothing."""
        return self.ran is not None and not self.edited & self.place.changed(self.ran, self.now)

    def once(self, kind: str) -> bool:
        """Whether this is the first time for these files, which it is no more."""
        kept = self.turns.get(kind)
        digests = kept if isinstance(kept, list) else []
        self.turns[kind] = [*digests, self.now.digest][-_HELD_AT_MOST:]
        return self.now.digest not in digests

    def hold(self, text: str) -> None:
        """Let the turn go on, once for these files and never where it already does because of a hook."""
        if not self.event.get("stop_hook_active") and self.once("held"):
            dialects.hold(self.event, f"{text} This is said once.")


def _at_the_end(stop: _Stop) -> None:
    last = _members(stop.verdict, "last") if stop.verify else {}
    if last.get("digest") == stop.now.digest:
        _tell_verdict(stop, last)
    elif stop.edited and stop.verify:
        _have_it_run(stop)
    elif any(not path.lower().endswith(_PROSE) for path in stop.edited) and not stop.tested():
        stop.hold(
            f"code-intel: {_files(stop)}, and no run of the verify commands has seen them since: {_commands(stop)}."
            f"{_unfinished(stop, start=' ')} Run them and mend what fails, or tell the user that they were not run; then end your"
            " turn again. If you ran them after your last change, or the user wanted to stop, just end it."
        )


def _tell_verdict(stop: _Stop, last: dict[str, object]) -> None:
    text = printable(str(last.get("text"))) if last.get("text") else ""
    if last.get("status") == "proven":
        if stop.once("said"):
            dialects.note(stop.event, f"code-intel: the files as they are now were verified. {text}")
        return
    stop.hold(
        f"code-intel: the verify commands ran on the files as they are now, outside a session. {text}\n\n"
        f"{_unfinished(stop, end=' ')}Mend it or tell the user how it stands, then end your turn again."
    )


def _have_it_run(stop: _Stop) -> None:
    running = runs_now(stop.place)
    if not running:
        tried = {str(name): int(str(count)) for name, count in _members(stop.turns, "tried").items()}
        tries = tried.pop(stop.now.digest, 0)
        stop.turns["tried"] = dict([*tried.items()][1 - _HELD_AT_MOST :]) | {stop.now.digest: tries + 1}
        if tries >= _TRIES:
            stop.hold(
                f"code-intel: {_files(stop)}; the verify commands were started {_TRIES} times in the background and no"
                f" verdict was left ({_commands(stop)}). Run them yourself or tell the user."
            )
            return
        _start(stop)
    which = "" if running.get("digest", stop.now.digest) == stop.now.digest else " on the files as they were before"
    pid = f" (process {running['pid']}, it ends by {running['until']})" if running.get("pid") else ""
    dialects.note(
        stop.event,
        f"code-intel: {_files(stop)}. The verify commands are running in the background{which}{pid}; the end of the next"
        " turn or `code-intel-server status` tells what they showed.",
    )


def _start(stop: _Stop) -> None:
    """Start a run that holds the lock from its first moment: the descriptor is handed on."""
    import sys
    from pathlib import Path

    from code_intel_server import process

    lock = locked(stop.place)
    if lock is None:
        return
    try:
        base = stop.proven or stop.begun or stop.now
        hook = [sys.executable, "-P", "-m", "code_intel_server", "hook", "--verify-files", base.head, str(lock)]
        process.detach(hook, cwd=Path(stop.place.root), descriptors=(lock,))
    finally:
        os.close(lock)


def locked(place: "Worktree") -> int | None:
    """A descriptor that holds the lock of the runs in the background; None where one has it."""
    lock = take_lock(place.file("lock"))
    if lock is not None:
        os.ftruncate(lock, 0)
    return lock


def runs_now(place: "Worktree") -> dict[str, object]:
    """What the run in the background has said of itself: pid, since, until, digest; {} where none is running."""
    noted = noted_by_holder(place.file("lock"), 4096)
    if noted is None:
        return {}
    try:
        said = json.loads(noted)
    except ValueError:
        said = None
    return said if isinstance(said, dict) and "pid" in said else {"pid": 0, "until": "its time limit", "since": "now"}


def described(root: str) -> tuple[str, dict[str, object]]:
    """The state of the gate, for people: a line, and the same as data."""
    root = os.path.realpath(root)
    mode, commands = settings(root)
    place = place_of(root)
    key = signing_key(place.common) if place else b""
    kept = place.read("verdict", key) if place and key else {}
    last, running = _members(kept, "last"), runs_now(place) if place else {}
    data: dict[str, object] = {
        "mode": mode,
        "running": running or None,
        "last": last or None,
        "proven_by": kept.get("by"),
    }
    text = f"outside sessions: {mode if commands or mode == 'off' else f'{mode}, but there are no verify commands'}"
    if running:
        text += f"; verifying now: process {running['pid']}, it ends by {running['until']}"
    elif last and mode == "verify":
        text += f"; run of {last.get('at')} on {_which_files(place, last)}: {last.get('status')}"
    elif kept.get("by"):
        text += f"; last proven by {kept['by']}"
    return text, data


def _which_files(place: "Worktree | None", last: dict[str, object]) -> str:
    try:
        same = place is not None and last.get("digest") == place.look().digest
    except OSError:
        return "files"
    return "these files" if same else "earlier files"


def _files(stop: _Stop) -> str:
    """What changed, since when."""
    from code_intel_server.workspace.state.tree_state import FILES_AT_MOST

    paths = sorted(stop.unproven)
    named = ", ".join(printable(os.path.relpath(path, _prefix(stop.place))) for path in paths[:_NAMED])
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    since = f"since {printable(str(stop.verdict.get('by')))}" if stop.proven else "in this turn"
    most = "at least " if len(stop.now.files) >= FILES_AT_MOST else ""
    return f"{most}{len(paths)} file{'s' if len(paths) != 1 else ''} changed outside a session {since}: {named}{more}"


def _prefix(place: "Worktree") -> str:
    return os.path.relpath(place.root, place.top)


def _commands(stop: _Stop) -> str:
    return "; ".join(f"`{command[:200]}`" for command in stop.commands[:_NAMED])


def _unfinished(stop: _Stop, start: str = "", end: str = "") -> str:
    if not stop.left:
        return ""
    return f"{start}Session {stop.left[0].id} waits unfinished at {stop.left[0].at_step}.{end}"


def _members(content: dict[str, object], name: str) -> dict[str, object]:
    found = content.get(name)
    return found if isinstance(found, dict) else {}
