"""The list of changes that PRE_COMMIT reviews."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from code_intel_server.workspace.git import child, isolated_directory
from code_intel_server.workspace.tree.review import DIFF_CHARACTERS, PAGE_CHARACTERS, review
from code_intel_server.workspace.tree.tree import TreeJudge
from tests.workspace.git_repo import Repo


def test_every_change_is_a_row_with_its_diff_and_task(repo: Repo) -> None:
    repo.write("long.py", "".join(f"{n}\n" for n in range(1, 41)))
    repo.write("data.bin", b"\0")
    tree = TreeJudge(repo.path)
    base = tree.snapshot()
    lines = [f"{n}\n" for n in range(1, 41)]
    lines[4], lines[8], lines[30] = "five\n", "nine\n", ""
    repo.write("long.py", "".join(lines))
    repo.write("data.bin", b"\0\0")
    (repo.path / "b.py").unlink()
    page = review(tree, base, tree.snapshot(), tasks={"long.py": "t1"})
    rows = {row.path: row for row in page.rows}
    assert [(row.path, row.status) for row in page.rows] == [
        ("b.py", "deleted"),
        ("data.bin", "modified"),
        ("long.py", "modified"),
    ]
    assert rows["b.py"].diff == "@@ -1,1 +0,0 @@\n-two = 2"
    assert rows["data.bin"].as_row() == {
        "path": "data.bin",
        "status": "modified",
        "diff": "",
        "unseen": "binary, no file, or too large to be shown: look at it yourself",
    }
    assert rows["long.py"].task == "t1"
    assert rows["long.py"].diff == (
        "@@ -2,11 +2,11 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n-9\n+nine\n 10\n 11\n 12\n"
        "@@ -28,7 +28,6 @@\n 28\n 29\n 30\n-31\n 32\n 33\n 34"
    )


def test_a_file_that_can_be_executed_now_says_so_beside_its_edit(repo: Repo) -> None:
    repo.write("run.py", "one = 1\n")
    repo.write("new.py", "one = 1\n")
    tree = TreeJudge(repo.path)
    base = tree.snapshot()
    repo.write("run.py", "one = 2\n")
    for name in ("run.py", "b.py"):
        (repo.path / name).chmod(0o755)
    rows = {row.path: row.as_row() for row in review(tree, base, tree.snapshot()).rows}
    assert {path: (row["status"], row["mode"]) for path, row in rows.items()} == {
        "b.py": ("mode", "100644 → 100755"),
        "run.py": ("modified", "100644 → 100755"),
    }
    assert "mode" not in review(tree, "", base).rows[0].as_row()


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30))
def test_a_diff_applies(repo: Repo, old: list[str], new: list[str]) -> None:
    """What the diff says, applied by git itself to the old text, is the new text."""
    tree = TreeJudge(repo.path)
    repo.write("x.txt", "".join(f"{line}\n" for line in old) or "-\n")
    base = tree.snapshot()
    repo.write("x.txt", "".join(f"{line}\n" for line in new) or "=\n")
    page = review(tree, base, tree.snapshot())
    wanted = repo.read("x.txt")
    repo.write("x.txt", "".join(f"{line}\n" for line in old) or "-\n")
    if page.rows:
        patch = f"--- a/x.txt\n+++ b/x.txt\n{page.rows[0].diff}\n"
        repo.git("apply", "-", stdin=patch.encode())
    assert repo.read("x.txt") == wanted


def test_pages_follow_one_another_and_end_when_full(repo: Repo) -> None:
    tree = TreeJudge(repo.path)
    base = tree.snapshot()
    for number in range(20):
        repo.write(f"many/{number:02}.txt", "x" * 99 + "\n" + "some words\n" * 500)
    now = tree.snapshot()
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = review(tree, base, now, offset=offset, limit=12)
        assert page.total == 20
        assert sum(len(row.diff) for row in page.rows) <= PAGE_CHARACTERS
        assert all(
            row.cut and len(row.diff) < DIFF_CHARACTERS + 40 and row.diff.endswith("more lines") for row in page.rows
        )
        seen += [row.path for row in page.rows]
        offset = page.next_offset
    assert seen == [f"many/{number:02}.txt" for number in range(20)]


@pytest.mark.parametrize(
    ("files", "lines", "counted"), [(200, 3, False), (201, 3, True), (20, 101, False), (21, 101, True)]
)
def test_of_many_files_only_the_lines_are_counted(repo: Repo, files: int, lines: int, *, counted: bool) -> None:
    for number in range(files):
        repo.write(f"many/{number:03}.txt", "old\n")
    tree = TreeJudge(repo.path)
    base = tree.snapshot()
    for number in range(files):
        repo.write(f"many/{number:03}.txt", "new\n" * (lines - 1))
    now = tree.snapshot()
    rows = [row.as_row() for row in review(tree, base, now, path="many", limit=1000).rows]
    assert [row.get("lines") for row in rows] == [f"+{lines - 1} -1" if counted else None] * files
    assert all(("diff" in row) is not counted for row in rows)
    assert review(tree, base, now, path="many/000.txt").rows[0].diff, "one that is named is shown"


def test_a_few_files_are_shown_whole_on_one_page(repo: Repo) -> None:
    """Found by a real agent: of a new file that mattered the review said '127 more lines'."""
    tree = TreeJudge(repo.path)
    base = tree.snapshot()
    for number in range(8):
        repo.write(f"new/{number}.txt", "some words\n" * (400 if number == 1 else 200))
    now = tree.snapshot()
    page = review(tree, base, now)
    assert (len(page.rows), page.next_offset) == (8, None)
    assert not any(row.cut for row in page.rows) and len(page.rows[1].diff) > DIFF_CHARACTERS
    repo.write("new/2.txt", "some words\n" * 2000)
    assert {row.path for row in review(tree, base, tree.snapshot()).rows if row.cut} == {"new/1.txt", "new/2.txt"}
    repo.write("new/2.txt", "some words\n")
    repo.write("new/9.txt", "some words\n")
    assert {row.path for row in review(tree, base, tree.snapshot()).rows if row.cut} == {"new/1.txt"}


def test_a_path_limits_the_list_to_a_file_or_folder_and_finds_renames_by_either_name(repo: Repo) -> None:
    repo.write("d/old.py", "".join(f"line {n}\n" for n in range(20)))
    repo.write("dd/x", "1\n")
    tree = TreeJudge(repo.path)
    base = tree.snapshot()
    (repo.path / "e").mkdir()
    (repo.path / "d/old.py").rename(repo.path / "e/new.py")
    repo.write("dd/x", "2\n")
    now = tree.snapshot()
    for path in ("d", "d/", "e/new.py", "d/old.py"):
        page = review(tree, base, now, path=path)
        assert [(row.path, row.old_path, row.diff) for row in page.rows] == [("e/new.py", "d/old.py", "")]
    assert review(tree, base, now, path="nowhere").total == 0


def test_why_a_change_needs_a_reason_is_told_with_its_file(repo: Repo) -> None:
    repo.write("tests/test_x.py", "def test_x():\n    assert x\n")
    tree = TreeJudge(repo.path)
    base = tree.snapshot()
    repo.write("tests/test_x.py", "def test_x():\n    x\n")
    page = review(tree, base, tree.snapshot(), needs_reason=lambda change: (f"{change.path} is a test",))
    assert page.rows[0].as_row()["needs_reason"] == ["tests/test_x.py is a test"]


def test_a_hundred_files_are_reviewed_and_looked_up_with_few_programs_started(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"many/f{number}.py" for number in range(100)]
    for name in names:
        repo.write(name, "x = 1\n")
    tree = TreeJudge(repo.path)
    base = tree.snapshot()
    for name in names:
        repo.write(name, "x = 2\n")
    now = tree.snapshot()
    started: list[object] = []
    run = child.checked_run

    def counted(argv: list[str], **options: Any) -> Any:
        started.append(argv)
        return run(argv, **options)

    monkeypatch.setattr(isolated_directory, "checked_run", counted)
    assert len(review(tree, base, now, limit=100).rows) == 100
    assert len(tree.oids(base, names)) == 100
    assert len(started) < 30
