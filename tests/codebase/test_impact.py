"""analyze_impact: what a change touches, each place with its line, the certain before the likely."""

import time
from pathlib import Path

import pytest
from tests.codebase.lookup_project import explorer

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.files.roles import Role
from code_intel_server.codebase.impact import Impact, ImpactRow, Tie, analyze_impact
from code_intel_server.errors import Rejected

FILES = {
    "shop/price.py": "def net_price(item):\n    return item * 2\n",
    "shop/basket.py": "from shop.price import net_price\n\n\nclass Basket:\n    def total_sum(self):\n        return net_price(1)\n",
    "shop/till.py": "from shop.basket import Basket\n\n\ndef ring_up():\n    return Basket().total_sum()\n",
    "shop/far.py": "from shop.till import ring_up\n\n\ndef open_shop():\n    return ring_up()\n",
    "shop/alone.py": "def unrelated(): pass\n",
    "tests/test_price.py": "from shop.price import net_price\n\n\ndef test_net():\n    assert net_price(1) == 2\n",
    "docs/pricing.md": "# Prices\n\nUse net_price for prices.\n",
    "config/rules.yml": "rule: shop.price.net_price\n",
}


def by_path(impact: Impact) -> dict[str, ImpactRow]:
    return {row.path: row for row in impact.answer.results}


def test_a_change_is_followed_from_its_definition_over_uses_to_what_uses_those(tmp_path: Path) -> None:
    rows = by_path(explorer(tmp_path, FILES).analyze_impact(["net_price"], depth=3))
    assert (rows["shop/price.py"].start_line, rows["shop/price.py"].places[0].tie) == (1, Tie.DEFINES)
    assert {place.line for place in rows["shop/basket.py"].places} == {1, 6}
    assert (rows["shop/till.py"].start_line, rows["shop/till.py"].places[0].depth) == (5, 2)
    assert (rows["shop/far.py"].start_line, rows["shop/far.py"].places[0].depth) == (5, 3)
    assert "shop/alone.py" not in rows


def test_depth_limits_how_far_uses_are_followed(tmp_path: Path) -> None:
    found = explorer(tmp_path, FILES)
    assert "shop/till.py" not in by_path(found.analyze_impact(["net_price"], depth=1))
    assert "shop/far.py" not in by_path(found.analyze_impact(["net_price"], depth=2))


def test_places_come_in_the_groups_of_the_specification(tmp_path: Path) -> None:
    impact = explorer(tmp_path, FILES).analyze_impact(["net_price"])
    rows = by_path(impact)
    assert rows["shop/basket.py"].group is Role.CODE
    assert rows["tests/test_price.py"].group is Role.TESTS
    assert rows["docs/pricing.md"].group is Role.DOCUMENTATION
    assert rows["config/rules.yml"].group is Role.CONFIGURATION
    assert dict(impact.answer.counts) == {"code": 3, "tests": 1, "documentation": 1, "configuration": 1}


def test_direct_uses_must_be_verified_distant_and_soft_ties_should(tmp_path: Path) -> None:
    impact = explorer(tmp_path, FILES).analyze_impact(["net_price"])
    must = [(row.path, row.start_line) for row in impact.must_verify]
    assert sorted(must) == [("shop/basket.py", 6), ("tests/test_price.py", 5)]
    should = {(row.path, row.start_line) for row in impact.answer.results if not row.must_verify}
    assert should >= {("shop/till.py", 5), ("docs/pricing.md", 3), ("config/rules.yml", 1)}


def test_an_entry_that_must_be_verified_has_one_id_whenever_it_is_found(tmp_path: Path) -> None:
    found = explorer(tmp_path, FILES)
    first, again = (found.analyze_impact(targets).must_verify for targets in (["net_price"], ["shop/price.py:2"]))
    assert [row.must_verify for row in first] == [row.must_verify for row in again]
    assert len({row.must_verify for row in first}) == len(first) == 2


def test_what_certainly_means_another_of_the_name_is_left_out(tmp_path: Path) -> None:
    files = {
        "a.py": "class One:\n    def close_it(self): pass\n",
        "b.py": "class Two:\n    def close_it(self): pass\n",
        "use.py": "from a import One\n\ndef first():\n    One().close_it()\n",
        "other.py": "from b import Two\n\ndef second():\n    Two().close_it()\n",
    }
    impact = explorer(tmp_path, files).analyze_impact(["One.close_it"])
    assert [(row.path, row.start_line, row.places[0].certain) for row in impact.must_verify] == [("use.py", 4, True)]
    assert "other.py" not in by_path(impact)


def test_the_sentence_that_speaks_of_the_changed_code_stands_for_its_page(tmp_path: Path) -> None:
    page = "# net_price\n\nSee net_price.\n\nnet_price does not round the discount of an item.\n"
    files = {
        **FILES,
        "shop/price.py": "def net_price(item, discount):\n    return item * discount\n",
        "docs/pricing.md": page,
    }
    row = by_path(explorer(tmp_path, files).analyze_impact(["net_price"]))["docs/pricing.md"]
    assert (row.start_line, row.places[0].text) == (5, "net_price does not round the discount of an item.")


def test_other_readers_of_the_state_that_a_method_changes_are_tied_to_it(tmp_path: Path) -> None:
    files = {
        "a.py": "class Till:\n    def __init__(self):\n        self.cash_box = 0\n\n    def pay_in(self):\n        self.cash_box += 1\n",
        "b.py": "from a import Till\n\n\ndef count_up(till: Till):\n    return till.cash_box\n",
    }
    row = by_path(explorer(tmp_path, files).analyze_impact(["Till.pay_in"]))["b.py"]
    assert (row.start_line, row.places[0].tie, row.places[0].certain) == (5, Tie.STATE, True)


def test_what_the_changed_code_uses_is_tied_to_it(tmp_path: Path) -> None:
    row = by_path(explorer(tmp_path, FILES).analyze_impact(["Basket.total_sum"]))["shop/price.py"]
    assert (row.start_line, row.places[0].tie) == (1, Tie.USED)


def test_of_too_broad_a_target_the_members_are_told_to_choose_from(tmp_path: Path) -> None:
    many = "".join(f"def make_{number}(): pass\n" for number in range(30))
    impact = explorer(tmp_path, {"many.py": many}).analyze_impact(["many.py"])
    assert "many.py holds 30 names: ask for those that change, like make_" in impact.answer.notes[0]


def test_the_closest_comes_first(tmp_path: Path) -> None:
    paths = [row.path for row in explorer(tmp_path, FILES).analyze_impact(["net_price"]).answer.results]
    assert paths.index("shop/price.py") == 0
    assert paths.index("shop/basket.py") < paths.index("shop/till.py")


def test_all_that_must_be_verified_is_on_the_first_page(tmp_path: Path) -> None:
    """Found by a reader: own files that are unlikely to change came first and were not counted."""
    own = {f"own{number}.py": f"def own_{number}():\n    return {number}\n" for number in range(8)}
    calls = "".join(f"from own{number} import own_{number}\n" for number in range(8))
    uses = {f"use{number}.py": f"{calls}\n\ndef use():\n    own_{number}()\n" for number in range(4)}
    found = explorer(tmp_path, {**own, **uses}).analyze_impact(
        [f"own_{number}" for number in range(8)], history=lambda: [("own0.py", "use0.py")]
    )
    assert found.must_verify
    assert {row.path for row in found.must_verify} <= {row.path for row in found.answer.results}


def test_calls_in_a_circle_end(tmp_path: Path) -> None:
    files = {"a.py": "def first_one():\n    second_one()\n\n\ndef second_one():\n    first_one()\n"}
    impact = explorer(tmp_path, files).analyze_impact(["first_one"], depth=5)
    assert [row.path for row in impact.answer.results] == ["a.py"]


def test_a_file_stands_for_all_it_defines(tmp_path: Path) -> None:
    impact = explorer(tmp_path, FILES).analyze_impact(["shop/price.py"])
    assert {"shop/price.py", "shop/basket.py", "tests/test_price.py"} <= by_path(impact).keys()


def test_a_line_of_a_file_stands_for_the_symbol_around_it(tmp_path: Path) -> None:
    impact = explorer(tmp_path, FILES).analyze_impact(["shop/basket.py:6"])
    assert [(target.symbol, target.start_line) for target in impact.targets] == [("total_sum", 5)]
    assert "shop/till.py" in by_path(impact)


def test_a_name_that_many_share_weighs_less_than_one_of_its_own(tmp_path: Path) -> None:
    many = {f"m{number}.py": f"class M{number}:\n    def save(self): pass\n" for number in range(20)}
    files = {**many, "own.py": "def save_invoice(): pass\n", "use.py": "x.save()\n", "use2.py": "save_invoice()\n"}
    found = explorer(tmp_path, files)
    shared = by_path(found.analyze_impact(["M1.save"], page=Page(50)))["use.py"]
    own = by_path(found.analyze_impact(["save_invoice"]))["use2.py"]
    assert own.chance > shared.chance
    assert own.must_verify
    assert not shared.must_verify


def test_an_override_elsewhere_is_told_as_one(tmp_path: Path) -> None:
    files = {
        "a.py": "class Base:\n    def render_all(self): pass\n",
        "b.py": "from a import Base\n\n\nclass Child(Base):\n    def render_all(self): pass\n",
    }
    row = by_path(explorer(tmp_path, files).analyze_impact(["Base.render_all"]))["b.py"]
    assert (row.start_line, row.places[0].tie, row.must_verify != "") == (5, Tie.OVERRIDE, True)


PAGE_FILES = {
    "web/style.css": ".buy-button { color: red }\n#basket-box { }\n",
    "web/page.html": '<html>\n<link href="style.css">\n<button class="buy-button">\n',
    "web/shop.vue": "<template>\n  <p :class=\"{ 'buy-button': on }\"></p>\n</template>\n",
    "web/page.erb": '<div id="basket-box">\n',
    "web/app.js": "\ndocument.querySelector('.buy-button');\n",
    "web/other.html": '<p class="else">\n',
}


def test_a_style_sheet_touches_every_page_and_script_that_speaks_its_names(tmp_path: Path) -> None:
    rows = by_path(explorer(tmp_path, PAGE_FILES).analyze_impact(["web/style.css"]))
    assert {path: row.start_line for path, row in rows.items() if row.places[0].tie is Tie.MARKUP} == {
        "web/page.html": 3,
        "web/shop.vue": 2,
        "web/page.erb": 1,
        "web/app.js": 2,
    }
    assert "web/other.html" not in rows
    assert rows["web/page.html"].group is Role.MARKUP


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        (".buy-button", {"web/style.css", "web/page.html", "web/shop.vue", "web/app.js"}),
        ("#basket-box", {"web/style.css", "web/page.erb"}),
    ],
)
def test_a_css_name_is_a_target_of_its_own(tmp_path: Path, name: str, paths: set[str]) -> None:
    impact = explorer(tmp_path, PAGE_FILES).analyze_impact([name])
    assert by_path(impact).keys() == paths
    assert len(impact.must_verify) == len(paths)


def test_of_files_alike_in_all_else_the_one_with_the_rare_words_of_the_changed_code_is_likelier(tmp_path: Path) -> None:
    use = "from shop.price import net_price\n\n\ndef {}(): return net_price(1)\n"
    files = {
        "shop/price.py": "def net_price(item):\n    return item * discount_table()\n",
        "shop/first.py": use.format("first_use"),
        "shop/last.py": f"{use.format('last_use')}# discount_table\n",
        **{f"shop/more{number}.py": use.format(f"more_{number}") for number in range(6)},
    }
    paths = [row.path for row in explorer(tmp_path, files).analyze_impact(["net_price"]).answer.results]
    assert paths[:2] == ["shop/price.py", "shop/last.py"]


def test_of_files_tied_alike_the_one_that_the_last_commit_changed_is_likelier_than_one_that_changed_twice_before(
    tmp_path: Path,
) -> None:
    use = "from shop.price import net_price\n\n\ndef {}(): return net_price(1)\n"
    files = {
        "shop/price.py": FILES["shop/price.py"],
        **{f"shop/{name}.py": use.format(f"{name}_use") for name in ("first", "last")},
    }
    commits = [("shop/last.py",), *[("docs/page.md",)] * 40, *[("shop/first.py",)] * 2]
    impact = explorer(tmp_path, files).analyze_impact(["net_price"], history=lambda: commits)
    assert [row.path for row in impact.answer.results[:3]] == ["shop/price.py", "shop/last.py", "shop/first.py"]


def test_files_that_history_saw_change_together_are_told_with_how_often(tmp_path: Path) -> None:
    commits = [("shop/price.py", "shop/alone.py")] * 5 + [
        ("shop/price.py", *[f"x{number}.py" for number in range(100)])
    ]
    impact = explorer(tmp_path, FILES).analyze_impact(["net_price"], history=lambda: commits)
    row = by_path(impact)["shop/alone.py"]
    assert row.places[0].tie is Tie.TOGETHER
    assert row.why == "changed together in 5 of 6 commits"
    assert "x1.py" not in by_path(impact)


def test_a_target_that_names_nothing_is_said_to(tmp_path: Path) -> None:
    impact = explorer(tmp_path, FILES).analyze_impact(["no_such_thing", "net_price", ".no-such-class"])
    assert "no_such_thing" in impact.unresolved
    assert "shop/basket.py" in by_path(impact)


@pytest.mark.parametrize("path", ["./shop/gone.py", ".github/gone.yml", "./gone"])
def test_a_path_that_begins_with_a_dot_and_is_not_there_is_said_to_name_nothing(tmp_path: Path, path: str) -> None:
    impact = explorer(tmp_path, FILES).analyze_impact([path])
    assert impact.unresolved == (path,)
    assert not impact.answer.results


def test_a_path_that_leads_out_is_refused_however_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="path_outside_project"):
        explorer(tmp_path, FILES).analyze_impact(["../gone.py"])


def test_each_css_name_that_nothing_speaks_of_is_said_to_name_nothing(tmp_path: Path) -> None:
    found = explorer(tmp_path, PAGE_FILES)
    assert found.analyze_impact([".buy-button", ".no-such-class", "web/app.js"]).unresolved == (".no-such-class",)


def test_no_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match=r"query\.no_symbol"):
        explorer(tmp_path, FILES).analyze_impact(["", " "])


def test_pages_hold_the_whole_in_order(tmp_path: Path) -> None:
    found = explorer(tmp_path, FILES)
    whole = found.analyze_impact(["net_price"]).answer
    first = found.analyze_impact(["net_price"], page=Page(2)).answer
    second = found.analyze_impact(["net_price"], page=Page(100, 2)).answer
    assert first.results + second.results == whole.results
    assert (first.total, first.next_offset) == (whole.total, 2)


def test_a_name_that_is_everywhere_ends_in_time(tmp_path: Path) -> None:
    files = {f"f{number}.py": "def run_it(): pass\n" + "run_it()\n" * 30 for number in range(300)}
    started = time.monotonic()
    impact = explorer(tmp_path, files).analyze_impact(["run_it"])
    assert time.monotonic() - started < 15
    assert impact.answer.notes[0].startswith("run_it is defined 300 times: ask for one, like f0.py:1, ")


def test_a_file_whose_name_holds_a_line_feed_is_a_target_like_any_other(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"new\nline.py": "def alpha():\n    pass\n", "use.py": "def run():\n    alpha()\n"})
    assert set(by_path(found.analyze_impact(["alpha"]))) >= {"use.py"}


def test_what_the_time_limit_left_out_is_said(tmp_path: Path) -> None:
    found = explorer(tmp_path, FILES)
    impact = analyze_impact(found.project, found.cache, ["net_price"], seconds=0)
    assert "the time limit ended the search for file names" in impact.answer.incomplete_because
    assert not impact.answer.complete
