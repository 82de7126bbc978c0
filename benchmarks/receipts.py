"""Receipts of real fix commits beside what plain runners say, and what they cost in processor time.

    python benchmarks/receipts.py MIRRORS WORK [PROJECT or COMMIT …]

MIRRORS holds bare clones `owner+name/repo` or `owner+name`, WORK the working clones with their environments (`.venv`,
`node_modules`), made where they are missing. Each commit is judged twice:

by hand   the project's own clone is switched by `git checkout`: to the parent, to the commit, to the commit with the parent's
          test files, to the parent with the commit's test files; the plain runner reports in its own format (JUnit, JSON).
notary    `Notary.verify` on the same commit, with the base's run at hand, as a session has it.
"""

import json
import os
import re
import resource
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as Xml

from measuring import median

from code_intel_server.receipts.notary import Notary
from code_intel_server.workspace.git.repository import Git, open_repository
from code_intel_server.workspace.project.config import VerifyCommand

Outcomes = dict[str, str]
TIMEOUT = 240.0
STALL = 20.0
_TESTS = re.compile(r"(^|/)tests?/|_test\.go$|(^|/)test_\w+\.py$")
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
PYTEST = (".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
GO = ("go", "test", "./...")
MOCHA = ("node_modules/.bin/mocha", "--require", "test/support/env", "--check-leaks", "test/", "test/acceptance/")


@dataclass(frozen=True)
class Project:
    """A repository, its command, what its environment is made by, and the commits."""

    name: str
    command: tuple[str, ...]
    make: tuple[str, ...]
    commits: tuple[str, ...]


def _venv(*packages: str) -> tuple[str, ...]:
    wanted = " ".join(("-e .", "pytest==8.4.2", "pytest-timeout==2.4.0", *packages))
    return (f"uv venv -q --clear .venv && uv pip install -q --python .venv/bin/python {wanted}",)


PROJECTS = (
    Project("pallets+click", PYTEST, _venv(), ("07c909f2", "3495fba1", "bec59289", "762c97ee")),
    Project(
        "python-attrs+attrs",
        PYTEST,
        _venv("hypothesis", "cloudpickle"),
        ("4b5b295b", "97f8d175", "af9c5109", "5aa76a44"),
    ),
    Project(
        "Kludex+starlette",
        PYTEST,
        _venv("anyio==4.12.0", "itsdangerous", "jinja2", "python-multipart", "pyyaml", "httpx", "httpx2", "trio"),
        ("014f0e2e", "dba1c4ba", "1a2f9729"),
    ),
    Project("lepture+mistune", PYTEST, _venv(), ("534127f", "7aa49ec", "86f9fd1", "e12f0d3")),
    Project("Textualize+rich", PYTEST, _venv("attrs"), ("469de490", "87e7ca27")),
    Project(
        "expressjs+express", MOCHA, ("npm install --silent --no-audit --no-fund",), ("21834a76", "18e5985b", "c9ecf7b6")
    ),
    Project("go-chi+chi", GO, (), ("87c34a2", "3893906", "29164f0", "1089a7c")),
    Project("yuin+goldmark", GO, (), ("379bf24", "cb46bbc")),
)


def main(mirrors: Path, work: Path, wanted: list[str]) -> None:
    """Judge every commit, and print its row."""
    for project in PROJECTS:
        chosen = [one for one in project.commits if not wanted or {project.name, one} & {*wanted}]
        clone = _clone(project, mirrors, work) if chosen else work
        for commit in chosen:
            print(_judge(project, clone, commit), flush=True)


def _clone(project: Project, mirrors: Path, work: Path) -> Path:
    clone = work / project.name
    if clone.is_dir():
        return clone
    mirror = mirrors / project.name
    _git(
        work,
        "clone",
        "-q",
        "--shared",
        "--no-checkout",
        str(mirror / "repo" if (mirror / "repo").is_dir() else mirror),
        str(clone),
    )
    _git(clone, "checkout", "-q", "--detach", project.commits[0])
    (clone / ".git" / "info" / "exclude").write_text(".venv\nnode_modules\npackage-lock.json\n*.egg-info\n")
    for line in project.make:
        subprocess.run(line, shell=True, cwd=clone, check=True)
    return clone


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _judge(project: Project, clone: Path, commit: str) -> str:
    plain, processor = _by_hand(project, clone, commit)
    _git(clone, "checkout", "-q", "--force", "--detach", commit)
    git = open_repository(clone)
    assert isinstance(git, Git)
    notary = Notary(git, [VerifyCommand(argv=project.command, timeout=TIMEOUT)], stall=STALL)
    new, base = _git(clone, "rev-parse", commit), _git(clone, "rev-parse", f"{commit}^")
    before = notary.run_base(base)
    began = _processor()
    verdict = notary.verify(base, new, before=before)
    taken = _processor() - began
    found = verdict.receipt
    said = {"fail_to_pass": found.fail_to_pass, "pass_to_pass": found.pass_to_pass}
    same = []
    for name, ids in said.items():
        ours, theirs = Counter(_comparable(ids)), plain[name]
        same.append(f"{len(ids)}" if ours == theirs else f"**{len(ids)}**, by hand {theirs.total()}")
        if ours != theirs:
            differing = [*(ours - theirs), *(theirs - ours)][:6]
            print(f"  {commit} {name}: ours alone {(ours - theirs).total()}, {differing}", file=sys.stderr)
    asked = "yes" if verdict.good else "; ".join((*verdict.problems, *found.failing, *found.unexplained))[:80]
    return (
        f"| {project.name.replace('+', '/')} | {commit} | {same[0]} | {same[1]} | {taken / processor:.2f} | {asked} |"
    )


def _comparable(ids: tuple[str, ...]) -> list[str]:
    """Ids as the plain reports spell them: without numbers of duplicates and UUIDs, folders of Python as packages."""
    plain = (_UUID.sub("uuid", re.sub(r" #\d+$", "", id_).replace(" > ", " ")) for id_ in ids)
    named = [re.sub(r"^(.+?)\.py::", lambda found: found[1].replace("/", ".") + "::", id_) for id_ in plain]
    return [id_.removeprefix("tests.") for id_ in named]


def _by_hand(project: Project, clone: Path, commit: str) -> tuple[dict[str, Counter[str]], float]:
    """What each list holds by hand, and the processor seconds of the plain command, the median of the four runs."""
    parent = f"{commit}^"
    changed = _git(clone, "diff", "--name-only", "--no-renames", parent, commit).splitlines()
    tests = [path for path in changed if _TESTS.search(path)]
    states = ((parent, "", []), (commit, "", []), (commit, parent, tests), (parent, commit, tests))
    (base, new, original, red), taken = zip(*(_plain(project, clone, *state) for state in states), strict=True)
    passed = {id_ for id_, outcome in base.items() if outcome == "passed"}
    turned = {id_ for id_, outcome in new.items() if outcome == "passed" and red.get(id_) != "passed"}
    fail_to_pass = {id_ for id_ in turned if id_ in red or id_ not in passed}
    kept = {id_ for id_ in passed if original.get(id_) == "passed"}
    lists = {"fail_to_pass": fail_to_pass, "pass_to_pass": kept}
    return {name: Counter(_comparable(tuple(ids))) for name, ids in lists.items()}, median(taken)


def _plain(project: Project, clone: Path, at: str, other: str, tests: list[str]) -> tuple[Outcomes, float]:
    _git(clone, "checkout", "-q", "--force", "--detach", at)
    _git(clone, "clean", "-fdq")
    for path in tests:
        there = subprocess.run(
            ["git", "checkout", "-q", other, "--", path], cwd=clone, check=False, capture_output=True
        )
        if there.returncode:
            (clone / path).unlink(missing_ok=True)
    runner = {PYTEST: _pytest, GO: _go, MOCHA: _mocha}[project.command]
    began = _processor()
    outcomes = runner(clone, project.command)
    return outcomes, _processor() - began


def _run(clone: Path, *command: str) -> str:
    try:
        done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


def _pytest(clone: Path, command: tuple[str, ...]) -> Outcomes:
    """By JUnit, which pytest writes at its end; a test that hangs is made to fail by pytest-timeout."""
    report = clone / ".git" / "report.xml"
    report.unlink(missing_ok=True)
    _run(clone, *command, f"--junitxml={report}", f"--timeout={STALL:g}", "--timeout-method=signal")
    if not report.exists():
        return {}
    found: Outcomes = {}
    for case in Xml.parse(report).iter("testcase"):
        classes = case.get("classname", "").split(".")
        upper = next((at for at, part in enumerate(classes) if part[:1].isupper()), len(classes))
        name = "::".join([".".join(classes[:upper]), *classes[upper:], case.get("name", "")])
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        found[name] = "passed" if not kinds else "skipped" if kinds == {"skipped"} else "failed"
    return found


def _go(clone: Path, command: tuple[str, ...]) -> Outcomes:
    found = {}
    for line in _run(clone, *command[:2], "-json", "-count=1", *command[2:]).splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if "Test" in event and event["Action"] in {"pass", "fail", "skip"}:
            outcome = {"pass": "passed", "fail": "failed", "skip": "skipped"}[event["Action"]]
            found[f"{event['Package']}:{event['Test']}"] = outcome
    return found


def _mocha(clone: Path, command: tuple[str, ...]) -> Outcomes:
    out = _run(clone, *command, "--reporter", "json")
    found: Outcomes = {}
    seen: Counter[str] = Counter()
    if "{" not in out:
        return found
    report = json.loads(out[out.index("{\n") :])
    ended = {kind: {json.dumps(test) for test in report[kind]} for kind in ("passes", "pending")}
    for test in report["tests"]:
        name = f"{os.path.relpath(test['file'], clone)} {test['fullTitle']}"
        seen[name] += 1
        text = json.dumps(test)
        outcome = "passed" if text in ended["passes"] else "skipped" if text in ended["pending"] else "failed"
        found[name if seen[name] == 1 else f"{name} #{seen[name]}"] = outcome
    return found


def _processor() -> float:
    """Processor seconds of this process and of all children that have ended."""
    used = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
