"""The sixty faults of the reliability plan, what the plan asked for at least, and the tests that bring each about.

A test is `file` or `file::name`, below `tests/`. `run` names a figure of the long runs (`summary.json`). `falls_short` says
honestly what is not there of it, `decided` where the specification decides otherwise; `least` is the minimum as a number of
executions, which the report holds against what the full run executed.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One fault of the plan."""

    number: int
    fault: str
    minimum: str
    tests: tuple[str, ...]
    run: str = ""
    least: int = 0
    falls_short: str = ""
    decided: str = ""


def _row(
    number: int,
    fault: str,
    minimum: str,
    tests: str,
    *,
    run: str = "",
    least: int = 0,
    falls_short: str = "",
    decided: str = "",
) -> Row:
    return Row(number, fault, minimum, tuple(tests.split()), run, least, falls_short, decided)


CHECKPOINTS = "workspace/test_checkpoints.py"
CHECKPOINT_FAULTS = "workspace/test_checkpoints_faults.py"
KILLED = "faults/test_killed_sessions.py"
POINTS = "faults/test_points.py"
PROCESS = "faults/test_process.py"
HOSTILE = "faults/test_hostile_repository.py"
LOOKUPS = "codebase/test_hostile_lookups.py"
CORPORA = "faults/test_corpora.py"
CROWDS = "faults/test_crowds.py"
MIXES = "faults/test_git_mixes.py"

ROWS = (
    _row(
        1,
        "SIGKILL at each write, fsync, rename of the server",
        "every point, 10,000",
        f"{KILLED} {POINTS} {CHECKPOINT_FAULTS}::test_a_writer_killed_at_any_step_leaves_the_old_or_the_new_generation_and_no_third"
        f" workspace/test_atomic_writes.py::test_a_writer_killed_at_any_system_call_leaves_the_old_or_the_new_and_the_next_one_finishes",
        run="kills",
        least=10000,
    ),
    _row(2, "Power loss, writes reordered", "5,000 states", "faults/test_power_loss.py", run="power", least=5000),
    _row(
        3,
        "A full disk (ENOSPC)",
        "a small file system, 200 fillings",
        f"faults/test_disks.py {CHECKPOINT_FAULTS}::test_a_failing_disk_at_any_step_is_a_typed_error_and_saving_again_succeeds"
        f" index/test_sync.py::test_a_full_disk_rolls_the_batch_back_and_the_next_sync_goes_on",
        run="errors",
        least=200,
    ),
    _row(
        4,
        "EIO, EROFS from a system call",
        "each call, N = 1 to 50",
        f"{KILLED}::test_a_disk_that_fails_again_and_again_costs_refusals_and_nothing_else"
        f" {CHECKPOINT_FAULTS}::test_a_failing_disk_at_any_step_is_a_typed_error_and_saving_again_succeeds",
        run="errors, points",
        least=350,
    ),
    _row(
        5,
        "The folder's fsync fails",
        "50",
        f"{CHECKPOINT_FAULTS}::test_an_unconfirmed_save_says_that_its_outcome_is_unknown",
        run="errors",
        least=50,
    ),
    _row(
        6,
        "`.code-intel` read-only",
        "a read-only mount",
        "faults/test_disks.py::test_a_state_folder_that_is_read_only_is_said_at_the_start",
        least=1,
    ),
    _row(
        7,
        "Checkpoint cut short",
        "every length",
        f"{CHECKPOINTS}::test_every_truncation_gives_the_previous_generation_and_says_so",
        least=100,
    ),
    _row(8, "Bits flipped in a checkpoint", "10,000", f"{CHECKPOINTS}::test_every_flipped_bit_is_noticed", least=10000),
    _row(
        9,
        "Checkpoint too large or too deep",
        "1 GB sparse, depth 200,000",
        f"{CHECKPOINTS}::test_a_file_of_more_than_a_megabyte_is_refused"
        f" {CHECKPOINTS}::test_even_with_a_right_seal_only_strict_json_of_the_right_form_is_taken"
        f" {CHECKPOINTS}::test_what_is_no_plain_file_is_refused_at_once_without_reading_it",
        least=2,
    ),
    _row(
        10,
        "Duplicate keys, NaN, huge integers in a checkpoint",
        "500",
        f"{CHECKPOINTS}::test_even_with_a_right_seal_only_strict_json_of_the_right_form_is_taken"
        f" {CHECKPOINTS}::test_any_bytes_at_all_are_a_typed_error_and_never_a_crash"
        f" {CORPORA}::test_no_name_twice_and_no_odd_number_in_a_checkpoint_is_taken",
        least=500,
    ),
    _row(
        11,
        "Wrong types, unknown phase or version",
        "each field × 12 values",
        f"flow/test_state.py {CHECKPOINTS}::test_a_newer_versions_checkpoint_is_named_and_not_replaced_by_an_older_generation"
        f" {CORPORA}::test_each_field_of_a_checkpoint_with_each_wrong_value_is_refused_or_taken_as_it_stands {CORPORA}::test_each_field_of_our_own_with_each_wrong_value_is_refused",
        least=1700,
    ),
    _row(
        12,
        "A session id that is a path",
        "300",
        f"{CHECKPOINTS}::test_a_session_id_can_name_nothing_but_a_checkpoint"
        f" {CORPORA}::test_no_kind_of_path_is_a_session_id",
        least=300,
    ),
    _row(
        13,
        "Checkpoint is a link, a pipe, a device",
        "8 kinds",
        f"{CHECKPOINTS}::test_what_is_no_plain_file_is_refused_at_once_without_reading_it",
        least=8,
    ),
    _row(
        14,
        "A checkpoint shipped by the repository",
        "a forged clone",
        f"{CHECKPOINTS}::test_a_checkpoint_of_another_machine_is_not_obeyed"
        f" e2e/test_interrupted.py::TestRecovery::test_a_checkpoint_of_another_machine_is_not_obeyed cheats/test_records.py",
        least=1,
    ),
    _row(
        15,
        "Checkpoints of older releases",
        "every release",
        f"{CHECKPOINTS}::test_checkpoints_of_every_released_schema_can_be_read",
        least=1,
    ),
    _row(
        16,
        "The clock jumps",
        "200 with a false clock",
        f"{CHECKPOINTS}::test_the_newest_is_the_last_saved_whatever_the_clock_said"
        f" {CHECKPOINTS}::test_generations_count_up_over_all_sessions_and_restarts"
        f" faults/test_clock.py",
        least=200,
    ),
    _row(
        17,
        "Two servers on one project",
        "1,000 starts at once",
        f"{PROCESS}::TestTwoServers workspace/test_lock.py::test_two_processes_that_try_at_once_two_hundred_times_are_never_both_or_neither_let_in"
        f" {CROWDS}::test_of_ten_servers_started_at_once_one_gets_the_project",
        least=1000,
    ),
    _row(
        18,
        "The lock's holder dies, hangs, wakes later",
        "200",
        "workspace/test_lock.py"
        f" {PROCESS}::TestTwoServers::test_a_stopped_holder_keeps_the_project_and_is_named_and_goes_on_when_continued",
        decided="SPEC 7: a lock of the kernel, given back by the owner's death; a stopped owner keeps it, so no epochs",
    ),
    _row(
        19,
        "The same project by another path",
        "6 aliases",
        "workspace/test_lock.py::test_every_alias_of_a_worktree_has_the_same_lock",
        decided="SPEC 7: one lock a worktree, not one for the common git directory",
    ),
    _row(20, "Every path through the phases", "2,048 × counters", "flow/test_transitions.py", least=2048),
    _row(21, "Random sessions against a model", "50,000 × 50 steps", "faults/test_rule_machine.py", least=2500000),
    _row(
        22,
        "Fuzzed payloads in every phase (against the state machine; some thousands of them against the process)",
        "10,000 × 19",
        "faults/test_payloads.py flow/test_submit.py",
        run="payloads",
        least=190000,
    ),
    _row(
        23,
        "Any call sent again",
        "each × 3",
        f"faults/test_rule_machine.py cheats/test_records.py {KILLED}::test_the_last_submit_sent_again_ends_a_session_that_was_killed_after_its_answer_was_kept",
    ),
    _row(
        24,
        "200 submits at once",
        "500 rounds",
        f"{PROCESS}::TestSideBySide::test_of_two_hundred_submits_at_once_one_wins_and_none_is_lost"
        f" {PROCESS}::TestSideBySide::test_the_same_submit_two_hundred_times_at_once_has_one_effect_and_one_answer"
        f" {CROWDS}::test_rounds_of_two_hundred_submits_at_once_leave_one_whole_plan_in_memory_and_on_disk",
        least=500,
    ),
    _row(
        25,
        "Lookups while a submit runs",
        "10,000",
        f"{PROCESS}::TestSideBySide::test_lookups_go_on_while_a_submit_waits_for_its_command"
        " index/test_sync.py::test_parallel_syncs_and_reads_end_in_one_whole_index"
        f" {CROWDS}::test_lookups_beside_submits_all_tell_the_same_truth",
        least=10000,
    ),
    _row(
        26,
        "A call is cancelled",
        "1,000, every await",
        f"{PROCESS}::TestVerifyCommands::test_a_cancelled_submit_is_undone_its_command_ended_and_it_can_be_sent_again"
        f" {CROWDS}::test_a_submit_cancelled_at_any_moment_is_done_or_undone_and_can_be_sent_again",
        run="soak cancelled",
        least=1000,
    ),
    _row(
        27,
        "The client dies in the middle of a call",
        "500",
        f"{PROCESS}::TestTheEnd::test_the_end_of_the_pipe_does_not_wait_for_a_command"
        f" {PROCESS}::TestTheEnd::test_a_socket_closed_by_half_is_the_end_too"
        f" {CROWDS}::test_a_client_killed_in_the_middle_of_a_call_leaves_no_process_and_a_session_that_goes_on",
        least=500,
    ),
    _row(
        28,
        "SIGTERM, SIGINT, SIGHUP",
        "each phase × 3",
        f"{PROCESS}::TestTheEnd e2e/test_interrupted.py::test_a_signal_ends_the_process_at_once_and_the_session_can_be_resumed"
        f" {CROWDS}::test_each_signal_in_each_phase_ends_it_in_two_seconds_and_the_session_goes_on",
        least=48,
    ),
    _row(
        29,
        "The parent is gone, the pipe open",
        "a shortened timer",
        f"{PROCESS}::TestTheEnd::test_a_parent_that_is_gone_is_noticed_though_the_pipe_stays_open",
        decided="SPEC 7: a parent that lives may be silent as long as it likes; there is no idle exit",
    ),
    _row(
        30,
        "Children that read stdin or print",
        "false rg, ctags, git",
        f"{PROCESS}::TestVerifyCommands {LOOKUPS}::test_a_ripgrep_that_prints_without_end_is_ended_in_bounded_memory",
        least=3,
    ),
    _row(
        31,
        "Children that hang, fork, ignore SIGTERM",
        "100",
        f"{PROCESS}::TestVerifyCommands {LOOKUPS}::test_a_ripgrep_that_hangs_is_ended_and_the_answer_marked"
        f" {PROCESS}::test_a_child_that_left_others_behind_takes_them_along"
        f" {CROWDS}::test_a_child_that_will_not_end_is_ended_with_all_it_started",
        least=100,
    ),
    _row(
        32,
        "A child prints 10 GB",
        "`yes`",
        f"{PROCESS}::TestVerifyCommands::test_a_bad_command_is_bounded_in_time_memory_and_processes_and_the_wire_stays_whole",
        least=1,
    ),
    _row(
        33,
        "Broken and huge frames",
        "5,000",
        "faults/test_wire.py::test_the_server_outlives_a_thousand_broken_frames_and_says_only_json_rpc"
        " faults/test_wire.py::test_a_request_that_cannot_be_read_is_answered_under_its_own_id",
        least=5000,
    ),
    _row(
        34,
        "A client that stops reading",
        "100 × 1 MB",
        f"{PROCESS}::TestSideBySide::test_a_client_that_stops_reading_costs_no_memory_and_later_gets_every_answer",
        least=100,
    ),
    _row(
        35,
        "Lone surrogates, NUL, bidi, NFC and NFD",
        "2,000 × fields",
        "faults/test_payloads.py flow/test_submit.py faults/test_wire.py::test_a_request_that_cannot_be_read_is_answered_under_its_own_id",
        run="payloads",
        least=2000,
    ),
    _row(
        36,
        "Control characters in files",
        "all tools × 200",
        f"test_printable.py {LOOKUPS}::test_text_of_any_encoding_is_found_and_shown_as_valid_text"
        f" {CORPORA}::test_no_tool_shows_a_character_that_steers_or_hides",
        least=4200,
    ),
    _row(
        37,
        "A pattern that looks like an option",
        "150 a tool",
        f"{LOOKUPS}::test_a_pattern_that_looks_like_an_option_is_a_literal_pattern"
        f" {LOOKUPS}::test_a_symbol_path_or_glob_that_looks_like_an_option_is_none"
        f" {CORPORA}::test_what_looks_like_an_option_is_none_in_any_lookup",
        least=1350,
    ),
    _row(
        38,
        "Variables of the environment",
        "60",
        f"{HOSTILE}::test_no_variable_of_the_environment_redirects_a_read {LOOKUPS}::test_the_environment_cannot_hand_options_to_the_engines",
        least=60,
    ),
    _row(
        39,
        "A regular expression that explodes",
        "100",
        f"{LOOKUPS}::test_a_regex_that_explodes_elsewhere_ends_in_time {CORPORA}::test_no_regular_expression_explodes",
        least=100,
    ),
    _row(
        40,
        "Executable git configuration",
        "40 keys × 12 commands",
        f"{HOSTILE}::test_no_executable_configuration_key_is_obeyed_by_a_read {HOSTILE}::test_no_executable_key_alone_is_obeyed_by_a_read"
        " workspace/test_git.py::test_no_configuration_of_a_repository_runs_through_our_reads",
        least=480,
    ),
    _row(
        41,
        "`.ctags.d`, a bare repository inside, a `.git` file",
        "25 repositories",
        f"{HOSTILE}::test_nothing_that_a_repository_plants_is_executed_or_obeyed {HOSTILE}::test_a_bare_repository_inside_is_never_git_s_own_for_us"
        f" {HOSTILE}::test_a_git_file_that_points_elsewhere_leaves_the_other_repository_alone {LOOKUPS}::test_option_files_of_a_repository_are_not_read"
        f" {HOSTILE}::test_no_one_and_no_two_plants_of_a_repository_are_obeyed",
        least=25,
    ),
    _row(
        42,
        "Poisoned contract, verifiers, context",
        "30",
        f"{HOSTILE}::test_nothing_that_a_repository_plants_is_executed_or_obeyed cheats/test_planted_text.py cheats/test_records.py workspace/test_trust.py",
        decided="SPEC 5: texts of a project are read at the start and an edit is named; only commands need the user's trust",
    ),
    _row(
        43,
        "YAML tags and aliases",
        "200",
        f"contract/test_strict_yaml.py {CORPORA}::test_no_tag_and_no_alias_anywhere_in_yaml_is_read",
        least=200,
    ),
    _row(
        44,
        "Evidence that is no line of the project",
        "1,000",
        "codebase/test_evidence_files.py cheats/test_evidence.py"
        f" {CORPORA}::test_evidence_that_is_no_line_of_the_project_never_completes_a_task",
        least=1000,
    ),
    _row(
        45,
        "Link loops; a parent swapped meanwhile",
        "a race of 1,000,000",
        f"{LOOKUPS}::test_links_that_lead_in_circles_or_out_are_not_followed faults/test_wire.py::test_no_kind_of_path_leads_out_of_the_project_or_breaks_a_tool"
        " faults/test_swaps.py",
        least=1000000,
    ),
    _row(
        46,
        "Writing what was not explained, by another name",
        "500 aliases",
        "cheats/test_writes.py faults/test_wire.py::test_no_kind_of_path_is_written_or_made_writable_outside"
        " workspace/test_paths.py::test_where_the_volume_folds_case_a_path_is_spelled_as_on_disk"
        f" {CORPORA}::test_no_alias_of_a_file_that_nobody_explained_may_be_written {CORPORA}::test_a_write_through_a_hard_link_is_seen_under_both_names",
        least=500,
    ),
    _row(
        47,
        "Dirty, staged, untracked, ignored in all mixes",
        "16 × 6 operations",
        "workspace/test_branches.py workspace/test_branches_commit.py workspace/test_branches_killed.py"
        f" {MIXES}::test_no_operation_loses_anything_of_any_mix_of_what_a_user_has",
        least=96,
    ),
    _row(
        48,
        "An incoming path over an ignored file",
        "200",
        "workspace/test_branches_merge.py::test_a_file_of_the_users_in_the_way_is_never_overwritten"
        " workspace/test_branches_merge.py::test_a_file_where_a_folder_must_come_is_in_the_way"
        f" {MIXES}::test_nothing_that_comes_in_takes_the_place_of_anything_untracked_or_ignored",
        least=200,
    ),
    _row(
        49,
        "Conflicts, criss-cross, rename against deletion",
        "100",
        "workspace/test_branches_merge.py::test_conflicts_are_named_and_nothing_is_touched"
        " workspace/test_branches_merge.py::test_a_rename_against_a_deletion_is_a_conflict"
        " workspace/test_branches_merge.py::test_a_criss_cross_history_merges_or_conflicts_cleanly"
        f" {MIXES}::test_each_pair_of_edits_merges_as_git_merges_it_or_is_told_and_touches_nothing",
        least=100,
    ),
    _row(
        50,
        "The user commits at each of our git steps",
        "all × 50",
        "workspace/test_branches_merge.py::test_a_base_that_moves_while_we_merge_is_not_overwritten"
        " workspace/test_branches_merge.py::test_a_base_that_never_rests_is_told"
        " workspace/test_branches_commit.py::test_a_commit_made_by_the_user_meanwhile_is_not_reverted"
        f" {MIXES}::test_what_the_user_commits_to_the_base_at_any_of_our_steps_stays_in_it",
        least=50,
    ),
    _row(
        51,
        "SIGKILL at git children and their system calls",
        "5,000",
        f"{KILLED} {POINTS} workspace/test_branches_killed.py",
        run="git kills",
        least=5000,
    ),
    _row(
        52,
        "`index.lock` held",
        "200",
        "workspace/test_branches_commit.py::test_a_held_index_is_told_and_never_freed"
        " workspace/test_branches_merge.py::test_a_held_index_is_told_before_the_base_moves"
        f" {MIXES}::test_an_index_that_is_held_from_any_of_our_steps_on_is_told_never_freed_and_then_it_is_finished",
        least=200,
    ),
    _row(
        53,
        "Detached, unborn, bare, shallow, submodule, sparse, worktree, LFS",
        "40 repositories",
        "workspace/test_branches.py::test_what_stands_in_the_way_of_a_branch_is_said_in_one_sentence workspace/test_git.py"
        " workspace/test_branches_commit.py workspace/test_tree.py e2e/test_sessions.py::test_where_no_branch_can_ever_be_made_the_start_says_so",
        least=40,
    ),
    _row(
        54,
        "Hooks that fail, rewrite, hang; signing that fails",
        "30",
        "workspace/test_branches_commit.py::test_a_failing_hook_keeps_everything_and_its_words_are_told"
        " workspace/test_branches_commit.py::test_a_hook_that_hangs_meets_its_time_limit"
        " workspace/test_branches_commit.py::test_commits_are_signed_where_the_user_signs"
        f" {MIXES}::test_whatever_a_hook_does_nothing_is_lost_and_the_end_is_one_or_a_typed_refusal {MIXES}::test_a_signature_that_fails_is_told_and_nothing_is_published_without_it",
        least=30,
    ),
    _row(
        55,
        "Removed branches and `clean`, restored after `gc --prune=now`",
        "200",
        "workspace/test_trash.py workspace/test_branches.py::test_deleting_stale_branches_keeps_them_restorable"
        f" {MIXES}::test_whatever_was_archived_comes_back_after_everything_unreachable_is_gone",
        least=200,
    ),
    _row(
        56,
        "A huge repository",
        "1,000,000 files, 2 GB",
        f"{LOOKUPS}::test_a_hundred_megabytes_in_one_line_are_skipped_and_cost_no_memory faults/test_huge_repository.py",
    ),
    _row(
        57,
        "The index killed, cut, damaged",
        "1,000 damages",
        "index/test_kills.py index/test_chromadb_manager.py::test_damage_is_noticed_or_harmless_and_everything_is_found_again"
        " index/test_chromadb_manager.py::test_a_missing_segment_folder_is_noticed_though_the_count_is_right index/test_sync.py::test_a_damaged_file_is_set_aside_and_said_so"
        " index/test_damages.py::test_no_generated_damage_makes_an_answer_silently_incomplete",
        least=1000,
    ),
    _row(
        58,
        "ChromaDB crashes or hangs",
        "100",
        "index/test_chromadb_manager.py::test_a_killed_child_is_replaced_and_answers_go_on_meanwhile"
        " index/test_chromadb_manager.py::test_a_child_that_hangs_is_replaced_within_its_time_limit"
        " index/test_damages.py::test_a_child_that_crashes_or_hangs_a_hundred_times_is_replaced_each_time",
        run="soak killed",
        least=100,
    ),
    _row(59, "No network, no model", "no connection at all", "faults/test_network.py"),
    _row(
        60,
        "A soak",
        "72 hours, faults every 100 calls",
        "faults/test_soak.py",
        run="soak",
        decided="one hour here, faults every 100 calls",
    ),
)


def main() -> None:
    """Print the tests of all rows that lie elsewhere, once each, for a run of them."""
    names = {name for row in ROWS for name in row.tests if not name.startswith("faults/")}
    print(*sorted(f"tests/{name}" for name in names if name.partition("::")[0] not in names or "::" not in name))


if __name__ == "__main__":
    main()
