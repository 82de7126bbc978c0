"""The mined pairs as bags of vocabulary rows, split by package, and how well a table finds code by its documentation."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from code_intel_server.index.retrieval.words import Vocabulary

HELD_OUT_SHARE = 0.08
POOL = 3000


def held_out(package: str) -> bool:
    """Whether a package is kept for measuring; by a digest of its name, so that it is always the same ones."""
    return hashlib.sha256(package.encode()).digest()[0] < HELD_OUT_SHARE * 256


@dataclass(frozen=True, slots=True)
class Bags:
    """Texts as bags: rows and damped counts of text i stand at `starts[i]:starts[i + 1]`."""

    rows: np.ndarray
    counts: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, vocabulary: Vocabulary, texts: Iterable[str]) -> Bags:
        """Cut every text."""
        rows: list[np.ndarray] = []
        counts: list[np.ndarray] = []
        starts = [0]
        for text in texts:
            bag = vocabulary.bag(text)
            rows.append(np.fromiter(bag, dtype=np.int32, count=len(bag)))
            counts.append(np.fromiter(bag.values(), dtype=np.float32, count=len(bag)))
            starts.append(starts[-1] + len(bag))
        return cls(np.concatenate(rows), np.concatenate(counts), np.array(starts))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def get(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """(rows, counts) of text i."""
        part = slice(self.starts[i], self.starts[i + 1])
        return self.rows[part], self.counts[part]


def load(work: Path) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """(training pairs, held-out pairs) in file order."""
    with (work / "pairs.jsonl").open(encoding="utf-8") as file:
        pairs = [json.loads(line) for line in file]
    for pair in pairs:  # `readAll reads …`: nobody who asks knows the name
        pair["doc"] = re.sub(rf"^(?:An? |The )?{re.escape(pair['name'])}\b", "", pair["doc"])
    return [p for p in pairs if not held_out(p["package"])], [p for p in pairs if held_out(p["package"])]


def measured(work: Path) -> list[dict[str, str]]:
    """POOL held-out pairs, evenly spread."""
    kept = load(work)[1]
    return [kept[i * len(kept) // POOL] for i in range(POOL)]


def embed(bags: Bags, vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Unit vectors of bags, as the encoder makes them."""
    weighted = vectors[bags.rows] * (weights[bags.rows] * np.sqrt(bags.counts))[:, None]
    filled = np.flatnonzero(np.diff(bags.starts))
    out = np.zeros((len(bags), vectors.shape[1]), dtype=np.float32)
    out[filled] = np.add.reduceat(weighted, bags.starts[filled], axis=0)
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)


def retrieval(docs: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    """(MRR, recall@10) of row i of `docs` finding row i of `codes` among all."""
    scores = docs @ codes.T
    ranks = (scores > np.diag(scores)[:, None]).sum(1) + 1
    return float((1 / ranks).mean()), float((ranks <= 10).mean())
