"""A verdict in the words and the size in which a session keeps it and an agent reads it (SPEC 4, Receipts)."""

import shlex
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePosixPath

from code_intel_server.codebase.files.roles import Role, named_as_tests, role
from code_intel_server.common.printable import printable
from code_intel_server.receipts import execution
from code_intel_server.receipts.compare import questions
from code_intel_server.receipts.files import FileClass, file_class
from code_intel_server.receipts.notary import Verdict
from code_intel_server.receipts.results import BAD, Case, CaseOutcome
from code_intel_server.workspace.values import Change, ChangeKind, CommandRun, ProofStatus, SeenTests

LISTS = (
    *("fail_to_pass", "survived", "failing", "broken", "timeout", "missing", "skipped_now", "not_built"),
    *("insensitive", "removed", "failing_before", "flaky", "not_judged"),
)
"""The lists of a receipt that are counted, as `pass_to_pass` is."""
_NAMED = LISTS[:-1]
"""Those whose tests are named too."""

UNDECLARED = (
    "loaded from a folder that is lent to the tests, since this change, and no file says that it is to be installed"
)
NO_TEST_CHANGED = "code changed, and no test"
_SURVIVED = (
    "survived: {} of {} in fail_to_pass pass where the functions that this change adds or changes do nothing; "
    "those meant to check these should assert more, for the others there is nothing to do"
)
_INSENSITIVE = "insensitive: {} old tests pass with their assertions turned round; nothing to do"
_NOT_SEEN = "{} of {} in fail_to_pass were not seen without the change, neither to pass nor to fail"
REFUSAL_BYTES = 2048
_LISTED_AT_MOST = 40
_QUESTIONS_AT_MOST = 200
_MESSAGE_CHARACTERS = 400
_ID_CHARACTERS = 300
_NOTES_AT_MOST = 10
_FAMILIES = {".py": "python", **dict.fromkeys((".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx"), "node")}


def seen_tests(verdict: Verdict, changes: Sequence[Change], tries: int) -> SeenTests:
    """What a session keeps of a verdict on these changes; `tries` counts how often they were run."""
    found = verdict.receipt
    steering = [change.path for change in changes if file_class(change.path) is FileClass.TEST]
    code = any(role(change.path) is Role.CODE for change in changes if change.path not in steering)
    tests = any(change.kind is not ChangeKind.DELETED for change in changes if change.path in steering)
    if why := _unavailable(verdict):
        asked = dict.fromkeys(map(_short, steering), "changed, and nobody saw what the tests of before say")
        seconds = round(verdict.seconds, 1)
        return SeenTests(questions=asked, notes=_notes(verdict), unavailable=why, seconds=seconds, tries=tries)
    if _only_status(verdict):
        return SeenTests(only_status=True, seconds=round(verdict.seconds, 1), tries=tries)
    passing = sum(len(run.suite.ended(CaseOutcome.PASSED)) for run in verdict.runs["new"])
    tested = code and tests and "red" in verdict.runs
    asked = {} if found.failing or verdict.problems else questions(found, passing=passing, behaviour_tested=tested)
    attributes = [change.path for change in changes if change.path.rpartition("/")[2] == ".gitattributes"]
    asked |= dict.fromkeys(map(_short, attributes), "decides what a clone holds, and the tests ran on the bytes here")
    asked |= dict.fromkeys(verdict.undeclared, UNDECLARED)
    lists = {name: getattr(found, name) for name in (*LISTS, "new_names", "pass_to_pass")}
    return SeenTests(
        counts={name: len(ids) for name, ids in lists.items()},
        listed={name: [_short(id_) for id_ in lists[name][:_LISTED_AT_MOST]] for name in _NAMED if lists[name]},
        passed_before=found.passed_before,
        questions={_short(id_): why for id_, why in [*asked.items()][:_QUESTIONS_AT_MOST]},
        runs={name: _printed_by(runs) for name, runs in verdict.runs.items()},
        notes=[
            *([NO_TEST_CHANGED] if code and not steering else []),
            *([_NOT_SEEN.format(len(found.not_seen), len(found.fail_to_pass))] if found.not_seen else []),
            *([_SURVIVED.format(len(found.survived), len(found.fail_to_pass))] if found.survived else []),
            *([_INSENSITIVE.format(len(found.insensitive))] if found.insensitive else []),
            *_notes(verdict),
        ],
        not_loaded=_not_loaded(verdict, changes),
        uncompared=[_short(path) for path in verdict.uncompared[:_LISTED_AT_MOST]],
        seconds=round(verdict.seconds, 1),
        tries=tries,
    )


def _not_loaded(verdict: Verdict, changes: Sequence[Change]) -> list[str]:
    """The changed code that no test's process loaded, and changed tests that no command ran, where runners name their files."""
    runs = [run for name in ("original", "new") for run in verdict.runs.get(name, ())]
    loaded = {path for run in runs for path in run.loaded}
    ran = loaded.union(unit for run in runs for unit in run.suite.units.values())
    named = {FileClass.PRODUCT: _families(loaded), FileClass.TEST: _families(ran)}
    return [
        printable(change.path)
        for change in changes
        if change.kind is not ChangeKind.DELETED
        and (role(change.path) is Role.CODE or named_as_tests(change.path))
        and _FAMILIES.get(PurePosixPath(change.path).suffix) in named.get(file_class(change.path), ())
        and change.path not in ran
    ][:_LISTED_AT_MOST]


def _families(paths: Iterable[str]) -> set[str]:
    return {_FAMILIES[suffix] for path in paths if (suffix := PurePosixPath(path).suffix) in _FAMILIES}


def outcomes(verdict: Verdict, seen: SeenTests) -> tuple[CommandRun, ...]:
    """How each command ended: failed where a test of it fails, or its results cannot be believed."""
    failing = {*verdict.receipt.failing}
    problems = [*verdict.problems]
    made = []
    for run in verdict.runs["new"]:
        said = shlex.join(run.argv)
        own = [one for one in problems if one.startswith(said)]
        bad = [case for case in run.suite.cases if case.id in failing]
        made.append((run, bad, own))
        problems = [one for one in problems if one not in own]
    flaky = {*verdict.receipt.flaky}
    return tuple(
        _command(run, bad, [*own, *(problems if number == 0 else [])], seen, flaky)
        for number, (run, bad, own) in enumerate(made)
    )


def _command(
    run: execution.SuiteRunRecord, bad: Sequence[Case], problems: Sequence[str], seen: SeenTests, flaky: Collection[str]
) -> CommandRun:
    seconds = run.suite.seconds
    if not bad and not problems:
        return CommandRun(run.argv, ProofStatus.PROVEN, run.status, seconds, "", _counted(run, flaky))
    text = _refusal(bad, problems, run.output.decode("utf-8", "replace"), seen)
    return CommandRun(run.argv, ProofStatus.FAILED, run.status, seconds, text)


def _counted(run: execution.SuiteRunRecord, flaky: Collection[str]) -> str:
    if not run.suite.listed:
        return ""
    passed = len(run.suite.ended(CaseOutcome.PASSED))
    failed = run.suite.ended(*BAD)
    shaky = failed & {*flaky}
    counted = {" failed as before": len(failed - shaky), " failed at first and passed alone": len(shaky)}
    return f"{passed} passed" + "".join(f", {number}{what}" for what, number in counted.items() if number)


def _refusal(bad: Sequence[Case], problems: Sequence[str], output: str, seen: SeenTests) -> str:
    """Failing tests with their messages first, as much as fits; then what else is wrong, and what another try costs."""
    count = f"{len(bad)} test{'s' if len(bad) != 1 else ''} failed" if bad else "the results prove nothing"
    end = f"Try {seen.tries} on these files, {seen.seconds:.0f} s; each is counted."
    parts = [count, *(f"{_short(case.id)}\n{_message(case)}" for case in bad)]
    parts += [printable(one)[:_MESSAGE_CHARACTERS] for one in problems]
    if not bad:
        parts.append(printable(output[-_MESSAGE_CHARACTERS * 2 :]))
    kept: list[str] = []
    left = REFUSAL_BYTES - len(end) - 40
    for number, part in enumerate(parts):
        left -= len(part.encode("utf-8", "replace")) + 1
        if left < 0:
            kept.append(f"and {len(parts) - number} more")
            break
        kept.append(part)
    return "\n".join([*kept, end])


def _message(case: Case) -> str:
    if case.outcome is CaseOutcome.TIMEOUT:
        return "  did not end"
    lines = printable(case.message.strip()[-_MESSAGE_CHARACTERS:]).splitlines()
    return "\n".join(f"  {line}" for line in lines)


def _unavailable(verdict: Verdict) -> str:
    """Why nothing can be concluded; also where no test was seen to pass at all."""
    if verdict.unavailable:
        return verdict.unavailable[:_ID_CHARACTERS]
    passed = any(run.suite.ended(CaseOutcome.PASSED) for runs in verdict.runs.values() for run in runs)
    listed = any(run.suite.listed for runs in verdict.runs.values() for run in runs)
    return "no test passes in a clean checkout, with the change or without it" if listed and not passed else ""


def _only_status(verdict: Verdict) -> bool:
    """Whether no run named a test, and none should have."""
    listed = any(run.suite.listed for runs in verdict.runs.values() for run in runs)
    return not listed and not any(run.contradiction for run in verdict.runs["new"])


def _notes(verdict: Verdict) -> list[str]:
    left_out = [f"run '{name}': {why}" for name, why in verdict.receipt.not_run.items()]
    return [printable(text)[:_ID_CHARACTERS] for text in (*verdict.notes, *left_out)][:_NOTES_AT_MOST]


def _printed_by(runs: Sequence[execution.SuiteRunRecord]) -> str:
    cases = [case for run in runs for case in run.suite.cases]
    passed = sum(case.outcome is CaseOutcome.PASSED for case in cases)
    seconds = sum(run.suite.seconds for run in runs)
    return f"{passed} of {len(cases)} passed, {seconds:.1f} s"


def _short(text: str) -> str:
    return printable(text)[:_ID_CHARACTERS]
