"""The child process in which ChromaDB lives: a crash, a hang or a leak of it ends here, not in the server.

Reads requests from stdin, one at a time, and answers on what was stdout; ends with the server, whose death closes the
pipe. On a local store it holds a lock of its own for as long as it may write, since a killed server's child can outlive
it by the length of one request. Errors are answered, never raised: the parent decides what they mean.
"""

import base64
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from code_intel_server.common.child_wire import frame, pipes, read_frame
from code_intel_server.common.locks import take_lock

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.collection_configuration import CreateHNSWConfiguration

    from code_intel_server.index.values import Matrix

LOCK_WAIT_SECONDS = 5.0
MANY_FILES = 65_536
"""Open files to allow where the system sets no limit: ChromaDB divides the limit and cannot do so with none."""

_HNSW: "CreateHNSWConfiguration" = {
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


Identity = dict[str, str | int]


class Collections:
    """The two collections of one project in one client; where it is `alone` there, no other is kept."""

    def __init__(
        self, client: "ClientAPI", identities: dict[str, Identity], names: dict[str, str], *, alone: bool = False
    ) -> None:
        self._client = client
        self._identities = identities
        self._names = names
        self._alone = alone
        self._open: dict[str, Any] = {}

    def open(self) -> dict[str, Any]:
        """Open or make both; one that belongs to another store or model is replaced. Answers which are new, and counts."""
        created = []
        if self._alone:
            for other in self._client.list_collections():
                if other.name not in self._names.values():
                    self._client.delete_collection(other.name)
        for key, name in self._names.items():
            collection = self._existing(key, name)
            if collection is None:
                collection = self._create(key, name)
                created.append(key)
            self._open[key] = collection
        return {"created": created, "counts": {key: one.count() for key, one in self._open.items()}}

    def _existing(self, key: str, name: str) -> Any:
        try:
            found = self._client.get_collection(name, embedding_function=None)
        except Exception:  # noqa: BLE001 - which error says "absent" differs between local and server
            return None
        if self._identities[key].items() <= (found.metadata or {}).items():
            return found
        self._client.delete_collection(name)
        return None

    def _create(self, key: str, name: str) -> Any:
        from chromadb.api.collection_configuration import CreateCollectionConfiguration

        return self._client.get_or_create_collection(  # of two clients that share one both may find none
            name,
            embedding_function=None,
            metadata=self._identities[key],
            configuration=CreateCollectionConfiguration(hnsw=_HNSW),
        )

    def put(self, key: str, ids: list[str], vectors: "Matrix") -> dict[str, Any]:
        """Add or replace vectors by id."""
        self._open[key].upsert(ids=ids, embeddings=vectors)
        return {}

    def drop(self, key: str, ids: list[str]) -> dict[str, Any]:
        """Remove ids; unknown ones are none the worse."""
        self._open[key].delete(ids=ids)
        return {}

    def near(self, key: str, limit: int, vectors: "Matrix") -> dict[str, Any]:
        """The nearest ids and their cosines, one list a vector."""
        found = self._open[key].query(query_embeddings=vectors, n_results=limit, include=["distances"])
        return {
            "ids": found["ids"],
            "cosines": [[round(1 - float(one), 6) for one in row] for row in found["distances"] or []],
        }

    def known(self, key: str, ids: list[str]) -> dict[str, Any]:
        """Those of the ids that are there."""
        return {"ids": self._open[key].get(ids=ids, include=[])["ids"]}

    def vectors(self, key: str, ids: list[str]) -> dict[str, Any]:
        """Those of the ids that are there, and their vectors as 16-bit floats in base64."""
        import numpy as np

        found = self._open[key].get(ids=ids, include=["embeddings"])
        packed = np.asarray(found["embeddings"], dtype="<f2").tobytes()
        return {"ids": found["ids"], "vectors": base64.b64encode(packed).decode("ascii")}

    def count(self) -> dict[str, Any]:
        """How many vectors each holds."""
        return {"counts": {key: one.count() for key, one in self._open.items()}}


def connect_client(request: dict[str, Any]) -> "ClientAPI":
    """A client on a folder of ours, or on somebody's server. Raises TimeoutError while another child has the folder."""
    import chromadb
    from chromadb.config import Settings

    # No telemetry; the environment variable alone would depend on who starts us.
    settings = Settings(anonymized_telemetry=False)
    if request["mode"] == "http":
        names = ("host", "port", "ssl", "headers", "tenant", "database")
        return chromadb.HttpClient(**{name: request[name] for name in names}, settings=settings)
    _lock(Path(request["lock"]))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (MANY_FILES, hard))
    return chromadb.PersistentClient(request["path"], settings=settings)


def _lock(path: Path) -> None:
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while take_lock(path) is None:  # held until we end
        if time.monotonic() > deadline:
            raise TimeoutError("another process has the ChromaDB folder open")
        time.sleep(0.02)


_OPERATIONS = frozenset({"open", "put", "drop", "near", "known", "vectors", "count"})


def handle_request(collections: Collections, request: dict[str, Any], body: bytes) -> dict[str, Any]:
    """Do one request, which is named as the method that answers it."""
    import numpy as np

    if request["op"] not in _OPERATIONS:
        return {"error": f"unknown request {request['op']}"}
    arguments: dict[str, Any] = {name: request[name] for name in ("key", "ids", "limit") if name in request}
    if "dim" in request:
        arguments["vectors"] = np.frombuffer(body, dtype="=f4").reshape(-1, request["dim"])
    answer: dict[str, Any] = getattr(collections, request["op"])(**arguments)
    return answer


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
                alone = request["mode"] == "local"
                collections = Collections(connect_client(request), request["identities"], request["names"], alone=alone)
            reply = handle_request(collections, request, body)
        except Exception as error:  # noqa: BLE001 - ChromaDB raises anything; the parent hears of it
            reply = {"error": f"{type(error).__name__}: {error}"[:500]}
        try:
            out.write(frame(reply))
            out.flush()
        except BrokenPipeError:
            return


if __name__ == "__main__":
    main()
