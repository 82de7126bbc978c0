"""Does analyze_impact name the files that a real change went on to touch?

    python benchmarks/impact_recall.py name=path/to/git-dir ... [--since 2022-01-01] [--commits 10]

For each repository: the first commits after a fixed date that modify 3 to 10 source files (merges left out). At each one's parent,
every modified source file that is no test is taken in turn: its changed symbols (those around the diff's hunks) are the
targets, and the answer's first 50 files are held against the other modified source files. History up to the parent,
never the commit itself, serves as the co-change hint. Nothing is chosen by hand. Prints a Markdown table.
"""

import argparse
import io
import json
import re
import statistics
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.impact_values import Tie
from code_intel_server.codebase.languages import LanguageKind, language_of
from code_intel_server.codebase.roles import Role, role

AT = 50
HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+", re.MULTILINE)


@dataclass(frozen=True)
class Trial:
    """One start: a commit, the file whose changed symbols were given, and how the answer did."""

    repository: str
    commit: str
    start: str
    targets: int
    others: int
    found: int
    found_by_history_alone: int
    rows: int
    must: int
    characters: int
    seconds: float
    missed: tuple[str, ...]


def git(git_dir: str, *arguments: str) -> str:
    done = subprocess.run(["git", f"--git-dir={git_dir}", *arguments], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def is_source(path: str) -> bool:
    language = language_of(path)
    return language is not None and language.kind in {LanguageKind.CODE, LanguageKind.STYLE, LanguageKind.MARKUP}


def commits(git_dir: str, since: str, wanted: int) -> Iterator[tuple[str, list[str]]]:
    log = git(
        git_dir,
        "log",
        "--reverse",
        "--no-merges",
        f"--since={since}T00:00:00Z",
        "--diff-filter=M",
        "--name-only",
        "--format=%x01%H",
    )
    found = 0
    for entry in log.split("\x01")[1:]:
        commit, *paths = [line for line in entry.splitlines() if line]
        sources = [path for path in paths if is_source(path)]
        if 3 <= len(sources) <= 10:
            yield commit, sources
            found += 1
            if found == wanted:
                return


def history(git_dir: str, commit: str) -> list[tuple[str, ...]]:
    log = git(git_dir, "log", "-n", "2000", "--no-merges", "--name-only", "--format=%x01", commit)
    return [tuple(line for line in entry.splitlines() if line) for entry in log.split("\x01")[1:]]


def check_out(git_dir: str, commit: str, into: str) -> None:
    archive = subprocess.run(["git", f"--git-dir={git_dir}", "archive", commit], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(into, filter="data")


def changed_symbols(git_dir: str, commit: str, path: str) -> list[str]:
    """`path:line` of every hunk, at most 20; analyze_impact turns them into the symbols around."""
    diff = git(git_dir, "diff", "-U0", f"{commit}^", commit, "--", path)
    return [f"{path}:{max(int(hunk[1]), 1)}" for hunk in HUNK.finditer(diff)][:20]


def trials(name: str, git_dir: str, since: str, wanted: int) -> Iterator[Trial]:
    for commit, sources in commits(git_dir, since, wanted):
        with tempfile.TemporaryDirectory() as folder:
            check_out(git_dir, f"{commit}^", folder)
            before = history(git_dir, f"{commit}^")
            explorer = Explorer(folder)
            explorer.cache.refresh_all()
            for start in sources:
                if role(start) is Role.TESTS:
                    continue
                targets = changed_symbols(git_dir, commit, start)
                if targets:
                    yield trial(name, commit, explorer, start, targets, set(sources) - {start}, before)


def trial(
    name: str,
    commit: str,
    explorer: Explorer,
    start: str,
    targets: list[str],
    others: set[str],
    before: list[tuple[str, ...]],
) -> Trial:
    started = time.perf_counter()
    impact = explorer.analyze_impact(targets, history=lambda: before)
    seconds = time.perf_counter() - started
    rows = [row for row in impact.answer.results if row.path != start][:AT]
    paths = {row.path for row in rows}
    told_by_history = {row.path for row in rows if all(place.tie is Tie.TOGETHER for place in row.places)}
    return Trial(
        repository=name,
        commit=commit[:10],
        start=start,
        targets=len(targets),
        others=len(others),
        found=len(others & paths),
        found_by_history_alone=len(others & told_by_history),
        rows=len(rows),
        must=len(impact.must_verify),
        characters=len(json.dumps([asdict(row) for row in rows])),
        seconds=seconds,
        missed=tuple(sorted(others - paths)),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("repositories", nargs="+", metavar="name=git-dir")
    parser.add_argument("--since", default="2022-01-01")
    parser.add_argument("--commits", type=int, default=10)
    parser.add_argument("--missed", action="store_true", help="also list what was not found")
    options = parser.parse_args()
    every: list[Trial] = []
    print(
        f"| repository | commits | starts | mean recall@{AT} | of it by history alone | median files | median must | median characters | median s |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for repository in options.repositories:
        name, _, git_dir = repository.partition("=")
        found = list(trials(name, git_dir, options.since, options.commits))
        every += found
        line(name, found)
    line("**all**", every)
    if options.missed:
        for one in every:
            if one.missed:
                print(f"{one.repository} {one.commit} {one.start}: missed {', '.join(one.missed)}")


def line(name: str, found: list[Trial]) -> None:
    recall = statistics.mean(one.found / one.others for one in found)
    by_history = statistics.mean(one.found_by_history_alone / one.others for one in found)
    print(
        f"| {name} | {len({one.commit for one in found})} | {len(found)} | {recall:.3f} | {by_history:.3f} "
        f"| {statistics.median(one.rows for one in found):.0f} | {statistics.median(one.must for one in found):.0f} "
        f"| {statistics.median(one.characters for one in found):.0f} | {statistics.median(one.seconds for one in found):.2f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
