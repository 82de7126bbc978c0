"""How often the first chunk overlaps the answer: functions of foreign packages asked for by their docstrings.

    span_precision.py --package DIR [DIR ...] [--queries 150] [--json FILE]

Each package is copied with its docstrings blanked out (lines stay where they are); the first sentence of a docstring is
the question, the function's lines are the answer. Compared are this index, its parts, and plain BM25 on the same chunks.
"""

import argparse
import ast
import json
import random
import shutil
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from retrieval import Ours

SEED = 20261121
VARIANTS = ("", "unranked-lexical", "lexical", "dense", "fused")


@dataclass(frozen=True)
class Asked:
    """A question and the lines that answer it."""

    question: str
    path: str
    start: int
    end: int


def blanked(path: Path, relative: str) -> tuple[str, list[Asked]]:
    """The source without docstrings, and what the docstrings ask."""
    source = path.read_text(encoding="utf-8")
    lines, asked = source.split("\n"), []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            continue
        text = ast.get_docstring(node)
        if not text:
            continue
        literal = node.body[0]
        for number in range(literal.lineno - 1, literal.end_lineno or literal.lineno):
            lines[number] = ""
        sentence = " ".join(text.split("\n\n")[0].split()).split(". ")[0]
        if not isinstance(node, ast.Module) and len(sentence.split()) >= 5 and len(node.body) > 1:
            asked.append(Asked(sentence, relative, node.lineno, node.end_lineno or node.lineno))
    return "\n".join(lines), asked


def prepare(package: Path, target: Path) -> list[Asked]:
    """Copy a package without docstrings; answers its questions."""
    asked: list[Asked] = []
    for path in sorted(package.rglob("*.py")):
        relative = str(path.relative_to(package))
        try:
            text, questions = blanked(path, relative)
        except (SyntaxError, UnicodeDecodeError):
            continue
        asked += questions
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
        (target / relative).write_text(text, encoding="utf-8")
    return asked


def overlaps(found: list[tuple[str, int, int]], wanted: Asked) -> bool:
    """Whether the first result touches the answer."""
    return bool(found) and found[0][0] == wanted.path and found[0][1] <= wanted.end and found[0][2] >= wanted.start


def main() -> None:
    """Measure every variant on every package and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, nargs="+", required=True)
    parser.add_argument("--queries", type=int, default=150)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print("| package | questions | " + " | ".join(variant or "ours" for variant in VARIANTS) + " |")
    print("|---" * (len(VARIANTS) + 2) + "|")
    shares: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    for package in arguments.package:
        copy = Path(tempfile.mkdtemp(prefix="spans-"))
        asked = prepare(package, copy)
        if not asked:
            raise SystemExit(f"{package}: no docstrings found")
        chosen = random.Random(SEED).sample(asked, min(arguments.queries, len(asked)))
        engine = Ours("off")
        engine.build(str(copy))
        row = []
        for variant in VARIANTS:
            engine.part = variant or "all"
            share = statistics.mean(overlaps(engine.query(one.question), one) for one in chosen)
            shares[variant].append(share)
            row.append(f"{share:.3f}")
        print(f"| {package.name} | {len(chosen)} | " + " | ".join(row) + " |", flush=True)
        engine.index.close()
        shutil.rmtree(copy)
    print("| **mean** | | " + " | ".join(f"{statistics.mean(shares[variant]):.3f}" for variant in VARIANTS) + " |")
    if arguments.json:
        arguments.json.write_text(json.dumps(shares, indent=1))


if __name__ == "__main__":
    main()
