"""A session that lost its task branch: what its refusals say leads on."""

from dataclasses import replace

import pytest
from tests.tools.test_writing import REVIEW, Client, client

__all__ = ["client"]


@pytest.mark.parametrize("committed", [False, True])
def test_a_new_session_begins_with_clean_as_the_refusal_says(client: Client, *, committed: bool) -> None:
    client.reported()
    client.accepted()
    client.accepted(passed=True, verifier_used="generic")
    client.review()
    payload = {"reviewed_files": ["app.py"], **REVIEW}
    if committed:
        client.accepted(**payload)
        payload = {}
    active = client.current.sessions.active
    assert active is not None
    state = active.state.draft()
    state.task_branch = None  # as a damaged checkpoint would have it
    client.current.sessions.active = replace(active, state=state)
    answer = client.submit(**payload)
    assert answer["error"] == "branch_manager_not_found" and "`/code --clean`" in answer["message"]
    started = client.current.sessions.start("Make main return two", "MODIFY", {"clean": True, "no_doc": True})
    assert started["success"], started
