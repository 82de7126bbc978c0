"""`trust`: let the server run the commands of this project's config.json, as it is now (SPEC 4)."""

import argparse
import shlex

from code_intel_server.cli.console import Failed, ask, guarded, parser, scaffolded_root
from code_intel_server.common.printable import printable
from code_intel_server.workspace.paths import Project
from code_intel_server.workspace.project.config import ConfigFile
from code_intel_server.workspace.project.trust import Approvals


def main(arguments: list[str]) -> int:
    """Trust, or with --revoke no longer."""
    made = parser("trust", "Let the server run the commands of this project's config.json as it is now.")
    made.add_argument("--revoke", action="store_true", help="trust no content of the file any more")
    made.add_argument("--check", action="store_true", help="only say whether it is trusted (exit status 1 if not)")
    made.add_argument("--yes", action="store_true", help="do not ask")
    options = made.parse_args(arguments)
    return guarded(lambda: _run(Project(scaffolded_root(options.project)), options))


def _run(project: Project, options: argparse.Namespace) -> int:
    approvals, path = Approvals(), project.config_file
    if options.revoke:
        print("no longer trusted" if approvals.revoke(path) else "it was not trusted")
        return 0
    config = ConfigFile.load(path)
    if not config.digest:
        raise Failed(f"{path} cannot be read")
    if options.check:
        trusted = approvals.trusted(path, config.digest)
        print("trusted" if trusted else "not trusted: its commands do not run")
        return 0 if trusted else 1
    for warning in config.warnings:
        print(f"  {warning}")
    print(f"{path} lets the server run, in {project.root}:")
    for command in config.config.verify_commands:
        print(f"  {printable(shlex.join(command.argv))}   (in {printable(command.cwd)}, at most {command.timeout:g} s)")
    for language, argv in config.config.resolution.language_servers.items():
        print(f"  {printable(shlex.join(argv))}   (language server for {printable(language)}, while lookups ask it)")
    if not any(config.commands):
        print("  nothing yet")
    if approvals.trusted(path, config.digest) and not approvals.superseded(path, config.digest):
        print("trusted already, until the file changes")
        return 0
    if not ask("Trust it?", yes=options.yes):
        raise Failed("not trusted (use --yes where nobody can be asked)")
    approvals.trust(path)
    print("trusted, until the file changes")
    return 0
