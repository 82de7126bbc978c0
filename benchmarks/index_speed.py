"""Measures the index: building against ChromaDB's own raw rate, syncing nothing and one file, searching, memory.

    index_speed.py --source DIR [DIR ...] [--chunks 10000] [--rounds 5] [--json FILE]

Copies Python files from the sources into a throw-away project until about that many chunks are indexed, then runs the
index as the server does: SQLite, bundled model, ChromaDB in its child. The share of ChromaDB's own rate is the median over
rounds in which a cold index and a raw `add` of the same vectors take turns, each in a process of its own. Prints a
Markdown table.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from code_intel_server.codebase.files.ignore import FileListing
from code_intel_server.index.code_index import CodeIndex
from code_intel_server.index.storage.rows import unpack
from code_intel_server.index.values import ChromaSettings, IndexSettings
from code_intel_server.index.vectors.embedding import load_encoder

SETTINGS = IndexSettings(chroma=ChromaSettings(min_chunks=0))
"""With ChromaDB at any size, for both ways of comparing vectors to be measured."""

QUESTIONS = (
    "how are requests retried after a timeout", "parse a date from a string", "HTTPConnection", "where is the cache invalidated",
    "convert an array to another type", "logging configuration from a dictionary", "open_connection", "validate a certificate",
    "tokenize source code", "compress a file", "resolve an import", "thread pool executor", "serialize an object to json",
    "read a line from a socket", "split a path", "raise an error for an unknown option", "BaseHandler", "compile a regular expression",
    "walk a syntax tree", "format a table",
)  # fmt: skip
RAW_ADD = """
import sys, time, numpy as np, chromadb
from chromadb.config import Settings
vectors = np.load(sys.argv[1])
client = chromadb.PersistentClient(sys.argv[2], settings=Settings(anonymized_telemetry=False))
made = client.create_collection("raw", embedding_function=None)
started = time.perf_counter()
for at in range(0, len(vectors), 512):
    part = vectors[at : at + 512]
    made.add(ids=[str(at + i) for i in range(len(part))], embeddings=part)
print(len(vectors) / (time.perf_counter() - started))
"""


def fill(project: Path, sources: list[Path], lines: int) -> int:
    """Copy Python files until they have that many lines; answers the number of files."""
    count = 0
    for source in sources:
        for path in sorted(source.rglob("*.py")):
            if lines <= 0:
                return count
            target = project / source.name / path.relative_to(source)
            if 0 < path.stat().st_size < 1_000_000:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
                lines -= target.read_bytes().count(b"\n")
                count += 1
    return count


def listed(project: Path) -> list[str]:
    """Every file of the project."""
    found = []
    for folder, folders, names in os.walk(project):
        folders[:] = sorted(name for name in folders if name != ".code-intel")
        found += [str(Path(folder, name).relative_to(project)) for name in sorted(names)]
    return found


def resident(pid: int) -> float:
    """Megabytes of private and shared memory a process has in RAM."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def timed(index: CodeIndex) -> tuple[float, float, str]:
    """Median and 95th percentile in ms over the questions, asked five times, and the engine."""
    times = []
    for _ in range(5):
        for question in QUESTIONS:
            started = time.perf_counter()
            engine = index.search(question).engine
            times.append((time.perf_counter() - started) * 1e3)
    times = sorted(times[len(QUESTIONS) :])
    return statistics.median(times), times[int(len(times) * 0.95)], engine


def measure(sources: list[Path], chunks: int, rounds: int) -> dict[str, object]:
    """Everything for one size."""
    project = Path(tempfile.mkdtemp(prefix="index-speed-"))
    fill(project, sources, chunks * 22)
    index = CodeIndex(project, SETTINGS, encoder=load_encoder, lister=lambda: FileListing(tuple(listed(project))))
    started = time.perf_counter()
    report = index.sync()
    stored = time.perf_counter() - started
    chroma = index._open().chroma
    assert chroma is not None
    assert chroma.await_ready(3600)
    built = time.perf_counter() - started
    result: dict[str, object] = {
        "files": report.files,
        "chunks": report.chunks,
        "searchable s": stored,
        "with ChromaDB s": built,
    }
    result["chunks/s"] = report.chunks / built
    for name, change in (("no change s", None), ("one file s", report)):
        if change is not None:
            victim = project / listed(project)[len(listed(project)) // 2]
            victim.write_text(victim.read_text(errors="replace") + "\n\ndef added_by_the_benchmark():\n    return 1\n")
        started = time.perf_counter()
        index.sync()
        result[name] = time.perf_counter() - started
    assert chroma.await_ready(600)
    result["search p50 ms"], result["search p95 ms"], result["engine"] = timed(index)
    result["MB server"], result["MB child"] = resident(os.getpid()), resident(chroma.child_pid or 0)
    chroma.state = type(chroma.state).OFF
    index.search(QUESTIONS[0])
    result["p50 ms without ChromaDB"], _, _ = timed(index)
    store = index._open().store
    assert store is not None
    blobs = [blob for _, blob in store.sample_ids(10**9)]
    result["MB SQLite"] = (store.path.stat().st_size + store.contents.path.stat().st_size) / 1e6
    result["MB ChromaDB"] = (
        sum(p.stat().st_size for p in (project / ".code-intel/chroma").rglob("*") if p.is_file()) / 1e6
    )
    import numpy as np

    np.save(project / "vectors.npy", unpack(blobs, len(blobs[0]) // 2))
    index.close()
    shutil.move(project / "vectors.npy", project / ".code-intel/vectors.npy")
    result |= shares(project, rounds)
    shutil.rmtree(project)
    return result


def shares(project: Path, rounds: int) -> dict[str, object]:
    """Cold index and raw `add` in turns: the median of the ratios, and what they are made of."""
    kept = project / ".code-intel"
    ours, filled, raw, cpu = [], [], [], []
    for number in range(rounds):
        folder = kept / f"round-{number}"
        rate, until_filled, seconds = map(float, _printed([__file__, "--cold", str(project), str(folder)]).split())
        ours.append(rate)
        filled.append(until_filled)
        cpu.append(seconds)
        raw.append(float(_printed(["-c", RAW_ADD, str(kept / "vectors.npy"), str(folder / "raw")])))
        shutil.rmtree(folder)
    return {
        "rounds": rounds,
        "cold index chunks/s": statistics.median(ours),
        "until ChromaDB has them too": statistics.median(filled),
        "of it the server's processor time s": statistics.median(cpu),
        "raw ChromaDB add/s": statistics.median(raw),
        "share of raw": statistics.median(one / other for one, other in zip(ours, raw, strict=True)),
        "shares": " ".join(f"{one / other:.2f}" for one, other in zip(ours, raw, strict=True)),
        "share until ChromaDB has them too": statistics.median(a / b for a, b in zip(filled, raw, strict=True)),
    }


def _printed(arguments: list[str]) -> str:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True).stdout


def cold(project: Path, folder: Path) -> None:
    """One cold index into `folder`: prints chunks a second until all are found by words and meaning, until ChromaDB has them too, and this process's own seconds."""
    index = CodeIndex(
        project, SETTINGS, encoder=load_encoder, lister=lambda: FileListing(tuple(listed(project))), folder=folder
    )
    started, busy = time.perf_counter(), time.process_time()
    report = index.sync()
    stored, spent = time.perf_counter() - started, time.process_time() - busy
    assert index.search(QUESTIONS[0]).complete
    chroma = index._open().chroma
    assert chroma is not None and chroma.await_ready(3600)
    print(report.chunks / stored, report.chunks / (time.perf_counter() - started), spent)
    index.close()


def main() -> None:
    """Measure one size and print it."""
    if sys.argv[1:2] == ["--cold"]:
        cold(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, nargs="+", required=True)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    result = measure(arguments.source, arguments.chunks, arguments.rounds)
    for name, value in result.items():
        print(f"| {name} | {value:.3g} |" if isinstance(value, float) else f"| {name} | {value} |")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
