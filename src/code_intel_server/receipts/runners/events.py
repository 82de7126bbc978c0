"""The events that every runner writes, read into a run while it goes on."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from code_intel_server.receipts.identity import distinct, normal_id
from code_intel_server.receipts.results import Case, CaseOutcome, SuiteRun
from code_intel_server.receipts.runners.texts import CargoText
from code_intel_server.workspace.files import open_regular

LINE_AT_MOST = 256 * 1024
_MESSAGE_CHARACTERS = 1500
_READ_BYTES = 4 * 1024 * 1024
_GO_UNBUILT = re.compile(r"FAIL\s+(\S+) \[(build|setup) failed\]")
_GO_ENDS = {"pass": "passed", "fail": "failed", "skip": "skipped"}


@dataclass(slots=True)
class Events:
    """Collects events; a line that is none of ours, or is too long, is counted and passed over."""

    roots: tuple[str, ...] = ()
    census: frozenset[str] = frozenset()
    loaded: frozenset[str] = frozenset()
    unreadable: int = 0
    runners: set[str] = field(default_factory=set)
    _ends: list[dict[str, Any]] = field(default_factory=list)
    _running: dict[str, str] = field(default_factory=dict)
    _open: dict[str, None] = field(default_factory=dict)
    _unbuilt: dict[str, str] = field(default_factory=dict)
    _said: dict[str, str] = field(default_factory=dict)
    _cargo: CargoText = field(default_factory=CargoText)
    _rest: bytes = b""

    def feed(self, data: bytes) -> None:
        """Take what a runner has written since the last time, whole lines and the beginning of one."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        if len(self._rest) > LINE_AT_MOST:
            self._rest, self.unreadable = b"", self.unreadable + 1

    def _take(self, line: bytes) -> None:
        try:
            event: Any = json.loads(line) if len(line) <= LINE_AT_MOST else None
        except (ValueError, RecursionError):
            event = None
        match event:
            case {"event": "start", "id": str(id_), "unit": str(unit)}:
                self._running[id_] = unit
            case {"event": "end", "id": str(id_), "outcome": "passed" | "failed" | "skipped"}:
                self._running.pop(id_, None)
                self._ends.append(event)
            case {"event": "open", "unit": str(unit)}:
                self._open[unit] = None
            case {"event": "close", "unit": str(unit)}:
                self._open.pop(unit, None)
            case {"event": "unbuilt", "unit": str(unit), "message": str(message)}:
                self._unbuilt[normal_id(unit, self.roots)] = message
            case {"event": "runner", "name": str(name)}:
                self.runners.add(name)
            case {"Action": str(action)}:
                self._take_go(action, str(event.get("Package") or event.get("ImportPath")), event)
            case None if len(line) <= LINE_AT_MOST:
                self._take_text(line.decode("utf-8", "replace"))
            case {"event": "census", "files": list(files)}:
                self.census |= frozenset(map(str, files))
            case {"event": "loaded", "files": list(files)}:
                self.loaded |= frozenset(map(str, files))
            case _:
                self.unreadable += 1

    def _take_text(self, line: str) -> None:
        """A line that is no event: of the go tool, or of cargo where that is what runs."""
        if found := _GO_UNBUILT.match(line):
            self._unbuilt[found[1]] = self._said.get(found[1], f"{found[2]} failed")
        elif "cargo" not in self.runners:
            self.unreadable += 1
        elif row := self._cargo.take(line):
            match row.pop("event"):
                case "unbuilt":
                    self._unbuilt[row["unit"]] = row["message"]
                case "message":
                    self._keep_said(row["id"], row["message"])
                case _:
                    self._ends.append(row)

    def add(self, rows: Iterable[dict[str, Any]], runner: str) -> None:
        """Take the ends of tests that a runner left in files."""
        before = len(self._ends)
        self._ends += rows
        if len(self._ends) > before:
            self.runners.add(runner)

    def _take_go(self, action: str, package: str, event: dict[str, Any]) -> None:
        """One line of `go test -json`."""
        output = str(event.get("Output", ""))
        self.runners.add("go")
        if action == "build-output":
            self._keep_said(package.split(" ", maxsplit=1)[0], output)
            return
        if "Test" not in event:
            if found := _GO_UNBUILT.match(output):
                self._unbuilt[found[1]] = self._said.get(found[1], f"{found[2]} failed")
            return
        id_ = f"{package}:{event['Test']}"
        if action in {"run", "cont"}:
            self._running[id_] = package
        elif action == "pause":
            self._running.pop(id_, None)
        elif action == "output":
            self._keep_said(id_, output)
        elif outcome := _GO_ENDS.get(action):
            self._running.pop(id_, None)
            said = self._said.pop(id_, "")
            message = said if outcome == "failed" else ""
            row = {"id": id_, "unit": package, "outcome": outcome, "seconds": event.get("Elapsed"), "message": message}
            self._ends.append(row)

    def _keep_said(self, of: str, output: str) -> None:
        self._said[of] = (self._said.get(of, "") + output)[-_MESSAGE_CHARACTERS:]

    @property
    def running(self) -> tuple[str, ...]:
        """The tests that have begun and not ended, and the files where only these are known."""
        return tuple(self._running) + tuple(unit for unit in self._open if unit not in self._running.values())

    @property
    def listed(self) -> bool:
        """Whether a test was seen to begin or end, or a unit not to be built."""
        return bool(self._ends or self.running or self._unbuilt)

    def run(self, seconds: float, *, whole: bool = True) -> SuiteRun:
        """What was seen, as a run; tests that never ended have timed out."""
        rows = [
            *self._last_of_each(),
            *({"id": id_, "unit": self._running.get(id_, id_), "outcome": "timeout"} for id_ in self.running),
        ]
        names = distinct(normal_id(row["id"], self.roots) for row in rows)
        cases = tuple(self._case(name, row) for name, row in zip(names, rows, strict=True))
        return SuiteRun(cases, dict(self._unbuilt), seconds, whole=whole)

    def _last_of_each(self) -> Iterable[dict[str, Any]]:
        """A call that passed and a tear-down that failed are one test, which failed."""
        merged: list[dict[str, Any]] = []
        for row in self._ends:
            if merged and merged[-1]["id"] == row["id"] and merged[-1]["outcome"] != row["outcome"]:
                merged[-1] = {**row, "seconds": merged[-1].get("seconds", 0)}
            else:
                merged.append(row)
        return merged

    def _case(self, name: str, row: dict[str, Any]) -> Case:
        return Case(
            name,
            CaseOutcome(row["outcome"]),
            normal_id(str(row.get("unit", "")), self.roots),
            float(row.get("seconds") or 0),
            str(row.get("message") or (self._said.get(row["id"], "") if row["outcome"] == "failed" else "")),
        )


def written_since(file: Path, offset: int) -> bytes:
    """What was appended to a file behind an offset, a few MiB at a time; b'' where it is not there."""
    try:
        with open(open_regular(file), "rb") as opened:  # noqa: PTH123 - a test may have put a FIFO there
            opened.seek(offset)
            return opened.read(_READ_BYTES)
    except OSError:
        return b""
