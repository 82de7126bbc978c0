"""A filter of git's whose program does not exist, as in a clone of an LFS repository on a machine without git-lfs."""

import pytest

from tests.e2e.stage import Stage, plan, report, verdict
from tests.honest.test_remedies import commands

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 3\n"


def without_program(stage: Stage) -> None:
    """The user's set-up of LFS, with a program that nobody has installed."""
    for name, value in (
        ("process", "no-such-lfs filter-process"),
        ("clean", "no-such-lfs clean"),
        ("required", "true"),
    ):
        stage.git("config", f"filter.lfs.{name}", value)


def pointers(stage: Stage) -> None:
    stage.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    stage.write("model.bin", POINTER.format("a" * 64))
    stage.git("add", "-A")
    stage.git("commit", "-qm", "More")
    stage.write("model.bin", POINTER.format("a" * 64))  # another stamp: git has to ask the filter


@pytest.mark.parametrize("when", ["plan", "commit"])
def test_a_refusal_for_a_missing_filter_names_it_and_the_setting_that_goes_on_without(stage: Stage, when: str) -> None:
    pointers(stage)
    if when == "plan":
        without_program(stage)
    stage.ready("model.bin")
    payload = plan()
    if when == "commit":
        stage.accepted(**payload)
        stage.edit("model.bin", POINTER.format("b" * 64))
        stage.accepted_list(report(evidence="model.bin:2"), {"summary": "Done."})
        stage.accepted(**verdict())
        payload = stage.commit()
        without_program(stage)
    answer = stage.refused("filter 'lfs'", **payload)
    assert answer["error"] == "filter_failed"
    assert "no-such-lfs" in answer["message"], "what git says of the program"
    assert "install" in answer["remedy"]
    for named in commands(answer["remedy"], "config"):
        stage.git(*named)
    stage.accepted(**payload)
    if when == "commit":
        assert stage.git("show", "HEAD:model.bin") == POINTER.format("b" * 64)
        assert stage.accepted(summary="Merged.")["phase"] == "SESSION_COMPLETE"
