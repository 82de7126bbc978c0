"""Answers that once misled: a qualifier that does not exist, names that were not known, an order that hid the one meant."""

from pathlib import Path

import pytest
from tests.codebase.lookup_project import explorer

from code_intel_server.codebase.answers import Page
from code_intel_server.errors import Rejected
from code_intel_server.tools.shaping import answer_rows

FILES = {"a.py": "class Cache:\n  def get(self): ...\nclass Store:\n  def get(self): ...\nCache().get()\n"}


def test_an_unknown_qualifier_is_refused_with_the_nearest_ones(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="unknown_qualifier") as refusal:
        explorer(tmp_path, FILES).find_references("Cach.get")
    assert str(refusal.value.params["nearest"]).startswith("Cache.get; ")


@pytest.mark.parametrize("at", ["a.py:1:1", "a.py:99", "a.py:6", "notes.txt:1", "a.bin:1"])
def test_a_place_without_a_name_is_refused(tmp_path: Path, at: str) -> None:
    found = explorer(tmp_path, {**FILES, "notes.txt": "Cache\n", "a.bin": "\0\n"})
    for lookup in (found.find_references, found.find_definitions):
        with pytest.raises(Rejected, match="no_name_at"):
            lookup(at=at)


def test_a_name_in_a_comment_is_no_place(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="no_name_at"):
        explorer(tmp_path, {"a.py": "# Cache\n"}).find_definitions(at="a.py:1:4")


@pytest.mark.parametrize("at", ["a.py", "a.py:x", "../a.py:1", "nowhere.py:1"])
def test_what_is_no_place_is_refused(tmp_path: Path, at: str) -> None:
    with pytest.raises(Rejected):
        explorer(tmp_path, FILES).find_definitions(at=at)


@pytest.mark.parametrize(
    ("file", "text", "asked", "kind"),
    [
        (
            "a.py",
            "class ConsoleOptions:\n    max_width: int\n    plain: bool = False\n",
            "ConsoleOptions.max_width",
            "field",
        ),
        ("a.py", "class A:\n    def f(self):\n        width: int\n    width: int\n", "width", "field"),
        (
            "a.py",
            "class Color(Enum):\n    RED = 1\n",
            "Color.RED",
            "variable|field",
        ),  # Universal Ctags calls it the one, tree-sitter the other
        ("a.py", "class A:\n    @property\n    def size(self): ...\n", "A.size", "method"),
        ("a.rs", "pub const unsafe fn raw() {}\n", "raw", "function"),
        ("a.ts", "enum Kind { Small, Large = 2 }\n", "Kind.Large", "member"),
        ("a.css", ".btn-small { color: red }\n", ".btn-small", "selector"),
    ],
)
def test_fields_properties_members_and_classes_of_style_sheets_are_known(
    tmp_path: Path, file: str, text: str, asked: str, kind: str
) -> None:
    found = explorer(tmp_path, {file: text}).find_definitions(asked)
    assert [row.kind in kind.split("|") for row in found.results] == [True]


def test_a_type_comes_before_the_blocks_that_implement_it_its_tests_and_members(tmp_path: Path) -> None:
    files = {
        "src/a.rs": "impl Timestamp { }\nimpl Clone for Timestamp { }\n",
        "src/b.rs": "mod inner { struct Timestamp; }\n",
        "src/timestamp.rs": "pub struct Timestamp { second: i64 }\nimpl Timestamp { fn new() {} }\n",
        "tests/t.rs": "struct Timestamp;\n",
    }
    found = explorer(tmp_path, files).find_definitions("Timestamp")
    assert (found.results[0].path, found.results[0].kind) == ("src/timestamp.rs", "struct")


def test_a_page_that_leaves_rows_out_does_not_say_that_it_is_complete(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.py": "def f(): ...\n" + "f()\n" * 9})
    assert answer_rows(found.find_references("f", page=Page(3)))["complete"] is False
    assert answer_rows(found.find_references("f"))["complete"] is True


def test_no_symbol_is_named_by_brackets_alone(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.js": "it('x', () => {\n  go()\n})\n;(function () {\n  go()\n})()\n"})
    for line in (2, 5):
        assert all(row.symbol not in {"()", ""} for row in found.get_function_at_line("a.js", line).results)


def test_of_a_common_name_in_many_files_what_certainly_means_the_symbol_comes_first(tmp_path: Path) -> None:
    padding = "".join(f"value_{number} = {number}\n" for number in range(2000))
    files = {f"a{number:02}.py": f"def f(x):\n  x.pay()\n{padding}" for number in range(20)}
    files |= {"z.py": "class Till:\n  def pay(self): ...\n", "zz.py": f"from z import Till\nTill().pay()\n{padding}"}
    found = explorer(tmp_path, files)
    first = found.find_references("Till.pay")
    assert [(row.path, row.binding) for row in first.results] == [("z.py", "certain"), ("zz.py", "certain")]
    assert first.next_offset == 2
    second = found.find_references("Till.pay", page=Page(50, 2))
    assert [row.path for row in second.results] == [f"a{number:02}.py" for number in range(20)]


TILLS = {"till.py": "class Till:\n  def pay(self): ...\n", "bank.py": "class Bank:\n  def pay(self): ...\n"}
UNTYPED = {f"{name}.py": "def f(x):\n  x.pay()\n  x.pay(1)\n" for name in "abcde"}


def test_a_first_page_ends_behind_the_certain_uses_and_counts_what_may_mean_it_by_file(tmp_path: Path) -> None:
    found = explorer(tmp_path, {**TILLS, **UNTYPED, "use.py": "from till import Till\nTill().pay()\n"})
    found.refresh_all()
    first = found.find_references("Till.pay")
    assert [(row.path, row.binding) for row in first.results] == [("till.py", "certain"), ("use.py", "certain")]
    assert (
        "possible: 10 more rows may mean it, from offset=2 on: a.py 2, b.py 2, c.py 2, 2 other files 4" in first.notes
    )
    assert (first.total, first.next_offset, answer_rows(first)["complete"]) == (12, 2, False)
    second = found.find_references("Till.pay", page=Page(50, 2))
    assert {(row.path, row.binding) for row in second.results} == {(path, "possible") for path in UNTYPED}
    assert (len(second.results), second.next_offset) == (10, None)
    assert not any(note.startswith("possible: ") for note in second.notes)


@pytest.mark.parametrize(
    ("others", "likely"), [({}, 10), ({"bank.py": TILLS["bank.py"]}, 3)], ids=["only one", "shared"]
)
def test_where_only_the_definition_is_certain_a_name_of_several_has_a_short_first_page(
    tmp_path: Path, others: dict[str, str], likely: int
) -> None:
    found = explorer(tmp_path, {"till.py": TILLS["till.py"], **others, **UNTYPED})
    found.refresh_all()
    first = found.find_references("Till.pay")
    assert [row.binding for row in first.results] == ["certain"] + ["possible"] * likely
    rest = found.find_references("Till.pay", page=Page(50, first.next_offset)).results if first.next_offset else ()
    assert len({(row.path, row.start_line) for row in (*first.results, *rest)}) == first.total == 11


def test_a_short_first_page_has_every_row_on_the_name_of_the_owner(tmp_path: Path) -> None:
    named = "def f(till):\n" + "".join(f"  till.pay({number})\n" for number in range(5))
    found = explorer(tmp_path, {**TILLS, **UNTYPED, "z.py": named})
    found.refresh_all()
    first = found.find_references("Till.pay")
    assert [row.path for row in first.results] == ["till.py", *["z.py"] * 5]
    assert (first.total, first.next_offset) == (16, 6)


def test_a_member_of_a_function_that_others_may_give_it_is_possible_and_not_another(tmp_path: Path) -> None:
    """Found in play: of 28 calls of `app.render` in Express' own tests none was a row."""
    files = {
        "lib/application.js": "var app = exports = module.exports = {}\napp.render = function render () {}\n",
        "lib/express.js": "module.exports = create\nfunction create () {\n  var app = function () {}\n"
        "  mixin(app, require('./application'))\n  return app\n}\n",
        "test/render.js": "var express = require('../lib/express')\nvar app = express()\napp.render('x')\n",
    }
    found = explorer(tmp_path, files).find_references("app.render")
    assert ("test/render.js", 3, "possible") in [(row.path, row.start_line, row.binding) for row in found.results]
