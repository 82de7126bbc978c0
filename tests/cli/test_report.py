"""The report of a session: whole, harmless whatever a session holds, and there for every kind of session (SPEC 12)."""

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from code_intel_server.cli import report, timeline
from code_intel_server.cli.page import esc, page
from code_intel_server.cli.record import Visit, course, duration, taken_apart
from code_intel_server.cli.report_page import report_page
from tests.e2e.driver import Server, repository

SCRIPT = "<script>alert(1)</script>"
ANSI = "\x1b[31mred\x1b]0;title\x07"
HOSTILE = f"{SCRIPT}\"'><img src=x onerror=alert(1)>&amp;{ANSI}\u202egnp"
PATH = "src/<img src=x onerror=alert(1)>.py"


class Seen(HTMLParser):
    """The elements and attributes of a page, and its text by element."""

    VOID = frozenset({"meta", "br", "wbr"})

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def assert_harmless(content: str) -> Seen:
    """No script, nothing from elsewhere, no event handler, no control character, every element closed."""
    seen = Seen(content)
    assert seen.open == []
    assert not {"script", "img", "iframe", "link", "object", "embed", "form", "base"} & set(seen.tags)
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in {"src", "style"}]
    assert all((value or "").startswith("#") for name, value in seen.attributes if name == "href")
    assert "\x1b" not in content
    assert "\u202e" not in content
    assert "default-src 'none'" in content
    return seen


@pytest.fixture(scope="module")
def looped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a finished session: a refusal, a failed verification, hostile texts, a commit."""
    folder = tmp_path_factory.mktemp("report")
    root = repository(folder / "repo", {PATH: "def main():\n    return 1\n"})
    with Server(root) as server:
        server.call(
            "start_session", query=f"Return two {HOSTILE}", intent="MODIFY", flags={"fast": True, "no_doc": True}
        )
        server.accepted(action_type="change", target_symbols=["main"], summary=HOSTILE)
        server.call("add_explored_files", paths=[PATH], reason=f"Holds the function {HOSTILE}")
        server.refused(tasks=[])
        for number, name in enumerate(("t1", "t2")):
            done = [{"id": "t1", "description": HOSTILE, "status": "completed"}] if number else []
            task = {"id": name, "description": HOSTILE, "status": "pending", "checklist": [f"Item {name} {HOSTILE}"]}
            server.accepted(tasks=[*done, task])
            (root / PATH).write_text(f"def main():\n    return '{SCRIPT}{ANSI}{number}'\n")
            assert server.call("check_write_target", path=PATH)["allowed"]
            item = {
                "item": f"Item {name} {HOSTILE}",
                "status": "done",
                "evidence": f"{PATH}:2",
                "reason": "Now it is right.",
            }
            server.accepted(task_id=name, checklist=[item], tools_used=["check_write_target"], summary=HOSTILE)
            server.accepted(summary=HOSTILE)
            server.accepted(passed=bool(number), verifier_used="generic", details=f"It fails. {HOSTILE}")
        rows = server.call("review_changes")["results"]
        server.accepted(
            reviewed_files=[row["path"] for row in rows],
            commit_message="Return two",
            review_prompt_used="garbage_detection",
            tools_used=["review_changes"],
        )
        assert server.accepted(summary="Merged.")["phase"] == "SESSION_COMPLETE"
    return root


def written(root: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert report.main([*arguments, "--project", str(root), "--out", "-"]) == 0
    return capsys.readouterr().out


def test_a_report_shows_course_loop_tasks_evidence_and_diff(looped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = written(looped, capsys)
    assert "verification failed" in content
    assert "back from step 15 to 12" in content
    assert '<path class="loop"' in content
    assert "<code>failures.READY.empty_tasks</code>" in content
    assert esc(f"    return '{SCRIPT}{ANSI}0'") in content  # the evidence as it was when it was reported
    assert f'<span class="a">{esc(f"+    return {chr(39)}{SCRIPT}{ANSI}1{chr(39)}")}</span>' in content
    assert "check_write_target" in content
    assert "verification failures</dt><dd>1</dd>" in content


def test_gates_that_a_flag_skipped_are_named_and_told_from_those_that_were_not_needed(
    looped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = written(looped, capsys)
    gates = "DOCUMENT_RESEARCH, EXPLORATION, Q1, SEMANTIC, Q2, VERIFICATION, Q3, IMPACT_ANALYSIS, QUALITY_REVIEW"
    assert f"<dt>Skipped by flags</dt><dd>{gates}</dd>" in content
    assert "skipped by a flag" in content.split("18 QUALITY_REVIEW</span>")[1][:80]
    assert "not taken" in content.split("2 BRANCH_INTERVENTION</span>")[1][:80]


def test_moments_are_written_for_people(looped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main(["--project", str(looped), "--out", "-"]) == 0
    content = capsys.readouterr().out
    assert re.search(r"<dt>Started</dt><dd><time [^>]+>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC</time></dd>", content)
    assert re.search(r"<dt>Ended</dt><dd><time [^>]+>[-\d]+ [:\d]+ UTC</time> \(", content)


def test_planted_script_and_control_sequences_do_nothing(looped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = written(looped, capsys)
    assert_harmless(content)
    assert esc(PATH) in content
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in content
    assert "\\x1b[31mred" in content


def test_every_section_can_be_reached_and_every_scrolling_part_focused(
    looped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = assert_harmless(written(looped, capsys))
    ids = [value for name, value in seen.attributes if name == "id"]
    assert len(set(ids)) == len(ids)
    assert {(value or "")[1:] for name, value in seen.attributes if name == "href"} <= set(ids) - {None}
    regions = sum(name == "role" and value == "region" for name, value in seen.attributes)
    assert regions == sum(name == "tabindex" for name, _ in seen.attributes) > 3


def test_without_a_file_named_the_report_goes_into_the_logs(looped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main(["--project", str(looped)]) == 0
    path = Path(capsys.readouterr().out.strip())
    assert path.parent == looped / ".code-intel/logs/reports"
    assert_harmless(path.read_text(encoding="utf-8"))


def test_an_unknown_session_and_a_hostile_name_are_refused_in_words(
    looped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("20200101_000000", "../../etc/passwd", f"x{ANSI}"):
        assert report.main([name, "--project", str(looped)]) == 1
        said = capsys.readouterr().err
        assert "no session" in said
        assert "\x1b" not in said


def test_a_project_without_sessions_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".code-intel").mkdir()
    assert report.main(["--project", str(tmp_path)]) == 1
    assert "no session yet" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_said(looped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main(["--project", str(looped), "--out", str(looped / "none" / "r.html")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_a_session_that_another_process_leads_is_reported_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = repository(tmp_path / "repo", {"app.py": "def main():\n    return 1\n"})
    with Server(root) as server:
        server.call("start_session", query="Return two", intent="MODIFY", flags={"fast": True, "no_doc": True})
        server.accepted(action_type="change", target_symbols=["main"])
        before = {path: path.read_bytes() for path in (root / ".code-intel/sessions").iterdir()}
        content = written(root, capsys)
        assert {path: path.read_bytes() for path in (root / ".code-intel/sessions").iterdir()} == before
        assert server.call("get_session_status")["success"]
    assert "not over" in content
    assert "here now" in content


def test_records_that_are_newer_damaged_or_of_odd_types_still_make_a_page() -> None:
    state = {
        "query": 7,
        "tasks": [1, {"id": None, "checklist": {}}],
        "flags": [],
        "counters": "x",
        "receipt": {"commands": [{"seconds": "?"}]},
    }
    record = {
        "schema": 99,
        "session_id": "s",
        "end": "EXPLODED",
        "state": {"orchestrator_state": state, "phase_payloads": {"a": 1}},
        "tools": {"P": {"t": 3}, "Q": 1},
        "decisions": [None, {"what": "submit", "verdict": "accepted", "step": "x", "at": "yesterday", "event": "new"}],
        "evidence": [{"lines": [1]}],
        "diff": {"text": 5},
    }
    content = report_page(taken_apart(record))
    assert_harmless(content)
    assert "A newer version wrote this record" in content
    assert_harmless(report_page(taken_apart({})))


def test_the_time_at_a_step_starts_anew_when_a_session_is_restored() -> None:
    def row(what: str, at: str, **more: object) -> dict[str, object]:
        return {"what": what, "at": f"2026-01-01T{at}+00:00", "step": 4, "next_step": 5, "event": "ok", **more}

    told = course([row("start", "10:00:00"), row("restore", "12:00:00"), row("submit", "12:00:30")])
    assert [visit.seconds for visit in told.visits] == [30.0]
    assert told.restored == 1
    turned_back = course([row("start", "10:00:00"), row("submit", "09:00:00")])
    assert turned_back.visits[0].seconds is None


def test_a_session_of_a_thousand_submits_is_drawn() -> None:
    visits = [Visit(n + 1, 13 + n % 3, "ok", 13, "", 1.0) for n in range(1000)]
    assert timeline.drawn(visits, "").count("<circle") == 1001


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(None, "–"), (0.04, "0.0 s"), (9.94, "9.9 s"), (59.0, "59 s"), (185, "3 min 5 s"), (7440, "2 h 4 min")],
)
def test_a_duration_is_said_for_people(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


def test_the_archive_stays_small_and_readable_by_nobody_else(looped: Path) -> None:
    (archived,) = (looped / ".code-intel/logs/sessions").iterdir()
    assert os.stat(archived).st_size < 64 * 1024  # noqa: PTH116
    assert json.loads(archived.read_text())["diff"]["cut"] == 0


def test_a_page_leaves_empty_sections_out() -> None:
    assert "Nothing here" not in page("T", "", [("a", "Nothing here", ""), ("b", "Here", "<p>x</p>")])
