"""Answers a question from the store: gathers candidates from words, vectors, names and paths, and has them ranked."""

import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from code_intel_server.index.retrieval import ranking
from code_intel_server.index.retrieval.lexical import expand, match_expression
from code_intel_server.index.retrieval.questions import QueryKind, Question
from code_intel_server.index.retrieval.ranking import Candidate, Weights
from code_intel_server.index.storage.rows import ChunkRow, in_scope
from code_intel_server.index.storage.store import Store
from code_intel_server.index.values import Agreement

LEXICAL_CANDIDATES = 120
DENSE_CANDIDATES = 80
NAMED_CANDIDATES = 60
COMMON_FRACTION = 0.4
"""A word that is in more chunks than this says nothing, unless the question has no other."""

MANY_CHUNKS = 20_000
_COLUMN_WEIGHTS = "3.0, 2.0, 1.0"

DenseSearch = Callable[[int, Sequence[int] | None], dict[int, float]]
"""(limit, allowed chunks or None) -> cosine likeness by sequence number."""


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
    """The best `limit` chunks in order; `dense` is None where vectors cannot be had."""
    with store.reading() as connection:
        allowed = in_scope(connection, scope.path, scope.language)
        if allowed is not None and not allowed:
            return []
        # ChromaDB works in a process of its own while SQLite works here.
        near = _meanwhile(lambda: dense(DENSE_CANDIDATES, allowed) if dense is not None else {})
        total = max(1, connection.execute("SELECT count(*) FROM chunks").fetchone()[0])
        frequencies = _frequencies(connection, question.terms)
        terms = _rare_terms(question.terms, frequencies, total)
        lexical = _by_words(connection, terms, scope)
        named = _by_names(connection, (*question.names, *question.hints))
        placed = _by_path(connection, question, terms, frequencies)
    likeness = near()
    seqs = {*lexical, *likeness, *named, *placed}
    if allowed is not None:
        seqs &= set(allowed)
    rows = store.rows(seqs, terms=True)
    candidates = [Candidate(row, lexical.get(seq, 0.0), likeness.get(seq, 0.0)) for seq, row in rows.items()]
    idf = ranking.idf_of(question.terms, frequencies, total)
    return _with_text(store, ranking.rank_candidates(question, candidates, idf, limit=limit, weights=weights))


def _with_text(store: Store, ranked: Sequence[Candidate]) -> list[Candidate]:
    """The candidates with their text, which ranking does without; one that has vanished meanwhile is left out."""
    rows = store.rows(one.row.seq for one in ranked)
    for one in ranked:
        one.row = rows.get(one.row.seq, one.row)
    return [one for one in ranked if one.row.seq in rows]


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


def _frequencies(connection: sqlite3.Connection, terms: Sequence[str]) -> dict[str, int]:
    """In how many chunks each term stands."""
    marks = ",".join("?" * len(terms))
    return dict(
        connection.execute(f"SELECT term, doc FROM vocabulary WHERE term IN ({marks})", terms).fetchall()  # noqa: S608
    )


def _rare_terms(terms: Sequence[str], frequencies: dict[str, int], total: int) -> list[str]:
    """The terms worth looking for: those that occur, without the common ones where rarer ones are left."""
    present = [term for term in terms if frequencies.get(term)]
    share = COMMON_FRACTION if total <= MANY_CHUNKS else COMMON_FRACTION * MANY_CHUNKS / total
    rare = [term for term in present if frequencies[term] <= share * total]
    return rare if len(rare) >= 2 else sorted(present, key=lambda term: frequencies[term])[:3]


def _by_words(connection: sqlite3.Connection, terms: Sequence[str], scope: SearchScope) -> dict[int, float]:
    if not terms:
        return {}
    narrow = ""
    if scope.path not in {"", "."} or scope.language:
        allowed = in_scope(connection, scope.path, scope.language) or []
        narrow = f"AND rowid IN ({','.join(map(str, allowed))})"
    rows = connection.execute(
        f"SELECT rowid, -bm25(lexical, {_COLUMN_WEIGHTS}) AS score FROM lexical WHERE lexical MATCH ? {narrow} "  # noqa: S608
        "ORDER BY score DESC LIMIT ?",
        (match_expression(list(terms)), LEXICAL_CANDIDATES),
    )
    return {int(seq): float(score) for seq, score in rows}


def _by_names(connection: sqlite3.Connection, names: Sequence[str]) -> list[int]:
    """Chunks that define what the question names: in its very spelling first, and as what they are about first."""
    found: list[int] = []
    for name in names:
        rows = connection.execute(
            "SELECT DISTINCT seq FROM symbols WHERE name = ?1 ORDER BY name = ?1 COLLATE BINARY DESC, own DESC LIMIT ?2",
            (name, NAMED_CANDIDATES),
        )
        found += [row[0] for row in rows]
    return found


def _by_path(
    connection: sqlite3.Connection, question: Question, terms: Sequence[str], frequencies: dict[str, int]
) -> list[int]:
    """Chunks of files whose name says what is asked for."""
    if question.kind is QueryKind.PATH:
        words = [term for word in question.text.replace("/", " ").split() for term in expand(word)]
        expression = " AND ".join(f'path : "{term}"' for term in words)
    else:
        rare = sorted(terms, key=lambda term: frequencies.get(term, 0))[:4]
        expression = " OR ".join(f'path : "{term}"' for term in rare)
    if not expression:
        return []
    rows = connection.execute(
        "SELECT rowid FROM lexical WHERE lexical MATCH ? ORDER BY bm25(lexical, 1.0, 1.0, 0.2) LIMIT ?",
        (expression, NAMED_CANDIDATES),
    )
    return [row[0] for row in rows]


def agreed(store: Store, agreement: Agreement) -> list[ChunkRow]:
    """The chunks that define an agreement's symbols, in its files first; the heads of its files where it names no symbol."""
    seqs: list[int] = []
    with store.reading() as connection:
        for name in agreement.symbols:
            last = re.split(r"::|->|[.#]", name)[-1]
            seqs += [
                row[0]
                for row in connection.execute(
                    "SELECT seq FROM symbols WHERE name = ? LIMIT ?", (last, NAMED_CANDIDATES)
                )
            ]
        if not seqs:
            for path in agreement.files:
                seqs += [row[0] for row in connection.execute(_HEAD_OF_FILE, (path,))]
    rows = store.rows(seqs).values()
    inside = [row for row in rows if row.chunk.path in agreement.files]
    return sorted(inside or rows, key=lambda row: (row.chunk.path, row.chunk.start_line))


_HEAD_OF_FILE = (
    "SELECT seq FROM chunks WHERE file_id = (SELECT id FROM files WHERE path = ?) ORDER BY start_line LIMIT 2"
)


def describe(candidate: Candidate) -> str:
    """Why this result: one readable line."""
    return "; ".join(dict.fromkeys(candidate.reasons)) or "nearest"


__all__ = ["Candidate", "ChunkRow", "DenseSearch", "SearchScope", "agreed", "describe", "find"]
