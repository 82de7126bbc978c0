"""search_text: exact, ranked, counted by pattern, and honest about what it left out."""

import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.codebase.lookup_project import explorer, only_on_path, program, write
from tests.programs import ran

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.symbols import freshness
from code_intel_server.codebase.text_search import order, search
from code_intel_server.codebase.text_search.search import search_text
from code_intel_server.errors import Rejected

PROJECT = {
    "src/shop.py": "class Basket:\n    def total(self):\n        return sum(self.items)\n\n\nbasket = Basket()\n",
    "src/use.py": "from shop import Basket\n\nprint(Basket().total())\n",
    "tests/test_shop.py": "from shop import Basket\n\n\ndef test_total():\n    assert Basket().total() == 0\n",
    "docs/guide.md": "A Basket has a total.\n",
    "node_modules/x/index.js": "class Basket {}\n",
}


def test_rows_come_grouped_by_file_definitions_first_then_code_tests_docs_vendored(tmp_path: Path) -> None:
    rows = explorer(tmp_path, PROJECT).search_text("Basket").results
    assert [(row.path, row.start_line) for row in rows] == [
        ("src/shop.py", 1), ("src/shop.py", 6), ("node_modules/x/index.js", 1), ("src/use.py", 1), ("src/use.py", 3),
        ("tests/test_shop.py", 1), ("tests/test_shop.py", 5), ("docs/guide.md", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("pattern", ["Basket", "Bask.t", "sell", r"sel\w"])
def test_the_order_does_not_hang_on_how_many_files_are_looked_through_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    more = {
        f"src/m{number}.py": f"x = Basket\n{'def sell(): pass' if number % 3 else 'sell'}\n" for number in range(12)
    }
    found = explorer(tmp_path, PROJECT | more)
    whole = found.search_text(pattern).results
    monkeypatch.setattr(order, "_CHUNKS", (1, 2))
    assert found.search_text(pattern).results == whole
    assert found.search_text(pattern, page=Page(5, 3)).results == whole[3:8]


def test_a_line_is_found_where_it_is_with_the_lines_around_it(tmp_path: Path) -> None:
    (row,) = explorer(tmp_path, PROJECT).search_text("sum(", regex=False, context_lines=1).results
    assert (row.path, row.start_line, row.end_line) == ("src/shop.py", 3, 3)
    assert row.text == "        return sum(self.items)"
    assert row.before == ("    def total(self):",)
    assert row.after == ("",)


def test_several_patterns_are_counted_one_by_one_as_if_asked_alone(tmp_path: Path) -> None:
    found = explorer(tmp_path, PROJECT)
    patterns = ["Basket", r"total\b", r"(?i)basket", "nowhere"]
    together = dict(found.search_text(patterns).counts)
    alone = {pattern: found.search_text(pattern).total for pattern in patterns}
    assert together == alone
    assert together["nowhere"] == 0


def test_a_line_that_two_patterns_match_is_one_row(tmp_path: Path) -> None:
    answer = explorer(tmp_path, {"a.py": "alpha beta\n"}).search_text(["beta", "alpha"])
    assert [row.as_row() for row in answer.results] == ["1: alpha beta"]
    assert answer.total == 1
    assert dict(answer.counts) == {"beta": 1, "alpha": 1}


@pytest.mark.parametrize(("options", "lines"), [
    ({}, {1, 2, 3}), ({"word": True}, {1, 3}), ({"ignore_case": True}, {1, 2, 3, 4}),
    ({"ignore_case": True, "word": True}, {1, 3, 4}),
])  # fmt: skip
def test_words_and_case_narrow_as_asked(tmp_path: Path, options: dict[str, bool], lines: set[int]) -> None:
    found = explorer(tmp_path, {"a.txt": "get\ngetter\nx.get()\nGET\n"})
    assert {row.start_line for row in found.search_text("get", **options).results} == lines  # type: ignore[arg-type]


def test_a_literal_is_no_regex_and_a_regex_no_literal(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.txt": "a.c\nabc\n"})
    assert [row.text for row in found.search_text("a.c", regex=False).results] == ["a.c"]
    assert [row.text for row in found.search_text("a.c").results] == ["a.c", "abc"]


@pytest.mark.parametrize(
    ("globs", "paths"),
    [
        (["*.py"], {"src/shop.py", "src/use.py", "tests/test_shop.py"}),
        (["src/**"], {"src/shop.py", "src/use.py"}),
        (["!tests/**", "*.py"], {"src/shop.py", "src/use.py"}),
        (["src/*.py", "*.md"], {"src/shop.py", "src/use.py", "docs/guide.md"}),
        (["*.{md,js}"], {"docs/guide.md", "node_modules/x/index.js"}),
    ],
)
def test_globs_narrow_the_files(tmp_path: Path, globs: list[str], paths: set[str]) -> None:
    assert {row.path for row in explorer(tmp_path, PROJECT).search_text("Basket", globs=globs).results} == paths


def test_a_glob_does_not_reach_what_gitignore_hides(tmp_path: Path) -> None:
    found = explorer(tmp_path, {".gitignore": "secret.py\n", "secret.py": "token = 1\n", "open.py": "token = 2\n"})
    assert {row.path for row in found.search_text("token", globs=["*.py"]).results} == {"open.py"}


def test_pages_join_to_the_whole_without_gap_or_repeat(tmp_path: Path) -> None:
    found = explorer(tmp_path, {f"f{number}.txt": "hit\n" * 7 for number in range(9)})
    whole = found.search_text("hit", page=Page(1000)).results
    answer = found.search_text("hit", page=Page(10))
    pieces = list(answer.results)
    while answer.next_offset is not None:
        assert (answer.total, answer.truncated) == (63, True)
        answer = found.search_text("hit", page=Page(10, answer.next_offset))
        pieces += answer.results
    assert not answer.truncated
    assert tuple(pieces) == whole


def test_totals_are_exact_up_to_ten_thousand_and_then_at_least(tmp_path: Path) -> None:
    exactly = explorer(tmp_path / "a", {"f.txt": "hit\n" * 10_000}).search_text("hit")
    assert (exactly.total, exactly.total_at_least) == (10_000, False)
    beyond = explorer(tmp_path / "b", {"f.txt": "hit\n" * 10_001}).search_text("hit")
    assert (beyond.total, beyond.total_at_least, beyond.truncated) == (10_000, True, True)


def test_more_than_fits_in_memory_is_cut_the_same_way_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep, "MAX_MATCH_OUTPUT", 4000)
    found = explorer(tmp_path, {f"f{number:02}.txt": "hit and run\n" * 100 for number in range(30)})
    first, second = (search_text(found.project, "hit", page=Page(200)) for _ in range(2))
    assert first.results == second.results
    assert first.total_at_least
    assert not first.complete


def test_where_only_the_first_lines_of_each_file_fit_the_answer_says_that_there_are_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep, "MAX_MATCH_OUTPUT", 8000)
    many = {f"f{number}.txt": "e\n" * 1000 for number in range(3)}
    answer = explorer(tmp_path, {**many, "z.txt": "needle\n" * 30}).search_text(["e", "needle"])
    assert (answer.total, answer.total_at_least, answer.truncated, answer.complete) == (80, True, True, False)
    assert dict(answer.counts) == {"e": 80, "needle": 20}
    assert "the first 20 matching lines" in answer.incomplete_because[-1]
    assert len(set(answer.incomplete_because)) == len(answer.incomplete_because)


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", r"\p{Nonsense}", "(?<=a)b", "x{9999999}"])
def test_a_regex_that_cannot_be_compiled_is_refused_with_the_reason(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(Rejected) as refusal:
        explorer(tmp_path, PROJECT).search_text(["fine", pattern])
    assert refusal.value.key == "tool_errors.generic.pattern_invalid"
    assert refusal.value.params["pattern"] == pattern
    assert refusal.value.params["error"]


def test_an_excluding_glob_that_cannot_be_read_is_refused_and_excludes_not_everything(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match=r"argument_invalid.*brackets"):
        explorer(tmp_path, PROJECT).search_text("Basket", globs=["!["])


@pytest.mark.parametrize("regex", [True, False])
@pytest.mark.parametrize("pattern", ["a\nb", "a\n", "a\0b"])
def test_a_text_of_several_lines_is_refused_for_that_also_where_it_is_no_regex(
    tmp_path: Path, pattern: str, regex: bool
) -> None:
    with pytest.raises(Rejected) as refusal:
        explorer(tmp_path, PROJECT).search_text(["fine", pattern], regex=regex)
    assert refusal.value.key == "tool_errors.generic.pattern_not_one_line"


@pytest.mark.parametrize("patterns", ["", [], ["  "], ["a", ""]])
def test_no_pattern_is_refused(tmp_path: Path, patterns: str | list[str]) -> None:
    with pytest.raises(Rejected, match=r"query\.no_pattern"):
        explorer(tmp_path, PROJECT).search_text(patterns)


def test_a_long_line_is_shown_around_its_match(tmp_path: Path) -> None:
    (row,) = explorer(tmp_path, {"a.js": "x" * 5000 + "needle" + "y" * 5000}).search_text("needle").results
    assert "needle" in row.text
    assert len(row.text) < 300


def test_patterns_beyond_the_kept_part_of_a_long_line_still_count(tmp_path: Path) -> None:
    answer = explorer(tmp_path, {"a.js": "alpha" + "x" * 5000 + "omega\n"}).search_text(["alpha", "omega"])
    assert dict(answer.counts) == {"alpha": 1, "omega": 1}


def test_patterns_are_counted_exactly_in_long_lines(tmp_path: Path) -> None:
    line = "alpha" + "x" * 3000
    found = explorer(tmp_path, {f"{name}.txt": f"{line}\n{line}omega\nomega\n" * 10 for name in "abc"})
    assert dict(found.search_text(["alpha", "omega"], page=Page(7, 20)).counts) == {"alpha": 60, "omega": 60}


def test_a_file_is_read_once_for_all_its_long_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def noted(root: Path, path: str) -> bytes:
        read.append(path)
        return (root / path).read_bytes()

    monkeypatch.setattr(freshness, "read_bytes", noted)
    found = explorer(tmp_path, {f"{name}.txt": f"{'x' * 3000} one two\n" * 30 for name in "ab"})
    answer = found.search_text(["one", "two"], page=Page(1))
    assert dict(answer.counts) == {"one": 60, "two": 60}
    assert len(read) <= 3  # each once for the counts, one for the row


def test_patterns_that_cannot_be_counted_in_time_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = explorer(tmp_path, {f"{number}.txt": "one two\n" * 10 for number in range(25)})
    answer = found.search_text(["one", "two"])
    assert (dict(answer.counts), answer.complete) == ({"one": 250, "two": 250}, True)
    clock = itertools.count()
    monkeypatch.setattr(search, "time", SimpleNamespace(monotonic=lambda: 10.0 * next(clock)))
    answer = found.search_text(["one", "two"])
    assert dict(answer.counts) == {"one": 250, "two": 0}
    assert not answer.complete
    assert "not counted to the end" in answer.incomplete_because[0]


def test_a_long_line_of_utf_16_counts_for_the_pattern_at_its_end(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"a.txt": f"first\n{'x' * 3000}alpha\nalpha omega\n".encode("utf-16")})
    assert dict(found.search_text(["alpha", "omega"]).counts) == {"alpha": 2, "omega": 1}


def test_counts_are_exact_however_many_lines_match(tmp_path: Path) -> None:
    many = {f"data/f{number:02}.json": "x\n" * 10_000 for number in range(12)}
    answer = explorer(tmp_path, {**many, "src/z.py": "needle = 1\n"}).search_text(["x", "needle"], page=Page(2))
    assert dict(answer.counts) == {"x": 120_000, "needle": 1}
    assert [(row.path, row.text) for row in answer.results] == [("src/z.py", "needle = 1"), ("data/f00.json", "x")]
    assert answer.complete


def test_counts_are_exact_however_often_a_line_matches(tmp_path: Path) -> None:
    many = {f"f{number}.txt": f"{'e' * 300}\n" * 2000 for number in range(4)}
    answer = explorer(tmp_path, many).search_text(["x", "e"])
    assert dict(answer.counts) == {"x": 0, "e": 8000}


def test_a_file_with_a_long_line_and_very_many_others_shifts_no_pattern(tmp_path: Path) -> None:
    files = {"data/a.json": "foo\n" * 40_000 + "foo" + "x" * 3000 + "\n" + "foo\n" * 40_000, "src/z.py": "bar = 1\n"}
    answer = explorer(tmp_path, files).search_text(["foo", "bar"])
    assert dict(answer.counts) == {"foo": 80_001, "bar": 1}
    assert [(row.path, row.text) for row in answer.results][:2] == [("src/z.py", "bar = 1"), ("data/a.json", "foo")]


def test_a_carriage_return_counts_for_the_pattern_that_means_it(tmp_path: Path) -> None:
    answer = explorer(tmp_path, {"a.txt": f"ab\r\nzz{'x' * 3000}\r\n"}).search_text(["zz", r"b\s$"])
    assert dict(answer.counts) == {"zz": 1, r"b\s$": 1}
    assert [row.text[:2] for row in answer.results] == ["ab", "zz"]


def test_a_count_that_failed_is_not_given_as_a_nought_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ripgrep.ripgrep_program()
    fails_on_input = f'for last; do :; done; [ "$last" = - ] && exit 3; exec {real} "$@"'
    program(tmp_path / "bin", "rg", fails_on_input)
    only_on_path(monkeypatch, tmp_path / "bin")
    answer = explorer(tmp_path / "project", PROJECT).search_text(["Basket", "total"])
    assert answer.total > 0
    assert not answer.complete
    assert all(any(pattern in reason for reason in answer.incomplete_because) for pattern in ("Basket", "total"))


def test_a_path_narrows_to_a_folder_or_to_one_file(tmp_path: Path) -> None:
    found = explorer(tmp_path, PROJECT)
    assert {row.path for row in found.search_text("Basket", "src").results} == {"src/shop.py", "src/use.py"}
    assert {row.path for row in found.search_text("Basket", "src/use.py").results} == {"src/use.py"}


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        ".gitignore": "*.log\n", "a.py": "x\n", "b.log": "x\n", "c.bin": b"\0\1\2x\n",
        "d.txt": b"x" * (1024 * 1024 + 1), "gen/e.py": "x\n", ".code-intel/cache/f.txt": "x\n",
    }  # fmt: skip
    found = explorer(tmp_path, files, "gen/**")
    assert not found.search_text("x").skipped.counted
    skipped = (found.skips.refresh(), found.search_text("x").skipped)[1]
    assert (skipped.ignored, skipped.binary, skipped.too_large) == (2, 1, 1)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pattern=st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r"), min_size=1, max_size=12).filter(
        str.strip
    )
)
def test_any_literal_finds_the_line_that_holds_it_and_is_never_an_option(tmp_path: Path, pattern: str) -> None:
    root = write(tmp_path, {"held.txt": f"before {pattern} behind\n", "other.txt": "\n"})
    rows = explorer(root, {}).search_text(pattern, regex=False).results
    assert ("held.txt", 1) in {(row.path, row.start_line) for row in rows}


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=10).filter(
                lambda name: name.strip("\n.")
            ),
            st.lists(
                st.text(st.characters(codec="utf-8", exclude_characters="\0\n"), max_size=30), min_size=1, max_size=4
            ),
        ),
        max_size=4,
        unique_by=lambda pair: pair[0],
    )
)
def test_what_ripgrep_prints_is_read_back_whatever_the_files_are_called(files: list[tuple[str, list[str]]]) -> None:
    printed = b"\n".join(
        f"./{name}\0".encode() + b"".join(f"{number}:{text}\n".encode() for number, text in enumerate(lines, 1))
        for name, lines in files
    )
    read, _ = ripgrep.parse_matches(printed)
    assert [(file.path, [match.text.decode() for match in file.lines()]) for file in read] == [
        (name, [text.removesuffix("\r") for text in lines]) for name, lines in files
    ]


def test_of_output_that_was_cut_off_anywhere_whole_lines_are_read_and_no_part_of_one() -> None:
    whole = b"./a.py\x007:need\n12:needle\n\n./b.py\x00345:needle\n"
    for cut in range(len(whole) + 1):
        for file in ripgrep.parse_matches(whole[:cut])[0]:
            lines = [f"{match.line}:".encode() + match.text + b"\n" for match in file.lines()]
            assert all(line in whole for line in lines)
            assert b"".join(lines) == file.printed
            assert len(list(file.texts(lambda match: match.text))) == 1


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    pattern=st.lists(
        st.sampled_from(
            [*"ksKS_.1 ", r"\w", r"\W", r"\s", r"\S", r"\d", r"\D", r"\b", r"\B", "^", "$", "[^k]", "[a-s]", "[^a-z]",
             "[[:alpha:]]", "[[:^punct:]]", "(?i)", "(?u:s)", "k?", "(s|_)", r"\x{212a}", r"\u017f", "\u017f", r"\pL", r"\PL"]
        ),
        min_size=1, max_size=5,
    ).map("".join),
    lines=st.lists(st.text("ksKS_1. -\t", max_size=8), min_size=1, max_size=5),
    word=st.booleans(), ignore_case=st.booleans(),
)  # fmt: skip
def test_lines_of_ascii_are_judged_as_they_are_beside_a_letter_that_is_none(
    tmp_path: Path, pattern: str, lines: list[str], word: bool, ignore_case: bool
) -> None:
    query = ripgrep.Query((pattern,), word=word, ignore_case=ignore_case)
    text = "".join(f"{line}\n" for line in lines).encode()
    beside = ripgrep.first_columns(query, text + "\u00e9\n".encode(), tmp_path)
    assert ripgrep.first_columns(query, text, tmp_path) == {
        number: column for number, column in beside.items() if number < len(lines)
    }


@pytest.mark.parametrize("ignored", ["\u212a", r"\x{212a}", r"\u212A", r"[\x{2100}-\x{2200}]"])
def test_a_letter_that_is_no_ascii_finds_the_one_that_it_is_without_regard_to_case(
    tmp_path: Path, ignored: str
) -> None:
    found = explorer(tmp_path, {"a.txt": "def k():\n    pass\n"}).search_text(f"def {ignored}", ignore_case=True)
    assert [row.start_line for row in found.results] == [1]


def test_the_answer_is_what_ripgrep_itself_finds(tmp_path: Path) -> None:
    found = explorer(tmp_path, PROJECT)
    raw = ran(["rg", "--no-config", "-n", "--no-heading", "tota.", "."], tmp_path, check=True)
    expected = {tuple(line.removeprefix("./").split(":", 2)[:2]) for line in raw.stdout.splitlines()}
    assert {(row.path, str(row.start_line)) for row in found.search_text("tota.").results} == expected
