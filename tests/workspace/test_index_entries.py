"""What an index or a tree holds answers as a dictionary of it would, in git's own order."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_intel_server.workspace.git.index_entries import IndexEntries, IndexEntry, side_by_side

NAMES = st.binary(min_size=1, max_size=6).filter(lambda name: b"\0" not in name)
ROWS = st.dictionaries(
    NAMES, st.tuples(st.sampled_from("HSM"), st.sampled_from(["100644", "120000"]), st.integers(0, 9))
)
Rows = dict[bytes, tuple[str, str, int]]


def listed(rows: Rows, tree: bool = False) -> bytes:
    """As git lists them."""
    heads = {
        name: f"{mode} blob {oid:040}" if tree else f"{tag} {mode} {oid:040} 0"
        for name, (tag, mode, oid) in rows.items()
    }
    return b"".join(heads[name].encode() + b"\t" + name + b"\0" for name in sorted(rows))


def plain(rows: Rows, tree: bool = False) -> dict[str, IndexEntry]:
    return {
        os.fsdecode(name): IndexEntry(mode, f"{oid:040}", tag == "S" and not tree)
        for name, (tag, mode, oid) in rows.items()
    }


@given(ROWS, NAMES, st.booleans())
def test_a_listing_is_looked_into_like_a_dictionary(rows: Rows, other: bytes, tree: bool) -> None:
    entries = IndexEntries(listed(rows, tree))
    assert dict(entries) == plain(rows, tree)
    assert len(entries) == len(rows)
    assert entries.get(os.fsdecode(other)) == plain(rows, tree).get(os.fsdecode(other))
    assert [os.fsdecode(name) for name, _ in entries.rows()] == list(entries)


@given(ROWS, ROWS)
def test_two_listings_side_by_side_name_every_path_once(left: Rows, right: Rows) -> None:
    pairs = list(side_by_side(IndexEntries(listed(left)).rows("p/"), IndexEntries(listed(right)).rows("p/")))
    one, other = plain(left), plain(right)
    assert [path for path, _ in pairs] == [f"p/{os.fsdecode(name)}" for name in sorted({*left, *right})]
    assert pairs == [(path, (one.get(path[2:]), other.get(path[2:]))) for path, _ in pairs]


def test_of_an_unmerged_path_the_last_stage_counts() -> None:
    entries = IndexEntries(b"".join(b"M 100644 %040d %d\ta b\tc\0" % (stage, stage) for stage in (1, 2, 3)))
    assert dict(entries) == {"a b\tc": IndexEntry("100644", f"{3:040}")}
    assert len(entries) == 1


@pytest.mark.parametrize("path", ["\ud800", "", "x"])
def test_what_no_index_can_hold_is_not_in_it(path: str) -> None:
    assert path not in IndexEntries(b"H 100644 %040d 0\ta\0" % 1)


def test_a_forged_tree_out_of_order_is_read_all_the_same() -> None:
    entries = IndexEntries(
        b"".join(b"100644 blob %040d\t%c\0" % (number, name) for number, name in enumerate(b"cabca"))
    )
    assert dict(entries) == {
        name: IndexEntry("100644", f"{number:040}") for name, number in (("a", 4), ("b", 2), ("c", 3))
    }


@pytest.mark.parametrize("output", [b"x", b"H 100644 %040d 0\ta" % 1, b"\0", b"fatal: no\0"])
def test_what_is_no_listing_is_never_taken_for_an_empty_one(output: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        IndexEntries(output)
