"""Prompts: named by stem, file name or path; the packaged ones count where the project has none."""

import os
from pathlib import Path

import pytest

from code_intel_server.workspace.paths import Project
from code_intel_server.workspace.project.prompts import MAX_PROMPT_BYTES, PromptKind, PromptLibrary


def library(root: Path, own: dict[str, str], packaged: dict[str, str]) -> PromptLibrary:
    """A library over a project and a package with these files below `.code-intel/` and `code-intel/`."""
    for folder, files in ((root / "project" / ".code-intel", own), (root / "package", packaged)):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
    return PromptLibrary.load(Project(root / "project"), packaged=root / "package")


def test_a_project_without_prompts_has_the_packaged_ones(tmp_path: Path) -> None:
    one = library(tmp_path, {}, {"verifiers/backend.md": "Run it.", "user_escalation.md": "Ask."})
    (backend,) = one.prompts("verifiers")
    assert (backend.name, backend.text, backend.packaged) == ("backend", "Run it.", True)
    assert one.find("user_escalation", "user_escalation.md") is not None


def test_every_kind_of_prompt_has_a_packaged_default(tmp_path: Path) -> None:
    packaged = PromptLibrary.load(Project(tmp_path))
    assert packaged.warnings == ()
    assert [kind for kind in PromptKind if not packaged.prompts(kind)] == []
    assert all(prompt.text.strip() for kind in PromptKind for prompt in packaged.prompts(kind))


def test_the_projects_own_replaces_the_packaged_of_the_same_name_and_comes_first(tmp_path: Path) -> None:
    one = library(
        tmp_path,
        {"verifiers/backend.md": "Ours.", "verifiers/zebra.md": "More."},
        {"verifiers/backend.md": "Theirs.", "verifiers/html.md": "Default."},
    )
    assert [(prompt.name, prompt.packaged) for prompt in one.prompts("verifiers")] == [
        ("backend", False),
        ("zebra", False),
        ("html", True),
    ]
    found = one.find("verifiers", "backend")
    assert found is not None and found.text == "Ours."


@pytest.mark.parametrize("name", [
    "backend", "backend.md", "verifiers/backend.md", ".code-intel/verifiers/backend.md", "./.code-intel/verifiers/backend.md",
    " backend ",
])  # fmt: skip
def test_a_prompt_answers_to_stem_file_name_and_path(tmp_path: Path, name: str) -> None:
    for one in (
        library(tmp_path / "own", {"verifiers/backend.md": "x"}, {}),
        library(tmp_path / "packaged", {}, {"verifiers/backend.md": "x"}),
    ):
        found = one.find("verifiers", name)
        assert found is not None and found.path == ".code-intel/verifiers/backend.md"


@pytest.mark.parametrize("name", ["", "back", "Backend", "../verifiers/backend", "interventions/backend.md", "/backend", "a\0b", "\ud800", "backend.md.md"])  # fmt: skip
def test_no_other_name_is_taken(tmp_path: Path, name: str) -> None:
    one = library(tmp_path, {"verifiers/backend.md": "x"}, {})
    assert one.find("verifiers", name) is None
    assert one.find("interventions", "backend") is None
    assert one.prompts("no_such_kind") == ()


def test_what_a_repository_hides_in_a_prompt_becomes_visible(tmp_path: Path) -> None:
    one = library(tmp_path, {"verifiers/a.md": "Run\x1b[2J \u202ethis\r\n"}, {})
    assert one.prompts("verifiers")[0].text == "Run\\x1b[2J \\u202ethis\n"


def test_links_pipes_and_giants_are_named_and_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".code-intel" / "verifiers"
    folder.mkdir(parents=True)
    (folder / "link.md").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe.md")
    (folder / "big.md").write_text("x" * (MAX_PROMPT_BYTES + 1))
    (folder / "folder.md").mkdir()
    (folder / ".hidden.md").write_text("x")
    (folder / "notes.txt").write_text("x")
    one = library(tmp_path, {}, {"verifiers/link.md": "Default."})
    assert [(prompt.name, prompt.packaged) for prompt in one.prompts("verifiers")] == [("link", True)]
    assert len(one.warnings) == 4


def test_a_linked_folder_holds_no_prompts(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.md").write_text("x")
    (tmp_path / "project" / ".code-intel").mkdir(parents=True)
    (tmp_path / "project" / ".code-intel" / "verifiers").symlink_to(tmp_path / "elsewhere")
    assert library(tmp_path, {}, {}).prompts("verifiers") == ()


def test_an_edit_during_a_session_is_named_and_takes_effect_with_the_next(tmp_path: Path) -> None:
    before = library(tmp_path, {"verifiers/a.md": "old", "verifiers/b.md": "same", "user_escalation.md": "gone"}, {})
    (tmp_path / "project" / ".code-intel" / "user_escalation.md").unlink()
    after = library(tmp_path, {"verifiers/a.md": "new", "interventions/c.md": "added"}, {})
    assert before.prompts("verifiers")[0].text == "old"
    assert {path for path, _ in before.hashes.items() ^ after.hashes.items()} == {
        ".code-intel/interventions/c.md",
        ".code-intel/user_escalation.md",
        ".code-intel/verifiers/a.md",
    }
