"""A test that must fail, put among those of a run: where it is not seen to fail the results mean nothing (SPEC 4, Receipts).

Its name is random, so that no product can know it. It runs in the process of real tests, with the product that these load.
"""

import contextlib
import os
import re
import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from code_intel_server.receipts.execution import SuiteRunRecord
from code_intel_server.receipts.isolation import IsolatedCheckout
from code_intel_server.receipts.results import CaseOutcome
from code_intel_server.receipts.runners.instruments import Selection

UNCOUNTED = frozenset({"pytest", "unittest", "mocha"})
"""Runners whose exit status is that of the other tests."""

_PACKAGE = re.compile(r"^package (\w+)$", re.MULTILINE)
_ONE_FILE = frozenset({"node", "jest", "vitest"})
"""Runners with a process or a module registry for each file: the test is put into files that run."""


@contextlib.contextmanager
def canary_in_run(runners: Collection[str], place: IsolatedCheckout, wanted: Selection) -> Iterator[Selection]:
    """The wanted tests, the one that must fail among them where it can be."""
    token = secrets.token_hex(8)
    if "go" not in runners:
        yield replace(wanted, canary=f"test_{token}")
        return
    name = f"TestA{token}"
    seen_at = os.path.realpath(place.seen_at)
    made = _in_a_package([place.checkout / os.path.relpath(file, seen_at) for file in wanted.files or ()], name)
    try:
        yield replace(wanted, canary=name if made else "")
    finally:
        if made:
            made.unlink(missing_ok=True)


@contextlib.contextmanager
def canary_alone(run: SuiteRunRecord, place: IsolatedCheckout, changed: Sequence[str]) -> Iterator[Selection]:
    """What a command that made `run` is left to so that it runs the test that must fail; `changed` files are preferred."""
    units = {case.unit for case in run.suite.cases if case.outcome is not CaseOutcome.TIMEOUT}
    preferred = sorted(units & {*changed})
    if "go" in run.runners:
        folders = {(place.checkout / path).parent for path in changed if path.endswith(".go")}
        tests = [file for folder in sorted(folders) for file in sorted(folder.glob("*_test.go"))]
        tests += sorted(place.checkout.rglob("*_test.go"))
        preferred = [str(file.relative_to(place.checkout)) for file in tests if _package(file)]
        preferred = [path for path in preferred if _has_run(os.path.dirname(path), units)][:1]  # noqa: PTH120
    elif run.runners & _ONE_FILE:
        preferred = (preferred or sorted(units))[:1]
    files = tuple(os.path.realpath(place.seen_at / unit) for unit in preferred)
    with canary_in_run(run.runners, place, Selection(files=files or None)) as selection:
        yield selection if run.runners & _ONE_FILE else replace(selection, ids=(selection.canary,))


def _has_run(folder: str, units: Collection[str]) -> bool:
    """Whether a folder's package is among those that ran; other modules and folders that Go passes over are not."""
    return not folder or any(unit.endswith(f"/{folder}") for unit in units)


def _in_a_package(tests: Sequence[Path], name: str) -> Path | None:
    """A new file with a test that fails, next to the first of these test files that is built everywhere."""
    file, package = next(((file, package) for file in tests if (package := _package(file))), (None, ""))
    if file is None:
        return None
    made = file.with_name(f"{name.lower()}_test.go")
    body = f'package {package}\n\nimport "testing"\n\nfunc {name}(t *testing.T) {{ t.Fatal("{name}") }}\n'
    made.write_text(body, encoding="utf-8")
    return made


def _package(file: Path) -> str:
    """The package of a Go file; '' where that cannot be known, or the file is built in some places only."""
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    package = _PACKAGE.search(text)
    return package[1] if package and "//go:build" not in text else ""
