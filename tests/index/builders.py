"""Small projects and indexes for the tests of the index."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from code_intel_server.codebase.files.ignore import FileListing
from code_intel_server.index.code_index import CodeIndex
from code_intel_server.index.retrieval.lexical import index_terms
from code_intel_server.index.storage.rows import unpack
from code_intel_server.index.values import ChromaMode, ChromaSettings, IndexSettings
from code_intel_server.index.vectors.chromadb_manager import ChromaManager

SAMPLE = {
    "src/auth/throttle.py": '"""Slows down repeated logins."""\n\n\nclass LoginThrottle:\n    """Counts failed attempts."""\n\n'
    "    def allow(self, user):\n        return self.attempts(user) < 5\n\n    def attempts(self, user):\n        return 0\n",
    "src/store/database.py": "def open_connection(path):\n    # connect to the sqlite database\n    return path\n",
    "src/web/router.js": "export function matchRoute(url) {\n  return url.split('/');\n}\n",
    "tests/test_throttle.py": "def test_throttle_allows():\n    assert LoginThrottle().allow('x')\n",
    "README.md": "# Sample\n\nA program that throttles logins.\n\n## Usage\n\nRun it.\n",
}


class HashEncoder:
    """A deterministic bag of words in `dim` dimensions: texts that share words are near each other."""

    def __init__(self, dim: int = 32, name: str = "hash") -> None:
        self.name = name
        self.dim = dim
        self.encoded = 0

    def encode(self, texts: Sequence[str], kind: Literal["query", "passage"]) -> NDArray[np.float32]:
        if kind == "passage":
            self.encoded += len(texts)
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for term in index_terms(text).split():
                digest = hashlib.blake2b(term.encode(), digest_size=4).digest()
                row[int.from_bytes(digest[:2]) % self.dim] += 1 if digest[2] % 2 else -1
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= np.where(lengths > 0, lengths, 1)
        return rows


def write_files(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files, making their folders."""
    for name, content in files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)


def lister(root: Path) -> Callable[[], FileListing]:
    """Lists every file below `root` but our own."""

    def listed() -> FileListing:
        found = []
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in {".code-intel", ".git"})
            found += [os.path.relpath(Path(folder, name), root) for name in sorted(names)]
        return FileListing(tuple(found))

    return listed


def make_index(
    root: Path,
    settings: IndexSettings | None = None,
    encoder: HashEncoder | None = None,
    *,
    mode: ChromaMode = ChromaMode.OFF,
) -> CodeIndex:
    """An index over `root`; without ChromaDB unless asked for."""
    chosen = settings or IndexSettings(chroma=ChromaSettings(mode=mode, min_chunks=0))
    model = encoder or HashEncoder()
    return CodeIndex(root, chosen, encoder=lambda: model, lister=lister(root))


def manager_of(index: CodeIndex) -> ChromaManager:
    """The index's ChromaDB, for tests that break it."""
    opened = index._open()
    assert opened.chroma is not None
    return opened.chroma


def ready(index: CodeIndex, timeout: float = 60) -> bool:
    """Wait until ChromaDB has everything."""
    return manager_of(index).await_ready(timeout)


def engine_of(index: CodeIndex) -> str:
    """What answers a search now."""
    return index.search("login throttle").engine


def indexed(index: CodeIndex, what: str = "files") -> int:
    """How many files, or chunks, the index has."""
    store = index._open().store
    return store.count(what) if store else 0


def owns(index: CodeIndex) -> bool:
    """Whether this index, and no other of its project, is written."""
    return index._open().background is not None


def everything_found(index: CodeIndex) -> bool:
    """Whether ChromaDB finds every stored vector by itself, and holds nothing else where no other checkout shares it."""
    manager, store = manager_of(index), index._open().store
    assert store is not None
    rows = store.sample_ids(1_000_000)
    assert len(rows) == store.count("chunks")
    held = manager.counts()
    assert held is not None
    assert held["forest"] == len(rows) or (store.by_passage and held["forest"] >= len(rows)), (held, len(rows))
    for ident, blob in rows:
        near = manager.near("forest", unpack([blob], len(blob) // 2)[0], 50)
        assert near is not None
        assert ident in near, f"{ident} is not found by its own vector"
    return True


def everything_held(index: CodeIndex) -> bool:
    """Whether ChromaDB holds every stored id and no other, and finds as many by their vectors as it has to at every open.

    For hundreds of vectors, of which ChromaDB finds some only from elsewhere, killed or not: its search is approximate.
    """
    manager, store = manager_of(index), index._open().store
    assert store is not None
    ids = [ident for ident, _ in store.sample_ids(1_000_000)]
    assert len(ids) == store.count("chunks")
    held = manager.counts()
    assert held is not None
    assert held["forest"] == len(ids) or store.by_passage, (held, len(ids))
    assert set(manager._ask({"op": "known", "key": "forest", "ids": ids})["ids"]) == set(ids)
    assert manager._problem(held) == ""
    return True


def children_of(pid: int) -> list[int]:
    """Processes that `pid` has started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found
