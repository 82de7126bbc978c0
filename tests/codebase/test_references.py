"""find_references: every use by name, what it is, and what it stands in."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.codebase.lookup_project import explorer, write

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.files.memory import FileMemory
from code_intel_server.codebase.files.project import ProjectScope
from code_intel_server.codebase.references import classify, finder
from code_intel_server.codebase.syntax import structure
from code_intel_server.codebase.syntax.structure import Parsed
from code_intel_server.errors import Rejected

SAMPLES = Path(__file__).parent / "samples"

FILES = {
    "shop.py": "class Basket:\n    def total(self):\n        return 0\n",
    "use.py": (
        "from shop import Basket\n"
        "\n"
        "# Basket in a comment\n"
        "NOTE = 'Basket in a string'\n"
        "\n"
        "class Till:\n"
        "    basket: Basket\n"
        "\n"
        "    def ring(self, other: Basket) -> int:\n"
        "        made = Basket()\n"
        "        kinds = [Basket]\n"
        "        return made.total() + other.total() + self.Basket\n"
    ),
    "web.ts": "import { Basket } from './shop';\nlet b: Basket = new Basket();\nclass Rich extends Basket {}\n",
    "README.md": "The Basket holds things.\n",
    "config.yml": "factory: shop.Basket\n",
    "Basketry.py": "Basketry = Basket_x = 1\n",
}


def uses(tmp_path: Path, symbol: str, **options: object) -> set[tuple[str, int, str]]:
    answer = explorer(tmp_path, FILES).find_references(symbol, **options)  # type: ignore[arg-type]
    assert answer.complete
    return {(row.path, row.start_line, row.kind.value) for row in answer.results}


def test_each_use_is_told_for_what_it_is_and_comments_strings_and_prose_are_dropped(tmp_path: Path) -> None:
    assert uses(tmp_path, "Basket") == {
        ("shop.py", 1, "definition"),
        ("use.py", 1, "import"),
        ("use.py", 7, "type"),
        ("use.py", 9, "type"),
        ("use.py", 10, "call"),
        ("use.py", 11, "other"),
        ("use.py", 12, "attribute"),
        ("web.ts", 1, "import"),
        ("web.ts", 2, "type"),
        ("web.ts", 2, "call"),
        ("web.ts", 3, "type"),
        ("config.yml", 1, "other"),
    }


def test_comments_strings_and_prose_come_when_asked_for(tmp_path: Path) -> None:
    assert uses(tmp_path, "Basket", include_comments=True) - uses(tmp_path, "Basket") == {
        ("use.py", 3, "comment"),
        ("use.py", 4, "string"),
        ("README.md", 1, "comment"),
    }


def test_kinds_narrow(tmp_path: Path) -> None:
    assert uses(tmp_path, "Basket", kinds=["call", "definition"]) == {
        ("shop.py", 1, "definition"),
        ("use.py", 10, "call"),
        ("web.ts", 2, "call"),
    }
    assert uses(tmp_path, "Basket", kinds=["string"]) == {("use.py", 4, "string")}


def test_an_unknown_kind_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="argument_invalid") as refusal:
        explorer(tmp_path, FILES).find_references("Basket", kinds=["calls"])
    assert "call" in str(refusal.value.params["expected"])


def test_a_use_names_the_symbol_around_it(tmp_path: Path) -> None:
    rows = explorer(tmp_path, FILES).find_references("total").results
    assert {(row.path, row.start_line, row.enclosing, row.enclosing_kind, row.enclosing_line) for row in rows} == {
        ("shop.py", 2, "Basket", "class", 1),
        ("use.py", 12, "Till.ring", "method", 9),
    }


def test_the_file_that_defines_comes_first(tmp_path: Path) -> None:
    assert explorer(tmp_path, FILES).find_references("Basket").results[0].path == "shop.py"


def test_a_qualified_name_means_one_symbol_and_a_bare_name_all_of_them(tmp_path: Path) -> None:
    write(tmp_path, {"other.py": "class Bill:\n    def total(self): pass\n"})
    found = explorer(tmp_path, FILES)
    one, every = found.find_references("Basket.total"), found.find_references("total")
    assert [(row.path, row.start_line, row.binding) for row in one.results] == [
        ("shop.py", 2, "certain"),
        ("use.py", 12, "certain"),
    ]
    assert (one.total, one.other, every.total) == (2, 1, 3)
    assert every.notes == ("2 definitions share the name total; Class.total or at=path:line asks for one",)


def test_nothing_is_said_to_be_complete_only_when_it_is(tmp_path: Path) -> None:
    answer = explorer(tmp_path, FILES).find_references("nowhere")
    assert (answer.total, answer.complete) == (0, True)


def test_files_that_cannot_be_parsed_in_time_are_still_told_as_unclassified(tmp_path: Path) -> None:
    root = write(tmp_path, FILES)
    ticks = iter([0.0, 1.0, *[100.0] * 50])
    found = finder.collect(ProjectScope.at(root), ("Basket",), seconds=10, clock=lambda: next(ticks))
    assert len(found.problems) == 1
    assert "not parsed in time" in found.problems[0]
    assert {row.path for row in found.rows} >= {"shop.py", "use.py", "web.ts"}


def test_broken_code_still_gives_its_good_parts(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.py": "def good():\n    needle()\n\ndef broken(:\n    needle(\n"})
    assert (2, "call") in {(row.start_line, row.kind.value) for row in found.find_references("needle").results}


@pytest.mark.parametrize("name", ["$el", "valid?", "größe", "--main-color"])
def test_names_that_are_no_plain_words_are_found_whole(tmp_path: Path, name: str) -> None:
    found = explorer(
        tmp_path,
        {"a.txt": "", "a.rb": f"x = {name}\n", "b.css": f"a {{ color: {name}; }}\n", "c.rb": f"x{name}y = 1\n"},
    )
    assert {row.path for row in found.find_references(name).results} >= {"a.rb"}


def test_pages_hold_the_whole_in_order(tmp_path: Path) -> None:
    found = explorer(tmp_path, FILES)
    whole = found.find_references("Basket").results
    pieces = [
        row for start in range(0, len(whole), 5) for row in found.find_references("Basket", page=Page(5, start)).results
    ]
    assert tuple(pieces) == whole


def whole(parsed: Parsed, name: str) -> list[tuple[int, str, str]]:
    return list(_told(parsed, parsed, name))


def _told(asked: Parsed, parsed: Parsed, name: str) -> Iterator[tuple[int, str, str]]:
    uses, outline = structure.Uses(asked), structure.outline_of(asked)
    for byte in places(parsed, name):
        line = bisect_right(parsed.line_starts, byte)
        around = structure.symbol_at(outline, byte)
        yield byte, uses.at(line, byte - parsed.line_starts[line - 1]).value, around.qualified if around else ""


def places(parsed: Parsed, name: str) -> list[int]:
    return [found.start() for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)".encode(), parsed.text)]


@pytest.mark.parametrize(
    "sample", sorted(path.name for path in SAMPLES.iterdir() if path.suffix != ".txt" or path.stem == "CMakeLists")
)
def test_asking_near_the_places_tells_what_asking_the_whole_file_tells(sample: str) -> None:
    data = (SAMPLES / sample).read_bytes()
    language = language_of(sample, data)
    parsed = structure.parse(data, language) if language else None
    assert parsed is not None
    for name in sorted(set(re.findall(r"[A-Za-z_]\w+", parsed.text.decode()))):
        near = parsed.near(places(parsed, name))
        assert list(_told(near, parsed, name)) == whole(parsed, name), name


def test_a_second_page_parses_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = explorer(tmp_path, {f"f{number}.py": "import shop\nshop.sell()\n" for number in range(5)})
    first = found.find_references("sell", page=Page(3))
    monkeypatch.setattr(structure, "parse", lambda *_: pytest.fail("parsed again"))
    second = found.find_references("sell", page=Page(3, 3))
    assert [row.path for row in (*first.results, *second.results)] == [f"f{number}.py" for number in range(5)]


def test_what_was_remembered_of_a_file_goes_with_its_next_edit(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.py": "def sell(): pass\n"})
    assert [row.kind.value for row in found.find_references("sell").results] == ["definition"]
    write(tmp_path, {"a.py": "# one more line\nsell()\n"})
    assert [(row.start_line, row.kind.value) for row in found.find_references("sell").results] == [(2, "call")]


def test_the_memory_of_files_forgets_the_longest_unused_first() -> None:
    memory = FileMemory[int](most=6)
    for key in "ab":
        memory.keep(key, "look", (1, 2))
    assert memory.known("a", "look") == (1, 2)
    memory.keep("c", "look", (3,))
    assert memory.known("a", "look") == (1, 2)
    assert memory.known("b", "look") is None


def test_of_a_file_that_changes_again_and_again_one_look_is_remembered() -> None:
    memory = FileMemory[int](most=6)
    memory.keep("other", "look", (1,))
    for look in range(9):
        memory.keep("file", look, (look, look))
    assert memory.known("file", 8) == (8, 8)
    assert memory.known("file", 7) is None
    assert memory.known("other", "look") == (1,)


def test_a_name_far_out_in_a_long_line_of_prose_is_found(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"notes.txt": f"{'x ' * 2000}Basket\n"})
    answer = found.find_references("Basket", include_comments=True)
    assert [(row.path, row.start_line, row.symbol) for row in answer.results] == [("notes.txt", 1, "Basket")]


@pytest.mark.parametrize(
    ("file", "text", "name", "lines"),
    [
        ("a.js", "class A { $get() {}\n get() {} }\na.$get();\na.get();\n", "get", [2, 4]),
        ("a.js", "class A { $get() {}\n get() {} }\na.$get();\na.get();\n", "$get", [1, 3]),
        ("a.rb", "def valid?\nend\ndef valid\nend\nx.valid?\nx.valid\n", "valid", [3, 6]),
        ("a.rb", "def valid?\nend\ndef valid\nend\nx.valid?\nx.valid\n", "valid?", [1, 5]),
        ("a.ex", "defmodule A do\n  def run!(x), do: run(x)\n  def run(x), do: x\nend\n", "run", [2, 3]),
        ("a.clj", "(defn foo [x] x)\n(defn foo-bar [x] (foo x))\n(foo-bar 1)\n", "foo", [1, 2]),
        ("a.hs", "go' x = x\ngo x = go' x\n", "go", [2]),
        ("a.css", ".btn { }\n.btn-small { }\n", "btn", [1]),
        ("a.scss", "$brand: red;\n.a { color: $brand }\n.b { color: $brand }\n", "brand", [1, 2, 3]),
        ("a.ps1", "function f {\n  param($brand)\n  return $brand\n}\n", "brand", [2, 3]),
        ("a.sh", "my() { echo; }\nmy-func() { my; }\nmy-func\n", "my", [1, 2]),
        ("a.php", "<?php\nfunction f($id) { return $id - 1; }\n", "id", [2]),
        ("a.py", "x = a-b if b else -b\n", "b", [1]),
        ("a.sh", "NAME=1\necho $NAME ${NAME-x}\n", "NAME", [1, 2]),
    ],
)
def test_a_name_is_not_found_as_a_part_of_a_longer_one(
    tmp_path: Path, file: str, text: str, name: str, lines: list[int]
) -> None:
    answer = explorer(tmp_path, {file: text}).find_references(name)
    assert sorted({row.start_line for row in answer.results}) == lines


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ("operator()", [2, 4]),
        ("F::operator ()", [2, 4]),
        ("operator()()", [2, 4]),
        ("operator->", [3]),
        ("F::operator->", [3]),
    ],
)
def test_an_operator_of_brackets_or_an_arrow_keeps_its_sign(tmp_path: Path, asked: str, lines: list[int]) -> None:
    text = "struct F {\n  int operator()(int x) { return x; }\n  F* operator->() { return this; }\n  int two = operator()(2);\n};\n"
    found = explorer(tmp_path, {"a.cpp": text})
    assert [row.start_line for row in found.find_references(asked).results] == lines
    assert [row.start_line for row in found.find_definitions(asked).results] == lines[:1]


@pytest.mark.parametrize(
    "asked",
    ["operator==", "operator ==", pytest.param("Price::operator==", marks=pytest.mark.needs("universal-ctags"))],
)
def test_an_operator_is_found_with_a_space_before_it_and_without(tmp_path: Path, asked: str) -> None:
    text = "bool operator ==(Price, Price);\nbool same = a.operator==(b);\nint operator!=(Price);\nint operators = 1;\n"
    found = explorer(tmp_path, {"a.cpp": text})
    assert [row.start_line for row in found.find_references(asked).results] == [1, 2]


def test_an_operator_is_found_whatever_blanks_stand_before_it(tmp_path: Path) -> None:
    lines = ["bool operator  ==(A, A);", "bool operator\t==(B, B);", "bool x = a.operator==(b);", "int operator ++(A);"]
    found = explorer(tmp_path, {"a.cpp": "\n".join(lines) + "\n"})
    answer = found.find_references("operator==")
    assert ([row.start_line for row in answer.results], answer.complete) == ([1, 2, 3], True)
    assert [row.start_line for row in found.find_references("operator++").results] == [4]


def test_an_operator_over_two_lines_makes_the_answer_incomplete(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.cpp": "bool operator\n  ==(A, A);\nbool operator ++(A);\n"})
    answer = found.find_references("operator==")
    assert answer.incomplete_because == ("in 1 files operator== is written over several lines, which is not told",)
    assert found.find_references("operator++").complete


@given(st.lists(st.text("ab.$é", min_size=1, max_size=3), min_size=1, max_size=6), st.text("ab.$é ", max_size=12))
def test_many_names_are_found_where_each_alone_is_found_the_longest_first(names: list[str], text: str) -> None:
    line = text.encode()
    places: dict[int, bytes] = {}
    for name in names:
        for found in re.finditer(rb"(?=(" + classify.occurrences([name]).pattern + rb"))", line):
            places[found.start()] = max(places.get(found.start(), b""), found[1], key=len)
    expected: list[tuple[int, bytes]] = []
    end = 0
    for start, longest in sorted(places.items()):
        if start >= end:
            expected.append((start, longest))
            end = start + len(longest)
    assert [(found.start(), found[0]) for found in classify.occurrences(names).finditer(line)] == expected


def told(tmp_path: Path, file: str, text: str, name: str, **options: object) -> list[tuple[int, str]]:
    answer = explorer(tmp_path, {file: text}).find_references(name, **options)  # type: ignore[arg-type]
    assert answer.complete
    return [(row.start_line, row.kind.value) for row in answer.results]


@pytest.mark.parametrize(
    "file",
    [
        "a.cr",
        "a.coffee",
        "a.vb",
        "a.pyx",
        "a.vala",
        "a.cob",
        "a.re",
        "a.purs",
        "a.raku",
        "a.ahk",
        "a.sas",
        "a.tpl",
        "a.mako",
        "a.xyz",
        "a.csv",
        "a.lock",
        "a.map",
        "a.awk",
        "build",
        "run",
        ".envrc",
        "Procfile",
        "license.cr",
        "src/install.cr",
    ],
)
def test_a_use_in_a_file_of_no_known_language_is_a_use(tmp_path: Path, file: str) -> None:
    assert told(tmp_path, file, "needle 1\nfoo needle\n", "needle") == [(1, "other"), (2, "other")]


def test_a_class_of_another_language_than_latex_is_no_document(tmp_path: Path) -> None:
    assert told(tmp_path / "apex", "A.cls", "public class A { needle(); }\n", "needle") == [(1, "other")]
    assert told(tmp_path / "latex", "a.cls", "\\ProvidesClass{a}\nneedle\n", "needle") == []


@pytest.mark.parametrize("file", ["a.md", "a.rst", "a.txt", "a.mdx", "a.po", "LICENSE", "LICENSE-MIT", "README.de"])
def test_documents_are_left_out_and_the_answer_says_so(tmp_path: Path, file: str) -> None:
    found = explorer(tmp_path, {file: "the needle\n", "a.py": "needle()\n"})
    answer = found.find_references("needle")
    assert [row.path for row in answer.results] == ["a.py"]
    assert answer.notes == ("left out: needle in 1 document; include_comments=true shows these",)
    whole = found.find_references("needle", include_comments=True)
    assert ({row.path for row in whole.results}, whole.notes) == ({"a.py", file}, ())


def test_no_use_is_said_together_with_where_only_comments_and_strings_speak_of_it(tmp_path: Path) -> None:
    found = explorer(
        tmp_path, {"a.md": "needle\n", "b.py": "x = 'needle'\n", "c.py": "# needle\n", "d.md": "nothing\n"}
    )
    answer = found.find_references("needle")
    assert (answer.results, answer.complete) == ((), True)
    [note] = answer.notes
    assert note == (
        "left out: needle in 1 document and in 2 other files only in comments, strings or longer names; include_comments=true shows these"
    )
    assert found.find_references("needle", kinds=["call"]).notes == ()


@pytest.mark.parametrize(
    ("file", "text", "lines"),
    [
        ("a.php", '<?php\necho "{$this->needle} needle";\necho "$this->needle";\n', [2, 3]),
        ("a.php", '<?php\necho "x $needle";\necho "needle";\n$x = <<<E\n a {$needle}\nE;\n', [2, 5]),
        ("a.kt", 'val s = "${needle()} x"\nval u = "$needle"\nval v = "needle"\nval w = """${o.needle}"""\n', [1, 2, 4]),
        ("a.swift", 'let s = "\\(needle())"\nlet t = "needle"\nlet u = "\\(a.needle) x"\n', [1, 3]),
        ("a.groovy", "def s = \"${needle()}\"\ndef t = \"$needle\"\ndef u = '$needle'\ndef v = \"needle\"\n", [1, 2]),
        ("a.pl", 'print "@{[needle()]}";\nprint "a $needle";\nprint "needle";\nprint \'$needle\';\n', [1, 2]),
        ("a.pl", 'print <<E;\n$needle\nneedle\nE\nprint "$o->{needle}";\n$o->{needle} = 1;\n$a =~ /$needle/;\n', [2, 5, 6, 7]),
        ("a.ps1", "$x = \"$(needle)\"\n$y = \"$needle\"\n$z = 'needle $needle'\n$w = \"needle\"\n", [1, 2]),
        ("a.fs", 'let s = $"{needle} x"\nlet t = $"""{needle}"""\nlet u = "{needle}"\nlet v = """{needle}"""\n', [1, 2]),
        ("a.rs", 'fn m() {\n println!("{needle}");\n write!(f, r"{needle:?}");\n p!("{:needle$}", 1);\n}\n', [2, 3, 4]),
        ("a.rs", 'fn m() {\n p!("{{needle}}");\n let t = "{needle}";\n p!("needle");\n p!("{{{needle}}}");\n}\n', [5]),
        ("a.rs", '#[error("no {needle}")]\nstruct A;\n', [1]),
        ("a.sh", "trap 'needle' EXIT\necho 'needle'\nbash -ec 'needle 1'\neval \"needle x\"\necho \"$(needle)\"\n", [1, 3, 4, 5]),
        ("a.scss", '.a { b: "#{$needle}"; }\n.c { d: "needle"; }\n', [1]),
        ("a.less", '@a: "@{needle}";\n.c { d: "needle"; }\n', [1]),
        ("a.py", "a = f'{needle}'\nb = '{needle}'\n", [1]),
        ("a.js", "a = `${needle}`\nb = '${needle}'\n", [1]),
        ("a.rb", 'a = "#{needle}"\nb = %w[#{needle}]\n', [1]),
    ],
)  # fmt: skip
def test_what_a_string_holds_of_the_program_is_used_and_what_it_says_is_not(
    tmp_path: Path, file: str, text: str, lines: list[int]
) -> None:
    assert sorted({line for line, _ in told(tmp_path, file, text, "needle")}) == lines


@pytest.mark.parametrize(
    ("file", "text"),
    [("a.kt", 'val s = "${needle()}"\n'), ("a.swift", 'let s = "\\(needle())"\n'), ("a.ps1", '$x = "$(needle)"\n')],
)
def test_a_call_in_a_string_is_told_for_a_call(tmp_path: Path, file: str, text: str) -> None:
    assert told(tmp_path, file, text, "needle") == [(1, "call")]


def test_what_is_called_on_the_owner_of_another_of_the_name_comes_last_on_a_page_of_its_own(tmp_path: Path) -> None:
    """Found by real agents: of 80 rows that may mean `app.render` of Express 49 were of its responses and views."""
    uses = "".join(f"function a{number}(res) {{ res.render('x') }}\n" for number in range(6))
    files = {
        "lib/app.js": "var app = module.exports = {};\napp.render = function render(name) { return name };\n",
        "lib/res.js": "var res = Object.create(null);\nmodule.exports = res;\nres.render = function render(view) { return view };\n",
        "lib/use.js": f"{uses}function last(app, page) {{\n  page.render('y');\n  app.render('x');\n}}\n",
    }
    found = explorer(tmp_path, files)
    found.refresh_all()
    answer = found.find_references("app.render")
    assert [(row.path, row.start_line) for row in answer.results] == [
        ("lib/app.js", 2),
        ("lib/use.js", 9),
        ("lib/use.js", 8),
    ]
    assert (answer.total, answer.next_offset, answer.complete) == (9, 3, True)
    assert "last: 6 rows on res, as lib/res.js:3 defines" in answer.notes
    later = found.find_references("app.render", page=Page(10, 3))
    assert [row.text.partition(")")[0] for row in later.results] == [f"function a{n}(res" for n in range(6)]
