"""`resume`: what an interrupted session is about, and how to go on with it (SPEC 7, 12)."""

import json
from pathlib import Path

from code_intel_server.cli.console import guarded, parser, scaffolded_root, show
from code_intel_server.cli.status.view import read_view
from code_intel_server.common.printable import printable
from code_intel_server.workspace.paths import Project


def main(arguments: list[str]) -> int:
    """Say which sessions can be resumed; exit status 1 where there is none."""
    made = parser("resume", "Which sessions can be resumed, and how.")
    made.add_argument("session", nargs="?", metavar="ID", help="one of them, with its summaries")
    made.add_argument("--json", action="store_true", help="as JSON")
    options = made.parse_args(arguments)
    return guarded(lambda: _run(options.project, options.session, as_json=options.json))


def _run(project: Path | None, session_id: str | None, *, as_json: bool) -> int:
    seen = read_view(scaffolded_root(project))
    kept = [one for one in seen.sessions if not one.live and session_id in {None, one.session_id}]
    if as_json:
        print(json.dumps([one.as_json() for one in kept], ensure_ascii=False, indent=2))
        return 0 if kept else 1
    for line in seen.unusable:
        show(f"not obeyed: {printable(line)}")
    if not kept:
        show("nothing to resume" + (": the session is running" if any(one.live for one in seen.sessions) else ""))
        return 1
    for one in kept:
        show(f"{one.session_id}  step {one.step}, {one.title}: {printable(str(one.state['query']))[:200]}", indent=4)
        if Project(one.root).home:
            show(f"in its own worktree: {one.root}", indent=4)
    show("\nTo go on: start your client in the project and type  /code --resume  (Codex: $code --resume).")
    show("To give one up, its work kept recoverably: code-intel-server abandon")
    return 0
