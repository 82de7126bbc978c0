"""`path:line` claims of an agent: a wrong place comes back as a hint with the right one, never as a refusal (SPEC 4)."""

import pytest

from tests.flow.world import Session, World

FAR = "\n" * 28
"""Enough lines for two places to be far from one another."""
SHOP = f"import os\n{FAR}\n\ndef pay(order):\n    return order\n\n\nclass Basket:\n    def total_price(self):\n        return 0\n"
USES = f"from shop import total_price\n{FAR}{FAR}\n\nx = total_price()\n"
LONG = "def first_of_all():\n" + "    step()\n" * 40 + "    return 1\n"
FILES = {
    "long.py": LONG,
    "app.py": "def main():\n    return 1\n",
    "shop.py": SHOP,
    "uses.py": USES,
    "README.md": "# App\n",
}


def hints(*findings: str) -> list[str]:
    """What EXPLORATION says to these findings."""
    session = Session(world=World(files=dict(FILES)))
    session.send(documents_reviewed=["README.md"])
    session.frame()
    session.world.call("search_text", *FILES)
    session.world.call("find_definitions")
    tools = ["search_text", "find_definitions"]
    answer = session.send(explored_files=["shop.py"], findings=list(findings), tools_used=tools)
    assert answer["success"]
    said = answer.get("hints", [])
    assert isinstance(said, list)
    return said


@pytest.mark.parametrize(
    "finding",
    [
        "shop.py:32 - pay() takes the order",
        "shop.py:33 - within `pay`",
        "shop.py:36-38 - Basket.total_price is here",
        "shop.py:37 says nothing that looks like code",
        "`pay` (shop.py:32) and `total_price` (shop.py:37)",
        "shop.py:34 - some lines beside `pay`",
        "`total_price` sums up. The rules are elsewhere (shop.py:1), and app.py has none.",
        "shop.py:1 - the imports. Then total_price() sums up",
        "long.py:30 - a step of `first_of_all`",
        "long.py:30 is within `first_of_all`",
        "shop.py:1 - `no_such_name` anywhere",
        "shop.py:1 - the flag is set here, which also undoes what `pay` did",
        "shop.py:1 is the only reader of it, and rendering goes through total_price()",
        "Two callers rely on `total_price`, as does shop.py:1",
        "nowhere.py:99 - pay()",
        "http://localhost:8080 answers with get_it()",
        "shop.py - pay() without a line",
    ],
)
def test_a_claim_that_holds_or_says_nothing_that_can_be_looked_up_gets_no_hint(finding: str) -> None:
    assert hints(finding) == []


@pytest.mark.parametrize(
    ("finding", "hint"),
    [
        ("shop.py:1 - total_price() sums up", "total_price is not at shop.py:1; it is at shop.py:37."),
        ("pay() is at shop.py:10", "pay is not at shop.py:10; it is at shop.py:32."),
        ("uses.py:31 - total_price() is called", "total_price is not at uses.py:31; it is at uses.py:60."),
        ("app.py:1 - defines `Basket.total_price`", "Basket.total_price is not at app.py:1; it is at shop.py:37."),
        (
            "shop.py:90 - Basket.total_price",
            "shop.py:90 does not exist: shop.py has 38 lines. Basket.total_price is at shop.py:37.",
        ),
        ("shop.py:38-39 - the end", "shop.py:38-39 does not exist: shop.py has 38 lines."),
        ("shop.py:0", "shop.py:0 does not exist: shop.py has 38 lines."),
    ],
)
def test_a_wrong_place_is_answered_with_the_right_one(finding: str, hint: str) -> None:
    assert hints(finding) == [hint]


def test_a_crowd_of_wrong_places_gets_five_hints() -> None:
    assert len(hints(*(f"shop.py:{number} - gone" for number in range(100, 400)))) == 5


def test_documents_and_the_summary_of_an_impact_are_looked_up_too() -> None:
    session = Session(world=World(files=dict(FILES)))
    answer = session.send(
        documents_reviewed=["README.md:7 - the rules", "README.md - all of it"], summary="See README.md:9."
    )
    assert answer["success"]
    assert [str(hint)[:24] for hint in answer["hints"]] == ["README.md:7 does not exi", "README.md:9 does not exi"]  # type: ignore[attr-defined]
    session.frame()
    session.explore()
    session.send(needs_more_information=False, reason="Everything was found.")
    session.send(has_unverified_hypotheses=False, reason="Nothing is left open.")
    session.send(needs_impact_analysis=True, reason="Others may call it.")
    session.world.call("analyze_impact")
    summary = {"callers": [{"place": "uses.py:31 - `total_price`"}], "tests": "none", "count": 3}
    answer = session.send(impact_summary=summary, tools_used=["analyze_impact"])
    assert "total_price is not at uses.py:31; it is at uses.py:60." in answer["hints"]  # type: ignore[operator]


def test_a_document_that_does_not_exist_is_refused_whatever_is_said_of_it() -> None:
    session = Session(world=World(files=dict(FILES)))
    session.send(documents_reviewed=["GUIDE.md:1 - the rules"])
    assert session.error == "failures.DOCUMENT_RESEARCH.document_not_found"


def test_a_target_symbol_that_nothing_in_the_request_speaks_of_is_named() -> None:
    world = World(likeness={"render_chart": 0.01, "make_page": 0.02, "submit_login": 0.01, "main": 0.4})
    session = Session(world=world, query="Add a login page to the App")
    session.send(documents_reviewed=["README.md"])
    answer = session.send(action_type="add", target_symbols=["render_chart", "make_page", "submit_login", "main"])
    far = [str(hint) for hint in answer["hints"] if "target symbols" in str(hint)]  # type: ignore[attr-defined]
    [hint] = far
    assert hint.endswith("(likeness in brackets): render_chart (0.01). Keep those that the work needs all the same.")
