"""Tests and data do not push the product off the first answer of find_references and analyze_impact (SPEC 2, 8)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driver import repository

from code_intel_server.tools.current_project import CurrentProject
from code_intel_server.tools.exploration import analyze_impact, listed
from code_intel_server.tools.shaping import places

TESTS = "from shop import sell\n" + "".join(f"\n\ndef test_{number}():\n    sell({number})\n" for number in range(40))
PADDING = "".join(f"value_{number} = {number}\n" for number in range(30_000))
FILES = {
    ".code-intel/config.json": json.dumps({"sync_on_start": False}),
    "shop.py": "def sell(price):\n    return price\n",
    "test_many.py": TESTS,
    "tests/data/a.json": json.dumps({"a": ["sell"] * 3}, indent=0),
    "tests/data/b.yaml": "b: sell\nc: sell\n",
    "till.svg": '<svg>\n<path sell="1"/>\n<path d="1" sell="1"/>\n</svg>\n',
    "page.html": '<p sell="1"></p>\n<p>{{ sell }}</p>\n<p sell="2">{{ sell }}</p>\n',
}
USE = {"z_till.py": "from shop import sell\n\n\ndef till():\n    return sell(1)\n"}
FOLDED = {"tests/data/a.json": 3, "tests/data/b.yaml": 2, "till.svg": 2, "page.html": 1, "test_many.py": 36}


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes a project of files."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made: list[CurrentProject] = []

    def make(files: dict[str, str]) -> CurrentProject:
        made.append(CurrentProject(repository(tmp_path / "repo", files)))
        return made[-1]

    yield make
    for one in made:
        one.services.close()


def asked(current: CurrentProject, symbol: str, offset: int = 0, path: str = ".", limit: int = 50) -> dict[str, Any]:
    """An answer of find_references."""
    return listed(current, limit, offset, lambda found, page: found.find_references(symbol, path=path, page=page))


def of_file(answer: dict[str, Any], path: str) -> int:
    """How many lines of a file are shown."""
    return sum(place.startswith(f"{path}:") for place in places(answer))


def test_a_thousand_files_of_data_are_not_read_for_a_page_that_they_are_not_on(projects: Any) -> None:
    data = {f"tests/data/{n}.json": json.dumps({"a": ["sell"] * 20}, indent=0) for n in range(300)}
    current = projects({"shop.py": FILES["shop.py"] + PADDING, **USE, **data})
    answer = asked(current, "sell")
    assert {place.partition(":")[0] for place in places(answer)} == {"shop.py", "z_till.py"}
    assert any("further files hold sell" in note for note in answer["notes"])
    seen = [*places(answer)]
    while answer.get("next_offset"):
        answer = asked(current, "sell", answer["next_offset"], limit=2000)
        seen += places(answer)
    assert len(seen) == len({*seen})
    assert {place.partition(":")[0] for place in seen} == {"shop.py", "z_till.py", *data}


@pytest.mark.parametrize("symbol", ["sell", "shop.sell"])
@pytest.mark.parametrize("padding", ["", PADDING], ids=["few files", "files as the page needs"])
def test_of_a_name_that_the_product_uses_five_rows_of_a_test_file_are_shown_and_none_of_data(
    projects: Any, symbol: str, padding: str
) -> None:
    current = projects({**FILES, **USE, "shop.py": FILES["shop.py"] + padding})
    first = asked(current, symbol)
    assert of_file(first, "z_till.py") == 2
    assert [of_file(first, path) for path in FOLDED if path != "page.html"] == [0, 0, 0, 5]
    assert (first["truncated"], first["complete"], first["total"]) == (True, False, 54)
    every, offset = places(first), first["next_offset"]
    while offset is not None:
        page = asked(current, symbol, offset)
        every, offset = [*every, *places(page)], page.get("next_offset")
    assert len(every) == len(set(every)) == 54
    assert page["truncated"] is False


def test_what_is_folded_is_counted_by_file_with_the_way_to_see_it(projects: Any) -> None:
    current = projects({**FILES, **USE})
    [note] = [note for note in asked(current, "sell")["notes"] if note.startswith("folded: ")]
    assert note.startswith(
        "folded: 44 more rows of tests and data, on the last pages or with path=FILE: test_many.py 36"
    )
    assert all(f"{path} {count}" in note for path, count in FOLDED.items())
    for path in FOLDED:
        alone = asked(current, "sell", path=path)
        assert (alone["truncated"], alone["complete"], "notes" in alone) == (False, True, False)
        assert of_file(alone, path) == alone["total"] >= FOLDED[path]


def test_a_line_of_a_template_that_uses_a_name_is_shown_and_its_attributes_are_not(projects: Any) -> None:
    shown = places(asked(projects({**FILES, **USE}), "sell"))
    assert [place for place in shown if place.startswith("page.html:")] == ["page.html:2", "page.html:3"]


def test_users_that_are_all_tests_are_shown_as_they_are(projects: Any) -> None:
    files = {"shop.py": FILES["shop.py"], "test_many.py": TESTS, "tests/data/b.yaml": FILES["tests/data/b.yaml"]}
    answer = asked(projects(files), "sell")
    assert (of_file(answer, "test_many.py"), of_file(answer, "tests/data/b.yaml")) == (41, 2)
    assert (answer["truncated"], answer["complete"]) == (False, True)


def test_a_test_file_of_six_rows_is_shown_whole(projects: Any) -> None:
    answer = asked(
        projects({**USE, "shop.py": FILES["shop.py"], "test_few.py": "import shop\n" + "shop.sell(1)\n" * 6}), "sell"
    )
    assert of_file(answer, "test_few.py") == 6 and answer["complete"]


def test_a_page_that_ends_before_what_is_folded_may_be_of_any_size(projects: Any) -> None:
    current = projects({**FILES, **USE})
    every: list[str] = []
    offset: int | None = 0
    while offset is not None:
        answer = asked(current, "sell", offset, limit=3)
        every, offset = [*every, *places(answer)], answer.get("next_offset")
    assert len(every) == len(set(every)) == 54


def test_an_impact_tells_product_and_documents_before_tests_and_what_must_be_verified_before_both(
    projects: Any,
) -> None:
    use = "from shop import sell\n\n\ndef use():\n    return sell(1)\n"
    tests = {f"tests/test_shop_{number}.py": use for number in range(8)}
    files = {**tests, **{f"till_{number}.py": use for number in range(6)}}
    current = projects({**files, "shop.py": FILES["shop.py"], "docs/selling.md": "How to `sell`.\n"})
    answer: dict[str, Any] = analyze_impact(current, ["sell"], 2, 20, 0)
    groups = [row["group"] for row in answer["results"] if "id" not in row]
    assert groups == sorted(groups, key=lambda group: group == "tests")
    assert {"code", "documentation", "tests"} == {*groups}
    assert [row["id"] for row in answer["results"] if "id" in row] == [
        entry.partition(" ")[0] for entry in answer["must_verify"]
    ]
    assert all(len(row["rows"]) <= 5 for row in answer["results"])
