"""The child process in which ChromaDB lives: a crash, a hang or a leak of it ends here, not in the server.

Reads requests from stdin, one at a time, and answers on what was stdout; ends with the server, whose death closes the
pipe. On a local store it holds a lock of its own for as long as it may write, since a killed server's child can outlive
it by the length of one request. Errors are answered, never raised: the parent decides what they mean.
"""

import contextlib
import fcntl
import gc
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from code_intel_server.child_wire import frame, pipes, read_frame
from code_intel_server.index.chroma_folder import FolderClient
from code_intel_server.index.left_out import leave_out

Client: TypeAlias = Any
"""A `FolderClient`, or one of ChromaDB's own for somebody's server; the same for a collection."""

Rows: TypeAlias = Sequence[Sequence[float]]

LOCK_WAIT_SECONDS = 5.0
_HNSW = {
    "space": "cosine",
    # A third less work to add than with the defaults; what the graph then misses, a wider search finds for about a millisecond
    # (benchmarks/index_speed.md has both measured).
    "ef_construction": 64,
    "max_neighbors": 16,
    "ef_search": 320,
    # The log is brought into the graph in larger portions; what a kill leaves in the log is read again in about a second.
    "batch_size": 1000,
    "sync_threshold": 5000,
}


class Collections:
    """The two collections of one project in one client."""

    def __init__(self, client: Client, identity: dict[str, str | int], names: dict[str, str]) -> None:
        self._client = client
        self._identity = identity
        self._names = names
        self._open: dict[str, Any] = {}

    def open(self) -> dict[str, Any]:
        """Open or make both; one that belongs to another store or model is replaced. Answers which are new, and counts."""
        created = []
        for key, name in self._names.items():
            collection = self._existing(name)
            if collection is None:
                collection = self._create(name)
                created.append(key)
            self._open[key] = collection
        return {"created": created, "counts": {key: one.count() for key, one in self._open.items()}}

    def _existing(self, name: str) -> Any:
        try:
            found = self._client.get_collection(name, embedding_function=None)
        except Exception:  # noqa: BLE001 - which error says "absent" differs between local and server
            return None
        if all((found.metadata or {}).get(key) == value for key, value in self._identity.items()):
            return found
        self._client.delete_collection(name)
        return None

    def _create(self, name: str) -> Any:
        return self._client.create_collection(
            name,
            embedding_function=None,
            metadata=dict(self._identity),
            configuration={"hnsw": _HNSW},
        )

    def reset(self) -> dict[str, Any]:
        """Empty both."""
        for key, name in self._names.items():
            with contextlib.suppress(Exception):
                self._client.delete_collection(name)
            self._open[key] = self._create(name)
        return {}

    def put(self, key: str, ids: list[str], vectors: Rows) -> dict[str, Any]:
        """Add or replace vectors by id."""
        self._open[key].upsert(ids=ids, embeddings=self._given(vectors))
        return {}

    def drop(self, key: str, ids: list[str]) -> dict[str, Any]:
        """Remove ids; unknown ones are none the worse."""
        self._open[key].delete(ids=ids)
        return {}

    def near(self, key: str, limit: int, vectors: Rows) -> dict[str, Any]:
        """The nearest ids and their cosines, one list a vector."""
        collection = self._open[key]
        found = collection.query(query_embeddings=self._given(vectors), n_results=limit, include=["distances"])
        distances = found["distances"] or []
        return {"ids": found["ids"], "cosines": [[round(1 - float(one), 6) for one in row] for row in distances]}

    def _given(self, vectors: Rows) -> Rows:
        """The package takes lists only."""
        return vectors if isinstance(self._client, FolderClient) else [list(row) for row in vectors]

    def known(self, key: str, ids: list[str]) -> dict[str, Any]:
        """Those of the ids that are there."""
        return {"ids": self._open[key].get(ids=ids, include=[])["ids"]}

    def count(self) -> dict[str, Any]:
        """How many vectors each holds."""
        return {"counts": {key: one.count() for key, one in self._open.items()}}


def connect(request: dict[str, Any]) -> Client:
    """A client on a folder of ours, or on somebody's server. Raises TimeoutError while another child has the folder."""
    leave_out()  # also where a folder is asked for: an error of the engine's imports the package
    if request["mode"] == "http":
        return _server(request)
    folder = Path(request["path"])
    _lock(Path(request["lock"]))
    folder.mkdir(parents=True, exist_ok=True)
    return FolderClient(folder)


def _server(request: dict[str, Any]) -> Client:
    gc.disable()  # only while importing: a tenth of the time that takes would go into looking for garbage
    import chromadb
    from chromadb.config import Settings

    gc.enable()
    return chromadb.HttpClient(
        host=request["host"],
        port=request["port"],
        ssl=request["ssl"],
        headers=request["headers"],
        tenant=request["tenant"],
        database=request["database"],
        # No telemetry; the environment variable alone would depend on who starts us.
        settings=Settings(anonymized_telemetry=False),
    )


def _lock(path: Path) -> None:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError("another process has the ChromaDB folder open") from None
            time.sleep(0.02)
        else:
            return  # held until we end


def rows(body: bytes, dim: int) -> Rows:
    """The vectors of a request, one a row, as they came: ChromaDB's engine reads the numbers where they are."""
    numbers = memoryview(body).cast("f")
    return [numbers[at : at + dim] for at in range(0, len(numbers), dim)]


def answer(collections: Collections, request: dict[str, Any], body: bytes) -> dict[str, Any]:
    """Do one request."""
    operation = request["op"]
    vectors = rows(body, request["dim"]) if body else []
    match operation:
        case "open":
            return collections.open()
        case "reset":
            return collections.reset()
        case "put":
            return collections.put(request["key"], request["ids"], vectors)
        case "drop":
            return collections.drop(request["key"], request["ids"])
        case "near":
            return collections.near(request["key"], request["limit"], vectors)
        case "known":
            return collections.known(request["key"], request["ids"])
        case "count":
            return collections.count()
        case _:
            return {"error": f"unknown request {operation}"}


def main() -> None:
    """Serve requests until the pipe closes; the first one says where ChromaDB is."""
    read, out = pipes()
    collections: Collections | None = None
    while True:
        try:
            request, body = read_frame(read)
        except (EOFError, ValueError):
            return
        try:
            if collections is None:
                collections = Collections(connect(request), request["identity"], request["names"])
            reply = answer(collections, request, body)
        except Exception as error:  # noqa: BLE001 - ChromaDB raises anything; the parent hears of it
            reply = {"error": f"{type(error).__name__}: {error}"[:500]}
        try:
            out.write(frame(reply))
            out.flush()
        except BrokenPipeError:
            return


if __name__ == "__main__":
    main()
