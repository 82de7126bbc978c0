"""What lookups answer of files and folders that are larger than an answer: pages that come to an end (SPEC 2, Answers)."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driver import repository

from code_intel_server.errors import Rejected
from code_intel_server.flow.session import UsedRange
from code_intel_server.tools.current_project import CurrentProject
from code_intel_server.tools.exploration import (
    analyze_impact,
    analyze_structure,
    get_function_at_line,
    get_symbols,
    listed,
    semantic_search,
)
from code_intel_server.tools.shaping import DEFAULT_CHARACTERS, Fields, places
from code_intel_server.tools.writing import review_changes

FUNCTIONS = 160
FOLDER = "a/folder/with/quite/a/long/name"
BIG = "\n".join(f"def function_{number}(first, second):\n    return main()\n" for number in range(FUNCTIONS))
LONG = "def long():\n" + "".join(f"    step({number}, 'and what is done in it')\n" for number in range(350))
COLOURS = "".join(f"    COLOUR_{number} = {number}\n" for number in range(300))
FILES = {
    "app.py": "def main():\n    return 1\n",
    "big.py": f"from app import main\n\n\n{BIG}\n\n{LONG}",
    "colours.py": f"from enum import Enum\n\n\nclass Colour(Enum):\n{COLOURS}\n\ndef paint(colour):\n    return colour\n",
    "few.py": "A = 1\nB = 2\nC = 3\nD = 4\n",
    **{f"{FOLDER}/user_{n}.py": f"from app import main\n\n\ndef use_{n}():\n    return main()\n" for n in range(50)},
    f"{FOLDER}/.gitignore": "build/\n",
    f"{FOLDER}/deep/.gitignore": "lib/\n",
    ".code-intel/config.json": json.dumps({"sync_on_start": False}),
}


def search_text(
    current: CurrentProject, patterns: str | list[str], path: str, limit: int, offset: int, *, regex: bool = True
) -> Fields:
    """The answer of the tool."""
    return listed(current, limit, offset, lambda found, page: found.search_text(patterns, path, page=page, regex=regex))


@pytest.fixture(scope="module")
def current(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CurrentProject]:
    made = CurrentProject(repository(tmp_path_factory.mktemp("answers") / "repo", FILES))
    yield made
    made.services.close()


def pages(ask: Callable[[int], Fields]) -> list[dict[str, Any]]:
    """All pages, each within the limit, in order."""
    found: list[dict[str, Any]] = [ask(0)]
    while (offset := found[-1].get("next_offset")) is not None:
        assert found[-1]["truncated"] and not found[-1]["complete"]
        assert offset > sum(len(page["results"]) for page in found[:-1])
        found.append({**ask(offset)})
    assert all(len(json.dumps(page, ensure_ascii=False)) < DEFAULT_CHARACTERS for page in found)
    return found


def test_what_a_search_outside_a_session_left_out_is_counted_soon(tmp_path: Path) -> None:
    large = repository(tmp_path / "repo", {"app.py": "x = 1\n", "large.py": "needle = 1\n" * 100_000})
    current = CurrentProject(large)
    deadline = time.monotonic() + 30
    while "skipped" not in (found := search_text(current, "needle", ".", 50, 0)) and time.monotonic() < deadline:
        pass
    assert found["skipped"] == {"ignored": 0, "binary": 0, "too_large": 1}
    assert found["total"] == 0
    current.services.close()


def test_every_symbol_of_a_large_file_comes_once_page_by_page(current: CurrentProject) -> None:
    found = pages(lambda offset: get_symbols(current, "big.py", offset))
    names = [row.split()[2].split("(")[0] for page in found for entry in page["results"] for row in entry["rows"]]
    assert names == [*(f"function_{number}" for number in range(FUNCTIONS)), "long"]
    assert {page["total"] for page in found} == {len(names)}
    assert found[-1]["truncated"] is False


def test_constants_are_named_in_one_row_before_an_outline_is_cut(current: CurrentProject) -> None:
    [page] = pages(lambda offset: get_symbols(current, "colours.py", offset))
    [entry] = page["results"]
    first, *members, last = entry["rows"]
    assert first == "4-304: class Colour(Enum)"
    assert all(re.fullmatch(r"\d+-\d+:   COLOUR_\d+(, COLOUR_\d+)+  \[\d+ \w+\]", row) for row in members)
    assert re.findall(r"COLOUR_\d+", " ".join(members)) == [f"COLOUR_{number}" for number in range(300)]
    assert last == "307-308: def paint(colour)"
    assert page["complete"] and page["total"] == len(entry["rows"]) and "302 symbols" in page["notes"][0]


def test_a_small_outline_is_not_folded(current: CurrentProject) -> None:
    answer: dict[str, Any] = {**get_symbols(current, "few.py", 0)}
    assert answer["results"][0]["rows"] == [f"{n}: {name} = {n}  [constant]" for n, name in enumerate("ABCD", 1)]


def test_a_page_of_a_search_costs_what_its_lines_cost(current: CurrentProject) -> None:
    """49 lines of some 50 characters from 49 files whose paths are as long: at most 4 KB (SPEC 2)."""
    answer: dict[str, Any] = {**search_text(current, "def use_", ".", 49, 0)}
    assert len(places(answer)) == 49
    assert len(json.dumps(answer).encode()) <= 4096 + 49 * len(FOLDER)
    many: dict[str, Any] = {**search_text(current, "def function_", ".", 49, 0)}
    assert len(places(many)) == 49
    assert len(json.dumps(many).encode()) <= 4096


def test_long_lines_are_shown_around_their_match_where_a_page_has_many_of_them(tmp_path: Path) -> None:
    lines = [f"{'word ' * (number % 40)}needle {number}{' more' * 30}\n" for number in range(49)]
    root = repository(tmp_path / "repo", {"notes.md": "".join(lines), "one.md": lines[5]})
    current = CurrentProject(root)
    try:
        answer: dict[str, Any] = {**search_text(current, "needle", "notes.md", 49, 0)}
        rows = answer["results"][0]["rows"]
        assert len(rows) == 49 and all(f"needle {number}" in row for number, row in enumerate(rows))
        assert len(json.dumps(answer, ensure_ascii=False)) <= 4096
        alone: dict[str, Any] = {**search_text(current, "needle", "one.md", 49, 0)}
        assert alone["results"][0]["rows"] == [f"1: {lines[5].strip()}"]
    finally:
        current.services.close()


def test_the_lines_of_several_patterns_are_one_entry_a_file(current: CurrentProject) -> None:
    """Found by agents: an entry for each file and pattern took six for one file, and its lines out of their order."""
    answer: dict[str, Any] = {**search_text(current, ["def main", "return", "return 1"], "app.py", 50, 0, regex=False)}
    assert answer["results"] == [{"path": "app.py", "rows": ["1: def main():", "2:     return 1"]}]
    assert answer["counts"] == {"def main": 1, "return": 1, "return 1": 1}


def test_every_file_of_a_folder_comes_once_page_by_page(current: CurrentProject) -> None:
    """Files in languages without a grammar are named and take no place on a page."""
    found = pages(lambda offset: analyze_structure(current, FOLDER, offset))
    paths = [row["path"] for page in found for row in page["results"]]
    assert sorted(paths) == sorted(f"{FOLDER}/user_{number}.py" for number in range(50))
    assert found[0]["incomplete_because"] == ["there is no outline of gitignore"]


def test_every_place_of_an_impact_comes_once_page_by_page(current: CurrentProject) -> None:
    found = pages(lambda offset: analyze_impact(current, ["main"], 2, 100, offset))
    paths = [row["path"] for page in found for row in page["results"]]
    assert len(paths) == len(set(paths)) == found[0]["total"] >= 52


def test_the_first_answer_of_an_impact_is_short_and_gives_what_must_be_verified_an_id(current: CurrentProject) -> None:
    first: dict[str, Any] = {**analyze_impact(current, ["main"], 2, 20, 0)}
    assert len(str(first)) <= 4096
    marked = {row["id"]: row["path"] for row in first["results"] if "id" in row}
    asked = dict(entry.split(" ") for entry in first["must_verify"])
    assert 0 < len(asked) <= 15
    assert {name: place.rpartition(":")[0] for name, place in asked.items() if name in marked} == marked


def test_the_structure_of_a_large_file_shows_the_beginning_of_each_of_its_parts(current: CurrentProject) -> None:
    [page] = pages(lambda offset: analyze_structure(current, "big.py", offset))
    [row] = page["results"]
    assert row["imports"] and row["symbols"] and row["calls"]
    assert len(row["symbols"]) + row["left_out"]["symbols"] == FUNCTIONS + 1
    assert page["truncated"] is True


def test_a_long_function_is_shown_up_to_a_whole_line_and_says_that_it_is_cut(current: CurrentProject) -> None:
    answer: dict[str, Any] = {**get_function_at_line(current, "big.py", BIG.count("\n") + 10)}
    [row] = answer["results"][0]["rows"]
    assert row["symbol"] == "long"
    assert LONG.startswith(row["source"] + "\n")
    assert (row["cut"], answer["truncated"]) == (True, True)
    assert len(json.dumps(answer)) < DEFAULT_CHARACTERS
    assert (Path(current.services.root) / "big.py").read_text().endswith(LONG)


def test_all_that_a_search_was_asked_for_is_shown_rather_than_long_pieces_of_less(current: CurrentProject) -> None:
    current.services.index.sync()
    answer: dict[str, Any] = {**semantic_search(current, "step and what is done in it", 10, ".", None, "forest")}
    assert len(places(answer)) == answer["total"] == 10
    assert answer["truncated"] is False
    assert len(json.dumps(answer, ensure_ascii=False)) < DEFAULT_CHARACTERS
    many: dict[str, Any] = {**semantic_search(current, "use main", 100, ".", None, "forest")}
    assert 10 < len(places(many)) < many["total"]
    assert many["truncated"] is True
    assert len(json.dumps(many, ensure_ascii=False)) < DEFAULT_CHARACTERS


def test_a_map_that_knows_nothing_of_a_question_is_not_said_to_have_matched(current: CurrentProject) -> None:
    answer = semantic_search(current, "step and what is done in it", 10, ".", None, "map")
    assert (answer["results"], answer["forest_skipped"]) == ([], True)
    assert "No earlier success" in str(answer["hint"])


@pytest.mark.parametrize("path", ["nowhere", "app.py/x", "a/folder/gone.py"])
def test_a_search_by_meaning_below_what_is_not_there_is_refused_as_every_lookup_is(
    current: CurrentProject, path: str
) -> None:
    with pytest.raises(Rejected, match="path_not_found"):
        semantic_search(current, "step", 10, path, None, "auto")


def test_a_review_is_read_page_by_page_and_a_large_file_whole_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = repository(
        tmp_path / "repo", {"app.py": "x = 1\n", ".code-intel/config.json": FILES[".code-intel/config.json"]}
    )
    current = CurrentProject(root)
    try:
        current.sessions.start("Quote everything", "MODIFY", {"quick": True, "no_doc": True})
        quoted = "".join(f'said_{number} = ["a", "b", "{number}"]\n' for number in range(900))
        for number in range(6):
            (root / f"said_{number}.py").write_text(quoted)
        active = current.sessions.active
        assert active is not None
        words = {
            "task_id": "t1", "path": "app.py", "start": 1, "end": 1, "trivial": True, "reason": "It says so. " * 20,
        }  # fmt: skip
        active.state.used_ranges += [UsedRange(item=f"Item {number}", **words) for number in range(60)]
        found = pages(lambda offset: review_changes(current, None, 50, offset))
        assert [row["path"] for page in found for row in page["results"]] == [f"said_{n}.py" for n in range(6)]
        assert all(row["cut"] for page in found for row in page["results"])
        assert all(page["truncated"] for page in found)
        for page in found:
            assert len(page["weak_evidence"]) + page["left_out"]["weak_evidence"] == 60
        alone: dict[str, Any] = {**review_changes(current, "said_3.py", 50, 0)}
        [row] = alone["results"]
        assert row["diff"].splitlines()[1:] == [f"+{line}" for line in quoted.splitlines()]
        assert (row.get("cut"), alone["truncated"]) == (None, False)
    finally:
        current.services.close()
