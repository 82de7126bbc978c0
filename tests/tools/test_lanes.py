"""Which lane start_session advises, and which a project may make its own (SPEC 3.2)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.driver import repository

from code_intel_server.tools.session.lanes import Lane, fitting, names_in
from code_intel_server.tools.workbench import Workbench

FILES = {
    "app.py": "def main():\n    return 1\n\n\ndef join_words(words):\n    return ' '.join(words)\n",
    **{f"uses/u{number}.py": "from app import join_words\n" for number in range(6)},
    "README.md": "# README\n",
}

UNPROVEN = (
    "fast fits: README.md in 1 file, but no verify_commands prove the work. "
    "This session runs auto; the user may choose with the flag fast."
)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workbench]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Workbench(repository(tmp_path / "home", FILES))
    yield made
    made.desk.close()


def configure(bench: Workbench, **settings: object) -> None:
    """The user's configuration, as it is there before a session."""
    bench.desk.project.folder.mkdir(exist_ok=True)
    bench.desk.project.config_file.write_text(json.dumps({"sync_on_start": False, **settings}))


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("Make main return two", []),
        ("Let `main` and join_words() of src/app.py raise ValueErrors", ["main", "join_words", "src/app.py", "ValueErrors"]),
        ("Speed up click.echo, please.", ["click.echo"]),
        ("Fix parseArgs in utils/args.ts", ["parseArgs", "utils/args.ts"]),
    ],
)  # fmt: skip
def test_names_are_what_a_request_writes_as_code_does(query: str, names: list[str]) -> None:
    assert names_in(query) == names


@pytest.mark.parametrize(
    ("files", "proven", "lane"),
    [(1, True, "quick"), (1, False, "fast"), (5, True, "fast"), (6, False, "auto"), (40, True, "auto"), (41, True, "full")],
)  # fmt: skip
def test_the_more_files_a_name_stands_in_the_more_of_the_flow_fits(files: int, proven: bool, lane: str) -> None:
    assert fitting(["x"], files, proven=proven).lane is Lane(lane)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("Let join_words skip blanks", "auto fits: join_words in 7 file(s)."),
        (
            "Change the title in README.md",
            UNPROVEN,
        ),
    ],
)
def test_without_a_flag_the_lane_that_fits_is_said_in_one_line(bench: Workbench, query: str, said: str) -> None:
    answer = bench.sessions.start(query, "MODIFY", {"no_doc": True})
    assert answer["lane_advice"] == said
    assert answer["phase"] == "QUERY_FRAME"


def test_nothing_is_said_where_the_request_names_nothing_and_the_session_explores_anyway(bench: Workbench) -> None:
    assert "lane_advice" not in bench.sessions.start("Make it faster", "MODIFY", {"no_doc": True})


def test_that_nothing_is_known_is_said_where_a_session_would_not_explore(bench: Workbench) -> None:
    configure(bench, lane="fast")
    answer = bench.sessions.start("Make it faster", "MODIFY", {"no_doc": True})
    assert "nothing that the request names" in str(answer["lane_advice"])


@pytest.mark.parametrize("flags", [{"fast": True}, {"gate_level": "auto"}, {"only_explore": True}])
def test_who_chooses_is_not_advised_and_keeps_the_choice(bench: Workbench, flags: dict[str, object]) -> None:
    configure(bench, lane="quick")
    answer = bench.sessions.start("Let join_words skip blanks", "MODIFY", flags)
    assert "lane_advice" not in answer
    assert bench.sessions.active is not None and not bench.sessions.active.state.flags.quick


def test_an_investigation_has_no_lane(bench: Workbench) -> None:
    configure(bench, lane="quick")
    answer = bench.sessions.start("Where is join_words used?", "QUESTION", {})
    assert not {"lane_advice", "ignored_flags", "skipped_gates"} & answer.keys()


def test_a_configured_lane_is_the_default_and_what_it_leaves_out_is_named(bench: Workbench) -> None:
    configure(bench, lane="fast")
    answer = bench.sessions.start("Let join_words skip blanks", "MODIFY", {})
    assert "EXPLORATION" in str(answer["skipped_gates"]) and "QUALITY_REVIEW" in str(answer["skipped_gates"])
    assert answer["lane_advice"] == (
        "auto fits: join_words in 7 file(s). This session runs fast; the user may choose with the flag gate_level=auto."
    )


def test_the_advised_lane_may_be_the_default(bench: Workbench) -> None:
    configure(bench, lane="advised", verify_commands=[["true"]])
    answer = bench.sessions.start("Let `main` return two", "MODIFY", {"no_doc": True})
    assert answer["lane_advice"] == "quick fits: main in 1 file(s)."
    assert "MERGE" in str(answer["skipped_gates"])
