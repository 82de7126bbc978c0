"""The documents that a request should be read with come first, and what every change must obey is never cut off."""

from pathlib import Path

from code_intel_server.workspace.project.document_ranking import rank_documents

DOCUMENTS = {
    "docs/advanced.md": "Contexts and callbacks.",
    "docs/api.md": "All the functions.",
    "docs/changes.md": "The changelog is included here.",
    "docs/utils.md": "To edit a file, give `filename` to edit: the editor opens it.",
    "docs/wide.md": "Files are wide.",
    "CHANGES.md": "Version 8",
    "CONTRIBUTING.md": "Wrap at 80 columns.",
    "examples/CHANGES.md": "Version 1",
}
QUERY = "click.edit(filename=...) fails with a pathlib.Path"


def write(root: Path) -> list[str]:
    for path, text in DOCUMENTS.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return list(DOCUMENTS)


def test_what_speaks_about_the_request_comes_first_and_the_rules_are_always_there(tmp_path: Path) -> None:
    found = rank_documents(tmp_path, write(tmp_path), QUERY, 4)
    assert found[0] == "docs/utils.md"
    assert {"CHANGES.md", "CONTRIBUTING.md"} < {*found}
    assert "examples/CHANGES.md" not in found
    assert len(rank_documents(tmp_path, [*DOCUMENTS], "edit the files", 3)) == 3


def test_what_every_pull_request_is_asked_for_is_a_rule_too(tmp_path: Path) -> None:
    """Found by real agents: a project asked for a line of the changelog nowhere but there."""
    template = ".github/PULL_REQUEST_TEMPLATE.md"
    (tmp_path / ".github").mkdir()
    (tmp_path / template).write_text("- [ ] Added a line to the changelog")
    assert template in rank_documents(tmp_path, [*write(tmp_path), template], QUERY, 8)


def test_a_word_of_few_documents_weighs_more_than_one_of_all(tmp_path: Path) -> None:
    found = rank_documents(tmp_path, write(tmp_path), "The wide functions: files and the callbacks of the files", 8)
    assert "docs/wide.md" in found
    assert "docs/utils.md" not in found


def test_what_shares_little_beside_the_best_is_not_named(tmp_path: Path) -> None:
    """Found in play: of twelve documents that were named two to four mattered."""
    found = rank_documents(tmp_path, write(tmp_path), "filename of the editor that opens: edit it, callbacks", 8)
    assert {*found} == {"docs/utils.md", "docs/advanced.md", "CHANGES.md", "CONTRIBUTING.md"}


def test_of_a_request_that_names_code_only_documents_that_name_it_are_listed(tmp_path: Path) -> None:
    """Found in play: a page that shares words with the request, and never mentions what it is about."""
    documents = write(tmp_path)
    found = rank_documents(tmp_path, documents, "Contexts, callbacks and functions with `filename` set", 8)
    assert {*found} == {"docs/utils.md", "CHANGES.md", "CONTRIBUTING.md"}
    found = rank_documents(tmp_path, documents, "Contexts and callbacks of the api with `no_such_name`", 8)
    assert {*found} == {"docs/api.md", "CHANGES.md", "CONTRIBUTING.md"}


def test_the_order_of_the_project_holds_where_nothing_speaks_about_the_request(tmp_path: Path) -> None:
    documents = write(tmp_path)
    assert rank_documents(tmp_path, documents, "", 20) == tuple(documents)


def test_a_document_that_is_gone_or_not_text_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "raw.md").write_bytes(b"\xff\xfe edit \x00")
    assert rank_documents(tmp_path, ["gone.md", "raw.md"], "edit it", 2) == ("raw.md", "gone.md")
