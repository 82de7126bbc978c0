"""Writes docs/explanation/reliability.md from the summaries of the runs.

python -m tests.faults.report --from FOLDER     (kills.jsonl, mutants.json, soak.json; a missing one is said)
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
SUMMARY = HERE / "tests" / "faults" / "summary.json"
PAGE = HERE / "docs" / "explanation" / "reliability.md"

PROMISES = """\
| | Promise | Shown by |
|-|-|-|
| P1 | An acknowledged submit is never lost and never applied twice. | `test_killed_sessions.py`, `test_process.py` (200 at once), `test_rule_machine.py` (every accepted payload again) |
| P2 | Nothing the user had on disk, in the index, a ref or the stash becomes unreachable. | `sentinel.py` around every killed session; `tests/workspace/test_branches*.py` |
| P3 | Our reads execute no byte of a repository; configured commands run only when trusted. | `test_hostile_repository.py` |
| P4 | Every call ends by its time limit, and stdout is pure JSON-RPC. | `test_process.py`, `test_wire.py` |
| P5 | The index is disposable and never answers silently incomplete. | `tests/index/test_kills.py`, `tests/index/test_sync.py` |
"""


def summarise(folder: Path) -> dict[str, object]:
    """The runs of a folder in one small object."""
    kills = folder / "kills.jsonl"
    rows = [json.loads(line) for line in kills.read_text().splitlines()] if kills.exists() else []
    kinds: Counter[str] = Counter()
    for row in rows:
        kinds.update(row["kinds"])
    return {
        "kills": {
            "sessions": len(rows),
            "killed": sum(row["killed"] for row in rows),
            "kinds": dict(sorted(kinds.items())),
            "refusals": sum(len(row["refusals"]) for row in rows),
            "violations": sum(len(row["violations"]) for row in rows),
        },
        "mutants": _read(folder / "mutants.json"),
        "soak": _read(folder / "soak.json"),
    }


def _read(path: Path) -> object:
    return json.loads(path.read_text()) if path.exists() else None


def page(summary: dict[str, object]) -> str:
    """The document."""
    kills, mutants, soak = summary["kills"], summary["mutants"], summary["soak"]
    assert isinstance(kills, dict)
    kinds = ", ".join(f"{count} at {kind}" for kind, count in kills["kinds"].items())
    rows = (
        [
            f"| {row['device']} | {row['result']} | {row.get('by', '')} |"
            for row in mutants or []
            if isinstance(row, dict)
        ]
        if isinstance(mutants, list)
        else []
    )
    lines = [
        "# Reliability",
        "",
        "<!-- Written by `python -m tests.faults.report`; do not edit. -->",
        "",
        PROMISES,
        "## The long kill run",
        "",
        f"{kills['sessions']} sessions were killed {kills['killed']} times by `strace` ({kinds}), each resumed by a new process "
        f"until it ended. Violations (a submit lost or doubled, user data unreachable, another final commit): **{kills['violations']}**. "
        f"Typed refusals on the way: {kills['refusals']}. The full size is 2,000 kills (`tests/faults/run.sh --full`, resumable); this was "
        + ("that." if kills["killed"] >= 2000 else "less than that."),
        "",
        (
            "A kill is SIGKILL at the Nth rename, fsync, unlink, write or start of a child, counted by thread. It is the death of a "
            "process, not the loss of power: what `fsync` itself promises is not tested here."
        ),
        "",
        "## Safety devices switched off",
        "",
        *(["| Device | Result | First test that noticed |", "|-|-|-|", *rows] if rows else ["Not run."]),
        "",
        "## Soak",
        "",
        _soak(soak),
        "",
        "## What is not promised",
        "",
        "- A descendant of a verify command that makes a session of its own (`setsid`) leaves our process group and is not killed.",
        "- After SIGKILL of the server a verify command that runs goes on to its own end: nobody is left to end it.",
        "- A git that is killed leaves its `*.lock`; the server names it and never removes it. In the kill run the test does, as the user would.",
        "",
    ]
    return "\n".join(lines)


def _soak(soak: object) -> str:
    if not isinstance(soak, dict):
        return "Not run."
    first, last = soak["first"], soak["last"]
    grown = "; ".join(f"{name} {first[name]} → {last[name]}" for name in first)
    said = f"{soak['calls']} calls and {soak['faults']} faults in {soak['minutes']} minutes: {grown}."
    return said if soak["minutes"] >= 60 else f"{said} This was not the hour that the full run takes."


def main() -> int:
    """Write summary and page, or check that the page is the summary's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="folder", type=Path)
    given = parser.parse_args()
    if given.folder:
        SUMMARY.write_text(json.dumps(summarise(given.folder), indent=1) + "\n")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(json.loads(SUMMARY.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
