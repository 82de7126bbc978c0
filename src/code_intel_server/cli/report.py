"""`report`: one session as a self-contained HTML page (SPEC 12)."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from code_intel_server.cli.console import Failed, guarded, parser, scaffolded_root

if TYPE_CHECKING:
    from code_intel_server.tools.archives import Record
    from code_intel_server.tools.desk import Desk


def main(arguments: list[str]) -> int:
    """Write the report of a session."""
    made = parser("report", "One session as a self-contained HTML page: course, loops, tasks, evidence, proofs, diff.")
    made.add_argument("session", nargs="?", metavar="SESSION", help="the running one, else the last one that ended")
    made.add_argument("--out", metavar="FILE", help="where to write it; - for standard output")
    options = made.parse_args(arguments)
    return guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    from code_intel_server.cli.record import taken_apart
    from code_intel_server.cli.report_page import report_page

    record, folder = _record(scaffolded_root(options.project), options.session)
    told = taken_apart(record)
    write_page(report_page(told), options.out, folder / f"{told.session_id}.html")
    return 0


def write_page(content: str, out: str | None, otherwise: Path) -> None:
    """Write a page where the user wants it and say where. Raises Failed where that cannot be."""
    from code_intel_server.workspace.files import make_folder, write_whole
    from code_intel_server.workspace.paths import aimed_elsewhere

    if out == "-":
        sys.stdout.write(content)
        return
    path = Path(out) if out else otherwise
    if not out and aimed_elsewhere(path.parent):
        raise Failed(f"a link leads out of {path.parent}: remove it, or say with --out where the page is to go")
    if path.is_dir():
        raise Failed(f"{path} is a folder: name a file in it")
    try:
        if not out:
            make_folder(path.parent)
        write_whole(path, content.encode("utf-8", "replace"), 0o644)
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror or error}") from error
    print(path)


def _record(root: Path, session_id: str | None) -> "tuple[Record, Path]":
    """The record of a session, over or not, and where its report goes. Raises Failed where there is none."""
    from code_intel_server.cli.view import look
    from code_intel_server.tools.archives import finished_sessions, read_archive
    from code_intel_server.tools.desk import Desk

    desk = Desk(root)
    folder = desk.project.logs / "reports"
    seen, over = look(root), finished_sessions(desk)
    live = next((one.session_id for one in seen.sessions if one.live), None)
    wanted = session_id or live or next(iter(over), None) or next((one.session_id for one in seen.sessions), None)
    if wanted is None:
        raise Failed("there is no session yet to report on")
    record = read_archive(desk, wanted)
    if record is None and seen.session(wanted) is not None:
        record = _unfinished(desk, wanted)
    if record is None:
        known = ", ".join([*(one.session_id for one in seen.sessions), *over][:5])
        raise Failed(f"no session {wanted!a} is kept here; there are: {known or 'none'}")
    return record, folder


def _unfinished(desk: "Desk", session_id: str) -> "Record":
    """The record of a session that another process leads, or that was interrupted; nothing of it is changed."""
    from code_intel_server.flow.session import SessionState
    from code_intel_server.tools.archives import gather
    from code_intel_server.tools.desk import now

    state = SessionState.from_checkpoint(desk.store.load(session_id).body)
    return gather(desk, state, desk.ledger(session_id).entries(), "", now())
