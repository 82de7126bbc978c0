"""How the child builds ChromaDB's graphs."""

from pathlib import Path

import numpy as np
import pytest

from code_intel_server.index.vectors.chroma_link import ChromaLink


def _threads(pid: int) -> set[str]:
    return {entry.name for entry in Path(f"/proc/{pid}/task").iterdir()}


def test_a_graph_is_built_by_one_thread_whatever_the_environment_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors put in side by side pushed one another out of the graph: a search then never found them."""
    wanted = 24
    monkeypatch.setenv("RAYON_NUM_THREADS", str(wanted))
    vectors = np.random.default_rng(7).normal(size=(300, 16)).astype(np.float32)
    ids = [str(number) for number in range(len(vectors))]
    link = ChromaLink(tmp_path)
    try:
        opening = {"op": "open", "mode": "local", "path": str(tmp_path / "chroma"), "lock": str(tmp_path / "lock")}
        link.ask(opening | {"names": {"forest": "forest-of-one"}, "identities": {"forest": {"format": 1}}}, timeout=60)
        before = _threads(link.pid)
        link.ask({"op": "put", "key": "forest", "ids": ids}, vectors, timeout=60)
        found = link.ask({"op": "near", "key": "forest", "limit": 1}, vectors, timeout=60)["ids"]
        # Its threads for files come and go besides, by ones and twos.
        assert len(_threads(link.pid) - before) < wanted / 2
    finally:
        link.close()
    assert found == [[ident] for ident in ids]
