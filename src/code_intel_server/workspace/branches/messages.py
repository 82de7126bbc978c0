"""Commit messages: the agent's words, our trailers, and the hooks through which the user may judge or change both."""

import re
from collections.abc import Sequence

from code_intel_server.errors import UserActionNeeded
from code_intel_server.process import Completed
from code_intel_server.workspace.git.child import Manner, output_of, succeeded
from code_intel_server.workspace.git.repository import Git

NAMED_FILES = 20
_SCISSORS = re.compile(r"^.*-{24} >8 -{24}.*\n?", re.MULTILINE)
"""A line behind which git takes nothing for part of a message, trailers included."""
_BLANK = re.compile(r"\n[ \t]*\n")
_MORE_THAN_ONE = re.compile(r"\n{3,}")
_TRAILER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*: \S|[ \t]\S")


def with_trailers(message: str, trailers: Sequence[tuple[str, str]]) -> str:
    """The message with the trailers in its last paragraph, as `git interpret-trailers` would add them.

    >>> print(with_trailers("Fix it\\n\\nSigned-off-by: A", [("Code-Intel-Session", "1")]), end="")
    Fix it
    <BLANKLINE>
    Signed-off-by: A
    Code-Intel-Session: 1
    """
    text = message.strip("\n")
    if not trailers:
        return text + "\n"
    paragraphs = _BLANK.split(text)
    last = paragraphs[-1].splitlines()
    joined = len(paragraphs) > 1 and bool(last) and all(_TRAILER.match(line) for line in last)
    lines = [f"{key}: {' '.join(value.split())}" for key, value in trailers]
    return text + ("\n" if joined else "\n\n") + "\n".join(lines) + "\n"


def stamped(trailers: Sequence[tuple[str, str]], session_id: str) -> list[tuple[str, str]]:
    """The trailers, with `Code-Intel-Session` among them (SPEC 6.3)."""
    missing = all(key.lower() != "code-intel-session" for key, _ in trailers)
    return [*([("Code-Intel-Session", session_id)] if missing else []), *trailers]


def with_missing(message: str, trailers: Sequence[tuple[str, str]]) -> str:
    """The message with those trailers that a hook has taken out of it, or put where git takes them for text: they are the record."""
    last = _BLANK.split(message.strip("\n"))[-1].splitlines()
    lines = {line.rstrip() for line in last} if all(map(_TRAILER.match, last)) else set()
    rows = [(key, value) for key, value in trailers if f"{key}: {' '.join(value.split())}" not in lines]
    message = _MORE_THAN_ONE.sub("\n\n", without_trailers(message, rows))
    return with_trailers(message, rows) if rows else message


def without_trailers(message: str, trailers: Sequence[tuple[str, str]]) -> str:
    """The message without those of these trailers that are in it."""
    lines = {f"{key}: {' '.join(value.split())}" for key, value in trailers}
    return "".join(line for line in message.splitlines(keepends=True) if line.strip() not in lines)


def trailer_list(paths: Sequence[str]) -> str:
    """Paths for a trailer: at most twenty, the rest counted."""
    more = f" and {len(paths) - NAMED_FILES} more" if len(paths) > NAMED_FILES else ""
    return " ".join(", ".join(paths[:NAMED_FILES]).split()) + more


def after_hooks(git: Git, message: str, *, prepare: bool, env: dict[str, str]) -> str:
    """The message after `prepare-commit-msg` (where asked for) and `commit-msg`; UserActionNeeded where one of them fails.

    The hooks find it where git puts it, in COMMIT_EDITMSG.
    """
    file = git.at.git_dir / "COMMIT_EDITMSG"
    file.write_text(_tidy(git, message), "utf-8")
    if prepare:
        run_hook(git, "prepare-commit-msg", str(file), "message", env=env)
    run_hook(git, "commit-msg", str(file), env=env)
    final = _tidy(git, file.read_text("utf-8", "replace"))
    if not final.strip():
        raise UserActionNeeded("tool_errors.git.hook_failed", hook="commit-msg", output="the commit message is empty")
    return final


def run_hook(
    git: Git, name: str, *arguments: str, env: dict[str, str] | None = None, may_fail: bool = False
) -> Completed:
    """Run one of the user's hooks through git, which knows where they are; UserActionNeeded with its output where it fails."""
    done = git.run("hook", "run", "--ignore-missing", name, "--", *arguments, manner=Manner.USER, env=env)
    if not done.ok and not may_fail:
        raise UserActionNeeded("tool_errors.git.hook_failed", hook=name, output=output_of(done))
    return done


def commit_object(git: Git, tree: str, parents: Sequence[str], message: str) -> str:
    """Store a commit, signed where the user signs, and return its id; UserActionNeeded with git's words where it cannot be signed."""
    signing = git.run("config", "--type=bool", "--get", "commit.gpgSign", manner=Manner.USER).text().strip() == "true"
    parent_words = [word for parent in parents for word in ("-p", parent)]
    words = ["-c", "i18n.commitEncoding=utf-8", "commit-tree", *(["-S"] if signing else []), *parent_words, tree]
    done = git.run(*words, manner=Manner.USER, stdin=message.encode("utf-8", "surrogateescape"))
    if signing and not done.ok:
        raise UserActionNeeded("tool_errors.git.signing_failed", output=output_of(done))
    return succeeded(done).decode("ascii").strip()


def _tidy(git: Git, message: str) -> str:
    whole = _SCISSORS.sub("", message)
    return git.must("stripspace", stdin=whole.encode("utf-8", "replace")).decode("utf-8", "replace")
