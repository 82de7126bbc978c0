"""Which lane start_session advises, and which a project may make its own (SPEC 3.2)."""

import json

import pytest

from code_intel_server.tools.current_project import CurrentProject
from code_intel_server.tools.session.lanes import Lane, code_names_in, lane_for_names

FILES = {
    "app.py": "def main():\n    return 1\n\n\ndef join_words(words):\n    return ' '.join(words)\n",
    **{f"uses/u{number}.py": "from app import join_words\n" for number in range(6)},
    "README.md": "# README\n",
}

UNPROVEN = (
    "fast fits: README.md in 1 file, but no verify_commands prove the work. "
    "This session runs auto; the user may choose with the flag fast."
)


def configure(current: CurrentProject, **settings: object) -> None:
    """The user's configuration, as it is there before a session."""
    current.services.project.folder.mkdir(exist_ok=True)
    current.services.project.config_file.write_text(json.dumps({"sync_on_start": False, **settings}))


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("Make main return two", []),
        (
            "Let `main` and join_words() of src/app.py raise ValueErrors",
            ["main", "join_words", "ValueErrors", "src/app.py"],
        ),
        ("Speed up click.echo, please.", ["click.echo"]),
        ("Fix parseArgs in utils/args.ts", ["parseArgs", "utils/args.ts"]),
    ],
)
def test_names_are_what_a_request_writes_as_code_does(query: str, names: list[str]) -> None:
    assert code_names_in(query) == names


@pytest.mark.parametrize(
    ("files", "proven", "lane"),
    [(1, True, "quick"), (1, False, "fast"), (5, True, "fast"), (6, False, "auto"), (200, True, "auto")],
)
def test_the_more_files_a_name_stands_in_the_more_of_the_flow_fits(files: int, proven: bool, lane: str) -> None:
    assert lane_for_names(["x"], files, proven=proven).lane is Lane(lane)


@pytest.mark.parametrize(
    ("query", "said"), [("Let join_words skip blanks", None), ("Change the title in README.md", UNPROVEN)]
)
def test_without_a_flag_a_lane_that_fits_better_is_said_in_one_line(
    current: CurrentProject, query: str, said: str | None
) -> None:
    """Found in play: three of four agents called it noise that the lane which runs anyway fits."""
    answer = current.sessions.start(query, "MODIFY", {"no_doc": True})
    assert answer.get("lane_advice") == said
    assert answer["phase"] == "QUERY_FRAME"


def test_nothing_is_said_where_the_request_names_nothing_and_the_session_explores_anyway(
    current: CurrentProject,
) -> None:
    assert "lane_advice" not in current.sessions.start("Make it faster", "MODIFY", {"no_doc": True})


def test_that_nothing_is_known_is_said_where_a_session_would_not_explore(current: CurrentProject) -> None:
    configure(current, lane="fast")
    answer = current.sessions.start("Make it faster", "MODIFY", {"no_doc": True})
    assert "nothing that the request names" in str(answer["lane_advice"])


@pytest.mark.parametrize("flags", [{"fast": True}, {"gate_level": "auto"}, {"only_explore": True}])
def test_who_chooses_is_not_advised_and_keeps_the_choice(current: CurrentProject, flags: dict[str, object]) -> None:
    configure(current, lane="quick")
    answer = current.sessions.start("Let join_words skip blanks", "MODIFY", flags)
    assert "lane_advice" not in answer
    assert current.sessions.active is not None and not current.sessions.active.state.flags.quick


def test_an_investigation_has_no_lane(current: CurrentProject) -> None:
    configure(current, lane="quick")
    answer = current.sessions.start("Where is join_words used?", "QUESTION", {})
    assert not {"lane_advice", "ignored_flags", "skipped_gates"} & answer.keys()


def test_a_configured_lane_is_the_default_and_what_it_leaves_out_is_named(current: CurrentProject) -> None:
    configure(current, lane="fast")
    answer = current.sessions.start("Let join_words skip blanks", "MODIFY", {})
    assert "EXPLORATION" in str(answer["skipped_gates"]) and "QUALITY_REVIEW" in str(answer["skipped_gates"])
    assert answer["lane_advice"] == (
        "auto fits: join_words in 7 file(s). This session runs fast; the user may choose with the flag gate_level=auto."
    )


def test_the_advised_lane_may_be_the_default(current: CurrentProject) -> None:
    configure(current, lane="advised", verify_commands=[["true"]])
    answer = current.sessions.start("Let `main` return two", "MODIFY", {"no_doc": True})
    assert answer["lane_advice"] == "quick fits: main in 1 file(s)."
    assert "MERGE" in str(answer["skipped_gates"])
