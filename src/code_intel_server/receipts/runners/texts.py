"""Runners that write no events: `cargo test` by its text, any other by the JUnit files that it leaves (SPEC 4, Receipts)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

EventRow = dict[str, Any]
_RUNNING = re.compile(r"\s+(?:Running [^(]*\((?:[^()]*/)?(\w[\w-]*)-[0-9a-f]{16}(?:\.exe)?\)|Doc-tests (\S+))\s*$")
_TEST = re.compile(r"test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)")
_STDOUT = re.compile(r"---- (.+) stdout ----$")
_UNBUILT = re.compile(r"error: could not compile `([^`]+)`(?: \((?:\w+ )?\"?([\w-]+)(?![\w-])[^)]*\))?")
_OUTCOMES = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
_MESSAGE_CHARACTERS = 1500
_JUNIT_BYTES = 32 * 1024 * 1024


@dataclass(slots=True)
class CargoText:
    """Reads what `cargo test` prints, a line at a time."""

    _unit: str = ""
    _shown: str = ""

    def take(self, line: str) -> EventRow | None:
        """What a line says: an `end`, an `unbuilt`, or more of the `message` of a test that failed; None for nothing."""
        if found := _RUNNING.match(line):
            self._unit, self._shown = found[1] or f"{found[2]} doctests", ""
        elif found := _UNBUILT.match(line):
            unit = found[2] if found[2] not in {None, "test", "lib", "bin"} else found[1]
            return {"event": "unbuilt", "unit": unit.replace("-", "_"), "message": line}
        elif not self._unit:
            return None
        elif found := _TEST.match(line):
            return {"event": "end", "id": self._named(found[1]), "unit": self._unit, "outcome": _OUTCOMES[found[2]]}
        elif found := _STDOUT.match(line):
            self._shown = self._named(found[1])
        elif line == "failures:":
            self._shown = ""
        elif self._shown:
            return {"event": "message", "id": self._shown, "message": line + "\n"}
        return None

    def _named(self, test: str) -> str:
        return f"{self._unit}::{test}"


def junit_rows(folder: Path, since: float) -> Iterator[EventRow]:
    """The tests in the JUnit files below a folder that were written since a moment (Unix time)."""
    for path in sorted(folder.rglob("*.xml")):
        look = path.lstat()
        if look.st_mtime < since or look.st_size > _JUNIT_BYTES or not path.is_file():
            continue
        try:
            root = Xml.parse(path).getroot()  # noqa: S314 - expat ends entities that grow
        except Xml.ParseError:
            continue
        if root.tag in {"testsuites", "testsuite"}:
            yield from map(_row, root.iter("testcase"))


def _row(case: Xml.Element) -> EventRow:
    unit, name = case.get("classname", ""), case.get("name", "")
    kinds = {child.tag: child for child in case if child.tag in {"failure", "error", "skipped"}}
    bad = kinds.get("failure", kinds.get("error"))
    outcome = "failed" if bad is not None else "skipped" if kinds else "passed"
    message = "" if bad is None else f"{bad.get('message', '')}\n{bad.text or ''}"[-_MESSAGE_CHARACTERS:]
    seconds = case.get("time", "")
    return {
        "id": f"{unit}.{name}" if unit else name,
        "unit": unit,
        "outcome": outcome,
        "seconds": float(seconds) if re.fullmatch(r"\d+(\.\d+)?", seconds) else 0.0,
        "message": message,
    }
