"""Receipts: which tests passed before a change and pass after it, seen by running them in clean checkouts.

A session asks `SessionRuns`; `Notary` judges any two states of a project, and `junit` and `sarif` write its verdict for others.
"""

from code_intel_server.receipts.compare import ALL_SURVIVED, NONE_RED, RunComparison
from code_intel_server.receipts.exports import UNEXPLAINED, junit, sarif
from code_intel_server.receipts.notary import STALL_SECONDS, Notary, Verdict
from code_intel_server.receipts.session_runs import SessionRuns

__all__ = [
    "ALL_SURVIVED",
    "NONE_RED",
    "STALL_SECONDS",
    "UNEXPLAINED",
    "Notary",
    "RunComparison",
    "SessionRuns",
    "Verdict",
    "junit",
    "sarif",
]
