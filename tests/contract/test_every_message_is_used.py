"""Every message of the contract is used by the code, or stands in the list of retired ones with its reason (SPEC 5)."""

from pathlib import Path

import pytest

import code_intel_server
from code_intel_server.contract.loader import Contract
from code_intel_server.contract.retired import RETIRED

SOURCE = Path(code_intel_server.__file__).parent
TEXT = "".join(path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py")) if path.name != "retired.py")

# Keys that the code puts together: the part it writes out, for the part that it computes.
COMPUTED = {
    "tool_errors.check_phase_necessity.": "tool_errors.check_phase_necessity.{gate.",
    "query_frame_hints.": "query_frame_hints.{name}_missing",
    "tool_errors.git.": "tool_errors.git.",
    "tool_errors.get_session_status.checkpoint_": "tool_errors.get_session_status.",
    "success.Q3.investigation_complete": "success.{draft.phase}.investigation_complete",
    "success.IMPACT_ANALYSIS.investigation_complete": "success.{draft.phase}.investigation_complete",
    "failures.READY.phase_mismatch_": "failures.READY.phase_mismatch_{",
    "failures.POST_IMPL_VERIFY.tree_changed": "failures.POST_IMPL_VERIFY.{which}",
    "failures.POST_IMPL_VERIFY.unexplored_changes": "failures.POST_IMPL_VERIFY.{which}",
    "lanes.": "lanes.{why}",
    "questions.": "questions.{what}",
    "warnings.unproven": "warnings.{run.outcome}",
    "warnings.waived": "warnings.{run.outcome}",
}


def is_used(key: str) -> bool:
    """Whether the code writes a key out, or the family it belongs to and its last part."""
    if f'"{key}"' in TEXT:
        return True
    family = next((prefix for prefix in COMPUTED if key.startswith(prefix)), None)
    return family is not None and COMPUTED[family] in TEXT


@pytest.mark.parametrize("key", sorted(Contract.load(None).texts.messages))
def test_a_message_is_used_or_retired_and_never_both(key: str) -> None:
    assert is_used(key) is (key not in RETIRED), key
