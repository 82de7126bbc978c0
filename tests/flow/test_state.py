"""SessionState as a checkpoint: everything comes back, nothing foreign is obeyed, and it stays under 256 KB (SPEC 7)."""

import hashlib
import json
import zlib
from base64 import b85encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from code_intel_server.errors import Unavailable
from code_intel_server.flow.access import ACCESS, Access, Group, blocked_by
from code_intel_server.flow.encoding import size_at_most, size_in_bytes
from code_intel_server.flow.phases import Flags, Intent, Phase, Substep
from code_intel_server.flow.session import CHECKPOINT_LIMIT, SessionState, compress
from tests.flow.world import Session, World


def state(**changes: object) -> SessionState:
    """A small state."""
    base: dict[str, object] = {
        "session_id": "20260201_123456",
        "intent": Intent.MODIFY,
        "query": "q",
        "phase": Phase.Q1,
    }
    return SessionState(**(base | changes))


def as_read_from_disk(body: object) -> dict[str, JsonValue]:
    """What JSON on a disk makes of a body."""
    read: dict[str, JsonValue] = json.loads(json.dumps(body))
    return read


def test_a_session_in_the_middle_of_its_work_comes_back_whole() -> None:
    session = Session(Flags(no_doc=True, fast=True), world=World())
    session.frame()
    session.state.added_files["app.py"] = "holds the function to change"
    session.to_verify().send(passed=False, verifier_used="tests", details="fails")
    restored = SessionState.from_checkpoint(as_read_from_disk(session.state.to_checkpoint()))
    assert restored == session.state


def test_a_file_whose_name_is_no_utf_8_does_not_stop_a_session() -> None:
    many = state(explored_files=["caf\udce9.txt"], summaries={"step_05_EXPLORATION": "Found \udce9. " * 30_000})
    restored = SessionState.from_checkpoint(as_read_from_disk(many.to_checkpoint()))
    assert restored.explored_files == ["caf\udce9.txt"]


def test_the_layout_is_that_of_v1_13() -> None:
    body = state(
        summaries={"step_05_EXPLORATION": "Found it."}, phase=Phase.READY, substep=Substep.PLAN
    ).to_checkpoint()
    orchestrator = body["orchestrator_state"]
    assert isinstance(orchestrator, dict)
    assert orchestrator["phase_state"] == {"current_phase": "READY", "step": 12, "ready_substep": "plan"}
    assert orchestrator["counters"] == {
        "verification_failure_count": 0,
        "quality_revert_count": 0,
        "intervention_count": 0,
    }
    assert body["phase_payloads"] == {"step_05_EXPLORATION": {"summary": "Found it."}}


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: body.pop("orchestrator_state"),
        lambda body: body.update(orchestrator_state=[]),
        lambda body: body.update(phase_payloads={"step_05_EXPLORATION": "text"}),
        lambda body: body.update(phase_payloads={"step_05_EXPLORATION": {"summary": 3}}),
        lambda body: body["orchestrator_state"].update(phase_state=3),
        lambda body: body["orchestrator_state"].update(counters=None),
        lambda body: body["orchestrator_state"]["phase_state"].update(current_phase="NOWHERE"),
        lambda body: body["orchestrator_state"]["phase_state"].update(ready_substep="plan"),
        lambda body: body["orchestrator_state"]["counters"].update(intervention_count="2"),
        lambda body: body["orchestrator_state"].update(mood="good"),
        lambda body: body["orchestrator_state"].update(tasks=[{"id": "t", "description": "d", "status": "half"}]),
        lambda body: body["orchestrator_state"].pop("session_id"),
    ],
)
def test_any_other_shape_is_a_typed_error(damage: object) -> None:
    body = as_read_from_disk(state().to_checkpoint())
    damage(body)  # type: ignore[operator]
    with pytest.raises(Unavailable):
        SessionState.from_checkpoint(body)


def test_the_oldest_summaries_are_compressed_first_and_control_state_never() -> None:
    long = "First sentence. " + "More words about src/app.py:12 and more. " * 5000
    crowded = state(summaries={f"step_{n:02d}_X": long for n in range(2, 8)})
    body = crowded.to_checkpoint()
    assert len(json.dumps(body, ensure_ascii=False).encode()) <= CHECKPOINT_LIMIT
    payloads = body["phase_payloads"]
    assert isinstance(payloads, dict)
    first, last = payloads["step_02_X"], payloads["step_07_X"]
    assert isinstance(first, dict) and isinstance(last, dict)
    assert first["summary"] == "First sentence. src/app.py:12"
    assert last["summary"] == long
    assert SessionState.from_checkpoint(body).session_id == crowded.session_id


def test_even_when_every_summary_is_compressed_a_body_is_made() -> None:
    crowded = state(query="q" * (CHECKPOINT_LIMIT + 1), summaries={"step_02_X": "One. Two."})
    assert crowded.layout()["phase_payloads"] == {"step_02_X": {"summary": "One."}}
    restored = SessionState.from_checkpoint(as_read_from_disk(crowded.to_checkpoint()))
    assert restored == crowded.model_copy(update={"summaries": {"step_02_X": "One."}})


def test_a_draft_shares_no_collection_with_its_state() -> None:
    original = state()
    draft = original.draft()
    collections = [name for name, value in original.__dict__.items() if isinstance(value, (list, dict))]
    assert collections
    assert [name for name in collections if getattr(draft, name) is getattr(original, name)] == []


_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters()), _PLAIN, max_size=3))
def test_what_is_taken_to_fit_without_a_look_does(body: dict[str, JsonValue]) -> None:
    assert size_in_bytes(body) <= size_at_most(body)


def test_a_state_that_might_be_too_large_is_measured_and_kept_as_it_is() -> None:
    large = state(query="q" * (CHECKPOINT_LIMIT // 4), summaries={"step_02_X": "One. Two."})
    assert large.to_checkpoint()["phase_payloads"] == {"step_02_X": {"summary": "One. Two."}}


def test_the_size_of_what_python_cannot_write_itself_is_measured() -> None:
    body: dict[str, JsonValue] = {"phase": Phase.Q1, "text": "a"}
    assert size_at_most(body) == size_in_bytes(body)


def test_what_is_packed_and_damaged_is_a_typed_error() -> None:
    body = as_read_from_disk(state(query="q" * (CHECKPOINT_LIMIT + 1)).to_checkpoint())
    whole = str(body["packed"])
    for damaged in (3, "", "\x00", whole[:-20], whole[:40] + whole[60:], b85encode(zlib.compress(b"[]")).decode()):
        with pytest.raises(Unavailable):
            SessionState.from_checkpoint({**body, "packed": damaged})


def test_a_checkpoint_of_an_earlier_version_is_read() -> None:
    body = as_read_from_disk(state().to_checkpoint())
    orchestrator = body["orchestrator_state"]
    assert isinstance(orchestrator, dict)
    orchestrator["dirty_at_start"] = ["a.py"]
    assert SessionState.from_checkpoint(body) == state()


def noise(length: int, seed: int) -> str:
    """Words that cannot be compressed well."""
    rows = (hashlib.sha256(f"{seed}/{row}".encode()).hexdigest() for row in range(length // 64 + 1))
    return "".join(rows)[:length]


def test_two_thousand_items_and_twenty_plans_fit_and_come_back() -> None:
    """The most a plan can hold, reported with long reasons, sent back twenty times: still one checkpoint of 256 KB."""
    session = Session(Flags(no_intervention=True), world=World(documents=[])).to_ready_without_documents()
    names = {f"t{task}": [f"Item {task}/{n}" for n in range(50)] for task in range(40)}
    session.send(tasks=[{"id": name, "description": "Do it", "checklist": items} for name, items in names.items()])

    def report(name: str, items: list[str], seed: int) -> None:
        rows = [{"item": item, "status": "skipped", "reason": noise(200, seed + n)} for n, item in enumerate(items)]
        answer = session.send(task_id=name, checklist=rows, summary=f"{name} is done. {noise(2000, seed)}")
        assert answer["success"], answer

    for seed, (name, items) in enumerate(names.items()):
        report(name, items, seed * 1000)
    for turn in range(20):
        session.send(summary="All tasks are done.")
        details = noise(40_000, turn)
        session.send(passed=False, verifier_used="tests", details=details, summary=noise(3000, turn))
        assert _written(session.state) <= CHECKPOINT_LIMIT
        done = [{"id": t.id, "description": t.description, "status": "completed"} for t in session.state.tasks]
        fix = {"id": f"fix{turn}", "description": "Fix it", "checklist": ["Fix"]}
        assert session.send(tasks=[*done, fix], summary=noise(3000, turn))["success"]
        report(f"fix{turn}", ["Fix"], 90_000 + turn)
    restored = SessionState.from_checkpoint(as_read_from_disk(session.state.to_checkpoint()))
    assert restored.place == session.state.place
    assert [(t.id, t.status, t.failure_count) for t in restored.tasks] == [
        (t.id, t.status, t.failure_count) for t in session.state.tasks
    ]
    assert restored.counters == session.state.counters
    assert restored.trees == session.state.trees
    session.state = restored
    answer = session.send(summary="All tasks are done.")
    assert answer["success"], answer


def test_an_answer_that_was_too_large_to_keep_is_told_again_as_the_instruction_it_led_to() -> None:
    session = Session(world=World(documents=[])).to_ready_without_documents()
    session.plan("t1")
    assert session.state.last_submit is not None
    session.state.last_submit.response.clear()
    answer = session.plan("t1")
    assert (answer["success"], answer["step"]) == (True, 13)


def _written(kept: SessionState) -> int:
    return len(json.dumps(kept.to_checkpoint(), ensure_ascii=False).encode())


@given(st.text(max_size=600))
def test_compressing_never_grows_a_summary_much_and_keeps_its_references(text: str) -> None:
    summary = f"{text} see pkg/mod.py:3-9."
    short = compress(summary)
    assert "pkg/mod.py:3-9" in short
    assert len(short) <= len(summary) + 20


def test_one_endless_word_is_compressed_at_once() -> None:
    assert compress("a" * 60_000 + " see pkg/mod.py:3") == "a" * 200 + " pkg/mod.py:3"
    assert compress("It ends at :3 of nothing. Then a/b.py:7-9, again.") == "It ends at :3 of nothing. a/b.py:7-9"
    assert compress("a.b" * 30_000).count("a.b") <= 67


class TestAccess:
    def test_every_group_has_a_tool(self) -> None:
        assert {access.group for access in ACCESS.values()} == set(Group)

    @pytest.mark.parametrize("tool", ACCESS)
    def test_a_tool_runs_where_its_row_says_and_nowhere_else(self, tool: str) -> None:
        row: Access = ACCESS[tool]
        for phase in Phase:
            assert (blocked_by(tool, phase) is None) is (phase in row.phases)
        assert (blocked_by(tool, None) is None) is row.outside

    def test_lookups_run_in_every_phase_but_the_first_and_the_last(self) -> None:
        assert ACCESS["query"].phases == frozenset(Phase) - {Phase.BRANCH_INTERVENTION, Phase.MERGE}
