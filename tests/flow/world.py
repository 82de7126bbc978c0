"""A world in memory for the flow: files, snapshots, branches and prompts that behave like the real ones, without a disk.

It exists so that every branch of the state machine runs in microseconds; the same sessions run against real git in
tests/e2e.
"""

import difflib
import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from itertools import takewhile
from typing import cast

from pydantic import JsonValue

from code_intel_server.codebase.evidence.changed_syntax import Comparison, compare, whole
from code_intel_server.codebase.evidence.location import RangeVerdict, Reference, Replaced
from code_intel_server.contract.loader import Contract
from code_intel_server.errors import UserActionNeeded
from code_intel_server.flow import responses
from code_intel_server.flow.dispatch import Submission, SubmitContext, submit
from code_intel_server.flow.phases import Flags, Intent
from code_intel_server.flow.pipeline import elements, submit_list
from code_intel_server.flow.ports import Author, Ports, SymbolRelevance
from code_intel_server.flow.session import SessionState, Trees
from code_intel_server.flow.transitions import begin
from code_intel_server.tools.session.answers import first_instruction
from code_intel_server.workspace.branches import BranchManager
from code_intel_server.workspace.project.context_provider import ContextProvider
from code_intel_server.workspace.proofs import ProofRunner
from code_intel_server.workspace.state.journals import LedgerFile
from code_intel_server.workspace.tree.tree import TreeJudge
from code_intel_server.workspace.values import (
    Beside,
    Change,
    ChangeKind,
    CommandRun,
    CommitRequest,
    CommitResult,
    GitIntent,
    GitOperation,
    HandMerges,
    Hunk,
    LedgerEntry,
    MergeResult,
    Prompt,
    Proof,
    ProofStatus,
    RecordIntent,
    Retired,
    SeenTests,
    StaleBranch,
    Survey,
    TaskBranch,
    ToCommit,
)

Files = dict[str, str]


TOO_BIG = "\0too big to be kept"


@dataclass
class World:
    """Everything the ports can see; tests change it freely between submits."""

    files: Files = field(default_factory=lambda: {"app.py": "def main():\n    return 1\n", "README.md": "# App\n"})
    documents: list[str] = field(default_factory=lambda: ["README.md"])
    git: bool = True
    current: str = "main"
    current_base: str = ""
    stale: tuple[str, ...] = ()
    bases: dict[str, str] = field(default_factory=dict)
    calls: list[LedgerEntry] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    proof: ProofStatus = ProofStatus.NONE
    proof_runs: int = 0
    changes_run: list[ToCommit | None] = field(default_factory=list)
    tests: SeenTests | None = None
    run: CommandRun | None = None
    looks: int = 0
    commits: list[CommitRequest] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    intents: list[GitIntent] = field(default_factory=list)
    failing: dict[str, str] = field(default_factory=dict)
    altered: tuple[str, ...] = ()
    hand_merges: HandMerges = field(default_factory=HandMerges)
    links: dict[str, str | None] = field(default_factory=dict)
    within: dict[str, str] = field(default_factory=dict)
    """Folders of repositories within, by the paths that are uncommitted there; '' for the repository itself."""
    uncommitted: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    beside: Beside = field(default_factory=Beside)
    beside_asked: list[frozenset[str]] = field(default_factory=list)
    scripts: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    trivial: set[str] = field(default_factory=set)
    empty: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)
    prompt_files: Sequence[str] = ()
    packaged_prompts: bool = False
    push_hint: str = ""
    busy: str = ""
    merge_trailers: tuple[tuple[str, str], ...] = ()
    brought_back: tuple[str, ...] = ()
    combined: bool = False
    unmoved: bool = False
    nothing_new: bool = False
    adopts: str = ""
    writes_on_commit: Files = field(default_factory=dict)
    worktrees: tuple[str, ...] = ()
    writes_on_proof: Files = field(default_factory=dict)
    rewrites_on_proof: tuple[str, ...] = ()
    written: list[tuple[str, str]] = field(default_factory=list)
    user_says: dict[str, tuple[str, Author]] = field(default_factory=dict)
    waived_by: Author | None = Author.AGENT
    questions: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    more_interventions: bool = False
    likeness: dict[str, float] = field(default_factory=dict)
    tip_count: int = 0
    base: str = ""
    snapshots: dict[str, Files] = field(default_factory=dict)
    heads: dict[str, Files] = field(default_factory=dict)

    def call(
        self, tool: str, *files: str, results: int = 1, outcome: str = "ok", tree: str = "", asks: tuple[str, ...] = ()
    ) -> None:
        """Let a tool run: one more line in the ledger."""
        self.calls.append(LedgerEntry(len(self.calls) + 1, tool, "", outcome, results, files, tree, asks))

    def head(self) -> str:
        return f"{self.tip_count:040x}"

    def fail(self, operation: str) -> None:
        if operation in self.failing:
            raise UserActionNeeded(self.failing[operation], choice="x", errors="y", files="z")


@dataclass
class WorldTree:
    world: World

    def snapshot(self, *, contents: bool = False, of: Collection[str] = ()) -> str:
        self.world.looks += 1
        if not self.world.git:
            return ""
        files = {path: text for path, text in self.world.files.items() if path not in self.world.ignored}
        name = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self.world.snapshots[name] = files
        return name

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        before, after = self.world.snapshots[old], self.world.snapshots[new]
        gone = {path for path in before if path not in after}
        rows: list[Change] = []
        for path, text in sorted(after.items()):
            if path not in before:
                source = next((old_path for old_path in sorted(gone) if before[old_path] == text and text), "")
                if source:
                    gone.discard(source)
                    rows.append(Change(path, ChangeKind.RENAMED, source))
                else:
                    rows.append(Change(path, ChangeKind.ADDED, binary="\0" in text, hunks=hunks("", text)))
            elif before[path] != text:
                link = path in self.world.links
                rows.append(Change(path, ChangeKind.MODIFIED, "", "\0" in text, "", hunks(before[path], text), link))
        rows += [Change(path, ChangeKind.DELETED, hunks=hunks(before[path], "")) for path in sorted(gone)]
        within = self.world.within
        return tuple(
            replace(row, within=within[row.path], repository=not within[row.path]) if row.path in within else row
            for row in rows
        )

    def lines(self, snapshot: str, path: str) -> tuple[str, ...] | None:
        text = self.world.snapshots.get(snapshot, {}).get(path)
        return None if text is None or "\0" in text else tuple(text.splitlines())

    def oids(self, snapshot: str, paths: Sequence[str]) -> dict[str, str]:
        files = self.world.snapshots.get(snapshot, {})
        return {path: hashlib.sha1(files[path].encode()).hexdigest() for path in paths if path in files}

    def exists(self, snapshot: str, path: str) -> bool:
        return path in self.world.snapshots.get(snapshot, {})

    def content(self, snapshot: str, path: str) -> bytes | None:
        text = self.world.snapshots.get(snapshot, {}).get(path)
        return None if text is None or text == TOO_BIG else text.encode()

    def worktrees(self) -> tuple[str, ...]:
        return self.world.worktrees

    def head(self) -> str:
        return self.world.head()

    def altered(self, commit: str, paths: Sequence[str], snapshot: str) -> tuple[str, ...]:
        return self.world.altered

    def uncommitted(self, snapshot: str, commit: str, paths: Sequence[str]) -> tuple[str, ...]:
        return tuple(path for path in paths if path in self.world.uncommitted)

    def beside(self, commit: str, snapshot: str, paths: Collection[str]) -> Beside:
        self.world.beside_asked.append(frozenset(paths))
        return self.world.beside

    def head_snapshot(self, commit: str) -> str:
        return self.snapshot() if commit not in self.world.heads else self._kept(self.world.heads[commit])

    def _kept(self, files: Files) -> str:
        name = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self.world.snapshots[name] = files
        return name


def hunks(before: str, after: str) -> tuple[Hunk, ...]:
    """The -U0 hunks between two texts."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return tuple(
        Hunk(i1 + (i2 > i1), i2 - i1, j1 + (j2 > j1), j2 - j1)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    )


@dataclass
class WorldEvidence:
    world: World

    def exists(self, path: str) -> bool:
        return path in self.world.files and path not in self.world.links

    def normal(self, path: str) -> str | None:
        name = self.own_name(path)
        return self.world.links.get(name, name) if name is not None else None  # a link may lead nowhere

    def own_name(self, path: str) -> str | None:
        return None if path.startswith(("/", "..")) else path.removeprefix("./")

    def total_lines(self, path: str) -> int | None:
        text = self.world.files.get(path)
        return None if text is None else len(text.splitlines())

    def lines(self, path: str) -> Sequence[str] | None:
        text = self.world.files.get(path)
        return None if text is None else text.splitlines()

    def compare(
        self, path: str, before: bytes | None, after: bytes | None, hunks: Sequence[Replaced]
    ) -> "WorldDifference":
        text = after if after is not None else self.world.files[path].encode()
        if path in self.world.trivial or path in self.world.empty:
            return WorldDifference(self.world, path)
        return WorldDifference(self.world, path, compare(path, before, text, hunks) if hunks else whole(path, text))


@dataclass
class WorldDifference:
    world: World
    path: str
    real: Comparison | None = None

    @property
    def by_lines(self) -> bool:
        return self.real is not None and self.real.by_lines

    def judge(self, start: int, end: int) -> RangeVerdict:
        if self.real is not None:
            return self.real.judge(start, end)
        empty = self.path in self.world.empty
        return RangeVerdict(empty=empty, trivial=not empty, why="only comments or documentation", prose=not empty)


@dataclass
class WorldBranches:
    world: World

    def survey(self) -> Survey:
        world = self.world
        return Survey(
            git=world.git,
            blocker="" if world.git else "This is not a git repository.",
            current=world.current,
            head=world.head(),
            stale=world.stale,
            current_base=world.current_base,
            dirty=(),
            untracked={},
            identity_missing=False,
        )

    def standing_base(self) -> str:
        return self.world.current_base

    def stale(self) -> tuple[StaleBranch, ...]:
        world = self.world
        return tuple(
            StaleBranch(
                name,
                "",
                world.current_base if name == world.current else world.bases.get(name, ""),
                name == world.current,
            )
            for name in world.stale
        )

    def create(
        self, session_id: str, explained: Collection[str], record: RecordIntent, pending: GitIntent | None
    ) -> TaskBranch:
        self.world.fail("create")
        record(GitIntent(GitOperation.CREATE_BRANCH, "refs/heads/x", "", self.world.head()))
        branch = TaskBranch(f"llm_task_{session_id}", self.world.current, self.world.head())
        self.world.current, self.world.current_base = branch.name, branch.base
        return branch

    def retire(self, choice: str, session_id: str, record: RecordIntent, pending: GitIntent | None) -> Retired:
        self.world.fail("retire")
        stale, self.world.stale = self.world.stale, ()
        merged = self.world.head() if choice == "merge" else ""
        if self.world.current_base:
            self.world.current, self.world.current_base = self.world.current_base, ""
        return Retired(stale, tuple(f"refs/code-intel/archive/{name}" for name in stale), merged, ("20200101_000000",))

    def tip(self) -> str:
        return self.world.head()

    def current(self) -> str:
        return self.world.current

    def discard(self, request: CommitRequest, record: RecordIntent, pending: GitIntent | None) -> tuple[str, ...]:
        base = self.world.snapshots[self.world.base]
        for path in request.discard:
            if path in base:
                self.world.files[path] = base[path]
            else:
                self.world.files.pop(path, None)
        self.world.discarded += request.discard
        return ("refs/code-intel/archive/discarded",)

    def commit(self, request: CommitRequest, record: RecordIntent, pending: GitIntent | None) -> CommitResult:
        self.world.fail("commit")
        if pending is not None:
            return CommitResult(self.world.adopts, self.world.adopts)
        self.world.commits.append(request)
        if not request.keep or self.world.nothing_new:
            return CommitResult("", self.world.head(), request.archived)
        kept = {path: self.world.files[path] for path in request.keep if path in self.world.files}
        before = self.world.heads[self.world.head()]
        self.world.tip_count += 1
        self.world.heads[self.world.head()] = {p: t for p, t in before.items() if p not in request.keep} | kept
        self.world.files |= self.world.writes_on_commit
        return CommitResult(self.world.head(), self.world.head(), request.archived, self.world.outside)

    def merge(
        self,
        branch: TaskBranch,
        session_id: str,
        expected_tip: str,
        trailers: Sequence[tuple[str, str]],
        record: RecordIntent,
        pending: GitIntent | None,
        by_hand: HandMerges | None = None,
    ) -> MergeResult:
        self.world.fail("merge")
        self.world.merge_trailers = tuple(trailers)
        self.world.current, self.world.current_base = branch.base, ""
        oid = "" if self.world.unmoved else self.world.head()
        return MergeResult(
            oid,
            branch.name,
            branch.base,
            self.world.push_hint,
            self.world.brought_back,
            self.world.combined,
            busy=self.world.busy,
        )

    def hand_merges(self, branch: TaskBranch, expected_tip: str, pending: GitIntent | None) -> HandMerges:
        return self.world.hand_merges


@dataclass
class WorldProofs:
    world: World

    def run(
        self,
        session_id: str,
        progress: Callable[[float, float, str], None],
        tree: str = "",
        change: ToCommit | None = None,
    ) -> Proof:
        self.world.proof_runs += 1
        self.world.changes_run.append(change)
        status, before = self.world.proof, tree
        if self.world.writes_on_proof:
            self.world.files |= self.world.writes_on_proof
            tree = WorldTree(self.world).snapshot()
            self.world.written += [(before, tree)] if tree != before else []
        if status is ProofStatus.NONE:
            return Proof(status, tree, left_out=self.world.left_out)
        if self.world.run is not None:
            return Proof(status, tree, (self.world.run,), self.world.left_out)
        return Proof(
            status,
            tree,
            (CommandRun(("pytest", "-q"), status, 1, 0.5, "1 failed", "why", self.world.rewrites_on_proof),),
            self.world.left_out,
            self.world.tests,
        )

    def written(self, session_id: str) -> list[tuple[str, str]]:
        return self.world.written

    def would_run(self, session_id: str) -> bool:
        return self.world.proof in {ProofStatus.PROVEN, ProofStatus.FAILED}

    def expected(self, session_id: str) -> dict[str, JsonValue]:
        return {"verify_commands": ["pytest -q"]} if self.would_run(session_id) else {}

    def script(self, path: str) -> str:
        return self.world.scripts.get(path, "")

    def argument(self, path: str) -> str:
        return self.world.arguments.get(path, "")


@dataclass
class WorldDocuments:
    world: World

    def any_document(self) -> bool:
        return bool(self.world.documents)

    def documents_for(self, query: str, most: int) -> tuple[str, ...]:
        return tuple(self.world.documents[:most])

    def chosen_research(self) -> tuple[Prompt, ...]:
        return self.prompts("doc_research")

    def find_prompt(self, kind: str, name: str) -> Prompt | None:
        stem = name.rsplit("/", 1)[-1].removesuffix(".md")
        return next((prompt for prompt in self.prompts(kind) if prompt.name == stem), None)

    def prompts(self, kind: str) -> tuple[Prompt, ...]:
        names = {
            "verifiers": ("generic", "tests"),
            "interventions": ("step_back", "smaller_step") if self.world.more_interventions else ("step_back",),
            "review_prompts": ("garbage_detection", "quality_review"),
            "user_escalation": ("user_escalation",),
            "task_planning": ("task_planning",),
            "doc_research": ("default",),
        }[kind]
        packaged = self.world.packaged_prompts
        return tuple(Prompt(kind, name, f".code-intel/{kind}/{name}.md", f"Do {name}.", packaged) for name in names)

    def existing(self, names: Sequence[str]) -> tuple[str, ...]:
        given = [path for path in self.world.prompt_files for name in names if fnmatch(path, name)]
        return () if self.world.packaged_prompts else tuple(given or names)


@dataclass
class WorldRelevance:
    world: World

    def symbols(self, symbols: Sequence[str], query: str) -> tuple[SymbolRelevance, ...]:
        return tuple(
            SymbolRelevance(
                name,
                self.world.likeness.get(name, 0.5),
                tuple(p for p, text in self.world.files.items() if f"def {name}" in text),
            )
            for name in symbols
        )

    def definitions(self, symbols: Sequence[str]) -> Mapping[str, Sequence[Reference]]:
        return {name: [*self._defined(name)] for name in symbols}

    def _defined(self, name: str) -> Iterator[Reference]:
        for path, text in self.world.files.items():
            lines = text.splitlines()
            for number, line in enumerate(lines, 1):
                if f"def {name.rpartition('.')[2]}(" in line:
                    body = takewhile(lambda below: below.startswith(" "), lines[number:])
                    yield Reference(path, number, number + len([*body]))


@dataclass
class WorldLedger:
    world: World

    def entries(self) -> tuple[LedgerEntry, ...]:
        return tuple(self.world.calls)

    def reads(self) -> Collection[str]:
        return self.world.reads


@dataclass
class WorldUser:
    """The user's words, as the world has them."""

    world: World

    def decides(self, what: str, choice: str, choices: Sequence[str]) -> tuple[str, Author]:
        self.world.questions.append((what, tuple(choices)))
        return self.world.user_says.get(what, (choice, Author.AGENT))

    def waived(self, session_id: str, run: CommandRun) -> Author | None:
        self.world.questions.append((session_id, run.argv))
        return self.world.waived_by


class Session:
    """A session in a world: submit payloads and look at the answers, as a client would."""

    def __init__(
        self,
        flags: Flags | None = None,
        intent: Intent = Intent.IMPLEMENT,
        world: World | None = None,
        query: str = "Add a login page to the App",
    ) -> None:
        self.world = world or World()
        self.contract = Contract.load(None)
        self.saved: list[GitIntent] = []
        self.ports = Ports(
            branches=cast("BranchManager", WorldBranches(self.world)),
            tree=cast("TreeJudge", WorldTree(self.world)),
            evidence=WorldEvidence(self.world),
            proofs=cast("ProofRunner", WorldProofs(self.world)),
            documents=cast("ContextProvider", WorldDocuments(self.world)),
            relevance=WorldRelevance(self.world),
            ledger=cast("LedgerFile", WorldLedger(self.world)),
            user=WorldUser(self.world),
            record=self.saved.append,
            progress=lambda _done, _total, _message: None,
        )
        start = self.ports.tree.snapshot()
        self.world.base = start
        self.world.heads.setdefault(self.world.head(), dict(self.world.files))
        self.state = SessionState(
            session_id="20260201_123456",
            intent=intent,
            query=query,
            flags=flags or Flags(),
            phase="QUERY_FRAME",
            stale_branches=bool(self.world.stale),
            base=self.world.current,
            head_at_start=self.world.head(),
            trees=Trees(start=start, base=start),
        )
        place = begin(self.state.route)
        self.state.phase, self.state.substep = place.phase, place.substep
        self.started = responses.current_step(self.state, self.contract, self.ports)
        self.state.last_submit = first_instruction(self.started)
        self.last: Submission | None = None
        self.kept: list[SessionState] = []
        self.answer: dict[str, object] = {}

    def send(self, **payload: object) -> dict[str, object]:
        """Submit with a summary and an empty tools list unless given; keep the new state when accepted."""
        data = {"summary": "Done.", "tools_used": [], **payload}
        return self.raw(data)

    def raw(self, data: object) -> dict[str, object]:
        """Submit exactly `data`."""
        batch = elements(data)  # type: ignore[arg-type]
        if batch is not None:
            return dict(submit_list(data, batch, self, self.contract, self.ports))  # type: ignore[arg-type]
        return dict(self.submit_one(data, SubmitContext(self.state.place)).response)

    def submit_one(self, data: object, context: SubmitContext) -> Submission:
        """Judge one payload and keep the new state when accepted."""
        before = self.state.model_dump_json()
        self.last = submit(self.state, data, self.contract, self.ports, context)  # type: ignore[arg-type]
        assert self.state.model_dump_json() == before, "a submit must not change the state in place"
        if self.last.state is not None:
            self.state = self.last.state
            self.kept.append(self.state)
        return self.last

    def status(self) -> dict[str, object]:
        """Where the session stands, read anew from its checkpoint."""
        restored = SessionState.from_checkpoint(self.state.to_checkpoint())
        return dict(responses.current_step(restored, self.contract, self.ports))

    @property
    def error(self) -> str:
        """The message key of the last refusal."""
        assert self.last is not None
        return self.last.key

    def frame(self) -> dict[str, object]:
        return self.send(action_type="add", target_symbols=["main"])

    def explore(self, *files: str) -> dict[str, object]:
        self.world.call("search_text", *(files or ("app.py",)))
        self.world.call("find_definitions", "app.py")
        return self.send(
            explored_files=list(files or ("app.py",)),
            findings=["app.py:1 - entry"],
            tools_used=["mcp__code-intel__search_text", "find_definitions"],
        )

    def to_ready(self, *files: str) -> "Session":
        """Through steps 3 to 10 with every answer no."""
        self.send(documents_reviewed=["README.md"])
        self.frame()
        self.explore(*files)
        self.send(needs_more_information=False, reason="Everything was found.")
        self.send(has_unverified_hypotheses=False, reason="Nothing is left open.")
        self.send(needs_impact_analysis=False, reason="Nothing else uses it.")
        assert str(self.state.phase) == "READY"
        return self

    def to_ready_without_documents(self) -> "Session":
        """Like `to_ready` where the project has no documents; explores every file."""
        self.send(documents_reviewed=[])
        self.frame()
        self.explore(*self.world.files)
        self.send(needs_more_information=False, reason="Everything was found.")
        self.send(has_unverified_hypotheses=False, reason="Nothing is left open.")
        self.send(needs_impact_analysis=False, reason="Nothing else uses it.")
        return self

    def plan(self, *ids: str, **more: object) -> dict[str, object]:
        recorded = [
            {"id": t.id, "description": t.description, "status": "completed"} for t in self.state.tasks if not t.pending
        ]
        fresh = [
            {"id": name, "description": f"Do {name}", "status": "pending", "checklist": [{"item": f"Item of {name}"}]}
            for name in ids
        ]
        return self.send(tasks=recorded + fresh, **more)

    def planned(self, *ids: str) -> "Session":
        """With a plan of these tasks."""
        self.plan(*ids)
        return self

    def verified(self) -> "Session":
        """The reported tasks, completed and verified."""
        self.send(summary="All tasks are done.")
        self.send(passed=True, verifier_used="tests", details="green")
        return self

    def edit(self, path: str = "app.py", text: str = "def main():\n    return 2\n") -> "Session":
        self.world.files[path] = text
        return self

    def report(self, task: str, evidence: object = "app.py:2", **item: object) -> dict[str, object]:
        self.world.call("check_write_target", *{*self.world.files, *self.world.snapshots.get(self.world.base, {})})
        entry = {"item": f"Item of {task}", "status": "done", "evidence": evidence, **item}
        return self.send(task_id=task, checklist=[entry], tools_used=["check_write_target"])

    def to_verify(self) -> "Session":
        """A planned, edited and reported task."""
        self.plan("t1")
        self.edit().report("t1")
        self.send(summary="All tasks are done.")
        return self

    def to_commit(self) -> "Session":
        self.plan("t1")
        self.edit().report("t1")
        return self.verified()

    def commit(self, *reviewed: object, **more: object) -> dict[str, object]:
        self.world.call("review_changes")
        return self.send(
            reviewed_files=list(reviewed or ("app.py",)),
            commit_message="Add it",
            review_prompt_used="garbage_detection",
            tools_used=["review_changes"],
            **more,
        )
