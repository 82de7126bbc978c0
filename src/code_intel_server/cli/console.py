"""What people's commands share: finding the project, what was typed, saying things on terminal or pipe, asking, progress."""

import argparse
import difflib
import os
import shutil
import sqlite3
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from shlex import quote
from typing import Any

from code_intel_server.common.printable import printable
from code_intel_server.errors import CodeIntelError
from code_intel_server.workspace.paths import FOLDER, find_root

Report = Callable[[float, float, str], None]
INTERRUPTED = 130
_LINE_SECONDS = 2.0
_ENDS = (".", "!", "?", ":")


class Failed(Exception):
    """A command cannot go on; the text is for the user, `status` the exit status."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


class Parser(argparse.ArgumentParser):
    """An argument parser that says what a mistyped word may have meant."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            said = f"no '{printable(str(value))}'{did_you_mean(str(value), known)} (there are: {', '.join(known)})"
            raise argparse.ArgumentError(action, said)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`: did you mean 'list'?`, '' where nothing that is known resembles the word."""
    near = difflib.get_close_matches(word, [*known], n=1)
    return f": did you mean '{near[0]}'?" if near else ""


def parser(name: str, what: str) -> Parser:
    """An argument parser of one command, with `--project`."""
    made = Parser(prog=f"code-intel-server {name}", description=what)
    made.add_argument(
        "--project", type=Path, metavar="DIR", help="the project; else found by walking up from the working directory"
    )
    return made


def project_root(given: Path | None) -> Path:
    """The project a command works for. Raises Failed where there is no such folder."""
    if given is not None and not given.is_dir():
        raise Failed(f"{given} is no folder")
    return find_root(Path.cwd(), given)


def scaffolded_root(given: Path | None) -> Path:
    """The project, which must have been set up. Raises Failed."""
    root = project_root(given)
    if not (root / FOLDER).is_dir():
        raise Failed(f"{root} has no {FOLDER}/ yet: run code-intel-server init {quote(str(root))}")
    return root


def typed_path(root: Path, typed: str) -> str:
    """A path as typed where one is, as the project knows it; from outside the project it is meant from its root."""
    here = Path.cwd()
    if not here.is_relative_to(root) or os.path.isabs(typed):  # noqa: PTH117 - of the text as typed
        return typed
    return os.path.relpath(here / typed, root)


def shown_path(root: Path, path: str) -> str:
    """A path of the project as it would be typed where one is."""
    here = Path.cwd()
    return os.path.relpath(root / path, here) if path and here.is_relative_to(root) else path


def guarded(work: Callable[[], int]) -> int:
    """Run a command and turn what is raised on purpose, and what the system refuses, into a message and an exit status."""
    show_anything()
    try:
        status = work()
        sys.stdout.flush()
    except Failed as failed:
        return _reported(str(failed), failed.status)
    except CodeIntelError as error:
        return _reported(explained(error))
    except KeyboardInterrupt:
        return _reported("interrupted", INTERRUPTED, "\n")
    except BrokenPipeError:
        _let_go_of_output()
        return 0
    except OSError as error:
        _let_go_of_output()
        return _reported(system_said(error))
    except sqlite3.Error as error:
        return _reported(f"a database in {FOLDER}/cache: {error}. That folder may be removed: it is made anew.")
    return status


def show_anything() -> None:
    """Let what the terminal's encoding does not have come out as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def show(text: str, indent: int = 0, *, error: bool = False) -> None:
    """Print a line; on a terminal wrapped between its words, with `indent` before every line but the first."""
    stream = sys.stderr if error else sys.stdout
    if stream.isatty():
        width = max(shutil.get_terminal_size().columns, indent + 20)
        wrap = textwrap.TextWrapper(
            width, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False
        )
        text = "\n".join(wrap.fill(line) for line in text.split("\n"))
    print(text, file=stream)


def system_said(error: OSError) -> str:
    """What the system refused, and where, in one line."""
    where = "" if error.filename is None else f"{printable(str(error.filename))}: "
    return f"{where}{error.strerror or error}"


def _reported(text: str, status: int = 1, before: str = "") -> int:
    show(f"{before}code-intel-server: {text}", error=True)
    return status


def _let_go_of_output() -> None:
    """Write what waits to be written; where it cannot be, to nobody, or the interpreter would complain of it at its end."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError), Path(os.devnull).open("w") as nobody:
            os.dup2(nobody.fileno(), sys.stdout.fileno())


def explained(error: CodeIntelError, advice: Mapping[str, str] | None = None) -> str:
    """The contract's text for an error, with what to do about it: what `advice` has by its key, else the contract's remedy."""
    from code_intel_server.contract import Contract

    try:
        message = Contract.load(None).message(error.key, error.params)
    except KeyError:
        return str(error)
    instruction = (advice or {}).get(error.key, message.instruction)
    if not instruction:
        return message.text
    return f"{message.text}{'' if message.text.endswith(_ENDS) else '.'} {instruction}"


def ask(question: str, *, yes: bool) -> bool:
    """A yes or no from the user; `yes` answers for them, and where nobody can be asked the answer is no."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        answer = input(f"{question} [y/N] ").strip().lower()
    except EOFError:  # Ctrl-D
        print()
        return False
    return answer in {"y", "yes"}


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """A bar on a terminal; in a pipe a plain line now and then."""
    if not sys.stdout.isatty():
        yield _plain(title)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}"),
    )
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task(title, total=None, what="")

        def report(done: float, total: float, what: str) -> None:
            """Move the bar."""
            bar.update(task, completed=done, total=total or None, what=what[:50])

        yield report


def _plain(title: str) -> Report:
    last = time.monotonic()

    def report(done: float, total: float, what: str) -> None:
        """Print where the work is, at most every two seconds."""
        nonlocal last
        if time.monotonic() - last >= _LINE_SECONDS:
            last = time.monotonic()
            print(f"{title}: {done:.0f} of {total:.0f} {what}", flush=True)

    return report
