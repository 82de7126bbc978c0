"""Map: questions that once led to the right symbols (SPEC 9, 10). The readable files are the truth, the store mirrors them.

A question is like an earlier one when both its meaning and its words agree. Meaning alone would not do: some
embedders call any two sentences alike, and a wrong short cut costs more than a missed one.
"""

import hashlib
import os
import re
import threading
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from code_intel_server.index.retrieval.lexical import query_terms
from code_intel_server.index.storage.rows import pack, unpack
from code_intel_server.index.storage.store import Store
from code_intel_server.index.values import Agreement
from code_intel_server.index.vectors.embedding import Encoder
from code_intel_server.workspace.files import make_folder, write_whole
from code_intel_server.workspace.paths import aimed_elsewhere, unsafe_folder

if TYPE_CHECKING:
    from code_intel_server.index.values import Matrix

SHORT_CUT = 0.7
"""From this score on Forest is skipped (SPEC 9)."""

MAX_AGREEMENT_BYTES = 65_536
MAX_CANDIDATES = 20
_MEANING_ALONE = 0.4
_ITEM = re.compile(r"^- `?(.+?)`?$")
_SESSION = re.compile(r"^session:\s*(\S+)\s*$")

NearAgreements = Callable[["Matrix", int], dict[str, float] | None]
"""(vector, limit) -> cosine by agreement id from ChromaDB; None where it cannot answer."""


class Map:
    """The agreements of one project."""

    def __init__(self, folder: Path, store: Store, encoder: Callable[[], Encoder | None]) -> None:
        self._folder = folder
        self._store = store
        self._encoder = encoder
        self._seen: dict[str, tuple[int, int]] | None = None
        self._refreshing = threading.Lock()

    def refresh(self) -> bool:
        """Bring the store in line with the files; True where something changed. Files that are none are ignored."""
        with self._refreshing:  # who has looked at the files before must not remove what came since
            return self._refresh()

    def _refresh(self) -> bool:
        stats = _stats(self._folder)
        if stats == self._seen or not self._store.writable:
            return False
        wanted = {}
        for name in stats:
            agreement = read_agreement(self._folder / name)
            if agreement is not None:
                wanted[agreement.id] = agreement
        held = {agreement.id: (agreement, vector) for agreement, vector in self._store.agreements()}
        encoder = self._encoder()
        new = [
            agreement
            for ident, agreement in wanted.items()
            if ident not in held or held[ident][0] != agreement or (held[ident][1] is None and encoder is not None)
        ]
        gone = held.keys() - wanted.keys()
        if new or gone:
            vectors: Sequence[bytes | None] = [None] * len(new)
            if encoder is not None and new:
                vectors = pack(encoder.encode([agreement.query for agreement in new], "query"))
            self._store.set_agreements({a.id: (a, v) for a, v in zip(new, vectors, strict=True)}, gone)
        self._seen = stats
        return bool(new or gone)

    @staticmethod
    def write(
        folder: Path, query: str, symbols: Sequence[str], files: Sequence[str], session_id: str = ""
    ) -> Agreement:
        """Write an agreement's file, replacing the one of the same question. Raises OSError where it cannot be written, and
        UserActionNeeded('tool_errors.generic.state_folder_unsafe') where a link leads out of the folder."""
        ident = agreement_id(query)
        agreement = Agreement(ident, _one_line(query), tuple(symbols), tuple(files), session_id)
        if aimed_elsewhere(folder):
            raise unsafe_folder(folder)
        make_folder(folder)
        write_whole(folder / file_name(query), render_agreement(agreement).encode("utf-8", "replace"), 0o644)
        return agreement

    @staticmethod
    def remove(folder: Path, query: str, session_id: str) -> str:
        """Remove the agreement of a question where this session wrote it; its file's name, '' where it did not. Raises OSError."""
        name = file_name(query)
        found = None if aimed_elsewhere(folder) else read_agreement(folder / name)
        if found is None or found.session_id != session_id:
            return ""
        (folder / name).unlink(missing_ok=True)
        return name

    def search(self, query: str, vector: "Matrix | None", near: NearAgreements) -> tuple[Agreement, ...]:
        """Agreements by likeness to the question, best first, scores from 0 to 1; 1 for the same words."""
        held = self._store.agreements()
        if not held:
            return ()
        cosines = self._cosines(held, vector, near)
        terms = set(query_terms(query))
        scored = [
            replace(agreement, score=round(_likeness(terms, agreement.query, cosines.get(agreement.id)), 4))
            for agreement, _ in held
            if cosines is _NO_MEANING or agreement.id in cosines
        ]
        return tuple(sorted((one for one in scored if one.score > 0), key=lambda one: (-one.score, one.id)))

    @staticmethod
    def _cosines(
        held: Sequence[tuple[Agreement, bytes | None]], vector: "Matrix | None", near: NearAgreements
    ) -> dict[str, float]:
        if vector is None:
            return _NO_MEANING
        found = near(vector, MAX_CANDIDATES)
        if found is not None:
            return found
        dim = int(vector.shape[-1])
        rows = [(agreement.id, blob) for agreement, blob in held if blob is not None and len(blob) == 2 * dim]
        scores = unpack([blob for _, blob in rows], dim) @ vector.reshape(-1)
        return {ident: float(score) for (ident, _), score in zip(rows, scores, strict=True)}


_NO_MEANING: dict[str, float] = {}


def _likeness(terms: set[str], query: str, cosine: float | None) -> float:
    theirs = set(query_terms(query))
    shared = len(terms & theirs) / len(terms | theirs) if terms | theirs else 0.0
    if cosine is None:
        return shared
    return max(0.0, min(1.0, cosine)) * (_MEANING_ALONE + (1 - _MEANING_ALONE) * shared)


def agreement_id(query: str) -> str:
    """The same for the same question, whatever its case and spacing."""
    folded = " ".join(unicodedata.normalize("NFKC", query).casefold().split())
    return hashlib.blake2b(folded.encode("utf-8", "replace"), digest_size=10).hexdigest()


def file_name(query: str) -> str:
    """What the file of a question's agreement is called."""
    return f"{_slug(query)}-{agreement_id(query)[:8]}.md"


def render_agreement(agreement: Agreement) -> str:
    """The file of an agreement."""
    parts = [f"# {agreement.query}", ""]
    if agreement.session_id:
        parts += [f"session: {agreement.session_id}", ""]
    for title, items in (("Symbols", agreement.symbols), ("Files", agreement.files)):
        if items:
            parts += [f"## {title}", "", *(f"- `{_one_line(item)}`" for item in items), ""]
    return "\n".join(parts)


def read_agreement(path: Path) -> Agreement | None:
    """An agreement from its file, which people may have written or edited; None where it has no question."""
    try:
        if not path.is_file() or path.is_symlink() or path.stat().st_size > MAX_AGREEMENT_BYTES:
            return None
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    query, session, part = "", "", ""
    items: dict[str, list[str]] = {"symbols": [], "files": []}
    for line in text.splitlines():
        if line.startswith("## "):
            part = line[3:].strip().lower()
        elif line.startswith("# ") and not query:
            query = line[2:].strip()
        elif found := _SESSION.match(line):
            session = found[1]
        elif (found := _ITEM.match(line.rstrip())) and part in items:
            items[part].append(found[1])
    if not query:
        return None
    return Agreement(agreement_id(query), query, tuple(items["symbols"]), tuple(items["files"]), session)


def _stats(folder: Path) -> dict[str, tuple[int, int]]:
    if aimed_elsewhere(folder):
        return {}
    try:
        with os.scandir(folder) as entries:
            return {
                entry.name: (entry.stat().st_size, entry.stat().st_mtime_ns)
                for entry in entries
                if entry.name.endswith(".md") and entry.is_file(follow_symlinks=False)
            }
    except OSError:
        return {}


def _slug(query: str) -> str:
    words = re.findall(r"[a-z0-9]+", query.casefold())
    return "-".join(words)[:60].strip("-") or "agreement"


def _one_line(text: str) -> str:
    return " ".join(text.split())
