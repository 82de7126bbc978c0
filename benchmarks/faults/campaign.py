"""The long kill run: one interrupted session a seed, one JSON line each, taken up where the last run ended.

python -m benchmarks.faults.campaign --kills 2000 --seed 1 --out kills.jsonl
python -m benchmarks.faults.campaign --kills 500 --seed 1 --errors --out errors.jsonl
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.faults.interrupted import Outcome, in_folder
from benchmarks.faults.kills import Kill, failing, seeded
from benchmarks.faults.scenarios import SCENARIOS

KILLS_A_SESSION = 40


def done_seeds(out: Path) -> dict[int, int]:
    """Seed → kills that took place, of every line that was written whole."""
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    return {row["seed"]: row["killed"] for row in rows}


def seeds(first: int) -> Iterator[int]:
    """All seeds from the first on."""
    while True:
        yield first
        first += 1


def run(
    kills: int, first: int, out: Path, keep: Path | None = None, drawn: Callable[[int, int], list[Kill]] = seeded
) -> int:
    """Until `kills` have taken place in all; the number of sessions in which something was violated.

    The repository of such a session is left in `keep`. `drawn` says what the faults are.
    """
    done = done_seeds(out)
    total, bad = sum(done.values()), 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = keep or Path(scratch)
        expected = [in_folder(Path(scratch) / f"plain-{s.name}", [], s).final for s in SCENARIOS]
        for seed in seeds(first):
            if total >= kills:
                break
            if seed in done:
                continue
            number = seed % len(SCENARIOS)
            began = time.monotonic()
            plan = drawn(seed, KILLS_A_SESSION)
            outcome = in_folder(folder / str(seed), plan, SCENARIOS[number], expected[number])
            row = _row(seed, SCENARIOS[number].name, outcome, time.monotonic() - began)
            total += sum(outcome.killed.values())
            bad += bool(outcome.violations)
            with out.open("a") as file:
                file.write(json.dumps(row) + "\n")
    return bad


def _row(seed: int, scenario: str, outcome: Outcome, seconds: float) -> dict[str, object]:
    return {
        "seed": seed,
        "scenario": scenario,
        "killed": sum(outcome.killed.values()),
        "kinds": dict(sorted(outcome.killed.items())),
        "commands": dict(sorted(outcome.commands.items())),
        "places": dict(sorted(outcome.places.items())),
        "unreached": outcome.unreached,
        "seconds": round(seconds, 1),
        "refusals": outcome.refusals,
        "violations": outcome.violations,
        **({"trail": outcome.trail} if outcome.violations else {}),
    }


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--keep", type=Path, help="where repositories with a violation stay")
    parser.add_argument("--errors", action="store_true", help="errors of the disk instead of kills")
    given = parser.parse_args()
    bad = run(given.kills, given.seed, given.out, given.keep, failing if given.errors else seeded)
    print(f"{sum(done_seeds(given.out).values())} kills, {bad} sessions with violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
