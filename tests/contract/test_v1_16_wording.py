"""Every key of the published v1.16 contract exists here; its messages with the words they had there (SPEC 5)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from code_intel_server.contract.loader import Contract
from code_intel_server.contract.nodes import Node, Scalar, Table
from code_intel_server.contract.retired import RETIRED
from code_intel_server.contract.schema import MESSAGE_SECTIONS, UNASKED
from code_intel_server.contract.strict_yaml import parse_yaml
from code_intel_server.flow.phases import PLACES
from code_intel_server.flow.steps import ignored_fields

SOURCE = parse_yaml((Path(__file__).parent / "v1_16_phase_contract.yml").read_bytes())
CONTRACT = Contract.load(None)

# Published words that changed on purpose: path in the source -> (the words there, the words here, why).
CHANGED = {
    "phases.READY_PLAN.expected_payload.tasks": (
        "list[{item, status}], failure_count?, revert_reason?}]",
        "list[str]}]",
        "a planned item is pending, and the counts are the server's: nobody has to write either",
    ),
    "tool_errors.review_changes.phase_blocked": (
        "in PRE_COMMIT phase",
        "from step 13 to QUALITY_REVIEW",
        "SPEC 2 [2.0]: a resumed agent looks at what is changed",
    ),
    **{
        f"tool_errors.check_phase_necessity.{key}": (field, "reason", "SPEC 4: worded for `reason`")
        for key, field in {
            "semantic_reason_required": "needs_more_information_reason",
            "semantic_reason_length": "needs_more_information_reason",
            "verification_reason_required": "has_unverified_hypotheses_reason",
            "verification_reason_length": "has_unverified_hypotheses_reason",
            "impact_reason_required": "needs_impact_analysis_reason",
            "impact_reason_length": "needs_impact_analysis_reason",
        }.items()
    },
}


def leaves(node: Node, path: str = "") -> Iterator[tuple[str, str]]:
    """(dotted path, text) of every text in the source."""
    if isinstance(node, Table):
        for name, child in node.items.items():
            yield from leaves(child, f"{path}.{name}" if path else name)
    elif isinstance(node, Scalar):
        yield path, node.text


def here(path: str) -> str:
    """The text of the packaged contract that stands where `path` leads in the source."""
    names = path.split(".")
    if names[0] == "phases":
        phase = CONTRACT.phase(names[1])
        return phase.instruction if names[2] == "instruction" else phase.expected_payload[names[3]]
    assert names[0] in MESSAGE_SECTIONS
    template = CONTRACT.texts.messages[".".join(names[:-1])]
    return {
        "error": template.error,
        "message": template.text,
        "instruction": template.instruction or "",
        "requires_user_intervention": str(template.requires_user_intervention).lower(),
    }[names[-1]]


def folded(text: str) -> str:
    """The text with its white space made one space each."""
    return " ".join(text.split())


# An instruction is read once a phase by a model that pays for each word: 2.0 says the same shorter (SPEC 4).
KEPT = [leaf for leaf in leaves(SOURCE) if not leaf[0].endswith("instruction") or not leaf[0].startswith("phases.")]
# Agents filled these only because they were asked for; nothing was decided by them.
NOT_ASKED = [path for path, _ in KEPT if path.rsplit(".", 1)[-1] in UNASKED]
KEPT = [leaf for leaf in KEPT if leaf[0] not in NOT_ASKED]


@pytest.mark.parametrize(("path", "text"), KEPT, ids=[path for path, _ in KEPT])
def test_a_published_text_is_here_word_for_word(path: str, text: str) -> None:
    old, new, _ = CHANGED.get(path.removesuffix(".message"), ("", "", ""))
    wanted = folded(text).replace(old, new) if old else folded(text)
    assert folded(here(path)).startswith(wanted)


def test_the_source_has_the_size_it_was_published_with() -> None:
    paths = [path for path, _ in leaves(SOURCE)]
    assert len({path.split(".")[1] for path in paths if path.startswith("phases.")}) == 18
    messages = {path.rsplit(".", 1)[0] for path in paths if not path.startswith("phases.")}
    # The 80 of v1.15 (which counts investigation_complete of Q3 and IMPACT_ANALYSIS once) and 8 checklist messages of v1.16.
    assert len(messages) == 89


def test_a_field_that_is_no_longer_asked_for_is_still_taken() -> None:
    assert {path.rsplit(".", 1)[1] for path in NOT_ASKED} == UNASKED
    for path in NOT_ASKED:
        phase, field = path.split(".")[1], path.rsplit(".", 1)[1]
        assert field not in CONTRACT.phase(phase).expected_payload
        place = next(place for place in PLACES if place.contract_key == phase)
        assert ignored_fields(place, {field: ""}) == []


def test_a_contract_of_1_16_is_laid_over_without_a_complaint(tmp_path: Path) -> None:
    old = tmp_path / "phase_contract.yml"
    text = (Path(__file__).parent / "v1_16_phase_contract.yml").read_text(encoding="utf-8")
    unsent = "failures:\n  PRE_COMMIT:\n    weakened_needs_reason: {message: 'Weakened: {files}.'}\n"
    old.write_text(text, encoding="utf-8")
    (tmp_path / "released.yml").write_text(unsent, encoding="utf-8")
    assert Contract.load(tmp_path / "released.yml").warnings == ()
    removed = "failures:\n  MERGE:\n    merge_holds_more: {message: 'More: {branch}.'}\n"
    (tmp_path / "removed.yml").write_text(removed, encoding="utf-8")
    (said,) = Contract.load(tmp_path / "removed.yml").warnings
    assert "removed in 2.0" in said and "upgrading.md" in said and "did you mean" not in said
    contract = Contract.load(old)
    assert contract.warnings == ()
    assert UNASKED.isdisjoint(contract.phase("QUERY_FRAME").expected_payload)


def test_every_deliberate_change_still_changes_something() -> None:
    texts = dict(leaves(SOURCE))
    for path, (old, new, why) in CHANGED.items():
        published = texts.get(path) or texts[f"{path}.message"]
        assert old in published
        assert new not in published.replace(old, "")
        assert why


def test_retired_messages_exist_and_say_why() -> None:
    for key, reason in RETIRED.items():
        assert key in CONTRACT.texts.messages
        assert len(reason) > 20
