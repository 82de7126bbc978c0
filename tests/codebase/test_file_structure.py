"""get_symbols, get_function_at_line, analyze_structure over files, folders and what is neither."""

from pathlib import Path

import pytest
from tests.codebase.lookup_project import explorer

from code_intel_server.codebase.answers import Page
from code_intel_server.errors import Rejected

SHOP = "import os\n\n\nclass Basket:\n    def total(self):\n        def inner():\n            return os.getcwd()\n\n        return inner()\n\n\nx = 1\n"


def test_an_outline_is_nested_and_in_order(tmp_path: Path) -> None:
    rows = explorer(tmp_path, {"shop.py": SHOP}).get_symbols("shop.py").results
    assert [(row.symbol, row.kind, row.scope, row.depth, row.start_line, row.end_line) for row in rows] == [
        ("Basket", "class", "", 0, 4, 9),
        ("total", "method", "Basket", 1, 5, 9),
        ("inner", "function", "Basket.total", 2, 6, 7),
        ("x", "variable", "", 0, 12, 12),
    ]


@pytest.mark.parametrize(
    ("line", "symbol", "enclosing"), [(7, "inner", ("Basket", "total")), (9, "total", ("Basket",)), (4, "Basket", ())]
)
def test_the_innermost_function_or_class_around_a_line_comes_with_its_source(
    tmp_path: Path, line: int, symbol: str, enclosing: tuple[str, ...]
) -> None:
    (row,) = explorer(tmp_path, {"shop.py": SHOP}).get_function_at_line("shop.py", line).results
    assert (row.symbol, row.enclosing) == (symbol, enclosing)
    assert row.source == "\n".join(SHOP.split("\n")[row.start_line - 1 : row.end_line])
    assert not row.cut


DECORATED = {
    "a.py": (
        "@first\n@second(\n    1,\n)\ndef outer():\n    @third\n    # why\n    def inner():\n        pass\n    # the end\n"
        "def after():\n    pass\n\n# alone\n\nx = 1\n"
    ),
    "b.ts": "/** Says what. */\n@Injectable()\nexport class Shop {\n  @Input()\n  sell() {}\n}\n",
    "c.rs": "/// Says what.\n#[inline]\nfn sell() {}\n",
}


@pytest.mark.parametrize(("path", "line", "symbol", "start"), [
    ("a.py", 1, "outer", 1), ("a.py", 3, "outer", 1), ("a.py", 5, "outer", 5), ("a.py", 6, "inner", 6),
    ("a.py", 7, "inner", 6), ("a.py", 8, "inner", 8), ("b.ts", 1, "Shop", 1), ("b.ts", 4, "sell", 4),
    ("c.rs", 2, "sell", 1),
])  # fmt: skip
def test_a_decorator_or_comment_directly_above_belongs_to_what_stands_below(
    tmp_path: Path, path: str, line: int, symbol: str, start: int
) -> None:
    (row,) = explorer(tmp_path, DECORATED).get_function_at_line(path, line).results
    assert (row.symbol, row.start_line) == (symbol, start)
    assert row.source == "\n".join(DECORATED[path].split("\n")[start - 1 : row.end_line])


def test_a_comment_that_stands_alone_belongs_to_nothing(tmp_path: Path) -> None:
    assert explorer(tmp_path, DECORATED).get_function_at_line("a.py", 14).results == ()


@pytest.mark.parametrize("line", [1, 2, 12])
def test_a_line_in_no_function_gives_no_row(tmp_path: Path, line: int) -> None:
    answer = explorer(tmp_path, {"shop.py": SHOP}).get_function_at_line("shop.py", line)
    assert (answer.results, answer.complete) == ((), True)


@pytest.mark.parametrize("line", [0, -1, 13, 10**9])
def test_a_line_the_file_does_not_have_is_refused(tmp_path: Path, line: int) -> None:
    with pytest.raises(Rejected, match="argument_invalid"):
        explorer(tmp_path, {"shop.py": SHOP}).get_function_at_line("shop.py", line)


def test_a_long_function_is_cut_and_says_so(tmp_path: Path) -> None:
    (row,) = (
        explorer(tmp_path, {"a.py": "def long():\n" + "    x = 1\n" * 600}).get_function_at_line("a.py", 300).results
    )
    assert (row.end_line, row.cut, row.source.count("\n") + 1) == (601, True, 400)


def test_a_file_is_analyzed_into_symbols_imports_and_calls(tmp_path: Path) -> None:
    (row,) = explorer(tmp_path, {"shop.py": SHOP}).analyze_structure("shop.py").results
    assert [item.module for item in row.imports] == ["os"]
    assert {(call.name, call.line, call.inside) for call in row.calls} == {
        ("getcwd", 7, "Basket.total.inner"),
        ("inner", 9, "Basket.total"),
    }
    assert (row.language, row.has_errors, row.end_line) == ("python", False, 12)


def test_calls_of_the_same_name_are_one_row_where_they_stand_together(tmp_path: Path) -> None:
    """Found by a real agent: the structure of a test file was 9 KB of `expect`."""
    text = "def one():\n    expect(1)\n    get()\n" + "expect(2)\n" * 7
    (row,) = explorer(tmp_path, {"test_a.py": text}).analyze_structure("test_a.py").results
    assert row.as_row()["calls"] == ("2: expect  [in one]", "3: get  [in one]", "4, 5, 6, 7 and 3 more: expect")


def test_a_folder_is_analyzed_file_by_file_in_pages(tmp_path: Path) -> None:
    found = explorer(
        tmp_path, {f"src/f{number}.py": f"def f{number}(): pass\n" for number in range(7)} | {"other/x.py": "y = 1\n"}
    )
    first = found.analyze_structure("src", page=Page(4))
    assert [row.path for row in first.results] == [f"src/f{number}.py" for number in range(4)]
    assert (first.total, first.next_offset) == (7, 4)
    assert [row.path for row in found.analyze_structure("src", page=Page(4, 4)).results] == [
        "src/f4.py",
        "src/f5.py",
        "src/f6.py",
    ]


def test_broken_code_gives_its_good_parts_and_says_so(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.py": "def good(): pass\n\nclass Bad(:\n    x = = 1\n"})
    answer = found.get_symbols("a.py")
    assert "good" in [row.symbol for row in answer.results]
    assert not answer.complete
    assert found.analyze_structure("a.py").results[0].has_errors


@pytest.mark.parametrize(
    ("name", "content"), [("a.bin", b"\0\1"), ("a.unknown", b"text\n"), ("big.py", b"x = 1\n" * 300_000)]
)
def test_what_has_no_structure_says_why(tmp_path: Path, name: str, content: bytes) -> None:
    answer = explorer(tmp_path, {name: content}).get_symbols(name)
    assert (answer.results, answer.complete) == ((), False)
    assert name in answer.incomplete_because[0]


def test_no_path_is_refused_by_its_own_message(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match=r"query\.no_file_path"):
        explorer(tmp_path, {}).get_symbols("")
