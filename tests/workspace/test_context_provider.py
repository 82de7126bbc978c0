"""Context: the rules' summary knows when its source moved on, documents are found, and the user's file stays theirs."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_intel_server.common.resources import templates_dir
from code_intel_server.contract.nodes import Broken
from code_intel_server.errors import Rejected, Unavailable, UserActionNeeded
from code_intel_server.workspace.paths import Project
from code_intel_server.workspace.project.context_edit import with_values
from code_intel_server.workspace.project.context_provider import Context, ContextProvider, load_context

V1_16 = """\
# Who reads this: agents at session start.
project_rules:
  source: "CLAUDE.md"   # keep in step
  summary: |
    DO:
    - Business logic in Service layer
    # not a comment: part of the text
    DON'T:
    - Complex logic in Controller

# Which documents count
doc_research:
  enabled: true
  docs_path:
    - "docs/"   # ours
  default_prompts:
    - "default.md"
document_search:
  include_patterns:
    - "**/*.md"
  exclude_patterns:
    - "node_modules/**"
"""


def provider(root: Path, files: dict[str, str]) -> ContextProvider:
    """The context of a project with these files."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return ContextProvider(Project(root))


def context_of(tmp_path: Path, text: str) -> Context:
    """`context.yml` with that text."""
    (tmp_path / "context.yml").write_text(text)
    return load_context(tmp_path / "context.yml")


def test_the_example_of_the_design_document_is_taken_as_it_stands(tmp_path: Path) -> None:
    found = context_of(tmp_path, V1_16)
    assert found.warnings == ()
    assert found.rules_source == "CLAUDE.md"
    assert found.rules_summary.startswith("DO:\n- Business")
    assert found.docs_path == ("docs/",)
    assert (found.include_patterns, found.exclude_patterns) == (("**/*.md",), ("node_modules/**",))


@pytest.mark.parametrize(("text", "warning"), [
    ("project_rules: &a {}\nother: *a", "line 1"),
    ("a: 1\nb: !!python/object/apply:os.system [x]", "line 2"),
    ("project_rules:\n  source: [x\nother: 1", "line 3"),
    ("project_rules:\n  source: {a: b}", "line 2: source must be a text"),
    ("project_rules: text", "line 1: project_rules must be a mapping"),
    ("doc_research:\n  enabled: maybe", "line 2: enabled must be true or false"),
    ("document_search:\n  include_patterns: [[a]]", "line 2: include_patterns must be a list of texts"),
    ("a: " + "[" * 5000, "line 1"),
    ("x" * 300_000, "line 1"),
], ids=["alias", "tag", "unclosed", "mapping", "section", "flag", "nested", "deep", "large"])  # fmt: skip
def test_what_cannot_be_used_is_named_with_its_line_and_the_defaults_serve(
    tmp_path: Path, text: str, warning: str
) -> None:
    started = time.monotonic()
    found = context_of(tmp_path, text)
    assert time.monotonic() - started < 5  # at once, on any machine
    assert any(one.startswith(warning) for one in found.warnings)
    defaults = Context()
    assert (found.rules_source, found.include_patterns) == ("", defaults.include_patterns)
    assert found.research_enabled


def test_a_key_that_nothing_reads_is_named_with_those_there_are(tmp_path: Path) -> None:
    found = context_of(tmp_path, "project_rule:\n  source: A.md\ndoc_research:\n  doc_path: [docs/]\n")
    assert found.warnings == (
        "line 1: nothing reads project_rule; there are project_rules, doc_research, document_search",
        "line 4: nothing reads doc_research.doc_path; there are enabled, docs_path, default_prompts",
    )


def test_empty_values_are_defaults_without_a_warning(tmp_path: Path) -> None:
    found = context_of(
        tmp_path,
        "project_rules:\n  source:\n  summary: ~\ndoc_research:\ndocument_search:\n  include_patterns: docs/*.md\n",
    )
    assert found.warnings == ()
    assert found.include_patterns == ("docs/*.md",)


def test_rules_without_a_summary_want_one_and_with_it_until_the_source_changes_not(tmp_path: Path) -> None:
    one = provider(tmp_path, {"CLAUDE.md": "Be kind.", ".code-intel/context.yml": V1_16})
    assert one.project_rules().update_required, "a summary without the hash of its source is not known to be fresh"
    stored = one.update_context("DO:\n- Be kind.")
    assert not stored.update_required
    assert ContextProvider(Project(tmp_path)).project_rules() == stored
    (tmp_path / "CLAUDE.md").write_text("Be stern.")
    changed = one.project_rules()
    assert changed.update_required
    assert changed.summary == "DO:\n- Be kind."


@pytest.mark.parametrize(("files", "source"), [
    ({"CLAUDE.md": "x", "AGENTS.md": "y"}, "CLAUDE.md"),
    ({".claude/CLAUDE.md": "x", "AGENTS.md": "y"}, ".claude/CLAUDE.md"),
    ({"AGENTS.md": "y"}, "AGENTS.md"),
    ({"RULES.md": "z", "CLAUDE.md": "x", ".code-intel/context.yml": "project_rules: {source: RULES.md}"}, "RULES.md"),
    ({"CLAUDE.md": "x", ".code-intel/context.yml": "project_rules: {source: /etc/passwd}"}, "CLAUDE.md"),
    ({"CLAUDE.md": "x", ".code-intel/context.yml": "project_rules: {source: ../secret}"}, "CLAUDE.md"),
    ({}, ""),
])  # fmt: skip
def test_the_source_is_the_configured_file_else_claude_md_else_agents_md(
    tmp_path: Path, files: dict[str, str], source: str
) -> None:
    rules = provider(tmp_path / "root", files).project_rules()
    assert rules.source == source
    assert rules.update_required is bool(source)


@pytest.mark.parametrize(
    ("name", "template"), [(".claude/CLAUDE.md", "claude/CLAUDE.md"), ("AGENTS.md", "codex/AGENTS.md")]
)
def test_what_set_up_wrote_is_no_rule_of_the_project(tmp_path: Path, name: str, template: str) -> None:
    ours = (templates_dir() / template).read_text(encoding="utf-8")
    assert provider(tmp_path, {name: ours.replace("\n", "\r\n")}).project_rules().source == ""
    one = provider(tmp_path, {name: ours})
    rules = one.project_rules()
    assert (rules.source, rules.update_required) == ("", False)
    (tmp_path / name).write_text(ours.replace("DO:\n", "DO:\n- Be kind.\n"))
    rules = one.project_rules()
    assert (rules.source, rules.update_required) == (name, True)


def test_the_projects_own_rules_are_the_source_where_set_up_wrote_another_file(tmp_path: Path) -> None:
    ours = (templates_dir() / "claude" / "CLAUDE.md").read_text(encoding="utf-8")
    one = provider(tmp_path, {".claude/CLAUDE.md": ours, "AGENTS.md": "Be kind."})
    assert one.project_rules().source == "AGENTS.md"


def test_a_new_summary_takes_the_old_ones_place_and_every_other_line_stays(tmp_path: Path) -> None:
    one = provider(tmp_path, {"CLAUDE.md": "x", ".code-intel/context.yml": V1_16})
    (tmp_path / ".code-intel" / "context.yml").chmod(0o664)
    rules = one.update_context('DO:\n- Quote "this"\n\nDON\'T:\n  - that # really')
    assert rules.summary == 'DO:\n- Quote "this"\n\nDON\'T:\n  - that # really'
    after = (tmp_path / ".code-intel" / "context.yml").read_text()
    removed = {"  summary: |", "    DO:", "    - Business logic in Service layer", "    # not a comment: part of the text", "    DON'T:", "    - Complex logic in Controller"}  # fmt: skip
    for line in V1_16.splitlines():
        assert (line in after.splitlines()) or line in removed, line
    assert "Business logic" not in after
    assert "\n\n# Which documents count\n" in after
    assert (tmp_path / ".code-intel" / "context.yml").stat().st_mode & 0o777 == 0o664


def test_without_a_file_one_is_made(tmp_path: Path) -> None:
    one = provider(tmp_path, {"AGENTS.md": "x"})
    one.update_context("DO:\n- It all.")
    found = load_context(tmp_path / ".code-intel" / "context.yml")
    assert (found.rules_source, found.rules_summary) == ("AGENTS.md", "DO:\n- It all.")


@pytest.mark.parametrize("summary", ["", "  \n ", "short", "x" * 20_000, None, 7])
def test_an_unusable_summary_is_refused(tmp_path: Path, summary: object) -> None:
    one = provider(tmp_path, {})
    with pytest.raises(Rejected, match="summary_required") as refusal:
        one.update_context(summary)  # type: ignore[arg-type]
    assert not (tmp_path / ".code-intel").exists()
    length = len(summary.strip()) if isinstance(summary, str) else 0
    assert refusal.value.params == {"least": 10, "most": 16_000, "found": length}


def test_a_broken_file_is_refused_with_its_line_and_left_alone(tmp_path: Path) -> None:
    one = provider(tmp_path, {".code-intel/context.yml": "project_rules:\n  source: [x"})
    with pytest.raises(Rejected, match="context_broken"):
        one.update_context("DO:\n- It all.")
    assert (tmp_path / ".code-intel" / "context.yml").read_text() == "project_rules:\n  source: [x"


def test_a_linked_folder_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / ".code-intel").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserActionNeeded, match="state_folder_unsafe"):
        ContextProvider(Project(tmp_path / "root")).update_context("DO:\n- It all.")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = provider(tmp_path, {"CLAUDE.md": "x", ".code-intel/context.yml": V1_16})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("code_intel_server.workspace.project.context_provider.write_whole", full)
    with pytest.raises(Unavailable, match="No space left"):
        one.update_context("DO:\n- It all.")
    assert (tmp_path / ".code-intel" / "context.yml").read_text() == V1_16


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/etc/passwd"), os.mkfifo, lambda path: path.mkdir()])
def test_a_context_that_is_no_plain_file_is_neither_read_nor_replaced(tmp_path: Path, make: object) -> None:
    assert callable(make)
    (tmp_path / ".code-intel").mkdir()
    make(tmp_path / ".code-intel" / "context.yml")
    one = provider(tmp_path, {"CLAUDE.md": "x"})
    assert len(one.context.warnings) == 1
    with pytest.raises(Unavailable, match="state_unavailable"):
        one.update_context("DO:\n- It all.")
    assert (
        not (tmp_path / ".code-intel" / "context.yml").is_file()
        or (tmp_path / ".code-intel" / "context.yml").is_symlink()
    )


def test_a_source_that_cannot_be_read_has_no_hash(tmp_path: Path) -> None:
    one = provider(tmp_path, {})
    with (tmp_path / "CLAUDE.md").open("wb") as stream:
        stream.truncate(1 << 30)
    rules = one.project_rules()
    assert (rules.source, rules.source_hash) == ("CLAUDE.md", "")


def test_a_folder_that_goes_away_or_is_closed_does_not_end_the_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = provider(tmp_path, {"closed/a.md": "", "open/b.md": ""})
    real = os.scandir

    def closed(folder: Path) -> object:
        if Path(folder).name == "closed":
            raise PermissionError(13, "Permission denied")
        return real(folder)

    monkeypatch.setattr(os, "scandir", closed)  # permissions do not stop root, who may run this
    assert list(one.documents()) == ["open/b.md"]


def test_a_walk_over_a_giant_tree_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("code_intel_server.workspace.project.document_walk.MAX_FILES_SEEN", 10)
    one = provider(tmp_path, {f"src/{number:02}.py": "" for number in range(20)} | {"src/zz.md": ""})
    assert not one.any_document()


@pytest.mark.parametrize(
    "before",
    [
        "",
        "# only a comment\n",
        "other: 1",
        "project_rules:\n",
        "project_rules:\n  # nothing yet\nother: 1\n",
        "project_rules:\n  summary: old\n",
        "project_rules:\n    summary: >-\n        folded\n        text\n    source: CLAUDE.md\n",
        "project_rules:\n  summary: |+\n    old\n\n\n# tail\nother: 1\n",
        "project_rules:\n  summary: 'one\n    two'\n  # about the source\n  source: x # why\n",
        '"project_rules":\n  "summary": "a # b" # comment\nother:\n  summary: not this\n',
        "other:\n  project_rules:\n    summary: not this\nproject_rules:\n  nested:\n    summary: not this\n  summary: old\n",
        "project_rules:   # the rules\n  summary: |\n    # looks like a comment\n    old\n  # a comment\n  extra: [1, 2]\n",
        "\ufeffproject_rules:\r\n  summary: old\r\n  source: x\r\n",
        'project_rules:\n  summary: "one\n  other: two"\n',
    ],
)
@pytest.mark.parametrize("value", ["one line: with # signs \\ and \"quotes\"", "two\n\nlines\n  - indented", "  leading\nspaces", "tab\there", "日本語"])  # fmt: skip
def test_a_value_is_changed_in_any_block_form_and_nothing_else(before: str, value: str) -> None:
    after = with_values(before.encode(), "project_rules", {"summary": value}).decode()
    # `with_values` itself refuses a result that says anything else; here: no comment is lost.
    for comment in ("# only a comment", "# nothing yet", "# tail", "# about the source", "# why", "# the rules", "# a comment"):  # fmt: skip
        assert (comment in after) == (comment in before)
    assert with_values(after.encode(), "project_rules", {"summary": value}).decode() == after


@pytest.mark.parametrize(
    "before",
    ["project_rules: {summary: old}\n", "{project_rules: {summary: old}}", "project_rules: text\n", "other: 1\n...\n"],
)
def test_a_form_that_resists_is_refused_and_not_rewritten(before: str) -> None:
    with pytest.raises(Broken):
        with_values(before.encode(), "project_rules", {"summary": "new"})


def test_a_text_that_yaml_would_change_is_refused() -> None:
    with pytest.raises(Broken, match=r"summary cannot be changed"):
        with_values(b"", "project_rules", {"summary": "a\x85b"})


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]) | st.sampled_from("\n -#:'\"|>"), max_size=80)
)
def test_any_printable_summary_comes_back_as_it_was_given(
    tmp_path_factory: pytest.TempPathFactory, summary: str
) -> None:
    root = tmp_path_factory.getbasetemp() / "summary"
    one = provider(root, {"CLAUDE.md": "x", ".code-intel/context.yml": V1_16})
    try:
        rules = one.update_context(f"DO: keep it\n{summary}")
    except Rejected as error:
        assert "context_broken" in error.key
        return
    from code_intel_server.common.printable import printable

    assert rules.summary == printable(f"DO: keep it\n{summary}".strip())


def test_documents_are_what_document_search_matches_and_client_files_are_none(tmp_path: Path) -> None:
    scaffold = {"CLAUDE.md": "", "AGENTS.md": "", ".claude/commands/code.md": "", ".code-intel/verifiers/a.md": "", ".codex/skills/x.md": "", ".agents/skills/code/SKILL.md": "", "node_modules/x/README.md": "", "pkg/node_modules/y.md": "", "src/a.py": ""}  # fmt: skip
    assert not provider(tmp_path, scaffold).any_document()
    one = provider(tmp_path, {"pkg/AGENTS.md": "nested ones are the project's own"})
    assert one.any_document()
    more = provider(tmp_path, {"docs/deep/guide.md": "", "README.md": ""})
    assert sorted(more.documents()) == ["README.md", "docs/deep/guide.md", "pkg/AGENTS.md"]


@pytest.mark.parametrize("written", ["agreements/login.md", "context.yml", "logs/sessions/1.md"])
def test_what_the_server_of_a_project_within_this_one_writes_is_no_document(tmp_path: Path, written: str) -> None:
    wanted = "document_search: {include_patterns: ['**/*.md', '**/*.yml']}"
    one = provider(tmp_path, {".code-intel/context.yml": wanted, f"sub/inner/.code-intel/{written}": "x"})
    assert list(one.documents()) == []
    theirs = ["sub/inner/.code-intel/verifiers/a.md", "sub/inner/README.md"]
    assert sorted(provider(tmp_path, dict.fromkeys(theirs, "x")).documents()) == theirs


def test_documents_below_docs_path_come_first_and_research_can_be_off(tmp_path: Path) -> None:
    files = {"a/other.md": "", "docs/b.md": "", "docs/a.md": ""}
    one = provider(tmp_path, {**files, ".code-intel/context.yml": "doc_research: {docs_path: [docs/]}"})
    assert list(one.documents()) == ["docs/a.md", "docs/b.md", "a/other.md"]
    one = provider(tmp_path, {".code-intel/context.yml": "doc_research: {docs_path: [../, /etc, missing]}"})
    assert sorted(one.documents()) == sorted(files)
    one = provider(tmp_path, {".code-intel/context.yml": "doc_research: {enabled: false}"})
    assert not one.any_document()


def test_the_packaged_context_is_read_without_a_warning_and_takes_a_summary(tmp_path: Path) -> None:
    packaged = (templates_dir() / "code-intel" / "context.yml").read_text()
    one = provider(tmp_path, {"CLAUDE.md": "x", ".code-intel/context.yml": packaged})
    assert one.context.warnings == ()
    one.update_context("DO:\n- It all.")
    after = (tmp_path / ".code-intel" / "context.yml").read_text()
    assert [line for line in packaged.splitlines() if line not in after.splitlines()] == ['  summary: ""']
    assert not one.project_rules().update_required


def test_links_lead_to_no_documents_and_a_loop_ends(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.md").touch()
    one = provider(tmp_path / "root", {"src/a.py": ""})
    (tmp_path / "root" / "out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "root" / "loop").symlink_to(".")
    (tmp_path / "root" / "b.md").symlink_to(tmp_path / "elsewhere" / "a.md")
    assert not one.any_document()


def test_resources_are_those_files_that_exist(tmp_path: Path) -> None:
    one = provider(tmp_path, {".code-intel/context.yml": "", ".code-intel/verifiers/b.md": "", ".code-intel/verifiers/a.md": "", ".code-intel/verifiers/n.txt": ""})  # fmt: skip
    (tmp_path / ".code-intel" / "verifiers" / "link.md").symlink_to("/etc/passwd")
    names = [
        ".code-intel/context.yml",
        ".code-intel/verifiers/*.md",
        ".code-intel/missing.md",
        ".code-intel/../x",
        "src/*.py",
    ]
    assert one.existing([".code-intel/nowhere/*.md"]) == ()
    assert one.existing(names) == (
        ".code-intel/context.yml",
        ".code-intel/verifiers/a.md",
        ".code-intel/verifiers/b.md",
    )


def test_default_prompts_are_what_research_is_done_by(tmp_path: Path) -> None:
    one = provider(tmp_path, {".code-intel/doc_research/a.md": "", ".code-intel/doc_research/z.md": "", ".code-intel/context.yml": "doc_research: {default_prompts: [z.md]}"})  # fmt: skip
    assert [prompt.name for prompt in one.chosen_research()] == ["z"]
    assert one.find_prompt("doc_research", "a") is not None
    assert one.prompts("verifiers") == one.library.prompts("verifiers")
