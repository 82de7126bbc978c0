"""The long kill run: one interrupted session a seed, one JSON line each, taken up where the last run ended.

python -m tests.faults.campaign --kills 2000 --seed 1 --out kills.jsonl
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.faults.interrupted import in_folder, seeded

KILLS_A_SESSION = 8


def done_seeds(out: Path) -> dict[int, int]:
    """Seed → kills that took place, of every line that was written whole."""
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    return {row["seed"]: row["killed"] for row in rows}


def seeds(first: int) -> Iterator[int]:
    """All seeds from the first on."""
    while True:
        yield first
        first += 1


def run(kills: int, first: int, out: Path) -> int:
    """Until `kills` have taken place in all; the number of sessions in which something was violated."""
    done = done_seeds(out)
    total, bad = sum(done.values()), 0
    with tempfile.TemporaryDirectory() as scratch:
        expected = in_folder(Path(scratch) / "plain", []).final
        for seed in seeds(first):
            if total >= kills:
                break
            if seed in done:
                continue
            row = _one(Path(scratch) / str(seed), seed, expected)
            total += int(str(row["killed"]))
            bad += bool(row["violations"])
            with out.open("a") as file:
                file.write(json.dumps(row) + "\n")
    return bad


def _one(folder: Path, seed: int, expected: str) -> dict[str, object]:
    outcome = in_folder(folder, seeded(seed, KILLS_A_SESSION))
    violations = outcome.violations + ([] if outcome.final == expected else [f"ended as {outcome.final}"])
    kinds: dict[str, int] = {}
    for kill in outcome.killed:
        kinds[kill.kind] = kinds.get(kill.kind, 0) + 1
    return {
        "seed": seed,
        "killed": len(outcome.killed),
        "kinds": kinds,
        "survived": len(outcome.survived),
        "refusals": outcome.refusals,
        "violations": violations,
    }


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    bad = run(given.kills, given.seed, given.out)
    print(f"{sum(done_seeds(given.out).values())} kills, {bad} sessions with violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
