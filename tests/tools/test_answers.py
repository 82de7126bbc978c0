"""What lookups answer of files and folders that are larger than an answer: pages that come to an end (SPEC 2, Answers)."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driver import repository

from code_intel_server.tools.exploration import (
    analyze_impact,
    analyze_structure,
    get_function_at_line,
    get_symbols,
    semantic_search,
)
from code_intel_server.tools.shaping import DEFAULT_CHARACTERS, Fields
from code_intel_server.tools.workbench import Workbench

FUNCTIONS = 120
FOLDER = "a/folder/with/quite/a/long/name"
BIG = "\n".join(f"def function_{number}(first, second):\n    return main()\n" for number in range(FUNCTIONS))
LONG = "def long():\n" + "".join(f"    step({number}, 'and what is done in it')\n" for number in range(350))
FILES = {
    "app.py": "def main():\n    return 1\n",
    "big.py": f"from app import main\n\n\n{BIG}\n\n{LONG}",
    **{f"{FOLDER}/user_{n}.py": f"from app import main\n\n\ndef use_{n}():\n    return main()\n" for n in range(50)},
    f"{FOLDER}/.gitignore": "build/\n",
    f"{FOLDER}/deep/.gitignore": "lib/\n",
    ".code-intel/config.json": json.dumps({"sync_on_start": False}),
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    made = Workbench(repository(tmp_path_factory.mktemp("answers") / "repo", FILES))
    yield made
    made.desk.close()


def pages(ask: Callable[[int], Fields]) -> list[dict[str, Any]]:
    """All pages, each within the limit, in order."""
    found: list[dict[str, Any]] = [ask(0)]
    while (offset := found[-1].get("next_offset")) is not None:
        assert found[-1]["truncated"] and offset > sum(len(page["results"]) for page in found[:-1])
        found.append({**ask(offset)})
    assert all(len(json.dumps(page, ensure_ascii=False)) < DEFAULT_CHARACTERS for page in found)
    return found


def test_every_symbol_of_a_large_file_comes_once_page_by_page(bench: Workbench) -> None:
    found = pages(lambda offset: get_symbols(bench, "big.py", offset))
    names = [row["symbol"] for page in found for row in page["results"]]
    assert names == [*(f"function_{number}" for number in range(FUNCTIONS)), "long"]
    assert {page["total"] for page in found} == {len(names)}
    assert found[-1]["truncated"] is False


def test_every_file_of_a_folder_comes_once_page_by_page(bench: Workbench) -> None:
    """Files in languages without a grammar are named and take no place on a page."""
    found = pages(lambda offset: analyze_structure(bench, FOLDER, offset))
    paths = [row["path"] for page in found for row in page["results"]]
    assert sorted(paths) == sorted(f"{FOLDER}/user_{number}.py" for number in range(50))
    assert found[0]["incomplete_because"] == ["there is no grammar for gitignore"]


def test_every_place_of_an_impact_comes_once_page_by_page(bench: Workbench) -> None:
    found = pages(lambda offset: analyze_impact(bench, ["main"], 2, 100, offset))
    paths = [row["path"] for page in found for row in page["results"]]
    assert len(paths) == len(set(paths)) == found[0]["total"] == 52
    first = found[0]
    assert len(first["must_verify"]) + first.get("left_out", {}).get("must_verify", 0) == 52


def test_the_structure_of_a_large_file_shows_the_beginning_of_each_of_its_parts(bench: Workbench) -> None:
    [page] = pages(lambda offset: analyze_structure(bench, "big.py", offset))
    [row] = page["results"]
    assert row["imports"] and row["symbols"] and row["calls"]
    assert len(row["symbols"]) + row["left_out"]["symbols"] == FUNCTIONS + 1
    assert page["truncated"] is True


def test_a_long_function_is_shown_up_to_a_whole_line_and_says_that_it_is_cut(bench: Workbench) -> None:
    answer: dict[str, Any] = {**get_function_at_line(bench, "big.py", BIG.count("\n") + 10)}
    [row] = answer["results"]
    assert row["symbol"] == "long"
    assert LONG.startswith(row["source"] + "\n")
    assert (row["cut"], answer["truncated"]) == (True, True)
    assert len(json.dumps(answer)) < DEFAULT_CHARACTERS
    assert (Path(bench.desk.root) / "big.py").read_text().endswith(LONG)


def test_all_that_a_search_was_asked_for_is_shown_rather_than_long_pieces_of_less(bench: Workbench) -> None:
    bench.desk.index.sync()
    answer: dict[str, Any] = {**semantic_search(bench, "step and what is done in it", 10, ".", None, "forest")}
    assert len(answer["results"]) == answer["total"] == 10
    assert answer["truncated"] is False
    assert len(json.dumps(answer, ensure_ascii=False)) < DEFAULT_CHARACTERS
    many: dict[str, Any] = {**semantic_search(bench, "use main", 100, ".", None, "forest")}
    assert 10 < len(many["results"]) < many["total"]
    assert many["truncated"] is True
    assert len(json.dumps(many, ensure_ascii=False)) < DEFAULT_CHARACTERS
