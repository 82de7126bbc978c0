"""How often a receipt would ask: commits drawn from real repositories, and the runs of those whose suites are short.

    python benchmarks/honest_commits.py MIRRORS WORK [RUNS [PROJECT … | tests]]

The rule: of every repository below, the 600 latest commits with one parent, shuffled with seed 25, taken in turn until there
are 200. RUNS are drawn in the same way from the 60 latest commits of projects of `receipts.py` with short suites, and run;
with PROJECTs only those of them, with `tests` from the 150 latest those that change tests or runner files alone.
"""

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from code_intel_server.codebase.files.roles import Role, role
from code_intel_server.receipts.files import FileClass, file_class
from code_intel_server.receipts.notary import Notary
from code_intel_server.receipts.report import outcomes, seen_tests
from code_intel_server.workspace.git.repository import Git, open_repository
from code_intel_server.workspace.project.config import VerifyCommand
from code_intel_server.workspace.values import Change, ChangeKind, ProofStatus
from receipts import PROJECTS, Project, _clone, _git

DRAWN = 200
SEED = 25
SHORT = (
    *("lepture+mistune", "expressjs+express", "go-chi+chi", "yuin+goldmark"),
    *("pallets+click", "python-attrs+attrs", "Kludex+starlette"),
)
REPOSITORIES = (
    *SHORT[:4],
    *("pallets+click", "pallets+flask", "psf+requests", "python-attrs+attrs", "Textualize+rich", "encode+httpx"),
    *("fastify+fastify", "koajs+koa", "axios+axios", "honojs+hono", "gin-gonic+gin", "spf13+cobra", "urfave+cli"),
    *("serde-rs+serde", "tokio-rs+tokio", "marshmallow-code+marshmallow"),
)
TESTS_ALONE = "tests or runner files alone"
_KINDS = {"A": ChangeKind.ADDED, "D": ChangeKind.DELETED}


def main(mirrors: Path, work: Path, runs: int, projects: Sequence[str]) -> None:
    """Draw, class, run and print."""
    drawn = [] if projects else _drawn(mirrors, REPOSITORIES, 600, DRAWN)
    classes = Counter(_class([change.path for change in changes]) for _, _, changes in drawn)
    ended: dict[str, Counter[str]] = defaultdict(Counter)
    chosen = [one for one in _drawn(mirrors, SHORT, 60, runs) if not projects or one[0] in projects]
    if projects == ["tests"]:
        latest = _drawn(mirrors, SHORT, 150, 150 * len(SHORT))
        chosen = [one for one in latest if _class([change.path for change in one[2]]) == TESTS_ALONE][:runs]
    for name, commit, changes in chosen:
        kind = _class([change.path for change in changes])
        why = _asked(next(one for one in PROJECTS if one.name == name), mirrors, work, commit, changes)
        ended[kind][why.partition(" ")[0]] += 1
        print(f"  {name} {commit[:8]} {kind}: {why or 'nothing'}", file=sys.stderr, flush=True)
    print("| changed files | drawn | run | asked | refused | unavailable |\n|---|---|---|---|---|---|")
    for kind in classes | ended:
        shown = (ended[kind][word] for word in ("asked", "refused:", "unavailable:"))
        print(f"| {kind} | {classes[kind]} | {ended[kind].total()} | {' | '.join(map(str, shown))} |")


def _drawn(mirrors: Path, names: tuple[str, ...], latest: int, count: int) -> list[tuple[str, str, tuple[Change, ...]]]:
    lists = []
    for name in names:
        log = _git(
            _repository(mirrors, name), "log", "--no-merges", "--min-parents=1", f"-{latest}", "--format=%H"
        ).split()
        random.Random(f"{SEED} {name}").shuffle(log)
        lists.append([(name, commit) for commit in log])
    turns = [one for row in zip(*lists, strict=False) for one in row][:count]
    return [(name, commit, _changes(_repository(mirrors, name), commit)) for name, commit in turns]


def _repository(mirrors: Path, name: str) -> Path:
    mirror = mirrors / name
    return mirror / "repo" if (mirror / "repo").is_dir() else mirror


def _changes(repository: Path, commit: str) -> tuple[Change, ...]:
    rows = _git(repository, "diff-tree", "-r", "--no-renames", "--name-status", f"{commit}^", commit).splitlines()
    fields = (row.split("\t", 1) for row in rows)
    return tuple(Change(path=path, kind=_KINDS.get(letter, ChangeKind.MODIFIED)) for letter, path in fields)


def _class(paths: list[str]) -> str:
    steering = [path for path in paths if file_class(path) is FileClass.TEST]
    both = [path for path in paths if file_class(path) is FileClass.BOTH]
    code = [path for path in paths if role(path) is Role.CODE and path not in steering]
    if code:
        return "code and tests" if steering else "code alone"
    if steering:
        return TESTS_ALONE
    return "manifests" if both else "neither: documents, configuration"


def _asked(project: Project, mirrors: Path, work: Path, commit: str, changes: tuple[Change, ...]) -> str:
    """What the receipt refuses or asks; '' for nothing."""
    clone = _clone(project, mirrors, work)
    _git(clone, "checkout", "-q", "--force", "--detach", commit)
    git = open_repository(clone)
    assert isinstance(git, Git)
    notary = Notary(git, [VerifyCommand(argv=project.command, timeout=240)], mutants="auto")
    verdict = notary.verify(_git(clone, "rev-parse", f"{commit}^"), _git(clone, "rev-parse", commit))
    seen = seen_tests(verdict, changes, 1)
    if seen.unavailable:
        return f"unavailable: {seen.unavailable[-120:]}"
    refused = [run.output_tail[:160] for run in outcomes(verdict, seen) if run.outcome is ProofStatus.FAILED]
    if refused:
        return f"refused: {refused[0]!r}"
    return f"asked for {len(seen.questions)}: {next(iter(seen.questions.items()))}" if seen.questions else ""


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0, sys.argv[4:])
