"""How large an answer may become: 10,000 characters of rows, 256 KB whatever it holds (SPEC 2, Answers)."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from code_intel_server.codebase.answers import InFile, Page, answer
from code_intel_server.tools.shaping import (
    DEFAULT_CHARACTERS,
    MAX_ANSWER_BYTES,
    Fields,
    answer_rows,
    answer_text,
    places,
    within_limit,
)


@dataclass(frozen=True)
class Row:
    """A row as a lookup gives it."""

    path: str
    source: str = ""
    calls: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()


def listed(*found: Row, offset: int = 0) -> dict[str, Any]:
    """The answer of a list tool that found these rows."""
    return {**answer_rows(answer(found, Page(len(found) or 1, offset), offset + len(found), engine="test"), offset)}


def size(shaped: dict[str, Any]) -> int:
    return len(answer_text(shaped))


def test_rows_that_do_not_fit_are_left_for_the_next_page() -> None:
    shaped = listed(*(Row(f"{number}.py", "x" * 3000) for number in range(9)))
    assert size(shaped) < DEFAULT_CHARACTERS
    assert shaped["truncated"]
    assert shaped["next_offset"] == len(shaped["results"]) == 3


@pytest.mark.parametrize(
    "row",
    [
        Row("one.py", "x = 1\n" * 9000),
        Row("one.py", "x" * 90_000),
        Row("one.py", "\n" * 90_000),
        Row("one.py", '"' * 90_000),
        Row("one.py", calls=tuple(f"call_{number}" for number in range(9000))),
        Row("one.py", "x\n" * 3000, tuple("c" * 9000), tuple("s" * 9000)),
        Row("p" * 90_000),
    ],
)
def test_a_single_row_that_is_too_large_is_shown_without_its_ends_and_says_how_much_is_missing(row: Row) -> None:
    shaped = listed(row)
    assert size(shaped) < DEFAULT_CHARACTERS
    assert size(shaped) > DEFAULT_CHARACTERS // 2
    [shown] = shaped["results"]
    assert shaped["truncated"] is True
    assert shown["cut"] is True
    for name, missing in shown["left_out"].items():
        whole = getattr(row, name)
        assert len(shown[name]) + missing == len(whole)
        assert list(whole[: len(shown[name])]) == list(shown[name])


@dataclass(frozen=True)
class Line(InFile):
    """A line of a file, of one of two sorts."""

    path: str
    start_line: int
    sort: str = ""
    text: str = ""

    @property
    def heading(self) -> dict[str, object]:
        return {"sort": self.sort} if self.sort else {}

    def as_row(self) -> str:
        return f"{self.start_line}: {self.text or f'line {self.start_line}'}"


def test_lines_of_one_file_that_read_the_same_share_a_row() -> None:
    found = (
        Line("a.py", 1, text="x()"),
        Line("a.py", 2, text="y()"),
        Line("b.py", 7, text="x()"),
        Line("a.py", 9, text="x()"),
    )
    shaped: dict[str, Any] = {**answer_rows(answer(found, Page(), len(found), engine="test"))}
    assert shaped["results"] == [
        {"path": "a.py", "rows": ["1, 9: x()", "2: y()"]},
        {"path": "b.py", "rows": ["7: x()"]},
    ]
    assert places(shaped) == ["a.py:1", "a.py:9", "a.py:2", "b.py:7"]
    assert (shaped["total"], shaped["complete"]) == (4, True)


def test_lines_that_read_the_same_are_as_many_as_fit() -> None:
    found = tuple(Line("a.py", 1000 + number, text="x()") for number in range(3000))
    shaped: dict[str, Any] = {**answer_rows(answer(found, Page(3000), 3000, engine="test"), 0)}
    assert size(shaped) < DEFAULT_CHARACTERS
    assert shaped["next_offset"] == len(places(shaped)) < 3000


def test_lines_of_one_file_stand_below_its_path_whatever_stands_between_them() -> None:
    found = (Line("a.py", 1), Line("b.py", 7), Line("a.py", 2), Line("a.py", 3, "sure"))
    shaped: dict[str, Any] = {**answer_rows(answer(found, Page(), len(found), engine="test"))}
    assert shaped["results"] == [
        {"path": "a.py", "rows": ["1: line 1", "2: line 2"]},
        {"path": "b.py", "rows": ["7: line 7"]},
        {"path": "a.py", "sort": "sure", "rows": ["3: line 3"]},
    ]
    assert places(shaped) == ["a.py:1", "a.py:2", "b.py:7", "a.py:3"]
    assert (shaped["total"], shaped["complete"]) == (4, True)


def test_the_next_page_goes_on_behind_the_rows_that_were_shown_and_the_answer_is_not_complete() -> None:
    found = tuple(Line(f"{number % 3}.py", number) for number in range(2000))
    shaped: dict[str, Any] = {**answer_rows(answer(found, Page(2000, 100), 2100, engine="test"), 100)}
    assert size(shaped) < DEFAULT_CHARACTERS
    assert shaped["next_offset"] == 100 + len(places(shaped)) < 2100
    assert (shaped["truncated"], shaped["complete"]) == (True, False)
    assert len(shaped["results"]) == 3


def test_a_text_is_cut_between_its_lines() -> None:
    [shown] = listed(Row("one.py", "value = 1\n" * 9000))["results"]
    assert shown["source"].endswith("\nvalue = 1")


def test_what_is_within_the_limit_is_left_as_it_is() -> None:
    small: Fields = {"success": True, "text": "x" * 200_000}
    assert within_limit(small, lambda: "too much") == (small, answer_text(small))


LEAF = st.sampled_from(["x" * 70_000, "€" * 30_000, "short", 7])
MANY = st.one_of(
    LEAF.map(lambda leaf: [leaf] * 90),
    LEAF.map(lambda leaf: {f"step_{number}": leaf for number in range(60)}),
    st.lists(LEAF, max_size=3).map(lambda leaves: {"rows": [{"text": leaf} for leaf in leaves]}),
    st.just([["y" * 300] * 60] * 60),
)
VALUES = st.one_of(LEAF, MANY)


@settings(max_examples=20)
@given(st.dictionaries(st.sampled_from(["results", "phase_summaries", "instruction", "notes"]), VALUES))
def test_no_answer_of_any_shape_exceeds_256_kb(fields: Fields) -> None:
    shaped, text = within_limit({"success": True} | fields, lambda: "too much")
    assert len(text.encode()) <= MAX_ANSWER_BYTES
    assert json.loads(text) == shaped
    assert shaped["success"] is True
    if shaped != {"success": True} | fields:
        assert (shaped["truncated"], shaped["truncation_warning"]) == (True, "too much")


def test_all_summaries_of_a_session_are_shown_by_their_beginnings() -> None:
    summaries: Fields = {
        f"step_13_READY_IMPLEMENTATION.t{number}": f"{number} is done. " + "x" * 60_000 for number in range(40)
    }
    answered: Fields = {"success": True, "phase_summaries": summaries}
    shaped, text = within_limit(answered, lambda: "too much")
    assert len(text.encode()) <= MAX_ANSWER_BYTES
    shown = shaped["phase_summaries"]
    assert isinstance(shown, dict)
    assert all(str(shown[key]).startswith(str(text)[:12]) for key, text in summaries.items())
