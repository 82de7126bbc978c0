"""Of a name in many files as many are told as a page needs, in an order that leads through all of them."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.codebase.lookup_project import explorer, write

from code_intel_server.codebase.answers import LookupAnswer, Page
from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.files.languages import Language
from code_intel_server.codebase.references import first_page
from code_intel_server.codebase.references.classify import ReferenceRow
from code_intel_server.codebase.syntax import structure
from code_intel_server.codebase.syntax.values import Use

LINES = (
    "sell()\n",
    "# sell in a comment\n",
    "x = 'sell'\n",
    "import sell\n",
    "def sell(): pass\n",
    "y = sell\n",
    "z = 1\n",
)
projects = st.lists(st.lists(st.sampled_from(LINES), min_size=1, max_size=8), min_size=1, max_size=8)


def many(root: Path, count: int = 30) -> Explorer:
    """`count` files with two uses each, of which the last but one defines the name."""
    padding = "".join(f"value_{number} = {number}\n" for number in range(1000))
    files = {f"f{number:02}.py": f"import shop\nshop.sell()\nshop.sell()\n{padding}" for number in range(count)}
    return explorer(root, {**files, f"f{count - 2:02}.py": f"def sell():\n    return sell\n{padding}"})


def paged(found: Explorer, limit: int) -> list[LookupAnswer[ReferenceRow]]:
    """The answers, page by page."""
    answers = [found.find_references("sell", page=Page(limit))]
    while (offset := answers[-1].next_offset) is not None:
        answers.append(found.find_references("sell", page=Page(limit, offset)))
    return answers


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is parsed from now on."""
    seen: list[bytes] = []
    parse = structure.parse

    def noted(data: bytes, language: Language) -> structure.Parsed | None:
        seen.append(data)
        return parse(data, language)

    monkeypatch.setattr(structure, "parse", noted)
    return seen


def test_a_page_of_a_name_in_many_files_parses_only_what_it_shows(tmp_path: Path, parsed: list[bytes]) -> None:
    answer = many(tmp_path).find_references("sell", page=Page(10))
    assert len(answer.results) == 10
    assert len(parsed) <= 12  # six of 30 files, each for its uses and for what they mean
    assert (answer.total_at_least, answer.truncated, answer.next_offset, answer.complete) == (True, True, 10, True)
    assert answer.total > 10
    assert [note for note in answer.notes if "the next page tells on" in note]


def test_what_the_symbol_cache_knows_to_define_the_name_comes_first_however_far_back_it_stands(tmp_path: Path) -> None:
    found = many(tmp_path)
    found.refresh_all()
    assert [(row.path, row.kind) for row in found.find_references("sell", page=Page(3)).results[:2]] == [
        ("f28.py", Use.DEFINITION),
        ("f28.py", Use.OTHER),
    ]


def test_files_that_nobody_writes_come_last_even_if_they_define_the_name(tmp_path: Path) -> None:
    """Found in babel: two fifths of the first page of `get` were lines of a bundled tool."""
    found = many(tmp_path)
    wide = "".join(f"x{number} = {number}; " for number in range(400))
    write(tmp_path, {"a_bundle.py": f"{wide}\ndef sell(): {wide}\n", "vendor/a.py": "def sell(): pass\n"})
    found.refresh_all()
    rows = [row for answer in paged(found, 20) for row in answer.results]
    assert rows[0].path == "f28.py"
    assert [row.path for row in rows[-2:]] == ["a_bundle.py", "vendor/a.py"]


def test_the_pages_lead_through_all_of_them_and_the_last_one_knows_the_total(tmp_path: Path) -> None:
    found = many(tmp_path)
    answers = paged(found, 7)
    rows = [row for answer in answers for row in answer.results]
    assert (len(rows), len(set(rows)), len(answers)) == (60, 60, 9)
    assert all(answer.total_at_least for answer in answers[:-2])
    answer = answers[-1]
    assert (answer.total, answer.total_at_least, answer.notes) == (60, False, ())


def test_a_later_page_is_the_same_for_one_who_has_not_seen_those_before(tmp_path: Path) -> None:
    found = many(tmp_path)
    found.find_references("sell", page=Page(10))
    assert (
        found.find_references("sell", page=Page(10, 30)).results
        == Explorer(tmp_path).find_references("sell", page=Page(10, 30)).results
    )


def test_kinds_are_looked_for_until_the_page_is_full_or_nothing_is_left(tmp_path: Path) -> None:
    answer = many(tmp_path).find_references("sell", kinds=["definition"])
    assert [(row.path, row.kind.value) for row in answer.results] == [("f28.py", "definition")]
    assert (answer.total, answer.total_at_least) == (1, False)


def test_a_symbol_cache_that_cannot_be_read_costs_the_order_only(tmp_path: Path) -> None:
    found = many(tmp_path)
    found.refresh_all()
    stores = list((tmp_path / ".code-intel").rglob("symbols*"))
    assert stores
    for file in stores:
        file.write_bytes(b"no database" * 1000)
    answer = Explorer(tmp_path).find_references("sell", page=Page(10))
    assert (len(answer.results), answer.results[0].path, answer.complete) == (10, "f00.py", True)


@settings(deadline=None, max_examples=40)
@given(files=projects, limit=st.integers(1, 7), cached=st.booleans())
def test_whatever_the_page_all_pages_together_hold_what_telling_the_whole_holds(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[str]], limit: int, cached: bool
) -> None:
    root = write(tmp_path_factory.mktemp("shop"), {f"f{at}.py": "".join(lines) for at, lines in enumerate(files)})
    whole = Explorer(root).find_references("sell", page=Page(1000))
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(first_page, "WHOLE_BYTES", 0)
        found = Explorer(root)
        if cached:
            found.refresh_all()
        answers = paged(found, limit)
    rows = [row for answer in answers for row in answer.results]
    assert all(len(answer.results) == limit for answer in answers[:-1])
    # Whether a bare name is declared anywhere is known of the whole only: then what lies outside is counted.
    assert len(rows) == len(whole.results) + whole.other
    assert set(rows) >= set(whole.results)
    assert (answers[-1].total, answers[-1].total_at_least) == (len(rows), False)
