"""Dense-only, BM25-only and fused file ranking of a table on benchmark repositories (the tuning half, nothing else).

    python benchmarks/embedder/repositories.py --data BENCH/semble --repos CHECKOUTS --only click cobra … [--model TABLE]

A plain ranking on purpose: windows of 40 lines headed by their path, cosine or BM25 over the same words, reciprocal-rank
fusion, best window of a file. It compares tables; the product's own ranking is measured elsewhere.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
from collections import Counter
from pathlib import Path

import numpy as np
from tables import open_table

from code_intel_server.index.retrieval.words import split_words
from code_intel_server.index.vectors.embedding import MODEL_DIR, Encoder

LINES, STEP, K = 40, 30, 10
SOURCE = re.compile(
    r"\.(py|m?js|tsx?|go|java|php|rb|rs|cs|kts?|scala|swift|c|cc|cpp|h|hpp|exs?|sh|bash|bats|hs|lua|zig)$"
)


def windows(root: Path) -> list[tuple[str, str]]:
    """(relative path, text headed by the path) of every window of every source file under 1 MB."""
    found = []
    for path in sorted(root.rglob("*")):
        if not SOURCE.search(path.name) or not path.is_file() or path.stat().st_size > 1_000_000:
            continue
        name = path.relative_to(root).as_posix()
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        starts = range(0, max(1, len(lines) - (LINES - STEP)), STEP)
        found += [(name, name + "\n" + "\n".join(lines[start : start + LINES])) for start in starts]
    return found


class Bm25:
    """Okapi BM25 (k1 1.2, b 0.75) over lower-cased words."""

    def __init__(self, texts: list[str]) -> None:
        bags = [Counter(word.lower() for word in split_words(text)) for text in texts]
        sizes = np.array([sum(bag.values()) for bag in bags], dtype=np.float64)
        self.norm = 1.2 * (0.25 + 0.75 * sizes / sizes.mean())
        self.postings: dict[str, list[tuple[int, int]]] = {}
        for i, bag in enumerate(bags):
            for word, count in bag.items():
                self.postings.setdefault(word, []).append((i, count))

    def scores(self, query: str) -> np.ndarray:
        out = np.zeros(len(self.norm))
        for word in {word.lower() for word in split_words(query)}:
            hits = self.postings.get(word, ())
            idf = math.log(1 + (len(out) - len(hits) + 0.5) / (len(hits) + 0.5))
            for i, count in hits:
                out[i] += idf * 2.2 * count / (count + self.norm[i])
        return out


def fused(dense: np.ndarray, lexical: np.ndarray) -> np.ndarray:
    """Reciprocal-rank fusion, constant 60."""
    total = np.zeros(len(dense))
    for scores in (dense, lexical):
        order = np.argsort(-scores, kind="stable")
        total[order] += 1 / (60 + np.arange(1, len(order) + 1)) * (scores[order] > 0)
    return total


def ndcg(scores: np.ndarray, paths: list[str], targets: set[str]) -> float:
    """File-level NDCG@10, a path counting as hit where one ends like the other."""
    ranked = list(dict.fromkeys(paths[i] for i in np.argsort(-scores, kind="stable")[: 40 * K]))[:K]
    firsts = {
        next((r for r, path in enumerate(ranked) if t.endswith(path) or path.endswith(t)), None) for t in targets
    } - {None}
    return sum(1 / math.log2(r + 2) for r in firsts) / sum(1 / math.log2(r + 2) for r in range(min(K, len(targets))))


def measure(encoder: Encoder, name: str, spec: dict, data: Path, repos: Path) -> dict[str, float]:
    """Mean NDCG@10 of one repository by ranking."""
    chunks = windows(repos / name / (spec.get("benchmark_root") or ""))
    paths = [path for path, _ in chunks]
    matrix, bm25 = encoder.encode([text for _, text in chunks], "passage"), Bm25([text for _, text in chunks])
    rows: dict[str, list[float]] = {"dense": [], "bm25": [], "fused": []}
    for entry in json.loads((data / "annotations" / f"{name}.json").read_text()):
        targets = {t if isinstance(t, str) else t["path"] for t in entry["relevant"] + entry.get("secondary", [])}
        dense = matrix @ encoder.encode([entry["query"]], "query")[0]
        lexical = bm25.scores(entry["query"])
        for ranking, scores in (("dense", dense), ("bm25", lexical), ("fused", fused(dense, lexical))):
            rows[ranking].append(ndcg(scores, paths, targets))
    return {ranking: statistics.mean(values) for ranking, values in rows.items()}


def main() -> None:
    """Print one line a repository and the mean."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--only", nargs="+", required=True)
    parser.add_argument("--model", default=str(MODEL_DIR))
    args = parser.parse_args()
    encoder = open_table(args.model)
    specs = {spec["name"]: spec for spec in json.loads((args.data / "repos.json").read_text())}
    rows = []
    for name in args.only:
        rows.append(measure(encoder, name, specs[name], args.data, args.repos))
        print(f"{name:16s} " + "  ".join(f"{k} {v:.3f}" for k, v in rows[-1].items()), flush=True)
    print(
        f"{'mean of ' + str(len(rows)):16s} "
        + "  ".join(f"{k} {statistics.mean(r[k] for r in rows):.3f}" for k in rows[0])
    )


if __name__ == "__main__":
    main()
