"""Compares retrieval with its peers on the reported half of the benchmark: scores, then a table with intervals.

    retrieval.py run ADAPTER --score SCORE_PY --data DIR --repos DIR [--half reported] [--whole] [--only NAME ...] --out FILE
    retrieval.py table RESULT.json ... > retrieval.md

ADAPTER is `ours` (this package, called directly), or one of score.py's: semble_bm25, rg_keywords. `ours:lexical`,
`ours:dense`, `ours:fused` and `ours:unranked-lexical` switch parts off, for the ablation. Each peer runs in an
environment of its own. The interval is a paired bootstrap over repositories (10,000 resamples, fixed seed).
"""

import argparse
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

SPLIT = Path(__file__).with_name("retrieval_split.json")
RESAMPLES = 10_000
SEED = 20261121


class Ours:
    """The index called directly, as the tool `semantic_search` does."""

    def __init__(self, part: str) -> None:
        self.part = part
        self.index: Any = None

    def build(self, root: str) -> None:
        """Index a folder in a throw-away `.code-intel`."""
        import tempfile

        from code_intel_server.codebase.files.ignore import FileListing
        from code_intel_server.index.code_index import CodeIndex
        from code_intel_server.index.values import ChromaMode, ChromaSettings, IndexSettings
        from code_intel_server.index.vectors.embedding import load_encoder

        project = Path(root)
        mode = ChromaMode.OFF if self.part else ChromaMode.LOCAL
        self.index = CodeIndex(
            project,
            IndexSettings(chroma=ChromaSettings(mode=mode, min_chunks=0)),
            encoder=load_encoder,
            lister=lambda: FileListing(tuple(listed(project))),
            folder=Path(tempfile.mkdtemp(prefix="retrieval-")),
        )
        self.index.sync()
        if not self.part:
            self.index._open().chroma.await_ready(3600)

    def query(self, question: str) -> list[tuple[str, int, int]]:
        """The ten best places."""
        if self.part:
            return self._ablated(question)
        return [(hit.path, hit.start_line, hit.end_line) for hit in self.index.search(question, limit=10).hits]

    def _ablated(self, question: str) -> list[tuple[str, int, int]]:
        from code_intel_server.index.retrieval import ranking, search
        from code_intel_server.index.retrieval.questions import understand
        from code_intel_server.index.vectors.dense import BruteForce
        from code_intel_server.index.vectors.embedding import load_encoder

        opened = self.index._open()
        self.brute = getattr(self, "brute", None) or BruteForce(opened.store)
        vector = load_encoder().encode([question], "query")[0]
        dense = None if "lexical" in self.part else (lambda limit, allowed: self.brute.search(vector, limit, allowed))
        off = dict.fromkeys(
            (
                "coverage",
                "name",
                "definition",
                "definition_embedded",
                "definition_hint",
                "path",
                "stem",
                "file",
                "file_coverage",
            ),
            0.0,
        )
        weights = ranking.WEIGHTS
        if self.part in {"dense", "fused", "unranked-lexical"}:
            weights = ranking.Weights(**off, repeat=1.0, dense=1.0 if self.part == "dense" else 0.5)
        found = search.find(opened.store, understand(question), dense, limit=10, weights=weights)
        return [(one.row.chunk.path, one.row.chunk.start_line, one.row.chunk.end_line) for one in found]


def listed(project: Path) -> list[str]:
    """What a project's listing gives: ignored files left out."""
    argv = ["rg", "--files", "--hidden", "--no-require-git", "--no-config", "--no-messages"]
    return sorted(subprocess.run(argv, cwd=project, capture_output=True, text=True, check=False).stdout.splitlines())


def load_score(path: Path) -> ModuleType:
    """The benchmark's own scorer."""
    spec = importlib.util.spec_from_file_location("score", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(arguments: argparse.Namespace) -> None:
    """Score one adapter on one half and keep every query's score."""
    score = load_score(arguments.score)
    names = set(arguments.only or json.loads(SPLIT.read_text())[arguments.half])
    result: dict[str, Any] = {
        "adapter": arguments.adapter,
        "whole": arguments.whole,
        "half": arguments.half,
        "repos": {},
    }
    for spec in json.loads((arguments.data / "repos.json").read_text()):
        name = spec["name"]
        root = arguments.repos / name / ("" if arguments.whole else spec.get("benchmark_root") or "")
        if name not in names or not root.is_dir():
            continue
        adapter = {"rg_keywords": score.RgKeywords, "semble_bm25": score.SembleBm25}.get(
            arguments.adapter, lambda: Ours(arguments.adapter.partition(":")[2])
        )()
        started = time.perf_counter()
        adapter.build(str(root))
        built = time.perf_counter() - started
        rows = []
        for query in json.loads((arguments.data / "annotations" / f"{name}.json").read_text()):
            targets = [score.target(one) for one in query["relevant"] + query.get("secondary", [])]
            started = time.perf_counter()
            found = adapter.query(query["query"])
            took = (time.perf_counter() - started) * 1e3
            places = [(path, None, None) for path, _, _ in targets]
            rows.append(
                {
                    "query": query["query"],
                    "category": query.get("category", "-"),
                    "ndcg": score.ndcg(found, targets),
                    "file_ndcg": score.ndcg(score.fold(found), places),
                    "ms": took,
                }
            )
        result["repos"][name] = {"index_s": built, "queries": rows}
        print(
            name, round(statistics.mean(row["ndcg"] for row in rows), 3), f"{built:.1f} s", file=sys.stderr, flush=True
        )
        if isinstance(adapter, Ours):
            adapter.index.close()
    arguments.out.write_text(json.dumps(result, indent=1))


def mean_of(result: dict[str, Any], name: str, key: str = "ndcg") -> float:
    """A repository's mean."""
    return statistics.mean(row[key] for row in result["repos"][name]["queries"])


def interval(differences: list[float]) -> tuple[float, float]:
    """95% of the bootstrapped means of paired differences."""
    chance = random.Random(SEED)
    means = sorted(statistics.mean(chance.choices(differences, k=len(differences))) for _ in range(RESAMPLES))
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]


def table(arguments: argparse.Namespace) -> None:
    """Print the results of one mode a table, ours first, differences with intervals below."""
    results = [json.loads(path.read_text()) for path in arguments.results]
    for whole in (False, True):
        of_mode = [result for result in results if result["whole"] == whole]
        if of_mode:
            print(f"\n## {'Whole checkout' if whole else 'At benchmark_root'}\n")
            print_mode(of_mode)


def print_mode(results: list[dict[str, Any]]) -> None:
    """One mode: a row a repository, then means, categories, speed and intervals."""
    names = sorted(set.intersection(*(set(result["repos"]) for result in results)))
    print("| repository | " + " | ".join(result["adapter"] for result in results) + " |")
    print("|---" * (len(results) + 1) + "|")
    for name in names:
        print(f"| {name} | " + " | ".join(f"{mean_of(result, name):.3f}" for result in results) + " |")
    for title, key in (("**mean NDCG@10**", "ndcg"), ("file NDCG@10", "file_ndcg")):
        means = [statistics.mean(mean_of(result, name, key) for name in names) for result in results]
        print(f"| {title} | " + " | ".join(f"{value:.3f}" for value in means) + " |")
    for category in sorted({row["category"] for name in names for row in results[0]["repos"][name]["queries"]}):
        cells = [
            statistics.mean(
                row["ndcg"] for name in names for row in result["repos"][name]["queries"] if row["category"] == category
            )
            for result in results
        ]
        print(f"| {category} | " + " | ".join(f"{value:.3f}" for value in cells) + " |")
    times = [[row["ms"] for name in names for row in result["repos"][name]["queries"]] for result in results]
    print("| query p50 ms | " + " | ".join(f"{statistics.median(one):.1f}" for one in times) + " |")
    print(
        "| index s, mean | "
        + " | ".join(f"{statistics.mean(result['repos'][name]['index_s'] for name in names):.1f}" for result in results)
        + " |"
    )
    print()
    for other in results[1:]:
        differences = [mean_of(results[0], name) - mean_of(other, name) for name in names]
        low, high = interval(differences)
        print(
            f"{results[0]['adapter']} − {other['adapter']} over {len(names)} repositories: "
            f"{statistics.mean(differences):+.3f} (95% interval {low:+.3f} to {high:+.3f}; better in {sum(d > 0 for d in differences)})\n"
        )


def main() -> None:
    """Run or tabulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run")
    running.add_argument("adapter")
    for name in ("score", "data", "repos", "out"):
        running.add_argument(f"--{name}", type=Path, required=True)
    running.add_argument("--half", default="reported")
    running.add_argument("--whole", action="store_true")
    running.add_argument("--only", nargs="*")
    running.set_defaults(do=run)
    tabling = commands.add_parser("table")
    tabling.add_argument("results", type=Path, nargs="+")
    tabling.set_defaults(do=table)
    arguments = parser.parse_args()
    arguments.do(arguments)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
