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
from tests.e2e.driver import Server, repository

Fields = dict[str, Any]


def started(
    root: Path, answer: Callable[[str], ElicitResult | None] | None, mode: str = "legacy", **flags: bool
) -> tuple[Fields, list[str]]:
    """The answer to start_session with `quick` or other flags, and what the user was asked. Where `answer` is None the form stays open."""
    asked: list[str] = []

    async def form(_context: object, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams) and answer is not None
        assert params.requested_schema["properties"]["choice"]["enum"] == ["yes", "no"]
        asked.append(params.message)
        said = answer(params.message)
        if said is None:
            await anyio.sleep_forever()
        assert said is not None
        return said

    async def talk() -> Fields:
        late = LazyTools(root)
        try:
            callback = form if answer else None
            async with Client(server.build(late), mode=mode, elicitation_callback=callback) as client:  # type: ignore[arg-type]
                said = await client.call_tool(
                    "start_session", {"query": "Say goodbye.", "flags": flags or {"quick": True}}
                )
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


def test_a_client_whose_form_nobody_closes_holds_the_session_up_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_ANSWER_SECONDS", 0.05)
    found, asked = started(root, lambda _question: None, fast=True, no_verify=True)
    assert found["decisions"] == {"--fast": "said by the agent", "--no_verify": "said by the agent"}
    assert len(asked) == 1


class Lying(Server):
    """Its client claims every capability, and gives `reply` to whatever it is asked."""

    def __init__(self, root: Path, reply: Fields) -> None:
        self._reply, self.asked = reply, list[str]()
        super().__init__(root)

    def _shake_hands(self) -> None:
        capabilities = {
            "elicitation": {"form": {}, "url": {}},
            "sampling": {},
            "roots": {"listChanged": True},
            "x": [1],
        }
        client = {"name": "claude-code", "version": "-1"}
        self._rpc("initialize", protocolVersion="2025-06-18", capabilities=capabilities, clientInfo=client)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _read(self) -> Fields:
        message = super()._read()
        if "method" in message and "id" in message:
            self.asked.append(message["method"])
            self._send({"jsonrpc": "2.0", "id": message["id"], **self._reply})
        return message


@pytest.mark.parametrize("reply", [
    {"error": {"code": -32601, "message": "Method not found"}},
    {"result": {}}, {"result": {"action": "agree", "content": {"choice": "yes"}}},
    {"result": {"action": "accept", "content": {"choice": ["yes"]}}}, {"result": {"action": "accept", "content": "yes"}},
    {"result": {"action": "decline", "content": {"choice": "yes"}}},
], ids=["no method", "nothing", "another action", "a list", "no object", "declined"])  # fmt: skip
def test_a_client_that_lies_about_its_capabilities_costs_a_mark_and_nothing_else(root: Path, reply: Fields) -> None:
    with Lying(root, reply) as client:
        found = client.call("start_session", query="Say goodbye.", flags={"quick": True})
        assert (found["decisions"], client.asked) == ({"--quick": "said by the agent"}, ["elicitation/create"])
        assert client.call("get_session_status")["phase"] == found["phase"]
