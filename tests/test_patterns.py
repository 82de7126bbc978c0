"""No regular expression of the package takes the square of a text: a file, an argument or an output could hold the interpreter.

While one runs, nothing else does: no answer, no timeout, no SIGTERM. Every expression, whether kept in a module or written
where it is used, is tried as its module uses it on texts made from the expression itself.
"""

import ast
import importlib
import pkgutil
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import code_intel_server
from code_intel_server.codebase.evidence import stubs
from code_intel_server.codebase.files import search_files
from code_intel_server.codebase.files.languages import LANGUAGES
from code_intel_server.codebase.references.classify import occurrences
from code_intel_server.codebase.syntax.markup import less_names, mentions

_parser: Any = importlib.import_module("re._parser")

_SIZES = (24, 250, 1_000, 8_000, 64_000)
_SCREEN = 8_000
_PASSES = 0.001
"""Seconds for `_SCREEN` letters: what takes the square of them takes longer."""
_QUICK = 0.1
"""Seconds for the longest text of those that are cut."""
_ENOUGH = 0.03
"""Seconds of processor time, the best of three, below which nothing is said."""

_OURS = {
    "names of nodes, which the grammars give": ("codebase.evidence.definition_parts.BLOCK", "codebase.evidence.definition_parts._FORTRAN_HEADER",
     "codebase.evidence.effects.BLOCK", "codebase.evidence.node_kinds.BLOCK", "codebase.evidence.node_kinds.KINDS",
     "codebase.evidence.node_kinds.WRAPS", "codebase.syntax.uses._STRING", "codebase.syntax.uses._INTERPOLATION",
     "codebase.syntax.uses._TYPE_POSITION", "codebase.syntax.uses._WORD", "codebase.syntax.uses._STATEMENT"),
    "the skills' sources and the prompts, which are packaged": ("contract.skills.", "contract.skills:", "contract.messages."),
}  # fmt: skip
"""What is applied to our own texts alone: by the beginning of its place."""

_CUT = {
    "codebase.query_router.": (2_000, "a question is cut at MAX_QUESTION"),
    "codebase.query_router:": (2_000, "a question is cut at MAX_QUESTION"),
    "codebase.evidence.dead_code.": (600, "a longer statement does something"),
    "codebase.evidence.effects.": (600, "a longer statement does something"),
    "codebase.evidence.node_kinds.": (600, "a longer statement does something"),
    "codebase.evidence.stubs._DRESS": (600, "a longer statement is no stub"),
    "codebase.evidence.stubs._compiled": (600, "a longer statement is no stub"),
    "index.retrieval.lexical._DOUBLED": (64, "a longer word has no terms"),
    "codebase.syntax.markup._MIXIN_CALL": (400, "so far is looked behind a name"),
}
"""What no longer text is given to, and why: within that it must be quick."""

_GIVEN_ON = {
    r"codebase\.syntax\.markup\._VALUE.*": "match",
    r"codebase\.files\.ripgrep\._NAME": "match",  # up to the last NUL of an output: each search finds one
    r"codebase\.evidence\.stubs\._compiled.*": "fullmatch",
}
"""How that is applied which is not called by its name."""

_ANCHORED = {"match", "fullmatch"}
_METHODS = {*_ANCHORED, "search", "findall", "finditer", "sub", "subn", "split", "scanner"}

_Pattern = re.Pattern[Any]


@dataclass
class _Tried:
    """An expression, where it stands, and how it is applied."""

    where: str
    pattern: _Pattern
    methods: set[str] = field(default_factory=set)

    def runs(self) -> list[tuple[str, Callable[[Any], object]]]:
        """How to apply it, as it is applied; what is given on elsewhere is looked for all over the text."""
        kinds = {"scan" if method not in {*_ANCHORED, "search"} else method for method in self.methods or {"scan"}}
        every: dict[str, Callable[[Any], object]] = {
            "match": self.pattern.match,
            "fullmatch": self.pattern.fullmatch,
            "search": self.pattern.search,
            "scan": lambda text: deque(self.pattern.finditer(text), maxlen=0),
        }
        return [(kind, every[kind]) for kind in sorted(kinds)]


# -- the expressions -------------------------------------------------------------------------------------------------


def _expressions() -> Iterator[_Tried]:
    for info in pkgutil.walk_packages(code_intel_server.__path__, "code_intel_server."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        assert module.__file__ is not None
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        short = info.name.removeprefix("code_intel_server.")
        used = _uses(tree)
        for name, value in vars(module).items():
            for at, pattern in _held(value):
                yield _Tried(f"{short}.{name}{at}", pattern, set(used.get(name, ())))
        yield from _written_in_place(short, tree, vars(module))


def _held(value: object, at: str = "", depth: int = 0) -> Iterator[tuple[str, _Pattern]]:
    """The expressions in a constant: itself, or in its items and fields."""
    if isinstance(value, re.Pattern):
        yield at, value
    elif depth < 5:
        if isinstance(value, tuple | list | set | frozenset):
            parts: list[tuple[str, object]] = [(f"[{number}]", part) for number, part in enumerate(value)]
        elif isinstance(value, dict):
            parts = [(f"[{name!r}]", part) for name, part in value.items()]
        elif isinstance(getattr(type(value), "__slots__", None), tuple) and type(value).__module__.startswith(
            "code_intel"
        ):
            parts = [(f".{name}", getattr(value, name, None)) for name in getattr(type(value), "__slots__", ())]
        else:
            return
        for name, part in parts:
            yield from _held(part, at + name, depth + 1)


def _uses(tree: ast.Module) -> dict[str, set[str]]:
    """By the name of a constant the methods that are called on it; of one that is also given on, none."""
    called: dict[str, set[str]] = {}
    given_on: set[str] = set()
    owned: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _METHODS:
            called.setdefault(node.value.id, set()).add(node.attr)
            owned.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in owned:
            given_on.add(node.id)
    return {name: methods for name, methods in called.items() if name not in given_on}


def _written_in_place(short: str, tree: ast.Module, names: dict[str, Any]) -> Iterator[_Tried]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.func.attr in _METHODS):
            continue
        try:
            text = eval(compile(ast.Expression(node.args[0]), f"<{short}>", "eval"), dict(names))  # noqa: S307 - our own source
        except NameError:
            continue  # made from what was asked
        flags = [word for part in [*node.args[1:], *(key.value for key in node.keywords)] for word in _flags(part)]
        yield _Tried(f"{short}:{node.func.attr}({text!r})", re.compile(text, sum(flags)), {node.func.attr})


def _flags(node: ast.expr) -> Iterator[int]:
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "re":
            yield int(getattr(re, part.attr))


# -- the texts -------------------------------------------------------------------------------------------------------


def _texts(pattern: _Pattern) -> Iterator[tuple[str, str, str]]:
    """(what comes first, what comes again and again, what comes last) of texts on which `pattern` may take long."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = _parser.parse(source, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags)
    leads = list(dict.fromkeys(_leads(tree, "")))
    units = dict.fromkeys(["\n", " ", "a", "A", "_", "1", ".", "\r\n", " \n", "a ", "a\n"])
    seen = set()
    for lead, pump in leads:
        for text in (("", lead, "\0"), (lead, pump or "a", "\0"), ("", lead + pump, "\0"), (lead, pump or "a", "\n\0")):
            if text[1] and text not in seen:
                seen.add(text)
                yield text
    for unit in units:
        yield "", unit, "\0"
        yield "x\n", unit, "x"


def _leads(items: Any, lead: str) -> Iterator[tuple[str, str]]:
    """(a text that fits up to a place, one that fits the repeat which stands there or '')."""
    for op, argument in items:
        name = str(op)
        if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            low, high, inner = argument
            yield from _leads(inner, lead)
            if int(high) > 8:
                for one in _samples(inner):
                    yield lead, one
            lead += _sample(inner) * max(int(low), 1 if int(high) > 8 else 0)
        elif name in {"SUBPATTERN", "ATOMIC_GROUP"}:
            inner = argument[-1] if name == "SUBPATTERN" else argument
            yield from _leads(inner, lead)
            lead += _sample(inner)
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from _leads(branch, lead)
            lead += _sample(argument[1][0])
        elif name in {"ASSERT", "ASSERT_NOT"}:
            if argument[0] > 0:
                yield from _leads(argument[1], lead)
        else:
            lead += _sample([(op, argument)])
        yield lead, ""


def _sample(items: Any) -> str:
    """A text that fits, with no more than it must have."""
    return next(_samples(items))


def _samples(items: Any) -> Iterator[str]:
    """Texts that fit: one for every way into the first part that has several."""
    ways = [""]
    for op, argument in items:
        name = str(op)
        if name == "LITERAL":
            found = [chr(argument)]
        elif name == "NOT_LITERAL":
            found = [next(letter for letter in "a \n1" if ord(letter) != argument)]
        elif name == "ANY":
            found = ["a", " "]
        elif name == "IN":
            found = _letters(argument)
        elif name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            low, high, inner = argument
            found = [one * max(int(low), 1 if int(high) > 8 else 0) for one in _samples(inner)]
        elif name == "SUBPATTERN":
            found = list(_samples(argument[-1]))
        elif name == "ATOMIC_GROUP":
            found = list(_samples(argument))
        elif name == "BRANCH":
            found = [one for branch in argument[1] for one in list(_samples(branch))[:1]]
        else:
            continue
        several = found if len(ways) == 1 and found else found[:1] or [""]
        ways = [way + one for way in ways for one in several]
    yield from ways[:8]


_LETTERS = "a A1_\n\t.-/:;,(){}[]<>=\"'`#@$%&|!?+*\\~^é\0"


def _letters(inside: Any) -> list[str]:
    """Some letters of a class, of different kinds."""
    found = [letter for letter in _LETTERS if _fits(inside, letter)]
    return found[:1] + [letter for letter in found[1:] if letter in ' \n_1.({"'][:6] or [_first(inside)]


def _first(inside: Any) -> str:
    for op, argument in inside:
        if str(op) == "LITERAL":
            return chr(argument)
        if str(op) == "RANGE":
            return chr(argument[0])
    return "x"


_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdigit,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": lambda letter: letter.isalnum() or letter == "_",
}


def _fits(inside: Any, letter: str) -> bool:
    negated, fits = False, False
    for op, argument in inside:
        name = str(op)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL":
            fits |= ord(letter) == argument
        elif name == "RANGE":
            fits |= argument[0] <= ord(letter) <= argument[1]
        elif name == "CATEGORY":
            kind = str(argument)
            test = _CATEGORIES[kind.replace("_NOT_", "_")]
            fits |= bool(test(letter)) != ("_NOT_" in kind)
    return fits != negated


# -- the test --------------------------------------------------------------------------------------------------------


def _made(pattern: _Pattern, text: tuple[str, str, str], size: int) -> Any:
    before, unit, behind = text
    whole = before + unit * max(size // len(unit), 1) + behind
    return whole.encode("utf-8") if isinstance(pattern.pattern, bytes) else whole


def _seconds(run: Callable[[Any], object], text: Any, times: int = 1) -> float:
    best = 60.0
    for _ in range(times):
        start = time.thread_time()
        run(text)
        best = min(best, time.thread_time() - start)
        if best > 0.2:
            break
    return best


def _slow(tried: _Tried) -> str:
    """The first text found that takes too long; '' where there is none."""
    most = next((size for begin, (size, _) in _CUT.items() if tried.where.startswith(begin)), None)
    for text in _texts(tried.pattern):
        for kind, run in tried.runs():
            if said := _grows(tried.pattern, run, text, most):
                return f"{kind} of {text!r}: {said}"
    return ""


def _grows(pattern: _Pattern, run: Callable[[Any], object], text: tuple[str, str, str], most: int | None) -> str:
    """Four times the text took more than eight times the time; of what is cut it is enough that the longest is quick."""
    for size in _SIZES if most is None else (most // 8, most):
        whole = _made(pattern, text, size)
        took = _seconds(run, whole)
        if most is not None:
            if took > _QUICK and _seconds(run, whole, 2) > _QUICK:
                return f"{took * 1000:.0f} ms for {size} letters"
            continue
        if took < _PASSES and size == _SCREEN:
            break
        if took < _ENOUGH:
            continue
        less, more = (
            _seconds(run, _made(pattern, text, size // 4), 3),
            min(took, _seconds(run, whole, 2) if took < 0.2 else took),
        )
        if more > _ENOUGH and more > less * 8:
            return f"{less * 1000:.1f} -> {more * 1000:.0f} ms for {size // 4} -> {size} letters"
    return ""


def _every() -> list[_Tried]:
    """Each expression once, with all ways in which it is applied."""
    made = [
        _Tried("codebase.evidence.stubs._compiled(_ANY)", stubs._compiled(stubs._ANY)),
        *(
            _Tried(f"codebase.evidence.stubs._compiled({name})", stubs._compiled(own))
            for one in LANGUAGES
            if (own := stubs.of_language(name := one.name))
        ),
        _Tried("codebase.files.search_files._nearest", re.compile(search_files._nearest("aa_a.b")), {"match"}),
        _Tried(
            "codebase.references.classify.occurrences", occurrences(["run", "a", "operator==", "operator()", "valid?"])
        ),
    ]
    found: dict[tuple[object, int], _Tried] = {}
    for tried in (*_expressions(), *made):
        if tried.where.startswith(tuple(begin for begins in _OURS.values() for begin in begins)):
            continue
        given = next((how for place, how in _GIVEN_ON.items() if re.fullmatch(place, tried.where)), None)
        tried.methods = {given} if given else tried.methods or {"finditer"}
        found.setdefault((tried.pattern.pattern, tried.pattern.flags), tried).methods.update(tried.methods)
    return list(found.values())


def test_no_expression_takes_the_square_of_a_text() -> None:
    """Four times the text may take four times as long, and somewhat more on a loaded machine."""
    every = _every()
    assert len(every) > 150
    assert {tried.where: said for tried in every if (said := _slow(tried))} == {}


@pytest.mark.parametrize(
    ("written", "flags"),
    [
        (r"^\s*(?:(?:export|static)\s+)*(?:class|def)\s+([A-Za-z_]\w*)", re.MULTILINE),
        (r"[^{};]+(?=\{)", 0),
        (r"[A-Za-z_$][\w$]*\(\)|[A-Z]\w*[a-z]\w*[A-Z]\w*|[a-z]+\w*[A-Z]\w*", 0),
        (r"<style\b[^>]*>(.*?)</style>", re.DOTALL),
        (r"/\*.*?\*/|\"[^\"\n]*\"", re.DOTALL),
        (r"\(\s*(?P<quote>[\"'])([^\"'\n]*[.#][^\"'\n]*)(?P=quote)", 0),
        (r"class=\"((?:\{\{.*?\}\}|[^\"])*?)\"", 0),
        (r"(?<!\w)\s+#.*", 0),
    ],
)
def test_what_once_took_the_square_or_more_is_told(written: str, flags: int) -> None:
    """Expressions of earlier versions, that this file's texts must find."""
    tried = _Tried("", re.compile(written, flags))
    assert any(_slow(tried) for _ in range(9))  # a neighbour may slow the short text down


def test_a_heading_with_a_long_gap_is_told() -> None:
    """It took the cube: 14 seconds for two thousand blanks in one line of Markdown."""
    assert _slow(_Tried("", re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$"), {"match"}))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.html", "<style>" * 60_000),
        ("a.html", "<p class='hero'>" + "<style" * 60_000),
        ("a.html", "class='{{class='}}" * 20_000),
        ("a.css", ".hero" + " a" * 200_000),
        ("a.css", " #fff" * 40_000 + "{}"),
        ("a.less", "@font-face { src: url(data:font/woff2;base64," + "d09GMgABAAAA" * 40_000 + ") }"),
    ],
)
def test_names_of_a_hostile_page_are_told_at_once(path: str, text: str) -> None:
    """Each took from half a minute to hours."""
    start = time.thread_time()
    mentions(path, text)
    less_names(text)
    assert time.thread_time() - start < 5


def test_no_expression_repeats_a_group_possessively() -> None:
    """Python before 3.11.5 (Debian 12 has 3.11.2) then goes on behind what the last, failed turn had read."""
    sources = {tried.where: str(tried.pattern.pattern) for tried in _expressions()}
    possessive = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,]*\})\+")
    found = {where for where, source in sources.items() if possessive.search(source.replace("\\\\", "\\"))}
    assert found == {"codebase.files.ripgrep._LINES"}  # where what follows such a turn is passed over anyway
