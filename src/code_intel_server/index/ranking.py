"""Orders candidates by what structure says: better than any single score (DESIGN 3, "ranking matters more").

Each candidate has a lexical and a dense score. They are fused by rank, then raised for what a reader would look at
first: that the chunk defines what the question names, that its path says the words of the question, that it covers
many of them, that its file has more good chunks; and lowered for tests, vendored and generated code, examples and
files that only re-export, unless the question asks for such. The weights were set on the tuning half of the benchmark
(benchmarks/retrieval.md).
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache

from code_intel_server.index.lexical import STOP_WORDS, expand, parts, query_terms, stem
from code_intel_server.index.rows import Row


class QueryKind(StrEnum):
    """What a question looks like; decides which score leads."""

    SYMBOL = "symbol"
    PATH = "path"
    NATURAL = "natural"


_IDENTIFIER = r"[A-Za-z_$][\w$]*[!?]?"
_SYMBOL = re.compile(rf"^{_IDENTIFIER}(?:(?:::|->|[.#\\/]){_IDENTIFIER})*(?:\(\))?$")
_CODE_NAME = re.compile(r"\b(?:[A-Za-z]+_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|_\w+)\b|`([^`]+)`")
_CAPITAL = re.compile(r"\b[A-Z]\w+\b")
_SEPARATOR = re.compile(r"::|->|[.#\\/]")
_PATH_LIKE = re.compile(r"^[\w@~.-]*(?:/[\w@.-]+)+/?$|^[\w-]+\.[a-z]{1,5}$")


@dataclass(frozen=True, slots=True)
class Question:
    """A query taken apart: `terms` are the stemmed words to look for, `names` the identifiers it mentions.

    `hints` are words that may be names: those with a capital letter, and a lone word.
    """

    text: str
    kind: QueryKind
    names: tuple[str, ...]
    hints: tuple[str, ...]
    terms: tuple[str, ...]
    wants: frozenset[str]
    """The kinds of files it asks for by name: test, example, vendored, generated, doc."""


@dataclass(slots=True)
class Candidate:
    """A chunk that some source proposed; scores are 0 where that source did not."""

    row: Row
    lexical: float = 0.0
    dense: float = 0.0
    score: float = 0.0
    defines: float = 0.0
    """What it gets for defining what the question names."""
    covered: frozenset[str] = frozenset()
    """The terms of the question that the chunk has."""
    reasons: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each observation counts, in units of the best fused score."""

    dense: float = 0.5
    dense_symbol: float = 0.3
    rrf: float = 30.0
    margin: float = 0.3
    name: float = 1.6
    name_whole: float = 2.0
    coverage: float = 0.2
    definition: float = 3.0
    definition_embedded: float = 1.6
    definition_hint: float = 0.3
    folded: float = 0.6
    mentioned: float = 0.7
    same_stem: float = 1.28
    path: float = 1.6
    path_power: float = 0.5
    folder: float = 0.6
    stem: float = 0.5
    stem_power: float = 0.5
    file: float = 0.5
    file_coverage: float = 0.312
    repeat: float = 0.7


WEIGHTS = Weights()
ORDINARY_TERMS = 6
"""Questions of more terms are long."""

_ASIDE: Mapping[str, tuple[re.Pattern[str], float]] = {
    "test": (
        re.compile(
            r"(?:^|/)(?:tests?|__tests__|specs?|testing|testdata|fixtures|test[-_]\w+)/|(?:^|/)(?:test_[^/]*\.(?:py|c|cc|cpp|lua|dart|rb|sh|jl|el)|conftest\.py|"
            r"[^/]*[_.-](?:test|spec|tests|specs)\.[^/]+|[^/]*(?:Tests?|Spec|Suite)\.(?:java|kt|scala|cs|swift|php|groovy|cpp|cc))$"
        ),
        0.3,
    ),
    "vendored": (re.compile(r"(?:^|/)(?:vendor|vendored|_vendor|third[-_]?party|node_modules|external|deps)/"), 0.4),
    "generated": (
        re.compile(r"(?:\.min\.(?:js|css)|[._-]generated\.|\.pb\.go|_pb2(?:_grpc)?\.py|\.g\.(?:cs|dart)|\.designer\.cs|\.lock|-lock\.\w+)"),
        0.4,
    ),
    "example": (re.compile(r"(?:^|/)(?:_?examples?|samples?|demos?|benchmarks?|bench|docs?_src|playground)/"), 0.4),
    "compat": (re.compile(r"(?:^|/)_?(?:compat|legacy|deprecated)(?:/|\.)"), 0.5),
    "doc": (re.compile(r"(?:\.(?:md|rst|txt|adoc|mdx|html?)$)|(?:^|/)docs?/|(?:^|/)(?:change(?:s|log)|history|news)\b", re.IGNORECASE), 0.4),
    "data": (re.compile(r"\.(?:json|ya?ml|toml|ini|cfg|xml|csv|svg|lock|po)$"), 0.5),
    "barrel": (re.compile(r"(?:^|/)(?:__init__\.py|index\.(?:js|ts|jsx|tsx|mjs)|mod\.rs|lib\.rs|package-info\.java)$"), 0.7),
    "declaration": (re.compile(r"\.d\.ts$|\.pyi$"), 0.7),
}  # fmt: skip
_ASKS: Mapping[str, frozenset[str]] = {
    "test": frozenset({"test", "tests", "testing", "tested", "spec", "specs", "fixture", "fixtures", "mock"}),
    "vendored": frozenset({"vendor", "vendored", "third-party"}),
    "generated": frozenset({"generated"}),
    "example": frozenset({"example", "examples", "sample", "demo", "benchmark", "benchmarks"}),
    "compat": frozenset({"compat", "compatibility", "legacy", "deprecated", "deprecation"}),
    "doc": frozenset({"doc", "docs", "documentation", "readme", "changelog", "guide", "tutorial"}),
    "data": frozenset(
        {"config", "configuration", "json", "yaml", "toml", "xml", "settings", "workflow", "ci", "package"}
    ),
}


def understand(query: str) -> Question:
    """Take a query apart."""
    text = query.strip()
    words = {word.lower() for word in re.findall(r"[\w-]+", text)}
    kind, names = _kind_and_names(text)
    # A sentence begins with a capital letter whatever its first word is.
    capitals = [found[0] for found in _CAPITAL.finditer(text) if found.start() or " " not in text]
    hints = tuple(dict.fromkeys(word for word in capitals if word.lower() not in STOP_WORDS and word not in names))
    wants = frozenset(aside for aside, asking in _ASKS.items() if words & asking)
    return Question(text, kind, names, hints, tuple(query_terms(text)), wants)


def _kind_and_names(text: str) -> tuple[QueryKind, tuple[str, ...]]:
    if _PATH_LIKE.match(text) and not _SYMBOL_CALL.match(text):
        return QueryKind.PATH, ()
    if _SYMBOL.match(text):
        bare = text.removesuffix("()")
        last = _SEPARATOR.split(bare)[-1]
        if bare != bare.lower() or "_" in bare or last != bare or text != bare:
            return QueryKind.SYMBOL, tuple(dict.fromkeys((last, bare)))
        return QueryKind.SYMBOL, (bare,)
    names = [_SEPARATOR.split(found[1] or found[0])[-1] for found in _CODE_NAME.finditer(text)]
    return QueryKind.NATURAL, tuple(dict.fromkeys(names))


_SYMBOL_CALL = re.compile(rf"^{_IDENTIFIER}(?:\.{_IDENTIFIER})+\(\)$|^[A-Za-z]\w*\.[A-Z]\w*$|^[A-Z]\w*\.[a-z]\w{{5,}}$")


def rank(
    question: Question,
    candidates: Iterable[Candidate],
    idf: Mapping[str, float],
    *,
    limit: int,
    weights: Weights = WEIGHTS,
) -> list[Candidate]:
    """The best `limit` candidates in order, scores between 0 and about 10, reasons filled in."""
    found = list(candidates)
    weights = _for_length(question, weights)
    _fuse(question, found, weights)
    _cover(question, found, idf, weights)
    _define(question, found, weights)
    _name(question, found, idf, weights)
    _place(question, found, idf, weights)
    _cohere(question, found, idf, weights)
    _set_aside(question, found)
    return _diverse(found, limit, weights)


def _for_length(question: Question, weights: Weights) -> Weights:
    """A long question describes a place in the code, a short one a subject: files then count for more."""
    share = min(1.0, ORDINARY_TERMS / max(1, len(question.terms)))
    return replace(
        weights,
        path=weights.path * share,
        stem=weights.stem * share,
        file=weights.file * share,
        file_coverage=weights.file_coverage * share,
    )


def _fuse(question: Question, found: Sequence[Candidate], weights: Weights) -> None:
    """Both scores on a scale where the best has 1: by rank and by distance from the best, half and half or so."""
    dense = weights.dense if question.kind is QueryKind.NATURAL else weights.dense_symbol
    if not any(one.dense for one in found):
        dense = 0.0
    elif not any(one.lexical for one in found):
        dense = 1.0
    _share(found, [one.lexical for one in found], 1.0 - dense, weights)
    _share(found, [one.dense for one in found], dense, weights)
    for one in found:
        sources = [name for name, score in (("words", one.lexical), ("meaning", one.dense)) if score > 0]
        if sources:
            one.reasons.append(" and ".join(sources) + " match")


def _share(found: Sequence[Candidate], scores: Sequence[float], share: float, weights: Weights) -> None:
    ranked = sorted((at for at, score in enumerate(scores) if score > 0), key=lambda at: -scores[at])
    if not ranked or not share:
        return
    best, least = scores[ranked[0]], scores[ranked[-1]]
    for place, at in enumerate(ranked):
        by_rank = (weights.rrf + 1) / (weights.rrf + 1 + place)
        by_distance = (scores[at] - least) / (best - least) if best > least else 1.0
        found[at].score += share * (weights.margin * by_distance + (1 - weights.margin) * by_rank)


def _name(question: Question, found: Sequence[Candidate], idf: Mapping[str, float], weights: Weights) -> None:
    """Raise chunks whose own name is made of words of the question."""
    wanted = {term: value for term in question.terms if (value := idf.get(term, 0.0)) > 0}
    total = sum(wanted.values())
    if not total:
        return
    for one in found:
        words = name_words(one.row.chunk.symbol)
        matched = words & wanted.keys()
        if matched:
            said = sum(wanted[word] for word in matched) / total
            one.score += weights.name * math.pow(len(matched) / len(words), weights.name_whole) * math.sqrt(said)


@lru_cache(maxsize=16384)
def name_words(symbol: str) -> frozenset[str]:
    """The stemmed words of a name."""
    return frozenset(stem(part) for part in parts(symbol))


def _cover(question: Question, found: Sequence[Candidate], idf: Mapping[str, float], weights: Weights) -> None:
    total = sum(idf.get(term, 0.0) for term in question.terms)
    if total <= 0:
        return
    wanted = frozenset(question.terms)
    for one in found:
        one.covered = wanted.intersection(one.row.terms.split())
        covered = sum(idf.get(term, 0.0) for term in one.covered) / total
        one.score += weights.coverage * covered * covered


def _define(question: Question, found: Sequence[Candidate], weights: Weights) -> None:
    """Raise the definition of what the question names; most where the chunk is that definition and the case agrees."""
    symbol = question.kind is QueryKind.SYMBOL
    _raise_definitions(
        question, found, question.names, weights.definition if symbol else weights.definition_embedded, weights
    )
    if not symbol:
        _raise_definitions(question, found, question.hints, weights.definition_hint, weights)


def _raise_definitions(
    question: Question, found: Sequence[Candidate], names: Sequence[str], weight: float, weights: Weights
) -> None:
    if not names:
        return
    exact, folded = set(names), {_flat(name) for name in names}
    scopes = {_flat(part) for part in _SEPARATOR.split(question.text.removesuffix("()"))[:-1]}
    for one in found:
        chunk = one.row.chunk
        if chunk.symbol in exact:
            value = 1.0
        elif exact.intersection(chunk.names):
            value = weights.mentioned
        elif _flat(chunk.symbol) in folded:
            value = weights.folded
        elif any(_flat(name) in folded for name in chunk.names):
            value = weights.folded * weights.mentioned
        else:
            continue
        value *= _KIND_VALUE.get(chunk.kind, 1.0)
        if scopes and scopes & {_flat(part) for part in _SEPARATOR.split(chunk.scope)}:
            value += 0.4
        if stem_of(chunk.path) in folded:
            value += weights.same_stem
        one.defines += weight * value
        one.reasons.append(f"defines {next((n for n in (chunk.symbol, *chunk.names) if _flat(n) in folded), '')}")


_KIND_VALUE = {"impl": 0.6, "section": 0.3, "key": 0.3, "heading": 0.3, "variable": 0.7, "field": 0.7, "text": 0.8}


def _place(question: Question, found: Sequence[Candidate], idf: Mapping[str, float], weights: Weights) -> None:
    """Raise chunks whose file name or folder says words of the question: rare words more, names said in full more."""
    if question.kind is QueryKind.PATH:
        _place_by_path(question, found)
        return
    wanted = {term: idf[term] for term in question.terms if idf.get(term, 0.0) > 0}
    total = sum(wanted.values())
    if not total:
        return
    values: dict[str, float] = {}
    for one in found:
        path = one.row.chunk.path
        if path not in values:
            values[path] = _path_value(path, wanted, total, weights)
        if values[path]:
            one.score += values[path]
            if values[path] >= 0.4:
                one.reasons.append("path says it")


def _path_value(path: str, wanted: Mapping[str, float], total: float, weights: Weights) -> float:
    size, name, folders = path_words(path)
    said = full = 0.0
    matched: set[str] = set()
    for term, telling in wanted.items():
        like, word = _likeness(term, name)
        if word:
            matched.add(word)
        said += telling * max(like, weights.folder * _likeness(term, folders)[0])
        full += telling * like
    if not said:
        return 0.0
    whole = len(matched) / size if size else 0.0
    by_words = weights.path * math.pow(said / total, weights.path_power)
    return by_words + weights.stem * whole**2 * math.pow(full / total, weights.stem_power)


def _place_by_path(question: Question, found: Sequence[Candidate]) -> None:
    wanted = question.text.strip("/").lower()
    for one in found:
        path = one.row.chunk.path.lower()
        if path == wanted or path.endswith("/" + wanted):
            one.score += 3.0
            one.reasons.append("path asked for")
        elif wanted in path:
            one.score += 2.0
            one.reasons.append("path asked for")


def _likeness(term: str, words: "PathWords") -> tuple[float, str]:
    """1 where the word is there, .7 where one begins like the other (config, configuration); and the word."""
    for word in words.get(term[:3], ()):
        if word == term:
            return 1.0, word
    for word in words.get(term[:3], ()):
        if word.startswith(term) or term.startswith(word) or _same_beginning(word, term):
            return 0.7, word
    return 0.0, ""


def _cohere(question: Question, found: Sequence[Candidate], idf: Mapping[str, float], weights: Weights) -> None:
    """Raise each file's best chunk by the sum of its chunks, and all by how much of the question the file covers."""
    sums: dict[str, float] = defaultdict(float)
    best: dict[str, Candidate] = {}
    words: dict[str, set[str]] = defaultdict(set)
    wanted = {term: idf[term] for term in question.terms if idf.get(term, 0.0) > 0}
    for one in found:
        path = one.row.chunk.path
        sums[path] += one.score + one.defines
        words[path] |= one.covered
        if path not in best or one.score + one.defines > best[path].score + best[path].defines:
            best[path] = one
    most, total = max(sums.values(), default=0.0), sum(wanted.values())
    if most <= 0:
        return
    for path, one in best.items():
        one.score += weights.file * sums[path] / most
        if total:
            one.score += weights.file_coverage * (sum(wanted.get(term, 0.0) for term in words[path]) / total) ** 2


def _set_aside(question: Question, found: Sequence[Candidate]) -> None:
    """Lower what stands aside; less so what the question names, since that may only exist there."""
    for one in found:
        factor, why = aside(one.row.chunk.path, question.wants)
        one.score = one.score * factor + one.defines * math.sqrt(factor)
        if why:
            one.reasons.append(f"lowered: {why}")


@lru_cache(maxsize=8192)
def aside(path: str, wants: frozenset[str]) -> tuple[float, str]:
    """The factor for a path and what it is (test, vendored …); 1 and '' for plain source or what is asked for."""
    factor, why = 1.0, []
    for name, (pattern, weight) in _ASIDE.items():
        if name not in wants and pattern.search(path):
            factor *= weight
            why.append(name)
    return factor, ", ".join(why)


def _diverse(found: Sequence[Candidate], limit: int, weights: Weights) -> list[Candidate]:
    """Take the best in turn; each further chunk of a file counts less, but a good second one stays before a poor first."""
    taken: dict[str, int] = defaultdict(int)
    for one in sorted(found, key=lambda one: (-one.score, one.row.chunk.path, one.row.chunk.start_line)):
        path = one.row.chunk.path
        one.score *= weights.repeat ** min(taken[path], 4)
        taken[path] += 1
    return sorted(found, key=lambda one: (-one.score, one.row.chunk.path, one.row.chunk.start_line))[:limit]


def _same_beginning(one: str, other: str) -> bool:
    """Whether two words differ in their last letters only (analysis, analyze), beyond what the stemmer knows."""
    shared = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    return shared >= 5 and shared >= 0.7 * max(len(one), len(other))


PathWords = Mapping[str, Sequence[str]]
"""Words by their first three letters."""


@lru_cache(maxsize=8192)
def path_words(path: str) -> tuple[int, PathWords, PathWords]:
    """The number of words of a file's name, those words, and the words of its last two folders; all stemmed."""
    *folders, name = path.split("/")
    own = {stem(part) for part in parts(name.partition(".")[0] or name)}
    return len(own), _by_beginning(own), _by_beginning({term for folder in folders[-2:] for term in expand(folder)})


def _by_beginning(words: Iterable[str]) -> PathWords:
    found: dict[str, list[str]] = defaultdict(list)
    for word in words:
        found[word[:3]].append(word)
    return dict(found)


@lru_cache(maxsize=8192)
def stem_of(path: str) -> str:
    """A file's name without folder and ending, as one flat word."""
    name = path.rpartition("/")[2]
    return _flat(name.rpartition(".")[0] or name)


@lru_cache(maxsize=16384)
def _flat(name: str) -> str:
    return "".join(parts(name))


def idf_of(terms: Sequence[str], frequencies: Mapping[str, int], total: int) -> dict[str, float]:
    """How telling each term is; 0 for one that no chunk has."""
    return {
        term: math.log(1 + (total - frequencies[term] + 0.5) / (frequencies[term] + 0.5))
        if frequencies.get(term)
        else 0.0
        for term in terms
    }


__all__ = ["WEIGHTS", "Candidate", "QueryKind", "Question", "Weights", "aside", "idf_of", "rank", "stem", "understand"]
