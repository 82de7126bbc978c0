"""A project's contract changes just what it names, and a broken one never stops a session (SPEC 5; Shows 6)."""

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from code_intel_server.common.resources import templates_dir
from code_intel_server.contract import loader
from code_intel_server.contract.loader import MAX_CONTRACT_WARNINGS, Contract, PhaseText
from code_intel_server.contract.messages import Message, misused_brace
from code_intel_server.contract.nodes import MAX_CONTRACT_BYTES
from code_intel_server.contract.schema import MAX_MESSAGE_CHARACTERS, UNASKED, AnyOf, PhasePart, Texts
from code_intel_server.contract.strict_yaml import parse_yaml

DEFAULT = Contract.load(None)
PACKAGED_FILE = templates_dir() / "code-intel" / "phase_contract.yml"


def load(folder: Path, text: str | bytes) -> Contract:
    """The contract of a project whose phase_contract.yml has this text."""
    file = folder / "phase_contract.yml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Contract.load(file)


def differences(contract: Contract) -> set[object]:
    """Keys of everything that is not as packaged."""
    ours, packaged = contract.texts, DEFAULT.texts
    changed: set[object] = {key for key in packaged.messages if ours.messages[key] != packaged.messages[key]}
    changed |= {key for key in packaged.phases if ours.phases[key] != packaged.phases[key]}
    assert ours.messages.keys() == packaged.messages.keys()
    assert ours.phases.keys() == packaged.phases.keys()
    return changed | ({"compaction_protocol"} if ours.compaction_protocol != packaged.compaction_protocol else set())


def only_warning(contract: Contract) -> str:
    """The single warning of a contract whose texts are all as packaged."""
    assert differences(contract) == set()
    assert len(contract.warnings) == 1, contract.warnings
    return contract.warnings[0]


# What is laid over


def test_no_file_means_the_packaged_texts(tmp_path: Path) -> None:
    for contract in (DEFAULT, Contract.load(tmp_path / "absent.yml")):
        assert (differences(contract), contract.warnings, contract.digest) == (set(), (), "")


def test_an_untouched_copy_of_the_default_changes_nothing() -> None:
    contract = Contract.load(PACKAGED_FILE)
    assert (differences(contract), contract.warnings) == (set(), ())
    assert contract.digest == hashlib.sha256(PACKAGED_FILE.read_bytes()).hexdigest()


def test_a_whole_contract_reworded_throughout_is_taken_over_throughout(tmp_path: Path) -> None:
    contract = load(tmp_path, PACKAGED_FILE.read_text(encoding="utf-8").replace(" the ", " THE "))
    assert contract.warnings == ()
    with_the = {
        key for key, template in DEFAULT.texts.messages.items() if " the " in f"{template.text} {template.instruction}"
    }
    assert len(with_the) > 50
    assert with_the <= differences(contract)


def test_one_message_one_instruction_and_one_required_tool_change_just_these_three(tmp_path: Path) -> None:
    contract = load(
        tmp_path,
        """
        phases:
          Q2:
            instruction: Ask yourself what you have not seen with your own eyes.
          VERIFICATION:
            required_tools: [find_references]
        failures:
          READY:
            unknown_task:
              message: "There is no '{task_id}' here."
        """,
    )
    assert contract.warnings == ()
    assert differences(contract) == {("Q2", ""), ("VERIFICATION", ""), "failures.READY.unknown_task"}
    assert contract.phase("Q2").instruction == "Ask yourself what you have not seen with your own eyes."
    assert contract.phase("Q2").expected_payload == DEFAULT.phase("Q2").expected_payload
    assert contract.phase("VERIFICATION").required_tools == ("find_references",)
    assert contract.phase("VERIFICATION").instruction == DEFAULT.phase("VERIFICATION").instruction
    message = contract.message("failures.READY.unknown_task", {"task_id": "t9", "tasks": ["t1", "t2"]})
    assert (message.error, message.text) == ("unknown_task", "There is no 't9' here.")
    assert message.instruction == "Registered tasks: t1, t2."


def test_every_field_of_a_message_can_be_changed(tmp_path: Path) -> None:
    contract = load(
        tmp_path,
        """
        warnings:
          nothing_to_commit: {error: none, message: Nothing., instruction: Go on., requires_user_intervention: true}
        failures:
          MERGE:
            merge_failed: {requires_user_intervention: false}
        """,
    )
    message = contract.message("warnings.nothing_to_commit")
    assert (message.error, message.text, message.instruction) == ("none", "Nothing.", "Go on.")
    assert message.requires_user_intervention
    assert not contract.message("failures.MERGE.merge_failed").requires_user_intervention
    assert DEFAULT.message("failures.MERGE.merge_failed").requires_user_intervention


def test_every_field_of_a_phase_and_of_a_variant_can_be_changed(tmp_path: Path) -> None:
    contract = load(
        tmp_path,
        """
        compaction_protocol: Count.
        phases:
          READY_PLAN:
            expected_payload: {tasks: the tasks}
            resources: [docs/plan.md]
            required_tools:
              - any_of: lookup
                at_least: 3
              - any_of: [search_text, query]
                at_least: 2
            variants:
              revert: {instruction: Again.}
        """,
    )
    assert contract.warnings == ()
    assert contract.compaction_protocol == "Count."
    base, revert = contract.phase("READY_PLAN"), contract.phase("READY_PLAN", "revert")
    assert base.expected_payload["tasks"] == "the tasks"
    assert base.required_tools == (AnyOf(("lookup",), 3), AnyOf(("search_text", "query"), 2))
    assert base.resources == ("docs/plan.md",)
    assert revert == PhaseText("Again.", base.expected_payload, base.required_tools, base.resources)
    assert (
        contract.phase("READY_PLAN", "unexplored").instruction == DEFAULT.phase("READY_PLAN", "unexplored").instruction
    )


def test_a_phase_without_any_word_is_shown_empty() -> None:
    bare = Contract(Texts(phases={("Q1", ""): PhasePart()}))
    assert bare.phase("Q1") == PhaseText("", {}, (), ())


def test_an_unknown_phase_variant_or_message_is_a_bug_of_ours() -> None:
    for call in (
        lambda: DEFAULT.phase("Q4"),
        lambda: DEFAULT.phase("Q1", "revert"),
        lambda: DEFAULT.message("failures.READY.nope"),
    ):
        with pytest.raises(KeyError):
            call()


# What is refused, key by key


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("phasen: {}\n", 1, "unknown key 'phasen' (did you mean 'phases'?)"),
        ("\nzzzz: 1\n", 2, "unknown key 'zzzz'"),
        ("phases: none\n", 1, "phases must be a mapping"),
        ("phases: {Q1: x}\n", 1, "phases.Q1 must be a mapping"),
        ("phases:\n  EXPLORE: {instruction: x}\n", 2, "did you mean 'EXPLORATION'?"),
        ("phases:\n  EXPLORE:\n    instruction: x\n", 2, "did you mean 'EXPLORATION'?"),
        ("phases:\n  Q1:\n    instructions: x\n", 3, "did you mean 'instruction'?"),
        ("phases:\n  Q1: {instruction: ''}\n", 2, "instruction must be a text"),
        ("phases:\n  Q1: {instruction: [x]}\n", 2, "instruction must be a text"),
        ("phases:\n  Q1: {expected_payload: x}\n", 2, "expected_payload must be a mapping"),
        ("phases:\n  Q1: {expected_payload: {reasons: str}}\n", 2, "did you mean 'reason'?"),
        ("phases:\n  Q1: {expected_payload: {reason: [x]}}\n", 2, "reason must be a text"),
        ("phases:\n  Q1: {resources: x}\n", 2, "resources must be a list of texts"),
        ("phases:\n  Q1: {resources: [[x]]}\n", 2, "resources must be a list of texts"),
        ("phases:\n  Q1: {required_tools: query}\n", 2, "required_tools must be a list"),
        ("phases:\n  Q1: {required_tools: [query, submit_phase]}\n", 2, "submit_phase ends the phase"),
        ("phases:\n  Q1: {required_tools: [[query]]}\n", 2, "a required tool is a name, or"),
        ("phases:\n  Q1: {required_tools: [{any_of: lookup}]}\n", 2, "a required tool is a name, or"),
        ("phases:\n  Q1: {required_tools: [{any_of: {}, at_least: 1}]}\n", 2, "any_of must be"),
        ("phases:\n  Q1: {required_tools: [{any_of: [], at_least: 1}]}\n", 2, "any_of must be"),
        ("phases:\n  Q1: {required_tools: [{any_of: lookup, at_least: 9}]}\n", 2, "a number from 1 to 8"),
        ("phases:\n  Q1: {required_tools: [{any_of: lookup, at_least: 0}]}\n", 2, "a number from 1 to 8"),
        ("phases:\n  Q1: {required_tools: [{any_of: lookup, at_least: many}]}\n", 2, "a number from 1 to 8"),
        ("phases:\n  Q1: {required_tools: [{any_of: lookup, at_least: []}]}\n", 2, "a number from 1 to 8"),
        ("phases:\n  Q1: {required_tools: [{any_of: [query, query], at_least: 2}]}\n", 2, "a number from 1 to 1"),
        ("phases:\n  Q1: {variants: x}\n", 2, "phases.Q1.variants must be a mapping"),
        ("phases:\n  READY_PLAN: {variants: {reverted: {instruction: x}}}\n", 2, "did you mean 'revert'?"),
        ("phases:\n  READY_PLAN: {variants: {revert: {variants: {}}}}\n", 2, "unknown key 'variants'"),
        ("compaction_protocol: {}\n", 1, "compaction_protocol must be a text"),
        ("failures: [x]\n", 1, "failures must be a mapping"),
        ("failures:\n  READY: {unknown_tasks: {message: x}}\n", 2, "did you mean 'failures.READY.unknown_task'?"),
        ("failures:\n  READY: {unknown_task: x}\n", 2, "failures.READY.unknown_task must be a mapping"),
        ("failures:\n  READY: {unknown_task: {message: {}}}\n", 2, "failures.READY.unknown_task must be a text"),
        ("failures:\n  READY: {unknown_task: {text: x}}\n", 2, "unknown key 'text'"),
        ("failures:\n  READY:\n    unknown_task:\n      message: 'No {task}.'\n", 4, "unknown placeholder {task}"),
        ("hints: {phase_blocked_hint: {message: '{x}'}}\n", 1, "(this message has: none)"),
        ("failures:\n  READY: {unknown_task: {message: '{task_id.x}'}}\n", 2, "'{task_id.x}' is no placeholder"),
        ("failures:\n  READY: {unknown_task: {requires_user_intervention: 'true'}}\n", 2, "must be true or false"),
        ("failures:\n  READY: {unknown_task: {requires_user_intervention: yes}}\n", 2, "must be true or false"),
        ('phases:\n  Q1: {instruction: "\\e[2J"}\n', 2, "control or invisible characters"),
        ('phases:\n  Q1: {instruction: "see \\u202e"}\n', 2, "control or invisible characters"),
        ('"\\e[2J": 1\n', 1, "unknown key '\\x1b[2J'"),
        (f"phases:\n  Q1: {{instruction: {'x' * (MAX_MESSAGE_CHARACTERS + 1)}}}\n", 2, "longer than 8000 characters"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_line_and_leaves_the_packaged_text(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    warning = only_warning(load(tmp_path, text)) if "any_of must be" not in words else load(tmp_path, text).warnings[-1]
    assert f"line {line}:" in warning
    assert words in warning


def test_one_wrong_key_does_not_take_its_neighbours_with_it(tmp_path: Path) -> None:
    contract = load(
        tmp_path, "phases:\n  Q1:\n    instruction: Mine.\n    oops: 1\nhints: 3\nwarnings: {no_git: {message: Hm.}}\n"
    )
    assert contract.phase("Q1").instruction == "Mine."
    assert contract.message("warnings.no_git").text == "Hm."
    assert len(contract.warnings) == 2


def test_a_tool_that_cannot_be_called_in_a_phase_cannot_be_required_there(tmp_path: Path) -> None:
    file = tmp_path / "c.yml"
    file.write_text(
        "phases:\n"
        "  Q1: {required_tools: [review_changes]}\n"
        "  Q2: {required_tools: [{any_of: [query, nonsense], at_least: 1}]}\n"
        "  Q3: {required_tools: [query]}\n"
    )
    contract = Contract.load(file, lambda _phase, tool: tool == "query")
    assert contract.phase("Q1").required_tools == ()
    assert contract.phase("Q2").required_tools == ()
    assert contract.phase("Q3").required_tools == ("query",)
    assert "'review_changes' cannot be called in Q1" in contract.warnings[0]
    assert "'nonsense' cannot be called in Q2" in contract.warnings[1]


# Files that are no contract at all


@pytest.mark.parametrize(
    "text",
    [
        "a: [\n",
        "- 1\n",
        "a: &x 1\n",
        "phases: !!python/name:os.system x\n",
        "phases: {}\nphases: {}\n",
        b"\xff",
        "\x00",
    ],
)
def test_a_broken_file_leaves_everything_as_packaged_and_is_named(tmp_path: Path, text: str | bytes) -> None:
    contract = load(tmp_path, text)
    assert "phase_contract.yml line" in only_warning(contract)
    assert contract.digest == hashlib.sha256((tmp_path / "phase_contract.yml").read_bytes()).hexdigest()


def test_an_oversized_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    contract = load(tmp_path, b"#" * (MAX_CONTRACT_BYTES * 3))
    assert "larger than 256 KB" in only_warning(contract)


def test_a_folder_a_pipe_and_an_impossible_path_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        assert "not a regular file" in only_warning(Contract.load(path))
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert differences(Contract.load(loop)) == set()
    assert differences(Contract.load(Path("a\0b"))) == set()


def test_a_file_that_fails_while_it_is_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "c.yml"
    file.write_text("phases: {}\n")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "open", refuse)
    assert "cannot be read (PermissionError)" in only_warning(Contract.load(file))


def test_many_problems_are_counted_not_listed(tmp_path: Path) -> None:
    contract = load(tmp_path, "".join(f"key{n}: 1\n" for n in range(MAX_CONTRACT_WARNINGS + 7)))
    assert len(contract.warnings) == MAX_CONTRACT_WARNINGS + 1
    assert contract.warnings[-1] == "… and 7 more"


def test_a_broken_package_is_said_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_default_root", lambda: parse_yaml(b"phasen: {}\n"))
    loader.default_texts.cache_clear()
    with pytest.raises(ValueError, match="line 1: unknown key 'phasen'"):
        loader.default_texts()
    monkeypatch.undo()
    loader.default_texts.cache_clear()


KEYS = [
    "phases",
    "failures",
    "hints",
    "READY",
    "Q1",
    "instruction",
    "message",
    "unknown_task",
    "required_tools",
    "variants",
    "x",
]
trees = st.recursive(
    st.sampled_from(["text", "{task_id}", "{x}", "true", "", "submit_phase"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.dictionaries(st.sampled_from(KEYS), trees, max_size=4) | trees)
def test_no_tree_of_any_shape_can_raise_or_remove_a_key(tmp_path: Path, tree: object) -> None:
    import json

    contract = load(tmp_path, json.dumps(tree))
    differences(contract)
    assert contract.message("failures.READY.unknown_task", {"task_id": "t", "tasks": []}).text
    assert contract.phase("Q1").instruction


# The packaged texts themselves


@pytest.mark.parametrize("key", sorted(DEFAULT.texts.phases), ids=":".join)
def test_a_packaged_phase_is_complete_and_short(key: tuple[str, str]) -> None:
    phase = DEFAULT.phase(*key)
    assert 50 < len(phase.instruction) <= 700
    assert "summary" in phase.expected_payload and UNASKED.isdisjoint(phase.expected_payload)
    assert "complete_task" not in phase.instruction
    assert "submit_phase" not in phase.required_tools


def test_the_required_tools_are_those_of_the_specification() -> None:
    required = {phase: DEFAULT.phase(phase).required_tools for phase, variant in DEFAULT.texts.phases if not variant}
    assert {phase: tools for phase, tools in required.items() if tools} == {
        "EXPLORATION": (AnyOf(("lookup",), 2),),
        "SEMANTIC": ("semantic_search",),
        "IMPACT_ANALYSIS": ("analyze_impact",),
        "READY_IMPL": ("check_write_target",),
        "PRE_COMMIT": ("review_changes",),
    }


@pytest.mark.parametrize("key", sorted(DEFAULT.texts.messages))
def test_a_packaged_message_is_complete_and_prints_no_verdict(key: str) -> None:
    template: Message = DEFAULT.texts.messages[key]
    assert template.text or key.startswith("tool_errors.start_session.branch_setup")
    refusal = key.split(".", maxsplit=1)[0] in {"common_failures", "failures", "tool_errors"}
    assert bool(template.error) or not refusal
    for text in (template.error, template.text, template.instruction or ""):
        assert misused_brace(text) is None
        assert len(text) <= 600
        for verdict in ('passed": true', "passed=true", "issues=[]", 'issues": []', 'status": "done'):
            assert verdict not in text


def test_the_compaction_protocol_is_short_and_tells_all_three_cases() -> None:
    protocol = DEFAULT.compaction_protocol
    assert len(protocol) <= 100
    for words in ("last seen", "+ 1", "unknown: 1"):
        assert words in protocol


def test_what_is_shown_as_a_bare_text_says_everything_in_it() -> None:
    for key, template in DEFAULT.texts.messages.items():
        if key.split(".")[0] in {"success", "hints", "warnings", "query_frame_hints"}:
            assert (template.error, template.instruction) == ("", None), key
