"""Text of unknown origin can neither steer a terminal nor hide from a reader."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_intel_server.common.plain import plain
from code_intel_server.common.printable import _HIDDEN, _escape, printable


def test_what_steers_or_hides_is_written_as_an_escape() -> None:
    assert printable("a\x1b[31mb") == "a\\x1b[31mb"
    assert printable("x\u202ey\u200bz\ufeff") == "x\\u202ey\\u200bz\\ufeff"
    assert printable("\x9b\x7f\r\0") == "\\x9b\\x7f\\x0d\\x00"
    assert printable("\ud800 \U000e0041") == "\\ud800 \\U000e0041"


def test_what_people_write_stays_as_it_is() -> None:
    text = "def größe():\n\treturn '日本 ✓ 🎉'\n"
    assert printable(text) == text


@pytest.mark.parametrize("before", ["", "a long text of plain letters\n" * 10], ids=["short", "long"])
def test_every_sign_is_treated_alike_in_a_short_text_and_in_a_long_one(before: str) -> None:
    for code in (*range(0x300), *range(0x2000, 0x2070), 0xD800, 0xFEFF, 0xE0041):
        sign = chr(code)
        assert printable(before + sign) == before + _HIDDEN.sub(lambda match: _escape(ord(match[0])), sign)


@given(st.text(st.characters()))
def test_nothing_invisible_is_left_and_saying_it_twice_changes_nothing(text: str) -> None:
    shown = printable(text)
    assert all(char in "\n\t" or ord(char) >= 32 for char in shown)
    assert printable(shown) == shown
    shown.encode("utf-8")


def test_a_value_of_any_kind_is_plain_json() -> None:
    assert plain({"a": (1, None, Path("x")), "b": {"c": True}}) == {"a": [1, None, "x"], "b": {"c": True}}
