"""`hook`: what clients ask before a write, at the start of a conversation and at the end of a turn (SPEC 12).

It must answer in under 100 ms, so it imports next to nothing and reads the state where it lies (`sessions`). The
judgement itself is `flow.checks.writable`, the same as the server's. The tree check of the server stays the law; this is the early
warning. A session whose server was killed is one all the same: what it may not write is refused, with both ways on.

Clients let a hook that fails (exit 1, a traceback) pass. So its own failure during a session is a refusal with the reason
(exit 2), and without a session it is silence.
"""

import json
import os
import re
import sys

from code_intel_server.cli.hook import dialects
from code_intel_server.cli.hook.sessions import (
    Session,
    interrupted,
    is_here,
    key_folder,
    led,
    live_session,
    lock_folder,
    nearest_project,
    session_root,
    worktrees_of,
)
from code_intel_server.common.own_folder import CALLER_NOTE, FOLDER, WORKTREES, home_of
from code_intel_server.flow.checks.writable import Why, why_writable_in
from code_intel_server.workspace.files import read_regular

ALLOW_WRITES = "--allow-writes"
"""The option by which Claude Code need not ask its user about what a session may write (`init --unattended`)."""

_READ_LIMIT = 16_000_000
_PATCH_FILE = r"(?m)^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.*\S|.)"
_READERS = frozenset({"cat", "bat", "head", "tail", "nl", "less", "more", "grep", "egrep", "fgrep", "rg"})
_SHOWS_NO_LINE = re.compile(r"-\w*[qclL]\w*|--(?:quiet|silent|count|files.*)")
_COMMAND_LIMIT = 4_000
_STARTS = "start_session"
_TURNS = frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"})
_BACKGROUND = "--verify-files"
"""By which the hook starts itself for a run of the verify commands in the background (`outside_sessions`)."""
_ASKED_ABOUT = frozenset({"", ".git", ".github", ".claude", ".codex", ".agents", ".mcp.json", ".code-intel"})
"""Outside the project ('') and in what decides what a client may do nothing is written without the user's word."""

_WAYS_ON = (
    "Ask the user: go on with it (get_session_status restores it), or give it up "
    "(`code-intel-server abandon --yes`; its work is kept in the trash)."
)
_UNTIL_THEN = " Until one of the two has happened, files that it has not made writable are not written."

Fields = dict[str, object]


def main(arguments: list[str]) -> int:
    """Answer one hook event from standard input; 0 lets pass, 2 refuses with the reason on standard error."""
    if arguments[:1] == [_BACKGROUND]:
        from code_intel_server.cli.hook.background_run import main as verify

        return verify(os.getcwd(), arguments[1], int(arguments[2]))
    data = sys.stdin.buffer.read(_READ_LIMIT)
    try:
        event: Fields = json.loads(data)
        event = dialects.understood(event, _client(arguments))
    except (ValueError, AttributeError, TypeError, RecursionError):
        event = dialects.understood(
            {"hook_event_name": dialects.event_name(data), "tool_name": "Write"}, _client(arguments)
        )
    root = nearest_project(str(event["cwd"]))
    if not root:
        return 0
    root = _place_of(event, root)
    if from_user := dialects.is_from_user(event):
        from code_intel_server.cli.hook import user_prompt

        user_prompt.note_prompt(event, root)
    allow = ALLOW_WRITES in arguments
    if str(event.get("tool_name")).endswith(_STARTS):
        _note_caller(event, root, allow=allow)
        return 0
    session_id = live_session(root)
    left = [] if session_id else [*interrupted(root), *_left_in_worktrees(root)]
    if not session_id and event["hook_event_name"] in _TURNS:
        _outside(event, root, left)
    if from_user or (not session_id and not left):
        return 0  # nobody's words are ever held up
    try:
        return after_a_kill(event, root, left) if left else answer_event(event, led(root, session_id), allow=allow)
    except Exception as error:  # noqa: BLE001 - clients let exit 1 pass: whatever it is must become a refusal
        said = f"{type(error).__name__}: {error}"
        way_on = _WAYS_ON if left else "Call get_session_status, then try again."
        return dialects.refuse_tool(event, f"code-intel: this cannot be judged ({said}). {way_on}")


def _place_of(event: Fields, root: str) -> str:
    """The root that an event is about, where sessions of the project have worktrees; whatever fails, the project's own."""
    try:
        cwd = str(event["cwd"])
        named = [os.path.realpath(os.path.join(cwd, path)) for path in targets(event)]
    except ValueError:
        named = []
    writes = event["hook_event_name"] == "PreToolUse"
    return session_root(root, dialects.conversation(event), named, writes=writes)


def _left_in_worktrees(root: str) -> list[Session]:
    """The interrupted sessions that have a worktree to themselves."""
    return [one for place in worktrees_of(root).values() if not live_session(place) for one in interrupted(place)]


def _outside(event: Fields, root: str, left: list[Session]) -> None:
    """Ask the gate outside of sessions; whatever fails in it lets the turn go its way."""
    try:
        from code_intel_server.cli.hook.outside_sessions import answer_turn as of_turn

        of_turn(event, root, left)
    except Exception:  # noqa: BLE001 - a reminder that cannot be made holds nobody up
        return


def _client(arguments: list[str]) -> str:
    """Which client's dialect is spoken; '' for that of Claude Code and Codex."""
    return arguments[arguments.index("--client") + 1] if "--client" in arguments[:-1] else ""


def answer_event(event: Fields, session: Session, *, allow: bool) -> int:
    """Judge one event of a live session."""
    name = event.get("hook_event_name")
    _note_reads(event, session)
    if name == "PreToolUse":
        return _before_write(event, session, allow=allow)
    if name == "SessionStart":
        return _after_start(event, session)
    if name == "Stop":
        return _before_stop(event, session)
    return 0


def after_a_kill(event: Fields, root: str, left: list[Session]) -> int:
    """Judge one event where sessions were interrupted: a conversation is informed of the last one, writes are held to it."""
    name = event.get("hook_event_name")
    guarding = next((one for one in left if one.root == root and is_here(one)), None)
    if name == "SessionStart":
        _tell_of(event, left[0], guarded=guarding is not None)
    elif name == "PreToolUse" and guarding is not None:
        return _before_write(event, guarding, allow=False)
    return 0


def _note_reads(event: Fields, session: Session) -> None:
    """Leave a note of the files that the client itself shows the agent: it need not look at them again.

    A tool that has read them says so, or a shell command that begins with a reader's name; a tool that failed says nothing.
    """
    response = event.get("tool_response")
    if isinstance(response, dict) and (response.get("is_error") or response.get("isError")):
        return
    given = event.get("tool_input")
    values = given if isinstance(given, dict) else {}
    named: list[str] = []
    if event.get("hook_event_name") == "PostToolUse" and event.get("tool_name") in dialects.READERS:
        if event["tool_name"] != "Grep" or values.get("output_mode") == "content":  # else it lists files
            named = dialects.named_paths(values)
    elif event.get("tool_name") == "Bash":
        named = _read_by_command(str(values.get("command") or "")[:_COMMAND_LIMIT])
    cwd = str(event.get("cwd") or session.root)
    paths = [
        path
        for one in named
        if (path := path_in_project(session.root, cwd, one)) and os.path.isfile(f"{session.root}/{path}")
    ]
    if paths and (note := _note_of(session, "reads")):
        try:
            descriptor = os.open(note, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
            with open(descriptor, "a", encoding="utf-8") as stream:
                stream.writelines(f"{json.dumps(path)}\n" for path in paths)
        except OSError:
            return


def _read_by_command(command: str) -> list[str]:
    """The words that a shell's reading commands are given; none behind a `cd`, nor where quotes do not close."""
    import shlex

    lines = re.sub(r"(?m)(?:^|\s)#.*", "", command.replace("\\\n", " ")).replace("\n", ";")
    lexer = shlex.shlex(lines, posix=True, punctuation_chars=True)
    lexer.commenters = ""
    lexer.whitespace_split = True
    parts: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word.strip("<>&") == "" and word != "&&":
                next(lexer, None)  # where it goes to, or comes from
            elif not word.strip(";|&()"):
                parts.append([])
            else:
                parts[-1].append(word)
    except ValueError:
        pass  # what came before the quote that is not closed
    named: list[str] = []
    for program, *words in filter(None, parts):
        if program == "cd":
            break
        if program in _READERS or (program == "sed" and words[:1] == ["-n"]):
            finds = program in {"grep", "egrep", "fgrep", "rg"}
            named += [] if finds and any(map(_SHOWS_NO_LINE.fullmatch, words)) else words
    return named


def targets(event: Fields) -> list[str]:
    """The paths a tool is about to write."""
    given = event.get("tool_input")
    values = given if isinstance(given, dict) else {"input": given} if isinstance(given, str) else {}
    if event.get("tool_name") == "Bash":  # Codex models without the tool call apply_patch in a shell
        command = str(values.get("command") or values.get("cmd") or "")
        return re.findall(_PATCH_FILE, command) if "apply_patch" in command else []
    tool, patch = event.get("tool_name"), dialects.patch_text(values)
    if tool not in dialects.WRITERS | dialects.PATCHERS:
        return []
    if tool in dialects.PATCHERS or patch is not None:
        return re.findall(_PATCH_FILE, patch or "")
    if not (named := dialects.named_paths(values)):
        raise ValueError(f"{tool} names no path")
    return named


def path_in_project(root: str, cwd: str, path: str) -> str:
    """`path` relative to the project, links resolved; '' where it lies outside."""
    real = os.path.realpath(os.path.join(cwd, path))
    return os.path.relpath(real, root) if real != root and os.path.commonpath([root, real]) == root else ""


def _before_write(event: Fields, session: Session, *, allow: bool) -> int:
    cwd = str(event.get("cwd") or session.root)
    paths = [path_in_project(session.root, cwd, path) for path in targets(event)]
    if home := home_of(session.root):
        for named in targets(event):
            path = path_in_project(home, cwd, named)
            if path and not path.startswith(f"{FOLDER}/{WORKTREES}/"):
                return dialects.refuse_tool(event, _wrong_place(session, path))
    for path in paths:
        if path and path.split(os.sep)[0] != ".git" and (reason := write_refusal(session, path)):
            return dialects.refuse_tool(event, reason)
    if allow and paths and not any(path.split(os.sep)[0].casefold() in _ASKED_ABOUT for path in paths):
        decision = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
        decision["permissionDecisionReason"] = f"writable in session {session.id}"
        print(json.dumps({"hookSpecificOutput": decision}))
    return 0


def _wrong_place(session: Session, path: str) -> str:
    return (
        f"code-intel: {path} of the user's own folder is not written: session {session.id} has a worktree to itself. "
        f"Write {session.root}/{path}."
    )


def write_refusal(session: Session, path: str) -> str:
    """Why a file of the project may not be written now; '' where it may."""
    why = _why(session, path, exists=True)
    if why is Why.UNEXPLORED:  # only then does it matter when the file was made
        why = _why(session, path, exists=_existed(os.path.join(session.root, path), session))
    if why.allowed:
        return ""
    from code_intel_server.flow.phases import READY_COMPLETE, READY_IMPL

    only = f"are written in steps {READY_IMPL.step} and {READY_COMPLETE.step} only"
    if not session.live:
        early = f"files {only}" if why is Why.EARLY else "it has not explored this file"
        which = f'session {session.id} ("{session.query}") was interrupted in {session.at_step} ({session.phase})'
        return f"code-intel: {path} may not be written: {which}, and {early}. {_WAYS_ON}"
    if why is Why.EARLY:
        return (
            f"code-intel: {path} may not be written in step {session.step} ({session.phase}). Files {only}. "
            "Go on with submit_phase; get_session_status tells the instruction."
        )
    return (
        f"code-intel: {path} was not explored in this session. Look at it first, then make it writable with "
        f'add_explored_files(["{path}"], reason), and write again.'
    )


def _why(session: Session, path: str, *, exists: bool) -> Why:
    seen = session.unseen & _reads(session) if session.unseen else set()
    if not exists:  # a new file may lie also beside one that nothing has shown
        seen |= session.unseen - {path}
    explored = session.explored | seen
    return why_writable_in(session.phase, session.substep, path, explored, session.added, exists=exists)


def _reads(session: Session) -> set[str]:
    """What the client has read by itself, as `_note_reads` left it."""
    try:
        return {str(json.loads(line)) for line in read_regular(_note_of(session, "reads"), _READ_LIMIT).splitlines()}
    except (OSError, ValueError):
        return set()


def _existed(path: str, session: Session) -> bool:
    """Whether a file was there when the session began: as good as its times tell, for what is written since is new."""
    from datetime import datetime

    began = datetime.fromisoformat(session.started_at).timestamp()
    try:
        status = os.lstat(path)
        # The key is older than any session: where it seems newer the folder is a copy, in which all files are.
        copied = _made(os.lstat(os.path.join(key_folder(session.root), "key"))) > began
    except OSError:
        return False
    return (int(status.st_mtime) if copied else _made(status)) <= began


def _made(status: os.stat_result) -> int:
    """When a file was made: a session begins in a whole second, in which its own worktree may have been checked out."""
    return int(getattr(status, "st_birthtime", status.st_ctime))


def _note_caller(event: Fields, root: str, *, allow: bool) -> None:
    """Leave a note for start_session, which is about to be called: this client's hooks run, and may it write files?"""
    folder = lock_folder(root)
    known = {
        "mode": str(event.get("permission_mode", "")),
        "attended": os.environ.get("CLAUDE_CODE_SESSION_ATTENDED") != "0",
        "writes": allow,
        "conversation": dialects.conversation(event),
    }
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(os.path.join(folder, CALLER_NOTE), flags, 0o600), "w", encoding="utf-8") as stream:
            json.dump(known, stream)
    except OSError:
        return


def _mark(session: Session) -> None:
    """Leave the note of a compaction for the server."""
    marker = _note_of(session, "compacted")
    if marker and not os.path.islink(marker):
        os.close(os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644))


def _note_of(session: Session, kind: str) -> str:
    """Where a note for the server lies; '' behind a link, since the agent may have put one there, and clients may confine it and not us."""
    folder = session.root
    for name in (".code-intel", "sessions"):
        folder = os.path.join(folder, name)
        if os.path.islink(folder):
            return ""
    return os.path.join(folder, f"{session.id}.{kind}")


def _after_start(event: Fields, session: Session) -> int:
    """Hand an agent that has forgotten where the session is; standard output enters its context.

    One that has just started leads none: it is another client's.
    """
    if event.get("source") == "startup":
        return 0
    if event.get("source") in {"compact", "clear"}:
        _mark(session)
    dialects.tell(
        event,
        f"A code-intel session is active in this project: {session.id}, {session.at_step}, phase {session.phase}"
        f"{' (' + str(session.substep) + ')' if session.substep else ''}.\n"
        f"{session.instruction}\n"
        f"{_where(session)}"
        "Call get_session_status for the expected payload and the summaries of the phases so far; then go on with submit_phase "
        "until phase is SESSION_COMPLETE.",
    )
    return 0


def _where(session: Session) -> str:
    """Where a session works that has a worktree to itself; '' for any other."""
    own = f"It has a git worktree to itself: {session.root}. Read, edit and run commands there, by absolute path.\n"
    return own if home_of(session.root) else ""


def _tell_of(event: Fields, session: Session, *, guarded: bool) -> None:
    """Tell a conversation that begins or goes on of a session that its server's end interrupted, and both ways on."""
    dialects.tell(
        event,
        f"A code-intel session was interrupted in this project: {session.id}, {session.at_step}, phase {session.phase}: "
        f'"{session.query}". Nothing of it is lost.\n'
        f"{_where(session)}"
        "To go on with it: call get_session_status, which restores it and tells what is next. If the user wants something else, "
        "tell them once that it waits, and that `code-intel-server abandon --yes` gives it up (its work is kept in the trash)."
        f"{_UNTIL_THEN if guarded else ''}",
    )


def _before_stop(event: Fields, session: Session) -> int:
    """Remind once: a turn that goes on because of this hook is not held again."""
    if event.get("stop_hook_active"):
        return 0
    reason = (
        f"code-intel: session {session.id} is in step {session.step} ({session.phase}), not complete. Go on: get_session_status, do what "
        "it says, submit_phase. If you are waiting for the user's answer, or the user wanted to stop, end your turn again."
    )
    dialects.hold(event, reason)
    return 0
