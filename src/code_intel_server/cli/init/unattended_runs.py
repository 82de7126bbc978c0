"""Set-up for runs that nobody watches (`claude -p`, `codex exec`): asked for, granted, and taken back (SPEC 12).

Claude Code: its hook then allows what the running session may write, so that nobody has to be asked. Codex: the user's
approval of our hooks, which it would else leave out in silence.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from code_intel_server.cli.console import Failed, ask
from code_intel_server.cli.init import codex_hooks
from code_intel_server.cli.init.scaffold import Manifest
from code_intel_server.contract import CLAUDE, CODEX, Client

_GRANTS = {
    CLAUDE.name: "Claude Code then does not ask before it writes what the running session may write.",
    CODEX.name: "Codex then has your approval of code-intel's hooks, in your own config.toml.",
}


def wanted(options: argparse.Namespace, manifest: Manifest, clients: Sequence[Client]) -> tuple[bool, bool]:
    """Whether runs that nobody watches shall work: as this run says, else as earlier ones did, else as the user answers.

    And whether the user has said so now: the manifest may have come with the repository.
    """
    if options.no_hooks:
        if options.unattended:
            raise Failed("--unattended works through the hooks: leave --no-hooks out")
        return False, False
    if options.unattended is not None:
        return options.unattended, options.unattended
    if manifest.options.get("unattended") is True:
        return True, False
    if options.yes or options.dry_run:
        return False, False
    grants = [_GRANTS[client.name] for client in clients if client.name in _GRANTS]
    agreed = ask(f"Shall runs that nobody watches work too (claude -p, codex exec)? {' '.join(grants)}", yes=False)
    return agreed, agreed


def approve_in_codex(root: Path) -> None:
    """Give Codex the user's approval of our hooks, or say how they do it themselves."""
    try:
        count = codex_hooks.approve(root)
    except codex_hooks.Unanswered as error:
        print(f"  Codex's hooks could not be approved ({error}): start codex here and approve them with /hooks")
        return
    print(f"  {count} hooks approved in Codex (taken back by --uninstall)")


def withdraw_from_codex(root: Path) -> None:
    """Take back what `init --unattended` has approved in the user's Codex configuration, while the hooks are still listed."""
    if not Manifest.load(root).options.get("unattended"):
        return
    try:
        count = codex_hooks.withdraw(root)
    except codex_hooks.Unanswered as error:
        print(f"  approvals of the hooks in Codex's config.toml stay ({error}): [hooks.state] there names this project")
        return
    if count:
        print(f"  {count} approvals of hooks taken out of Codex's configuration")
