"""Telling uses with the help of a process: the same rows as without, whatever becomes of the process."""

import os
import selectors
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.codebase.lookup_project import write

from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.project import ProjectScope
from code_intel_server.codebase.files.ripgrep import FileMatches
from code_intel_server.codebase.references import classify, finder, worker_link
from code_intel_server.codebase.references.classify import NameQuery, Told
from code_intel_server.codebase.references.worker_link import UsesHelper
from code_intel_server.codebase.symbols.freshness import SourceFiles
from code_intel_server.codebase.syntax import skeletons

BODIES = {
    "py": "# Basket\nfrom shop import Basket\n\n\ndef ring(b: Basket) -> int:\n    return Basket(b).Basket + 'Basket'\n",
    "ts": "import { Basket } from './shop';\nlet b: Basket = new Basket();\n",
    "go": "package a\nfunc g() { Basket() }\n",
    "md": "The Basket holds things.\n",
    "html": '<p id="Basket">Basket</p>\n<script>Basket("größe");</script>\n',
    "unknown": "Basket\n",
}


@pytest.fixture
def project(tmp_path: Path) -> ProjectScope:
    """Files that use a name, in several languages, one of them with a name that is no UTF-8."""
    write(
        tmp_path, {f"d{n % 3}/m{n:02}.{suffix}": text * (n + 1) for n in range(12) for suffix, text in BODIES.items()}
    )
    odd = os.fsencode(tmp_path) + b"/caf\xe9.py"
    with open(odd, "wb") as file:  # noqa: PTH123 - a Path is made of text
        file.write(BODIES["py"].encode())
    return ProjectScope.at(tmp_path)


@pytest.fixture
def helper(monkeypatch: pytest.MonkeyPatch) -> Iterator[UsesHelper]:
    """A helper that thinks every question worth its process."""
    monkeypatch.setattr(worker_link, "WORTH_A_PROCESS", 0)
    monkeypatch.setattr(worker_link, "WORTH_ASKING", 0)
    made = UsesHelper()
    yield made
    made.close()


class Question:
    """A question for every use of Basket, and which files were done in this process."""

    def __init__(self, project: ProjectScope) -> None:
        self.project = project
        found = ripgrep.search(project, ripgrep.Query(("Basket",), regex=False, word=True))
        self.files = sorted(found.files, key=lambda file: file.path)
        self.sizes = [os.lstat(os.path.join(project.root, file.path)).st_size for file in self.files]  # noqa: PTH118
        self.asked = NameQuery(classify.occurrences(("Basket",)), include_comments=True)
        self.done_here: list[str] = []

    def here(self, file: FileMatches) -> Told:
        self.done_here.append(file.path)
        return classify.classify(SourceFiles(self.project.root), file, self.asked)

    def answer(self, helper: UsesHelper, here: Callable[[FileMatches], Told] | None = None) -> list[Told]:
        self.done_here.clear()
        return helper.tell(self.project.root, self.files, self.sizes, self.asked, here or self.here)

    def alone(self) -> list[Told]:
        return [classify.classify(SourceFiles(self.project.root), file, self.asked) for file in self.files]

    def patient(self, helper: UsesHelper) -> Callable[[FileMatches], Told]:
        """Does a file only when the process has answered something, or ended."""

        def here(file: FileMatches) -> Told:
            if helper._child is not None and helper._child.owes:
                with selectors.DefaultSelector() as selector:
                    selector.register(helper._child.link.answers, selectors.EVENT_READ)
                    assert selector.select(60), "the process says nothing"
            return self.here(file)

        return here


def test_the_rows_are_the_same_with_help_and_without(project: ProjectScope, helper: UsesHelper) -> None:
    question = Question(project)
    assert question.answer(helper, question.patient(helper)) == question.alone()
    assert 0 < len(question.done_here) < len(question.files)
    first = helper.process_id
    assert question.answer(helper, question.patient(helper)) == question.alone()
    assert helper.process_id == first


def test_an_answer_with_help_is_the_whole_answer_without(project: ProjectScope, helper: UsesHelper) -> None:
    alone = finder.collect(project, ("Basket",))
    assert alone.rows
    assert finder.collect(project, ("Basket",), helper=helper) == alone


def test_a_killed_process_costs_nothing_and_the_next_question_has_another(
    project: ProjectScope, helper: UsesHelper
) -> None:
    question = Question(project)
    question.answer(helper, question.patient(helper))
    first = helper.process_id
    assert first is not None

    def killing(file: FileMatches) -> Told:
        if not question.done_here:
            os.kill(first, signal.SIGKILL)
        return question.patient(helper)(file)

    assert question.answer(helper, killing) == question.alone()
    assert helper.process_id is None
    assert question.answer(helper, question.patient(helper)) == question.alone()
    assert helper.process_id not in {None, first}


def test_a_process_that_hangs_is_not_waited_for_and_given_up_later(
    project: ProjectScope, helper: UsesHelper, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = Question(project)
    question.answer(helper, question.patient(helper))
    hung = helper.process_id
    assert hung is not None
    while helper._child is not None and helper._child.owes:
        question.answer(helper, question.patient(helper))  # what it still owes must not be taken for an answer
    os.kill(hung, signal.SIGSTOP)
    assert question.answer(helper) == question.alone()
    assert sorted(question.done_here) == [file.path for file in question.files]
    assert helper.process_id == hung
    monkeypatch.setattr(worker_link, "_STALE_SECONDS", -1.0)
    assert question.answer(helper) == question.alone()
    assert helper.process_id not in {None, hung}


def test_an_answer_that_lay_unread_is_no_sign_of_a_process_that_hangs(
    project: ProjectScope, helper: UsesHelper
) -> None:
    question = Question(project)
    question.answer(helper, question.patient(helper))
    warm = helper.process_id
    assert warm is not None
    os.kill(warm, signal.SIGSTOP)
    question.answer(helper)
    assert helper._child is not None and len(helper._child.owes) > 1
    os.kill(warm, signal.SIGCONT)
    with selectors.DefaultSelector() as selector:
        selector.register(helper._child.link.answers, selectors.EVENT_READ)
        assert selector.select(60), "the process says nothing"
    for given in helper._child.owes.values():
        given.at -= 10 * worker_link._STALE_SECONDS
    assert question.answer(helper, question.patient(helper)) == question.alone()
    assert helper.process_id == warm


def test_a_closed_helper_leaves_no_thread(project: ProjectScope, helper: UsesHelper) -> None:
    question = Question(project)
    question.answer(helper)
    timer = helper._timer
    assert timer is not None and timer.is_alive()
    helper.close()
    timer.join(60)
    assert not timer.is_alive()
    question.answer(helper)
    assert helper._timer not in {None, timer}


def test_a_late_answer_is_not_taken_for_that_of_another_question(project: ProjectScope, helper: UsesHelper) -> None:
    question = Question(project)
    question.answer(helper, question.patient(helper))
    assert helper.process_id is not None
    os.kill(helper.process_id, signal.SIGSTOP)
    question.answer(helper)
    assert helper._child is not None and helper._child.owes
    (project.root / "d0/m00.py").write_text("Basket = 1\n", encoding="utf-8")
    changed = Question(project)
    os.kill(helper.process_id, signal.SIGCONT)
    assert changed.answer(helper, changed.patient(helper)) == changed.alone()


def test_a_process_that_answers_nonsense_is_given_up(
    project: ProjectScope, helper: UsesHelper, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = Question(project)

    def nonsense(_: object) -> None:
        raise ValueError("no such use")

    monkeypatch.setattr(classify.ReferenceRow, "unpacked", nonsense)
    assert question.answer(helper, question.patient(helper)) == question.alone()
    assert helper.process_id is None


def test_little_work_starts_no_process(project: ProjectScope) -> None:
    helper, question = UsesHelper(), Question(project)
    assert question.answer(helper) == question.alone()
    assert helper.process_id is None


def test_a_second_question_at_once_is_answered_without_help(project: ProjectScope, helper: UsesHelper) -> None:
    question, inner = Question(project), Question(project)
    answers: list[list[Told]] = []

    def here(file: FileMatches) -> Told:
        if not answers:
            answers.append([])
            answers[0] = inner.answer(helper)
        return question.here(file)

    assert question.answer(helper, here) == question.alone()
    assert answers == [question.alone()]
    assert len(inner.done_here) == len(inner.files)


def test_a_file_with_more_lines_than_a_pipe_holds_is_done_here(project: ProjectScope, helper: UsesHelper) -> None:
    (project.root / "many.py").write_text("Basket(1)\n" * 20_000, encoding="utf-8")
    question = Question(project)
    assert question.answer(helper, question.patient(helper)) == question.alone()
    assert "many.py" in question.done_here


def test_the_process_ends_when_nobody_has_asked_for_a_while(project: ProjectScope, helper: UsesHelper) -> None:
    helper._idle_seconds = 0.05
    question = Question(project)
    question.answer(helper)
    timer = helper._timer
    assert timer is not None
    while timer is not None:
        timer.join(60)
        assert not timer.is_alive()
        timer = helper._timer
    assert helper.process_id is None


def test_where_no_process_can_be_started_everything_is_done_here(
    project: ProjectScope, helper: UsesHelper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(worker_link, "ChildLink", refused)
    question = Question(project)
    assert question.answer(helper) == question.alone()


def test_a_file_that_is_gone_is_told_from_one_without_rows(project: ProjectScope, helper: UsesHelper) -> None:
    question = Question(project)
    for file in question.files[::2]:
        os.unlink(os.path.join(project.root, file.path))  # noqa: PTH108, PTH118 - one name is no UTF-8
    assert question.answer(helper, question.patient(helper)) == question.alone()
    assert None in question.alone()


def test_what_the_process_found_out_about_a_file_serves_the_next_question(tmp_path: Path, helper: UsesHelper) -> None:
    members = "".join(f"    def ring{n}(self):\n        return Basket.at{n}  # {'.' * 40}\n" for n in range(90))
    shop = ProjectScope.at(write(tmp_path, {f"m{n}.py": f"class Shop:\n{members}" for n in range(12)}))
    question = Question(shop)
    question.answer(helper, question.patient(helper))
    known = skeletons.of_project(shop.root)
    of_process = [file.path for file in question.files if file.path not in question.done_here]
    assert of_process
    assert all(known.of(file.path) is not None for file in question.files)
    question.asked = NameQuery(classify.occurrences(("at7",)), include_comments=True)
    question.files = list(ripgrep.search(shop, ripgrep.Query(("at7",), regex=False, word=True)).files)
    by_both = question.answer(helper, question.patient(helper))
    assert len(question.done_here) < len(question.files)
    for told in (
        by_both,
        question.alone(),
    ):  # which of them the process leaves to us is its haste: so all again by ourselves
        rows = [[(row.kind, row.enclosing) for row in one or ()] for one in told]
        assert rows == [[("attribute", "Shop.ring7")]] * 12
