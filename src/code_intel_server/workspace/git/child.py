"""A git child process: a scrubbed environment, three manners of running, and typed errors for how it can fail.

READ answers questions about refs and objects of a repository that may be hostile: no hook, no fsmonitor, no transport,
no optional lock. It never looks at the working tree; whoever must do that (status, the tree hash) goes through
`isolated_directory`, where not even the repository's configuration is read. OWN writes what is ours alone (archive refs,
snapshot objects): hooks off, everything flushed to disk. USER does what the user would have done by hand (a commit, a
checkout, a merge): hooks, filters, merge drivers and signing run as the user set them (SPEC 6.7).
"""

import os
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path

from code_intel_server import process
from code_intel_server.errors import Unavailable
from code_intel_server.process import MEBIBYTE, Completed

READ_SECONDS = 60.0
USER_SECONDS = 600.0
MAX_GIT_OUTPUT = 64 * MEBIBYTE
MAX_GIT_LISTING = 256 * MEBIBYTE
"""Of a command that lists files: the index of a million, with ids and stages, is some 70 MiB."""

_LISTINGS = frozenset({"git ls-files", "git ls-tree"})

_IDENTITY = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")


class Manner(Enum):
    """How a git command is run; see above."""

    READ = "read"
    OWN = "own"
    USER = "user"


def environment_config(settings: Mapping[str, str]) -> dict[str, str]:
    """Configuration as the variables through which git takes it for one command."""
    rows = {
        f"GIT_CONFIG_{what}_{n}": text
        for n, row in enumerate(settings.items())
        for what, text in zip(("KEY", "VALUE"), row, strict=True)
    }
    return {"GIT_CONFIG_COUNT": str(len(settings)), **rows} if settings else {}


def environment(manner: Manner, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a git child: nothing inherited that tells git what to run or where to look."""
    settings = {
        # What was reviewed is what is merged, and onto what it was made from, whatever stands in for a commit or its parents.
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": f"{os.devnull}/none",  # for one that is there git prints a hint before anything else
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": ":",
        "GIT_SEQUENCE_EDITOR": ":",
        "GIT_PAGER": "cat",
        "GIT_ASKPASS": "true",
    }
    if manner is Manner.USER:
        settings |= {name: os.environ[name] for name in _IDENTITY if name in os.environ}
    else:
        settings |= {"GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    if manner is Manner.READ:
        settings["GIT_OPTIONAL_LOCKS"] = "0"
    return process.clean_environment({**settings, **(extra or {})})


def checked_run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes | None = None,
    timeout: float = READ_SECONDS,
    on_wait: Callable[[], None] | None = None,
) -> Completed:
    """`process.run` with git's own ways of being unavailable turned into typed errors."""
    most = MAX_GIT_LISTING if _named(argv) in _LISTINGS else MAX_GIT_OUTPUT
    try:
        done = process.run(argv, cwd=cwd, timeout=timeout, env=env, stdin=stdin, max_output=most, on_wait=on_wait)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        if not cwd.is_dir():
            gone = f"the folder {cwd} is not there (any more)"
            raise Unavailable("tool_errors.git.failed", command=_named(argv), output=gone) from error
        why = "it is not installed" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
        raise Unavailable("tool_errors.git.missing", reason=why) from error
    if done.timed_out:
        raise Unavailable(
            "tool_errors.git.timed_out", command=command_name(done), seconds=timeout, output=done.error_text()[-2000:]
        )
    if done.truncated:
        raise Unavailable("tool_errors.git.too_much_output", command=command_name(done))
    if done.returncode < 0:
        # Never an answer: taken for a "no", it would make a branch look left, or a repository look absent.
        raise Unavailable(
            "tool_errors.git.failed", command=command_name(done), output=f"ended by signal {-done.returncode}"
        )
    return done


def is_yes(done: Completed) -> bool:
    """Git's answer to a question it answers with status 0 or 1; any other status is Unavailable('tool_errors.git.failed')."""
    if done.returncode != 1:
        succeeded(done)
    return done.ok


def succeeded(done: Completed) -> bytes:
    """Standard output of a command that ended well; Unavailable('tool_errors.git.failed') otherwise."""
    if not done.ok:
        raise Unavailable("tool_errors.git.failed", command=command_name(done), output=output_of(done))
    return done.stdout


def output_of(done: Completed) -> str:
    """The last 4,000 characters of what a command said, for people."""
    return "\n".join(text for text in (done.text().strip(), done.error_text().strip()) if text)[-4000:]


def command_name(done: Completed) -> str:
    """`git update-ref` out of a long argument list."""
    return _named(done.argv)


def _named(argv: Sequence[str]) -> str:
    words = iter(argv[1:])
    for word in words:
        if word == "-c":
            next(words, None)
        elif not word.startswith("-"):
            return f"git {word}"
    return "git"
