"""A test that must fail, put among those of a run: where it is not seen to fail the results mean nothing (SPEC 4, Receipts).

Its name is random, so that no product can know it. It runs in the process of real tests, with the product that these load.
"""

import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

from code_intel_server.receipts.execution import CommandRun
from code_intel_server.receipts.isolation import Place
from code_intel_server.receipts.results import Outcome
from code_intel_server.receipts.runners.instruments import Selection

_PACKAGE = re.compile(r"^package (\w+)$", re.MULTILINE)
_ONE_FILE = frozenset({"node", "jest", "vitest"})
"""Runners with a process or a module registry for each file: the test is put into one file that ran."""


@contextlib.contextmanager
def canary(run: CommandRun, place: Place, changed: Sequence[str]) -> Iterator[Selection]:
    """What a command that made `run` is left to so that it runs a test which fails; `changed` files are preferred."""
    token = secrets.token_hex(8)
    if "go" in run.runners:
        name = f"TestA{token}"
        file = _in_a_package(place.checkout, changed, name)
        try:
            yield Selection(files=(str(place.seen_at / file.relative_to(place.checkout)),) if file else (), canary=name)
        finally:
            if file:
                file.unlink(missing_ok=True)
    elif run.runners & _ONE_FILE:
        units = sorted({case.unit for case in run.suite.cases if case.outcome is not Outcome.TIMEOUT})
        among = [unit for unit in units if unit in changed] or units
        yield Selection(files=tuple(str(place.seen_at / unit) for unit in among[:1]), canary=f"test_{token}")
    else:
        beside = {case.unit for case in run.suite.cases} & {*changed}
        files = tuple(os.path.realpath(place.seen_at / unit) for unit in sorted(beside))
        yield Selection(files=files or None, canary=f"test_{token}")


def _in_a_package(checkout: Path, changed: Sequence[str], name: str) -> Path | None:
    """A test file with a test that fails, in a package with tests: one that changed, else the first."""
    folders = {(checkout / path).parent for path in changed if path.endswith(".go")}
    beside = [file for folder in sorted(folders) for file in sorted(folder.glob("*_test.go"))]
    for file in [*beside, *sorted(checkout.rglob("*_test.go"))]:
        text = file.read_text(encoding="utf-8", errors="replace")
        package = _PACKAGE.search(text)
        if package is None or "//go:build" in text:
            continue
        made = file.with_name(f"{name.lower()}_test.go")
        body = f'package {package[1]}\n\nimport "testing"\n\nfunc {name}(t *testing.T) {{ t.Fatal("{name}") }}\n'
        made.write_text(body, encoding="utf-8")
        return made
    return None
