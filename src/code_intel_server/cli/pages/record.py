"""A session as pages and terminal show it: its submits out of the decision log, and how it ended out of its record.

Records may be of a newer version, cut or damaged: a field that is missing or of another type reads as if empty.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

from code_intel_server.cli.words import LOOPS, PROOFS, TITLES, VERDICTS, duration, elapsed, in_titles, quantity
from code_intel_server.flow.phases import (
    FLAG_NAMES,
    MERGE,
    POST_IMPL_VERIFY,
    PRE_COMMIT,
    READY_IMPL,
    READY_PLAN,
    STEPS,
    Flags,
    GateLevel,
    Intent,
)
from code_intel_server.flow.transitions import Route

Fields = Mapping[str, Any]

# The payload's shape picks the step inside READY, not where the session stood.
_EVENT_STEPS = {"planned": READY_PLAN.step, "reported": READY_IMPL.step, "reported_last": READY_IMPL.step}
_STEPS_BY_KEY = {place.contract_key: step for place, step in STEPS.items()}
_VERIFY, _COMMIT, _MERGE = POST_IMPL_VERIFY.step, PRE_COMMIT.step, MERGE.step


@dataclass(frozen=True, slots=True)
class Submit:
    """One submit: accepted, or refused for the reason `key`; `text` is its account, or what was found wrong.

    `seconds` since the submit before it that was accepted, None where the log does not tell; `calls` is how many tool calls
    the session had made by then.
    """

    step: int
    event: str = ""
    next_step: int = 0
    at: str = ""
    seconds: float | None = None
    key: str = ""
    text: str = ""
    proof: object = None
    calls: int = 0

    @property
    def refused(self) -> bool:
        """Whether it changed nothing."""
        return bool(self.key)

    @property
    def loops(self) -> bool:
        """Whether the session went back from here."""
        return not self.key and self.event in LOOPS and self.next_step < self.step

    @property
    def runs(self) -> list[Fields]:
        """The verify commands that the server ran for it."""
        return row_list(self.proof, "commands")

    @property
    def lines(self) -> list[str]:
        """What happened, for people: found, decided or refused; then what was run, and where it led back to."""
        verdict = "refused" if self.refused else VERDICTS.get(self.event, "")
        said = " ".join(self.text.split()).removeprefix("Quality review: ")
        said = in_titles(said) if self.refused else said
        if verdict and not said.lower().startswith(verdict):
            said = f"{verdict}: {said}" if said else verdict
        back = [f"back to {TITLES.get(self.next_step, '')}"] if self.loops else []
        return [line for line in (said, *map(run_said, self.runs), *back) if line]


def run_said(run: Fields) -> str:
    """One verify command in a line: `ran pytest -q: passed, 12 s`."""
    seconds = run.get("seconds")
    spent = f", {duration(float(seconds))}" if isinstance(seconds, int | float) and seconds else ""
    outcome, reason = text(run, "outcome"), text(run, "reason")
    return f"ran {text(run, 'command')}: {PROOFS.get(outcome, outcome)}{spent}{f' ({reason})' if reason else ''}"


def submits(log: Iterable[Fields]) -> list[Submit]:
    """The submits of one session out of its decisions, oldest first."""
    found: list[Submit] = []
    since: object = None
    for row in log:
        what, at = row.get("what"), text(row, "at") or text(row, "ts")
        if what in {"start", "restore"}:
            since = at
        elif what == "submit":
            found.append(_submit(row, at, since))
            since = since if found[-1].refused else at
    return found


def _submit(row: Fields, at: str, since: object) -> Submit:
    event = text(row, "event")
    refused = text(row, "verdict") == "refused"
    return Submit(
        step=_EVENT_STEPS.get(event, number(row, "step")),
        event=event,
        next_step=number(row, "next_step"),
        at=at,
        seconds=None if refused else elapsed(since, at),
        key=(text(row, "reason") or "?") if refused else "",
        text=text(row, "said") or text(row, "account"),
        proof=row.get("proof"),
        calls=number(row, "ledger"),
    )


@dataclass(frozen=True)
class SessionRecord:
    """A session's record, taken apart. `end` is '' for one that is not over, which a process leads while it is `live`.

    `verdict` is what the user said of it.
    """

    session_id: str = ""
    end: str = ""
    ended_at: str = ""
    state: Fields = field(default_factory=dict)
    summaries: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, Mapping[str, Fields]] = field(default_factory=dict)
    submits: list[Submit] = field(default_factory=list)
    restored: int = 0
    evidence: list[Fields] = field(default_factory=list)
    diff: Fields = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    verdict: str = ""
    live: bool = False

    @property
    def request(self) -> str:
        """What the user asked for."""
        return text(self.state, "query")

    @property
    def accepted(self) -> list[Submit]:
        """The submits that led somewhere."""
        return [one for one in self.submits if not one.refused]

    @property
    def refused(self) -> list[Submit]:
        """The submits that did not."""
        return [one for one in self.submits if one.refused]

    @property
    def loops(self) -> list[Submit]:
        """The submits that led back."""
        return [one for one in self.submits if one.loops]

    @property
    def seconds(self) -> float | None:
        """From its start to its end, or to now."""
        return elapsed(self.state.get("started_at"), self.ended_at)

    @property
    def step(self) -> int:
        """The step it is at."""
        return number(mapping(self.state, "phase_state"), "step")

    @property
    def forced(self) -> bool:
        """Whether it was merged with quality issues unresolved."""
        return self.state.get("forced") is True

    @property
    def notes_taken(self) -> list[tuple[list[str], str]]:
        """What the agent summed up, with the steps that it sums up: one, or those of a list with one summary."""
        grouped = groupby(self.summaries.items(), key=lambda one: one[1])
        return [([key for key, _ in several], said) for said, several in grouped if said]

    @property
    def receipt(self) -> Fields:
        """The verification it ended with."""
        return mapping(self.state, "receipt")

    @property
    def tests(self) -> list[str]:
        """What clean checkouts showed of the tests, in sentences; nothing where none was run so."""
        seen = mapping(self.receipt, "tests")
        if why := text(seen, "unavailable"):
            return [f"Which tests passed is unknown: {why}."]
        if seen.get("only_status") is True:
            given = mapping(self.state, "file_reasons")
            said = [f"{path}: no run compared it. Reason: {text(given, path)}" for path in given]
            return ["Of the verify commands only the exit status is known.", *said]
        counts, before = mapping(seen, "counts"), number(seen, "passed_before")
        if not counts:
            return []
        passed = f"{number(counts, 'pass_to_pass')} of {before} tests that passed before pass with it"
        said = [f"{quantity(number(counts, 'fail_to_pass'), 'test')} only with this change; {passed}."]
        reasons = mapping(self.state, "test_reasons")
        asked = mapping(seen, "questions")
        said += [f"{what}: {why}. Reason: {text(reasons, what) or 'none'}" for what, why in asked.items()]
        runs = [f"{name}: {done}" for name, done in mapping(seen, "runs").items()]
        return [*said, f"Runs: {'; '.join(runs)}."] if runs else said

    @property
    def listed_tests(self) -> list[tuple[str, list[str]]]:
        """The lists of tests that are not empty, by name."""
        listed = mapping(mapping(self.receipt, "tests"), "listed")
        return [(name.replace("_", " "), text_list(listed, name)) for name in listed]

    @cached_property
    def skipped(self) -> dict[int, str]:
        """The gates that would have run but for a flag: step → phase, as the commit's trailer names them (SPEC 3.2)."""
        given = mapping(self.state, "flags")
        names = [name for name in FLAG_NAMES if name != "gate_level" and given.get(name) is True]
        try:
            route = Route(Intent(text(self.state, "intent")), Flags(GateLevel.AUTO, **dict.fromkeys(names, True)))
        except ValueError:
            return {}
        return {_STEPS_BY_KEY[key]: key for key in route.gates_skipped_by_flag()}

    @property
    def outcome(self) -> tuple[str, str]:
        """How it ended, in a sentence, and what that is worth: good, warn, bad or plain."""
        last = self.accepted[-1] if self.accepted else Submit(0)
        if self.end == "SESSION_ABANDONED":
            return "bad", "Given up: what it had done is kept in the trash"
        if not self.end:
            at = f"at step {self.step}, {TITLES.get(self.step, '')}"
            return ("plain", f"Going on {at}") if self.live else ("warn", f"Interrupted {at}: /code --resume goes on")
        if self.end != "SESSION_COMPLETE":
            return "plain", self.end
        if last.step == _VERIFY and mapping(self.state, "flags").get("only_verify") is True:
            kind, proof = self.proof
            return (kind, f"Verified, {proof}") if last.event != "failed" else ("bad", "Verification failed")
        if last.step < _VERIFY and not row_list(self.state, "tasks"):
            return "good", "Investigated: nothing was changed"
        kind, proof = self.proof
        if self.forced:
            issues = quantity(len(text_list(self.state, "unresolved_issues")), "quality issue")
            return "bad", f"{self._delivered(last)}, {proof}, with {issues} unresolved"
        return kind, f"{self._delivered(last)}, {proof}"

    @property
    def proof(self) -> tuple[str, str]:
        """What the result is worth, in two words."""
        worth = {
            "proven": ("good", "proven"),
            "unproven": ("warn", "not proven"),
            "waived": ("warn", "its proof waived"),
            "none": ("warn", "by the agent's word alone"),
        }
        return worth.get(text(self.receipt, "status"), ("warn", "not verified"))

    def _delivered(self, last: Submit) -> str:
        if last.step != _MERGE:
            return "Done in the working tree, not committed"
        into = text(mapping(self.state, "task_branch"), "base")
        said = last.text.rstrip(".") or (f"merged into {into}" if into else "finished")
        return said[:1].upper() + said[1:]

    @property
    def figures(self) -> dict[str, int]:
        """Name → count, for people."""
        happened = [one.event for one in self.submits]
        now = mapping(self.state, "counters")  # some go back to 0 when a round passes: what happened counts
        return {
            "submits accepted": max(number(self.state, "submits"), len(self.accepted)),
            "submits refused": len(self.refused),
            "failed verifications": max(happened.count("failed"), number(now, "verification_failure_count")),
            "new approaches": max(happened.count("intervened"), number(now, "intervention_count")),
            "reviews with issues": max(happened.count("issues"), number(now, "quality_revert_count")),
            "tool calls": sum(number(row, "calls") for tools in self.tools.values() for row in tools.values()),
            "files explored": len(text_list(self.state, "explored_files")) + len(mapping(self.state, "added_files")),
            "restores": self.restored,
            "compactions": number(self.state, "compaction_count"),
        }


def session_record(record: Fields, verdict: str = "") -> SessionRecord:
    """A record as `archives.gather` made it, this version's or another's."""
    from code_intel_server.tools.session.archives import SCHEMA

    body = mapping(record, "state")
    payloads, tools = mapping(body, "phase_payloads"), mapping(record, "tools")
    log = row_list(record, "decisions")
    notes: list[str] = []
    if number(record, "schema") > SCHEMA:
        notes.append("A newer version wrote this record: what it added is not shown.")
    if lost := text_list(record, "given_up"):
        notes.append(f"The record was too big to keep whole; left out: {', '.join(lost)}.")
    return SessionRecord(
        session_id=text(record, "session_id"),
        end=text(record, "end"),
        ended_at=text(record, "ended_at"),
        state=mapping(body, "orchestrator_state"),
        summaries={str(key): text(mapping(payloads, key), "summary") for key in payloads},
        tools={
            str(phase): {str(tool): mapping(mapping(tools, phase), tool) for tool in mapping(tools, phase)}
            for phase in tools
        },
        submits=submits(log),
        restored=sum(row.get("what") == "restore" for row in log),
        evidence=row_list(record, "evidence"),
        diff=mapping(record, "diff"),
        notes=notes,
        verdict=verdict,
        live=record.get("live") is True,
    )


def text(row: Fields, name: str) -> str:
    """A field that is a text, else ''."""
    value = row.get(name)
    return value if isinstance(value, str) else ""


def number(row: Fields, name: str) -> int:
    """A field that is a whole number, else 0."""
    value = row.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def mapping(row: Fields, name: str) -> Fields:
    """A field that is an object, else an empty one."""
    value = row.get(name)
    return value if isinstance(value, dict) else {}


def row_list(row: object, name: str) -> list[Fields]:
    """The objects in a field that is a list."""
    value = row.get(name) if isinstance(row, dict) else None
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text_list(row: Fields, name: str) -> list[str]:
    """The texts in a field that is a list."""
    value = row.get(name)
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
