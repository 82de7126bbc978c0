"""query: a question goes to the lookup it asks for, and the answer says which and why."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.codebase.lookup_project import explorer

from code_intel_server.codebase.answers import FIRST_PAGE, LookupAnswer, answer
from code_intel_server.codebase.query_router import route
from code_intel_server.codebase.symbols.definitions import DefinitionRow
from code_intel_server.errors import Rejected

FILES = {
    "src/shop/basket.py": "class Basket:\n    def total_price(self):\n        raise ValueError('basket is empty')\n",
    "src/shop/session_middleware.py": "class SessionMiddleware:\n    def handle(self):\n        return 1\n",
    "src/use.py": "from shop.basket import Basket\n\n\ndef pay():\n    return Basket().total_price()\n",
    "pyproject.toml": "[project]\n",
}


@pytest.mark.parametrize(
    ("question", "tool", "first"),
    [
        ("Basket", "find_definitions", ("src/shop/basket.py", 1)),
        ("Where is Basket.total_price defined?", "find_definitions", ("src/shop/basket.py", 2)),
        ("what does total_price() do", "find_definitions", ("src/shop/basket.py", 2)),
        ("who calls total_price?", "find_references", ("src/shop/basket.py", 2)),
        ("where is `Basket` used", "find_references", ("src/shop/basket.py", 1)),
        ("what breaks if I change total_price", "analyze_impact", ("src/shop/basket.py", 2)),
        ("where does the error 'basket is empty' come from", "search_text", ("src/shop/basket.py", 3)),
        ("src/shop/basket.py", "get_symbols", ("src/shop/basket.py", 1)),
        ("what is in src/shop/basket.py?", "get_symbols", ("src/shop/basket.py", 1)),
        ("files named basket", "search_files", ("src/shop/basket.py", 1)),
        ("outline of src/shop/basket.py", "get_symbols", ("src/shop/basket.py", 1)),
        ("structure of the folder src/shop", "analyze_structure", ("src/shop/basket.py", 1)),
        ("src/use.py:5", "get_function_at_line", ("src/use.py", 4)),
        ("*.toml", "search_files", ("pyproject.toml", 1)),
        ("basket.py", "search_files", ("src/shop/basket.py", 1)),
        ("session middleware", "find_definitions", ("src/shop/session_middleware.py", 1)),
    ],
)
def test_a_question_goes_to_the_lookup_it_asks_for(
    tmp_path: Path, question: str, tool: str, first: tuple[str, int]
) -> None:
    routed = route(explorer(tmp_path, FILES), question)
    assert routed.chosen.tool == tool
    row = routed.chosen.answer.results[0]
    assert (row.path, getattr(row, "start_line", 1)) == first
    assert routed.chosen.why


@pytest.mark.parametrize(("question", "tool"), [
    ("where is pay defined?", "find_definitions"), ("Where is the function pay?", "find_definitions"),
    ("definition of pay", "find_definitions"), ("who calls pay", "find_references"),
    ("callers of the pay method", "find_references"), ("What breaks if I rename pay?", "analyze_impact"),
    ("where is refund defined?", "semantic_search"), ("who calls customers to pay", "semantic_search"),
    ("where is the customer told to pay", "semantic_search"),
])  # fmt: skip
def test_a_plain_word_is_a_name_where_the_question_asks_for_one_and_there_is_one(
    tmp_path: Path, question: str, tool: str
) -> None:
    meant = answer(["a chunk"], FIRST_PAGE, 1, engine="forest")
    assert route(explorer(tmp_path, FILES), question, semantic=lambda *_: meant).chosen.tool == tool


def test_what_finds_nothing_gives_way_to_the_next_and_all_are_told(tmp_path: Path) -> None:
    routed = route(explorer(tmp_path, FILES), "totl_price")
    assert [step.tool for step in routed.steps] == ["find_definitions", "find_references", "find_definitions"]
    assert routed.chosen.answer.results[0].symbol == "total_price"


def test_semantic_search_answers_plain_language_only_where_it_is_offered(tmp_path: Path) -> None:
    found = explorer(tmp_path, FILES)
    asked: list[tuple[str, int]] = []

    def semantic(question: str, limit: int) -> LookupAnswer[str]:
        asked.append((question, limit))
        return answer(["a chunk"], FIRST_PAGE, 1, engine="forest")

    question = "how are customers charged in the end"
    assert route(found, question, limit=7, semantic=semantic).chosen.tool == "semantic_search"
    assert asked == [(question, 7)]
    assert route(found, "where is Basket defined", semantic=semantic).chosen.tool == "find_definitions"
    assert route(found, question).chosen.tool != "semantic_search"


def test_a_question_that_nothing_answers_still_says_what_was_tried(tmp_path: Path) -> None:
    routed = route(explorer(tmp_path, FILES), "zebra quantum flux")
    assert routed.chosen.answer.results == ()
    assert len(routed.steps) >= 2


def test_an_empty_question_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match=r"query\.no_pattern"):
        route(explorer(tmp_path, FILES), " \n")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=60).filter(lambda text: re.search(r"[\w.?/]", text)))
def test_any_question_gets_an_answer(tmp_path: Path, question: str) -> None:
    assert route(explorer(tmp_path, FILES), question).steps


@pytest.mark.parametrize(
    ("question", "tool", "path"),
    [
        ("where is .btn-primary defined?", "find_definitions", "site.css"),
        ("#main", "find_definitions", "site.css"),
        ("what does `.btn-primary` look like", "find_definitions", "site.css"),
        ("which pages use .btn-primary?", "find_references", "site.css"),
    ],
)
def test_a_css_class_or_id_is_a_name(tmp_path: Path, question: str, tool: str, path: str) -> None:
    found = explorer(tmp_path, {"site.css": "\n#main .btn-primary { top: 0 }\n", "a.py": "primary = 'main'\n"})
    chosen = route(found, question).chosen
    assert (chosen.tool, chosen.answer.results[0].path) == (tool, path)


def test_a_files_ending_is_no_css_class(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.py": "x = 1\n", "b.css": ".py { top: 0 }\n"})
    assert all(step.arguments.get("symbol") != ".py" for step in route(found, "which .py files are there?").steps)


@pytest.mark.parametrize("question", [
    "how is the If-Range header compared", "what does generate do with SHA-1", "Sec-WebSocket-Accept", "Content-Type",
])  # fmt: skip
def test_no_part_of_a_hyphenated_word_that_nothing_defines_is_a_name(tmp_path: Path, question: str) -> None:
    """Found by real agents: `Range`, `SHA` and `WebSocket` were looked up."""
    found = explorer(tmp_path, {"a.py": "class Range: ...\nclass WebSocket: ...\nSHA = Content = Type = 1\n"})
    meant = answer(["a chunk"], FIRST_PAGE, 1, engine="forest")
    routed = route(found, question, semantic=lambda *_: meant)
    assert {"Range", "WebSocket", "SHA", "Content", "Type"}.isdisjoint(
        step.arguments.get("symbol") for step in routed.steps
    )
    assert "symbols" not in routed.chosen.arguments


def test_a_hyphenated_word_that_is_defined_is_a_name(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.ps1": "function Get-Basket {\n  return 1\n}\n"})
    chosen = route(found, "where is Get-Basket defined?").chosen
    assert (chosen.tool, chosen.arguments["symbol"]) == ("find_definitions", "Get-Basket")
    assert chosen.answer.results[0].start_line == 1


DOTTED = {
    ".gitignore": "*.pyc\n.DS_Store\n",
    "a.c": "#define MAX 4\n/* #region one */\n#include <stdio.h>\n",
    "read.py": "ignored = '.gitignore'\n",
    "site.css": ".card { top: 0 }\n#region { top: 0 }\n",
}


@pytest.mark.parametrize(
    ("question", "tool", "path"),
    [
        ("where is .gitignore read", "search_text", "read.py"),
        (".gitignore", "search_text", "read.py"),
        ("how does #define work", "search_text", "a.c"),
        ("who reads .DS_Store", "find_references", ".gitignore"),
        ('"#region one"', "search_text", "a.c"),
        ('"#region"', "search_text", "a.c"),
        ("'.card'", "search_text", "site.css"),
        ("`#include`", "search_text", "a.c"),
        ("`#region`", "find_definitions", "site.css"),
        ("where is .card defined", "find_definitions", "site.css"),
    ],
)
def test_what_no_style_sheet_has_or_stands_in_quotes_is_no_css_name(
    tmp_path: Path, question: str, tool: str, path: str
) -> None:
    routed = route(explorer(tmp_path, DOTTED), question)
    assert routed.chosen.tool == tool, routed.steps
    assert path in [row.path for row in routed.chosen.answer.results]
    if tool != "find_definitions":
        assert not any(str(step.arguments.get("symbol", "")).startswith((".", "#")) for step in routed.steps)


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("Fix Content type of a reply without a body", "semantic_search"),
        ("Sponsors are shown twice in the footer", "semantic_search"),
        ("Fix `Basket` which charges the customer twice for one voucher", "semantic_search + find_definitions"),
        ("where is the error 'basket is empty' raised", "search_text"),
        ("what does total_price() do", "find_definitions"),
    ],
)
def test_prose_goes_to_meaning_and_what_names_something_in_prose_is_asked_both_ways(
    tmp_path: Path, question: str, tool: str
) -> None:
    hits = [DefinitionRow("src/use.py", 4, 5, "pay", "function", "", "", "", "python", "index")]
    meant = answer(hits, FIRST_PAGE, 1, engine="forest")
    chosen = route(explorer(tmp_path, FILES), question, semantic=lambda *_: meant).chosen
    assert chosen.tool == tool
    if "+" in tool:
        assert [row.path for row in chosen.answer.results] == ["src/use.py", "src/shop/basket.py"]
