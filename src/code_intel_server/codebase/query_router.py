"""query: one question in plain words, routed to the lookups that answer it, and why (SPEC 2).

A question that asks for a name, a path or a quoted text goes to names; the rules for it are a list, read from top to
bottom, and the first that fits makes the plan: a few calls in order of promise, made until one finds something, all
reported. Prose goes to meaning first. What names something in the middle of prose is asked both ways, and merged.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain, pairwise
from typing import Any

from code_intel_server.codebase.answers import LookupAnswer, Page
from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.issue_report import HYPHENATED
from code_intel_server.codebase.symbols.definitions import NameMatch
from code_intel_server.codebase.symbols.names import style_kind
from code_intel_server.common import globs
from code_intel_server.errors import Rejected

MAX_QUESTION = 2000
SemanticSearch = Callable[[str, int], LookupAnswer[Any]]
"""Called with the question and a limit; offered only where the phase allows semantic search."""

_QUOTED = re.compile(r"[\"“]([^\"”\n]+)[\"”]|(?<!\w)'([^'\n]+)'(?!\w)|`([^`\n]+)`")
_LOCATION = re.compile(r"(?<![\w./@+-])([\w./@+-]*[\w+-]\.\w+):(\d+)\b")
_PATH = re.compile(
    r"(?<![\w/:])(?:[\w.@+*?\[\]{},-]+/)+[\w.@+*?\[\]{},-]*|(?<![\w/.])[\w@+*?-]+\.\w{1,8}\b|(?<!\w)\*\.\w+"
)
_SYMBOL = re.compile(
    # What begins within a word is none, unless the word's beginning cannot begin one; each part ends where the next may begin.
    r"(?<![A-Za-z_$])(?<![A-Za-z_$][0-9])[A-Za-z_$][\w$]*+(?:(?:(?:\.|::|#|->)[A-Za-z_$~][\w$]*+)+(?:\(\))?|\(\))"  # Class.method, ns::f, call()
    r"|(?<![A-Za-z_])(?<![A-Za-z_][0-9])(?:[A-Za-z][^\W_]*+_\w++|_\w++|[A-Z][^\Wa-z]*+[a-z][^\WA-Z]*+[A-Z]\w*+|[a-z][^\WA-Z]*+[A-Z]\w*+"  # snake_case, CamelCase
    r"|[A-Z][A-Z0-9]{2,}(?:_[A-Z0-9]+)*)"  # CAPS
)
_STYLE = re.compile(r"(?<![\w.#/*\])-])[.#]-?[A-Za-z_][\w-]*(?![\w(/.#]|-)")
"""What may be a CSS class or id, if a style sheet has it; `.py` and the like are endings."""
_SOME_WORDS = 4
"""So many words besides a name leave a question one for the name, where it asks for one or quotes a text."""
_FIRST_MEANT, _FIRST_NAMED = 3, 2
"""Of a question that was asked both ways: so many hits by meaning come first, then so many definitions."""
_MOST_SYMBOLS = 3
_WHOLE = frozenset({"get_symbols", "get_function_at_line", "analyze_structure"})
"""Lookups whose answers have no pages here."""
_MOST_STYLES = 5
"""Of so many of a question's words it is asked whether they are defined."""
_NAMED = re.compile(
    r"\b(?:(?:where|what)(?: is|'s|are)|who (?:calls|uses|imports)|what (?:calls|uses|imports)|(?:callers?|usages?|uses|references?|definition|declaration|signature) (?:of|to)"
    r"|if (?:i|we) (?:change|remove|rename|delete))(?: the)?(?: (?:function|class|method|constant|variable|type))? ([a-z]\w*+)"
    r"(?= *+[?.!]?\Z| (?:defined|declared|implemented|called|used|imported|referenced|function|class|method|constant|variable|type)\b)",
    re.I,
)
"""A plain word where a question asks for a name: one only if something is called so."""
_PROPER = re.compile(r"(?<!^)(?<![.?!]\s)\b[A-Z][a-z]\w+\b")
_ASKS_USES = re.compile(
    r"\A(?>.*?\b(?:who|what|where|which)\b).*\b(?:calls?|uses?|used|called|imports?|imported|references?|referenced|invoked|depends? on)\b|\b(?:callers?|usages?|references?|uses) (?:of|to)\b",
    re.I,
)
_ASKS_IMPACT = re.compile(
    r"\b(?:impact|affected|affects?|breaks?|blast radius|side effects?)\b|\bif (?:i|we) (?:change|remove|rename|delete)\b",
    re.I,
)
_ASKS_OUTLINE = re.compile(
    r"\b(?:outline|structure|symbols|functions|classes|methods|what(?:'s| is) in|contents?|overview)\b", re.I
)
_ASKS_DEFINITION = re.compile(
    r"\b(?:defined?|definition|declared?|declaration|implemented|implementation|signature)\b", re.I
)
_ASKS_FILE = re.compile(r"\b(?:files?|folder|directory|module named|path)\b", re.I)
_ASKS = (_NAMED, _ASKS_USES, _ASKS_DEFINITION, _ASKS_IMPACT, _ASKS_OUTLINE, _ASKS_FILE)
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my need not of
        on or our should show so such tell that the their them then there these they this those to us use used uses using want was we
        were what when where which who why will with work works would you your find look list all any get code function class method
        file files defined definition named name names explain please happens handle handles handled handling implemented implementation called calls
        place places""",
    )
)


@dataclass(frozen=True, slots=True)
class LookupStep:
    """One lookup that was made: the tool's name, its arguments, why, and what it answered."""

    tool: str
    arguments: Mapping[str, object]
    why: str
    answer: LookupAnswer[Any]


@dataclass(frozen=True, slots=True)
class Routed:
    """The lookups that were made, in order; the last one answers the question if any does."""

    question: str
    steps: tuple[LookupStep, ...]

    @property
    def chosen(self) -> LookupStep:
        """The step whose answer counts."""
        return next((step for step in self.steps if step.answer.results), self.steps[-1])


@dataclass(frozen=True, slots=True)
class _Call:
    """A lookup that may answer: a method of the explorer, or semantic search."""

    tool: str
    why: str
    arguments: Mapping[str, object]


def _call(tool: str, why: str, **arguments: object) -> _Call:
    return _Call(tool, why, arguments)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question taken apart."""

    text: str
    quoted: str
    location: tuple[str, int] | None
    paths: tuple[str, ...]
    symbols: tuple[str, ...]
    words: tuple[str, ...]
    proper: bool = False
    """Whether the symbols are no more than words with a capital letter."""


class Sense(Enum):
    """How a question is to be taken."""

    NAMES = "names"
    WORDS = "words"
    BOTH = "both"


def sense_of(asked: _Asked) -> Sense:
    """How a question is to be taken: by how many words it has besides what it names, and whether it asks for a name."""
    named = {word for symbol in asked.symbols for word in re.findall(r"[\w-]+", symbol)}
    besides = len(set(asked.words) - named)
    if asked.quoted or asked.location:
        return Sense.NAMES if besides <= _SOME_WORDS else Sense.BOTH
    asks = any(pattern.search(asked.text) for pattern in _ASKS)
    if besides <= (_SOME_WORDS if asks else 0) and (asked.symbols or asked.paths or not asked.words):
        return Sense.NAMES
    return Sense.BOTH if asked.paths or (asked.symbols and not asked.proper) else Sense.WORDS


def route(explorer: Explorer, question: str, *, limit: int = 20, semantic: SemanticSearch | None = None) -> Routed:
    """Answer `question` by the lookup it asks for; later ones are tried only while nothing is found.

    Raises Rejected('tool_errors.query.no_pattern') for an empty question.
    """
    text = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+", " ", question).strip()[:MAX_QUESTION]
    if not text:
        raise Rejected("tool_errors.query.no_pattern")
    asked = _take_apart(text, _defined(explorer, text))
    if not asked.symbols and (name := _plain_name(explorer, text)):
        asked = replace(asked, symbols=(name,), proper=False)
    steps: list[LookupStep] = []
    sense = sense_of(asked) if semantic is not None else Sense.NAMES
    for call in _plan(explorer, asked, limit, sense, meaning=semantic is not None):
        try:
            found = _answered(explorer, call, Page(limit), semantic)
        except Rejected:
            continue  # what looked like a path is none: the next rule may fit
        steps.append(LookupStep(call.tool, call.arguments, call.why, found))
        if found.results:
            break
    if sense is Sense.BOTH and steps and steps[-1].tool == "semantic_search":
        steps[-1] = _with_names(explorer, asked, steps[-1], limit)
    if not steps:
        raise Rejected("tool_errors.query.no_pattern")
    return Routed(question, tuple(steps))


def _with_names(explorer: Explorer, asked: _Asked, meant: LookupStep, limit: int) -> LookupStep:
    """What was found by meaning, with the definitions of what the question names behind the first hits."""
    symbols = asked.symbols[:_MOST_SYMBOLS]
    answers = [explorer.find_definitions(symbol, page=Page(_FIRST_NAMED)) for symbol in symbols]
    first = {row.path for row in meant.answer.results[:_FIRST_MEANT]}
    named = [row for found in answers for row in found.results if row.path not in first][:_FIRST_NAMED]
    if not named:
        return meant
    hits = meant.answer.results
    rows = tuple(chain(hits[:_FIRST_MEANT], named, hits[_FIRST_MEANT:]))[:limit]
    return replace(
        meant,
        tool="semantic_search + find_definitions",
        arguments={**meant.arguments, "symbols": list(symbols)},
        why="the question names something in the middle of prose: asked both ways",
        answer=replace(meant.answer, results=rows, total=len(rows)),
    )


def _defined(explorer: Explorer, text: str) -> tuple[str, ...]:
    """What a question names and only a definition tells from a word: `.gitignore` and `#include` are written as styles are, `If-Range` as `Get-Item` is."""
    unquoted = _QUOTED.sub(lambda found: f" {found[3] or ''} ", text)
    written = chain(_STYLE.finditer(unquoted), HYPHENATED.finditer(unquoted))
    named = dict.fromkeys(found[0] for found in written if language_of(f"x{found[0]}") is None)
    return tuple(
        name
        for name in [*named][:_MOST_STYLES]
        if explorer.find_definitions(name, kind=style_kind(name), page=Page(1)).results
    )


def _plain_name(explorer: Explorer, text: str) -> str:
    """The plain word by which a question names a symbol ('who calls pay'); '' where it names none that is defined."""
    named = _NAMED.search(text)
    return named[1] if named and explorer.find_definitions(named[1], page=Page(1)).results else ""


def _take_apart(text: str, defined: tuple[str, ...] = ()) -> _Asked:
    found_quotes = [(next(part for part in found.groups() if part), found[3]) for found in _QUOTED.finditer(text)]
    quotes = [quote for quote, _ in found_quotes]
    # What is said to be code may be a style's name, what is quoted is a text.
    marked = [quote for quote, code in found_quotes if _is_symbol(quote) or (code in defined)]
    literal = next((quote for quote in quotes if quote not in marked and not _is_path(quote)), "")
    bare = _QUOTED.sub(
        lambda found: f" {next(part for part in found.groups() if part)} " if literal != found[0][1:-1] else " ", text
    )
    location = _LOCATION.search(bare)
    written = (
        found[0].rstrip("?").strip(".,") for found in _PATH.finditer(bare)
    )  # a question ends in "?", a glob hardly
    paths = tuple(dict.fromkeys(path for path in written if _is_path(path)))
    rest = bare
    for path in paths:
        rest = rest.replace(path, " ")
    symbols = [quote for quote in marked if not _is_path(quote)]
    for style in sorted(defined, key=len, reverse=True):
        rest = rest.replace(style, " ")
    unhyphenated = HYPHENATED.sub(" ", rest)
    named = [*defined, *(found[0] for found in _SYMBOL.finditer(unhyphenated))]
    proper = not (symbols or named)
    symbols += named or [found[0] for found in _PROPER.finditer(unhyphenated)]
    words = [word for word in re.findall(r"[A-Za-z][\w-]{2,}", rest) if word.lower() not in _STOP_WORDS]
    if len(text.split()) == 1 and not paths and re.fullmatch(r"[\w$]+(?:\(\))?", text):
        symbols, proper = [text], False
    place = (location[1], int(location[2])) if location else None
    return _Asked(text, literal, place, paths, tuple(dict.fromkeys(symbols)), tuple(dict.fromkeys(words)), proper)


def _is_symbol(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z_$~][\w$]*(?:(?:\.|::|#|->)[A-Za-z_$~][\w$]*)*(?:\(\))?", text) is not None


def _is_path(text: str) -> bool:
    if globs.has_magic(text):
        return "/" in text or "." in text
    return "/" in text.strip("/") or (language_of(text) is not None and "." in text)


def _answered(explorer: Explorer, call: _Call, page: Page, semantic: SemanticSearch | None) -> LookupAnswer[Any]:
    if semantic is not None and call.tool == "semantic_search":
        return semantic(str(call.arguments["query"]), page.limit)
    paged = {} if call.tool in _WHOLE else {"page": page}
    found: Any = getattr(explorer, call.tool)(**call.arguments, **paged)
    answer: LookupAnswer[Any] = found.answer if call.tool == "analyze_impact" else found
    return answer


def _plan(explorer: Explorer, asked: _Asked, limit: int, sense: Sense, *, meaning: bool) -> Iterator[_Call]:
    """The calls that may answer, most promising first."""
    meant = _call("semantic_search", "the question is in natural language", query=asked.text, limit=limit)
    if meaning and sense is not Sense.NAMES:
        yield meant
    if asked.quoted:
        yield _text((asked.quoted,), "the question quotes a literal text")
    if asked.location:
        path, line = asked.location
        yield _call("get_function_at_line", "the question names a line of a file", path=path, line=line)
    yield from _about_symbols(asked)
    yield from _about_paths(explorer, asked)
    if meaning and sense is Sense.NAMES:
        yield meant
    yield from _about_words(asked)


def _about_symbols(asked: _Asked) -> Iterator[_Call]:
    if not asked.symbols or (asked.paths and _ASKS_OUTLINE.search(asked.text)):
        return
    if _ASKS_IMPACT.search(asked.text):
        why = "the question asks what a change to a symbol touches"
        yield _call("analyze_impact", why, targets=list(asked.symbols))
    asks_uses = _ASKS_USES.search(asked.text) and not _ASKS_DEFINITION.search(asked.text)
    for symbol in asked.symbols[:_MOST_SYMBOLS]:
        if asks_uses:
            yield _call("find_references", "the question asks where a symbol is used", symbol=symbol)
        yield _definitions(symbol, NameMatch.EXACT, "the question names a symbol")
    for symbol in asked.symbols[:_MOST_SYMBOLS]:
        yield _call("find_references", "the symbol is defined nowhere here; where it is used", symbol=symbol)
        yield _definitions(symbol, NameMatch.FUZZY, "no symbol has exactly this name")


def _about_paths(explorer: Explorer, asked: _Asked) -> Iterator[_Call]:
    for path in asked.paths[:3]:
        if not globs.has_magic(path):
            if _ASKS_IMPACT.search(asked.text):
                yield _call("analyze_impact", "the question asks what a change to a file touches", targets=[path])
            if (explorer.project.root / path).is_dir():
                yield _call("analyze_structure", "the question names a folder", path=path)
            else:
                yield _call("get_symbols", "the question names a file", path=path)
        yield _call("search_files", "the question names a path", pattern=path)
    if asked.words and not asked.paths and _ASKS_FILE.search(asked.text):
        yield _call("search_files", "the question asks for a file", pattern=asked.words[0])


def _about_words(asked: _Asked) -> Iterator[_Call]:
    words = asked.words or tuple(re.findall(r"\w{2,}", asked.text))
    if len(words) == 1 and not asked.symbols:
        yield _definitions(words[0], NameMatch.PREFIX, f"a symbol may be called {words[0]}")
    for first, second in pairwise(map(_stem, words)):
        yield _definitions(first + second, NameMatch.FUZZY, f"a symbol may be called by the words {first} and {second}")
        near = rf"{re.escape(first)}\w{{0,6}}\W{{0,3}}(?:\w+\W+)?{re.escape(second)}"
        yield _text((near,), f"the words {first} and {second} stand together", regex=True, ignore_case=True)
    why = "nothing better fits: lines with the question's words"
    yield _text(tuple(words[:8]) or (asked.text,), why, ignore_case=True)


def _stem(word: str) -> str:
    """The word without its most common endings, so that 'hashing' finds `hasher`."""
    bare = re.sub(r"(?:ations?|ings?|ers?|ors?|ed|es|s)$", "", word.lower())
    return bare if len(bare) >= 3 else word.lower()


def _text(patterns: Sequence[str], why: str, *, regex: bool = False, ignore_case: bool = False) -> _Call:
    return _call("search_text", why, patterns=list(patterns), regex=regex, ignore_case=ignore_case)


def _definitions(symbol: str, match: NameMatch, why: str) -> _Call:
    return _call("find_definitions", why, symbol=symbol, match=match.value)
