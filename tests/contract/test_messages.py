"""Placeholders are put in by plain name, once, and nothing else is understood."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from code_intel_server.common.printable import printable
from code_intel_server.contract.messages import (
    MAX_LISTED,
    MAX_VALUE_CHARACTERS,
    Message,
    misused_brace,
    placeholders,
    shown_value,
    substitute,
)

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


def escaped(text: str) -> str:
    """`text` as a contract author writes it to be shown as it stands."""
    return text.replace("{", "{{").replace("}", "}}")


@settings(deadline=None)
@given(st.text())
def test_an_escaped_text_comes_back_as_it_was(text: str) -> None:
    assert substitute(escaped(text), {"name": "value"}) == text
    assert misused_brace(escaped(text)) is None
    assert placeholders(escaped(text)) == frozenset()


@settings(deadline=None)
@given(st.text(max_size=50), names, st.text(max_size=200), st.text(max_size=50))
def test_a_value_is_put_in_once_whatever_it_contains(before: str, name: str, value: str, after: str) -> None:
    text = escaped(before) + "{" + name + "}" + escaped(after)
    if before.endswith("{") or after.startswith("}"):
        return  # the doubled brace and the placeholder's own run together: {{{name}
    assert substitute(text, {name: value}) == before + printable(value) + after
    assert placeholders(text) == {name}


@settings(deadline=None)
@given(st.text(), st.dictionaries(names, st.text(max_size=20)))
def test_any_text_at_all_is_substituted_without_failing(text: str, params: dict[str, str]) -> None:
    assert isinstance(substitute(text, params), str)


@settings(deadline=None)
@given(st.text(alphabet="{}ab.[0]!:r>_ ", max_size=30))
def test_a_text_without_misused_braces_leaves_no_single_opening_brace(text: str) -> None:
    if misused_brace(text) is None:
        assert "{" not in substitute(text.replace("{{", ""), dict.fromkeys(placeholders(text), "x"))


class Secret:
    """A value with an attribute that no text may reach."""

    token = "hidden"

    def __str__(self) -> str:
        return "shown"


@pytest.mark.parametrize(
    "text", ["{v.token}", "{v[0]}", "{v!r}", "{v:>10}", "{0}", "{}", "{v.__class__}", "{ v }", "{", "{a"]
)
def test_attributes_indexes_conversions_and_formats_are_not_understood(text: str) -> None:
    assert misused_brace(text) == text
    assert substitute(text, {"v": Secret(), "0": "zero"}) == text
    assert placeholders(text) == frozenset()


def test_a_placeholder_without_a_value_stays_visible() -> None:
    assert substitute("{a} and {b}", {"a": 1}) == "1 and {b}"


def test_a_value_is_shown_as_text_and_a_list_with_commas() -> None:
    assert shown_value(Secret()) == "shown"
    assert shown_value(["a.py", "b.py"]) == "a.py, b.py"
    assert shown_value(3) == "3"
    assert shown_value("\x1b[31mred\u202e") == "\\x1b[31mred\\u202e"


def test_a_long_list_and_a_long_value_are_cut_and_say_so() -> None:
    assert shown_value([str(n) for n in range(MAX_LISTED)]).endswith(f", {MAX_LISTED - 1}")
    assert shown_value([str(n) for n in range(MAX_LISTED + 5)]).endswith("… and 5 more")
    assert shown_value("x" * (MAX_VALUE_CHARACTERS + 1)) == "x" * MAX_VALUE_CHARACTERS + "…"


def test_all_texts_of_a_message_get_their_values() -> None:
    template = Message(error="e_{a}", text="t {b}", instruction="i {c}", requires_user_intervention=True)
    message = template.render({"a": 1, "b": 2, "c": 3})
    assert (message.error, message.text, message.instruction) == ("e_1", "t 2", "i 3")
    assert message.requires_user_intervention
    assert template.names() == {"a", "b", "c"}
    assert Message(text="plain").render({}).instruction is None
