"""Last step: a float table to the int8 files that ship in the wheel.

    python benchmarks/embedder/export.py WORK/trained.npz src/code_intel_server/index/model

A row is scaled to its own largest value; its scale and the token's weight for questions and for passages are folded into
one float each. The model's name is a digest of its content, so the store notices any other table.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np

FILES = ("vocabulary.txt", "vectors.npy", "scales.npy")


def quantise(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(int8 rows, float32 scale a row) with `rows * scale` within half a step of `vectors`."""
    scale = np.maximum(np.abs(vectors).max(1), 1e-12) / 127
    return np.round(vectors / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def content_name(folder: Path) -> str:
    """`bundled-` and 12 hex digits of the three files' content."""
    digest = hashlib.sha256()
    for name in FILES:
        digest.update((folder / name).read_bytes())
    return f"bundled-{digest.hexdigest()[:12]}"


def main() -> None:
    """Write the files and say how large they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    with np.load(args.table) as table:
        tokens = [str(token) for token in table["tokens"]]
        rows, scale = quantise(table["vectors"])
        query = table["query_weights"] if "query_weights" in table else table["weights"]
        passage = table["passage_weights"] if "passage_weights" in table else table["weights"]
    args.folder.mkdir(parents=True, exist_ok=True)
    (args.folder / "vocabulary.txt").write_text("\n".join(tokens), encoding="utf-8")
    np.save(args.folder / "vectors.npy", rows)
    np.save(args.folder / "scales.npy", np.stack([scale * query, scale * passage]).astype(np.float32))
    card = {
        "name": content_name(args.folder),
        "dim": int(rows.shape[1]),
        "tokens": len(tokens),
        "source": "sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0)",
        "recipe": "benchmarks/embedder",
    }
    (args.folder / "model.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in args.folder.iterdir())
    print(f"{card['name']}: {len(tokens)} x {card['dim']}, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
