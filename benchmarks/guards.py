"""Removes every guard, one at a time, and shows that a cheat test notices; writes benchmarks/guards.md.

    python benchmarks/guards.py [words of a guard's name ...]

Each guard is disabled in a temporary copy of the repository by one replacement of its own text; then only the cheat
tests mapped to it run, against a real server of that copy. A guard whose tests still pass is printed as SURVIVED and
ends the run with status 1.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/code_intel_server"
WORKERS = 2


@dataclass(frozen=True)
class Guard:
    """`old` is replaced by `new` in `file` (everywhere in it); `test` is what `-k` selects from tests/cheats."""

    name: str
    file: str
    old: str
    new: str
    test: str


JUDGE, READY, TASKS = "flow/judgement.py", "flow/handlers/ready.py", "flow/tasks.py"
DISPATCH, VERIFY, DELIVERY = "flow/dispatch.py", "flow/handlers/verification.py", "flow/handlers/delivery.py"
EXPLORE, GATES, INTAKE = "flow/handlers/exploration.py", "flow/handlers/gates.py", "flow/handlers/intake.py"
STORE, SESSIONS, MERGES = "workspace/checkpoints.py", "tools/sessions.py", "workspace/merges.py"

GUARDS = (
    # the tree
    Guard(
        "changes outside the writable set",
        JUDGE,
        "    if strays:\n",
        "    if False:\n",
        "behind_the_tools and by_shell",
    ),
    Guard(
        "new files only beside explored ones",
        "flow/writable.py",
        "    if not exists and dirname(path) in {dirname(known) for known in (*explored, *added)}:",
        "    if not exists:",
        "new_file_where_nothing",
    ),
    Guard("nothing written before READY", READY, "    if early:\n", "    if False:\n", "before_it_was_understood"),
    Guard(
        "the tree at each report",
        READY,
        "    refuse_unexplored(state, ports, now)\n    state.tasks = tuple(",
        "    state.tasks = tuple(",
        "behind_the_tools and by_shell",
    ),
    Guard(
        "the tree at completion",
        READY,
        "    refuse_unexplored(state, ports, now)\n    state.trees.judged = now\n    quick_end",
        "    state.trees.judged = now\n    quick_end",
        "after_the_last_report",
    ),
    Guard(
        "the tree at the verdict",
        VERIFY,
        '    refuse_unexplored(state, ports, now, f"failures.POST_IMPL_VERIFY.{which}")\n',
        "    del which\n",
        "before_the_verdict",
    ),
    Guard(
        "the tree at the commit",
        DELIVERY,
        '    if strays:\n        raise Rejected("failures.PRE_COMMIT',
        '    if False:\n        raise Rejected("failures.PRE_COMMIT',
        "after_the_receipt",
    ),
    Guard(
        "the tree after the commit",
        DELIVERY,
        "    if now != state.trees.committed:",
        "    if False:",
        "changed_after_the_commit",
    ),
    Guard(
        "the change time in the stat cache",
        "workspace/reading_room.py",
        '    "core.precomposeunicode",\n',
        '    "core.precomposeunicode",\n    "core.trustctime",\n    "core.checkstat",\n',
        "settings_of_the_stat_cache",
    ),
    # evidence
    Guard(
        "evidence touches a changed hunk",
        JUDGE,
        '            raise Rejected("failures.READY.checklist_evidence_unchanged", evidence=item.evidence, item=item.item)',
        '            return ""',
        "unmade_change",
    ),
    Guard(
        "evidence is no stub",
        JUDGE,
        '            raise Rejected("failures.READY.checklist_evidence_empty_impl", evidence=item.evidence)',
        "            pass",
        "an_empty_implementation and pass",
    ),
    Guard(
        "weak evidence needs a reason",
        JUDGE,
        "        if what and not has_reason(item):",
        "        if False:",
        "an_empty_implementation and comment",
    ),
    Guard(
        "white space proves nothing",
        JUDGE,
        "        telling = [hunk for hunk in touched if not self._only_white_space(change, hunk)]",
        "        telling = touched",
        "white_space_only",
    ),
    Guard(
        "a range proves one item",
        JUDGE,
        "        twin = None if has_reason(item) else self._twin(used)",
        "        twin = None",
        "the_range_of_another_task",
    ),
    Guard(
        "padding adds nothing",
        JUDGE,
        "        if not mine - frozenset().union(*taken.values()):",
        "        if any(_same(other, used) for other in others):",
        "padded",
    ),
    Guard(
        "used ranges are followed",
        JUDGE,
        "        return followed(self._since[then].get(other.path, ()), other.start, other.end)",
        "        return followed((), other.start, other.end)",
        "moved_down",
    ),
    Guard(
        "evidence is inside the file",
        JUDGE,
        "        if not 1 <= reference.start <= reference.end <= total:",
        "        if False:",
        "no_changed_line and 99",
    ),
    Guard(
        "git's and our own files are no evidence",
        JUDGE,
        '_NOT_THE_PROJECTS = (".git", *(f"{FOLDER}/{name}" for name in SERVER_WRITES))',
        "_NOT_THE_PROJECTS: tuple[str, ...] = ()",
        "gits_or_the_servers_own",
    ),
    Guard(
        "ignored files need a reason",
        JUDGE,
        '            return "a file that git ignores, so nobody can tell whether it was changed"',
        '            return ""',
        "ignored_file_that_nobody",
    ),
    # plans and reports
    Guard(
        "completed is what was recorded",
        TASKS,
        "        if task.status is TaskStatus.COMPLETED and not completed:",
        "        if False:",
        "declare_its_tasks or replanned_as",
    ),
    Guard(
        "every task has a checklist",
        TASKS,
        "            _check_checklist(task)",
        "            pass",
        "without_a_checklist",
    ),
    Guard(
        "reports in order",
        TASKS,
        "    if expected is not None and expected.id != task_id:",
        "    if False:",
        "second_task_cannot",
    ),
    Guard(
        "the items of the plan",
        READY,
        "    if Counter(planned) != Counter(item.item for item in reported):",
        "    if False:",
        "leave_out_or_reword",
    ),
    Guard(
        "skipping needs a reason",
        READY,
        "        if item.status is ItemStatus.SKIPPED and not has_reason(item):",
        "        if False:",
        "skipped_item_without",
    ),
    Guard("no completion with pending tasks", READY, "    if pending:\n", "    if False:\n", "with_a_task_pending"),
    # tools
    Guard("required tools really ran", DISPATCH, "    if missing:\n", "    if False:\n", "only_named"),
    Guard(
        "two distinct lookups",
        DISPATCH,
        "    if any(len(called & _members(group)) < group.at_least for group in groups):",
        "    if False:",
        "calls_that_failed",
    ),
    Guard(
        "a write check a report",
        DISPATCH,
        "        return state.marks.report\n",
        "        return 0\n",
        "first_task_used_for_the_second",
    ),
    Guard(
        "a review a round",
        DISPATCH,
        "    return state.marks.round if place.phase is Phase.PRE_COMMIT else 0",
        "    return 0",
        "review_of_the_round_before",
    ),
    Guard(
        "skipping all with an unchanged tree",
        DISPATCH,
        "    return skipped and turn.ports.tree.snapshot() == turn.state.trees.judged",
        "    return skipped",
        "everything_skipped",
    ),
    Guard(
        "failed calls do not count",
        "tools/guard.py",
        '            self._note(tool, active, "refused", {})',
        '            self._note(tool, active, "ok", {})',
        "calls_that_failed",
    ),
    Guard(
        "tools only in their phases",
        "tools/guard.py",
        "        if key is not None:",
        "        if False:",
        "widened_outside_ready",
    ),
    Guard(
        "widening needs a reason",
        "tools/writing.py",
        "        if len(reason.strip()) < REASON_LENGTH:",
        "        if False:",
        "widened_without_a_reason",
    ),
    # phases
    Guard(
        "exploration names files and findings",
        EXPLORE,
        "    if not payload.explored_files or not any(finding.strip() for finding in payload.findings):",
        "    if False:",
        "nothing_explored",
    ),
    Guard("explored files exist", EXPLORE, "    if missing:\n", "    if False:\n", "explored_that_do_not_exist"),
    Guard(
        "hypotheses rest on places or tools",
        EXPLORE,
        "        if not (_place_exists(turn, hypothesis.evidence) or _names_a_tool(hypothesis.evidence, tools)):",
        "        if False:",
        "place_that_does_not_exist",
    ),
    Guard(
        "gates need a reason",
        GATES,
        "    if len(reason.strip()) < REASON_LENGTH:",
        "    if False:",
        "without_a_reason and gate",
    ),
    Guard(
        "quotes are the user's",
        INTAKE,
        "        if not quotes(slot.quote, state.query):",
        "        if False:",
        "never_said",
    ),
    Guard("verifiers exist", VERIFY, "    if verifier is None:\n", "    if False:\n", "another_form_than_asked"),
    Guard("failed tasks are registered", VERIFY, "    if unknown:\n", "    if False:\n", "another_form_than_asked"),
    Guard(
        "a failure has details",
        VERIFY,
        "    if not payload.passed and not payload.details.strip():",
        "    if False:",
        "another_form_than_asked",
    ),
    Guard(
        "one session a process",
        SESSIONS,
        "            if self.active is not None and not wanted.clean:",
        "            if False:",
        "second_start",
    ),
    # proofs
    Guard(
        "a failing command beats the verdict",
        VERIFY,
        "    if proof.status is ProofStatus.FAILED:\n        raise",
        "    if False:\n        raise",
        "typed_while_the_command_fails",
    ),
    Guard(
        "the receipt is bound to the tree",
        DELIVERY,
        "    if not state.road.runs(POST_IMPL_VERIFY) or (state.receipt is not None and state.receipt.tree == now):",
        "    if not state.road.runs(POST_IMPL_VERIFY) or state.receipt is not None:",
        "broken_after_it_was_proven",
    ),
    Guard(
        "kept files stay as reviewed",
        DELIVERY,
        "    _refuse_unreviewed(turn, request, now, proven)\n    voided",
        "    voided",
        "rewrites_the_reviewed",
    ),
    Guard(
        "only trusted commands run",
        "workspace/proofs.py",
        "            elif not trusted:",
        "            elif False:",
        "never_trusted",
    ),
    Guard(
        "approvals are signed",
        "workspace/trust.py",
        "            if not hmac.compare_digest(str(mac).encode(), self._mac(path, str(data)).encode()):",
        "            if False:",
        "forged_without",
    ),
    Guard(
        "an edited configuration does not serve",
        SESSIONS,
        '        if kit.digests().get(_CONFIG, "") != state.digests.get(_CONFIG, ""):',
        "        if False:",
        "taken_out_and_the_server_killed",
    ),
    # review and commit
    Guard("every changed file is reviewed", DELIVERY, "    if missing:\n", "    if False:\n", "left_out_of_the_review"),
    Guard(
        "weakened tests need a reason",
        DELIVERY,
        "        if weak and not given:",
        "        if False:",
        "weakened_test_is_kept and assertion",
    ),
    Guard(
        "a test file moved away counts as removed",
        "codebase/evidence.py",
        "        if old_path and is_test_file(old_path) and not is_test_file(path):",
        "        if False:",
        "moved_out_of_sight",
    ),
    Guard(
        "review procedures exist",
        DELIVERY,
        '    if turn.ports.documents.find_prompt("review_prompts", payload.review_prompt_used) is None:',
        "    if False:",
        "procedure_that_does_not_exist",
    ),
    Guard(
        "HEAD is where it was left",
        "workspace/commits.py",
        "        if not current or current != self._branch or tip != self._request.expected_tip:",
        "        if False:",
        "moved_before_the_commit or switched_before",
    ),
    Guard(
        "what filters and hooks made is named",
        DELIVERY,
        "    state.altered = [*ports.tree.altered(oid, request.keep, reviewed)]",
        "    state.altered = []",
        "commits_something_else",
    ),
    Guard(
        "a commit is held against what was reviewed",
        DELIVERY,
        "    state.altered = [*ports.tree.altered(oid, request.keep, reviewed)]",
        "    state.altered = [*ports.tree.altered(oid, request.keep, ports.tree.snapshot())]",
        "rewrites_what_was_reviewed",
    ),
    Guard(
        "the tip that is merged",
        MERGES,
        "    if not found:\n        raise",
        "    if not found:\n        return HandMerges()\n        raise",
        "moved_before_the_merge",
    ),
    Guard(
        "a hand-made merge that holds more is named",
        MERGES,
        "    if by_hand.unreviewed:\n",
        "    if False:\n",
        "merge_by_hand_that_holds or merge_by_hand_that_drops",
    ),
    Guard(
        "a hand-made merge is proven",
        DELIVERY,
        '        raise proof_failed("failures.MERGE.proof_failed", proof)',
        "        pass",
        "merge_by_hand_that_breaks",
    ),
    Guard(
        "a hand-made merge is proven as committed",
        DELIVERY,
        '    if strays:\n        raise Rejected("failures.MERGE.uncommitted"',
        '    if False:\n        raise Rejected("failures.MERGE.uncommitted"',
        "merge_by_hand_that_breaks",
    ),
    Guard(
        "no object stands in for another",
        "workspace/git.py",
        '        "GIT_NO_REPLACE_OBJECTS": "1",  # what was reviewed is what is merged, whatever stands in refs/replace\n',
        "",
        "stands_in_for",
    ),
    Guard(
        "trailers stay in the message",
        "workspace/messages.py",
        "    return with_trailers(message, rows) if rows else message",
        "    return message",
        "takes_the_trailers_out",
    ),
    Guard(
        "merge drivers are named",
        MERGES,
        "    if not drivers or git.is_ancestor(base, tip):",
        "    if True:",
        "merge_driver_that",
    ),
    Guard(
        "a file is decided once",
        DELIVERY,
        "    if known is not None and known.decision != entry.decision:",
        "    if False:",
        "that_is_decided_twice",
    ),
    # records
    Guard(
        "checkpoints have a checksum",
        STORE,
        '        if not hmac.compare_digest(hashlib.sha256(rest).hexdigest(), seal["sum"].decode()):',
        "        if False:",
        "every_generation_edited",
    ),
    Guard(
        "checkpoints are signed",
        STORE,
        '        if not hmac.compare_digest(self._mac(rest), seal["mac"].decode()):',
        "        if False:",
        "checksum_was_made_to_fit",
    ),
    Guard(
        "a checkpoint is its session's",
        STORE,
        "        if owner != session_id or type(generation) is not int:",
        "        if False:",
        "renamed_to_be_another",
    ),
    Guard(
        "no checkpoint behind a link",
        STORE,
        "        if aimed_elsewhere(self._folder):\n            raise unsafe_folder(self._folder)\n        path",
        "        path",
        "aimed_elsewhere_by_a_link",
    ),
    Guard(
        "ledger lines are signed",
        "workspace/journals.py",
        "        if not hmac.compare_digest(mac, self._mac(content)):",
        "        if False:",
        "line_of_the_ledger",
    ),
    Guard(
        "an edited contract does not serve",
        SESSIONS,
        '        if kit.digests().get(_CONTRACT, "") != state.digests.get(_CONTRACT, ""):',
        "        if False:",
        "contract_written_during_the_session_and",
    ),
    Guard(
        "one client a project",
        "workspace/lock.py",
        "fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        "second_client_while",
    ),
    Guard(
        "a payload counts once",
        DISPATCH,
        "        if state.last_submit is not None and state.last_submit.digest == digest(payload):",
        "        if False:",
        "commit_sent_again",
    ),
    Guard(
        "hidden characters are shown",
        "printable.py",
        "    return _HIDDEN.sub(lambda match: _escape(ord(match[0])), text)",
        "    return text",
        "terminal_codes",
    ),
)


def main() -> int:
    """Try every guard (or those named), write the table of a whole run; 1 where one survived."""
    wanted = [guard for guard in GUARDS if not sys.argv[1:] or any(word in guard.name for word in sys.argv[1:])]
    with ThreadPoolExecutor(WORKERS) as pool:
        rows = list(pool.map(_tried, wanted))
    survived = [guard for guard, (failed, _) in zip(wanted, rows, strict=True) if not failed]
    if len(wanted) == len(GUARDS):
        (ROOT / "benchmarks/guards.md").write_text(_page(rows), encoding="utf-8")
    for guard in survived:
        print("SURVIVED", guard.name)
    print(f"{len(wanted) - len(survived)} of {len(wanted)} noticed")
    return int(bool(survived))


def _tried(guard: Guard) -> tuple[int, int]:
    """How many of the mapped tests failed, and how many ran, without the guard."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "copy")
        for name in ("src", "tests", "templates", "pyproject.toml", "README.md"):
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / name)
        file = copy / PACKAGE / guard.file
        text = file.read_text(encoding="utf-8")
        if guard.old not in text:
            raise SystemExit(f"{guard.name}: {guard.file} does not hold {guard.old!r}")
        file.write_text(text.replace(guard.old, guard.new), encoding="utf-8")
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "tests/cheats",
                "-q",
                "-k",
                guard.test,
                f"--basetemp={scratch}/t",
                "-p",
                "no:cacheprovider",
            ],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        failed = _number(done.stdout, "failed") + _number(done.stdout, "error") + _number(done.stdout, "errors")
        ran = failed + _number(done.stdout, "passed")
        print(f"{'noticed ' if failed else 'SURVIVED'} {guard.name} ({failed} of {ran})", flush=True)
        if not ran:
            raise SystemExit(f"{guard.name}: -k {guard.test!r} selects nothing\n{done.stdout[-2000:]}")
        return failed, ran


def _number(output: str, word: str) -> int:
    """The count before `word` in the last line of a test run."""
    words = output.strip().splitlines()[-1].replace(",", "").split() if output.strip() else []
    return next((int(words[at - 1]) for at, found in enumerate(words) if found == word and at), 0)


def _page(rows: list[tuple[int, int]]) -> str:
    noticed = sum(bool(failed) for failed, _ in rows)
    lines = [
        "# The guards, removed one at a time",
        "",
        "Generated by `benchmarks/guards.py`: each guard is switched off in a copy, and the cheat tests mapped to it run against a",
        f"real server of that copy. **{noticed} of {len(GUARDS)} are noticed.**",
        "",
        "| guard | file | cheat tests (`-k`) | failing without it |",
        "|---|---|---|---|",
    ]
    for guard, (failed, ran) in zip(GUARDS, rows, strict=True):
        lines.append(f"| {guard.name} | `{guard.file}` | `{guard.test}` | {failed} of {ran} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
