"""`abandon`: give a session up whose client is gone; its branch and uncommitted work are archived (SPEC 6, 12)."""

from pathlib import Path

from code_intel_server.cli.console import Failed, ask, guarded, parser, scaffolded_root
from code_intel_server.cli.status.view import read_view
from code_intel_server.workspace.branches import stale_branches
from code_intel_server.workspace.git.repository import Git, open_repository


def main(arguments: list[str]) -> int:
    """Abandon the interrupted session, after asking."""
    made = parser(
        "abandon", "Give every interrupted session up: as the flag clean does, work is archived, not deleted."
    )
    made.add_argument("--yes", action="store_true", help="do not ask")
    options = made.parse_args(arguments)
    return guarded(lambda: _run(options.project, yes=options.yes))


def _run(project: Path | None, *, yes: bool) -> int:
    root = scaffolded_root(project)
    seen = read_view(root)
    if seen.owner is not None:
        raise Failed(
            f"a session is running ({seen.owner.described()}): end its client first, or type /code --clean there"
        )
    names = ", ".join(one.session_id for one in seen.sessions if not one.live)
    if not names and not seen.unusable and not _left_over(root):
        print("nothing to abandon: no session and no task branch is left over")
        return 0
    if not ask(f"Give up {names or 'left-over task branches'}? Everything is kept in the trash.", yes=yes):
        raise Failed("nothing was changed (use --yes where nobody can be asked)")
    from code_intel_server.tools.services import ProjectServices
    from code_intel_server.tools.session.sessions import Sessions

    services = ProjectServices(root)
    services.lock.acquire()
    try:
        answer = Sessions(services).clean()
    finally:
        services.close()
    print(answer["message"])
    warnings = answer.get("warnings")
    for warning in warnings if isinstance(warnings, list) else []:
        print(f"  {warning}")
    print("To bring something back: code-intel-server trash list")
    return 0


def _left_over(root: Path) -> bool:
    opened = open_repository(root)
    return isinstance(opened, Git) and bool(stale_branches(opened))
