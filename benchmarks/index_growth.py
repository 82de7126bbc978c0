"""How the index grows with the project: sync cold, unchanged and after one edit; searches; memory. Beside raw ChromaDB, FTS5, semble.

    index_growth.py [--quick] [--sizes 1000 10000 50000] [--semble PYTHON]     measures, writes index_growth.md and .json
    index_growth.py ours FOLDER STORE stub|bundled                              one measurement in a process of its own (JSON)
    index_growth.py raw STORE                                                   ChromaDB's own add and query of the same vectors

The trees are made by corpus.py. `stub` is an encoder that costs nothing (a hash), so that what is compared is the index and
not the model; PYTHON is an interpreter that has semble, which then gets a stub of its own.
"""

import argparse
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import corpus  # noqa: E402
import measuring  # noqa: E402
import numpy as np  # noqa: E402

ROUNDS = 5
QUESTIONS = (
    "how are requests retried after a timeout", "parse a date from a string", "HTTPConnection", "where is the cache invalidated",
    "convert an array to another type", "logging configuration from a dictionary", "open_connection", "validate a certificate",
    "tokenize source code", "compress a file", "resolve an import", "thread pool executor", "serialize an object to json",
    "read a line from a socket", "split a path", "raise an error for an unknown option", "BaseHandler", "compile a regular expression",
    "walk a syntax tree", "format a table",
)  # fmt: skip
SEMBLE = """
import hashlib, json, sys, time
import numpy as np
from pathlib import Path
from semble.index import create
from semble.types import ContentType
class Stub:
    dim = 256
    def encode(self, texts, **_):
        return np.stack([np.random.default_rng(int.from_bytes(hashlib.blake2b(t.encode(), digest_size=8).digest(), "big")).standard_normal(256, dtype=np.float32) for t in texts])
root = Path(sys.argv[1]).resolve()
began, spent = time.perf_counter(), time.process_time()
_, _, chunks, _ = create.create_index_from_path(root, model=Stub(), content=(ContentType.CODE,), display_root=root, previous=None, show_progress_bar=False)
print(json.dumps({"cold": time.perf_counter() - began, "cold_cpu": time.process_time() - spent, "chunks": len(chunks)}))
"""


class Stub:
    """Vectors from a hash: nearly free, always the same for the same text."""

    name = "stub"
    dim = 256

    def encode(self, texts: Sequence[str], kind: str) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":  # noqa: ARG002 - the seam has it
        """One random direction a text."""
        rows = [
            np.random.default_rng(
                int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")
            ).standard_normal(self.dim, dtype=np.float32)
            for text in texts
        ]
        out = np.stack(rows) if rows else np.zeros((0, self.dim), np.float32)
        return out / np.linalg.norm(out, axis=1, keepdims=True)


def resident(pid: int) -> float:
    """Megabytes that a process has in RAM, shared pages divided among those who share them."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def ours(project: Path, store: Path, encoder: str) -> dict[str, object]:
    """Index a tree into `store` as the server does, and ask it."""
    from code_intel_server.codebase.explorer import Explorer
    from code_intel_server.codebase.files.ignore import project_files
    from code_intel_server.index.code_index import CodeIndex
    from code_intel_server.index.values import ChromaSettings, IndexSettings
    from code_intel_server.index.vectors.embedding import load_encoder

    explorer = Explorer(project)
    index = CodeIndex(
        project,
        IndexSettings(chroma=ChromaSettings(min_chunks=0)),
        encoder=Stub if encoder == "stub" else load_encoder,
        lister=lambda: project_files(explorer.project),
        folder=store,
    )
    began = time.perf_counter()
    report = index.sync()
    result: dict[str, object] = {"files": report.files, "chunks": report.chunks, "cold": time.perf_counter() - began}
    result["cold_cpu"] = time.process_time()
    chroma = index._open().chroma
    assert chroma is not None and chroma.await_ready(7200)
    result["filled"] = time.perf_counter() - began
    result["no_change"] = [measuring.timed(index.sync) for _ in range(ROUNDS)]
    result["one_file"] = [_one_file(index, project, number) for number in range(ROUNDS)]
    assert chroma.await_ready(600)
    if encoder != "stub":
        result |= _searches(index)
        result["MB"] = [resident(os.getpid()), resident(chroma.child_pid or 0)]
        result["engine"] = index.search(QUESTIONS[0]).engine
    opened = index._open()
    assert opened.store is not None
    result["MB on disk"] = sum(path.stat().st_size for path in store.rglob("*") if path.is_file()) / 1e6
    blobs = [blob for _, blob in opened.store.sample_ids(10**9)]
    from code_intel_server.index.storage.rows import unpack

    np.save(store / "vectors.npy", unpack(blobs, len(blobs[0]) // 2))
    index.close()
    return result


def _one_file(index: "object", project: Path, number: int) -> float:
    victim = project / "d0000/m000007.py"
    before = victim.read_text(encoding="utf-8")
    victim.write_text(
        f"{before}\n\ndef added_by_round_{number}(value):\n    return value * {number}\n", encoding="utf-8"
    )
    try:
        return measuring.timed(index.sync)  # type: ignore[attr-defined]
    finally:
        victim.write_text(before, encoding="utf-8")
        index.sync()  # type: ignore[attr-defined]


def _searches(index: "object") -> dict[str, object]:
    """Ours, and FTS5's own query over the same words, taking turns question by question."""
    from code_intel_server.index.retrieval.lexical import index_terms, query_terms
    from code_intel_server.index.storage.texts import read_texts

    store = index._open().store  # type: ignore[attr-defined]
    mine: list[float] = []
    words: list[float] = []
    busy: list[float] = []
    rows = store.rows(store.view().seqs.tolist()).values()
    fts5 = sqlite3.connect(":memory:")
    fts5.execute("CREATE VIRTUAL TABLE lexical USING fts5 (body)")
    texts = read_texts(index.root, rows, 1_000_000)  # type: ignore[attr-defined]
    fts5.executemany("INSERT INTO lexical VALUES (?)", [(index_terms(one.row.chunk.text),) for one in texts])

    def raw(question: str) -> None:
        fts5.execute(
            "SELECT rowid, bm25(lexical) AS score FROM lexical WHERE lexical MATCH ? ORDER BY score LIMIT 100",
            (" OR ".join(f'"{term}"' for term in query_terms(question)),),
        ).fetchall()

    for turn in range(ROUNDS + 1):
        for question in QUESTIONS:
            before = time.process_time()
            taken = measuring.timed(lambda q=question: index.search(q))  # type: ignore[attr-defined]
            spent = time.process_time() - before
            alone = measuring.timed(lambda q=question: raw(q))
            if turn:
                mine.append(taken * 1e3)
                busy.append(spent * 1e3)
                words.append(alone * 1e3)
    return {"search": mine, "search_cpu": busy, "fts5": words}


def raw(store: Path) -> dict[str, object]:
    """ChromaDB alone: the same vectors added in batches of 512, then queried for 100 neighbours."""
    import chromadb
    from chromadb.config import Settings

    vectors = np.load(store / "vectors.npy")
    with tempfile.TemporaryDirectory() as folder:
        client = chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
        made = client.create_collection("raw", embedding_function=None)
        began, busy = time.perf_counter(), time.process_time()
        for at in range(0, len(vectors), 512):
            part = vectors[at : at + 512]
            made.add(ids=[str(at + i) for i in range(len(part))], embeddings=part)
        added, busy = time.perf_counter() - began, time.process_time() - busy
        queries = vectors[:: max(1, len(vectors) // 100)][:100]
        times = [measuring.timed(lambda v=v: made.query(query_embeddings=[v], n_results=100)) * 1e3 for v in queries]
    return {"vectors": len(vectors), "add": added, "add_cpu": busy, "query": times}


def in_a_process(*argv: object, interpreter: str = sys.executable, script: str = "") -> dict[str, object]:
    """Run one measurement in a fresh process."""
    words = [interpreter, "-c", script] if script else [interpreter, str(Path(__file__).resolve())]
    done = subprocess.run(
        [*words, *map(str, argv)],
        capture_output=True,
        text=True,
        check=False,
        env=measuring.environment(),
        timeout=7200,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(files: int, repeats: int, semble: str | None, folder: Path) -> dict[str, object]:
    """Everything for one size, the sides taking turns."""
    project = folder / f"tree-{files}"
    if not project.exists():
        corpus.make(project, files)
    found: dict[str, list[dict[str, object]]] = {"stub": [], "bundled": [], "raw": [], "semble": []}
    for _ in range(repeats):
        for encoder in ("stub", "bundled"):
            store = folder / f"store-{files}-{encoder}"
            shutil.rmtree(store, ignore_errors=True)
            found[encoder].append(in_a_process("ours", project, store, encoder))
            if encoder == "bundled":
                found["raw"].append(in_a_process("raw", store))
            shutil.rmtree(store)
        if semble:
            found["semble"].append(in_a_process(project, interpreter=semble, script=SEMBLE))
    shutil.rmtree(project)
    return {"files": files, "repeats": repeats, **found}


def main() -> None:
    """One measurement, or all of them and the table."""
    if sys.argv[1:2] == ["ours"]:
        print(json.dumps(ours(Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve(), sys.argv[4])))
        return
    if sys.argv[1:2] == ["raw"]:
        print(json.dumps(raw(Path(sys.argv[2]))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 3_100, 10_000, 31_000, 50_000])
    parser.add_argument("--semble", default=os.environ.get("SEMBLE_PYTHON"))
    options = parser.parse_args()
    sizes = [500, 1_000] if options.quick else options.sizes
    kept = HERE / ("out/index_growth.json" if options.quick else "index_growth.json")
    kept.parent.mkdir(exist_ok=True)
    results = []
    with tempfile.TemporaryDirectory(prefix="index-growth-") as folder:
        for files in sizes:
            repeats = 1 if options.quick or files > 20_000 else 2 if files > 5_000 else 3 if files > 2_000 else 5
            results.append(measure(files, repeats, options.semble, Path(folder)))
            kept.write_text(
                json.dumps({"machine": measuring.machine("chromadb", "numpy"), "sizes": results}) + "\n",
                encoding="utf-8",
            )
            print(json.dumps(results[-1])[:600], flush=True)
    import index_growth_table

    index_growth_table.main(kept)


if __name__ == "__main__":
    main()
