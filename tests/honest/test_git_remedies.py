"""Refusals of git: each is provoked with real git through the server, and then what its own words name is done."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from code_intel_server.contract.loader import Contract
from tests.e2e.driver import Child, Fields, git
from tests.e2e.stage import APP, APP_DONE, Agent, Stage, plan, report, verdict
from tests.honest.test_remedies import command, commands

MESSAGES = Contract.load(None).texts.messages
FAMILY = "tool_errors.git."
MERGED = {"summary": "Merged."}
NOT_HERE = {
    "bad_name": "ids of sessions are the server's own, and a checkpoint with another is not obeyed",
    "changed_meanwhile": "a file has to change between two steps of one discard; tests/workspace/test_branches_commit.py",
    "filter_failed": "tests/honest/test_filters.py runs the commands that it names",
    "not_a_repository": "a session without git makes no branch, and one whose git is gone is not restored",
    "timed_out": "git has to hang for minutes; tests/workspace/test_branches_commit.py",
    "too_much_output": "git has to print more than 64 MiB; tests/workspace/test_git.py",
}
"""What a submit cannot be made to meet in a test, or meets elsewhere, and why."""


class Nameless(Agent):
    """A server to which only git's configuration can say who commits."""

    def _started(self, environment: Mapping[str, str]) -> Child:
        return super()._started(
            {name: value for name, value in environment.items() if not name.endswith(("_NAME", "_EMAIL"))}
        )


def at_plan(stage: Stage) -> Fields:
    stage.ready()
    return plan()


def at_commit(stage: Stage) -> Fields:
    stage.verified()
    return stage.commit()


def at_merge(stage: Stage) -> Fields:
    stage.committed()
    return MERGED


def over_the_users_edit(stage: Stage) -> Fields:
    stage.write("lib.py", "LIMIT = 12  # the user's, before the session\n")
    return at_plan(stage)


def on_a_branch_left_over(stage: Stage) -> Fields:
    stage.git("switch", "-qc", "llm_task_20250101_000000")
    stage.begin(fast=True, no_doc=True)
    return {"choice": "delete"}


def with_another_line_end(stage: Stage) -> Fields:
    stage.planned()
    stage.edit(text=APP_DONE.replace("2\n", "2\r\n", 1))
    stage.accepted_list(report(), {"summary": "All tasks are done."})
    stage.accepted(**verdict())
    return stage.commit()


def discarding_a_pipe(stage: Stage) -> Fields:
    stage.verified("app.py", "lib.py")
    (stage.root / "lib.py").unlink()
    os.mkfifo(stage.root / "lib.py")
    return stage.commit({"path": "lib.py", "decision": "discard", "reason": "It is not needed after all."})


def with_a_git_of_its_own(stage: Stage) -> Fields:
    place = installed(stage).parent
    place.mkdir()
    install(stage)
    use(stage, Agent(stage.root, PATH=str(place)))
    return at_plan(stage)


def without_a_name(stage: Stage) -> Fields:
    payload = at_commit(stage)
    use(stage, Nameless(stage.root))
    stage.call("get_session_status")
    return payload


def nothing(_stage: Stage, _said: str = "") -> None:
    """Where it was refused it was so from the start, or only another payload is sent."""


def use(stage: Stage, agent: Agent) -> None:
    stage.agent.close()
    stage.agent = agent


def installed(stage: Stage) -> Path:
    return stage.root.parent / "bin" / "git"


def install(stage: Stage, _said: str = "") -> None:
    installed(stage).symlink_to(shutil.which("git") or "")


def task(stage: Stage) -> str:
    """The session's branch."""
    return f"llm_task_{stage.call('get_session_status')['session_id']}"


def by(*arguments: str) -> Callable[..., object]:
    """A command of git."""
    return lambda stage, _said="": stage.git(*arguments)


def renamed(path: str, to: str) -> Callable[..., object]:
    return lambda stage, _said="": (stage.root / path).rename(stage.root / to)


def removed(*paths: str) -> Callable[..., object]:
    return lambda stage, _said: [(stage.root / path).unlink() for path in paths]


def hook(name: str, script: str) -> Callable[[Stage], object]:
    return lambda stage: stage.write(f".git/hooks/{name}", f"#!/bin/sh\n{script}\n").chmod(0o755)


def printed(verb: str) -> Callable[[Stage, str], object]:
    """The command of git that the refusal prints."""
    return lambda stage, said: stage.git(*command(said, verb))


def printed_in_shell(stage: Stage, said: str) -> None:
    [found] = re.findall(r"`(rm [^`]+)`", said)
    subprocess.run(shlex.split(found), cwd=stage.root, check=True)


def identified(stage: Stage, said: str) -> None:
    for words in commands(said, "config"):
        stage.git(*words, "test@example.invalid")


def of_reflog(wanted: str, *then: str) -> Callable[[Stage, str], object]:
    """The branch is made again where the reflog, which the refusal prints, says that it stood."""

    def restore(stage: Stage, said: str) -> None:
        assert "`git reflog`" in said
        [row] = [row for row in stage.git("reflog").splitlines() if wanted in row]
        found = re.search(r"branch (\S+) does not exist", said)
        assert found
        stage.git("branch", found[1], row.split()[0])
        if then:
            stage.git(*then, found[1])

    return restore


def move_base(path: str, text: str) -> Callable[[Stage], object]:
    """Somebody commits to the base in another worktree."""

    def move(stage: Stage) -> None:
        away = stage.root.parent / "away"
        stage.git("worktree", "add", "-q", str(away), "main")
        (away / path).write_text(text, encoding="utf-8")
        git(away, "add", "-A")
        git(away, "commit", "-qm", "Base moved")
        stage.git("worktree", "remove", str(away))

    return move


def both(*parts: Callable[[Stage], object]) -> Callable[[Stage], object]:
    return lambda stage: [part(stage) for part in parts]


def begin_a_merge(stage: Stage) -> None:
    other = stage.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "Other").strip()
    stage.git("merge", "-q", "-s", "ours", "--no-commit", "--no-ff", other)


def begin_anew(stage: Stage) -> None:
    stage.git("update-ref", "refs/heads/main", stage.git("commit-tree", "HEAD^{tree}", "-m", "Anew").strip())


def resolve(stage: Stage, _said: str) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        stage.git("merge", "main")
    stage.write("app.py", APP_DONE)
    stage.git("commit", "-qam", "Resolved")


def link_away(stage: Stage) -> None:
    (stage.root / ".git/code-intel").rename(stage.root.parent / "away")
    (stage.root / ".git/code-intel").symlink_to(stage.root.parent / "away")


@dataclass(frozen=True)
class Row:
    """A refusal: where a submit meets it, how it comes about, the words that say what to do, and that being done.

    The same is sent again then, or `then`.
    """

    key: str
    where: Callable[[Stage], Fields]
    trouble: Callable[[Stage], object]
    says: str
    done: Callable[[Stage, str], object]
    then: Fields | None = None

    def __str__(self) -> str:
        return self.key


AGREED = "test -e .git/agreed || { echo 'touch .git/agreed first'; exit 1; }"
MORE = "git update-ref refs/heads/main $(git commit-tree -p main -m More main^{tree})"
WRITE = '[ "$1" = committed ] && echo mine >late.txt; exit 0'
LATE = move_base("late.txt", "theirs\n")
ROWS = (
    Row("missing", with_a_git_of_its_own, lambda stage: installed(stage).unlink(), "install git", install),
    Row("failed", at_plan, renamed(".git/HEAD", ".git/HEAD.away"), "put right", renamed(".git/HEAD.away", ".git/HEAD")),
    Row("folder_unsafe", at_plan, link_away, "remove it", removed(".git/code-intel")),
    Row("index_locked", at_plan, lambda stage: stage.write(".git/index.lock", ""), "remove that file", removed(".git/index.lock")),
    Row("identity_missing", without_a_name, both(by("config", "--remove-section", "user"), by("config", "user.useConfigOnly", "true")), "git config user.name", identified),
    Row("blocked", at_plan, by("switch", "-q", "--detach"), "check out a branch first", by("switch", "-q", "main")),
    Row("branch_exists", at_plan, lambda stage: stage.git("branch", task(stage)), "rename that branch", lambda stage, _: stage.git("branch", "-m", task(stage), "mine")),
    Row("base_unknown", on_a_branch_left_over, nothing, "Choose 'continue'", nothing, {"choice": "continue"}),
    Row("base_unknown", on_a_branch_left_over, nothing, "switch to the right branch", by("switch", "-q", "main")),
    Row("dirty", over_the_users_edit, nothing, "commit or undo them", by("commit", "-qam", "Mine")),
    Row("hook_failed", at_commit, hook("pre-commit", AGREED), "is put right", lambda stage, _: stage.write(".git/agreed", "")),
    Row("signing_failed", at_commit, both(by("config", "commit.gpgSign", "true"), by("config", "gpg.program", "false")), "No commit is made unsigned", printed("config")),
    Row("staging_failed", with_another_line_end, both(by("config", "core.autocrlf", "input"), by("config", "core.safecrlf", "true")), "put right", by("config", "core.safecrlf", "false")),
    Row("special_file", discarding_a_pipe, nothing, "Remove it", printed_in_shell),
    Row("in_progress", at_commit, begin_a_merge, "finish or abort it", by("merge", "--abort")),
    Row("head_moved", at_merge, by("switch", "-q", "main"), "run `git switch", printed("switch")),
    Row("held_elsewhere", at_merge, by("worktree", "add", "-q", "../other", "main"), "switch that worktree to another branch", by("-C", "../other", "switch", "-qc", "another")),
    Row("in_the_way", at_merge, both(LATE, lambda stage: stage.write("late.txt", "mine\n")), "move or rename", renamed("late.txt", "mine.txt")),
    Row("conflict", at_merge, move_base("app.py", APP.replace("return 1", "return 3")), "resolve, commit there", resolve),
    Row("merge_impossible", at_merge, begin_anew, "put right", by("branch", "-f", "main", "HEAD^")),
    Row("base_missing", at_merge, by("branch", "-D", "main"), "restore that branch", of_reflog("from main to")),
    Row("branch_missing", at_merge, both(by("switch", "-q", "main"), by("branch", "-D", "@{-1}")), "and to switch to it", of_reflog("commit: ", "switch", "-q")),
    Row("base_moving", at_merge, hook("commit-msg", MORE), "other process has ended", removed(".git/hooks/commit-msg")),
    Row("switch_failed", at_merge, both(LATE, hook("reference-transaction", WRITE)), "resolve what git names", removed(".git/hooks/reference-transaction", "late.txt")),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_what_git_refuses_is_put_right_as_it_says(stage: Stage, row: Row) -> None:
    payload = row.where(stage)
    row.trouble(stage)
    refused = stage.agent.submit(**payload)
    assert refused["success"] is False
    said = f"{refused['message']} {refused['remedy']}"
    message = MESSAGES[FAMILY + row.key]
    template = re.sub(r"\\{\w+\\}", ".*", re.escape(message.text))
    assert row.key == refused.get("reason") or re.fullmatch(template, refused["message"], re.DOTALL), said
    assert str(message.instruction).removesuffix(".") in said and row.says in said, said
    around = re.search(r"Files and base branch|When the user has", said)
    assert around is None or said.index(row.says) < around.start(), "it follows the cause that it is about"
    row.done(stage, said)
    stage.accepted(**(row.then or payload))


def test_every_refusal_of_git_is_put_right_here_or_says_why_not() -> None:
    keys = {key.removeprefix(FAMILY) for key in MESSAGES if key.startswith(FAMILY)}
    rows = {row.key for row in ROWS}
    assert rows | NOT_HERE.keys() == keys and rows.isdisjoint(NOT_HERE)
