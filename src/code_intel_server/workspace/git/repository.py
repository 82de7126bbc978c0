"""The one git door: a repository, its refs and objects, by fixed argument lists in one of three manners (`child`).

Text of an agent reaches git only as standard input, after validation, or behind `--`; never as an option.
"""

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from code_intel_server.errors import Rejected, Unavailable, UserActionNeeded
from code_intel_server.process import Completed
from code_intel_server.workspace.git.child import (
    READ_SECONDS,
    USER_SECONDS,
    Manner,
    checked_run,
    environment,
    environment_config,
    is_yes,
    output_of,
    succeeded,
)
from code_intel_server.workspace.git.history import LOG, changed_paths

TASK_PREFIX = "llm_task_"
HEADS = "refs/heads/"
OURS = "refs/code-intel/"
ARCHIVE = OURS + "archive/"
BASES = OURS + "base/"

DIFFERING = ("diff-tree", "-r", "--no-renames", "--name-only", "--ignore-submodules=none", "-z")
"""Names what differs between two trees, submodules too that the repository tells git to pass over (`ignore = all`)."""

LOCK_PATIENCE_SECONDS = 10.0
ARGUMENT_BYTES = 100_000

_NAME = re.compile(rb"[^\0]+")
_OID = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_SAFE_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,99}\Z")

_QUIET = (
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "advice.graftFileDeprecated=false",
    "core.commitGraph=false",  # a cache that git believes unchecked: who writes it decides what is an ancestor of what
)
_NO_EXECUTION = (
    "core.hooksPath=/dev/null",
    "safe.bareRepository=explicit",
    "protocol.allow=never",
    "log.showSignature=false",
)
_WITHOUT_HOOKS = frozenset({"commit-tree", "hash-object", "mktag"})
"""What only stores an object: no hook runs for it."""
_REF_LOCKS = ("core.filesRefLockTimeout", "core.packedRefsTimeout")


@dataclass(frozen=True, slots=True)
class RefChange:
    """One line of a ref transaction: `ref` goes from `old` to `new`; '' stands for "does not exist"."""

    ref: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Repository:
    """Where things are. `prefix` is the project within the repository: '' or `sub/folder/`."""

    root: Path
    top: Path
    git_dir: Path
    common_dir: Path
    prefix: str


@dataclass(frozen=True, slots=True)
class Git:
    """Runs git in one repository. `patience` in seconds is how long a held lock (of the index, of a ref) is waited for."""

    at: Repository
    patience: float = LOCK_PATIENCE_SECONDS
    _memo: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    def run(
        self,
        *arguments: str,
        manner: Manner = Manner.READ,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> Completed:
        """Run one git command at the top of the working tree and return it, failed or not.

        Raises Unavailable where git is missing, met its time limit or printed more than fits.
        """
        hooks_off = manner is Manner.OWN and arguments[0] not in _WITHOUT_HOOKS
        settings = {**(self._hooks_off() if hooks_off else {}), **(env or {})}
        seconds = timeout or (USER_SECONDS if manner is Manner.USER else READ_SECONDS)
        return checked_run(
            [*self._options(manner), *arguments],
            cwd=self.at.top,
            env=environment(manner, settings),
            stdin=stdin,
            timeout=seconds,
            on_wait=on_wait,
        )

    def must(
        self,
        *arguments: str,
        manner: Manner = Manner.READ,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
    ) -> bytes:
        """Standard output of a command that has to succeed; Unavailable('tool_errors.git.failed') where it does not."""
        done = self.run(*arguments, manner=manner, stdin=stdin, env=env)
        self.refuse_filter(done)
        return succeeded(done)

    def refuse_filter(self, done: Completed) -> None:
        """Raise Rejected('tool_errors.git.filter_failed') where a clean or smudge filter is why git failed.

        Of a program that is missing git says either which filter failed or, where that ended sooner, that it "hung up".
        """
        said = "" if done.ok else output_of(done)
        hung_up = "remote end hung up" in said
        if not (hung_up or "filter " in said):
            return
        listed = self.run("config", "--get-regexp", r"^filter\..+\.(process|clean|smudge)$").text().splitlines()
        for setting, _, command in (row.partition(" ") for row in listed):
            name, program = setting.removeprefix("filter.").rpartition(".")[0], command.partition(" ")[0]
            failed = any(f"filter {word} failed" in said for word in (name, f"'{name}'"))
            if program and (failed or (hung_up and program in said)):
                raise Rejected("tool_errors.git.filter_failed", filter=name, program=program, output=said)

    def text(self, *arguments: str, manner: Manner = Manner.READ, stdin: bytes | None = None) -> str:
        """What `must` gives, as text without the last line break."""
        return os.fsdecode(self.must(*arguments, manner=manner, stdin=stdin)).removesuffix("\n")

    # -- refs and objects -------------------------------------------------------------------------------------------

    def oid(self, revision: str, kind: str = "commit") -> str:
        """The object id a full ref name, HEAD or an id stands for, peeled to `kind`; '' where there is none."""
        known = self._memo.get(f"{revision}^{kind}")
        if known:
            return known
        done = self.run("rev-parse", "--quiet", "--verify", "--end-of-options", f"{revision}^{{{kind}}}")
        found = done.text().strip() if is_yes(done) else ""
        if found and is_oid(revision):  # what an id stands for never changes
            self._memo[f"{revision}^{kind}"] = found
        return found

    def project_tree(self, commit: str) -> str:
        """Id of the tree that a commit holds at the project; of the empty tree where it holds none there, or does not exist."""
        stored = f"{commit}:{self.at.prefix}" if self.at.prefix else f"{commit}^{{tree}}"
        done = self.run("rev-parse", "--quiet", "--verify", "--end-of-options", stored)
        return done.text().strip() if is_yes(done) else self.empty_tree()

    def current(self) -> str:
        """Name of the branch HEAD is on (born or not); '' where detached."""
        done = self.run("symbolic-ref", "--quiet", "HEAD")
        name = os.fsdecode(done.stdout).rstrip("\n") if is_yes(done) else ""
        return name.removeprefix(HEADS)

    def refs(self, *prefixes: str) -> dict[str, str]:
        """Full ref name → object id of everything under the prefixes."""
        out = self.must("for-each-ref", "--format=%(objectname) %(refname)", *prefixes)
        rows = (line.partition(b" ") for line in out.splitlines())
        return {os.fsdecode(name): oid.decode() for oid, _, name in rows}

    def changed_together(self, commits: int) -> list[tuple[str, ...]]:
        """The paths (relative to the project) that each of the last commits changed, newest first, merges left out.

        A file that was renamed since goes by the name that it has now.
        """
        done = self.run(*LOG, f"--max-count={commits}", "HEAD")
        prefix = self.at.prefix
        printed = done.stdout.decode("utf-8", "surrogateescape") if done.ok else ""
        kept = (
            tuple(path.removeprefix(prefix) for path in paths if path.startswith(prefix))
            for paths in changed_paths(printed)
        )
        return [paths for paths in kept if paths]

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether `old` is reachable from `new`; not where one of them does not exist (any more)."""
        if not old or not new:
            return False
        done = self.run("merge-base", "--is-ancestor", old, new)
        if done.returncode not in {0, 1} and self.oid(old) and self.oid(new):
            succeeded(done)  # both are there: git failed
        return done.ok

    def transact(self, changes: Sequence[RefChange], *, reason: str, manner: Manner = Manner.OWN) -> None:
        """Change refs all or none, each only from its expected value.

        Raises Unavailable('tool_errors.git.failed') where one of them is not what was expected.
        """
        lines = [b"start"]
        for change in changes:
            ref, new, old = os.fsencode(change.ref), change.new.encode(), change.old.encode()
            if not change.new:  # itself: what a symbolic ref stands for is somebody else's
                lines += [b"option no-deref", b"delete " + ref + b"\0" + old]
            elif change.old:
                lines.append(b"update " + ref + b"\0" + new + b"\0" + old)
            else:
                lines.append(b"create " + ref + b"\0" + new)
        stdin = b"\0".join([*lines, b"prepare", b"commit", b""])
        self.must("update-ref", "-m", reason, "--stdin", "-z", manner=manner, stdin=stdin)

    def write_blob(self, content: bytes) -> str:
        """Store bytes as they are and return their id."""
        return self.text("hash-object", "-w", "--stdin", "--no-filters", manner=Manner.OWN, stdin=content)

    def read_blob(self, oid: str) -> bytes:
        """The bytes of a blob."""
        return self.must("cat-file", "blob", oid)

    def zero(self) -> str:
        """The null object id of this repository's hash."""
        return "0" * (64 if self.hash_name() == "sha256" else 40)

    def hash_name(self) -> str:
        """`sha1` or `sha256`."""
        return self._once("hash", lambda: self.text("rev-parse", "--show-object-format"))

    def empty_tree(self) -> str:
        """Id of the tree without entries (every git knows it without storing it)."""
        return self._once("empty", lambda: self.text("hash-object", "-t", "tree", "--stdin", stdin=b""))

    def config(self) -> dict[str, str]:
        """The effective configuration, last value wins; names as git prints them (section and key in lower case)."""
        out = self.must("config", "--list", "-z")
        rows = (os.fsdecode(entry).partition("\n") for entry in out.split(b"\0") if entry)
        return {name: value if newline else "true" for name, newline, value in rows}

    def heeds_executable_bit(self) -> bool:
        """Whether a file's executable bit counts here."""
        return self.config().get("core.filemode", "true").lower() not in {"false", "no", "off", "0"}

    # -- state ------------------------------------------------------------------------------------------------------

    def await_index(self) -> None:
        """Wait until nobody holds the index; UserActionNeeded('tool_errors.git.index_locked') after `patience`.

        The lock is never removed: only the user can know whether its owner still lives (SPEC 6.6).
        """
        lock = self.at.git_dir / "index.lock"
        deadline = time.monotonic() + self.patience
        while os.path.lexists(lock):
            if time.monotonic() >= deadline:
                raise UserActionNeeded("tool_errors.git.index_locked", path=str(lock), seconds=self.patience)
            time.sleep(0.05)

    def own_folder(self) -> Path:
        """`<git-dir>/code-intel`, where we keep what is ours; made where it is missing.

        Raises UserActionNeeded('tool_errors.git.folder_unsafe') where it is a link, or no folder: a git directory that was
        unpacked from somewhere must not make us write elsewhere.
        """
        folder = self.at.git_dir / "code-intel"
        with contextlib.suppress(FileExistsError):
            folder.mkdir(exist_ok=True)
        if folder.is_symlink() or not folder.is_dir():
            raise UserActionNeeded("tool_errors.git.folder_unsafe", path=str(folder))
        return folder

    def _once(self, name: str, ask: Callable[[], str]) -> str:
        if name not in self._memo:
            self._memo[name] = ask()
        return self._memo[name]

    def _options(self, manner: Manner) -> list[str]:
        settings = [*_QUIET]
        if manner is not Manner.USER:
            settings += _NO_EXECUTION
        if manner is not Manner.READ:
            settings += ["core.fsync=all", *(f"{name}={int(self.patience * 1000)}" for name in _REF_LOCKS)]
        return ["git", "--no-pager", *(word for setting in settings for word in ("-c", setting))]

    def _hooks_off(self) -> dict[str, str]:
        """Hooks may also stand in the configuration (git 2.54), where `core.hooksPath` does not reach them.

        As variables, because a name may hold a `=`, which `-c` would take for the end of the name.
        """
        names = {
            name[len("hook.") : name.rindex(".")]
            for name in self.config()
            if name.count(".") > 1 and name.startswith("hook.")
        }
        return environment_config({f"hook.{name}.enabled": "false" for name in sorted(names)})


def is_oid(text: str) -> bool:
    """Whether this is a full object id."""
    return bool(_OID.match(text))


def is_safe_name(text: str) -> bool:
    """Whether this can be one component of a ref of ours (a session id)."""
    return bool(_SAFE_NAME.match(text)) and ".." not in text and not text.endswith((".lock", "."))


def split_z(output: bytes) -> list[str]:
    """NUL-terminated names."""
    return list(nul_terminated(output))


def nul_terminated(output: bytes) -> Iterator[str]:
    """NUL-terminated names one by one: of a million files no second copy of them all is made."""
    return (os.fsdecode(found[0]) for found in _NAME.finditer(output))


def join_z(names: Iterable[str]) -> bytes:
    """Names as git's `-z` options read them."""
    return os.fsencode("\0".join([*names, ""]))


def portions(names: Iterable[str], limit: int = ARGUMENT_BYTES) -> Iterator[list[str]]:
    """The names in groups that each fit on a command line, for commands that read no list from standard input."""
    group: list[str] = []
    size = 0
    for name in names:
        size += len(os.fsencode(name)) + 1
        if group and size > limit:
            yield group
            group, size = [], len(os.fsencode(name)) + 1
        group.append(name)
    if group:
        yield group


NO_REPOSITORY = "this is not a git repository"
NOT_INSTALLED = "git cannot be run: it is not installed"
BARE = "this is a bare repository"
NO_WORKTREE = "this folder is not in the working tree of its repository"
_UNREADABLE = "git cannot read this repository"
_FOLDERS = ("--show-toplevel", "--git-dir", "--git-common-dir")


def open_repository(root: Path, patience: float = LOCK_PATIENCE_SECONDS) -> Git | str:
    """The git door of the project at `root`, or one sentence saying why there is none."""
    root = Path(os.path.realpath(root))
    here = Git(Repository(root, root, root, root, ""), patience)
    try:
        asked = ("--is-inside-work-tree", *_FOLDERS, "--show-object-format")
        done = here.run("rev-parse", "--path-format=absolute", *asked)
    except Unavailable as error:
        if error.key != "tool_errors.git.missing":
            raise
        return f"git cannot be run: {error.params['reason']}"
    inside_work_tree, *folders = os.fsdecode(done.stdout).removesuffix("\n").split("\n")
    if inside_work_tree == "false":
        return NO_WORKTREE
    if not done.ok:
        return _why_not(done.error_text())
    known = {"hash": folders.pop()}
    if len(folders) != len(_FOLDERS):  # one of them has a line break in its name
        folders = [here.text("rev-parse", "--path-format=absolute", which) for which in _FOLDERS]
    top, git_dir, common = (Path(os.path.realpath(root / folder)) for folder in folders)
    inside = root.relative_to(top).as_posix()
    return Git(Repository(root, top, git_dir, common, "" if inside == "." else inside + "/"), patience, known)


def _why_not(message: str) -> str:
    if "cannot use bare repository" in message:
        return BARE
    if "dubious ownership" in message:
        return "git does not trust this folder because another user owns it (see `git help config`, safe.directory)"
    if "not a git repository: " in message:
        place = message.partition("not a git repository: ")[2].strip()[:300]
        return f"its .git file leads to {place}, where no repository is (any more); `git worktree repair` may help"
    if "not a git repository" in message:
        return NO_REPOSITORY
    return f"{_UNREADABLE}: {message.strip()[:300]}"


def open_readable(root: Path, patience: float = LOCK_PATIENCE_SECONDS) -> Git | str:
    """`open_repository`, for what may not be taken for a project without git where a repository is there.

    A disk that fails for a moment makes git say so: Unavailable('tool_errors.git.failed') where git could not read it.
    """
    opened = open_repository(root, patience)
    if not isinstance(opened, str) or not opened.startswith((NO_REPOSITORY, _UNREADABLE)):
        return opened
    stands = next((folder for folder in _on_its_disk(root) if os.path.lexists(folder / ".git" / "HEAD")), None)
    if stands is None:
        return opened
    raise Unavailable("tool_errors.git.failed", command="git rev-parse", output=f"{opened} (in {stands} one stands)")


def _on_its_disk(folder: Path) -> Iterator[Path]:
    """The folder and those above it as far as git looks: not beyond where another file system is mounted."""
    device = folder.lstat().st_dev
    return takewhile(lambda above: above.lstat().st_dev == device, (folder, *folder.parents))
