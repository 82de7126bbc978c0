"""Everything that belongs to one project, each thing made when it is first needed.

Composition happens here and nowhere else, so that start-up imports nothing heavy and every tool sees the same git door,
the same journals and the same lock.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from code_intel_server.contract import Contract
from code_intel_server.errors import CodeIntelError, Unavailable
from code_intel_server.flow.access import ACCESS, LOOKUPS
from code_intel_server.flow.phases import Phase
from code_intel_server.flow.ports import Ports, User
from code_intel_server.workspace.paths import Project, exclude_from_git
from code_intel_server.workspace.project.config import Config, ConfigFile
from code_intel_server.workspace.project.context_provider import ContextProvider
from code_intel_server.workspace.project.prompts import PromptLibrary
from code_intel_server.workspace.project.trust import Approvals
from code_intel_server.workspace.state.checkpoints import CheckpointStore
from code_intel_server.workspace.state.journals import Journal, LedgerFile
from code_intel_server.workspace.state.key import load_key, private_folder
from code_intel_server.workspace.state.lock import ProjectLock
from code_intel_server.workspace.values import ToCommit

if TYPE_CHECKING:
    from code_intel_server.codebase.evidence import ProjectEvidence
    from code_intel_server.codebase.explorer import Explorer
    from code_intel_server.codebase.external_resolution import SourceSettings
    from code_intel_server.index.code_index import CodeIndex
    from code_intel_server.index.values import IndexSettings
    from code_intel_server.receipts import SessionRuns
    from code_intel_server.tools.session.starting_points import StartingPoints
    from code_intel_server.workspace.branches import BranchManager
    from code_intel_server.workspace.git.repository import Git
    from code_intel_server.workspace.proofs import ProofRunner
    from code_intel_server.workspace.tree.tree import TreeJudge

HISTORY_COMMITS = 2000

ToolProgress = Callable[[float, float, str], None]

_IN_VAIN = (CodeIntelError, OSError, sqlite3.Error)
"""What work in the background may end with: whoever needs it does it again, and says then what is wrong."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a session reads once at its start and keeps: an edit during the session takes effect with the next (SPEC 5)."""

    contract: Contract
    config: ConfigFile
    context: ContextProvider
    prompts: PromptLibrary

    def digests(self) -> dict[str, str]:
        """What each of these files was when it was read, by project path; '' for one that was not there."""
        return {
            ".code-intel/phase_contract.yml": self.contract.digest,
            ".code-intel/config.json": self.config.digest,
            **self.prompts.hashes,
        }


Made = TypeVar("Made")


class made_once(Generic[Made]):  # noqa: N801 - reads as the decorator it is
    """A part of a project's services, made at its first use; calls that ask for it at the same time get the same one.

    `functools.cached_property` holds no lock from Python 3.12 on: two first lookups would make two indexes, of which the
    one that is dropped may own the store.
    """

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, services: "ProjectServices", owner: "type[ProjectServices]") -> Made:
        """The part, made now where nobody has asked for it before."""
        with services.making:
            if self._name not in services.__dict__:
                services.__dict__[self._name] = self._make(services)
            made: Made = services.__dict__[self._name]
            return made


class ProjectServices:
    """One project and its parts."""

    def __init__(self, root: Path) -> None:
        self.project = Project(root)
        self.mutex = threading.RLock()
        self.making = threading.RLock()
        self._closed = False
        self._refreshing = threading.Lock()

    @property
    def root(self) -> Path:
        """The project's root."""
        return self.project.root

    @made_once
    def git(self) -> "Git | str":
        """The git door, or why there is none.

        Raises Unavailable('tool_errors.git.failed') where git could not read its repository: with another folder's key
        what this session wrote would not be believed once git can read again.
        """
        from code_intel_server.workspace.git.repository import open_readable

        return open_readable(self.root)

    @made_once
    def private(self) -> Path:
        """Where the key lies: shared by all worktrees of a repository."""
        return self._private_folder(lambda git: git.at.common_dir)

    @made_once
    def local(self) -> Path:
        """What belongs to this worktree alone: its lock, its last answer."""
        return self._private_folder(lambda git: git.at.git_dir)

    def _private_folder(self, of: "Callable[[Git], Path]") -> Path:
        return private_folder(None if isinstance(self.git, str) else of(self.git), self.root)

    @made_once
    def home_local(self) -> Path:
        """The same of the user's folder, where this is the worktree of one of its sessions: what outlives that is kept there."""
        from code_intel_server.workspace.git.repository import open_readable

        if self.project.home is None or isinstance(git := open_readable(self.project.home), str):
            return self.local
        return private_folder(git.at.git_dir, self.project.home)

    @made_once
    def lock(self) -> ProjectLock:
        """The lock of this worktree."""
        return ProjectLock(self.local, self.root)

    @made_once
    def key(self) -> bytes:
        """The key that authenticates what this machine wrote."""
        return load_key(self.private)

    @made_once
    def store(self) -> CheckpointStore:
        """The checkpoints."""
        return CheckpointStore(self.project.sessions, self.key)

    @made_once
    def decisions(self) -> Journal:
        """Every decision of the server (SPEC 10)."""
        return Journal(self.project.logs / "decisions.jsonl")

    @made_once
    def outcomes(self) -> Journal:
        """How sessions ended and what the user thought of them (SPEC 10)."""
        return Journal(self.project.logs / "outcomes.jsonl")

    @made_once
    def tree(self) -> "TreeJudge":
        """The judge of the working tree."""
        from code_intel_server.workspace.tree.tree import TreeJudge

        return TreeJudge(self.root)

    @made_once
    def evidence(self) -> "ProjectEvidence":
        """The judge of evidence."""
        from code_intel_server.codebase.evidence import ProjectEvidence

        return ProjectEvidence(self.root)

    @made_once
    def explorer(self) -> "Explorer":
        """Lookups over the project's files."""
        from code_intel_server.codebase.explorer import Explorer

        self._keep_out_of_git()
        excluded = ConfigFile.load(self.project.config_file).config.exclude_patterns
        sources = lambda: source_settings(ConfigFile.load(self.project.config_file))  # noqa: E731
        return Explorer(self.root, excluded, sources=sources, shared=self._shared)

    @made_once
    def index(self) -> "CodeIndex":
        """Forest and Map."""
        from code_intel_server.codebase.files.ignore import project_files
        from code_intel_server.codebase.files.project import ProjectScope
        from code_intel_server.index.code_index import CodeIndex
        from code_intel_server.index.vectors.embedding import load_encoder

        self._keep_out_of_git()
        config = ConfigFile.load(self.project.config_file).config
        scope = ProjectScope.at(self.root, tuple(config.exclude_patterns))
        index = CodeIndex(
            self.root,
            index_settings(config),
            encoder=lambda: load_encoder(config.embedding_model),
            lister=lambda: project_files(scope),
            shared=self._shared,
            repository=self._repository,
        )
        if self._closed:  # a thread that was late asks: nobody would close it
            index.close()
        return index

    @made_once
    def starting_points(self) -> "StartingPoints":
        """Where reports are begun."""
        from code_intel_server.tools.session.starting_points import StartingPoints

        return StartingPoints(self)

    def _shared(self) -> "Path | None":
        return None if isinstance(git := self.git, str) else private_folder(git.at.common_dir, self.root)

    def _repository(self) -> str:
        """The first commit, which all clones have in common; '' where there is none."""
        with contextlib.suppress(Unavailable):
            if not isinstance(git := self.git, str) and git.oid("HEAD"):
                return min(git.text("rev-list", "--max-parents=0", "HEAD").split())
        return ""

    def _keep_out_of_git(self) -> None:
        """Exclude what we write before it is written, outside a session too (SPEC 6.8); no lookup fails for it."""
        with contextlib.suppress(CodeIntelError, OSError, ValueError):
            if not isinstance(git := self.git, str):
                exclude_from_git(self.project, git.at.common_dir, git.at.top)

    def history(self) -> "Iterable[tuple[str, ...]]":
        """The paths each of the last commits changed, newest first; nothing without a git that answers."""
        with contextlib.suppress(Unavailable):
            if not isinstance(git := self.git, str):
                return git.changed_together(HISTORY_COMMITS)
        return ()

    def warm_up(self) -> None:
        """Start what a session will want soon, in the background; a session never waits for it (SPEC 9)."""
        with contextlib.suppress(RuntimeError):  # no more threads: the first lookup does it
            threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()

    def _warm_up(self) -> None:
        with contextlib.suppress(*_IN_VAIN):
            self.index.start()
        self._refresh_symbols()
        with contextlib.suppress(*_IN_VAIN):
            self.evidence.load()

    def refresh_symbols(self) -> None:
        """Bring the symbol cache up to date in the background, until this project is left; nothing where that is under way."""
        threading.Thread(target=self._refresh_symbols, name="symbol-refresh", daemon=True).start()

    def _refresh_symbols(self) -> None:
        if self._refreshing.acquire(blocking=False):  # a lookup looks for itself what has changed since
            try:
                with contextlib.suppress(*_IN_VAIN):
                    self.explorer.refresh_all(cancelled=lambda: self._closed)
            finally:
                self._refreshing.release()

    def check_open(self) -> None:
        """Refuse to begin with a project that another call has left for another project meanwhile."""
        if self._closed:
            raise Unavailable("tool_errors.generic.project_left")

    def close(self) -> None:
        """Let go of everything that outlives a call."""
        with self.making:  # not while the index is being made
            self._closed = True
            made = dict(self.__dict__)
        # Of what was made, each whatever becomes of the others; from the last to the first.
        with contextlib.ExitStack() as ends:
            if "runs" in made:
                ends.callback(self.runs.stop)
            if "lock" in made:
                ends.callback(self.lock.release)
            if "explorer" in made:
                ends.callback(self.explorer.close)
            if "index" in made:
                ends.callback(self.index.close)

    def text_digests(self) -> dict[str, str]:
        """What the project's texts are now, by project path."""
        return self.read_kit().digests()

    @made_once
    def runs(self) -> "SessionRuns":
        """The test runs of this project's sessions."""
        from code_intel_server.receipts import SessionRuns

        return SessionRuns(
            self.tree, lambda: self.git, lambda: self.project.writable("cache", "runs"), lambda: self.key
        )

    def begin_runs(self, settings: SessionSettings, session_id: str, commit: str) -> None:
        """Start the tests of a session's base in the background, where the user trusts commands that run tests."""
        if settings.config.config.verify_commands and commit:
            self._proofs(settings).begin(session_id, commit)

    def run_ahead(self, settings: SessionSettings, session_id: str, tree: str, change: ToCommit) -> None:
        """Start the runs of a change in the background, for the verdict that the next submit asks for."""
        if settings.config.config.verify_commands:
            self._proofs(settings).ahead(session_id, tree, change)

    def forget_runs(self, session_id: str) -> None:
        """End what runs for a session, and remove what was kept of it."""
        if (self.project.cache / "runs").is_dir():
            self.runs.forget(session_id)

    def _proofs(self, settings: SessionSettings) -> "ProofRunner":
        from code_intel_server.workspace.proofs import ProofRunner

        return ProofRunner(self.project, settings.config, self.tree, suites=self.runs)

    def branches(self, config: ConfigFile) -> "BranchManager":
        """The git effects of a session under one configuration."""
        from code_intel_server.workspace.branches import BranchManager

        def finish_now() -> str:
            return ConfigFile.load(self.project.config_file).config.finish

        return BranchManager(self.root, self.tree, finish=config.config.finish, finish_now=finish_now)

    def read_kit(self) -> SessionSettings:
        """Contract, configuration, context and prompts as they are now."""
        library = PromptLibrary.load(self.project)
        return SessionSettings(
            contract=Contract.load(self.project.contract_file, tool_allowed),
            config=ConfigFile.load(self.project.config_file),
            context=ContextProvider(self.project, library),
            prompts=library,
        )

    def ledger(self, session_id: str) -> LedgerFile:
        """The ledger of a session."""
        reads = self.project.reads_file(session_id)
        return LedgerFile(self.project.ledger_file(session_id), session_id, self.key, reads)

    def ports(
        self,
        settings: SessionSettings,
        ledger: LedgerFile,
        user: User,
        record: "Callable[..., None]",
        progress: ToolProgress,
    ) -> Ports:
        """The world as one submit sees it."""
        from code_intel_server.tools.session.relevance import LookupRelevance

        return Ports(
            branches=self.branches(settings.config),
            tree=self.tree,
            evidence=self.evidence,
            proofs=self._proofs(settings),
            documents=settings.context,
            relevance=LookupRelevance(self),
            ledger=ledger,
            user=user,
            record=record,
            progress=progress,
        )


def tool_allowed(phase_key: str, tool: str) -> bool:
    """Whether a contract may require a tool (or the group `lookup`) in a phase: only what can be called there."""
    phase = Phase.READY if phase_key in _READY else Phase(phase_key)
    names = LOOKUPS if tool == "lookup" else {tool}
    return all(name in ACCESS and phase in ACCESS[name].phases for name in names)


_READY = {"READY_PLAN", "READY_IMPL", "READY_COMPLETE"}


def index_settings(config: Config) -> "IndexSettings":
    """The part of a configuration that shapes the index."""
    from code_intel_server.index.values import ChromaMode, ChromaSettings, ChunkStrategy, IndexSettings

    chroma = config.chroma.model_dump() | {"mode": ChromaMode(config.chroma.mode)}
    return IndexSettings(
        source_dirs=config.source_dirs,
        chunk_strategy=ChunkStrategy(config.chunk_strategy),
        chunk_max_tokens=config.chunk_max_tokens,
        sync_ttl_hours=config.sync_ttl_hours,
        sync_on_start=config.sync_on_start,
        chroma=ChromaSettings(**chroma),
    )


def source_settings(file: ConfigFile) -> "SourceSettings":
    """What a configuration names that tells what names mean; of commands those that the user trusts in just this form."""
    from code_intel_server.codebase.external_resolution import SourceSettings

    wanted = file.config.resolution
    if not wanted.language_servers or Approvals().trusted(file.path, file.digest):
        return SourceSettings(wanted.scip, wanted.language_servers)
    note = "language servers of .code-intel/config.json are not started: it is not trusted (code-intel-server trust)"
    return SourceSettings(wanted.scip, notes=(note,))


def now() -> str:
    """The time for people to read, UTC, to the second; nothing is ever ordered by it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
