"""A pytest plugin that writes one JSON line an event to the file that CODE_INTEL_RESULTS names.

Copied beside a checkout and loaded by `-p`: it imports nothing of ours and nothing that pytest does not load anyway.
With pytest-xdist only the controller writes. Every write is a whole line, opened and closed at once, so that no test
which turns warnings into errors finds an open file.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

_RESULTS = os.environ.get("CODE_INTEL_RESULTS", "")
_ONLY = os.environ.get("CODE_INTEL_ONLY", "")


def _write(**event: object) -> None:
    if _RESULTS:
        with open(_RESULTS, "a", encoding="utf-8", errors="backslashreplace") as file:  # noqa: PTH123
            file.write(json.dumps(event) + "\n")


def _only() -> dict[str, Any]:
    """What is wanted: {"files": […]} or {"ids": […]}; {} where all is."""
    return json.loads(Path(_ONLY).read_text(encoding="utf-8")) if _ONLY else {}


def pytest_ignore_collect(collection_path: Path, config: Any) -> bool | None:
    """Leave out the files that are not wanted, before they are imported."""
    files = _only().get("files")
    if files is None or not collection_path.is_file():
        return None
    return None if os.path.realpath(collection_path) in files else True


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out the tests that are not wanted."""
    ids = _only().get("ids")
    if ids is None:
        return
    kept = [item for item in items if item.nodeid in ids]
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in ids])
    items[:] = kept


def pytest_collectreport(report: Any) -> None:
    """A file that cannot be collected is a unit that does not build."""
    if report.failed:
        _write(event="unbuilt", unit=report.nodeid.partition("::")[0], message=str(report.longrepr)[-500:])


def pytest_runtest_logstart(nodeid: str, location: tuple[str, int | None, str]) -> None:
    """A test begins: one that never ends is known by this."""
    _write(event="start", id=nodeid, unit=nodeid.partition("::")[0])


def pytest_runtest_logreport(report: Any) -> None:
    """A test ends with its call, or with a set-up or tear-down that fails or skips."""
    if report.when != "call" and report.passed:
        return
    outcome = "skipped" if report.skipped else "failed" if report.failed else "passed"
    message = "" if report.passed else str(report.longrepr)[-1500:]
    _write(
        event="end",
        id=report.nodeid,
        unit=report.nodeid.partition("::")[0],
        outcome=outcome,
        seconds=report.duration,
        message=message,
    )


def pytest_sessionfinish(session: Any, exitstatus: int) -> None:
    """Which files the loaded modules came from: whether the checkout is what was tested."""
    if hasattr(session.config, "workerinput"):
        return
    files = {str(getattr(module, "__file__", None) or "") for module in [*sys.modules.values()]}
    _write(event="census", files=sorted(files - {""}))
