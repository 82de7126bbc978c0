"""What tests compare with beside their code: snapshots, fixtures, and outputs that stand in docstrings and comments (SPEC 4, PRE_COMMIT).

Lines that are new, or that moved, say nothing; nor does another example.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from code_intel_server.codebase.expectations import in_words
from code_intel_server.codebase.text import counted

_RECORDS = re.compile(r"(?:^|/)__snapshots__/|\.(?:snap|ambr|golden)$|\.(?:approved|verified)\.\w+$")
_OF_TESTS = frozenset({"test", "tests", "spec", "specs", "__tests__", "e2e"})
_OF_FIXTURES = re.compile(r"[\w-]*fixtures?|goldens?|expected|expectations|snapshots")
_FIXTURES = frozenset({"testdata", "__fixtures__"})
_DATA = re.compile(r"\.(?:json|jsonl|ndjson|ya?ml|txt|csv|tsv|xml|out|stdout|stderr|golden|expected|result)$")
_EXAMPLE, _GOES_ON = ">>> ", "... "
_DIRECTIVE = re.compile(r"#[ \t]*+doctest:(.*)")
_GO_EXAMPLE = re.compile(r"func[ \t]++(Example\w*+)")
_GO_OUTPUT = re.compile(r"//[ \t]*+(?i:unordered[ \t]++)?(?i:output):(.*)")
_LONGEST_LINE = 2_000


def is_record(path: str) -> bool:
    """Whether a file holds results that tests compare with, as the tools that record them name it."""
    return _RECORDS.search(path) is not None


def is_fixture(path: str) -> bool:
    """Whether a file holds data that tests are fed with or compare with, by its folder and name."""
    folders = path.split("/")[:-1]
    at = next((number for number, folder in enumerate(folders) if folder in _OF_TESTS), len(folders))
    there = not _FIXTURES.isdisjoint(folders) or any(map(_OF_FIXTURES.fullmatch, folders[at + 1 :]))
    return there and _DATA.search(path) is not None


def no_longer_fed(before: Sequence[str], after: Sequence[str]) -> str:
    """How many lines of a fixture are gone or read otherwise, its layout apart, in a few words; '' for none."""
    return no_longer_recorded([*map(_bare, before)], [*map(_bare, after)])


def no_longer_recorded(before: Sequence[str], after: Sequence[str] | None) -> str:
    """How many lines of a record are gone or read otherwise, in a few words; '' for none."""
    lost = (Counter(before) - Counter(after or ())).total()
    return f"{counted(lost, 'recorded line')} changed" if lost else ""


def no_longer_printed(path: str, before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    """The outputs that examples in Python's docstrings and Go's comments had and have no more, as one phrase or none."""
    examples = _of_python if path.endswith(".py") else _of_go if path.endswith("_test.go") else None
    if examples is None:
        return ()
    old, new = _by_code(examples(before)), _by_code(examples(after))
    gone: Counter[str] = Counter()
    for code, outputs in old.items():
        if code in new and new[code].total() >= outputs.total():
            gone += outputs - new[code]
    said = in_words([output.strip().encode() or b"no output" for output in gone])
    return (f"an example prints no longer {said}",) if said else ()


def _by_code(examples: Iterator[tuple[str, str]]) -> dict[str, "Counter[str]"]:
    found: dict[str, Counter[str]] = {}
    for code, output in examples:
        found.setdefault(code, Counter())[output] += 1
    return found


def _of_python(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each example of a docstring, and what it says that this prints, its directives included."""
    code: list[str] = []
    output: list[str] = []
    indent = 0
    for line in [*lines, ""]:
        bare = line.strip()[:_LONGEST_LINE]
        starts = f"{bare} ".startswith(_EXAMPLE)
        ends = not bare or starts or bare.startswith(('"""', "'''")) or len(line) - len(line.lstrip()) < indent
        if code and ends:
            yield _example(code, output)
            code, output = [], []
        if starts:
            code, indent = [bare], len(line) - len(line.lstrip())
        elif code and not output and f"{bare} ".startswith(_GOES_ON):
            code.append(bare)
        elif code:
            output.append(bare)


def _example(code: Sequence[str], output: Sequence[str]) -> tuple[str, str]:
    said = [_DIRECTIVE.search(line) for line in code]
    bare = [_DIRECTIVE.sub("", line).strip() for line in code]
    return "\n".join(bare), " ".join([*output, *(found[0] for found in said if found)])


def _of_go(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each example function and the output in its last comment; one without such a comment is only compiled."""
    name, output, inside = "", "", False
    for line in [*lines, "func Example"]:
        bare = line.strip()[:_LONGEST_LINE]
        if found := _GO_EXAMPLE.match(bare):
            if name:
                yield name, output.strip()
            name, output, inside = found[1], "", False
        elif said := _GO_OUTPUT.match(bare):
            output, inside = said[1].strip(), True
        elif inside and bare.startswith("//"):
            output += f" {bare[2:].strip()}"
        else:
            inside = False


def _bare(line: str) -> str:
    """A line without what changes with its neighbours."""
    return line.strip().removesuffix(",")
