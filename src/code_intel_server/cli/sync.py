"""`sync`: bring index and symbol cache up to date, with a progress bar (SPEC 9)."""

import os
from pathlib import Path

from code_intel_server.cli.console import Failed, guarded, parser, progress_bar, scaffolded_root
from code_intel_server.workspace.paths import FOLDER


def main(arguments: list[str]) -> int:
    """Synchronise, or with --rebuild from nothing."""
    made = parser("sync", "Bring the index up to date.")
    made.add_argument("--rebuild", action="store_true", help="from nothing")
    options = made.parse_args(arguments)
    return guarded(lambda: _run(options.project, rebuild=options.rebuild))


def _run(project: Path | None, *, rebuild: bool) -> int:
    from code_intel_server.tools.services import ProjectServices

    root = scaffolded_root(project)
    if not os.access(root / FOLDER, os.W_OK):
        raise Failed(f"{root / FOLDER} cannot be written to: the index is its owner's")
    services = ProjectServices(root)
    try:
        with progress_bar("index") as report:
            synced = services.index.sync(rebuild=rebuild, progress=report)
        with progress_bar("symbols") as report:
            services.explorer.refresh_all(lambda done, total: report(done, total, ""))
        with progress_bar("ChromaDB") as report:
            services.index.settle(report)
    finally:
        services.close()
    changes = f"{synced.added} added, {synced.changed} changed, {synced.removed} removed, {synced.unchanged} unchanged"
    print(f"{synced.files} files ({changes}), {synced.chunks} chunks written, {synced.seconds:.1f} s")
    for reason, count in synced.skipped.items():
        print(f"  skipped: {count} {reason}")
    for note in synced.notes:
        print(f"  {note}")
    return 0
