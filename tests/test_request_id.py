"""The id of a request that no parser takes (SPEC 2: every call is answered)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_intel_server.common.request_id import request_id

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.integers(-(10**15), 10**15) | st.text(max_size=20), JSON, st.booleans())
def test_it_is_found_beside_any_parameters(number: int | str, params: object, ascii_only: bool) -> None:
    line = json.dumps({"jsonrpc": "2.0", "method": "m", "params": params, "id": number}, ensure_ascii=ascii_only)
    assert request_id(line) == number


@given(st.text(alphabet='{}[]",:\\id 1method', max_size=60))
def test_no_line_is_a_traceback(line: str) -> None:
    assert request_id(line) is None or '"id"' in line


@pytest.mark.parametrize("value", ["00", "-007", '"\\x"', '"\\u12"', '"a\tb"', '"\\ud800"', '"\ud800"'])
def test_what_is_nearly_an_id_is_none_and_ends_nothing(value: str) -> None:
    """Found by five thousand broken frames: a request with the id 00 ended the server."""
    assert request_id(f'{{"jsonrpc": "2.0", "method": "m", "id": {value}, "params": {{]}}') is None


@pytest.mark.parametrize(
    "line", ['{"method": "m", "params": "' + '\\"' * 400_000, '{"a": "' + "x" * 400_000, '"\\' * 300_000]
)
def test_a_string_without_end_is_read_once(line: str) -> None:
    assert request_id(line) is None  # in quadratic time this would take over ten minutes
