"""Evidence looks only at regular files inside the project, whatever a path says or a link is swapped for (SPEC 4)."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_intel_server.codebase.evidence.location import Reference, parse_reference
from code_intel_server.codebase.evidence.reader import ProjectEvidence


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one file, beside a file that is none of its business."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.py").write_text("def f():\n    pass\n", encoding="utf-8")
    (tmp_path / "secret.py").write_text("SECRET = 1\n", encoding="utf-8")
    return root


def test_a_regular_file_exists_under_each_of_its_spellings(project: Path) -> None:
    (project / "sub").mkdir()
    (project / "link.py").symlink_to("a.py")
    evidence = ProjectEvidence(project)
    for path in ("a.py", "./a.py", "sub/../a.py", str(project / "a.py"), "link.py"):
        assert evidence.exists(path)
        assert evidence.normal(path) == "a.py"
        assert evidence.total_lines(path) == 2


def test_nothing_outside_the_project_is_looked_at(project: Path) -> None:
    (project / "out.py").symlink_to(project.parent / "secret.py")
    (project / "up").symlink_to(project.parent)
    evidence = ProjectEvidence(project)
    for path in (
        "../secret.py",
        str(project.parent / "secret.py"),
        "out.py",
        "up/secret.py",
        "/etc/passwd",
        ".",
        "",
        "/",
    ):
        assert not evidence.exists(path)
        assert evidence.normal(path) is None
        assert evidence.total_lines(path) is None
        assert evidence.compare(path, None, None, ()).judge(1, 1).trivial


def test_a_link_swapped_in_after_the_path_was_resolved_is_not_followed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = ProjectEvidence(project)
    resolve = Path.resolve

    def swapping(path: Path, strict: bool = False) -> Path:
        real = resolve(path, strict)
        if path.name == "a.py" and not path.is_symlink():
            path.unlink()
            path.symlink_to(project.parent / "secret.py")
        return real

    monkeypatch.setattr(Path, "resolve", swapping)
    assert evidence.total_lines("a.py") is None


def test_folders_fifos_devices_and_loops_are_no_files(project: Path) -> None:
    (project / "folder").mkdir()
    os.mkfifo(project / "fifo")
    (project / "null").symlink_to("/dev/null")
    (project / "loop").symlink_to("loop")
    evidence = ProjectEvidence(project)
    for path in ("folder", "fifo", "null", "loop", "absent", "a.py/b"):
        assert not evidence.exists(path)
        assert evidence.total_lines(path) is None


@pytest.mark.parametrize("path", ["a\0.py", "a\udc80.py", "\ud800"])
def test_paths_that_are_no_text_are_refused(project: Path, path: str) -> None:
    evidence = ProjectEvidence(project)
    assert not evidence.exists(path)
    assert evidence.normal(path) is None


@pytest.mark.parametrize(("content", "lines"), [
    (b"", 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"\n\n", 2), (b"a\r\nb\r\n", 2), ("a\nb\n".encode("utf-16"), 2),
    ("ä\nb".encode("latin-1"), 2),
])  # fmt: skip
def test_lines_are_counted_as_an_editor_does(project: Path, content: bytes, lines: int) -> None:
    (project / "b.txt").write_bytes(content)
    assert ProjectEvidence(project).total_lines("b.txt") == lines


def test_a_line_of_a_hundred_megabytes_is_counted_and_shows_nothing(project: Path) -> None:
    with (project / "big.py").open("wb") as stream:
        stream.write(b"pass\n")
        stream.truncate(100 * 1024 * 1024)
    evidence = ProjectEvidence(project)
    assert evidence.total_lines("big.py") == 2
    assert evidence.compare("big.py", None, None, ()).judge(1, 1).trivial


def test_encodings_and_binaries_are_judged(project: Path) -> None:
    source = "# é\ndef f():\n    pass\n\n\ndef g():\n    return 1\n"
    evidence = ProjectEvidence(project)
    for encoding in ("utf-8", "utf-8-sig", "latin-1", "utf-16"):
        (project / "b.py").write_bytes(source.encode(encoding))
        difference = evidence.compare("b.py", None, None, ())
        assert difference.judge(2, 3).empty
        verdict = difference.judge(6, 7)
        assert (verdict.empty, verdict.trivial) == (False, False)
    (project / "b.bin").write_bytes(b"\0\1\2")
    assert evidence.compare("b.bin", None, None, ()).judge(1, 1).trivial


@given(
    st.text(min_size=1).filter(lambda text: not text.isspace()),
    st.integers(min_value=0, max_value=10**9 - 1),
    st.integers(min_value=0, max_value=10**9 - 1),
)
def test_a_reference_is_read_back_as_it_was_written(path: str, start: int, end: int) -> None:
    assert parse_reference(f"{path}:{start}-{end}") == Reference(path, start, end)
    assert parse_reference(f"{path}:{start}") == Reference(path, start, start)


@pytest.mark.parametrize(
    "text", ["", "a.py", "a.py:", ":1", "a.py:x", "a.py:1-", "a.py:-1", "a.py:1-2-3x", "a.py:1 ", "a.py: 1", "a.py:1,2"]
)
def test_any_other_form_is_no_reference(text: str) -> None:
    assert parse_reference(text) is None
