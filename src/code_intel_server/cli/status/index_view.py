"""The index as people's commands see it: read from its database and lock, opening and changing nothing, without numpy."""

import sqlite3
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from code_intel_server.index.storage.database import IndexFile
from code_intel_server.index.storage.ownership import OwnerLock
from code_intel_server.workspace.paths import FOLDER

_CACHE = Path(FOLDER) / "cache"


@dataclass(frozen=True, slots=True)
class IndexView:
    """The state of the index. `pending` are files its owner knows to want indexing, `age_hours` since the last whole sync.

    `engine` is what a server answers with: ChromaDB where it is used and has acknowledged every vector, else SQLite's own
    vectors, else words alone. `model` is '' before the first sync, `owner_pid` None where no server has the index open.
    """

    files: int
    chunks: int
    pending: int
    engine: str
    model: str
    age_hours: float | None
    owner_pid: int | None

    def as_json(self) -> dict[str, Any]:
        """What `--json` shows."""
        return asdict(self)

    def described(self) -> str:
        """In one line for people."""
        waiting = f" · {self.pending} pending" if self.pending else ""
        owner = f" · owner process {self.owner_pid}" if self.owner_pid else " · no server has it open"
        model = f" ({self.model})" if self.model else ""
        return f"index {self.files} files, {self.chunks} chunks{waiting} · {self.engine}{model} · {_ago(self.age_hours)}{owner}"


def look_at_index(root: Path) -> IndexView | None:
    """The index of a project as it is on disk now; None where none was built yet, or it cannot be read."""
    file = root / _CACHE / "index.sqlite3"
    if not file.is_file():
        return None
    try:
        database = IndexFile(file, writable=False)
    except (sqlite3.Error, OSError):
        return None
    try:
        with database.reading() as connection:
            told = {str(key): str(value) for key, value in connection.execute("SELECT key, value FROM meta")}
            files, chunks, waiting = connection.execute(
                "SELECT count(*), coalesce(sum(last - first + 1), 0), (SELECT count(*) FROM outbox) FROM files"
            ).fetchone()
    except sqlite3.Error:
        return None
    finally:
        database.close()
    in_chroma = told.get("chroma") and not waiting
    engine = "bm25" if not told.get("model") else "chromadb+bm25" if in_chroma else "sqlite-vectors+bm25"
    return IndexView(
        files=files,
        chunks=chunks,
        pending=int(told["pending"]) if told.get("pending", "").isdigit() else 0,
        engine=engine,
        model=told.get("model", ""),
        age_hours=_age(told),
        owner_pid=OwnerLock(root / _CACHE / "index.lock").holder_pid(),
    )


def _age(told: Mapping[str, str]) -> float | None:
    try:
        return max(0.0, (time.time() - float(told["synced_at"])) / 3600)
    except (KeyError, ValueError):
        return None


def _ago(hours: float | None) -> str:
    if hours is None:
        return "first sync not finished"
    minutes = round(hours * 60)
    if minutes < 1:
        return "synced just now"
    return f"synced {minutes} min ago" if minutes < 120 else f"synced {round(hours)} h ago"
