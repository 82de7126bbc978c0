"""Whose word a decision is: marked in answer and trailer, and never a reason to refuse (SPEC 12)."""

import re

import pytest

from code_intel_server.contract.clients import CLAUDE, CLIENTS, Client
from code_intel_server.contract.skills import Skill, skill_files
from code_intel_server.flow.checks.user_words import ANSWER_AT_MOST, names_command, words_in
from code_intel_server.flow.ports import Author
from code_intel_server.workspace.values import CommandRun, ProofStatus
from tests.flow.world import Session, World

WAIVED = CommandRun(("make", "test"), ProofStatus.WAIVED, None, 0.0, "", "red before")
ESCALATED = {"prompt_used": "user_escalation", "action_taken": "Asked."}


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("/code -q fix the typo", ("--quick",)),
        ("please $code --no-doc-research --no-verify add it", ("--no_doc", "--no_verify")),
        ("/code-intel:code add it -ni -g=f", ("--gate_level", "--no_intervention")),
        ("-e", ("--only_explore",)),
        ("/code -g=auto add it", ()),
        ("/code fix what `pytest -q` says of x", ()),
        ("make it quick and fast", ()),
        ("/code --unknown -q x", ("--quick",)),
        ("/code x -- -v", ("--only_verify",)),
        ("Delete them.", ("delete",)),
        ("don\u2019t delete or merge them, continue", ("continue",)),
        ("do not stop. Merge it!", ("merge",)),
        ("waive it, and go on", ("waive",)),
        ("you cannot continue", ()),
        ("undeleted stopwords", ()),
        (f"delete {'x' * ANSWER_AT_MOST}", ()),
        ("", ()),
    ],
)
def test_flags_are_heard_where_they_are_typed_and_decisions_unless_they_are_negated(
    prompt: str, words: tuple[str, ...]
) -> None:
    assert words_in(prompt) == words


def test_every_flag_of_the_skill_is_heard_as_the_server_takes_it() -> None:
    page = skill_files(CLAUDE)[CLAUDE.skills.format(skill=Skill.CODE)]
    rows = re.findall(r"^\| `(--[^`]+)` \| (?:`(-[^`]+)`)? ?\| `(\w+)", page, re.MULTILINE)
    assert len(rows) == 12
    for long, short, passed in rows:
        for typed in filter(None, (long, short)):
            assert words_in(f"/code {typed.replace('=LEVEL', '=full')} add it") == (f"--{passed}",)


@pytest.mark.parametrize("client", [one for one in CLIENTS if "arguments" in one.voices], ids=lambda one: one.name)
def test_a_command_that_the_client_has_put_the_skill_in_place_of_is_heard_too(client: Client) -> None:
    page = skill_files(client)[client.skills.format(skill=Skill.CODE)]
    expanded = page.replace(client.arguments, "-q add it\nto the list --no-verify")
    assert words_in(expanded) == ("--quick", "--no_verify")
    assert names_command(expanded)


def test_a_session_is_called_for_by_the_skills_name_alone() -> None:
    assert names_command("/code x") and names_command("then $code") and names_command("/code-intel:code x")
    assert not names_command("read src/code and /codes")


def stale(**says: tuple[str, Author]) -> Session:
    return Session(world=World(stale=("llm_task_old",), user_says=says))


def test_a_choice_about_stale_branches_is_taken_as_before_and_marked() -> None:
    answer = (session := stale()).send(choice="delete")
    assert answer["decisions"] == {"stale branches: delete": "said by the agent"}
    assert session.world.questions == [("stale_branches", ("delete", "continue"))]
    assert "decisions" not in session.send(documents_reviewed=["README.md"])


def test_what_the_user_answers_is_done_and_not_what_the_agent_says() -> None:
    session = stale(stale_branches=("continue", Author.USER))
    answer = session.send(choice="delete")
    assert answer["decisions"] == {"stale branches: continue": "answered by the user"}
    assert answer["branch_policy"] == "continue"
    assert session.world.stale == ("llm_task_old",)


def escalating(**says: tuple[str, Author]) -> Session:
    session = Session(world=World(user_says=says)).to_ready().to_verify()
    session.state = session.state.model_copy(update={"intervention_count": 2, "verification_failure_count": 2})
    session.send(passed=False, verifier_used="tests", details="red")
    assert session.state.escalating
    return session


def test_a_decision_at_an_escalation_is_marked_and_the_users_stop_ends_it() -> None:
    heard = escalating(user_decision=("continue", Author.HOOK))
    answer = heard.send(**ESCALATED, user_decision="continue")
    assert answer["decisions"] == {"user decision: continue": "heard by the hook"}
    answer = escalating(user_decision=("stop", Author.USER)).send(**ESCALATED, user_decision="continue")
    assert (answer["phase"], answer["decisions"]) == (
        "SESSION_ABANDONED",
        {"user decision: stop": "answered by the user"},
    )


def test_a_waiver_is_marked_once_in_answer_and_trailer() -> None:
    session = Session(world=World(proof=ProofStatus.WAIVED, run=WAIVED, waived_by=Author.TERMINAL))
    answer = session.to_ready().to_verify().send(passed=True, verifier_used="tests", details="green")
    assert answer["decisions"] == {"waiver of make test": "typed at a terminal"}
    session.edit(text="def main():\n    return 3\n").commit()
    (request,) = session.world.commits
    assert ("Code-Intel-Decision", "waiver of make test, typed at a terminal") in request.trailers
    assert [what for what, _ in session.world.questions] == [session.state.session_id]


def test_a_waiver_that_the_user_denies_is_refused_and_the_command_runs() -> None:
    world = World(proof=ProofStatus.WAIVED, run=WAIVED, waived_by=None)
    session = Session(world=world).to_ready().to_verify()
    answer = session.send(passed=True, verifier_used="tests", details="green")
    assert session.error == "common_failures.waiver_denied"
    assert "the command runs now" in str(answer["remedy"])
    world.proof, world.run = ProofStatus.PROVEN, None
    answer = session.send(passed=True, verifier_used="tests", details="green")
    assert answer["success"] and "decisions" not in answer
