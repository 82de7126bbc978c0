"""Train the distilled vectors on (documentation, code) pairs, contrastively.

    python benchmarks/embedder/train.py WORK [--start WORK/distilled.npz] [--steps 600] [--out WORK/trained.npz]

Symmetric InfoNCE with in-batch negatives. Half of what a text is told apart from stems from its own package, as in a real search:
a batch is GROUPS runs of GROUP pairs, each run from one package. Documentation loses words at random (people ask in fewer, and often not in the name's own);
code comes with its path or not, without its own name or not, with its neighbour or not (a chunk is rarely one function).
A token's vector is shared; its weight is learnt apart for questions and for passages. Stops by the held-out packages' MRR.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pairs as mined
import torch
from torch.nn import functional

from code_intel_server.index.retrieval.words import Vocabulary

SEED = 20261121
GROUPS, GROUP = 16, 64
CHECK = 100
FRAMES = (
    "how is", "how are", "how does it work", "how do", "where is", "where are", "where does it", "what is", "what does", "which function", "which class",
    "code that", "the code for", "find the", "show me", "implementation of", "is implemented", "are implemented", "is handled", "logic", "is defined",
    "works", "when", "why does", "how to", "mechanism", "support for", "used to", "in this project", "function that", "method which", "handling of",
)  # fmt: skip
"""What people wrap around the subject of a question; mixed into documentation so that it comes to weigh nothing."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the ablation varies."""

    steps: int
    rate: float
    temperature: float
    pull: float
    shared_weights: bool
    drop: float


class Batches:
    """Draws batches of bags from the training pairs."""

    def __init__(self, vocabulary: Vocabulary, rows: list[dict[str, str]], drop: float) -> None:
        self.drop = drop
        self.random = random.Random(SEED)
        self.numpy = np.random.default_rng(SEED)
        self.docs = mined.Bags.of(vocabulary, (row["doc"] for row in rows))
        self.codes = mined.Bags.of(vocabulary, (row["code"] for row in rows))
        self.paths = mined.Bags.of(vocabulary, (row["path"] for row in rows))
        self.frames = mined.Bags.of(vocabulary, FRAMES)
        self.names = [frozenset(vocabulary.bag(row["name"])) for row in rows]
        self.files = [(row["package"], row["path"]) for row in rows]
        by_package: dict[str, list[int]] = {}
        for i, row in enumerate(rows):
            by_package.setdefault(row["package"], []).append(i)
        self.packages = [members for members in by_package.values() if len(members) >= GROUP]
        self.sizes = [len(members) ** 0.75 for members in self.packages]  # large packages do not drown the small

    def draw(self) -> tuple[list[tuple[np.ndarray, np.ndarray]], list[tuple[np.ndarray, np.ndarray]]]:
        """(documentation bags, code bags), row i of one belonging to row i of the other."""
        chosen: list[int] = []
        for members in self.random.choices(self.packages, self.sizes, k=GROUPS):
            chosen += self.random.sample(members, GROUP)
        return [self.question(i) for i in chosen], [self.passage(i) for i in chosen]

    def question(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """The documentation with some of its words, sometimes framed as a question."""
        rows, counts = self.docs.get(i)
        keep = self.numpy.random(len(rows)) < self.random.uniform(0.4, 1.1)
        if self.random.random() < 0.3:
            keep &= np.array([row not in self.names[i] for row in rows])
        if keep.sum() >= 2:
            rows, counts = rows[keep], counts[keep]
        if self.random.random() < 0.4:
            frame = self.frames.get(self.random.randrange(len(FRAMES)))
            rows, counts = np.concatenate([rows, frame[0]]), np.concatenate([counts, frame[1]])
        return rows, counts

    def passage(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """The code, varied."""
        rows, counts = self.codes.get(i)
        if self.random.random() < 0.3 and self.names[i]:
            keep = np.array([row not in self.names[i] for row in rows])
            if keep.sum() >= 4:
                rows, counts = rows[keep], counts[keep]
        parts = [(rows, counts)]
        if self.random.random() < 0.5:
            parts.append(self.paths.get(i))
        if self.random.random() < 0.3 and i + 1 < len(self.files) and self.files[i] == self.files[i + 1]:
            parts += [self.codes.get(i + 1), self.docs.get(i + 1)]
        rows, counts = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        keep = self.numpy.random(len(rows)) >= self.drop
        return (rows[keep], counts[keep]) if keep.any() else (rows, counts)


class Table(torch.nn.Module):
    """Shared vectors, a weight a token for questions and one for passages."""

    def __init__(self, vectors: np.ndarray, weights: np.ndarray) -> None:
        super().__init__()
        self.vectors = torch.nn.Parameter(torch.from_numpy(vectors.copy()))
        start = torch.from_numpy(np.log(weights))
        self.query = torch.nn.Parameter(start.clone())
        self.passage = torch.nn.Parameter(start.clone())

    def forward(self, bags: list[tuple[np.ndarray, np.ndarray]], weights: torch.Tensor) -> torch.Tensor:
        """Unit vectors of bags."""
        rows = torch.from_numpy(np.concatenate([bag[0] for bag in bags]).astype(np.int64))
        counts = torch.from_numpy(np.sqrt(np.concatenate([bag[1] for bag in bags])))
        starts = torch.from_numpy(np.cumsum([0, *[len(bag[0]) for bag in bags[:-1]]]))
        scale = weights[rows].exp() * counts
        return functional.normalize(
            functional.embedding_bag(rows, self.vectors, starts, per_sample_weights=scale, mode="sum"), dim=1
        )

    def weights(self, options: Options) -> tuple[torch.Tensor, torch.Tensor]:
        """(question, passage) log weights; one for both where the ablation shares them."""
        return (self.passage, self.passage) if options.shared_weights else (self.query, self.passage)


def save(table: Table, options: Options, tokens: np.ndarray, out: Path) -> None:
    """Write what export.py reads."""
    query, passage = (w.detach().exp().numpy() for w in table.weights(options))
    np.savez(out, tokens=tokens, vectors=table.vectors.detach().numpy(), query_weights=query, passage_weights=passage)


def train(work: Path, start: Path, out: Path, options: Options) -> None:
    """Train, measuring every CHECK steps, keeping the best table."""
    torch.manual_seed(SEED)
    with np.load(start) as loaded:
        tokens, vectors, weights = loaded["tokens"], loaded["vectors"], loaded["weights"]
    vectors /= np.linalg.norm(vectors, axis=1).mean()
    vocabulary = Vocabulary([str(token) for token in tokens])
    training, _ = mined.load(work)
    batches = Batches(vocabulary, training, options.drop)
    kept = mined.measured(work)
    kept_docs = mined.Bags.of(vocabulary, (row["doc"] for row in kept))
    kept_codes = mined.Bags.of(vocabulary, (row["path"] + "\n" + row["code"] for row in kept))
    table = Table(vectors, weights)
    anchor = table.vectors.detach().clone()
    optimiser = torch.optim.Adam(
        [
            {"params": [table.vectors], "lr": options.rate},
            {"params": [table.query, table.passage], "lr": 3 * options.rate},
        ],
        fused=True,
    )
    labels = torch.arange(GROUPS * GROUP)
    begin, best = time.monotonic(), 0.0
    print(f"{len(training)} pairs of {len(batches.packages)} packages, {len(kept)} held out", flush=True)
    for step in range(options.steps + 1):
        if step % CHECK == 0:
            values = table.vectors.detach().numpy()
            query, passage = (w.detach().exp().numpy() for w in table.weights(options))
            mrr, recall = mined.retrieval(
                mined.embed(kept_docs, values, query), mined.embed(kept_codes, values, passage)
            )
            print(
                f"step {step:5d}  {(time.monotonic() - begin) / 60:4.1f} min  MRR {mrr:.4f}  recall@10 {recall:.4f}",
                flush=True,
            )
            if mrr > best:
                best = mrr
                save(table, options, tokens, out)
        for group in optimiser.param_groups:
            group["lr"] = (options.rate if group["params"][0] is table.vectors else 3 * options.rate) * (
                1 - step / (options.steps + 1)
            )
        docs, codes = batches.draw()
        query, passage = table.weights(options)
        scores = table(docs, query) @ table(codes, passage).T / options.temperature
        loss = (functional.cross_entropy(scores, labels) + functional.cross_entropy(scores.T, labels)) / 2
        optimiser.zero_grad()
        (loss + options.pull * (table.vectors - anchor).square().sum(1).mean()).backward()
        optimiser.step()


def main() -> None:
    """Parse the options and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--start", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--temperature", type=float, default=0.05)
    parser.add_argument("--pull", type=float, default=0.0)
    parser.add_argument("--shared-weights", action="store_true")
    parser.add_argument("--drop", type=float, default=0.0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    options = Options(args.steps, args.rate, args.temperature, args.pull, args.shared_weights, args.drop)
    train(args.work, args.start or args.work / "distilled.npz", args.out or args.work / "trained.npz", options)


if __name__ == "__main__":
    main()
