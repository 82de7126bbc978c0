"""A pytest plugin that writes one JSON line an event to the file that `settings.json` beside it names.

Copied next to a checkout and loaded by `-p`: it imports nothing of ours but `traces` and nothing that pytest does not load
anyway. With pytest-xdist only the controller writes. Every write is a whole line, opened and closed at once, so that no
test which turns warnings into errors finds an open file. Children of tests do not write: what loads this is taken away
before the first file of the project is loaded, with pytest-xdist before the first test runs.
"""

import json
import os
import runpy
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

_FILE = Path(__file__).with_name("settings.json")
_SETTINGS: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8")) if _FILE.exists() else {}
_RESULTS: str = _SETTINGS.get("results", "")
_CANARY: str = _SETTINGS.get("canary", "")
_TRACES: Any = SimpleNamespace(
    **runpy.run_path(str(_FILE.with_name("traces.py")))
)  # by its place: a project may have one
_ROOT: str = _SETTINGS.get("root", "")
_A_LINE = 500
"""Files of one line: longer lines are not read."""
_writes = [True]
_below = [""]
_sessions: list[Any] = []


class _Canary(pytest.Item):
    """A test that fails: a run in which it does not is one whose results mean nothing."""

    def runtest(self) -> None:
        """Fail."""
        raise AssertionError(self.name)

    def reportinfo(self) -> tuple[str, int, str]:
        """Where it is: nowhere."""
        return self.name, 0, self.name


def _write(**event: object) -> None:
    if _writes[0]:
        with open(_RESULTS, "ab", buffering=0) as file:  # noqa: PTH123  one write, whole beside those of workers
            file.write(json.dumps(event).encode() + b"\n")


def _named(nodeid: str) -> str:
    """An id from the root of the checkout, wherever pytest has its own root."""
    return _below[0] + nodeid


@cache
def _only() -> dict[str, Any]:
    """What is wanted: {"files": […]}, {"ids": […]} or {"skip": […]}; {} where all is."""
    only: dict[str, Any] = _SETTINGS["only"]
    ids = only.get("ids", ())
    if ids and all("::" in id_ for id_ in ids):
        only.setdefault("files", [os.path.realpath(f"{_ROOT}/{id_.partition('::')[0]}") for id_ in ids])
    return only


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> None:
    """Leave nothing that tells the project of us, unless workers are started who need it."""
    asked = early_config.known_args_namespace
    if not (getattr(asked, "numprocesses", None) or getattr(asked, "tx", None)):
        _TRACES.restore_environment()
        _TRACES.restore_modules()


def pytest_configure(config: Any) -> None:
    """Say who runs the tests; a worker of pytest-xdist leaves the writing to its controller.

    One file that cannot be collected, as an old one whose import a change renames, keeps no other from being run.
    """
    config.option.continue_on_collection_errors = True
    if "ids" in _only():  # single tests: each is to be seen, whatever failures a project's settings stop at
        config.option.maxfail = 0
    _writes[0] = not hasattr(config, "workerinput")
    if not _writes[0]:
        _TRACES.restore_environment()
        _TRACES.restore_modules()
    below = os.path.relpath(config.rootpath, os.path.realpath(_ROOT))
    _below[0] = "" if below == "." else below.replace(os.sep, "/") + "/"
    _write(event="runner", name="pytest")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Keep what tests start from writing here: pytest-xdist's workers have begun by now."""
    _TRACES.restore_environment()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the files that are not wanted, before they are imported."""
    files = _only().get("files")
    if files is None or not collection_path.is_file():
        return None
    return None if os.path.realpath(collection_path) in files else True


def pytest_sessionstart(session: Any) -> None:
    """Keep the session, which counts failures."""
    _sessions[:] = [session]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: Any, config: Any, items: list[Any]) -> None:
    """Leave out the tests that are not wanted; put the one that must fail behind the others."""
    only = _only()
    ids, skip, files = only.get("ids"), only.get("skip", ()), only.get("files")
    names = {item: _named(item.nodeid) for item in items}
    kept = [item for item in items if (ids is None or names[item] in ids) and names[item] not in skip]
    if files is not None:  # what a command names is collected whatever the hook above says
        kept = [item for item in kept if os.path.realpath(item.path) in files]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept
    if _CANARY:
        items.append(_Canary.from_parent(session, name=_CANARY, nodeid=_CANARY))


def pytest_collectreport(report: Any) -> None:
    """A file that cannot be collected is a unit that does not build."""
    if report.failed:
        _write(event="unbuilt", unit=_named(report.nodeid.partition("::")[0]), message=str(report.longrepr)[-500:])


def pytest_runtest_logstart(nodeid: str) -> None:
    """A test begins: one that never ends is known by this."""
    _write(event="start", id=_named(nodeid), unit=_named(nodeid.partition("::")[0]))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_logreport(report: Any) -> Iterator[None]:
    """A test ends with its call, or with a set-up or tear-down that fails or skips."""
    if report.when == "call" or not report.passed:
        _write_end(report)
    if _CANARY and report.nodeid == _CANARY and report.failed and _sessions:
        _sessions[0].testsfailed -= 1  # the exit status is that of the other tests
    yield


def _write_end(report: Any) -> None:
    outcome = "skipped" if report.skipped else "failed" if report.failed else "passed"
    message = "" if report.passed else str(report.longrepr)[-1500:]
    _write(
        event="end",
        id=_named(report.nodeid),
        unit=_named(report.nodeid.partition("::")[0]),
        outcome=outcome,
        seconds=report.duration,
        message=message,
    )


def pytest_sessionfinish() -> None:
    """Which files the loaded modules came from, of workers too: whether the checkout is what was tested."""
    files = {str(getattr(module, "__file__", None) or "") for module in [*sys.modules.values()]}
    named = sorted(files - {""})
    _writes[0] = True
    for number in range(0, len(named), _A_LINE):
        _write(event="census", files=named[number : number + _A_LINE])
