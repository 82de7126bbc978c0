"""Each git child of the moves that change the repository: killed before it runs, and the server killed right after it.

python -m benchmarks.faults.around --out around.jsonl
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.faults.interrupted import Interrupted, Outcome
from benchmarks.faults.kills import Kill
from benchmarks.faults.scenarios import SCENARIOS, Scenario, prepared

MOVES = {"discarded": (2, 6, 7), "abandoned": (4,)}
"""Scenario → the moves: the branch is made, the commit with its discards, the merge; the session is given up."""
HOWS = ("unstarted", "finished")
CHILDREN_AT_MOST = 200


class AtChild(Interrupted):
    """In each of `moves` the kill is at the same-numbered git child of the move, once."""

    def __init__(self, root: Path, scenario: Scenario, how: str, child: int) -> None:
        super().__init__(root, [], scenario)
        self._at, self._left = Kill(how, 1, child), set(MOVES[scenario.name])

    def _before_a_move(self) -> None:
        if self.kill is None and self.model.at in self._left:
            self._left.discard(self.model.at)
            self.kill = self._at
            self.shim.plan(self.kill)
        elif self.kill is not None:  # the move before had fewer children
            self.kill = None
            self.shim.plan(None)
            self._before_a_move()


def one(folder: Path, scenario: Scenario, how: str, child: int) -> Outcome:
    """A session with the kill at the `child`th git child of each of its moves."""
    return AtChild(prepared(folder), scenario, how, child).run()


def run(out: Path, keep: Path | None, numbers: Iterable[int]) -> int:
    """Until no move has as many children; the number of sessions in which something was violated."""
    done = {tuple(row["at"]): row for row in map(json.loads, out.read_text().splitlines())} if out.exists() else {}
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        for scenario in (s for s in SCENARIOS if s.name in MOVES):
            expected = Interrupted(prepared(Path(scratch) / f"plain-{scenario.name}"), [], scenario).run().final
            for how in HOWS:
                for child in numbers:
                    at = (scenario.name, how, child)
                    if at in done:
                        if not done[at]["killed"]:
                            break
                        continue
                    began = time.monotonic()
                    outcome = one((keep or Path(scratch)) / "-".join(map(str, at)), scenario, how, child)
                    if outcome.final != expected:
                        outcome.violations.append(f"ended as {outcome.final}\nnot as {expected}")
                    bad += bool(outcome.violations)
                    row = {
                        "at": at,
                        "killed": sum(outcome.killed.values()),
                        "kinds": dict(outcome.killed),
                        "commands": dict(sorted(outcome.commands.items())),
                        "places": dict(sorted(outcome.places.items())),
                        "refusals": outcome.refusals,
                        "violations": outcome.violations,
                        "seconds": round(time.monotonic() - began, 1),
                    }
                    with out.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                    if not row["killed"]:
                        break
    return bad


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--keep", type=Path, help="where the repositories stay")
    given = parser.parse_args()
    bad = run(given.out, given.keep, range(1, CHILDREN_AT_MOST))
    rows = [json.loads(line) for line in given.out.read_text().splitlines()]
    print(f"{sum(row['killed'] for row in rows)} kills in {len(rows)} sessions, {bad} with violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
