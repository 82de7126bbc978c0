"""What tests showed of a change: asked about once, kept with the reasons, shown in answers and trailers (SPEC 4, Receipts)."""

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from code_intel_server.errors import Rejected
from code_intel_server.flow.checks.judgement import REASON_LENGTH
from code_intel_server.flow.session import REASON_AT_MOST, SessionState
from code_intel_server.workspace.values import BESIDE, Proof, SeenTests, ToCommit, fail_to_pass_count

_NAMED_AT_MOST = 20
_SHOWN_AT_MOST = 10
_TRAILER_CHARACTERS = 200
_TIMES = re.compile(r"\b\d+(?:\.\d+)?\s?m?s\b|\b\d+:\d\d(?::\d\d)?(?:\.\d+)?\b")
"""What two runs of one command print differently; a count or a name is another finding."""
_OF_TESTS = "before this change only tests mentioned it"


def to_commit(state: SessionState, without: Sequence[str] = ()) -> ToCommit | None:
    """What a session is about to commit; None where it only verifies, or there is no commit to start from."""
    base = state.task_branch.base_oid if state.task_branch else state.head_at_start
    if state.flags.only_verify or not base:
        return None
    return ToCommit(base, state.trees.base, tuple(without))


def require_reasons(state: SessionState, proof: Proof, given: str) -> None:
    """Take the reason for what the tests show; what was answered before is not asked again, another finding is.

    Raises Rejected('common_failures.tests_need_reason') with all that needs one.
    """
    questions = proof.tests.questions if proof.tests else {}
    asked = [what for what, why in questions.items() if state.test_findings.get(what) != _TIMES.sub("", why)]
    if not asked:
        return
    reason = given.strip()
    if len(reason) < REASON_LENGTH:
        shown = [f"{what} ({questions[what]})" for what in asked]
        raise Rejected("common_failures.tests_need_reason", details={"tests": [*shown]}, tests=_joined(shown))
    state.test_reasons |= dict.fromkeys(asked, reason[:REASON_AT_MOST])
    state.test_findings |= {what: _TIMES.sub("", questions[what]) for what in asked}


def tests_fields(tests: SeenTests | None, reasons: Mapping[str, str]) -> dict[str, JsonValue]:
    """What an answer shows of the tests; nothing where nothing was to be committed."""
    if tests is None:
        return {}
    if not tests.seen:
        status = "exit status only: no test was seen by name, and none ran on the old code"
        return {"tests": f"unavailable: {tests.unavailable}" if tests.unavailable else status}
    fields: dict[str, JsonValue] = {"fail_to_pass": [], "pass_to_pass": _passed(tests)}
    with_reason = {what: reasons[what] for what in tests.questions if what in reasons}
    changed = {*tests.listed.get("broken", ())} & {*tests.listed.get("fail_to_pass", ())} & {*with_reason}
    for name, listed in tests.listed.items():
        ids = [id_ for id_ in listed if name != "broken" or id_ not in changed]
        cases: dict[str, list[str]] = {}
        for id_ in ids:
            cases.setdefault(_of_all_cases(id_), []).append(id_)
        shown = [*cases.items()][:_SHOWN_AT_MOST]
        more = tests.counts[name] - (len(listed) - len(ids)) - sum(len(own) for _, own in shown)
        rows = [own[0] if len(own) == 1 else f"{test} ({len(own)})" for test, own in shown]
        if ids:
            fields[name] = [*rows, *([f"and {more} more"] if more > 0 else [])]
    if with_reason:
        fields["with_a_reason"] = {
            what: f"{tests.questions[what]}: {why}" if what in changed else why for what, why in with_reason.items()
        }
    named = {"not_loaded": tests.not_loaded, "uncompared": tests.uncompared}
    fields |= {name: [*paths[:_SHOWN_AT_MOST]] for name, paths in named.items() if paths}
    if tests.notes:
        fields["notes"] = [*tests.notes]
    return {"tests": fields}


def _of_all_cases(test: str) -> str:
    """The id of a test without what tells its cases apart: `test_x[...]`."""
    path, _, case = test.partition("::")
    name, bracket, _ = case.partition("[")
    return f"{path}::{name}[...]" if bracket and test.endswith("]") else test


def test_trailers(
    tests: SeenTests | None, reasons: Mapping[str, str], of_files: Mapping[str, str] | None = None
) -> list[tuple[str, str]]:
    """What a commit says of its tests, and the reasons for files that may bear on them, which no run compared."""
    if tests is None:
        return []
    rows = [("Code-Intel-Uncompared", f"{path}: {' '.join(why.split())}") for path, why in (of_files or {}).items()]
    rows += [("Code-Intel-Uncompared", f"{path}: {_OF_TESTS}") for path in tests.uncompared]
    if not tests.seen:
        said = f"unavailable: {tests.unavailable}" if tests.unavailable else "exit status only"
        rows.append(("Code-Intel-Tests", " ".join(said.split())[:_TRAILER_CHARACTERS]))
    if tests.seen:
        if "red" in tests.runs or tests.counts["fail_to_pass"]:
            of_these = (tests.counts.get(name, 0) for name in ("new_names", "survived"))
            rows.append(("Code-Intel-Fail-To-Pass", fail_to_pass_count(tests.counts["fail_to_pass"], *of_these)))
        if tests.passed_before:
            rows.append(("Code-Intel-Pass-To-Pass", _passed(tests)))
        counted = (("Code-Intel-Flaky", "flaky"), ("Code-Intel-Insensitive", "insensitive"))
        rows += [(trailer, str(tests.counts[name])) for trailer, name in counted if tests.counts.get(name)]
    if tests.not_loaded:
        rows.append(("Code-Intel-Not-Loaded", _joined(tests.not_loaded)[:_TRAILER_CHARACTERS]))
    given = [reasons[what] for what, why in tests.questions.items() if what in reasons and not why.startswith(BESIDE)]
    if given:
        why = "; ".join(dict.fromkeys(" ".join(reason.split()) for reason in given))
        rows.append(("Code-Intel-Original-Tests", f"{len(given)} with a reason: {why[:_TRAILER_CHARACTERS]}"))
    return rows


def _passed(tests: SeenTests) -> str:
    return f"{tests.counts['pass_to_pass']} of {tests.passed_before}"


def _joined(shown: Sequence[str]) -> str:
    more = len(shown) - _NAMED_AT_MOST
    return "; ".join(shown[:_NAMED_AT_MOST])[:1500] + (f"; and {more} more" if more > 0 else "")
