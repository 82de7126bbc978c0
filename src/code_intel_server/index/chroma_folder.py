"""ChromaDB on a folder of ours, by its own engine and without its Python package, whose import takes longer than storing 3,000 vectors.

The package is a layer over `chromadb_rust_bindings`, in the same wheel of the version we pin: settings, telemetry,
embedding functions, the checking of what a caller gives, none of which we use. What stands here is what that layer passes
on for our few requests, so a folder is the same whoever wrote it (the tests open it by both). A collection has the methods of
ChromaDB's own, as far as we call them, so that both kinds of client serve `chroma_child`.
"""

import json
import resource
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TENANT = "default_tenant"
DATABASE = "default_database"
_FILES_OF_A_GRAPH = 5
_NO_LIMIT = 65_536
"""Files taken to be allowed where the system sets no limit, which it tells as -1."""


class FolderClient:
    """What is in a folder; one process at a time may have it open."""

    def __init__(self, folder: Path) -> None:
        """Open or make it. Raises ChromaDB's own errors, here as in every method."""
        import chromadb_rust_bindings as engine

        database = engine.SqliteDBConfig(
            hash_type=engine.MigrationHash.MD5,
            migration_mode=engine.MigrationMode.Apply,
            url=str(folder / "chroma.sqlite3"),
        )
        self._engine: Any = engine.Bindings(
            allow_reset=False,
            sqlite_db_config=database,
            persist_path=str(folder),
            hnsw_cache_size=graphs_at_most(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        )

    def get_collection(self, name: str, *, embedding_function: None) -> "FolderCollection":
        """The collection of that name. Raises LookupError where there is none."""
        del embedding_function
        # Not asked for by its name: an error of the engine's imports the package.
        for found in self._engine.list_collections(None, 0, TENANT, DATABASE):
            if found.name == name:
                return FolderCollection(self._engine, found)
        raise LookupError(name)

    def create_collection(
        self,
        name: str,
        *,
        embedding_function: None,
        metadata: Mapping[str, str | int],
        configuration: Mapping[str, object],
    ) -> "FolderCollection":
        """Make it."""
        del embedding_function
        written = {**configuration, "spann": None, "embedding_function": {"type": "legacy"}}
        made = self._engine.create_collection(name, json.dumps(written), None, dict(metadata), False, TENANT, DATABASE)
        return FolderCollection(self._engine, made)

    def delete_collection(self, name: str) -> None:
        """Remove it with all it holds."""
        self._engine.delete_collection(name, TENANT, DATABASE)


def graphs_at_most(files: int) -> int:
    """How many graphs may be open where a process may have so many files open (`RLIMIT_NOFILE`)."""
    return max(1, (_NO_LIMIT if files == resource.RLIM_INFINITY else files) // _FILES_OF_A_GRAPH)


class FolderCollection:
    """One collection of a folder."""

    def __init__(self, engine: Any, found: Any) -> None:
        self._engine = engine
        self._id = str(found.id)
        self.metadata: Mapping[str, Any] | None = found.metadata

    def count(self) -> int:
        """How many ids it holds."""
        return int(self._engine.count(self._id, TENANT, DATABASE))

    def upsert(self, *, ids: Sequence[str], embeddings: Sequence[Sequence[float]]) -> None:
        """Add or replace vectors by id."""
        self._engine.upsert(self._id, ids, embeddings, None, None, None, TENANT, DATABASE)

    def delete(self, *, ids: Sequence[str]) -> None:
        """Remove ids."""
        self._engine.delete(self._id, ids, None, None, None, TENANT, DATABASE)

    def get(self, ids: Sequence[str], *, include: Sequence[str]) -> dict[str, Any]:
        """Those of the ids that are there."""
        return {"ids": self._engine.get(self._id, ids, None, None, 0, None, include, TENANT, DATABASE).ids}

    def query(
        self, *, query_embeddings: Sequence[Sequence[float]], n_results: int, include: Sequence[str]
    ) -> dict[str, Any]:
        """The nearest ids of each vector, with their distances."""
        found = self._engine.query(self._id, None, query_embeddings, n_results, None, None, include, TENANT, DATABASE)
        return {"ids": found.ids, "distances": found.distances}
