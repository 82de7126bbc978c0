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
    made = _in_packages([place.checkout / os.path.relpath(file, seen_at) for file in wanted.files or ()], name)
    try:
        yield replace(wanted, canary=name if made else "", canaries=len(made))
    finally:
        for file in made:
            file.unlink(missing_ok=True)


@contextlib.contextmanager
def canary_alone(run: SuiteRunRecord, place: IsolatedCheckout, changed: Sequence[str]) -> Iterator[Selection]:
    """What a command that made `run` is left to so that it runs the test that must fail; `changed` files are preferred."""
    units = {case.unit for case in run.suite.cases if case.outcome is not CaseOutcome.TIMEOUT}
    preferred = sorted(units & {*changed})
    if "go" in run.runners:
        files = [file for file in sorted(place.checkout.rglob("*_test.go")) if _package(file)]
        tests = [file.relative_to(place.checkout).as_posix() for file in files]
        tests = [path for path in tests if _has_run(_folder(path), units)]
        folders = {_folder(path) for path in changed if path.endswith(".go")}
        preferred = [path for path in tests if _folder(path) in folders] or tests[:1]
    elif run.runners & _ONE_FILE:
        preferred = (preferred or sorted(units))[:1]
    chosen = tuple(os.path.realpath(place.seen_at / unit) for unit in preferred)
    with canary_in_run(run.runners, place, Selection(files=chosen or None)) as selection:
        yield selection if run.runners & _ONE_FILE else replace(selection, ids=(selection.canary,))


def _has_run(folder: str, units: Collection[str]) -> bool:
    """Whether a folder's package is among those that ran; other modules and folders that Go passes over are not."""
    return not folder or any(unit.endswith(f"/{folder}") for unit in units)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _in_packages(tests: Sequence[Path], name: str) -> list[Path]:
    """New files with a test that fails, one in each folder in which one of these test files is built everywhere."""
    packages = {file.parent: package for file in reversed(tests) if (package := _package(file))}
    made = [folder / f"{name.lower()}_test.go" for folder in packages]
    for file, package in zip(made, packages.values(), strict=True):
        body = f'package {package}\n\nimport "testing"\n\nfunc {name}(t *testing.T) {{ t.Fatal("{name}") }}\n'
        file.write_text(body, encoding="utf-8")
    return made


def _package(file: Path) -> str:
    """The package of a Go file; '' where that cannot be known, or the file is built in some places only."""
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    package = _PACKAGE.search(text)
    return package[1] if package and "//go:build" not in text else ""
