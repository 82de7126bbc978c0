"""The report of a session: whole, harmless whatever a session holds, and there for every kind of session (SPEC 12)."""

import html
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from markupsafe import escape

from code_intel_server.cli import report
from code_intel_server.cli.pages.record import SessionRecord, Submit, session_record, submits
from code_intel_server.cli.pages.report import changed_files, course, report_page
from code_intel_server.cli.words import duration
from code_intel_server.common.printable import printable
from tests.cli.helpers import Said, fingerprint, session, state
from tests.e2e.driver import Server, repository
from tests.e2e.fast_session import commit_all

SCRIPT = "<script>alert(1)</script>"
ANSI = "\x1b[31mred\x1b]0;title\x07"
HOSTILE = f"{SCRIPT}\"'><img src=x onerror=alert(1)>&amp;{ANSI}\u202egnp"
PATH = "src/<img src=x onerror=alert(1)>.py"


def esc(text: str) -> str:
    """A text as it stands in a page."""
    return str(escape(printable(text)))


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
    links = [value or "" for name, value in seen.attributes if name == "href"]
    assert all(re.fullmatch(r"#[\w-]+|[\w./]+\.html", link) for link in links), links
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
        commit_all(server)
        assert server.accepted(summary="Merged.")["phase"] == "SESSION_COMPLETE"
    return root


def written(root: Path, capsys: Said, *arguments: str) -> str:
    assert report.main([*arguments, "--project", str(root), "--out", "-"]) == 0
    return capsys.readouterr().out


def text_of(content: str) -> str:
    """What a reader sees, in one line."""
    body = content.partition("</style>")[2]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_a_report_begins_with_request_outcome_change_and_proof_and_ends_with_figures(
    looped: Path, capsys: Said
) -> None:
    seen = text_of(written(looped, capsys))
    order = [
        "Return two <script>",
        "Merged into main as ",
        "What changed",
        "1 commit",
        "How it was proven",
        "No verify command is configured: that it works is the agent’s word: It fails.",
        "2 of 2 checklist items done, each with lines that changed.",
        "How it went",
        "Tasks and their evidence",
        "The change",
        "Figures",
        "failed verifications 1",
    ]
    places = [seen.index(one) for one in order]
    assert places == sorted(places), [order[n] for n, (a, b) in enumerate(pairwise(places)) if a > b]
    assert re.search(r"repo · \d{4}-\d\d-\d\d \d\d:\d\d UTC · <?\d", seen)


def test_a_report_tells_course_refusals_loop_evidence_and_diff_without_a_raw_key(looped: Path, capsys: Said) -> None:
    content = written(looped, capsys)
    seen = text_of(content)
    assert "Plan refused: At least one task is required." in seen
    assert re.search(r"Verification failed: It fails\. .*? back to Plan", seen)
    assert "went back 1 time" in seen
    assert 'class="loop"' in content
    assert f"    return '{SCRIPT}\\x1b[31mred\\x1b]0;title\\x070'" in html.unescape(
        content
    )  # as it was when it was reported
    assert f'<span class="add">{esc(f"+    return {chr(39)}{SCRIPT}{ANSI}1{chr(39)}")}' in content
    assert "check_write_target" in seen
    assert not re.search(r"failures\.|READY|PRE_COMMIT|POST_IMPL|submit_phase", seen)


def test_gates_that_a_flag_skipped_are_named_and_told_from_those_that_were_not_needed(
    looped: Path, capsys: Said
) -> None:
    seen = text_of(written(looped, capsys))
    gates = "Documents, Exploration, Enough known?, Semantic search, Unverified?, Hypotheses, Others affected?, Impact"
    assert f"Left out by a flag: {gates}, Quality review." in seen
    times = re.findall(r'<li class="[^"]*">([^<]*)</li>', written(looped, capsys))
    assert (times[17], times[1]) == ("by a flag", "–")


def test_planted_script_and_control_sequences_do_nothing(looped: Path, capsys: Said) -> None:
    content = written(looped, capsys)
    assert_harmless(content)
    assert esc(PATH) in content
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in content
    assert "\\x1b[31mred" in content


def test_every_section_can_be_reached_and_every_scrolling_part_focused(looped: Path, capsys: Said) -> None:
    seen = assert_harmless(written(looped, capsys))
    ids = [value for name, value in seen.attributes if name == "id"]
    assert len(set(ids)) == len(ids)
    assert {(value or "")[1:] for name, value in seen.attributes if name == "href"} <= set(ids) - {None}
    regions = sum(name == "role" and value == "region" for name, value in seen.attributes)
    assert regions == sum(name == "tabindex" for name, _ in seen.attributes) > 2


def test_without_a_file_named_the_report_goes_into_the_logs(looped: Path, capsys: Said) -> None:
    assert report.main(["--project", str(looped)]) == 0
    path = Path(capsys.readouterr().out.strip())
    assert path.parent == looped / ".code-intel/logs/reports"
    assert_harmless(path.read_text(encoding="utf-8"))


def test_an_unknown_session_and_a_hostile_name_are_refused_in_words(looped: Path, capsys: Said) -> None:
    for name in ("20200101_000000", "../../etc/passwd", f"x{ANSI}"):
        assert report.main([name, "--project", str(looped)]) == 1
        said = capsys.readouterr().err
        assert "no session" in said
        assert "\x1b" not in said


def test_a_project_without_sessions_says_so(tmp_path: Path, capsys: Said) -> None:
    (tmp_path / ".code-intel").mkdir()
    assert report.main(["--project", str(tmp_path)]) == 1
    assert "no session yet" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_said(looped: Path, capsys: Said) -> None:
    assert report.main(["--project", str(looped), "--out", str(looped / "none" / "r.html")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_a_session_that_is_not_over_is_reported_and_left_alone(
    tmp_path: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "repo", {"app.py": "def main():\n    return 1\n"})
    (root / ".code-intel").mkdir()
    with session(root, state()) as services:
        services.decisions.append(
            {"session_id": "20260201_123456", "what": "submit", "step": 4, "next_step": 5, "event": "ok"}
        )
        before = fingerprint(root / ".code-intel/sessions")
        seen = text_of(written(root, capsys))
        assert fingerprint(root / ".code-intel/sessions") == before
    assert "Going on at step 13, Implementation." in seen
    assert "here now" in seen
    assert "Interrupted at step 13, Implementation: /code --resume goes on." in text_of(written(root, capsys))


def ended(end: str, *log: dict[str, object], **more: object) -> SessionRecord:
    fields = {"flags": {}, "intent": "MODIFY", "tasks": [{"id": "t1"}], "task_branch": {"base": "main"}, **more}
    decisions = [{"what": "submit", "verdict": "accepted", **row} for row in log]
    return session_record({"end": end, "state": {"orchestrator_state": fields}, "decisions": decisions})


MERGED = {"step": 19, "event": "merged", "account": "merged into main as 1a2b"}
PROVEN = {"receipt": {"status": "proven"}}


@pytest.mark.parametrize(("record", "outcome"), [
    (ended("SESSION_COMPLETE", MERGED, **PROVEN), ("good", "Merged into main as 1a2b, proven")),
    (ended("SESSION_COMPLETE", MERGED), ("warn", "Merged into main as 1a2b, not verified")),
    (ended("SESSION_COMPLETE", MERGED, receipt={"status": "none"}), ("warn", "Merged into main as 1a2b, by the agent's word alone")),
    (ended("SESSION_COMPLETE", MERGED, **PROVEN, forced=True, unresolved_issues=["a", "b"]),
     ("bad", "Merged into main as 1a2b, proven, with 2 quality issues unresolved")),
    (ended("SESSION_COMPLETE", {"step": 15, "event": "passed"}, **PROVEN), ("good", "Done in the working tree, not committed, proven")),
    (ended("SESSION_COMPLETE", {"step": 15, "event": "failed"}, flags={"only_verify": True}, tasks=[]), ("bad", "Verification failed")),
    (ended("SESSION_COMPLETE", {"step": 10, "event": "ok"}, tasks=[]), ("good", "Investigated: nothing was changed")),
    (ended("SESSION_ABANDONED", MERGED), ("bad", "Given up: what it had done is kept in the trash")),
    (ended("EXPLODED"), ("plain", "EXPLODED")),
])  # fmt: skip
def test_the_outcome_is_a_sentence_and_no_better_than_what_it_rests_on(
    record: SessionRecord, outcome: tuple[str, str]
) -> None:
    assert record.outcome == outcome
    assert f"{outcome[1]}." in text_of(report_page(record))


def test_the_files_of_a_diff_are_told_apart_by_its_heads_alone() -> None:
    diff = """\
diff --git a/old.py b/new.py
similarity index 50%
rename from old.py
rename to new.py
--- a/old.py
+++ b/new.py
@@ -1,2 +1,2 @@
--- a comment of SQL that was removed
+++ one that was added
diff --git a/gone.bin b/gone.bin
deleted file mode 100644
Binary files a/gone.bin and /dev/null differ
diff --git a/made.py b/made.py
new file mode 100644
--- /dev/null
+++ b/made.py
@@ -0,0 +1 @@
+diff --git a/x b/x
"""
    files = [(one.path, one.became, one.count("add"), one.count("cut")) for one in changed_files(diff)]
    assert files == [("new.py", "renamed", 1, 1), ("gone.bin", "deleted", 0, 0), ("made.py", "new", 1, 0)]


def test_records_that_are_newer_damaged_or_of_odd_types_still_make_a_page() -> None:
    state = {
        "query": 7,
        "tasks": [1, {"id": None, "checklist": {}}],
        "flags": {"fast": [], "quick": {}},
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
    content = report_page(session_record(record))
    assert_harmless(content)
    assert "A newer version wrote this record" in content
    assert_harmless(report_page(session_record({})))


def test_a_report_names_the_tests_that_were_seen_and_keeps_the_reasons() -> None:
    seen = {
        "counts": {"fail_to_pass": 2, "pass_to_pass": 8},
        "passed_before": 9,
        "listed": {"fail_to_pass": ["t.py::new", "t.py::<b>"]},
        "questions": {"t.py::old": "passed before this change and fails with it"},
        "runs": {"new": "10 of 10 passed, 0.5 s"},
    }
    record = ended(
        "SESSION_COMPLETE",
        MERGED,
        receipt={"status": "proven", "tests": seen},
        test_reasons={"t.py::old": "It was wrong."},
    )
    page = report_page(record)
    assert_harmless(page)
    said = text_of(page)
    assert "2 tests only with this change; 8 of 9 tests that passed before pass with it." in said
    assert "t.py::old: passed before this change and fails with it. Reason: It was wrong." in said
    assert "t.py::<b>" in said
    only = ended("SESSION_COMPLETE", MERGED, receipt={"status": "proven", "tests": {"only_status": True}})
    assert "only the exit status is known" in text_of(report_page(only))


def test_a_report_says_what_was_not_run_and_a_summary_of_several_steps_once() -> None:
    record = ended("SESSION_COMPLETE", MERGED, not_run=["mypy: not here <b>"])
    steps = ("step_03_QUERY_FRAME", "step_04_EXPLORATION", "step_05_Q1")
    summaries = {**dict.fromkeys(steps, "All read."), "step_11_IMPACT_ANALYSIS": "Two callers."}
    page = report_page(replace(record, summaries=summaries))
    assert_harmless(page)
    said = text_of(page)
    assert "mypy: not here <b>" in said
    assert said.count("All read.") == 1 and said.count("Two callers.") == 1


def test_the_time_at_a_step_starts_anew_when_a_session_is_restored() -> None:
    def row(what: str, at: str, **more: object) -> dict[str, object]:
        return {"what": what, "at": f"2026-01-01T{at}+00:00", "step": 4, "next_step": 5, "event": "ok", **more}

    found = submits([row("start", "10:00:00"), row("restore", "12:00:00"), row("submit", "12:00:30")])
    assert [one.seconds for one in found] == [30.0]
    turned_back = submits([row("start", "10:00:00"), row("submit", "09:00:00")])
    assert turned_back[0].seconds is None


def test_a_session_of_a_thousand_submits_is_drawn() -> None:
    drawn = course(SessionRecord(submits=[Submit(13 + n % 3, "ok", 13) for n in range(1000)]))
    assert drawn is not None
    assert (len(drawn.dots), len(drawn.ways)) == (1000, 1000)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(None, "–"), (0.04, "<0.1 s"), (9.94, "9.9 s"), (59.0, "59 s"), (185, "3 min 5 s"), (7440, "2 h 4 min")],
)
def test_a_duration_is_said_for_people(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


def test_the_archive_stays_small_and_readable_by_nobody_else(looped: Path) -> None:
    (archived,) = (looped / ".code-intel/logs/sessions").iterdir()
    assert os.stat(archived).st_size < 64 * 1024  # noqa: PTH116
    assert json.loads(archived.read_text())["diff"]["cut"] == 0


def test_a_refusal_names_steps_as_people_do_and_what_the_user_wrote_stays() -> None:
    refused = Submit(5, key="x", text="Currently in QUERY_FRAME phase; this payload belongs to EXPLORATION.")
    assert refused.lines == ["refused: Currently in Request phase; this payload belongs to Exploration."]
    assert Submit(5, "ok", text="MERGE is what they call it").lines == ["MERGE is what they call it"]
