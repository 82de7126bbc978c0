"""Answers a question from the store: gathers candidates from words, vectors, names and paths, and has them ranked."""

import re
import sqlite3
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from code_intel_server.index.retrieval import ranking
from code_intel_server.index.retrieval.bm25 import FieldWeights, QuestionWords
from code_intel_server.index.retrieval.lexical import expand
from code_intel_server.index.retrieval.questions import QueryKind, Question
from code_intel_server.index.retrieval.ranking import Candidate, Weights
from code_intel_server.index.storage.rows import ChunkRow, in_scope
from code_intel_server.index.storage.store import Store
from code_intel_server.index.storage.view import View, best_places
from code_intel_server.index.values import Agreement

LEXICAL_CANDIDATES = 120
DENSE_CANDIDATES = 80
NAMED_CANDIDATES = 60
COMMON_FRACTION = 0.4
"""A word that is in more chunks than this says nothing, unless the question has no other."""

MANY_CHUNKS = 20_000
_FIELDS = FieldWeights(symbol=3.0, path=2.0, body=1.0)
_PATH_ALONE = FieldWeights(symbol=0.0, path=1.0, body=0.0)

DenseSearch = Callable[[int, Collection[int] | None], dict[int, float]]
"""(limit, files to look in or None) -> cosine likeness by the chunks' numbers."""


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What a search is narrowed to; empty strings narrow nothing."""

    path: str = ""
    language: str = ""


def find(
    store: Store,
    question: Question,
    dense: DenseSearch | None,
    *,
    limit: int,
    scope: SearchScope = SearchScope(),
    weights: Weights = ranking.WEIGHTS,
) -> list[Candidate]:
    """The best `limit` chunks in order, without their text; `dense` is None where vectors cannot be had."""
    view = store.view()
    asked = _path_terms(question)
    with store.reading() as connection:
        files = in_scope(connection, scope.path, scope.language)
        if files is not None and not files:
            return []
        # ChromaDB works in a process of its own while SQLite works here.
        near = _meanwhile(lambda: dense(DENSE_CANDIDATES, files) if dense is not None else {})
        words = QuestionWords(connection, view, [*{*question.terms, *asked}])
        named = _by_names(connection, (*question.names, *question.hints))
    total, frequencies = max(1, len(view)), words.frequencies()
    terms = _rare_terms(question.terms, frequencies, total)
    scores = words.scores(terms, _FIELDS)
    if files is not None:
        scores[~view.within(files)] = 0.0
    best = best_places(scores, LEXICAL_CANDIDATES)
    lexical = dict(zip(view.seqs[best].tolist(), scores[best].tolist(), strict=True))
    placed = _by_path(view, words, asked or sorted(terms, key=lambda term: frequencies.get(term, 0))[:4], bool(asked))
    likeness = near()
    rows = store.rows(sorted({*lexical, *likeness, *named, *placed}))
    said = words.said_by([*rows])
    candidates = [
        Candidate(row, lexical.get(seq, 0.0), likeness.get(seq, 0.0), covered=said[seq].intersection(question.terms))
        for seq, row in rows.items()
        if files is None or row.file_id in files
    ]
    idf = ranking.idf_of(question.terms, frequencies, total)
    return ranking.rank_candidates(question, candidates, idf, limit=limit, weights=weights)


def _meanwhile(job: Callable[[], dict[int, float]]) -> Callable[[], dict[int, float]]:
    """Start a job in a thread; calling the answer waits for it and gives its result or raises its exception."""
    done: Future[dict[int, float]] = Future()

    def work() -> None:
        try:
            done.set_result(job())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            done.set_exception(error)

    threading.Thread(target=work, name="dense", daemon=True).start()
    return done.result


def _rare_terms(terms: Sequence[str], frequencies: dict[str, int], total: int) -> list[str]:
    """The terms worth looking for: those that occur, without the common ones where rarer ones are left."""
    present = [term for term in terms if frequencies.get(term)]
    share = COMMON_FRACTION if total <= MANY_CHUNKS else COMMON_FRACTION * MANY_CHUNKS / total
    rare = [term for term in present if frequencies[term] <= share * total]
    return rare if len(rare) >= 2 else sorted(present, key=lambda term: frequencies[term])[:3]


def _by_names(connection: sqlite3.Connection, names: Sequence[str]) -> list[int]:
    """Chunks that define what the question names: in its very spelling first, and as what they are about first."""
    found: list[int] = []
    for name in names:
        rows = connection.execute(_DEFINED, (name, NAMED_CANDIDATES))
        found += [row[0] for row in rows]
    return found


_DEFINED = (
    "SELECT seq FROM definitions WHERE name = ?1 COLLATE NOCASE GROUP BY seq "
    "ORDER BY max(name = ?1) DESC, max(own) DESC, path, start_line LIMIT ?2"
)


def _path_terms(question: Question) -> list[str]:
    """The terms of a path that is asked for; none for other questions."""
    words = question.text.replace("/", " ").split() if question.kind is QueryKind.PATH else []
    return [term for word in words for term in expand(word)]


def _by_path(view: View, words: QuestionWords, terms: Sequence[str], every: bool) -> list[int]:
    """Chunks of files whose name says what is asked for."""
    best = best_places(words.scores(terms, _PATH_ALONE, every=every), NAMED_CANDIDATES)
    found: list[int] = view.seqs[best].tolist()
    return found


def agreed(store: Store, agreement: Agreement) -> list[ChunkRow]:
    """The chunks that define an agreement's symbols, in its files first; the heads of its files where it names no symbol."""
    seqs: list[int] = []
    with store.reading() as connection:
        for name in agreement.symbols:
            last = re.split(r"::|->|[.#]", name)[-1]
            seqs += [row[0] for row in connection.execute(_DEFINED, (last, NAMED_CANDIDATES))]
        if not seqs:
            for path in agreement.files:
                seqs += [row[0] for row in connection.execute(_HEAD_OF_FILE, (path,))]
    rows = store.rows(seqs).values()
    inside = [row for row in rows if row.chunk.path in agreement.files]
    return sorted(inside or rows, key=lambda row: (row.chunk.path, row.chunk.start_line))


_HEAD_OF_FILE = "SELECT seq FROM chunks WHERE path = ? ORDER BY start_line LIMIT 2"


def describe(candidate: Candidate) -> str:
    """Why this result: one readable line."""
    return "; ".join(dict.fromkeys(candidate.reasons)) or "nearest"


__all__ = ["Candidate", "ChunkRow", "DenseSearch", "SearchScope", "agreed", "describe", "find"]
