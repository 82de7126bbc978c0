"""The page of the runs: one row each, none left out, and what bare and with cost beside each other."""

import collections
import itertools
import json
import random
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import plots
from benchmarks.agents.tasks import ARMS
from benchmarks.plots import Series

Run = dict[str, Any]
PLANNED = ("bare", "lookups", "quick", "auto")
SEED = 30
_PARTS = 840
AGAINST_AUTO = {
    "no_starting": "no starting points",
    "no_resolution": "references not resolved",
    "no_red": "new tests not run on the old code",
    "no_original": "original tests not run on the new code",
    "9": "the code with what these runs taught mended",
}
"""Rounds whose runs are compared with the planned run of auto of the same task."""

HEAD = """# Real agents on real commits

What fresh model agents make of commits of 2026 (`agents/tasks.toml` says by which rule they were
taken), with the server (over a bridge, so without hooks) and without, the same model in both. Hidden
tests are those of the real commit; obligations are the places that the commit or the project's rules
demand besides the obvious one. Minutes are of a shared machine: compare those of a pair. Bytes leave
out review diffs and `tools/list`. Every run is here; the agents' own reports are in `agents/runs/`.
"""


def page(folder: Path) -> str:
    """The whole page, from the kept runs; its pictures are drawn by `draw`."""
    runs = sorted(_kept(folder), key=lambda run: (run["task"], ARMS.index(run["arm"]), run["name"]))
    rows = [
        "| run | arm | hidden tests | obligations | minutes | calls | KB | refusals | files |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows += [_row(run) for run in runs]
    notes = (Path(__file__).parent / "notes.md").read_text(encoding="utf-8")
    parts = (
        HEAD,
        f"{_summary(runs)}\n",
        f"{_primary(runs, 'p', 'Planned')}\n",
        f"{_primary(runs, 'h', 'Planned, harder tasks')}\n",
        f"{_judged(runs)}\n",
        "".join(f"![The planned runs: {what}](agents_{name}.svg)\n" for name, what, _ in _PICTURES),
        f"{_against_auto(runs)}\n",
        notes,
        f"{_tools(runs)}\n",
        "\n".join(rows) + "\n",
        _refusals(runs),
    )
    return "\n".join(parts)


def order(names: list[str]) -> list[str]:
    """The planned runs as 'TASK ARM NAME', in the order of PLAN.md."""
    draw = random.Random(SEED)
    draw.shuffle(names)
    return [f"{task} {arm} {task}-{arm}-p1" for task in names for arm in draw.sample(PLANNED, len(PLANNED))]


def sign_flip(differences: list[int]) -> float:
    """Exact two-sided p: the share of all sign patterns whose sum is at least as far from 0 as the one seen."""
    ways = collections.Counter({0: 1})
    for value in differences:
        flipped: collections.Counter[int] = collections.Counter()
        for total, count in ways.items():
            flipped[total + value] += count
            flipped[total - value] += count
        ways = flipped
    seen = abs(sum(differences))
    return sum(count for total, count in ways.items() if abs(total) >= seen) / 2 ** len(differences)


def _primary(runs: list[Run], letter: str, what: str) -> str:
    """What PLAN.md lays down: auto against bare, of the first planned run of each that is not broken."""
    first: dict[str, dict[str, Run]] = {"bare": {}, "auto": {}}
    for run in runs:
        if run["arm"] in first and re.search(rf"-{letter}\d+$", run["name"]) and "broken" not in run:
            first[run["arm"]].setdefault(run["task"], run)
    bare, auto = first["bare"], first["auto"]
    both = sorted(bare.keys() & auto.keys())
    if not both:
        return f"{what}: no run yet."
    # Shares of at most 8 obligations: in 840ths they are whole numbers, so that sums compare exactly.
    met = {
        arm: [sum(r.values()) * _PARTS // len(r) for t in both for r in [by[t]["obligations"]]]
        for arm, by in first.items()
    }
    differences = [a - b for a, b in zip(met["auto"], met["bare"], strict=True)]
    draw = random.Random(SEED)
    means = sorted(statistics.fmean(draw.choices(differences, k=len(both))) / _PARTS for _ in range(10_000))
    passed = {arm: sum(by[task]["hidden"] == "pass" for task in both) for arm, by in first.items()}
    ratio = statistics.median(auto[task]["minutes"] / bare[task]["minutes"] for task in both)
    return (
        f"{what} (`agents/PLAN.md`), {len(both)} tasks: obligations met, auto less bare, "
        f"{statistics.fmean(differences) / _PARTS:+.3f} of a task's (95 % {means[250]:+.3f} to {means[9749]:+.3f}, "
        f"p = {sign_flip(differences):.4f}); minutes × {ratio:.2f}; hidden tests {passed['auto']} against {passed['bare']}."
    )


def _row(run: Run) -> str:
    met = run["obligations"]
    missing = ", ".join(name for name, held in met.items() if not held)
    return (
        f"| [{run['name']}](agents/runs/{run['name']}.json) | {run['arm']} | {'pass' if run['hidden'] == 'pass' else '**fail**'} "
        f"| {sum(met.values())} of {len(met)}{f' (not {missing})' if missing else ''} | {run['minutes']} "
        f"| {sum(run['calls'].values()) or ''} | {round(run['bytes'] / 1000, 1) or ''} | {len(run['refusals']) or ''} | {run['files']} |"
    )


def _summary(runs: list[Run]) -> str:
    lines = [
        "| round, arm | runs | hidden tests passed | obligations met | minutes, median | × bare of its pair, median | calls, median, most | KB, median, most |",
        "|---|---|---|---|---|---|---|---|",
    ]
    minutes = {run["name"]: run["minutes"] for run in runs}
    rounds = sorted({run["name"].rpartition("-")[2] for run in runs})
    for number, arm in itertools.product(rounds, ARMS):
        some = [run for run in runs if run["arm"] == arm and run["name"].endswith(f"-{number}")]
        if not some:
            continue
        met = [held for run in some for held in run["obligations"].values()]
        pairs = [(run["minutes"], minutes.get(f"{run['task']}-bare-{number}")) for run in some]
        ratios = [mine / bare for mine, bare in pairs if bare]
        calls, size = [sum(run["calls"].values()) for run in some], [run["bytes"] / 1000 for run in some]
        lines.append(
            f"| {number}, {arm} | {len(some)} | {sum(run['hidden'] == 'pass' for run in some)} | {sum(met)} of {len(met)} "
            f"| {statistics.median(run['minutes'] for run in some):.1f} | {f'{statistics.median(ratios):.2f}' if ratios else 'no pair'} "
            f"| {statistics.median(calls):.0f}, {max(calls)} | {statistics.median(size):.1f}, {max(size):.1f} |"
        )
    return "\n".join(lines)


def _judged(runs: list[Run]) -> str:
    """What blind readers found in the planned runs (`judged.json`): needless changes, and refusals that were false blocks.

    Of a diff that both readers judged the mean counts.
    """
    found = json.loads((Path(__file__).parent / "judged.json").read_text(encoding="utf-8"))
    needless = {name: statistics.fmean(row[0] for row in one["needless"]) for name, one in found.items()}
    named = {run["name"]: run for run in runs}
    tasks = sorted({named[name]["task"] for name in found})
    draw = random.Random(SEED)
    lines = [
        "| planned, arm | needless changes a run | less bare (95 %); runs with fewer, more | changed lines, median | refusals: right, false, unclear | runs with a false block |",
        "|---|---|---|---|---|---|",
    ]
    for arm in PLANNED:
        names = [f"{task}-{arm}-p1" for task in tasks]
        less = [needless[name] - needless[f"{task}-bare-p1"] for name, task in zip(names, tasks, strict=True)]
        means = sorted(statistics.fmean(draw.choices(less, k=len(less))) for _ in range(10_000))
        interval = f"{statistics.fmean(less):+.2f} ({means[250]:+.2f} to {means[9749]:+.2f})"
        signs = f"{sum(one < 0 for one in less)}, {sum(one > 0 for one in less)}"
        said = [[row[0] for row in found[name].get("refusals", [])] for name in names]
        counts = collections.Counter(itertools.chain.from_iterable(said))
        changed = (_changed(named[name]) for name in names)
        lines.append(
            f"| {arm} | {statistics.fmean(needless[name] for name in names):.2f} "
            f"| {'' if arm == 'bare' else f'{interval}; {signs}'} | {statistics.median(changed):.0f} "
            f"| {counts['right']}, {counts['false']}, {counts['unclear']} | {sum('false' in one for one in said)} |"
        )
    return "\n".join(lines)


def draw(folder: Path, into: Path) -> None:
    """Draw the pictures of the page, minutes and changed lines of the planned runs, into a folder."""
    runs, shares = _kept(folder), (10, 25, 50, 75, 90)
    for name, what, of in _PICTURES:
        series = []
        for arm in PLANNED:
            some = sorted(of(run) for run in runs if run["name"].endswith(f"-{arm}-p1"))
            series.append(Series(arm, [(share, some[len(some) * share // 100]) for share in shares]))
        title = f"The planned runs: {what}"
        plots.draw(into / f"agents_{name}.svg", title, "% of the tasks that took no more", what, series)


def _kept(folder: Path) -> list[Run]:
    return [
        {**json.loads(file.read_text(encoding="utf-8")), "name": file.stem} for file in sorted(folder.glob("*.json"))
    ]


def _minutes(run: Run) -> float:
    return float(run["minutes"])


def _changed(run: Run) -> float:
    return sum(map(int, re.findall(r"(\d+) (?:ins|del)", run["diff"])))


_PICTURES = (("minutes", "minutes", _minutes), ("lines", "changed lines", _changed))


def _tools(runs: list[Run]) -> str:
    """How often the planned runs called each tool, and in how many runs."""
    used = {
        arm: [run["calls"] for run in runs if run["arm"] == arm and run["name"].endswith("-p1")] for arm in PLANNED[1:]
    }
    every: collections.Counter[str] = collections.Counter()
    for run in itertools.chain.from_iterable(used.values()):
        every.update(run)
    lines = [f"| tool: calls, runs | {' | '.join(used)} |", "|---|---|---|---|"]
    for tool, _ in every.most_common():
        cells = (
            f"{sum(run.get(tool, 0) for run in some)}, {sum(tool in run for run in some)}" for some in used.values()
        )
        lines.append(f"| {tool} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _against_auto(runs: list[Run]) -> str:
    """Auto with a part of the server off, or mended, beside the planned auto of the same tasks."""
    lines = [
        "| auto, but | tasks | hidden tests | obligations | minutes × auto's, median | calls | KB | refusals |",
        "|---|---|---|---|---|---|---|---|",
    ]
    named = {run["name"]: run for run in runs}
    for round_, what in AGAINST_AUTO.items():
        some = [run for run in runs if run["name"].endswith(f"-auto-{round_}")]
        if not some:
            continue
        beside = [named[f"{run['task']}-auto-p1"] for run in some]
        ratio = statistics.median(a["minutes"] / b["minutes"] for a, b in zip(some, beside, strict=True))
        lines.append(
            f"| {what} | {len(some)} | {_passed(some)} ({_passed(beside)}) | {_met(some)} ({_met(beside)}) | {ratio:.2f} "
            f"| {_typical(some, _calls)} ({_typical(beside, _calls)}) | {_typical(some, _size)} ({_typical(beside, _size)}) "
            f"| {_refused(some)} ({_refused(beside)}) |"
        )
    return "\n".join([*lines, "", "In brackets the planned auto of the same tasks; calls and KB are medians."])


def _passed(runs: list[Run]) -> int:
    return sum(run["hidden"] == "pass" for run in runs)


def _met(runs: list[Run]) -> str:
    met = [held for run in runs for held in run["obligations"].values()]
    return f"{sum(met)} of {len(met)}"


def _refused(runs: list[Run]) -> int:
    return sum(len(run["refusals"]) for run in runs)


def _calls(run: Run) -> float:
    return sum(run["calls"].values())


def _size(run: Run) -> float:
    return round(run["bytes"] / 1000, 1)


def _typical(runs: list[Run], of: Callable[[Run], float]) -> str:
    return f"{statistics.median(map(of, runs)):.3g}"


def _refusals(runs: list[Run]) -> str:
    lines = ["## Every refusal", ""]
    for run in runs:
        for refusal in run["refusals"]:
            text = " ".join(str(refusal["message"]).split())[:200]
            lines.append(f"- {run['name']}: `{refusal['tool']}` {refusal['error']}: {text}")
    return "\n".join(lines) + "\n"
