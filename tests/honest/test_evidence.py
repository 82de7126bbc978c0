"""Honest work whose evidence is unusual: it is taken as it is, and committed."""

import pytest

from tests.e2e.driver import git, repository
from tests.e2e.stage import ITEM, Stage, plan, report, verdict

QUIET = (
    "class Base:\n    def log(self):\n        print(self)\n\n\nclass Quiet(Base):\n    def log(self):\n        pass\n"
)


def ends(stage: Stage, evidence: str, reason: str = "") -> None:
    """The only task is reported with this evidence, verified and committed."""
    stage.accepted(**report(evidence=evidence, reason=reason))
    stage.accepted(summary="All tasks are done.")
    stage.accepted(**verdict())
    assert stage.accepted(**stage.commit())["phase"] == "MERGE"


def test_a_file_made_executable_is_evidenced_by_its_path(stage: Stage) -> None:
    stage.planned()
    stage.edit(text=stage.read("app.py"))
    (stage.root / "app.py").chmod(0o755)
    ends(stage, "app.py")


def test_a_deleted_file_is_evidenced_by_its_path(stage: Stage) -> None:
    stage.planned("app.py", "lib.py")
    assert stage.call("check_write_target", path="lib.py")["allowed"]
    (stage.root / "lib.py").unlink()
    ends(stage, "lib.py")


def test_lines_that_were_only_taken_out_of_a_file_are_evidenced_by_its_path(stage: Stage) -> None:
    stage.planned()
    stage.edit(text="".join(stage.read("app.py").splitlines(keepends=True)[:-1]) or "\n")
    ends(stage, "app.py")


def test_a_renamed_file_is_evidenced_by_its_new_path(stage: Stage) -> None:
    stage.planned("app.py", "lib.py")
    for name in ("lib.py", "limits.py"):
        assert stage.call("check_write_target", path=name)["allowed"]
    (stage.root / "lib.py").rename(stage.root / "limits.py")
    ends(stage, "limits.py")


def test_a_binary_file_is_evidenced_by_its_path(stage: Stage) -> None:
    stage.planned()
    assert stage.call("check_write_target", path="logo.png")["allowed"]
    (stage.root / "logo.png").write_bytes(b"\x89PNG\0\1\2")
    ends(stage, "logo.png")


def test_an_override_whose_emptiness_is_the_point_passes_with_a_reason(stage: Stage) -> None:
    stage.planned()
    stage.edit("quiet.py", QUIET)
    stage.refused("an empty override", **report(evidence="quiet.py:7-8"))
    ends(stage, "quiet.py:7-8", reason="It says nothing on purpose.")


@pytest.mark.parametrize("line", ["@functools.lru_cache\n", "@app.get('/')\n"])
def test_a_decorator_is_work(stage: Stage, line: str) -> None:
    stage.planned()
    stage.edit(text=line + stage.read("app.py"))
    ends(stage, "app.py:1")


def test_lines_that_were_moved_to_another_file_still_count_at_the_commit(stage: Stage) -> None:
    stage.ready("app.py", "lib.py")
    second = {"id": "t2", "description": "Second", "status": "pending", "checklist": ["Move it"]}
    stage.accepted(**plan("t1", [ITEM], second))
    work = "def extra(value):\n    doubled = value * 2\n    return doubled\n"
    app = stage.read("app.py")
    stage.edit(text=f"{app}\n\n{work}")
    stage.accepted(**report(evidence="app.py:13-15"))
    stage.edit("lib.py", f"{stage.read('lib.py')}\n\n{work}")
    stage.edit(text=app)
    stage.accepted(**report("t2", "lib.py:8-10", "Move it"))
    stage.accepted(summary="All tasks are done.")
    stage.accepted(**verdict())
    assert stage.accepted(**stage.commit())["phase"] == "MERGE"


def test_a_submodules_new_commit_is_evidenced_by_its_path(stage: Stage) -> None:
    library = repository(stage.root.parent / "library", {"a.py": "one = 1\n"})
    stage.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "vendor")
    stage.git("commit", "-qm", "Add a library")
    (library / "a.py").write_text("one = 2\n", encoding="utf-8")
    git(library, "commit", "-qam", "Two")
    stage.ready("app.py")
    stage.explain("vendor")
    stage.accepted(**plan())
    assert stage.call("check_write_target", path="vendor")["allowed"]
    stage.git("-C", "vendor", "-c", "protocol.file.allow=always", "pull", "-q")
    ends(stage, "vendor")
