"""`chroma: {mode: "http"}` for real: one `chroma run` on loopback, four checkouts of one repository, another project.

    http_chroma.py [--quick]        measures and writes http_chroma.md

Two clones of `alpha` with a second worktree each, and `beta`, have a server process each. The first checkout is indexed
and its vectors brought to ChromaDB, then the other four index at once, ask at once, edit and delete at once. Every file
names its project, so that a stray answer shows. Afterwards ids and vectors in ChromaDB are compared with those in each
checkout's SQLite. The bundled model makes vectors faster than a server gives them and takes none from there; another
model does: `--serve-another` runs our server with the same vectors under another model's name. Both are compared with
five checkouts without ChromaDB. The last run has all five begin at once, where nobody has brought anything yet.
"""

import argparse
import json
import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "src")]

import chromadb  # noqa: E402
import corpus  # noqa: E402
import measuring  # noqa: E402
import wire  # noqa: E402
from chromadb.config import Settings  # noqa: E402
from index_growth import QUESTIONS  # noqa: E402
from tests.e2e.driver import git, repository  # noqa: E402
from tests.index.chroma_server import chroma_server, free_port  # noqa: E402
from wire import Client  # noqa: E402

from code_intel_server.cli import serve  # noqa: E402
from code_intel_server.index.storage.open_index import DATABASE  # noqa: E402
from code_intel_server.index.storage.store import Store  # noqa: E402
from code_intel_server.index.vectors import embedding  # noqa: E402
from code_intel_server.tools.services import ProjectServices  # noqa: E402

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ALPHA = ("alpha", "alpha, second worktree", "alpha, clone", "alpha, clone's worktree")
CHECKOUTS = (*ALPHA, "beta")
COLUMNS = ("no ChromaDB", "a server, the bundled model", "a server, another model")
Figures = dict[str, Any]


class Another:
    """The bundled model under another name, so that it is taken for one that is slower than a server."""

    name = "another"

    def __init__(self) -> None:
        self._bundled = embedding.load_static(embedding.MODEL_DIR)
        self.dim = self._bundled.dim

    def encode(self, texts: Sequence[str], kind: embedding.TextKind) -> "NDArray[np.float32]":
        """See `Encoder.encode`."""
        return self._bundled.encode(texts, kind)


def checkouts(folder: Path, files: int, chroma: dict[str, object]) -> list[Path]:
    """Four checkouts of one repository, each with a file of its own, and a project of other content."""
    roots = [folder / str(number) for number in range(len(CHECKOUTS))]
    first, worktree, clone, clones_worktree, beta = roots
    for number, root, name in ((0, first, "alpha"), (1, beta, "beta")):
        repository(root, {"README.md": f"# {name}\n"})
        every = corpus.make(root / name, files * (number + 1))
        for path in every[: files * number]:  # beta holds what comes after alpha's part
            (root / name / path).unlink()
        (root / ".code-intel").mkdir()
        (root / ".code-intel/config.json").write_text(
            json.dumps({"sync_on_start": False, "chroma": chroma}), encoding="utf-8"
        )
        git(root, "add", "-A")
        git(root, "commit", "-qm", "All")
    git(first, "worktree", "add", "-q", str(worktree))
    git(first, "clone", "-q", str(first), str(clone))
    git(clone, "worktree", "add", "-q", str(clones_worktree))
    for number, root in enumerate(roots[: len(ALPHA)]):
        (root / "alpha/own.py").write_text(f"def of_checkout_{number}():\n    return {number}\n", encoding="utf-8")
    return roots


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


def run(
    folder: Path, files: int, rounds: int, chroma: dict[str, object], *, another: bool = False, together: bool = False
) -> Figures:
    """Index, ask and edit; what was seen. `together`: all begin at once, and nothing is asked."""
    roots = checkouts(folder, files, chroma)
    served = [__file__, "--serve-another"] if another else ["-m", "code_intel_server", "serve"]
    clients = [Client([sys.executable, *served], root, measuring.environment()) for root in roots]
    try:
        reports: Figures = {}

        def sync(some: Sequence[int]) -> Figures:
            def one(number: int) -> None:
                reports[CHECKOUTS[number]] = clients[number].call("sync_index")

            indexing = measuring.timed(lambda: at_once([lambda number=number: one(number) for number in some]))
            return {
                "indexing": indexing,
                "filling": measuring.timed(lambda: at_once([lambda n=n: _until_chroma(clients[n]) for n in some]))
                if chroma["mode"] == "http"
                else math.nan,
            }

        everyone = range(len(clients))
        first = sync(everyone if together else everyone[:1])
        others = {} if together else sync(everyone[1:])
        seen: Figures = {
            "roots": roots, "first": first["indexing"], "first filling": first["filling"], "others": others.get("indexing"),
            "others filling": others.get("filling"), "embedded": {name: one["embedded"] for name, one in reports.items()},
        }  # fmt: skip
        return seen if together else seen | _asked(clients, roots, rounds, sync)
    finally:
        for client in clients:
            client.close()


def _asked(clients: Sequence[Client], roots: Sequence[Path], rounds: int, sync: Callable[..., Figures]) -> Figures:
    times: list[float] = []
    strays: list[str] = []
    engines: set[str] = set()

    def ask(number: int) -> None:
        client, own = clients[number], "alpha" if number < len(ALPHA) else "beta"
        for turn in range(rounds):
            for question in QUESTIONS[number:] + QUESTIONS[:number]:
                began = time.perf_counter()
                answer = client.call("semantic_search", query=question)
                if turn:
                    times.append((time.perf_counter() - began) * 1e3)
                engines.add(answer["engine"])
                strays.extend(row["path"] for row in answer["results"] if not row["path"].startswith((own, "README")))

    everyone = range(len(clients))
    at_once([lambda number=number: ask(number) for number in everyone])
    second = Client(clients[0].process.args, roots[0], measuring.environment())  # type: ignore[arg-type]
    reader = second.call("semantic_search", query=QUESTIONS[0])
    second.close()
    for number, root in enumerate(roots):
        victim, gone = sorted(root.glob("*/d*/*.py"))[number : number + 2]
        victim.write_text(f"def only_in_checkout_{number}(value):\n    return value * {number}\n", encoding="utf-8")
        gone.unlink()
    sync(everyone)
    found = [_found(client, f"only_in_checkout_{number}") for number, client in enumerate(clients)]
    foreign = [_found(client, f"of_checkout_{(number + 1) % len(ALPHA)}") for number, client in enumerate(clients)]
    memory = [client.family() for client in clients]
    below = {pid for client in clients for pid in wire.descendants(client.process.pid)}
    server = sum(wire.proportional(pid) for pid in wire.descendants(os.getpid())[1:] if pid not in below)
    return {
        "times": times, "strays": strays, "engines": engines, "reader": (reader["engine"], reader["total"]),
        "edited": sum(found), "foreign": sum(foreign), "memory": memory, "server": server or math.nan,
    }  # fmt: skip


def _found(client: Client, name: str) -> bool:
    answer = client.call("semantic_search", query=name)
    return any(row["symbol"] == name for file in answer["results"] for row in file["rows"])


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
    for title, root in zip(CHECKOUTS, roots, strict=True):
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
            [title, len(stored), len(held), len(own.keys() - held.keys()), len(held.keys() - own.keys()), wrong]
        )
    return rows


def main() -> None:
    """Run without a server, with one and each kind of model, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--serve-another", action="store_true")
    options = parser.parse_args()
    if options.serve_another:
        model = Another()
        embedding.load_encoder = lambda _name="": model  # type: ignore[assignment]
        sys.exit(serve.main([]))
    files, rounds = (100, 2) if options.quick else (1_000, 6)
    runs: list[Figures] = []
    compared: list[list[list[object]]] = []
    with tempfile.TemporaryDirectory(prefix="http-chroma-") as scratch:
        folder = Path(scratch).resolve()
        runs.append(run(folder / "none", files, rounds, {"mode": "off"}))
        for another, together in ((False, False), (True, False), (True, True)):
            place, port = folder / f"{another}{together}", free_port()
            with chroma_server(place / "server", port):
                http: dict[str, object] = {"mode": "http", "host": "127.0.0.1", "port": port}
                runs.append(run(place, files, rounds, http, another=another, together=together))
                compared.append(compare(port, runs[-1]["roots"]))
    asked = runs[:-1]
    shared = asked[-1]
    figures = [
        [title, *(_figure(one[key], share) for one in asked)]
        for title, key, share in (
            ("cold sync of the first checkout, s", "first", None),
            ("until ChromaDB has everything after that, s", "first filling", None),
            ("sync of the four others at once, s", "others", None),
            ("until ChromaDB has everything after that, s", "others filling", None),
            ("semantic_search over the wire, p50 ms", "times", 0.5),
            ("semantic_search over the wire, p95 ms", "times", 0.95),
            ("memory of a client's server with its child, MB, mean", "memory", None),
            ("memory of the ChromaDB server, MB", "server", None),
        )
    ]
    measuring.write(
        "http_chroma.quick.md" if options.quick else "http_chroma.md",
        [
            "# One ChromaDB server, four checkouts of one repository, another project",
            "",
            f"Written by `http_chroma.py`. {measuring.machine('chromadb', 'mcp')}",
            "",
            f"A real `chroma run` on loopback. Two clones of a project of {files:,} files with a second worktree each, and a project of {files:,} other",
            f"files: five server processes. The first is indexed alone; then the others index at once, all ask {len(shared['times']):,} questions at once, edit one",
            "file each, delete one and sync at once. *Another model* is the bundled one under another name: the same vectors, but its checkouts ask the server for them.",
            "",
            *measuring.table(["what", *COLUMNS], figures),
            "",
            "## What is embedded where",
            "",
            "Chunks embedded by each checkout's first sync. Worktrees of one clone share their contents in its git folder, clones the collection on the server;",
            "one chunk of each checkout of alpha is its own.",
            "",
            *measuring.table(
                ["checkout", *COLUMNS, "another model, all five at once"],
                [[name, *(one["embedded"][name] for one in runs)] for name in CHECKOUTS],
            ),
            "",
            "The bundled model takes nothing from a server, as it is faster; the clone and its worktree begin together, so both embed. Likewise where all begin at",
            "once: nobody has brought anything yet, so each embeds nearly everything, and it is kept once. *Each file embedded once* holds from the second checkout on.",
            "",
            "## Nobody's chunks are lost or mixed up",
            "",
            "With another model, after the edits. The four checkouts of alpha have one collection, from which nothing is removed.",
            "",
            *measuring.table(
                [
                    "checkout",
                    "passages in its SQLite",
                    "in its collection",
                    "lost",
                    "of others, or of before",
                    "other vector",
                ],
                compared[1],
            ),
            "",
            f"- Passages that a SQLite has and the server has not, or with another vector: **{_wrong(compared)}** in all three runs with a server.",
            f"- Results from the other project: **{sum(len(one['strays']) for one in asked)}** in all answers; functions of another checkout that were found: **{sum(one['foreign'] for one in asked)}**.",
            f"- The new function of each checkout was found by its own client: **{shared['edited']} of {len(CHECKOUTS)}**.",
            f"- Engines that answered the {len(shared['times']):,} questions: {', '.join(sorted(shared['engines']))}.",
            f"- A second client in a checkout that another one already serves reads along: engine `{shared['reader'][0]}`, {shared['reader'][1]} results.",
        ],
    )


def _wrong(compared: Sequence[Sequence[Sequence[object]]]) -> int:
    return sum(int(str(row[column])) for rows in compared for row in rows for column in (3, 5))


def _figure(value: Any, share: float | None) -> float:
    if isinstance(value, float):
        return value
    return measuring.quantile(value, share) if share is not None else sum(value) / len(value)


if __name__ == "__main__":
    main()
