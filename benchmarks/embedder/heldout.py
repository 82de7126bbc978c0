"""Documentation → code retrieval on the packages kept out of training: MRR and recall@10 among 3,000.

    python benchmarks/embedder/heldout.py WORK TABLE...

A TABLE is an `.npz` (float32), a folder of exported files (int8) or a sentence-transformers model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pairs as mined
from tables import open_table


def main() -> None:
    """Print one line a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("tables", nargs="+")
    args = parser.parse_args()
    kept = mined.measured(args.work)
    for place in args.tables:
        encoder = open_table(place)
        docs = encoder.encode([pair["doc"] for pair in kept], "query")
        codes = encoder.encode([pair["path"] + "\n" + pair["code"] for pair in kept], "passage")
        mrr, recall = mined.retrieval(docs, codes)
        print(f"{place}  dim {encoder.dim}  MRR {mrr:.3f}  recall@10 {recall:.3f}", flush=True)


if __name__ == "__main__":
    main()
