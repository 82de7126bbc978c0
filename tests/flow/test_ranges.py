"""Which changed places a range touches, and where they are after later changes."""

from code_intel_server.flow.checks.ranges import followed, spots
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
