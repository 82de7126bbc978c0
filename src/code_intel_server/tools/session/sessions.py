"""start_session, submit_phase, get_session_status: the life of a session around the state machine (SPEC 2, 7).

One mutex serialises everything here; lookups read `active`, which is replaced as a whole and never changed in place. The
order of an accepted submit is: git intent on disk → git effect → new state on disk → answer. A kill between any two leaves
a state from which the same payload, sent again, leads to the same end.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from code_intel_server.contract import Contract
from code_intel_server.errors import CodeIntelError, Rejected
from code_intel_server.flow import pipeline, responses
from code_intel_server.flow.checks.judgement import looked_at, take_looked_at
from code_intel_server.flow.dispatch import Submission, SubmitContext, submit
from code_intel_server.flow.handlers.seen_tests import to_commit
from code_intel_server.flow.payloads import check_text, digest, parse_object
from code_intel_server.flow.phases import POST_IMPL_VERIFY, READY_COMPLETE, READY_PLAN, End, Flags, Intent
from code_intel_server.flow.ports import Ports
from code_intel_server.flow.session import SessionState, Trees
from code_intel_server.flow.transitions import Route
from code_intel_server.flow.turn import Note
from code_intel_server.tools import learning
from code_intel_server.tools.services import ProjectServices, SessionSettings, ToolProgress, now
from code_intel_server.tools.session import archives, lanes, rebuilds
from code_intel_server.tools.session.answers import changes_so_far, first_answer, first_instruction, session_status
from code_intel_server.tools.session.beginning import fresh, fresh_id
from code_intel_server.tools.session.decisions import Decision, decision_of, decision_row
from code_intel_server.tools.session.endings import Endings, with_cleaned
from code_intel_server.tools.session.flags import chooses_lane, parse_flags
from code_intel_server.tools.session.recovery import idle_worktrees, lost_submits, recoverable, to_restore, unrestorable
from code_intel_server.tools.session.user_words import Ask, SessionUser, nobody
from code_intel_server.workspace.branches import lose_worktree, new_worktree, sweep_worktrees
from code_intel_server.workspace.paths import exclude_from_git
from code_intel_server.workspace.state import heard
from code_intel_server.workspace.state.checkpoints import Loaded
from code_intel_server.workspace.state.heard import NO_SESSION
from code_intel_server.workspace.state.journals import LedgerFile
from code_intel_server.workspace.tree.status import gitlinks
from code_intel_server.workspace.values import GitIntent, Survey, TaskBranch

if TYPE_CHECKING:
    from code_intel_server.index.values import SyncReport

Fields = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Active:
    """The session of this process; replaced as a whole."""

    state: SessionState
    settings: SessionSettings
    ledger: LedgerFile


def silent(_done: float, _total: float, _message: str) -> None:
    """Progress that nobody asked for."""


class Sessions:
    """The session tools of one project."""

    def __init__(self, services: ProjectServices, move: "Callable[[Path], Sessions] | None" = None) -> None:
        """`move` leaves the project for another root; without it no session gets a worktree of its own."""
        self._services = services
        self._move = move
        self._ends = Endings(services)
        self.active: Active | None = None
        self.hooked = False
        """Whether the client that starts a session runs our hooks, which tell of a compaction."""
        self.conversation = ""
        """By what that client tells its conversations apart, as its hook noted it."""
        self._ask: Ask = nobody

    @property
    def services(self) -> ProjectServices:
        """The project they are of."""
        return self._services

    # -- start -------------------------------------------------------------------------------------------------------

    def start(
        self, query: str, intent: str, flags: Mapping[str, object], progress: ToolProgress = silent, ask: Ask = nobody
    ) -> Fields:
        """Begin a session and return its first phase; with `clean` end the old one first (SPEC 3.2)."""
        wanted, aim = parse_flags(flags), Intent(intent)
        check_text({"query": query})
        rebuilt = self._rebuilt(wanted, progress) if wanted.rebuild else None
        if rebuilt is not None and not query.strip() and not wanted.clean:
            return rebuilds.rebuild_answer(self._services.read_kit().contract, rebuilt)
        self._refuse_in_a_session(wanted)  # at once: a submit that verifies has the mutex for minutes
        with self._services.mutex:
            self._services.check_open()
            self._refuse_in_a_session(wanted)
            self._services.project.check_folders()
            if wanted.clean or not wanted.worktree:
                self._services.lock.acquire(self.active.state.session_id if self.active else "")
            self._ask = ask
            try:
                answer = self._start(query, aim, wanted, chosen=chooses_lane(flags))
                return (
                    answer
                    if rebuilt is None
                    else rebuilds.after_rebuild(answer, self._services.read_kit().contract, rebuilt)
                )
            finally:
                if self.active is None:
                    self._services.lock.release()

    def _start(self, query: str, intent: Intent, given: Flags, *, chosen: bool) -> Fields:
        caller = SessionUser(
            self._services, self._services.read_kit().contract, NO_SESSION, self.conversation, self._ask
        )
        flags, marks = caller.flags(given)
        if given.clean and not flags.clean:
            self._refuse_in_a_session(flags)
        cleaned = self.clean() if flags.clean else None
        if cleaned is None:
            return self._begin(query, intent, flags, marks, chosen=chosen)
        if not query.strip():
            return cleaned | {"decisions": {**marks}}
        try:
            return with_cleaned(self._begin(query, intent, flags, marks, chosen=chosen), cleaned)
        except CodeIntelError as error:
            error.details = with_cleaned({}, cleaned) | error.details
            raise

    def _begin(self, query: str, intent: Intent, flags: Flags, marks: dict[str, str], *, chosen: bool) -> Fields:
        if not query.strip():
            raise Rejected("tool_errors.start_session.query_required")
        settings = self._services.read_kit()
        branches = self._services.branches(settings.config)
        survey = branches.survey()
        route, advice = lanes.route_in_lane(self._services, settings, query, Route(intent, flags), chosen=chosen)
        if survey.blocker and route.runs(READY_PLAN) and not route.flags.quick:
            raise Rejected("tool_errors.start_session.branch_setup_failed", error=survey.blocker)
        others, lost = recoverable(self._services), unrestorable(self._services, settings.contract)
        begin = _Begin(route, query, marks, advice, others, lost)
        if route.flags.worktree and route.runs(READY_PLAN) and self._services.project.home is None:
            return self._begin_in_worktree(begin, survey)
        self._services.lock.acquire()
        return self._lead(begin, settings, survey)

    def _begin_in_worktree(self, begin: "_Begin", here: Survey) -> Fields:
        """Begin in a new worktree of the session's own, which this process works for until the session is over."""
        git = self._services.git
        assert self._move is not None and not isinstance(git, str)  # a survey without a blocker has git
        self._prepare_folders()
        project, session_id = self._services.project, fresh_id(self._services, here)
        with new_worktree(project, git, session_id) as (root, branch):
            other = self._move(root)
            other.hooked, other.conversation, other._ask = self.hooked, self.conversation, self._ask
            services = other.services
            services.lock.acquire(session_id)
            settings = services.read_kit()
            answer = other._lead(begin, settings, services.branches(settings.config).survey(), branch)
        heard.forget(self._services.local, NO_SESSION, self.conversation)
        notes = [Note("warnings.worktree_without", {"files": ", ".join(here.dirty[:20])})] if here.dirty else []
        if lacking := sorted(gitlinks(services.git)) if not isinstance(services.git, str) else []:
            notes.append(Note("warnings.worktree_submodules", {"files": ", ".join(lacking[:20]), "worktree": root}))
        said = [responses.say(settings.contract, note) for note in notes]
        return answer | ({"warnings": [*rows_of(answer, "warnings"), *said]} if said else {})

    def _lead(
        self, begin: "_Begin", settings: SessionSettings, survey: Survey, branch: TaskBranch | None = None
    ) -> Fields:
        """Begin here; `branch` is the session's own where it has this worktree to itself."""
        route, query = begin.route, begin.query
        state = fresh(self._services, route, query, settings, survey, branch)
        state.hooked, state.conversation, state.decisions = self.hooked, self.conversation, begin.marks
        learning.catch_up(self._services, now())
        has_scaffold = self._services.project.scaffolded
        self._services.store.sweep()
        self._prepare_folders()
        ledger = self._services.ledger(state.session_id)
        ports = self._services.ports(settings, ledger, self._user(state, settings), self._record, silent)
        answer = first_answer(self._services, state, settings, survey, ports, begin.others, has_scaffold=has_scaffold)
        answer = self._in_worktree(answer, settings)
        found = {} if route.flags.only_verify else self._services.starting_points.shown(query, ledger, str(state.phase))
        if begin.advice is not None:
            answer["lane_advice"] = responses.say(settings.contract, begin.advice)
        answer |= found
        if begin.lost:
            answer["warnings"] = [*begin.lost, *rows_of(answer, "warnings")]
        state.last_submit = first_instruction(answer)
        self._ends.forget_final()
        begun = Active(state, settings, ledger)
        log_line = self._save(Decision("start", event=str(route.intent)), begun, state, time.monotonic())
        self._services.lock.acquire(state.session_id)
        self.active = begun
        heard.forget(self._services.local, NO_SESSION, self.conversation)
        self._services.decisions.append(log_line)
        self._services.warm_up()
        self._begin_runs(self.active)
        return answer

    def _begin_runs(self, active: Active) -> None:
        """Start the tests of the base, where a verdict will ask for them."""
        state = active.state
        if state.route.runs(POST_IMPL_VERIFY) and not state.flags.only_verify:
            with contextlib.suppress(CodeIntelError, OSError):
                base = state.task_branch.base_oid if state.task_branch else state.head_at_start
                self._services.begin_runs(active.settings, state.session_id, base)

    def _run_ahead(self, settings: SessionSettings, state: SessionState) -> None:
        """Run the tests of what is to be verified next while the agent sums up and makes its own checks."""
        change = to_commit(state) if state.route.runs(POST_IMPL_VERIFY) else None
        if state.place in {READY_COMPLETE, POST_IMPL_VERIFY} and change is not None and state.trees.judged:
            with contextlib.suppress(CodeIntelError, OSError):
                self._services.run_ahead(settings, state.session_id, state.trees.judged, change)

    def _refuse_in_a_session(self, flags: Flags) -> None:
        active = self.active
        if active is None or flags.clean:
            return
        state = active.state
        details = {"session_id": state.session_id, "phase": str(state.phase), "step": state.place.step}
        raise Rejected(
            "tool_errors.start_session.session_active",
            details={**details, "choices": ["submit_phase", "get_session_status", "start_session with clean"]},
            session_id=state.session_id,
            phase=state.phase,
            query=state.query,
        )

    def _rebuilt(self, flags: Flags, progress: ToolProgress) -> "SyncReport":
        """Rebuild the index before anything else, which takes long and may be cancelled."""
        self._refuse_in_a_session(flags)
        self._services.project.check_folders()
        return self._services.index.sync(rebuild=True, progress=progress)

    def _prepare_folders(self) -> None:
        git = self._services.git
        if not isinstance(git, str):
            exclude_from_git(self._services.project, git.at.common_dir, git.at.top)
            if self._services.project.home is None:
                sweep_worktrees(self._services.project, git)

    def _in_worktree(self, answer: Fields, settings: SessionSettings) -> Fields:
        """An answer with where its agent is to work, if its session has a worktree to itself."""
        if self._services.project.home is None:
            return answer
        where = Note("hints.worktree", {"worktree": self._services.root, "home": self._services.project.home})
        return answer | {"hints": [responses.say(settings.contract, where), *rows_of(answer, "hints")]}

    # -- submit ------------------------------------------------------------------------------------------------------

    def submit(self, data: JsonValue, progress: ToolProgress = silent, ask: Ask = nobody) -> Fields:
        """Judge a payload, or a list of them one by one; persist what each led to before answering."""
        with self._services.mutex:
            if self.active is None and not self._unfinished(data):
                return self._without_session(data)
            assert self.active is not None  # just looked at
            self._keep_lock()
            self._ask = ask
            batch = pipeline.elements(data)
            if batch is not None:
                ports = self.ports(self.active, silent)
                return pipeline.submit_list(data, batch, _Host(self, progress), self.active.settings.contract, ports)
            return self.submit_one(self.active, data, SubmitContext(self.active.state.place), progress).response

    def submit_one(self, active: Active, data: JsonValue, context: SubmitContext, progress: ToolProgress) -> Submission:
        """Judge one payload under the mutex and persist what it led to."""
        began = time.monotonic()
        active = self._with_marker(active)
        if changed := self._changed_files(active):
            note = Note("warnings.contract_changed_during_session", {"files": ", ".join(changed)})
            context = replace(context, warnings=(note,))
        submission = submit(active.state, data, active.settings.contract, self.ports(active, progress), context)
        if submission.state is None:
            self._log(decision_of(submission, active.state), active, active.state, began)
        else:
            self._accept(active, submission, began)
        return submission

    def _with_marker(self, active: Active) -> Active:
        """Take note of a compaction that the client's hook has told on disk (SPEC 7): summaries come with the next answer."""
        if active.state.compacted or not self._ends.marker(active.state.session_id).exists():
            return active
        return replace(active, state=active.state.model_copy(update={"compacted": True}))

    def _accept(self, active: Active, submission: Submission, began: float) -> None:
        state = submission.state
        assert state is not None  # checked by the caller
        # Their branches are gone. Once this state is saved nobody would come back for them.
        for session_id in submission.retired:
            self._ends.retire(session_id)
        if submission.end is None:
            log_line = self._save(decision_of(submission, active.state), active, state, began)
            heard.forget(self._services.local, heard.since(state.session_id, active.state.submits), state.conversation)
            self.active = replace(active, state=state)
            if active.state.compacted:
                self._ends.marker(state.session_id).unlink(missing_ok=True)  # one told meanwhile is for the next answer
            self._services.decisions.append(log_line)
            self._run_ahead(active.settings, state)
        else:
            self._finish(active, state, submission, began)

    def _finish(self, active: Active, state: SessionState, submission: Submission, began: float) -> None:
        """The last answer is on disk before the checkpoint goes: a lost one can be asked for again.

        The archive is written before the outcome, so that what a kill between the two leaves out is made up for at the
        next start (`learning.catch_up`).
        """
        if submission.end is End.ABANDONED:
            # Of the former state: a kill within finds the session where it was, and the submit not made.
            left = self._ends.abandon(active.settings, active.state).warnings
        else:
            left = self._ends.keep_earlier(active.settings, state)
        if left:
            submission.response["warnings"] = [*left]
        self._ends.keep_final(state, submission)
        self._log(decision_of(submission, active.state), active, state, began)
        archives.archive(self._services, state, active.ledger.entries(), str(submission.end), now())
        outcome, why = learning.verdict_on(state, str(submission.end))
        if outcome:
            learning.record_end(self._services, state, outcome, why, now())
        if state.tasks or state.receipt:
            self._ends.keep_accounted(state.session_id)
        with active.ledger.ending():
            self._ends.forget(state.session_id)
        self._services.tree.tidy()
        self.active = None
        self._services.lock.release()

    def _unfinished(self, data: JsonValue) -> bool:
        """Whether the last submit, sent again, finds its session still there: a kill came between its answer and its end.

        The session is taken up, so that the submit comes to its end.
        """
        final = self._final(data)
        if final is None or not _is_last(data, final):
            return False
        loaded = next((one for one in self._services.store.usable() if one.session_id == final.get("session_id")), None)
        if loaded is None:
            return False
        self._services.check_open()
        self._services.lock.acquire(loaded.session_id)
        try:
            self._restore(loaded, ())
        finally:
            if self.active is None:
                self._services.lock.release()
        return True

    def _without_session(self, data: JsonValue) -> Fields:
        final = self._final(data)
        if final is not None and isinstance(response := final.get("response"), dict) and _is_last(data, final):
            batch, number = pipeline.elements(data), final.get("number")
            if batch is None or not isinstance(number, int):
                return response
            return pipeline.list_answer(response, number, len(batch), self._services.read_kit().contract, data)
        others = recoverable(self._services)
        if others:
            raise Rejected("session_messages.interrupted_session", details={"recovery_available": others})
        if final is not None:
            raise Rejected("session_messages.session_finished", session_id=str(final.get("session_id", "")))
        raise Rejected("session_messages.no_active_session")

    def ports(self, active: Active, progress: ToolProgress = silent) -> Ports:
        """The world as this session sees it."""
        user = self._user(active.state, active.settings)
        return self._services.ports(active.settings, active.ledger, user, self._record, progress)

    def _user(self, state: SessionState, settings: SessionSettings) -> SessionUser:
        since = heard.since(state.session_id, state.submits)
        return SessionUser(self._services, settings.contract, since, state.conversation, self._ask)

    def take_looked_at(self, active: Active, *, wait: bool = True) -> Active:
        """The session with what was looked at since its claim; saved, since the hook judges a write by the checkpoint.

        Without `wait` nothing happens while a submit is judged, which may take minutes.
        """
        if not looked_at(active.state, self.ports(active)) or not self._services.mutex.acquire(blocking=wait):
            return active
        try:
            # Whoever has the lock now has the checkpoint, too.
            if self.active is None or self.active.ledger is not active.ledger or not self._services.lock.held():
                return active
            state = self.active.state.draft()
            take_looked_at(state, self.ports(self.active))
            self._services.store.save(state.session_id, state.to_checkpoint())
            self.active = replace(self.active, state=state)
            return self.active
        finally:
            self._services.mutex.release()

    def _record(self, intent: GitIntent) -> None:
        """Put a git intent on disk before its effect."""
        active = self.active
        assert active is not None  # intents are recorded only inside a submit
        state = active.state.model_copy(update={"pending": intent})
        self._services.store.save(state.session_id, state.to_checkpoint())
        self.active = replace(active, state=state)

    def _keep_lock(self) -> None:
        """Take the lock again where its file was removed behind our back; refuse where somebody else has it."""
        assert self.active is not None  # called with a session
        if not self._services.lock.held():
            self._services.lock.acquire(self.active.state.session_id)

    def _changed_files(self, active: Active) -> list[str]:
        """The project's texts that were edited since the session read them."""
        after = self._services.text_digests()
        before = active.state.digests
        return sorted(path for path in before.keys() | after.keys() if before.get(path, "") != after.get(path, ""))

    # -- status and restore --------------------------------------------------------------------------------------------

    def status(self, *, discard_active: bool = False, session_id: str | None = None) -> Fields:
        """Where the session is; without one, or with `discard_active`, restore a checkpoint (SPEC 7)."""
        active = self.active  # read once: a verification under way holds the mutex for minutes
        if active is not None and (not discard_active or session_id == active.state.session_id):
            answer = self._standing(active) | changes_so_far(self._services, active.state)
            if session_id is not None and session_id != active.state.session_id:
                other = Note("warnings.not_restored", {"wanted": session_id, "session_id": active.state.session_id})
                answer["warnings"] = [responses.say(active.settings.contract, other)]
            return answer
        with self._services.mutex:
            self._services.check_open()
            dropped = self.active.state.session_id if self.active else ""
            self._services.lock.acquire(dropped)
            try:
                loaded = to_restore(self._services.store, session_id, dropped)
                SessionState.from_checkpoint(loaded.body)
                left: tuple[str, ...] = ()
                if self.active is not None:
                    with self.active.ledger.ending():
                        left = self._ends.drop(self.active.settings, self.active.state)
                self.active = None
                return self._restore(loaded, left)
            finally:
                if self.active is None:
                    self._services.lock.release()

    def _restore(self, loaded: Loaded, left: Sequence[str]) -> Fields:
        """Go on from a checkpoint; `left` is what the session given up for it has left behind."""
        state = SessionState.from_checkpoint(loaded.body)
        state.hooked, state.conversation = False, ""  # nobody knows what client this is
        settings = self._services.read_kit()
        if settings.digests().get(_CONTRACT, "") != state.digests.get(_CONTRACT, ""):
            # The wording the session began with is gone; an edited one takes effect with the next session (SPEC 5).
            settings = replace(settings, contract=Contract.load(None))
        if settings.digests().get(_CONFIG, "") != state.digests.get(_CONFIG, ""):
            # So are the commands that were to prove the work: what cannot be run is unproven, not unwanted.
            settings = replace(settings, config=settings.config.edited())
        self.active = Active(state, settings, self._services.ledger(state.session_id))
        self._services.lock.acquire(state.session_id)
        self._complete_log(state)
        self._log(Decision("restore"), self.active, state, time.monotonic())
        self._begin_runs(self.active)
        answer = self._standing(self.active) | changes_so_far(self._services, state)
        note = Note("session_messages.restored", {"session_id": state.session_id, "phase": state.phase})
        answer |= {"restored": True, "message": responses.say(settings.contract, note)}
        warnings: list[JsonValue] = [*left]
        if loaded.restored_previous:
            answer["restored_previous"] = True
            problem = Note("warnings.restored_previous", {"error": loaded.why})
            warnings.append(responses.say(settings.contract, problem))
        elif missing := lost_submits(self._services.decisions, self._ends.finals(), state):
            warnings.append(responses.say(settings.contract, Note("warnings.rolled_back", {"count": str(missing)})))
        changed = self._changed_files(self.active)
        if changed:
            changes = Note("warnings.contract_changed_during_session", {"files": ", ".join(changed)})
            warnings.append(responses.say(settings.contract, changes))
        return answer | {"warnings": warnings} if warnings else answer

    def _standing(self, active: Active) -> Fields:
        answer = session_status(active.state, active.settings, self.ports(active, silent))
        exploring = not active.state.trees.ready and not active.state.flags.only_verify
        answer = self._in_worktree(answer, active.settings)
        return answer | (self._services.starting_points.rows(active.state.query) if exploring else {})

    def clean(self) -> Fields:
        """Archive what there is, remove stale branches and all checkpoints, go back to base (SPEC 3.2 `clean`)."""
        settings = self.active.settings if self.active else self._services.read_kit()
        others = [_given_up(root) for root in idle_worktrees(self._services)]
        with self.active.ledger.ending() if self.active else contextlib.nullcontext():
            states = [self.active.state] if self.active else self._ends.restorable()
            answer = self._ends.clean(settings, states, others)
        self.active = None
        if others:
            self._prepare_folders()
        return answer

    def last_ended(self, data: JsonValue) -> str:
        """The session whose last answer is kept for `data`; '' where none is."""
        return str((self._final(data) or {}).get("session_id", ""))

    def _final(self, data: JsonValue) -> Fields | None:
        """The kept answer that `data` asks for again, else one that it does not.

        Of a session that had a worktree to itself only where no other is interrupted: their last submits may be alike.
        """
        kept = self._ends.finals()
        asked = [one for one in kept if _is_last(data, one)]
        waiting = [row["session_id"] for row in recoverable(self._services) if isinstance(row, dict)] if asked else []
        given = (one for one in asked if not one.get("worktree") or {*waiting} <= {one["session_id"]})
        return next(given, None) or next((one for one in kept if one not in asked), None)

    def lose(self) -> None:
        """End the active session without its folder, which somebody has removed: the branch of its own worktree is kept in the trash."""
        with self._services.mutex:
            active, home = self.active, self._services.project.home
            if active is None:  # another call has
                return
            self._services.runs.stop()
            try:
                with active.ledger.ending():
                    # Else there is nowhere to write, and the branch stays where it is.
                    if home is not None and home.is_dir():
                        self._lose_worktree(ProjectServices(home), active.state)
            finally:
                self.active = None
                self._services.lock.release()

    def _lose_worktree(self, home: ProjectServices, state: SessionState) -> None:
        with contextlib.closing(home):
            learning.record_end(home, state, "abandoned", "its worktree was removed", now())
            git = home.git
            if state.task_branch is not None and not isinstance(git, str):
                with contextlib.suppress(CodeIntelError):  # moved, it still has the branch checked out: that stays
                    lose_worktree(git, self._services.root, state.task_branch)

    def drop(self) -> tuple[str, ...]:
        """Give up the active session for one of another worktree; what to report of what it has left."""
        with self._services.mutex:
            active = self.active
            assert active is not None  # the caller has looked
            with active.ledger.ending():
                left = self._ends.drop(active.settings, active.state)
            self.active = None
            self._services.lock.release()
            return left

    def forget_but(self, mine: Collection[str]) -> list[str]:
        """Remove every other session's checkpoint and ledger; the ids that had one."""
        return self._ends.forget_but(mine)

    def measure_anew(self) -> None:
        """After HEAD moved on the user's word, before any work: changes are measured from where it is now."""
        active = self.active
        if active is None or active.state.trees.ready:
            return
        state = active.state.draft()
        branches = self._services.branches(active.settings.config)
        state.head_at_start = state.tip = branches.tip()
        state.base = branches.current()
        present = self._services.tree.snapshot()
        state.trees = Trees(start=present, base=present, judged=present)
        # For those who only read it, the hook and `status`: the branches it named may be gone.
        state.last_submit = first_instruction(self._standing(replace(active, state=state)))
        self._services.store.save(state.session_id, state.to_checkpoint())
        self.active = replace(active, state=state)

    def next_step(self) -> Fields:
        """What is to be done where the session is now, after a tool that has changed it."""
        assert self.active is not None  # callers have looked
        standing = self._standing(self.active)
        return {name: standing[name] for name in ("phase", "instruction", "expected_payload", "call")}

    def _log(self, decision: Decision, before: Active, after: SessionState, started: float) -> None:
        self._services.decisions.append(
            decision_row(decision, before.state, after, len(before.ledger.entries()), started)
        )

    def _save(self, decision: Decision, before: Active, after: SessionState, started: float) -> Fields:
        """Save a state together with its line of the decision log, which is returned, to be added once it is saved."""
        line = decision_row(decision, before.state, after, len(before.ledger.entries()), started)
        assert after.last_submit is not None  # it was just accepted
        after.last_submit.log_line = line
        self._services.store.save(after.session_id, after.to_checkpoint())
        return line

    def _complete_log(self, state: SessionState) -> None:
        """Add the line of the last accepted submit where a kill came between its checkpoint and it."""
        line = state.last_submit.log_line if state.last_submit else {}
        logged = self._services.decisions.tail().records
        if line and not any(all(row.get(name) == line[name] for name in _SAME_LINE) for row in logged):
            self._services.decisions.append(line)


@dataclass(frozen=True, slots=True)
class _Begin:
    """What a session begins with: its road, whose word its flags are, and what the start has to report."""

    route: Route
    query: str
    marks: dict[str, str]
    advice: Note | None
    others: list[JsonValue]
    lost: list[JsonValue]


def _given_up(root: Path) -> Fields:
    """Give up the sessions of a worktree that nobody leads, as `clean` does."""
    services = ProjectServices(root)
    try:
        services.lock.acquire()
        ends = Endings(services)
        return ends.clean(services.read_kit(), ends.restorable())
    finally:
        services.close()


def rows_of(answer: Fields, name: str) -> list[JsonValue]:
    """The list in a field of an answer; an empty one where there is none."""
    rows = answer.get(name)
    return rows if isinstance(rows, list) else []


@dataclass(frozen=True, slots=True)
class _Host:
    """Keeps the session between the submits of a list; a call that was cancelled ends between two of them."""

    sessions: Sessions
    progress: ToolProgress

    @property
    def state(self) -> SessionState | None:
        """The session as the last accepted submit left it."""
        return self.sessions.active.state if self.sessions.active else None

    def submit_one(self, data: JsonValue, context: SubmitContext) -> Submission:
        """Judge one payload and keep what it led to."""
        self.progress(0, 1, "")
        assert self.sessions.active is not None  # a list ends with its session
        return self.sessions.submit_one(self.sessions.active, data, context, self.progress)


_CONTRACT = ".code-intel/phase_contract.yml"
_CONFIG = ".code-intel/config.json"
_SAME_LINE = ("session_id", "ts", "ms")


def _is_last(data: JsonValue, final: Fields) -> bool:
    """Whether a submit, or a list, is the one whose answer was the last of a session."""
    batch, number = pipeline.elements(data), final.get("number")
    if batch is not None:
        return isinstance(number, int) and pipeline.accepted_prefix(batch, number, str(final.get("chain"))) > 0
    try:
        return digest(parse_object(data)) == final.get("digest")
    except CodeIntelError:
        return False
