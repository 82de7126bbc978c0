"""Whatever a client submits in whatever phase: a typed refusal, the session unchanged, the server alive (P4; SPEC 4)."""

import json
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.faults.payloads import SPOKEN, Store, alike, broken, fits_any, spoken
from benchmarks.faults.results import Record, kept, size
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from code_intel_server.flow.dispatch import submit
from code_intel_server.flow.phases import GateLevel, Intent
from tests.e2e.driver import Server, foreign_repository
from tests.e2e.scenario import Scenario
from tests.faults.test_rule_machine import SessionMachine

PLACES = 17
"""Phases and substeps: each is attacked."""


class Attack:
    """Submits hostile payloads before every move of a session that touches all phases."""

    def __init__(self, root: Path, count: int) -> None:
        self.root, self.count = root, count
        self.sent: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    def run(self) -> None:
        """The whole session, attacked everywhere, comes to its end."""
        scenario = Scenario(self.root)
        scenario.prepare()
        with Server(self.root) as server:
            scenario.start(server)
            for name, move in scenario.moves():
                self._attack(server)
                answer = move(server)
                assert answer["success"], (name, answer)
            assert answer["phase"] == "SESSION_COMPLETE"

    def _attack(self, server: Server) -> None:
        place = server.call("get_session_status")
        phase, known = str(place["phase"]), f"{place['phase']} {place['step']}"
        if self.sent[known] >= self.count:
            return
        before = self._checkpoints()

        @settings(
            max_examples=self.count,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.one_of(broken(self.root), spoken(phase, self.root), _of_another(phase, self.root)))
        def submit(data: object) -> None:
            self.sent[known] += 1
            whole = server.answer_to("submit_phase", data=data)
            assert "Traceback" not in json.dumps(whole)
            if "error" in whole:  # what is no text or too deep is refused before it is a call
                assert whole["error"]["code"] == -32700
                self.errors["unreadable"] += 1
                return
            result = whole["result"]
            assert not result.get("isError"), (known, data, result)
            answer = result["structuredContent"]
            assert answer["success"] is False, (known, data)
            assert answer["error"] and answer["message"]
            assert (answer["phase"], answer["step"]) == (place["phase"], place["step"]), (known, data)
            self.errors[str(answer["error"])] += 1

        submit()
        assert self._checkpoints() == before
        after = server.call("get_session_status")
        assert {**after, "compaction_count": 0} == {**place, "compaction_count": 0}

    def _checkpoints(self) -> dict[str, bytes]:
        folder = self.root / ".code-intel" / "sessions"
        return {path.name: path.read_bytes() for path in folder.glob("*.json")}


def _of_another(phase: str, root: Path) -> st.SearchStrategy[object]:
    """What another phase would take; never one whose fields also fit here."""
    if fits_any(phase):
        return spoken(phase, root)
    others = [other for other in SPOKEN if other not in alike(phase)]
    return st.sampled_from(others).flatmap(lambda other: spoken(other, root))


def attacked(folder: Path, count: int) -> Attack:
    """A session in which every place is attacked `count` times."""
    root = foreign_repository(folder / "repo")
    (root / ".code-intel").mkdir()
    (root / ".code-intel" / "config.json").write_text(json.dumps({"sync_on_start": False}))
    attack = Attack(root, count)
    attack.run()
    return attack


@pytest.mark.timeout(300)
def test_hostile_payloads_in_every_phase_are_refused_and_change_nothing(tmp_path: Path) -> None:
    attack = attacked(tmp_path, 20)
    assert len(attack.sent) >= PLACES, sorted(attack.sent)
    assert {"payload_mismatch", "payload_too_large", "invalid_data", "unreadable"} <= set(attack.errors)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_five_hundred_hostile_payloads_in_every_phase_are(tmp_path: Path) -> None:
    attack = attacked(tmp_path, 500)
    sent = sum(attack.sent.values())
    kept("payloads", {"payloads": sent, "places": len(attack.sent), "errors": dict(attack.errors.most_common())})
    assert sum(attack.sent.values()) >= 500 * PLACES


def on_the_way(machine: SessionMachine) -> Iterator[str]:
    """Each place of a session that goes through every phase, once, while the session stands there."""
    machine.start(Intent.IMPLEMENT, GateLevel.FULL, True, set(), 1)
    seen: set[str] = set()
    while machine.session is not None:
        at = machine.model.at
        if at not in seen:
            seen.add(at)
            yield at
        enough = "VERIFY_INTERVENTION" in seen
        getattr(machine, "_" + at.split()[0].lower())(at != "QUALITY_REVIEW" and enough, 5)
        machine.agree()


def test_hundreds_of_thousands_of_payloads_in_memory_are_refused_and_change_nothing(
    tmp_path: Path, record_property: Record
) -> None:
    """The same words against the state machine alone, ten thousand in each place (p99 below 200 ms)."""
    machine, store, each = SessionMachine(), Store(tmp_path, size(100, 500)), size(100, 10_600)
    places, took = [], array("d")
    for at in on_the_way(machine):
        places.append(at)
        session = machine.session
        assert session is not None
        before = session.state.model_dump_json()
        for data in store.payloads(at.split()[0], each):
            began = time.perf_counter()
            last = submit(session.state, data, session.contract, session.ports)
            took.append(time.perf_counter() - began)
            assert last.state is None, (at, data)
            answer = last.response
            assert answer["success"] is False and answer["error"] and answer["message"], (at, data)
        assert session.state.model_dump_json() == before
    assert len(places) == 18, places
    assert sorted(took)[len(took) * 99 // 100] < 0.2
    record_property("executions", len(took))
