"""`trash list|restore|purge`: what sessions have put away, and how it comes back (SPEC 6.1)."""

import argparse
import json
import math
from datetime import UTC, datetime
from pathlib import Path

from code_intel_server.cli.console import Failed, ask, guarded, parser, project_root, show
from code_intel_server.common.printable import printable
from code_intel_server.workspace.branches import KEEP_DAYS, ArchiveKind, Trash, TrashEntry
from code_intel_server.workspace.git.repository import ARCHIVE, open_repository

_HOLDS = {
    ArchiveKind.BRANCH: "a branch",
    ArchiveKind.WORK: "uncommitted work",
    ArchiveKind.DISCARD: "discarded changes",
    ArchiveKind.STAGED: "staged changes",
    ArchiveKind.EARLIER: "your edits before it",
}


def main(arguments: list[str]) -> int:
    """List, restore or purge the archive."""
    made = parser("trash", "Branches and changes that sessions have put away; nothing is lost until you purge it.")
    actions = made.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="what is kept, the newest first")
    listing.add_argument("--json", action="store_true", help="as JSON")
    restoring = actions.add_parser("restore", help="bring one entry back")
    restoring.add_argument("entry", help="as `trash list` names it")
    purging = actions.add_parser("purge", help="drop entries for good")
    purging.add_argument("entries", nargs="*", help="exactly these, whatever their age")
    purging.add_argument("--older-than", type=_days, default=KEEP_DAYS, metavar="DAYS", help="default %(default)s")
    purging.add_argument("--yes", action="store_true", help="do not ask")
    options = made.parse_args(arguments)
    return guarded(lambda: _ACTIONS[options.action](Trash(_repository(options)), options))


def _days(text: str) -> float:
    """An age that something can have: older than -1 days would be everything, and nobody means that."""
    try:
        days = float(text)
    except ValueError:
        days = math.nan
    if not 0 <= days < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of days, 0 or more")
    return days


def _repository(options: argparse.Namespace) -> Path:
    """The project, which must be in a git repository: the archive is made of its refs. Raises Failed."""
    root = project_root(options.project)
    opened = open_repository(root)
    if isinstance(opened, str):
        raise Failed(f"{root}: {opened}. What sessions put away is kept in git.")
    return root


def _list(trash: Trash, options: argparse.Namespace) -> int:
    entries = trash.entries()
    if options.json:
        rows = [
            {
                "entry": row.ref.removeprefix(ARCHIVE),
                "kind": str(row.kind),
                "session_id": row.session_id,
                "created": row.created,
                "branch": row.branch,
                "commit": row.commit,
            }
            for row in entries
        ]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    if not entries:
        print("the trash is empty")
        return 0
    table = [("ENTRY", "HOLDS", "SINCE (UTC)", "BRANCH"), *map(_cells, entries)]
    widths = [max(len(row[column]) for row in table) for column in range(3)]
    for entry, *more in table:
        # What is copied stays whole on its line; on a narrow terminal the rest comes below it.
        show(f"{entry:<{widths[0]}}  {more[0]:<{widths[1]}}  {more[1]:<{widths[2]}}  {more[2]}".rstrip(), indent=4)
    show(f"{len(entries)} kept. To bring one back: code-intel-server trash restore ENTRY", indent=4)
    return 0


def _cells(entry: TrashEntry) -> tuple[str, str, str, str]:
    when = datetime.fromtimestamp(entry.created, UTC).strftime("%Y-%m-%d %H:%M")
    return entry.ref.removeprefix(ARCHIVE), _HOLDS[entry.kind], when, printable(entry.branch)


def _restore(trash: Trash, options: argparse.Namespace) -> int:
    restored = trash.restore(options.entry)
    if restored.branch:
        print(f"branch {printable(restored.branch)} is back")
    elif restored.files:
        print(f"{len(restored.files)} file(s) are back: {', '.join(map(printable, restored.files[:20]))}")
    else:
        print("nothing had to come back: everything stands as it was kept")
    if restored.hint:
        print(f"next: {restored.hint}")
    return 0


def _purge(trash: Trash, options: argparse.Namespace) -> int:
    known = {row.ref for row in trash.entries()}
    refs = [entry if entry.startswith(ARCHIVE) else ARCHIVE + entry for entry in options.entries]
    if unknown := [ref for ref in refs if ref not in known]:
        raise Failed(f"not in the trash: {', '.join(ref.removeprefix(ARCHIVE) for ref in unknown)}")
    what = f"{len(refs)} entries" if refs else f"everything older than {options.older_than:g} days"
    if not ask(f"Drop {what} for good?", yes=options.yes):
        raise Failed("nothing was dropped (use --yes where nobody can be asked)")
    gone = trash.purge(older_than_days=options.older_than, refs=refs or None)
    print(f"{len(gone)} dropped")
    return 0


_ACTIONS = {"list": _list, "restore": _restore, "purge": _purge}
