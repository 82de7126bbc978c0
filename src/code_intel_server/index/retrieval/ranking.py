"""Orders candidates by what structure says: better than any single score (SPEC 9).

Each candidate has a lexical and a dense score. They are fused by distance from the best and by rank, then raised for what a reader would look at
first: that the chunk defines what the question names, that its path says the words of the question, that it covers
many of them, that its file has more good chunks; and lowered for tests, vendored and generated code, examples and
files that only re-export, unless the question asks for such. The weights were set on the tuning half of the benchmark
(benchmarks/retrieval.md) and on docstrings of eight packages (benchmarks/span_precision.md), and on nothing that is reported.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from code_intel_server.codebase.syntax.values import SymbolKind
from code_intel_server.index.retrieval.lexical import identifier_words, stem
from code_intel_server.index.retrieval.questions import SEPARATOR, QueryKind, Question
from code_intel_server.index.storage.rows import ChunkRow
from code_intel_server.index.values import Chunk, lookup_names
from code_intel_server.index.vectors.placement import aside, flat, likeness, path_words, stem_of


@dataclass(slots=True)
class Candidate:
    """A chunk that some source proposed; scores are 0 where that source did not."""

    row: ChunkRow
    lexical: float = 0.0
    dense: float = 0.0
    score: float = 0.0
    defines: float = 0.0
    """What it gets for defining what the question names."""
    covered: frozenset[str] = frozenset()
    """The terms of the question that the chunk has in its names or its text."""
    reasons: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each observation counts, in units of the best fused score."""

    dense: float = 0.665
    dense_symbol: float = 0.3
    rrf: float = 22.5
    margin: float = 0.8
    name: float = 1.6
    name_whole: float = 1.5
    name_said: float = 0.665
    name_other: float = 0.5
    coverage: float = 0.53
    definition: float = 3.0
    definition_embedded: float = 0.8
    definition_hint: float = 0.3
    folded: float = 0.6
    mentioned: float = 0.7
    same_scope: float = 0.4
    same_stem: float = 1.28
    path: float = 1.6
    path_power: float = 0.665
    folder: float = 0.6
    stem: float = 0.884
    stem_power: float = 0.5
    file: float = 0.5
    file_coverage: float = 0.312
    repeat: float = 0.7
    length: float = 1.77
    length_definition: float = 2.0
    """How fast what a path says, and what a name in passing says, fades with the length of the question."""


WEIGHTS = Weights()
ORDINARY_TERMS = 6
"""Questions of more terms are long."""


def rank_candidates(
    question: Question,
    candidates: Iterable[Candidate],
    idf: Mapping[str, float],
    *,
    limit: int,
    weights: Weights = WEIGHTS,
) -> list[Candidate]:
    """The best `limit` candidates in order, scores between 0 and about 10, reasons filled in."""
    # Not as they came: numbers of chunks differ between checkouts, and equal scores are told apart by rank.
    found = sorted(candidates, key=lambda one: (one.row.chunk.path, one.row.chunk.start_line))
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
    """A long question describes a place in the code, a short one a subject: files then count for more.

    A name is the subject of a short question, and mentioned in passing by a long one.
    """
    ordinary = min(1.0, ORDINARY_TERMS / max(1, len(question.terms)))
    share, passing = ordinary**weights.length, ordinary**weights.length_definition
    return replace(
        weights,
        definition_embedded=weights.definition_embedded * passing,
        definition_hint=weights.definition_hint * passing,
        path=weights.path * share,
        stem=weights.stem * share,
        file=weights.file * share,
        file_coverage=weights.file_coverage * share,
    )


def _fuse(question: Question, found: Sequence[Candidate], weights: Weights) -> None:
    """Both scores on a scale where the best has 1: mostly by distance from the best, a little by rank."""
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
    """Raise chunks whose own name, or another that they define, is made of words of the question."""
    wanted = {term: value for term in question.terms if (value := idf.get(term, 0.0)) > 0}
    total = sum(wanted.values())
    if not total:
        return
    for one in found:
        chunk = one.row.chunk
        own = _made_of(chunk.symbol, wanted, total, weights)
        # Small neighbours are one chunk: what it is not called by it defines all the same. Imports and fields it only lists.
        names = chunk.names if chunk.kind in _CODE else ()
        others = (_made_of(name, wanted, total, weights) for name in names if name != chunk.symbol)
        one.score += weights.name * max(own, weights.name_other * max(others, default=0.0))


_CODE = frozenset({"function", "method", "class", "struct", "interface", "trait"})


def _made_of(name: str, wanted: Mapping[str, float], total: float, weights: Weights) -> float:
    """How much of a name is in the question, and how much of the question in the name."""
    words = name_words(name)
    matched = words & wanted.keys()
    if not matched:
        return 0.0
    said = sum(wanted[word] for word in matched) / total
    return math.pow(len(matched) / len(words), weights.name_whole) * math.pow(said, weights.name_said)


@lru_cache(maxsize=16384)
def name_words(symbol: str) -> frozenset[str]:
    """The stemmed words of a name."""
    return frozenset(stem(part) for part in identifier_words(symbol))


def _cover(question: Question, found: Sequence[Candidate], idf: Mapping[str, float], weights: Weights) -> None:
    total = sum(idf.get(term, 0.0) for term in question.terms)
    if total <= 0:
        return
    for one in found:
        one.score += weights.coverage * sum(idf.get(term, 0.0) for term in one.covered) / total


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
    exact, folded = set(names), {flat(name) for name in names}
    above = [flat(part) for part in SEPARATOR.split(question.text.removesuffix("()"))[:-1]]
    opened = _opened(found)
    for one in found:
        chunk = one.row.chunk
        value = _named_in(chunk, exact, folded, weights)
        if not value:
            continue
        value *= _KIND_VALUE.get(chunk.kind, 1.0) / opened.get(chunk.symbol, 1)
        around = [flat(part) for part in SEPARATOR.split(chunk.scope)]
        if above and set(above) & set(around):
            value += weights.same_scope
        if above and around[-len(above) :] == above:
            value += weights.same_scope
        if stem_of(chunk.path) in folded:
            value += weights.same_stem
        one.defines += weight * value
        one.reasons.append(f"defines {next((n for n in (chunk.symbol, *chunk.names) if flat(n) in folded), '')}")


def _named_in(chunk: Chunk, exact: set[str], folded: set[str], weights: Weights) -> float:
    """How much a chunk is the definition of one of the names: most where it is about nothing else and the case agrees."""
    own = lookup_names(chunk.kind, chunk.symbol)
    if exact.intersection(own):
        return 1.0
    if exact.intersection(chunk.names):
        return weights.mentioned
    if folded.intersection(map(flat, own)):
        return weights.folded
    return weights.folded * weights.mentioned if any(flat(name) in folded for name in chunk.names) else 0.0


def _opened(found: Sequence[Candidate]) -> Mapping[str, int]:
    """In how many files each module or namespace is opened: what every file opens is defined in none of them."""
    chunks = (one.row.chunk for one in found)
    return Counter(name for name, _ in {(chunk.symbol, chunk.path) for chunk in chunks if chunk.kind in _OPENED})


_OPENED = frozenset({SymbolKind.MODULE, SymbolKind.NAMESPACE})
_KIND_VALUE = {
    "declaration": 0.6,
    "impl": 0.6,
    "section": 0.3,
    "key": 0.3,
    "heading": 0.3,
    "variable": 0.7,
    "field": 0.7,
    "text": 0.8,
}


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
        like, word = likeness(term, name)
        if word:
            matched.add(word)
        said += telling * max(like, weights.folder * likeness(term, folders)[0])
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
    """Lower what is aside; less so what the question names, since that may only exist there.

    A file that re-exports may also define things of its own (`mod.rs`, `__init__.py`): they are as good as any.
    """
    for one in found:
        chunk = one.row.chunk
        wants = question.wants if chunk.kind in _PASSED_ON else question.wants | {"barrel"}
        factor, why = aside(chunk.path, wants)
        one.score = one.score * factor + one.defines * math.sqrt(factor)
        if why:
            one.reasons.append(f"lowered: {why}")


_PASSED_ON = frozenset({"text", "section", SymbolKind.MODULE, SymbolKind.NAMESPACE, SymbolKind.VARIABLE})


def _diverse(found: Sequence[Candidate], limit: int, weights: Weights) -> list[Candidate]:
    """Take the best in turn; each further chunk of a file counts less, but a good second one stays before a poor first."""
    taken: dict[str, int] = defaultdict(int)
    for one in sorted(found, key=lambda one: (-one.score, one.row.chunk.path, one.row.chunk.start_line)):
        path = one.row.chunk.path
        one.score *= weights.repeat ** min(taken[path], 4)
        taken[path] += 1
    return sorted(found, key=lambda one: (-one.score, one.row.chunk.path, one.row.chunk.start_line))[:limit]


def idf_of(terms: Sequence[str], frequencies: Mapping[str, int], total: int) -> dict[str, float]:
    """How telling each term is; 0 for one that no chunk has."""
    return {
        term: math.log(1 + (total - frequencies[term] + 0.5) / (frequencies[term] + 0.5))
        if frequencies.get(term)
        else 0.0
        for term in terms
    }
