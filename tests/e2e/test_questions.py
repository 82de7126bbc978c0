"""Where a client has a form, the server asks the user itself what nobody heard them say (SPEC 12)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import ElicitRequestFormParams, ElicitResult

from code_intel_server import server
from code_intel_server.tools.lazy import LazyTools
from tests.e2e.driver import repository

Fields = dict[str, Any]


def started(root: Path, answer: Callable[[str], ElicitResult] | None, mode: str = "legacy") -> tuple[Fields, list[str]]:
    """The answer to start_session with `quick`, and what the user was asked."""
    asked: list[str] = []

    async def form(_context: object, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams) and answer is not None
        assert params.requested_schema["properties"]["choice"]["enum"] == ["yes", "no"]
        asked.append(params.message)
        return answer(params.message)

    async def talk() -> Fields:
        late = LazyTools(root)
        try:
            callback = form if answer else None
            async with Client(server.build(late), mode=mode, elicitation_callback=callback) as client:  # type: ignore[arg-type]
                said = await client.call_tool("start_session", {"query": "Say goodbye.", "flags": {"quick": True}})
        finally:
            late.close()
        found: Fields = json.loads(said.content[0].text)  # type: ignore[union-attr]
        return found

    return anyio.run(talk), asked


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"app.py": "x = 1\n"})


def test_a_flag_that_nobody_heard_is_asked_about_and_the_answer_is_the_users(root: Path) -> None:
    answer, asked = started(root, lambda _question: ElicitResult(action="accept", content={"choice": "yes"}))
    assert answer["decisions"] == {"--quick": "answered by the user"}
    assert len(asked) == 1 and "quick" in asked[0]


def test_a_flag_that_the_user_does_not_want_is_left_out(root: Path) -> None:
    answer, _ = started(root, lambda _question: ElicitResult(action="accept", content={"choice": "no"}))
    assert answer["success"] and "decisions" not in answer and "skipped_gates" not in answer


@pytest.mark.parametrize("said", [
    ElicitResult(action="decline"), ElicitResult(action="cancel"), ElicitResult(action="accept"),
    ElicitResult(action="accept", content={"choice": "burn it"}), None,
])  # fmt: skip
def test_what_nobody_answers_properly_is_taken_as_the_agent_says_it(root: Path, said: ElicitResult | None) -> None:
    def answer(_question: str) -> ElicitResult:
        if said is None:
            raise ValueError("a form that breaks")
        return said

    found, asked = started(root, answer)
    assert (found["decisions"], len(asked)) == ({"--quick": "said by the agent"}, 1)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_without_a_form_is_asked_nothing(root: Path, mode: str) -> None:
    found, asked = started(root, None, mode)
    assert (found["decisions"], asked) == ({"--quick": "said by the agent"}, [])
