"""`doctor`: is this machine, and this project, as a session needs it; a remedy for every finding (SPEC 12)."""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from code_intel_server.cli.console import explained, guarded, parser, project_root, show
from code_intel_server.cli.doctor import clients as checkup_clients
from code_intel_server.cli.doctor import machine as checkup_machine
from code_intel_server.cli.doctor import project as checkup_project
from code_intel_server.cli.doctor.finding import Finding, Grade
from code_intel_server.errors import CodeIntelError

_MARKS = {Grade.GOOD: "ok", Grade.WARNING: "warn", Grade.BAD: "FAIL", Grade.UNUSED: "--"}

Check = Callable[[Path], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    checkup_machine.programs,
    checkup_machine.libraries,
    checkup_project.repository,
    checkup_project.scaffold,
    checkup_project.texts,
    checkup_project.trust,
    checkup_project.outside_gate,
    checkup_project.index,
    checkup_project.sessions,
    checkup_clients.launcher,
    checkup_clients.registered,
    checkup_clients.hook,
    checkup_clients.server,
)


def main(arguments: list[str]) -> int:
    """Examine and report; exit status 1 where something is broken."""
    made = parser("doctor", "Examine this machine and project, with a remedy for every finding.")
    made.add_argument("--json", action="store_true", help="as JSON")
    options = made.parse_args(arguments)
    return guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    root = project_root(options.project)
    findings = [*examine(root)]
    if options.json:
        rows = [{"name": one.name, "grade": str(one.grade), "text": one.text, "remedy": one.remedy} for one in findings]
        print(json.dumps({"project": str(root), "findings": rows}, ensure_ascii=False, indent=2))
    else:
        print(f"{root}")
        for one in findings:
            show(f"  {_MARKS[one.grade]:<5} {one.name:<16} {one.text}", indent=25)
            if one.remedy:
                show(f"        {'':<16} → {one.remedy}", indent=27)
        bad = sum(one.grade is Grade.BAD for one in findings)
        warnings = sum(one.grade is Grade.WARNING for one in findings)
        print(f"{bad} broken, {warnings} warning(s)")
    return 1 if any(one.grade is Grade.BAD for one in findings) else 0


def examine(root: Path) -> Iterator[Finding]:
    """Every finding; a check that fails itself is one."""
    for check in CHECKS:
        try:
            yield from check(root)
        except (CodeIntelError, OSError, ValueError) as error:
            why = explained(error) if isinstance(error, CodeIntelError) else str(error)
            yield Finding(check.__name__, Grade.BAD, f"could not be examined: {why}")
