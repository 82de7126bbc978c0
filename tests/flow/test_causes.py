"""What a phase's own message says about a failure of git below it: the cause, and behind it what to do about that (SPEC 4.7)."""

import pytest

from code_intel_server.contract.loader import Contract
from code_intel_server.errors import CodeIntelError, Rejected, UserActionNeeded
from code_intel_server.flow.responses import message_of

CONTRACT = Contract.load(None)
AWAY = UserActionNeeded("tool_errors.git.head_moved", output="HEAD is on main: run `git switch task`.")


def said(key: str, cause: Exception | None) -> str:
    """The message and the instruction of a phase's error that `cause` led to."""
    error = UserActionNeeded(key, errors=str(getattr(cause, "params", {}).get("output")), output="x", choice="merge")
    error.__cause__ = cause
    message = message_of(CONTRACT, error)
    return f"{message.text} {message.instruction}"


def test_the_remedy_of_a_cause_follows_it() -> None:
    text = said("failures.MERGE.merge_failed", AWAY)
    assert "run `git switch task`. Ask the user to do so, then try again. Files and base branch are unchanged." in text


def test_where_the_message_names_the_cause_the_instruction_begins_with_its_remedy() -> None:
    text = said("failures.BRANCH_INTERVENTION.branch_operation_failed", AWAY)
    assert "run `git switch task`. Ask the user to do so, then try again. Branch operation failed." in text


@pytest.mark.parametrize(
    "cause",
    [
        None,
        OSError("a disk"),
        Rejected("failures.MERGE.merge_failed", errors="x"),
        UserActionNeeded("tool_errors.git.switch_failed", output="error: x"),
        UserActionNeeded("tool_errors.start_session.query_required"),
    ],
)
def test_a_cause_without_a_remedy_of_its_own_adds_none(cause: Exception | None) -> None:
    error: CodeIntelError = UserActionNeeded("tool_errors.git.switch_failed", output="x")
    plain = CONTRACT.message(error.key, error.params)
    error.__cause__ = cause
    assert message_of(CONTRACT, error) == plain
