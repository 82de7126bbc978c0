"""`waive`: take one verify command out of the running session's proof; commit and report will say so (SPEC 4)."""

import shlex
import sys

from code_intel_server.cli.console import Failed, guarded, parser, scaffolded_root
from code_intel_server.cli.status.view import read_view
from code_intel_server.common.printable import printable
from code_intel_server.workspace.paths import Project
from code_intel_server.workspace.project.config import ConfigFile
from code_intel_server.workspace.project.trust import Approvals
from code_intel_server.workspace.proofs import named_command


def main(arguments: list[str]) -> int:
    """Waive a command, or list what can be waived."""
    made = parser(
        "waive", "Take a verify command out of the running session's proof. Response, report and commit say so."
    )
    made.add_argument("command", nargs="?", help="the command as one argument, or its number from the list")
    made.add_argument("--reason", default="", help="why it may fail (10 characters or more)")
    made.add_argument("--session", metavar="ID", help="which session; the running one if not given")
    options = made.parse_args(arguments)
    return guarded(
        lambda: _run(Project(scaffolded_root(options.project)), options.command, options.reason, options.session)
    )


def _run(project: Project, wanted: str | None, reason: str, session_id: str | None) -> int:
    session = read_view(project.root).session(session_id)
    if session is None:
        raise Failed("no session is running or kept here: a waiver is for one session")
    config = ConfigFile.load(project.config_file).config
    approvals = Approvals()
    waived = {one.argv: one.reason for one in approvals.waivers(session.root, session.session_id)}
    if wanted is None:
        for number, command in enumerate(config.verify_commands, 1):
            said = f"   waived: {waived[command.argv]}" if command.argv in waived else ""
            print(f"{number}  {printable(shlex.join(command.argv))}{said}")
        print(f"session {session.session_id}" if config.verify_commands else "config.json has no verify_commands")
        return 0
    chosen = named_command(config, wanted)
    if chosen is None:
        raise Failed(f"config.json has no such verify command: {wanted}. Without a command, waive lists them.")
    approvals.waive(session.root, session.session_id, chosen.argv, reason, typed=sys.stdin.isatty())
    print(f"waived for session {session.session_id}: {printable(shlex.join(chosen.argv))}")
    return 0
