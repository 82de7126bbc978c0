"""Words for BM25: the same for code and for questions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from code_intel_server.index.retrieval.lexical import expand, index_terms, query_terms, stem


@pytest.mark.parametrize("spelling", ["getHTTPResponse", "get_http_response", "GetHttpResponse", "GET_HTTP_RESPONSE"])
def test_every_spelling_of_a_name_gives_the_same_terms(spelling: str) -> None:
    assert expand(spelling) == expand("getHttpResponse")
    assert "gethttpresponse" in expand(spelling)


@pytest.mark.parametrize(
    "words",
    [
        ("validate", "validation", "validator", "validating"),
        ("route", "router", "routing", "routes"),
        ("log", "logger", "logging", "logs"),
    ],
)
def test_forms_of_a_word_share_a_stem(words: tuple[str, ...]) -> None:
    assert len({stem(word) for word in words}) == 1


@pytest.mark.parametrize("word", ["class", "status", "this", "bus", "is", "as"])
def test_a_final_s_that_is_no_plural_stays(word: str) -> None:
    assert stem(word).endswith("s")


def test_numbers_inside_names_are_words_of_their_own() -> None:
    assert set(expand("sha256sum")) >= {"sha", "256", "sum"}


def test_a_question_loses_its_small_words_but_never_all_words() -> None:
    assert query_terms("how is the login throttled") == query_terms("login throttled")
    assert query_terms("what is this") != []


def test_scripts_without_spaces_are_found_by_pairs_of_characters() -> None:
    assert set(index_terms("ログイン制限").split()) & set(query_terms("制限"))


@settings(deadline=None)
@given(st.text())
def test_the_terms_of_a_question_are_among_those_of_the_same_text_indexed(text: str) -> None:
    assert {*query_terms(text)} <= {*index_terms(text).split()}
