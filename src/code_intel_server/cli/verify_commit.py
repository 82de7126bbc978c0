"""`verify-commit`: run a commit's tests before and after it in clean checkouts, and compare with what the commit says (SPEC 4)."""

import argparse
import json
import re
import sys
from pathlib import Path

from code_intel_server import __version__
from code_intel_server.cli.console import Failed, guarded, parser, project_root
from code_intel_server.common.printable import printable
from code_intel_server.errors import Unavailable
from code_intel_server.receipts import STALL_SECONDS, UNEXPLAINED, Notary, RunComparison, Verdict, junit, sarif
from code_intel_server.workspace.git.repository import Git, open_repository, split_z
from code_intel_server.workspace.paths import Project
from code_intel_server.workspace.project.config import ConfigFile
from code_intel_server.workspace.project.trust import Approvals
from code_intel_server.workspace.values import BY_NO_ASSERTION, WHERE_SURVIVED, fail_to_pass_count

NOTHING_SEEN = 3
_SHOWN = 20
_SAID = ("insensitive", "removed", "failing_before", "flaky", "not_judged")
_ORIGINAL = "Code-Intel-Original-Tests"
_AS_IT_WAS_SAID = "because what they name is new"
"""What trailers of earlier servers say where ours say `BY_NO_ASSERTION`."""

_OF_MUTANTS = re.compile(rf"; \d{{1,9}} {WHERE_SURVIVED}(?=\))| \(\d{{1,9}} {WHERE_SURVIVED}\)")
"""What a commit says of a run that is not made everywhere, and that ends where its time is over."""


def main(arguments: list[str]) -> int:
    """Verify a commit; exit status 0 where it is good, 1 where not, 3 where nothing can be reported."""
    made = parser(
        "verify-commit",
        "Run the trusted verify commands in clean checkouts of a commit and of its parent, and say test by test what the"
        " commit changed. Exit status: 0 good, 1 a test fails or is no longer seen to pass, or the commit's trailers say"
        " otherwise, 3 nothing can be said.",
    )
    made.add_argument("revision", nargs="?", default="HEAD", metavar="REV", help="the commit (default: HEAD)")
    made.add_argument("--base", metavar="REV", help="what it is compared with (default: what its session began from)")
    made.add_argument(
        "--limit", type=float, metavar="SECONDS", help="for all runs (default: three times the commands')"
    )
    made.add_argument(
        "--stall",
        type=float,
        default=STALL_SECONDS,
        metavar="SECONDS",
        help=f"a test that takes longer hangs (default: {STALL_SECONDS:g})",
    )
    made.add_argument(
        "--borrow",
        action="append",
        default=[],
        metavar="NAME",
        help="an ignored file or folder that the commands need, beside borrowed_folders; may be repeated",
    )
    made.add_argument("--junit", type=Path, metavar="FILE", help="write the tests as JUnit XML")
    made.add_argument("--sarif", type=Path, metavar="FILE", help="write what is wrong as SARIF")
    made.add_argument("--all", action="store_true", help=f"list every test; else {_SHOWN} of a kind")
    options = made.parse_args(arguments)
    return guarded(lambda: _run(Project(project_root(options.project)), options))


def _run(project: Project, options: argparse.Namespace) -> int:
    git = open_repository(project.root)
    if isinstance(git, str):
        raise Failed(git)
    commit = _commit(git, options.revision)
    base = _commit(git, options.base or f"{_first_of_session(git, commit)}^1")
    config = ConfigFile.load(project.config_file)
    if not config.config.verify_commands:
        raise Failed(f"{project.config_file} has no verify_commands")
    if not Approvals().trusted(project.config_file, config.digest):
        raise Failed(f"{project.config_file} is not trusted: code-intel-server trust")
    commands = [one for one in config.config.verify_commands if not one.in_place]
    limit, borrow = (
        options.limit or config.config.verify_limit or None,
        (*config.config.borrowed_folders, *options.borrow),
    )
    mutants = config.config.verify_mutants
    notary = Notary(git, commands, limit=limit, stall=options.stall, borrow=borrow, tell=_tell, mutants=mutants)
    try:
        verdict = notary.verify(base, commit)
    except Unavailable as error:
        verdict = Verdict(RunComparison(), unavailable=f"no clean checkout: {error.params.get('output', error.key)}")
    except OSError as error:
        verdict = Verdict(RunComparison(), unavailable=f"no clean checkout: {error.strerror or error}")
    differing = _trailers(git, commit, verdict)
    explained = _explained(git, commit, verdict)
    good = not differing and (verdict.good or (explained and not (verdict.receipt.failing or verdict.problems)))
    if options.junit:
        options.junit.write_bytes(junit(verdict))
    if options.sarif:
        files = frozenset(split_z(git.must("ls-tree", "-r", "-z", "--name-only", commit)))
        content = sarif(verdict, __version__, files)
        options.sarif.write_text(json.dumps(content, indent=1), encoding="utf-8")
    _print(verdict, commit, base, differing, most=sys.maxsize if options.all else _SHOWN)
    if not verdict.unavailable:
        print(("good, with the reasons that the commit gives" if explained else "good") if good else "not good")
    if verdict.unavailable:
        return NOTHING_SEEN
    return 0 if good else 1


def _commit(git: Git, revision: str) -> str:
    found = git.oid(revision)
    if not found:
        raise Failed(f"there is no commit {printable(revision)}", status=2)
    return found


def _first_of_session(git: Git, commit: str) -> str:
    """The commit itself, or the earliest before it of the same session: what a commit says is said of all its session did."""
    (session,) = _claims_of(git, commit, "Code-Intel-Session")[:1] or ("",)
    if not re.fullmatch(r"[\w.-]+", session):
        return commit
    trailer = f"Code-Intel-Session: {session}"
    found = git.text("log", "--first-parent", "--fixed-strings", f"--grep={trailer}", "--format=%H", commit).split()
    return next((one for one in reversed(found) if session in _claims_of(git, one, "Code-Intel-Session")), commit)


def _tell(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)


def _trailers(git: Git, commit: str, verdict: Verdict) -> list[str]:
    """Where the commit's own trailers say otherwise than the runs."""
    found = verdict.receipt
    seen = {
        "Code-Intel-Fail-To-Pass": _fail_to_pass(found),
        "Code-Intel-Pass-To-Pass": f"{len(found.pass_to_pass)} of {found.passed_before}",
    }
    mutants = {id_ for run in verdict.runs.get("mutant", ()) for id_ in run.suite.outcomes}
    whole = bool(found.fail_to_pass) and mutants.issuperset(found.fail_to_pass)
    flaky, differing = _flaky(git, commit, found)
    for name, now in seen.items():
        for said in (one.replace(_AS_IT_WAS_SAID, BY_NO_ASSERTION) for one in _claims_of(git, commit, name)):
            shown, claimed = (now, said) if whole else (_OF_MUTANTS.sub("", one) for one in (now, said))
            agree = _agree(claimed, shown, flaky)
            differing += [] if agree else [f"{name}: the commit says {printable(said)}, the runs say {now}"]
    return differing


def _fail_to_pass(found: RunComparison) -> str:
    return fail_to_pass_count(*(len(ids) for ids in (found.fail_to_pass, found.new_names, found.survived)))


def _flaky(git: Git, commit: str, found: RunComparison) -> tuple[int, list[str]]:
    """By how many tests that pass at times counts may differ; where the commit names more of them than can be believed."""
    said = _claims_of(git, commit, "Code-Intel-Flaky")
    claimed = int(said[0]) if len(said) == 1 and said[0].isdecimal() else 0
    seen = len(found.flaky)
    if len(said) > 1 or (said and not claimed) or claimed > seen + max(1, found.passed_before // 20):
        return seen, [f"Code-Intel-Flaky: the commit says {printable(', '.join(said))}, the runs say {seen}"]
    return max(seen, claimed), []


def _agree(said: str, now: str, flaky: int) -> bool:
    """Whether two counts differ by no more than the tests that pass at times; what is in brackets may be left out."""
    forms = (now, now.partition(" (")[0], f"{now.partition('; ')[0]})")
    ours, theirs = ([int(number) for number in re.findall(r"\d{1,9}", text)] for text in (now, said))
    same_words = re.sub(r"\d", "", said) in {re.sub(r"\d", "", text) for text in forms}
    return same_words and all(abs(a - b) <= flaky for a, b in zip(ours, theirs, strict=False))


def _claims_of(git: Git, commit: str, name: str) -> list[str]:
    """What a commit's trailers of a name say, one each: a forger may add a second."""
    text = git.text("log", "-1", f"--format=%(trailers:key={name},valueonly,unfold)", commit)
    return [line.strip() for line in text.splitlines() if line.strip()]


def _explained(git: Git, commit: str, verdict: Verdict) -> bool:
    """Whether the commit gives a reason for at least as many tests as are not seen to pass any more."""
    found = verdict.receipt
    counts = [
        int(said.split()[0]) for said in _claims_of(git, commit, _ORIGINAL) if re.match(r"\d{1,6} with a reason", said)
    ]
    return bool(found.unexplained) and len(found.unexplained) <= sum(counts[:1])


def _print(verdict: Verdict, commit: str, base: str, differing: list[str], most: int) -> None:
    found = verdict.receipt
    print(f"{commit[:12]} against {base[:12]}, {verdict.seconds:.0f} s")
    if verdict.unavailable:
        print(f"unavailable: {printable(verdict.unavailable)}")
    elif verdict.exit_status_only:
        print("only exit statuses are known: no verify command said which tests it ran")
    else:
        print(f"fail_to_pass    {_fail_to_pass(found)}")
        print(f"pass_to_pass    {len(found.pass_to_pass)} of {found.passed_before}")
    for name in (*UNEXPLAINED, *_SAID):
        if ids := getattr(found, name):
            print(f"{name:<15} {len(ids)}")
    for name in ("fail_to_pass", "survived", *UNEXPLAINED, *_SAID):
        _list(name, getattr(found, name), most)
    for run, why in found.not_run.items():
        print(f"run '{run}': {printable(why)}")
    for text in (*differing, *verdict.problems):
        print(f"✗ {printable(text)}")
    unseen = (f"{path}: changed, and only tests mentioned it before" for path in verdict.uncompared)
    for text in (*verdict.notes, *unseen):
        print(f"  {printable(text)}")


def _list(name: str, ids: tuple[str, ...], most: int) -> None:
    if not ids:
        return
    print(f"\n{name}:")
    for id_ in ids[:most]:
        print(f"  {printable(id_)}")
    if len(ids) > most:
        print(f"  and {len(ids) - most} more (--all lists them)")
