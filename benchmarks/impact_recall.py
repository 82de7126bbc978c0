"""Does analyze_impact name the files that a real change went on to touch, and does it beside git co-change alone?

    python benchmarks/impact_recall.py name=path/to/git-dir ... [--since 2024-01-01] [--commits 12] [--fit]

For each repository: of the commits since the date that modify 3 to 10 files, one of them code, `--commits` evenly spread
(merges left out). At each one's parent every modified file of code is taken in turn: its changed places (the diff's hunks)
are the targets, and the answer is held against all other modified files. History up to the parent, never the commit itself,
is given. *Co-change alone* ranks by how many commits changed both files, renames followed, the later first among equals.
Figures are means over commits, a commit's over its starts; intervals are 95 % by drawing commits anew. `--fit` prints the
weights that these repositories would give (`codebase/impact/ledger.py`) in place of the figures.
"""

import argparse
import io
import random
import re
import statistics
import subprocess
import tarfile
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.files.languages import LanguageKind, language_of
from code_intel_server.codebase.files.roles import Role, role
from code_intel_server.codebase.impact.analyzer import FIRST_IMPACTS, gathered
from code_intel_server.codebase.impact.ledger import WEIGHTS
from code_intel_server.tools.exploration import impact_fields
from code_intel_server.tools.shaping import answer_text
from code_intel_server.workspace.git.history import LOG, changed_paths

FIRST, PAGED = 20, 50
HISTORY = 2000
HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+", re.MULTILINE)
DRAWS = 2000


@dataclass(frozen=True)
class Trial:
    """One start: the commit, how the answer ranks files, and what history alone does."""

    repository: str
    commit: str
    others: frozenset[str]
    ranked: tuple[str, ...] = ()
    by_history: tuple[str, ...] = ()
    must: tuple[str, ...] = ()
    shown: int = 0
    size: int = 0
    seconds: float = 0.0
    features: dict[str, dict[str, float]] = field(default_factory=dict)


def git(git_dir: str, *arguments: str) -> str:
    done = subprocess.run(["git", f"--git-dir={git_dir}", *arguments], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape")


def is_start(path: str) -> bool:
    language = language_of(path)
    kinds = {LanguageKind.CODE, LanguageKind.STYLE, LanguageKind.MARKUP}
    return language is not None and language.kind in kinds and role(path) is Role.CODE


def commits(git_dir: str, since: str, wanted: int) -> list[tuple[str, list[str]]]:
    log = git(
        git_dir, "log", "--reverse", "--no-merges", "--no-renames", f"--since={since}T00:00:00Z",
        "--diff-filter=M", "--name-only", "--format=%x01%H",
    )  # fmt: skip
    entries = ([line for line in entry.splitlines() if line] for entry in log.split("\x01")[1:])
    fit = [(one, paths) for one, *paths in entries if 3 <= len(paths) <= 10 and any(map(is_start, paths))]
    count = min(wanted, len(fit))
    return [fit[number * len(fit) // count] for number in range(count)]


def check_out(git_dir: str, commit: str, into: str) -> None:
    archive = subprocess.run(["git", f"--git-dir={git_dir}", "archive", commit], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(into, filter="data")


def changed_places(git_dir: str, commit: str, path: str) -> list[str]:
    """`path:line` of every hunk, at most 20; analyze_impact turns them into the symbols around."""
    diff = git(git_dir, "diff", "-U0", f"{commit}^", commit, "--", path)
    return [f"{path}:{max(int(hunk[1]), 1)}" for hunk in HUNK.finditer(diff)][:20]


def co_changed(history: Sequence[tuple[str, ...]], start: str, there: frozenset[str]) -> tuple[str, ...]:
    both = Counter(path for paths in history if start in paths for path in paths if path != start)
    return tuple(path for path, _ in both.most_common() if path in there)


def trials(name: str, git_dir: str, since: str, wanted: int, *, fit: bool) -> Iterator[Trial]:
    for commit, paths in commits(git_dir, since, wanted):
        with tempfile.TemporaryDirectory() as folder:
            check_out(git_dir, f"{commit}^", folder)
            history = [*changed_paths(git(git_dir, *LOG, f"--max-count={HISTORY}", f"{commit}^"))]
            there = frozenset(git(git_dir, "ls-tree", "-r", "-z", "--name-only", f"{commit}^").split("\0"))
            explorer = Explorer(folder)
            explorer.refresh_all()
            for start in filter(is_start, paths):
                targets = changed_places(git_dir, commit, start)
                trial = Trial(name, commit, frozenset(paths) - {start}, by_history=co_changed(history, start, there))
                if targets:
                    yield (_features if fit else _answer)(explorer, trial, start, targets, history)


def _features(
    explorer: Explorer, trial: Trial, start: str, targets: list[str], history: list[tuple[str, ...]]
) -> Trial:
    found = gathered(explorer.project, explorer.cache, targets, history=lambda: history).evidence
    features = {path: found.features(path) for path in found.paths - {start}}
    return Trial(trial.repository, trial.commit, trial.others, features=features)


def _answer(explorer: Explorer, trial: Trial, start: str, targets: list[str], history: list[tuple[str, ...]]) -> Trial:
    started = time.perf_counter()
    found = explorer.analyze_impact(targets, history=lambda: history)
    seconds = time.perf_counter() - started
    first = impact_fields(found, FIRST_IMPACTS)
    whole = explorer.analyze_impact(targets, history=lambda: history, page=Page(PAGED + 1))
    results = first["results"]
    return Trial(
        trial.repository,
        trial.commit,
        trial.others,
        ranked=tuple(row.path for row in whole.answer.results if row.path != start)[:PAGED],
        by_history=trial.by_history,
        must=tuple(row.path for row in whole.must_verify),
        shown=len(results) - 1 if isinstance(results, list) else 0,
        size=len(answer_text(first).encode("utf-8", "replace")),
        seconds=seconds,
    )


def recall(ranked: Sequence[str], others: frozenset[str], most: int) -> float:
    return len(others.intersection(ranked[:most])) / len(others)


def touched(ranked: Sequence[str], others: frozenset[str], most: int = FIRST) -> float:
    return len(others.intersection(ranked[:most])) / max(len(ranked[:most]), 1)


MEASURES: dict[str, Callable[[Trial], float]] = {
    "recall@20": lambda one: recall(one.ranked, one.others, FIRST),
    "recall@50": lambda one: recall(one.ranked, one.others, PAGED),
    "touched of 20": lambda one: touched(one.ranked, one.others),
    "first answer: recall": lambda one: recall(one.ranked, one.others, one.shown),
    "first answer: touched": lambda one: touched(one.ranked[: one.shown], one.others),
    "alone: recall@20": lambda one: recall(one.by_history, one.others, FIRST),
    "alone: recall@50": lambda one: recall(one.by_history, one.others, PAGED),
    "alone: touched of 20": lambda one: touched(one.by_history, one.others),
}


def by_commit(found: Sequence[Trial], measure: Callable[[Trial], float]) -> list[float]:
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in found:
        groups[one.repository, one.commit].append(measure(one))
    return [statistics.mean(group) for group in groups.values()]


def interval(values: Sequence[float]) -> str:
    chance = random.Random(1)
    means = sorted(statistics.mean(chance.choices(values, k=len(values))) for _ in range(DRAWS))
    return f"{statistics.mean(values):+.3f} ({means[DRAWS // 40]:+.3f} to {means[-DRAWS // 40]:+.3f})"


def line(name: str, found: Sequence[Trial]) -> None:
    figures = [f"{statistics.mean(by_commit(found, measure)):.3f}" for measure in MEASURES.values()]
    told = [one for one in found if one.must]
    right = statistics.mean(touched(one.must, one.others, len(one.must)) for one in told) if told else 0.0
    rest = [
        f"{statistics.median(len(one.must) for one in found):.0f}",
        f"{right:.2f}",
        f"{statistics.median(one.size for one in found):.0f}",
        f"{statistics.median(one.seconds for one in found):.2f}",
    ]
    print(
        f"| {name} | {len({one.commit for one in found})} | {len(found)} | {' | '.join([*figures, *rest])} |",
        flush=True,
    )


def fitted(found: Sequence[Trial]) -> dict[str, float]:
    """The weights by logistic regression, each commit counting once (Newton's method, ridge of 1)."""
    starts = Counter(one.commit for one in found)
    names = [*map(str, WEIGHTS)]
    rows = [(one, path) for one in found for path in one.features]
    known = np.array([[one.features[path].get(name, 0.0) for name in names] for one, path in rows])
    changed = np.array([path in one.others for one, path in rows], float)
    counts = np.array([1 / starts[one.commit] for one, _ in rows])
    weights = np.zeros(len(names))
    for _ in range(25):
        chance = 1 / (1 + np.exp(-known @ weights))
        slope = known.T @ (counts * (changed - chance)) - weights
        bend = (known * (counts * chance * (1 - chance))[:, None]).T @ known + np.eye(len(names))
        weights += np.linalg.solve(bend, slope)
    return {name: round(float(weight), 2) for name, weight in zip(names, weights, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("repositories", nargs="+", metavar="name=git-dir")
    parser.add_argument("--since", default="2024-01-01")
    parser.add_argument("--commits", type=int, default=12)
    parser.add_argument("--fit", action="store_true")
    options = parser.parse_args()
    every: list[Trial] = []
    if not options.fit:
        heads = ["repository", "commits", "starts", *MEASURES, "must: median", "precision", "bytes", "s"]
        print(f"| {' | '.join(heads)} |\n|---|{'--:|' * (len(heads) - 1)}")
    for repository in options.repositories:
        name, _, git_dir = repository.partition("=")
        found = [*trials(name, git_dir, options.since, options.commits, fit=options.fit)]
        every += found
        if not options.fit:
            line(name, found)
    if options.fit:
        print(fitted(every))
        return
    line("**all**", every)
    for most in (FIRST, PAGED):
        print(f"\nGain over co-change alone in recall@{most}: {interval(by_commit(every, partial(_gain, most=most)))}")


def _gain(one: Trial, most: int) -> float:
    return recall(one.ranked, one.others, most) - recall(one.by_history, one.others, most)


if __name__ == "__main__":
    main()
