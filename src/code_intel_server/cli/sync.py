"""`sync`: bring index and symbol cache up to date, with a progress bar (SPEC 9)."""

from pathlib import Path

from code_intel_server.cli.console import guarded, parser, progress, scaffolded_root


def main(arguments: list[str]) -> int:
    """Synchronise, or with --rebuild from nothing."""
    made = parser("sync", "Bring the index up to date.")
    made.add_argument("--rebuild", action="store_true", help="from nothing")
    options = made.parse_args(arguments)
    return guarded(lambda: _run(options.project, rebuild=options.rebuild))


def _run(project: Path | None, *, rebuild: bool) -> int:
    from code_intel_server.tools.desk import Desk

    desk = Desk(scaffolded_root(project))
    try:
        with progress("index") as report:
            synced = desk.index.sync(rebuild=rebuild, progress=report)
        with progress("symbols") as report:
            desk.explorer.refresh_all(lambda done, total: report(done, total, ""))
    finally:
        desk.close()
    changes = f"{synced.added} added, {synced.changed} changed, {synced.removed} removed, {synced.unchanged} unchanged"
    print(f"{synced.files} files ({changes}), {synced.chunks} chunks written, {synced.seconds:.1f} s")
    for reason, count in synced.skipped.items():
        print(f"  skipped: {count} {reason}")
    for note in synced.notes:
        print(f"  {note}")
    return 0
