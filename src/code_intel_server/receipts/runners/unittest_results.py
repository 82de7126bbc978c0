"""`python -m unittest` that writes one JSON line an event to the file that `settings.json` beside it names.

Copied next to a checkout and run as `-m unittest_results` with the arguments that were meant for unittest: it imports nothing
of ours but `traces`. A test's id is unittest's own; where the settings name tests, these alone are run.
"""

import json
import os
import runpy
import sys
import time
import unittest
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_FILE = Path(__file__).with_name("settings.json")
_SETTINGS: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8")) if _FILE.exists() else {}
_RESULTS: str = _SETTINGS.get("results", "")
_CANARY: str = _SETTINGS.get("canary", "")
_TRACES: Any = SimpleNamespace(
    **runpy.run_path(str(_FILE.with_name("traces.py")))
)  # by its place: a project may have one
_ROOT = os.path.realpath(_SETTINGS.get("root", "."))
_FAILED_IMPORT = "unittest.loader._FailedTest"


def _write(**event: object) -> None:
    with open(_RESULTS, "a", encoding="utf-8", errors="backslashreplace") as file:  # noqa: PTH123
        file.write(json.dumps(event) + "\n")


def _file(test: unittest.TestCase) -> str:
    return os.path.realpath(getattr(sys.modules.get(type(test).__module__), "__file__", None) or "")


def _unit(test: unittest.TestCase) -> str:
    return os.path.relpath(_file(test), _ROOT).replace(os.sep, "/")


class _Result(unittest.TextTestResult):
    """Says what unittest says, and writes it."""

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's names
        super().startTest(test)
        self._began, self._ended = time.monotonic(), ("passed", "")
        _write(event="start", id=test.id(), unit=_unit(test))

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        self._fail(test, err)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        if test.id().rpartition(".")[2] != _CANARY:  # the exit status is that of the other tests
            super().addFailure(test, err)
        self._fail(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._fail(test, err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self._ended = ("skipped", "")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().addUnexpectedSuccess(test)
        self._ended = ("failed", "unexpected success")

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().stopTest(test)
        outcome, message = self._ended
        seconds = time.monotonic() - self._began
        if test.id().startswith(_FAILED_IMPORT):
            module = test.id().removeprefix(_FAILED_IMPORT).replace(".", "/").strip("/")
            _write(event="unbuilt", unit=f"{module}.py", message=message[-500:])
        _write(event="end", id=test.id(), unit=_unit(test), outcome=outcome, seconds=seconds, message=message)

    def _fail(self, test: unittest.TestCase, err: Any) -> None:
        text = self._exc_info_to_string(err, test)  # type: ignore[attr-defined]
        if hasattr(self, "_ended") and isinstance(test, unittest.TestCase):
            self._ended = ("failed", text[-1500:])
        else:  # the set-up of a class or module: its tests do not begin
            _write(event="end", id=test.id(), unit="", outcome="failed", seconds=0, message=text[-1500:])


def _flat(suite: unittest.TestSuite) -> Iterable[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _flat(test)
        else:
            yield test


class _Runner(unittest.TextTestRunner):
    """Runs what is wanted."""

    resultclass = _Result  # type: ignore[assignment]  # typeshed names a private stream

    def run(self, test: Any) -> Any:
        """Run the wanted tests of a suite."""
        only = _SETTINGS["only"]
        files, ids, skip = only.get("files"), only.get("ids"), only.get("skip", ())
        wanted = [
            one
            for one in _flat(unittest.TestSuite([test]))
            if (files is None or _file(one) in files) and (ids is None or one.id() in ids) and one.id() not in skip
        ]
        if _CANARY:
            wanted += [type(_CANARY, (unittest.TestCase,), {_CANARY: lambda self: self.assertEqual(1, 2)})(_CANARY)]
        done = super().run(unittest.TestSuite(wanted))
        files = {str(getattr(module, "__file__", None) or "") for module in [*sys.modules.values()]}
        _write(event="census", files=sorted(files - {""}))
        return done


if __name__ == "__main__":
    _TRACES.restore_environment()
    _TRACES.restore_modules()
    _write(event="runner", name="unittest")
    sys.argv[0] = "python -m unittest"
    unittest.main(module=None, testRunner=_Runner)
