"""Insights over all sessions: what fails, where time goes, whatever state the logs are in (SPEC 10)."""

import json
from pathlib import Path

import pytest

from code_intel_server.cli import insights
from tests.cli.helpers import Said, fingerprint, session, state
from tests.cli.test_report import ANSI, HOSTILE, assert_harmless, text_of
from tests.e2e.driver import repository

AT = "2026-01-01T10:00:{:02}+00:00"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".code-intel/logs").mkdir(parents=True)
    return tmp_path


def decisions(root: Path, session_id: str, *rows: dict[str, object]) -> None:
    """Add a session's decisions to the log."""
    start = {"what": "start", "step": 4, "at": AT.format(0)}
    lines = [
        json.dumps({"schema": 1, "session_id": session_id, "at": AT.format(n), **row})
        for n, row in enumerate((start, *rows))
    ]
    with (root / ".code-intel/logs/decisions.jsonl").open("a") as log:
        log.write("\n".join(lines) + "\n")


def submit(step: int, event: str, next_step: int) -> dict[str, object]:
    return {"what": "submit", "verdict": "accepted", "step": step, "event": event, "next_step": next_step}


def refusal(step: int, key: str) -> dict[str, object]:
    return {"what": "submit", "verdict": "refused", "step": step, "reason": key, "next_step": step}


def as_json(root: Path, capsys: Said) -> dict[str, object]:
    assert insights.main(["--json", "--project", str(root)]) == 0
    counted: dict[str, object] = json.loads(capsys.readouterr().out)
    return counted


def test_no_sessions_are_said_in_every_form(root: Path, capsys: Said) -> None:
    assert as_json(root, capsys)["sessions"] == 0
    assert insights.main(["--project", str(root)]) == 0
    assert "There is no session yet." in capsys.readouterr().out
    assert insights.main(["--html", "--out", "-", "--project", str(root)]) == 0
    assert_harmless(capsys.readouterr().out)


def test_a_page_goes_through_no_link_that_a_repository_brought(root: Path, tmp_path: Path, capsys: Said) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "insights.html").write_text("the user's\n")
    (root / ".code-intel/logs").mkdir(exist_ok=True)
    (root / ".code-intel/logs/reports").symlink_to(elsewhere)
    assert insights.main(["--html", "--project", str(root)]) == 1
    assert "a link leads out of" in capsys.readouterr().err
    assert (elsewhere / "insights.html").read_text() == "the user's\n"


def test_refusals_loops_and_time_are_counted_by_step(root: Path, capsys: Said) -> None:
    key = "failures.READY.checklist_evidence_empty"
    decisions(
        root, "a", submit(4, "ok", 5), refusal(13, key), submit(13, "reported_last", 14), submit(15, "failed", 12)
    )
    decisions(root, "b", submit(4, "ok", 5), refusal(13, key), refusal(4, "other"))
    counted = as_json(root, capsys)
    assert counted["sessions"] == 2
    assert counted["sessions_with_loops"] == 1
    assert counted["loops"] == {"verification failed": 1}
    assert counted["refusals"] == {key: 2, "other": 1}
    assert counted["evidence_failures"] == {key: 2}
    steps = {row["step"]: row for row in counted["steps"]}  # type: ignore[attr-defined]
    assert (steps[13]["refused"], steps[13]["seconds"]) == (2, 2.0)
    assert (steps[15]["loops"], steps[15]["fails_most_on"]) == (1, "verification failed")


def test_people_read_reasons_and_no_keys(root: Path, capsys: Said) -> None:
    keys = (
        "failures.READY.checklist_evidence_unchanged",
        "failures.READY.proof_of_ours",
        "common_failures.field_invalid",
    )
    decisions(root, "a", *(refusal(13, key) for key in keys), submit(15, "failed", 12), submit(18, "issues", 12))
    said = _both(root, capsys)
    for words in (
        "Evidence … of item … was not changed in this session",
        "proof of ours",  # of a contract that is not ours: the end of its key
        "Field invalid",  # where the message says nothing but its values
        "verification failed",
        "quality issues",
    ):
        assert all(words in one for one in said), words
    assert not [one for one in said if "failures." in one or "READY" in one]


def _both(root: Path, capsys: Said) -> tuple[str, str]:
    """What the text says, and the page."""
    assert insights.main(["--project", str(root)]) == 0
    told = capsys.readouterr().out
    assert insights.main(["--html", "--out", "-", "--project", str(root)]) == 0
    page = capsys.readouterr().out
    assert_harmless(page)
    return told, text_of(page)


def test_sessions_are_named_by_their_requests_and_link_to_their_reports(
    root: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept = {"query": "Return two", "started_at": AT.format(0)}
    record = {"session_id": "../../another", "end": "SESSION_COMPLETE", "state": {"orchestrator_state": kept}}
    (root / ".code-intel/logs/sessions").mkdir()
    (root / ".code-intel/logs/sessions/20260201_123456.json").write_text(json.dumps(record))
    gone = {"session_id": "20260101_000000", "outcome": "abandoned", "query": "Return three"}
    (root / ".code-intel/logs/outcomes.jsonl").write_text(json.dumps(gone) + "\n")
    decisions(root, "20260201_123456", submit(4, "ok", 5))
    assert insights.main(["--html", "--project", str(root)]) == 0
    page = Path(capsys.readouterr().out.strip())
    content = page.read_text(encoding="utf-8")
    assert '<a href="20260201_123456.html">Return two</a>' in content
    assert "Return three abandoned 2026-01-01 00:00" in text_of(content)
    assert "Return two" in text_of((page.parent / "20260201_123456.html").read_text(encoding="utf-8"))
    assert "20260201_123456" not in text_of(content)
    elsewhere = tmp_path / "mine.html"
    assert insights.main(["--out", str(elsewhere), "--project", str(root)]) == 0
    assert '<a href=".code-intel/logs/reports/20260201_123456.html">' in elsewhere.read_text(encoding="utf-8")


def test_what_the_user_says_counts_more_than_how_a_session_ended(root: Path, capsys: Said) -> None:
    rows = [("a", "forced"), ("a", "success"), ("a", "forced"), ("b", "abandoned")]
    log = root / ".code-intel/logs/outcomes.jsonl"
    log.write_text("".join(json.dumps({"session_id": name, "outcome": said}) + "\n" for name, said in rows))
    assert as_json(root, capsys)["trend"] == [
        {"session_id": "a", "request": "", "outcome": "success"},
        {"session_id": "b", "request": "", "outcome": "abandoned"},
    ]


def test_torn_foreign_and_newer_lines_are_said_and_cost_only_themselves(root: Path, capsys: Said) -> None:
    decisions(root, "a", submit(4, "ok", 5))
    decisions(root, "a", {**submit(5, "ok", 6), "schema": 7, "new": {"x": 1}})
    with (root / ".code-intel/logs/decisions.jsonl").open("a") as log:
        log.write('["a list"]\n{"what": "submit", "session_id": "a", "ver')
    counted = as_json(root, capsys)
    assert counted["sessions"] == 1
    assert "2 line(s) of the decision log are torn or foreign and were passed over." in str(counted["notes"])
    assert "1 line(s) of the decision log are of a newer version" in str(counted["notes"])


def test_a_gigabyte_of_log_is_read_from_its_end_only(root: Path, capsys: Said) -> None:
    log = root / ".code-intel/logs/decisions.jsonl"
    with log.open("wb") as file:
        file.truncate(1024**3)  # sparse
        file.seek(1024**3)
        file.write(b"\n")
    decisions(root, "z", submit(4, "ok", 5))
    counted = as_json(root, capsys)
    assert counted["sessions"] == 1
    assert "The decision log is long" in str(counted["notes"])


def test_hostile_texts_do_nothing_in_text_and_page(root: Path, capsys: Said) -> None:
    decisions(root, HOSTILE, refusal(4, HOSTILE))
    (root / ".code-intel/logs/outcomes.jsonl").write_text(
        json.dumps({"session_id": HOSTILE, "outcome": HOSTILE, "failures": [HOSTILE, f"two\nlines {ANSI}"]}) + "\n"
    )
    assert insights.main(["--project", str(root)]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert insights.main(["--html", "--project", str(root)]) == 0
    content = Path(capsys.readouterr().out.strip()).read_text(encoding="utf-8")
    assert_harmless(content)
    assert "&lt;script&gt;" in content


def test_a_session_that_is_not_over_is_counted_and_said_and_left_alone(
    tmp_path: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "repo", {"app.py": "def main():\n    return 1\n"})
    (root / ".code-intel/logs").mkdir(parents=True)
    decisions(root, "20260201_123456", submit(4, "ok", 5))
    for live, said in ((True, "going on"), (False, "interrupted")):
        with session(root, state(), live=live):
            before = fingerprint(root / ".code-intel/sessions")
            assert as_json(root, capsys)["sessions"] == 1
            note = f"“Say goodbye too.” is {said} at step 13, Implementation: what it did so far is counted."
            assert all(note in one for one in _both(root, capsys))
            assert fingerprint(root / ".code-intel/sessions") == before
