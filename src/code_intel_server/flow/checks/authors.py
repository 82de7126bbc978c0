"""Whose word a decision is: the user's, as far as a hook or a question shows it, or the agent's (SPEC 12).

A mark changes no verdict: without a hook every decision is taken as before, and marked as the agent's.
"""

import shlex
from collections.abc import Sequence

from code_intel_server.errors import Rejected
from code_intel_server.flow.ports import Ports
from code_intel_server.flow.session import SessionState
from code_intel_server.workspace.values import Proof, ProofStatus


def decided(state: SessionState, ports: Ports, what: str, choice: str, choices: Sequence[str]) -> str:
    """What the user decided, kept in the state with whose word it is: `choice`, unless the user was asked and said otherwise."""
    answer, author = ports.user.decides(what, choice, choices)
    state.decisions[f"{what.replace('_', ' ')}: {answer}"] = str(author)
    return answer


def keep_waivers(state: SessionState, ports: Ports, proof: Proof) -> None:
    """Keep whose word each waiver of a proof is.

    Raises Rejected('common_failures.waiver_denied') where the user was asked and has waived nothing: the command runs then.
    """
    for run in proof.runs:
        what = f"waiver of {' '.join(run.argv)}"
        if run.outcome is not ProofStatus.WAIVED or what in state.decisions:
            continue
        author = ports.user.waived(state.session_id, run)
        if author is None:
            raise Rejected("common_failures.waiver_denied", command=shlex.join(run.argv))
        state.decisions[what] = str(author)
