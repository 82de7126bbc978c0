"""`report`: one session as a self-contained HTML page (SPEC 12)."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from code_intel_server.cli.console import Failed, guarded, parser, scaffolded_root

if TYPE_CHECKING:
    from code_intel_server.tools.services import ProjectServices
    from code_intel_server.tools.session.archives import ArchiveRecord

_OUTCOMES_READ = 2000


def main(arguments: list[str]) -> int:
    """Write the report of a session."""
    made = parser(
        "report", "One session as a self-contained HTML page: outcome, change, proof, course, tasks, evidence."
    )
    made.add_argument("session", nargs="?", metavar="SESSION", help="the running one, else the newest, if not given")
    made.add_argument("--out", metavar="FILE", help="where to write it; - for standard output")
    options = made.parse_args(arguments)
    return guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    from code_intel_server.tools.services import ProjectServices

    services = ProjectServices(scaffolded_root(options.project))
    path = write_report(services, options.session, options.out)
    if path is not None:
        print(path)
    return 0


def write_report(services: "ProjectServices", session_id: str | None, out: str | None = None) -> Path | None:
    """Write the report of a session and say where it is, None for standard output. Raises Failed where that cannot be."""
    from code_intel_server.cli.pages.record import session_record
    from code_intel_server.cli.pages.report import report_page

    kept = _record(services, session_id)
    record = session_record(kept, _verdict(services, kept["session_id"]))
    page = report_page(record, services.root.name)
    return write_page(page, out, reports_folder(services) / f"{record.session_id}.html")


def reports_folder(services: "ProjectServices") -> Path:
    """Where pages go that nobody says another place for."""
    return services.project.logs / "reports"


def write_page(content: str, out: str | None, otherwise: Path) -> Path | None:
    """Write a page where the user wants it; that path, None for standard output. Raises Failed where that cannot be."""
    from code_intel_server.workspace.files import make_folder, write_whole
    from code_intel_server.workspace.paths import aimed_elsewhere

    if out == "-":
        sys.stdout.write(content)
        return None
    path = Path(out).expanduser() if out else otherwise
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
    return path


def _verdict(services: "ProjectServices", session_id: object) -> str:
    """What the user said of a session."""
    from code_intel_server.cli.pages.tally import USERS_WORDS

    said = (row for row in services.outcomes.tail(_OUTCOMES_READ).records if row.get("session_id") == session_id)
    return next((str(row["outcome"]) for row in reversed([*said]) if row.get("outcome") in USERS_WORDS), "")


def _record(services: "ProjectServices", session_id: str | None) -> "ArchiveRecord":
    """The record of a session, over or not. Raises Failed where there is none."""
    from code_intel_server.cli.status.view import read_view
    from code_intel_server.tools.session.archives import finished_sessions, read_archive

    seen, over = read_view(services.root), finished_sessions(services)
    live = next((one.session_id for one in seen.sessions if one.live), None)
    wanted = session_id or live or max((*over[:1], *(one.session_id for one in seen.sessions)), default=None)
    if wanted is None:
        raise Failed("there is no session yet to report on")
    record = read_archive(services, wanted)
    if record is None and seen.session(wanted) is not None:
        record = _unfinished(services, wanted) | {"live": wanted == live}
    if record is None:
        known = ", ".join([*(one.session_id for one in seen.sessions), *over][:5])
        raise Failed(f"no session {wanted!a} is kept here; there are: {known or 'none'}")
    return record | {"session_id": wanted}  # whatever it calls itself: the page is named after it


def _unfinished(services: "ProjectServices", session_id: str) -> "ArchiveRecord":
    """The record of a session that another process leads, or that was interrupted; nothing of it is changed."""
    from code_intel_server.flow.session import SessionState
    from code_intel_server.tools.services import now
    from code_intel_server.tools.session.archives import gather

    state = SessionState.from_checkpoint(services.store.load(session_id).body)
    return gather(services, state, services.ledger(session_id).entries(), "", now())
