"""Worktrees of one repository: seconds to the first complete search and disk of each, beside a cold index of the same tree.

    worktrees.py [FILES] [WORKTREES] [SEED]

The tree is made by corpus.py; each worktree then changes ten files, adds one and removes one, chosen by seed. Every index
is built in a process of its own through the server's `ProjectServices`, which is asked one question and then for its symbols.
What a worktree takes on disk is its own databases and what it adds to those in the common git folder. In every tenth worktree
a first process is killed on its way; that one and every tenth other is compared with a cold index of the same files, and has its vectors put into ChromaDB:
what its graph finds is compared with all vectors.
Prints a Markdown table.
"""

import hashlib
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import corpus
import measuring

QUESTIONS = (
    "read a line from a socket", "parse a date", "tokenize source code", "compress a file", "HTTPConnection",
    "where are headers written", "retry after a timeout", "close the connection", "JSONDecoder", "format a traceback",
    "walk a directory tree", "compare two sequences", "escape html", "run a subprocess", "lock a thread",
    "how is an email message parsed", "read configuration from an ini file", "hash of a password", "LineReader", "unpickle",
)  # fmt: skip
CHANGED = 10
ASKED = 300


def first_search(root: Path) -> None:
    """Sync, ask, and refresh the symbols; prints the seconds and processor seconds of both, and what was found."""
    from code_intel_server.tools.services import ProjectServices

    (root / ".code-intel").mkdir(exist_ok=True)
    began, busy = time.perf_counter(), _busy()
    services = ProjectServices(root)
    report = services.index.sync()
    answer = services.index.search(QUESTIONS[0])
    said: dict[str, object] = {"seconds to the first search": time.perf_counter() - began, "busy": _busy() - busy}
    assert answer.complete and answer.hits and answer.engine == "sqlite-vectors+bm25", answer.notes
    began, busy = time.perf_counter(), _busy()
    services.explorer.refresh_all()
    said |= {"seconds for the symbols": time.perf_counter() - began, "busy with symbols": _busy() - busy}
    found = [[(hit.path, hit.text) for hit in services.index.search(one).hits] for one in QUESTIONS]
    files = services.explorer.cache.store
    symbols = sorted((path, *one.tag) for path in files.stamps() for one in files.in_file(path))
    said["answers"] = hashlib.sha256(json.dumps([found, symbols]).encode()).hexdigest()
    services.close()
    print(json.dumps(said | {"chunks": report.chunks, "files": report.files}))


def graph_recall(root: Path) -> None:
    """Prints what share of the ten nearest chunks ChromaDB's graph finds in an index that is there, over the first lines of docstrings."""
    import numpy as np

    from code_intel_server.codebase.files.ignore import project_files
    from code_intel_server.codebase.files.project import ProjectScope
    from code_intel_server.index.code_index import CodeIndex
    from code_intel_server.index.retrieval.search import DENSE_CANDIDATES
    from code_intel_server.index.storage.rows import unpack
    from code_intel_server.index.values import ChromaSettings, IndexSettings
    from code_intel_server.index.vectors.embedding import load_encoder
    from code_intel_server.tools.services import ProjectServices

    index = CodeIndex(
        root,
        IndexSettings(chroma=ChromaSettings(min_chunks=0)),
        encoder=load_encoder,
        lister=lambda: project_files(ProjectScope.at(root, ())),
        shared=ProjectServices(root)._shared,
    )
    report = index.sync()
    assert report.chunks < CHANGED, "nothing of it is made anew"
    opened = index._open()
    assert opened.chroma is not None and opened.store is not None and opened.chroma.await_ready(600)
    ids, blobs = zip(*opened.store.sample_ids(10**9), strict=True)
    vectors = unpack(blobs, len(blobs[0]) // 2)
    places = {ident: at for at, ident in enumerate(ids)}
    said = re.compile(r'"""([A-Z][^"\n]{20,100})')
    found = sorted({line for path in root.rglob("*.py") for line in said.findall(path.read_text())})
    questions = random.Random(1).sample(found, min(ASKED, len(found)))
    met = 0
    for vector in load_encoder().encode(questions, "query"):
        exact = vectors @ vector
        near = opened.chroma.near("forest", vector, DENSE_CANDIDATES)
        assert near is not None
        tenth = np.sort(exact)[-10] - 1e-4  # chunks that are equally near count as the same
        met += min(10, sum(bool(exact[places[ident]] >= tenth) for ident in near))
    index.close()
    print(met / 10 / len(questions))


def _busy() -> float:
    """Seconds of the processors so far, of this process and those it has waited for."""
    return sum(os.times()[:4])


def measured(root: Path) -> dict[str, object]:
    """One index in a process of its own, and what it takes on disk."""
    shared = common(root)
    before = _bytes(shared)
    done = subprocess.run(command(root), capture_output=True, text=True, check=True)
    grown = _bytes(shared) - before
    return json.loads(done.stdout) | {"MB": (_bytes(root / ".code-intel") + grown) / 1e6}


def command(root: Path) -> list[str]:
    """The process that makes one index."""
    return [sys.executable, __file__, "--one", str(root)]


def common(root: Path) -> Path:
    """The folder that the worktrees share."""
    git = ["git", "-C", str(root), "rev-parse", "--path-format=absolute", "--git-common-dir"]
    return Path(subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip(), "code-intel")


@contextmanager
def from_nothing(root: Path) -> Iterator[None]:
    """Meanwhile nothing is known of the worktree, nor of any other."""
    shared, kept = common(root), common(root).with_name("kept")
    shutil.rmtree(root / ".code-intel")
    shared.rename(kept)
    yield
    shutil.rmtree(shared)
    kept.rename(shared)


def _bytes(folder: Path) -> int:
    """What the databases of a folder take on disk."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*.sqlite3*"))


def changed(other: Path, number: int, seed: int) -> None:
    """Change ten files of a worktree, add one and remove one."""
    chosen = random.Random(f"{seed} {number}")
    *edited, removed = chosen.sample(sorted(other.rglob("*.py")), CHANGED + 1)
    for path in edited:
        with path.open("a") as file:
            file.write(f"\n\ndef added_in_worktree_{number}():\n    return {number}\n")
    removed.unlink()
    (other / f"new_{number}.py").write_text(f"def new_in_worktree_{number}():\n    return {number}\n")


def killed(other: Path, seconds: float) -> None:
    """Begin an index and kill it on its way."""
    child = subprocess.Popen(command(other), stdout=subprocess.DEVNULL)
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def main() -> None:
    """Build the repository, its worktrees and the table."""
    if sys.argv[1:2] == ["--one"]:
        first_search(Path(sys.argv[2]))
        return
    if sys.argv[1:2] == ["--recall"]:
        graph_recall(Path(sys.argv[2]))
        return
    files, count, seed = (int(one) for one in (*sys.argv[1:], *("5000", "50", "1")[len(sys.argv) - 1 :]))
    folder = Path(tempfile.mkdtemp(prefix="worktrees-"))
    # The modules compiled once, as they are where the server is installed.
    os.environ |= {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
    root = folder / "repository"
    corpus.make(root, files)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(root)]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "corpus"]):
        subprocess.run([*git, *arguments], check=True)
    measured(root)
    for known in (root / ".code-intel", common(root)):
        shutil.rmtree(known)
    cold = measured(root)
    begun, compared, same = [], 0, 0
    recalls: list[float] = []
    for number in range(count):
        other = folder / f"other{number}"
        subprocess.run([*git, "worktree", "add", "-q", "--detach", str(other)], check=True)
        changed(other, number, seed)
        if kills := number % 10 == 5:
            killed(other, random.Random(number).uniform(0.3, 3.0))
        one = measured(other)
        if not kills:  # else some of it was done before
            begun.append(one)
        if kills or number % 10 == 0:
            compared += 1
            with from_nothing(other):
                anew = measured(other)
            same += anew["answers"] == one["answers"]
            done = subprocess.run(
                [*command(other)[:2], "--recall", str(other)], capture_output=True, text=True, check=True
            )
            recalls.append(float(done.stdout))
    shutil.rmtree(folder)
    print(
        f"{measuring.machine('numpy')}\n\n| | cold | {len(begun)} worktrees, median (most) | share |\n|---|---|---|---|"
    )
    rows = [("files", 0), ("chunks", 0), ("seconds to the first search", 2), ("busy", 2)]
    for name, digits in [*rows, ("seconds for the symbols", 2), ("busy with symbols", 2), ("MB", 1)]:
        values = [float(one[name]) for one in begun]
        middle = statistics.median(values)
        share = f"{middle / float(cold[name]):.3f}"
        print(f"| {name} | {float(cold[name]):.{digits}f} | {middle:.{digits}f} ({max(values):.{digits}f}) | {share} |")
    print(
        f"\nSymbols and answers to {len(QUESTIONS)} questions the same as from a cold index: {same} of {compared} worktrees, "
        f"{count - len(begun)} of them after a kill. With the graph recall@10 over {ASKED} questions: "
        f"median {statistics.median(recalls):.4f}, least {min(recalls):.4f}."
    )


if __name__ == "__main__":
    main()
