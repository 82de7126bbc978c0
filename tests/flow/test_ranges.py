"""Which changed places a range touches, and where they are after later changes."""

import pytest

from code_intel_server.flow.ranges import followed, only_white_space, spots
from code_intel_server.workspace.values import Hunk

REPLACED = Hunk(3, 1, 3, 2)
DELETED = Hunk(5, 2, 6, 0)


def test_a_range_touches_the_new_lines_of_a_hunk_and_the_gap_of_a_deletion() -> None:
    assert spots([REPLACED, DELETED], 1, 3) == {6}
    assert spots([REPLACED, DELETED], 4, 7) == {8, 13}
    assert spots([REPLACED], 9, 9) == frozenset()


def test_lines_above_later_work_stay_and_those_below_move_with_it() -> None:
    inserted = Hunk(2, 0, 3, 4)
    assert {2, 4} <= followed([inserted], 1, 2)
    assert {2 * 9, 2 * 10} <= followed([inserted], 5, 6)


def test_what_was_changed_again_is_new_work_and_left_out() -> None:
    assert 2 * 3 not in followed([Hunk(3, 1, 3, 1)], 3, 3)


@pytest.mark.parametrize(
    ("before", "after", "path", "same"),
    [
        (["a  = 1"], ["a = 1"], "x.c", True),
        (["a = 1"], ["  a = 1"], "x.c", True),
        (["a = 1"], ["  a = 1"], "x.py", False),
        (["a = 1", ""], ["a = 1", "b = 2"], "x.c", False),
        (["", "a"], ["a", ""], "x.c", True),
    ],
)
def test_white_space_is_told_from_change(before: list[str], after: list[str], path: str, same: bool) -> None:
    hunk = Hunk(1, len(before), 1, len(after))
    assert only_white_space(hunk, before, after, path) is same


def test_an_insertion_of_blank_lines_and_a_deletion_of_code_are_told_apart() -> None:
    assert only_white_space(Hunk(1, 0, 2, 1), ["a"], ["a", ""], "x.c")
    assert not only_white_space(Hunk(1, 1, 0, 0), ["a"], [], "x.c")
