"""Remedies that name a command of git: the test runs exactly that command, and the session goes on without a loss."""

import re
import shlex
from collections.abc import Callable

import pytest

from tests.cheats.test_git import amend, commit_more
from tests.e2e.stage import APP_DONE, Stage, report, verdict


def commands(remedy: str, verb: str) -> list[list[str]]:
    """The git commands of a kind that a remedy names, as their words."""
    return [shlex.split(found) for found in re.findall(rf"`git ({verb} [^`]+)`", remedy)]


def command(remedy: str, verb: str) -> list[str]:
    """The one that it names."""
    [found] = commands(remedy, verb)
    return found


@pytest.mark.parametrize("more", ["", "amended"])
def test_work_that_somebody_committed_on_the_task_branch_is_taken_back_and_committed_by_the_server(
    stage: Stage, more: str
) -> None:
    """Found by a review: the only ways were to give the session up, or a move of the branch that nobody spelled out."""
    stage.planned()
    stage.edit()
    stage.git("commit", "-qam", "By hand")
    if more:
        stage.git("commit", "-q", "--amend", "-m", "By hand again")
    stage.accepted_list(report(), {"summary": "All tasks are done."})
    stage.accepted(**verdict())
    payload = stage.commit()
    by_hand = stage.git("rev-parse", "HEAD").strip()
    answer = stage.refused("head_moved", **payload)
    stage.git(*command(answer["remedy"], "reset"))
    assert stage.read("app.py") == APP_DONE
    assert stage.accepted(**payload)["phase"] == "MERGE"
    assert stage.git("rev-parse", "HEAD^").strip() == stage.git("rev-parse", "main").strip()
    assert "Code-Intel-Session" in stage.git("log", "-1", "--format=%B")
    assert by_hand in stage.git("reflog", "--format=%H"), "the commit by hand is in the reflog, as the remedy says"
    assert "reflog" in answer["remedy"]
    assert stage.accepted(summary="Merged.")["phase"] == "SESSION_COMPLETE"


def test_the_branch_that_was_switched_before_the_commit_is_switched_back_as_the_remedy_says(stage: Stage) -> None:
    stage.verified()
    stage.git("switch", "-q", "-c", "elsewhere")
    payload = stage.commit()
    answer = stage.refused("head_moved", **payload)
    stage.git(*command(answer["remedy"], "switch"))
    assert stage.accepted(**payload)["phase"] == "MERGE"


@pytest.mark.parametrize("move", [commit_more, amend])
def test_commits_on_the_task_branch_before_the_merge_are_taken_off_as_the_remedy_says(
    stage: Stage, move: Callable[[Stage], None]
) -> None:
    stage.committed()
    move(stage)
    answer = stage.refused("somebody has committed to it", summary="Merged.")
    stage.git(*command(answer["remedy"], "reset"))
    assert stage.read("lib.py") == "LIMIT = 99\n"
    after = stage.agent.submit(summary="Merged.")
    assert after["success"], after
