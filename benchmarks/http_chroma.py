"""`chroma: {mode: "http"}` for real: one `chroma run` on loopback, two projects, four clients that index and ask at once.

    http_chroma.py [--quick]        measures and writes http_chroma.md

Each project has two checkouts (a clone and a second worktree) with a server process each: four owners of an index, all on the
same ChromaDB server. Every file names its project, so that a stray answer shows. Afterwards ids and vectors in ChromaDB are
compared with those in each checkout's SQLite. The same four clients with a local ChromaDB each are what it is compared with.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "src")]

import chromadb  # noqa: E402
import corpus  # noqa: E402
import measuring  # noqa: E402
from chromadb.config import Settings  # noqa: E402
from index_growth import QUESTIONS  # noqa: E402
from tests.e2e.driver import git, repository  # noqa: E402
from tests.index.chroma_server import chroma_server, free_port  # noqa: E402
from wire import Client  # noqa: E402

from code_intel_server.index.storage.open_index import DATABASE  # noqa: E402
from code_intel_server.index.storage.store import Store  # noqa: E402
from code_intel_server.tools.services import ProjectServices  # noqa: E402

PROJECTS = ("alpha", "beta")


def checkouts(folder: Path, files: int, chroma: dict[str, object]) -> list[Path]:
    """Two projects of different content, each with a second worktree."""
    found = []
    for number, name in enumerate(PROJECTS):
        root = repository(folder / name, {"README.md": f"# {name}\n"})
        every = corpus.make(root / name, files * (number + 1))
        for path in every[: files * number]:  # beta holds what comes after alpha's part
            (root / name / path).unlink()
        (root / ".code-intel").mkdir()
        (root / ".code-intel/config.json").write_text(
            json.dumps({"sync_on_start": False, "chroma": chroma}), encoding="utf-8"
        )
        git(root, "add", "-A")
        git(root, "commit", "-qm", "All")
        git(root, "worktree", "add", "-q", str(folder / f"{name}-2"))
        found += [root, folder / f"{name}-2"]
    return found


def at_once(acts: Sequence[Callable[[], object]]) -> None:
    """Run all of them at the same time; an error of any is raised."""
    errors: list[BaseException] = []

    def guarded(act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def run(folder: Path, files: int, rounds: int, chroma: dict[str, object]) -> dict[str, object]:
    """Index at once, ask at once, edit at once; what was seen."""
    roots = checkouts(folder, files, chroma)
    argv = [sys.executable, "-m", "code_intel_server", "serve"]
    clients = [Client(argv, root, measuring.environment()) for root in roots]
    try:
        indexing = measuring.timed(lambda: at_once([lambda one=one: one.call("sync_index") for one in clients]))
        filling = measuring.timed(lambda: at_once([lambda one=one: _until_chroma(one) for one in clients]))
        times: list[float] = []
        strays: list[str] = []
        engines: set[str] = set()

        def ask(number: int) -> None:
            client, own = clients[number], PROJECTS[number // 2]
            for turn in range(rounds):
                for question in QUESTIONS[number:] + QUESTIONS[:number]:
                    began = time.perf_counter()
                    answer = client.call("semantic_search", query=question)
                    if turn:
                        times.append((time.perf_counter() - began) * 1e3)
                    engines.add(answer["engine"])
                    strays.extend(
                        row["path"] for row in answer["results"] if not row["path"].startswith((own, "README"))
                    )

        at_once([lambda number=number: ask(number) for number in range(len(clients))])
        second = Client(argv, roots[0], measuring.environment())
        reader = second.call("semantic_search", query=QUESTIONS[0])
        second.close()
        for number, root in enumerate(roots):
            own = PROJECTS[number // 2]
            victim = next((root / own).rglob("*.py"))
            victim.write_text(f"def only_in_checkout_{number}(value):\n    return value * {number}\n", encoding="utf-8")
            next(path for path in (root / own).rglob("*.py") if path != victim).unlink()
        at_once([lambda one=one: one.call("sync_index") for one in clients])
        at_once([lambda one=one: _until_chroma(one) for one in clients])
        edited = [
            any(row["symbol"] == f"only_in_checkout_{number}" for file in one.call("semantic_search", query=f"only_in_checkout_{number}")["results"] for row in file["rows"])
            for number, one in enumerate(clients)
        ]  # fmt: skip
        memory = [one.family() for one in clients]
    finally:
        for client in clients:
            client.close()
    return {
        "roots": roots, "indexing": indexing, "filling": filling, "times": times, "strays": strays, "engines": engines,
        "reader": (reader["engine"], reader["total"]), "edited": edited, "memory": memory,
        "chunks": [len(_stored(root)) for root in roots],
    }  # fmt: skip


def _until_chroma(client: Client) -> None:
    """Ask until ChromaDB has everything."""
    while client.call("semantic_search", query="anything")["engine"] != "chromadb+bm25":
        time.sleep(0.2)


def _stored(root: Path) -> dict[str, bytes]:
    """Keys and vectors that SQLite holds."""
    store = _store(root)
    try:
        return dict(store.sample_ids(10**9))
    finally:
        store.close()


def _store(root: Path) -> Store:
    store = Store(root / ".code-intel" / DATABASE, writable=False, shared=ProjectServices(root)._shared())
    store.by_passage = True
    return store


def compare(port: int, roots: Sequence[Path]) -> list[list[object]]:
    """What the ChromaDB server holds for each checkout against that checkout's own SQLite."""
    import numpy as np

    from code_intel_server.index.vectors.chromadb_manager import shared_collection

    client = chromadb.HttpClient(host="127.0.0.1", port=port, settings=Settings(anonymized_telemetry=False))
    rows: list[list[object]] = []
    for root in roots:
        stored = _stored(root)
        name = shared_collection(ProjectServices(root)._repository(), _store(root).meta("model"))
        there = client.get_collection(name, embedding_function=None).get(include=["embeddings"])
        held = dict(zip(there["ids"], there["embeddings"], strict=True))
        own = {ident: np.frombuffer(blob, np.float16).astype(np.float32) for ident, blob in stored.items()}
        wrong = sum(
            not np.allclose(own[ident], held[ident], atol=2e-3)
            for ident in own.keys() & held.keys()
            if own[ident].shape == held[ident].shape
        )
        rows.append(
            [root.name, len(stored), len(held), len(own.keys() - held.keys()), len(held.keys() - own.keys()), wrong]
        )
    return rows


def main() -> None:
    """Run with a server and without, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    files, rounds = (100, 2) if quick else (1_000, 6)
    with tempfile.TemporaryDirectory(prefix="http-chroma-") as scratch:
        folder = Path(scratch).resolve()
        port = free_port()
        with chroma_server(folder / "server", port):
            shared = run(folder / "http", files, rounds, {"mode": "http", "host": "127.0.0.1", "port": port})
            compared = compare(port, shared["roots"])  # type: ignore[arg-type]
        local = run(folder / "local", files, rounds, {"mode": "local"})
    lost = sum(int(str(row[3])) for row in compared)
    rows = [
        [title, *(_figures(one, key, share) for one in (local, shared))]
        for title, key, share in (
            ("four cold syncs at once, s", "indexing", None),
            ("until ChromaDB has everything after that, s", "filling", None),
            ("semantic_search over the wire, p50 ms", "times", 0.5),
            ("semantic_search over the wire, p95 ms", "times", 0.95),
            ("memory of a client's server with its child, MB, mean", "memory", None),
        )
    ]
    times: list[float] = shared["times"]  # type: ignore[assignment]
    measuring.write(
        "http_chroma.quick.md" if quick else "http_chroma.md",
        [
            "# One ChromaDB server, two projects, four clients at once",
            "",
            f"Written by `http_chroma.py`. {measuring.machine('chromadb', 'mcp')}",
            "",
            f"A real `chroma run` on loopback. Two projects of {files:,} files with two checkouts each: four server processes that",
            f"index at once, then ask {len(times):,} questions at once, then each edit one file, delete one and sync at once.",
            "",
            *measuring.table(["what", "a local ChromaDB each", "one ChromaDB server"], rows),
            "",
            "## Nobody's chunks are lost or mixed up",
            "",
            *measuring.table(
                [
                    "checkout",
                    "passages in its SQLite",
                    "in ChromaDB, with those of others",
                    "lost",
                    "of others",
                    "other vector",
                ],
                compared,
            ),
            "",
            f"- Results from the other project: **{len(shared['strays'])}** of all answers' rows.",  # type: ignore[arg-type]
            f"- Chunks that SQLite has and the server has not: **{lost}**.",
            f"- The new function of each checkout was found by its own client: **{sum(shared['edited'])} of 4**.",  # type: ignore[arg-type]
            f"- Engines that answered the {len(times):,} questions: {', '.join(sorted(shared['engines']))}.",  # type: ignore[arg-type]
            f"- A fifth client in a checkout that another one already serves reads along: engine `{shared['reader'][0]}`, {shared['reader'][1]} results.",  # type: ignore[index]
        ],
    )


def _figures(one: dict[str, object], key: str, share: float | None) -> float:
    value = one[key]
    if isinstance(value, float):
        return value
    assert isinstance(value, list)
    return measuring.quantile(value, share) if share is not None else sum(value) / len(value)


if __name__ == "__main__":
    main()
