"""Evidence is judged by syntax tree: what is no implementation is refused, what is one never is (SPEC 4, READY impl)."""

import pytest
from tests.codebase.emptiness_corpus import CASES, CODE, EMPTY, FORMS, TRIVIAL, Case, parts

from code_intel_server.codebase.evidence import judge_source
from code_intel_server.codebase.languages import language_of


def identity(case: Case) -> str:
    """`python-empty-12`."""
    return f"{case[0]}-{case[2]}-{CASES.index(case)}"


@pytest.mark.parametrize("case", CASES, ids=identity)
def test_no_verdict_of_the_corpus_is_wrong(case: Case) -> None:
    language, path, _, expected, marked = case
    text, start, end = parts(marked)
    found = language_of(path, text.encode())
    assert found is not None
    assert found.name == language
    verdict = judge_source(path, text.encode(), start, end)
    assert (EMPTY if verdict.empty else TRIVIAL if verdict.trivial else CODE) == expected, text


def test_at_least_fifteen_languages_show_all_six_forms() -> None:
    forms: dict[str, set[str]] = {}
    for language, _, form, _, _ in CASES:
        forms.setdefault(language, set()).add(form)
    complete = {language for language, seen in forms.items() if seen >= FORMS}
    assert len(complete) >= 15, complete
