"""What start_session tells of the project it finds: its documents, its model, its client's hooks (SPEC 7, 9, 11)."""

import json

import pytest
from pydantic import JsonValue

from code_intel_server.common.resources import templates_dir
from code_intel_server.tools.current_project import CurrentProject

FILES = {
    "app.py": "def main():\n    return 1\n",
    "README.md": "# App\n",
    "adr/one.md": "# One\n",
    "handbook/style.md": "# Style\n",
}
RULE = "after a compaction"


def write(current: CurrentProject, path: str, text: str) -> None:
    """A file of the project."""
    file = current.services.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def researched(current: CurrentProject) -> dict[str, JsonValue]:
    """The answer that leads into DOCUMENT_RESEARCH."""
    answer = current.sessions.start("Change main", "MODIFY", {"fast": True})
    assert answer["phase"] == "DOCUMENT_RESEARCH"
    return answer


def test_without_a_scaffold_document_research_brings_its_procedure(current: CurrentProject) -> None:
    answer = researched(current)
    packaged = (templates_dir() / "code-intel/doc_research/default.md").read_text(encoding="utf-8")
    assert answer["procedure"] == {"name": "default", "text": packaged}
    assert answer["documents"] == ["README.md", "adr/one.md", "handbook/style.md"]


def test_the_prompts_and_folders_that_context_yml_names_come_first(current: CurrentProject) -> None:
    write(
        current,
        ".code-intel/context.yml",
        "doc_research:\n  docs_path: [handbook/, nowhere/]\n  default_prompts: [security.md, gone.md]\n",
    )
    for name in ("security", "other"):
        write(current, f".code-intel/doc_research/{name}.md", f"# {name}\n")
    answer = researched(current)
    assert answer["resources"] == [".code-intel/doc_research/security.md"]
    assert "procedure" not in answer and "procedures" not in answer
    assert answer["documents"] == ["handbook/style.md", "README.md", "adr/one.md"]
    assert answer["contract_warnings"] == ["context.yml default_prompts: there is no prompt 'gone.md'"]


@pytest.mark.parametrize("missing", [True, False])
def test_a_model_whose_extra_is_missing_is_said_at_the_start(
    current: CurrentProject, monkeypatch: pytest.MonkeyPatch, *, missing: bool
) -> None:
    monkeypatch.setattr(
        "code_intel_server.index.vectors.embedding.find_spec", lambda _name: None if missing else object()
    )
    write(current, ".code-intel/config.json", json.dumps({"embedding_model": "e5", "sync_on_start": False}))
    said = str(current.sessions.start("Change main", "MODIFY", {"fast": True}).get("warnings"))
    assert ("'e5', whose extra is not installed" in said) is missing


@pytest.mark.parametrize("hooked", [True, False])
def test_where_a_hook_tells_of_compaction_the_rule_stands_at_the_start_and_after_a_restore_only(
    current: CurrentProject, *, hooked: bool
) -> None:
    current.sessions.hooked = hooked

    def ruled(answer: dict[str, JsonValue]) -> bool:
        return RULE in str(answer["expected_payload"])

    assert ruled(researched(current))
    read: dict[str, JsonValue] = {"summary": "Read.", "documents_reviewed": ["README.md"]}
    assert ruled(current.sessions.submit(read)) is not hooked
    assert ruled(current.sessions.submit({"summary": "Bad."})) is not hooked
    assert ruled(current.sessions.status())
