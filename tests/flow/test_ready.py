"""READY: the plan, the reports, and evidence judged by the tree (SPEC 4)."""

import pytest

from code_intel_server.flow.phases import Flags, Phase
from tests.flow.world import TOO_BIG, Session, World

ITEM = {"item": "Item of t1"}


def task(name: str = "t1", **changes: object) -> dict[str, object]:
    return {
        "id": name,
        "description": f"Do {name}",
        "status": "pending",
        "checklist": [{"item": f"Item of {name}"}],
        **changes,
    }


class TestPlan:
    @pytest.mark.parametrize(
        ("tasks", "key"),
        [
            ([], "failures.READY.empty_tasks"),
            ([task(), task()], "failures.READY.duplicate_task_ids"),
            ([task(status="completed")], "failures.READY.completed_not_recorded"),
            ([task(checklist=[])], "failures.READY.checklist_required"),
            ([task(checklist=[{"item": " "}])], "failures.READY.checklist_required"),
            ([task(checklist=["a", "a"])], "failures.READY.checklist_items_duplicate"),
            ([task(description="")], "failures.READY.description_required"),
            ([task(id=" ")], "failures.READY.task_id_required"),
            ([task(), task(id="", description="")], "failures.READY.task_id_required"),
            ([task(status="half")], "common_failures.field_invalid"),
            ("t1", "common_failures.field_invalid"),
            ([task(description="x" * 100_000)], "failures.READY.plan_too_large"),
        ],
    )
    def test_a_bad_plan_is_refused(self, tasks: object, key: str) -> None:
        session = Session().to_ready()
        session.send(tasks=tasks)
        assert session.error == key
        assert session.world.current == "main"

    def test_a_report_without_a_plan_is_told_that_a_plan_is_missing(self) -> None:
        session = Session().to_ready()
        answer = session.send(task_id="t1", checklist=[ITEM])
        assert session.error == "failures.READY.no_tasks"
        assert answer["message"] == "No tasks registered. Call submit_phase with tasks first."

    def test_the_first_plan_makes_the_branch_and_names_the_next_task(self) -> None:
        session = Session().to_ready()
        answer = session.plan("t1", "t2")
        assert session.world.current == "llm_task_20260201_123456"
        assert answer["step"] == 13
        assert answer["next_task"] == {"id": "t1", "description": "Do t1", "checklist": ["Item of t1"]}
        assert answer["task_progress"] == "0/2"

    def test_the_plan_instruction_carries_the_guide(self) -> None:
        session = Session().to_ready()
        assert session.status()["task_planning"] == "Do task_planning."

    def test_counts_in_a_payload_are_ignored(self) -> None:
        session = Session().to_ready()
        session.send(tasks=[task(failure_count=9, revert_reason="forged")])
        assert session.state.tasks[0].failure_count == 0
        assert session.state.tasks[0].revert_reason == ""

    def test_the_same_plan_again_changes_nothing(self) -> None:
        session = Session().to_ready().planned("t1", "t2")
        session.edit().report("t1")
        before = session.state.tasks
        session.plan("t2")
        assert session.state.tasks == before

    def test_a_re_plan_may_drop_pending_tasks_and_says_so(self) -> None:
        session = Session().to_ready().planned("t1", "t2")
        assert "dropped t2" in str(session.plan("t1", "t3")["warning"])

    def test_a_completed_task_neither_vanishes_nor_reopens(self) -> None:
        session = Session().to_ready().planned("t1", "t2")
        session.edit().report("t1")
        session.send(tasks=[task("t1"), task("t2"), task("t3")])
        assert session.error == "failures.READY.completed_missing"
        session.send(tasks=[task("t1"), task("t2")], summary="As planned.")
        assert [str(one.status) for one in session.state.tasks] == ["completed", "pending"]
        assert session.send(tasks=[task("t3")])["task_progress"] == "1/2"
        assert [(one.id, str(one.status)) for one in session.state.tasks] == [("t1", "completed"), ("t3", "pending")]

    def test_a_plan_without_pending_tasks_is_refused(self) -> None:
        session = Session().to_ready().planned("t1")
        session.edit().report("t1")
        session.send(tasks=[task("t1", status="completed")])
        assert session.error == "failures.READY.no_pending_tasks"

    def test_more_can_be_planned_after_the_last_report(self) -> None:
        session = Session().to_ready().planned("t1")
        session.edit().report("t1")
        assert session.state.place.step == 14
        session.plan("t2")
        assert session.state.place.step == 13

    def test_a_fix_task_carries_the_reason_of_the_revert(self) -> None:
        session = Session().to_ready().to_verify()
        session.send(passed=False, verifier_used="tests", details="test_x fails")
        answer = session.plan("fix1")
        assert answer["next_task"]["revert_reason"] == "test_x fails"  # type: ignore[index]

    def test_a_branch_that_cannot_be_made_is_the_users(self) -> None:
        session = Session(world=World(failing={"create": "failures.READY.branch_creation_failed"})).to_ready()
        answer = session.plan("t1")
        assert answer["error"] == "branch_creation_failed"
        assert answer["requires_user_intervention"] is True
        assert session.state.tasks == ()

    def test_what_was_written_before_the_plan_must_be_explained(self) -> None:
        session = Session().to_ready()
        session.edit()
        answer = session.plan("t1")
        assert session.error == "failures.READY.changes_before_ready"
        assert answer["changed"] == ["app.py"]
        session.state.added_files["app.py"] = "the user edited it meanwhile"
        session.plan("t1")
        assert session.state.place.step == 13

    def test_what_was_uncommitted_before_and_is_now_as_committed_was_undone(self) -> None:
        """A warning at the start asks for that; a file that still differs from the last commit is named."""
        world = World()
        world.heads[world.head()] = {**world.files, "app.py": "committed\n", "README.md": "committed\n"}
        session = Session(world=world).to_ready()
        session.edit("app.py", "committed\n").edit("README.md", "changed\n").edit("new.py", "x = 1\n")
        answer = session.plan("t1")
        assert session.error == "failures.READY.changes_before_ready"
        assert answer["changed"] == ["README.md", "new.py"]
        session.edit("README.md", "committed\n")
        del session.world.files["new.py"]
        assert session.plan("t1")["success"]

    def test_the_same_plan_again_changes_nothing_at_any_time_in_ready(self) -> None:
        session = Session().to_ready().planned("t1", "t2")
        session.edit().report("t1")
        first = session.state.tasks
        answer = session.send(tasks=[task("t1"), task("t2")], summary="As before.")
        assert (session.state.tasks, session.state.place.step) == (first, 13)
        assert answer["next_task"]["id"] == "t2"  # type: ignore[index]
        session.report("t2", reason="the same line does both")
        assert session.state.place.step == 14
        answer = session.send(tasks=[task("t1"), task("t2")], summary="Once more.")
        assert (answer["success"], answer["step"], answer["all_complete"]) == (True, 14, True)
        session.send(tasks=[task("t1", status="completed"), task("t2", status="completed")], summary="Shorter?")
        assert session.error == "failures.READY.no_pending_tasks"
        session.send(summary="All tasks are done.")
        session.send(passed=False, verifier_used="tests", details="it is red")
        session.send(tasks=[task("t1"), task("t2")], summary="As before.")
        assert session.error == "failures.READY.completed_missing"
        answer = session.send(summary="All done.")
        assert session.error == "failures.READY.plan_after_setback"
        assert "it is red" in str(answer["message"])


class TestReport:
    def at(self, *files: str, **world: object) -> Session:
        session = Session(world=World(**world)).to_ready(*files)  # type: ignore[arg-type]
        session.plan("t1", "t2")
        return session

    def test_a_report_needs_a_plan_a_known_pending_task_and_its_turn(self) -> None:
        session = Session().to_ready()
        session.report("t1")
        assert session.error == "failures.READY.no_tasks"
        session.plan("t1", "t2")
        session.report("zz")
        assert session.error == "failures.READY.unknown_task"
        session.report("t2")
        assert session.error == "failures.READY.wrong_order"
        session.edit().report("t1")
        session.report("t1", reason="sent once more")
        assert session.error == "failures.READY.already_completed"

    def test_tasks_marked_independent_are_reported_in_any_order_and_the_others_wait(self) -> None:
        session = Session().to_ready()
        tasks = [{"id": name, "description": name, "checklist": [f"Item of {name}"]} for name in ("t1", "t2", "t3")]
        session.send(tasks=[tasks[0], tasks[1] | {"independent": True}, tasks[2]])
        assert session.error == ""
        session.edit().report("t3")
        assert session.error == "failures.READY.wrong_order"
        session.report("t2")
        assert session.error == ""
        session.edit(text="def main():\n    print(2)\n    return 2\n").report("t1", evidence="app.py:2")
        assert session.error == ""
        assert [task.pending for task in session.state.tasks] == [False, False, True]

    def test_completion_needs_tasks_and_none_pending(self) -> None:
        session = Session().to_ready()
        session.send()
        assert session.error == "failures.READY.no_tasks_registered"
        session.plan("t1")
        answer = session.send()
        assert session.error == "failures.READY.incomplete_tasks"
        assert answer["pending"] == ["t1"]

    def test_a_changed_file_must_have_been_allowed_at_some_time_of_the_session(self) -> None:
        session = self.at("app.py", "README.md").edit("README.md", "# App 2\n").edit()
        done = {"status": "done", "evidence": "app.py:2"}
        session.world.call("check_write_target", "app.py")
        answer = session.send(task_id="t1", checklist=[{**ITEM, **done}])
        assert session.error == "failures.READY.write_not_checked"
        assert answer["unchecked"] == ["README.md"]
        session.world.call("check_write_target", "README.md", outcome="refused")
        session.send(task_id="t1", checklist=[{**ITEM, **done}])
        assert session.error == "failures.READY.write_not_checked"
        session.world.call("check_write_target", "README.md")
        assert session.send(task_id="t1", checklist=[{**ITEM, **done}])["success"]
        session.edit(text="def main():\n    return 3\n")
        assert session.send(task_id="t2", checklist=[{"item": "Item of t2", **done}])["success"]

    def test_what_an_allowed_file_was_renamed_to_needs_no_write_check_of_its_own(self) -> None:
        session = self.at("app.py")
        session.world.call("check_write_target", "app.py")
        session.world.files["main.py"] = session.world.files.pop("app.py")
        done = {"status": "done", "evidence": "app.py:1"}
        assert session.send(task_id="t1", checklist=[{**ITEM, **done}])["success"]

    def test_without_git_one_write_check_is_enough(self) -> None:
        session = Session(Flags(quick=True, no_doc=True), world=World(git=False))
        session.frame()
        session.plan("t1")
        done = {**ITEM, "status": "done", "evidence": "app.py:2"}
        session.send(task_id="t1", checklist=[done])
        assert session.error == "common_failures.required_tools_not_used"
        assert session.report("t1")["success"]

    def test_a_report_that_skips_everything_needs_no_write_check(self) -> None:
        session = self.at()
        skipped = [{**ITEM, "status": "skipped", "reason": "already there before"}]
        session.send(task_id="t1", checklist=skipped)
        assert session.state.tasks[0].status == "completed"

    def test_skipping_everything_after_a_change_still_needs_it(self) -> None:
        session = self.at()
        session.edit()
        session.send(task_id="t1", checklist=[{**ITEM, "status": "skipped", "reason": "already there before"}])
        assert session.error == "failures.READY.write_not_checked"

    def test_items_may_be_named_by_number_and_all_that_are_not_proven_are_named_at_once(self) -> None:
        session = Session().to_ready("app.py")
        session.send(tasks=[task(checklist=["Return two", "Say so", "2", "Log it"])])
        session.edit().world.call("check_write_target", "app.py")
        places = {1: "app.py:2", 4: "app.py:1", "Say so": "app.py:1"}
        checklist = [{"item": item, "status": "done", "evidence": place} for item, place in places.items()]
        skipped = {"item": "2", "status": "skipped", "reason": "nobody knows what it is"}
        answer = session.send(task_id="t1", checklist=[*checklist, skipped])
        assert session.error == "failures.READY.checklist_evidence_unchanged"
        assert "'Say so'" in str(answer["message"])
        assert answer["refused_too"] == ["Log it"]
        checklist[1:] = [{**item, "status": "skipped", "reason": "that was said before"} for item in checklist[1:]]
        session.send(task_id="t1", checklist=[*checklist, skipped])
        assert [item.item for item in session.state.tasks[0].checklist] == ["Return two", "Say so", "2", "Log it"]
        assert session.state.tasks[0].status == "completed"

    @pytest.mark.parametrize("number", [0, 2, -1, True, 1.0, "01"])
    def test_a_number_that_no_item_has_names_none(self, number: object) -> None:
        session = self.at().edit()
        session.world.call("check_write_target", "app.py")
        session.send(task_id="t1", checklist=[{"item": number, "status": "done", "evidence": "app.py:2"}])
        assert session.error in {"failures.READY.checklist_items_mismatch", "common_failures.field_invalid"}

    @pytest.mark.parametrize(
        ("checklist", "key"),
        [
            ([], "checklist_items_mismatch"),
            ([{"item": "Something else", "status": "done"}], "checklist_items_mismatch"),
            ([ITEM, ITEM], "checklist_items_mismatch"),
            ([ITEM], "checklist_item_pending"),
            ([{**ITEM, "status": "skipped"}], "checklist_reason_required"),
            ([{**ITEM, "status": "skipped", "reason": "too short"}], "checklist_reason_required"),
            ([{**ITEM, "status": "done"}], "checklist_evidence_required"),
            ([{**ITEM, "status": "done", "evidence": "app.py line 2"}], "checklist_evidence_format_invalid"),
            ([{**ITEM, "status": "done", "evidence": "gone.py:1"}], "checklist_evidence_file_not_found"),
            ([{**ITEM, "status": "done", "evidence": "/etc/passwd:1"}], "checklist_evidence_file_not_found"),
            ([{**ITEM, "status": "done", "evidence": "app.py:0"}], "checklist_evidence_line_out_of_range"),
            ([{**ITEM, "status": "done", "evidence": "app.py:3"}], "checklist_evidence_line_out_of_range"),
            ([{**ITEM, "status": "done", "evidence": "app.py:2-1"}], "checklist_evidence_format_invalid"),
            ([{**ITEM, "status": "done", "evidence": "app.py:1"}], "checklist_evidence_unchanged"),
            ([{**ITEM, "status": "done", "evidence": "README.md:1"}], "checklist_evidence_unchanged"),
        ],
    )
    def test_an_unproven_checklist_is_refused(self, checklist: list[object], key: str) -> None:
        session = self.at()
        session.edit()
        session.world.call("check_write_target", *session.world.files)
        session.send(task_id="t1", checklist=checklist, tools_used=["check_write_target"])
        assert session.error == f"failures.READY.{key}"
        assert session.state.tasks[0].pending

    def test_an_empty_implementation_is_refused(self) -> None:
        session = self.at(empty={"app.py"})
        session.edit().report("t1")
        assert session.error == "failures.READY.checklist_evidence_empty_impl"

    def test_a_trivial_range_passes_with_a_reason_and_is_listed(self) -> None:
        session = self.at(trivial={"app.py"})
        session.edit().report("t1", reason="short")
        assert session.error == "failures.READY.trivial_needs_reason"
        answer = session.report("t1", reason="only the comment was wrong")
        assert "only the comment was wrong" in str(answer["warning"])
        assert session.state.used_ranges[0].trivial

    @pytest.mark.parametrize(
        "evidence",
        ["app.py:1, app.py:2", ["app.py:1", "app.py:2"], "README.md:1; app.py:2", "app.py:1, 2", "app.py:2,"],
    )
    def test_one_of_several_ranges_proves_an_item(self, evidence: object) -> None:
        session = self.at()
        session.edit().report("t1", evidence=evidence)
        assert session.state.tasks[0].status == "completed"
        assert [(used.path, used.start) for used in session.state.used_ranges] == [("app.py", 2)]

    def test_lines_that_were_only_taken_out_of_a_file_are_evidenced_by_its_path(self) -> None:
        session = self.at(files={"app.py": "def main():\n    print()\n    return 1\n", "README.md": "# App\n"})
        session.edit(text="def main():\n    return 1\n").report("t1", evidence="app.py")
        assert session.state.tasks[0].status == "completed"

    @pytest.mark.parametrize(
        ("evidence", "key"),
        [
            ("app.py:2, gone.py:1", "checklist_evidence_file_not_found"),
            ("app.py:2, app.py:9", "checklist_evidence_line_out_of_range"),
            ("app.py:2, somewhere", "checklist_evidence_format_invalid"),
            (["app.py:2", 7], ""),
            ([], "checklist_evidence_required"),
            ("app.py:1, README.md:1", "checklist_evidence_unchanged"),
            ("app.py:2, " + "1, " * 50, "payload_too_large"),
        ],
    )
    def test_ranges_of_which_one_is_not_there_or_none_proves_anything_are_refused(
        self, evidence: object, key: str
    ) -> None:
        session = self.at()
        session.edit().report("t1", evidence=evidence)
        assert session.error.endswith(f".{key or 'field_invalid'}")

    @pytest.mark.parametrize("item", ["Document the limit", "Fix the docstring", "Add a CHANGELOG line"])
    def test_comments_prove_an_item_that_asks_for_documentation(self, item: str) -> None:
        session = Session(world=World(trivial={"app.py"})).to_ready()
        session.send(tasks=[{"id": "t1", "description": "Words", "checklist": [item]}])
        session.edit().report("t1", item=item)
        assert session.state.tasks[0].status == "completed"
        assert not session.state.used_ranges[0].trivial

    def test_one_range_for_two_items_needs_a_reason(self) -> None:
        session = self.at()
        session.edit().report("t1")
        session.report("t2", "app.py:1-2")
        assert session.error == "failures.READY.range_reused_needs_reason"
        session.report("t2", reason="both items are one line of code")
        assert session.state.place.step == 14

    def test_cases_of_one_parametrised_test_prove_two_items(self) -> None:
        path = "tests/test_app.py"
        session = Session(world=World()).to_ready()
        session.state.added_files[path] = "the tests of the work"
        session.plan("t1", "t2")
        session.edit(path, text="def test():\n    assert main() == 2\n")
        session.report("t1", f"{path}:1-2")
        session.report("t2", f"{path}:1-2")
        assert session.state.place.step == 14

    @pytest.mark.parametrize(("line", "error"), [(2, ""), (3, "failures.READY.range_reused_needs_reason")])
    def test_one_line_of_a_test_is_followed_through_later_edits(self, line: int, error: str) -> None:
        """Found by a reader: the line numbers of the earlier report were compared as they had been."""
        path = "tests/test_app.py"
        session = Session(world=World()).to_ready()
        session.state.added_files[path] = "the tests of the work"
        session.plan("t1", "t2")
        session.edit(path, text="def test():\n    assert main() == 2\n")
        session.report("t1", f"{path}:2")
        session.edit(path, text="def test():\n    assert main() != 1\n    assert main() == 2\n")
        session.report("t2", f"{path}:{line}")
        assert session.error == error

    def test_white_space_alone_needs_a_reason(self) -> None:
        session = self.at()
        session.edit(text="def main():\n    return  1\n").report("t1")
        assert session.error == "failures.READY.trivial_needs_reason"
        session.report("t1", reason="the formatter's own spacing")
        assert session.state.used_ranges[0].trivial

    def test_a_range_whose_changed_part_is_empty_is_refused(self) -> None:
        session = self.at()
        session.edit(text="def main():\n    pass\n").report("t1", "app.py:1-2")
        assert session.error == "failures.READY.checklist_evidence_empty_impl"

    def test_several_items_of_one_task_are_held_against_the_next(self) -> None:
        session = Session().to_ready()
        two = {"id": "t1", "description": "Two items", "checklist": ["one", "two"]}
        session.send(tasks=[two, task("t2")])
        session.edit(text="def main():\n    a = 2\n    return a\n")
        session.world.call("check_write_target", *session.world.files)
        done = [{"item": name, "status": "done", "evidence": f"app.py:{n}"} for name, n in (("one", 2), ("two", 3))]
        session.send(task_id="t1", checklist=done, tools_used=["check_write_target"])
        session.report("t2", "app.py:2-3")
        assert session.error == "failures.READY.range_reused_needs_reason"

    @pytest.mark.parametrize("ranges", [("app.py:2-4", "app.py:3"), ("app.py:3", "app.py:2-4")])
    def test_a_detail_within_another_items_lines_is_its_own_where_the_other_has_more(
        self, ranges: tuple[str, str]
    ) -> None:
        """Found by agents: a function and a detail of it were refused in one order and taken in the other."""
        session = Session().to_ready().planned("t1", "t2", "t3")
        session.edit(text="def main():\n    a = 2\n    b = a\n    return b\n")
        for name, evidence in zip(("t1", "t2"), ranges, strict=True):
            session.report(name, evidence)
            assert session.error == ""
        session.report("t3", "app.py:2-4")
        assert session.error == "failures.READY.range_reused_needs_reason"

    @pytest.mark.parametrize("ranges", [("app.py:2-3", "app.py:2, app.py:3"), ("app.py:2, app.py:3", "app.py:2-3")])
    def test_lines_named_one_by_one_are_still_another_items(self, ranges: tuple[str, str]) -> None:
        session = Session().to_ready().planned("t1", "t2")
        session.edit(text="def main():\n    a = 2\n    return a\n")
        session.report("t1", ranges[0])
        session.report("t2", ranges[1])
        assert session.error == "failures.READY.range_reused_needs_reason"

    def test_a_line_named_twice_by_an_item_is_a_detail_like_one_named_once(self) -> None:
        session = Session().to_ready().planned("t1", "t2")
        session.edit(text="def main():\n    a = 2\n    return a\n")
        session.report("t1", "app.py:2-3, app.py:3")
        session.report("t2", "app.py:3")
        assert session.error == ""

    def test_details_do_not_use_up_what_another_item_rests_on(self) -> None:
        session = Session().to_ready().planned("t1", "t2", "t3")
        session.edit(text="def main():\n    a = 2\n    return a\n")
        session.report("t1", "app.py:2-3")
        session.report("t2", "app.py:2")
        assert session.error == ""
        session.report("t3", "app.py:3")
        assert session.error == "failures.READY.range_reused_needs_reason"

    @pytest.mark.parametrize(
        "ranges",
        [
            ("app.py:2-6", "app.py:6"),
            ("app.py:6", "app.py:2-6"),
            ("app.py:5-6", "app.py:3-6"),
            ("app.py:2-3, app.py:6", "app.py:5-6"),
        ],
    )
    def test_comments_and_blank_lines_round_the_code_of_an_item_are_no_lines_of_its_own(
        self, ranges: tuple[str, str]
    ) -> None:
        """Found by an opponent: one line of code under three comments proved four items."""
        session = Session().to_ready().planned("t1", "t2")
        session.edit(text="def main():\n    # one\n    # two\n\n    # three\n    return 2\n")
        session.report("t1", ranges[0])
        assert session.error == ""
        session.report("t2", ranges[1])
        assert session.error == "failures.READY.range_reused_needs_reason"

    @pytest.mark.parametrize("ranges", [("app.py:2-4", "app.py:2-3"), ("app.py:2-3", "app.py:2-4")])
    def test_comments_that_an_item_asks_for_are_its_own_beside_the_code_they_explain(
        self, ranges: tuple[str, str]
    ) -> None:
        session = Session().to_ready()
        items = ["Return two", "Document why"] if ranges[0] == "app.py:2-4" else ["Document why", "Return two"]
        session.send(tasks=[{"id": "t1", "description": "Both", "checklist": items}, task("t2")])
        session.edit(text="def main():\n    # two, since one\n    # was too few\n    return 2\n")
        session.world.call("check_write_target", *session.world.files)
        done = [
            {"item": item, "status": "done", "evidence": evidence} for item, evidence in zip(items, ranges, strict=True)
        ]
        session.send(task_id="t1", checklist=done, tools_used=["check_write_target"])
        assert session.error == ""
        session.report("t2", "app.py:2-4")
        assert session.error == "failures.READY.range_reused_needs_reason"

    def test_without_git_the_same_lines_still_need_a_reason(self) -> None:
        session = Session(Flags(quick=True, no_doc=True), world=World(git=False))
        session.frame()
        session.plan("t1", "t2")
        session.report("t1")
        session.report("t2")
        assert session.error == "failures.READY.range_reused_needs_reason"

    def test_gits_own_files_prove_nothing(self) -> None:
        session = self.at(
            files={"app.py": "x = 1\n", ".git/config": "[core]\n", "README.md": "#\n"}, ignored={".git/config"}
        )
        session.report("t1", ".git/config:1", reason="set up the repository")
        assert session.error == "failures.READY.checklist_evidence_unchanged"

    def test_a_second_item_on_ground_that_was_changed_again_is_new_work(self) -> None:
        session = self.at()
        session.edit().report("t1")
        session.edit(text="def main():\n    return 2\n    # more\n\n\ndef other():\n    return 3\n")
        session.report("t2", "app.py:6-7")
        assert session.state.place.step == 14

    def test_different_files_and_lines_need_none(self) -> None:
        session = self.at("app.py", "README.md")
        session.edit(text="def main():\n    x = 2\n    return x\n").report("t1")
        session.edit("README.md", "# New\n").report("t2", "README.md:1")
        assert session.state.place.step == 14

    def test_a_change_outside_the_writable_set_stops_the_report(self) -> None:
        session = self.at()
        session.edit().edit("README.md", "# Other\n")
        answer = session.report("t1")
        assert session.error == "failures.READY.unexplored_changes"
        assert answer["unexplored"] == ["README.md"]
        session.state.added_files["README.md"] = "documents the new page"
        session.report("t1")
        assert session.state.tasks[0].status == "completed"

    def test_a_new_file_beside_an_explored_one_may_be_written(self) -> None:
        session = self.at()
        session.edit("login.py", "def login():\n    return True\n").report("t1", "login.py:1-2")
        assert session.state.tasks[0].status == "completed"

    def test_a_new_file_may_lie_where_one_lies_that_was_claimed_and_that_nothing_has_shown(self) -> None:
        """Found in play: an agent named a neighbour of its new file that it had read in its own shell."""
        session = self.at()
        session.state.unseen_files = ["deep/known.py"]
        session.edit("deep/login.py", "def login():\n    return True\n").report("t1", "deep/login.py:1-2")
        assert session.state.tasks[0].status == "completed"

    def test_a_new_file_in_a_folder_that_nobody_looked_at_may_not(self) -> None:
        session = self.at()
        session.edit().edit("deep/login.py", "def login():\n    return True\n").report("t1")
        assert session.error == "failures.READY.unexplored_changes"

    def test_a_deletion_is_evidenced_in_the_base_version(self) -> None:
        session = self.at("app.py", "README.md")
        del session.world.files["README.md"]
        session.report("t1", "README.md:2")
        assert session.error == "failures.READY.checklist_evidence_line_out_of_range"
        session.report("t1", "README.md:1")
        assert session.state.tasks[0].status == "completed"

    def test_a_range_beside_a_deletion_counts(self) -> None:
        session = self.at(files={"app.py": "a = 1\nb = 2\nc = 3\n", "README.md": "#\n"})
        session.edit(text="a = 1\nc = 3\n").report("t1", "app.py:2")
        assert session.state.tasks[0].status == "completed"

    def test_a_renamed_file_is_evidenced_by_its_old_name(self) -> None:
        session = self.at()
        session.world.files["main.py"] = session.world.files.pop("app.py")
        session.report("t1", "app.py:1")
        assert session.state.tasks[0].status == "completed"

    def test_a_renamed_file_is_also_evidenced_by_its_new_name(self) -> None:
        session = self.at()
        session.world.files["main.py"] = session.world.files.pop("app.py")
        session.report("t1", "main.py:1")
        assert session.state.tasks[0].status == "completed"

    def test_a_renamed_file_is_also_evidenced_by_all_its_lines(self) -> None:
        """Found in play: a rename that changed no line was refused as a file of one line."""
        session = self.at()
        session.world.files["main.py"] = session.world.files.pop("app.py")
        lines = len(session.world.files["main.py"].splitlines())
        session.report("t1", f"main.py:1-{lines + 1}")
        assert session.error == "failures.READY.checklist_evidence_line_out_of_range"
        session.report("t1", f"main.py:1-{lines}")
        assert session.state.tasks[0].status == "completed"

    @pytest.mark.parametrize("text", ["", "\0\1"])
    def test_a_new_empty_or_binary_file_is_evidenced_as_line_one(self, text: str) -> None:
        session = self.at()
        session.edit("asset.bin", text)
        session.report("t1", "asset.bin:1-2")
        assert session.error == "failures.READY.checklist_evidence_line_out_of_range"
        session.report("t1", "asset.bin:1")
        assert session.state.tasks[0].status == "completed"

    def test_a_file_that_is_too_big_to_be_kept_is_said_not_to_be_judged(self) -> None:
        session = self.at()
        answer = session.edit("asset.bin", TOO_BIG).report("t1", "asset.bin:1")
        assert "syntax tree: asset.bin" in str(answer["warning"])

    def test_an_unchanged_empty_file_proves_nothing(self) -> None:
        session = self.at(files={"app.py": "x = 1\n", "__init__.py": "", "README.md": "#\n"})
        session.edit(text="x = 2\n").report("t1", "__init__.py:1")
        assert session.error == "failures.READY.checklist_evidence_unchanged"

    def test_a_deleted_binary_file_is_evidenced_as_a_line(self) -> None:
        session = self.at("app.py", "logo.png", files={"app.py": "x = 1\n", "logo.png": "\0", "README.md": "#\n"})
        del session.world.files["logo.png"]
        session.report("t1", "logo.png:1")
        assert session.state.tasks[0].status == "completed"

    def test_an_ignored_file_is_evidenced_as_line_one(self) -> None:
        session = self.at(ignored={"out.log"})
        session.edit("out.log", "a\nb\n")
        session.report("t1", "out.log:2")
        assert session.error == "failures.READY.checklist_evidence_unchanged"
        session.report("t1", "out.log:1")
        assert session.error == "failures.READY.trivial_needs_reason"
        session.report("t1", "out.log:1", reason="The log is made by the build.")
        assert session.state.tasks[0].status == "completed"

    def test_without_git_only_the_file_is_judged(self) -> None:
        session = Session(Flags(quick=True), world=World(git=False))
        session.send(documents_reviewed=["README.md"])
        session.frame()
        session.plan("t1")
        session.report("t1")
        assert session.state.place.step == 14

    def test_a_link_is_explored_and_pointed_at_by_its_own_name(self) -> None:
        session = Session(
            world=World(files={"app.py": "x = 1\ny = 2\n", "alias": "app.py", "away": "/usr"}, documents=[])
        )
        session.world.links = {"alias": "app.py", "away": None}
        session.to_ready_without_documents()
        assert session.state.explored_files == ["app.py", "alias", "away"]
        session.plan("t1", "t2")
        session.world.files["alias"] = "lib.py"
        session.report("t1", "alias:2")
        assert session.error == "failures.READY.checklist_evidence_unchanged"
        session.report("t1", "alias:1")
        assert session.error == ""
        assert session.state.used_ranges[-1].path == "alias"
        session.report("t2", "away:1")
        assert session.error == "failures.READY.checklist_evidence_file_not_found"

    def test_without_git_what_exists_must_have_been_explored(self) -> None:
        from code_intel_server.flow.checks.judgement import unwritable

        session = Session(Flags(quick=True), world=World(git=False))
        session.state.explored_files.append("app.py")
        assert unwritable(session.state, session.ports, ["app.py", "new.py", "README.md"]) == {"README.md"}

    def test_a_file_may_be_written_once_a_plan_is_accepted(self) -> None:
        from code_intel_server.flow.checks.judgement import unwritable, why_writable_now

        session = Session().to_ready()
        assert why_writable_now(session.state, session.ports, "app.py") == "no plan yet"
        session.plan("t1")
        assert why_writable_now(session.state, session.ports, "app.py") == "explored"
        session.edit().report("t1")
        assert why_writable_now(session.state, session.ports, "README.md") == "not explored"
        for path in ("app.py", "new.py", "README.md", "deep/new.py"):
            allowed = why_writable_now(session.state, session.ports, path).allowed
            assert allowed is not bool(unwritable(session.state, session.ports, [path])), path
        session.send(summary="All tasks are done.")
        assert why_writable_now(session.state, session.ports, "app.py") == "no plan yet"

    def test_what_lies_uncommitted_in_a_repository_within_is_refused(self) -> None:
        session = self.at(files=World().files | {"sub/a.py": "x\n"})
        session.plan("t1")
        session.state.explored_files.append("sub/a.py")
        session.edit().report("t1")
        session.world.within = {"sub/a.py": "sub"}
        session.edit("sub/a.py", "y\n")
        assert session.send()["files"] == ["sub/a.py"]
        assert session.error == "failures.READY.repository_uncommitted"

    def test_where_a_file_below_was_explored_its_repository_may_move(self) -> None:
        from code_intel_server.flow.checks.judgement import unexplored, why_writable_now

        session = self.at(files={"app.py": "x\n", "README.md": "#\n", "sub": "one\n", "other": "one\n"})
        session.state.explored_files.append("sub/a.py")
        session.state.added_files["new.py"] = "It belongs to the task."
        before = session.ports.tree.snapshot()
        session.world.within = {"sub": "", "other": ""}
        session.world.files |= {"sub": "two\n", "other": "two\n"}
        assert unexplored(session.state, session.ports, before, session.ports.tree.snapshot()) == ["other"]
        assert why_writable_now(session.state, session.ports, "new.py") == "added with a reason"

    def test_changes_are_attributed_to_the_task_in_which_they_appeared(self) -> None:
        session = self.at()
        session.edit().report("t1")
        first = session.state.trees.by_task["t1"]
        session.edit(text="def main():\n    return 3\n").report("t2", reason="the same line again")
        assert session.state.trees.by_task["t2"] != first

    def test_a_stray_change_before_completion_is_named(self) -> None:
        session = self.at()
        session.plan("t1")
        session.edit().report("t1")
        session.edit("README.md", "# Late\n")
        session.send()
        assert session.error == "failures.READY.unexplored_changes"

    def test_many_strays_are_counted(self) -> None:
        session = self.at(files={"app.py": "x\n", "README.md": "#\n"} | {f"d/{n}.py": "x\n" for n in range(30)})
        for number in range(30):
            session.edit(f"d/{number}.py", "y\n")
        assert "and 10 more" in str(session.report("t1", "app.py:1")["message"]) or session.error


def test_the_phase_of_a_plan_elsewhere_is_named() -> None:
    session = Session()
    session.send(tasks=[task()])
    assert session.error == "failures.READY.phase_mismatch_register"
    assert session.state.phase is Phase.DOCUMENT_RESEARCH
