"""Clean checkouts of exactly one state of a project, single files of another laid over it, in a folder of ours (SPEC 4, Receipts).

A state is a commit, checked out as git would for its user, or a snapshot: a tree of raw bytes whose new content lies in
a private object folder. Nothing of the user's is written: indexes and new objects lie in our folder. Each checkout has a
`.git` of its own, so that whatever asks git for a version or for changes is answered; it borrows the user's objects.

A folder is held by a lock while its run lives, so that what a killed run left is known and removed at the next start.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from code_intel_server.errors import Unavailable
from code_intel_server.receipts.files import FileClass, file_class, merged_file
from code_intel_server.workspace.files import open_regular
from code_intel_server.workspace.git.child import Manner, environment_config, succeeded
from code_intel_server.workspace.git.isolated_directory import RAW_ATTRIBUTES
from code_intel_server.workspace.git.repository import Git, join_z, nul_terminated, open_repository, split_z
from code_intel_server.workspace.tree.snapshot_index import hash_file

BORROWED_OBJECTS = "borrowed-objects"
"""Where, in the private folder, the checkouts' repositories find the user's objects."""

MARK = "TMPDIR"
"""The variable by which the processes of a run are known: it names a folder of theirs alone in the private one."""

LOCK = "lock"
"""Held by whoever makes a receipt in a private folder, as long as it lives."""

_PREFIX = "runs-"  # not our name: a product could look for it
_GITLINK = "160000"
_RAW = "raw.git"
_POINTER = b"version https://git-lfs.github.com/spec/"
_POINTER_BYTES = 1024
_OURS = {
    **{f"core.{name}": "false" for name in ("sparseCheckout", "bare", "fsmonitor", "splitIndex", "untrackedCache")},
    "core.hooksPath": os.devnull,
    "index.sparse": "false",
}


@dataclass(frozen=True, slots=True)
class FileSide:
    """One side of a changed file; mode '000000' where it is not there."""

    mode: str
    oid: str

    @property
    def there(self) -> bool:
        """Whether the file exists on this side."""
        return self.mode != "000000"


@dataclass(frozen=True, slots=True)
class Changed:
    """A path that differs between two trees."""

    path: str
    old: FileSide
    new: FileSide

    @property
    def file_class(self) -> FileClass:
        """What the file is to the tests."""
        # With tests in a package pytest imports what is above it first, a new file there before all that it tests.
        if self.path == "__init__.py" and not self.old.there:
            return FileClass.TEST
        return file_class(self.path)


@contextmanager
def receipt_folder() -> Iterator[Path]:
    """A folder for one receipt, removed afterwards; what killed runs of this user left is removed before."""
    parent = Path(tempfile.gettempdir()) / f"{_PREFIX}{os.getuid()}"
    parent.mkdir(mode=0o700, exist_ok=True)
    look = parent.lstat()
    if parent.is_symlink() or look.st_uid != os.getuid():
        raise PermissionError(13, "belongs to somebody else", str(parent))
    with contextlib.ExitStack() as held:
        # Who looks for leftovers while a folder is made would find one that nobody has locked yet.
        with _locked(os.open(parent, os.O_RDONLY | os.O_DIRECTORY)):
            _remove_leftovers(parent)
            folder = Path(tempfile.mkdtemp(dir=parent))
            (folder / BORROWED_OBJECTS).mkdir()  # by which it is known for ours when we are killed
            held.enter_context(
                _locked(os.open(folder / LOCK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            )
        try:
            yield folder
        finally:
            remove_folder(folder)


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_leftovers(parent: Path) -> None:
    for folder in parent.iterdir():
        with contextlib.suppress(OSError):
            if not os.path.lexists(folder / LOCK):  # whoever made it was killed: nobody else makes one now
                (folder / BORROWED_OBJECTS).rmdir()
                folder.rmdir()
        with contextlib.suppress(OSError), open(open_regular(folder / LOCK), "rb") as lock:  # noqa: PTH123 - as it may be a FIFO
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held by a run that lives: BlockingIOError
            if not os.path.lexists(folder / BORROWED_OBJECTS):  # a link, where nothing can be mounted
                continue  # another program's: the name of the folder above says nothing of us
            end_marked(folder)
            remove_folder(folder)


def end_marked(folder: Path) -> None:
    """End the processes that runs below a private folder have left, in whatever group; where the system shows whose they are."""
    mark = os.fsencode(f"{MARK}={folder}/")
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)


def remove_folder(folder: Path) -> None:
    """Remove a folder with all in it, folders without permission to write included."""
    for at, _, _ in os.walk(folder):
        with contextlib.suppress(OSError):
            Path(at).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


@dataclass(slots=True)
class Checkouts:
    """Makes checkouts of one repository below one folder.

    `objects` is the object folder of snapshots, None where all states are commits. What could not be put into a
    checkout as it should be is in `lacking`: submodules whose content is not at hand; in `pointers`: files of which only
    what Git LFS stores for them is; and in `unmerged`: files of both classes that could not be merged by key. `contents`
    has for each checkout one word for what was put into it.
    """

    git: Git
    folder: Path
    objects: Path | None = None
    lacking: set[str] = field(default_factory=set)
    pointers: set[str] = field(default_factory=set)
    unmerged: set[str] = field(default_factory=set)
    contents: dict[str, str] = field(default_factory=dict)
    _env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the object folder, and the git directory that converts nothing."""
        theirs = self.git.at.common_dir / "objects"
        (self.folder / "objects").mkdir(parents=True)
        (self.folder / BORROWED_OBJECTS).mkdir(exist_ok=True)
        folders = [_quoted(str(folder)) for folder in (self.objects, theirs) if folder]
        self._env = {
            "GIT_OBJECT_DIRECTORY": str(self.folder / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(folders),
        }
        raw = self._repository(self.folder / _RAW, "")
        (raw / "info").mkdir()
        (raw / "info" / "attributes").write_text(RAW_ATTRIBUTES, encoding="utf-8")

    def state(self, revision: str) -> str:
        """The commit, or a snapshot's tree as one of the whole repository with its content at hand; Unavailable."""
        if self.objects is None or self.git.oid(revision):
            return revision
        head = self.git.oid("HEAD")
        prefix = self.git.at.prefix
        index = {"GIT_INDEX_FILE": str(self.folder / "state.index")}
        self._must("read-tree", head or "--empty", env=index)
        if prefix:
            self._must("rm", "-r", "-q", "--cached", "--ignore-unmatch", "--", prefix, env=index)
            self._must("read-tree", f"--prefix={prefix}", revision, env=index)
        else:
            self._must("read-tree", revision, env=index)
        tree = self._must("write-tree", "--missing-ok", env=index).decode().strip()
        wanted = "\n".join([tree, *([f"^{head}"] if head else []), ""]).encode()
        pack = ("pack-objects", "-q", "--revs", "--missing=allow-any", str(self.folder / "objects" / "pack" / "pack"))
        (self.folder / "objects" / "pack").mkdir(exist_ok=True)
        self._must(*pack, stdin=wanted)
        return tree

    def changed(self, old: str, new: str) -> tuple[Changed, ...]:
        """What differs between two states, renames as a file gone and one new."""
        asked = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none")
        fields = nul_terminated(self._must(*asked, old, new))
        rows = ((head.lstrip(":").split(" "), path) for head, path in zip(fields, fields, strict=True))
        return tuple(Changed(path, FileSide(row[0], row[2]), FileSide(row[1], row[3])) for row, path in rows)

    def files(self, state: str) -> frozenset[str]:
        """The paths of all files of a state, from the top of the repository."""
        return frozenset(split_z(self._must("ls-tree", "-r", "-z", "--name-only", state)))

    def mentioning(self, state: str, words: Sequence[str], *, whole: bool, any_case: bool = False) -> frozenset[str]:
        """The files of a state in which one of these texts is found, as a whole word or anywhere.

        Raises Unavailable where git fails.
        """
        asked = [part for word in words for part in ("-e", word)]
        how = ["--no-color", "--no-recurse-submodules", "-l", "-z", "-F", *["-w"] * whole, *["-i"] * any_case]
        found = self.git.run("grep", *how, *asked, state, "--", env=self._env)
        if found.returncode not in {0, 1}:
            raise Unavailable("tool_errors.git.failed", command="git grep", output=f"exit status {found.returncode}")
        return frozenset(path.partition(":")[2] for path in split_z(found.stdout))

    def make(
        self, name: str, state: str, over: Sequence[Changed] = (), *, side: str = "old", merge: bool = True
    ) -> Path:
        """Check out `state` with the `side` ('old' or 'new') of some changed files laid over it.

        A file of both classes keeps the state's version but for its test tables; where it cannot be merged it is that of
        the base, or the state's own without `merge`. Raises Unavailable where git fails or content is nowhere.
        """
        target = self.folder / name
        both = [one for one in over if one.file_class is FileClass.BOTH and one.old.there and one.new.there]
        rows = {one.path: getattr(one, side) for one in over if one.file_class is not FileClass.BOTH}
        contents = {one.path: self._merged(one, side) for one in both} if merge else {}
        rows |= {one.path: one.old for one in both if merge and contents[one.path] is None}
        self.unmerged |= {path for path, content in contents.items() if content is None}
        listed = self._export(state, target, rows)
        self.contents[name] = hashlib.sha256(repr((listed, contents)).encode()).hexdigest()
        for path, content in contents.items():
            if content is not None:
                (target / path).write_bytes(content)
        return target

    def _merged(self, one: Changed, side: str) -> bytes | None:
        product, runner = (one.new, one.old) if side == "old" else (one.old, one.new)
        return merged_file(one.path, self.content(product), self.content(runner))

    def content(self, side: FileSide) -> bytes:
        """What one side of a changed file holds, b'' where it is not there. Raises Unavailable where git fails."""
        return self._must("cat-file", "blob", side.oid) if side.there else b""

    def _export(self, state: str, target: Path, over: Mapping[str, FileSide]) -> list[tuple[str, str, str]]:
        commit = self.git.oid(state)
        git_dir = self.git.at.git_dir if commit else self.folder / _RAW
        repository = self._repository(target / ".git", commit or self.git.oid("HEAD"))
        index = repository / "index"
        env = {
            "GIT_INDEX_FILE": str(index),
            "GIT_WORK_TREE": str(target),
            "GIT_DIR": str(git_dir),
            **environment_config(_OURS),
        }

        def must(*arguments: str, stdin: bytes | None = None) -> bytes:
            # As the user: filters (LFS) turn what is stored into what the tests read.
            return self._must(*arguments, manner=Manner.USER, env=env, stdin=stdin)

        must("read-tree", state)
        if over:
            zero = self.git.zero()
            rows = (f"{e.mode} {e.oid}\t{path}" if e.there else f"0 {zero}\t{path}" for path, e in over.items())
            must("update-index", "-z", "--index-info", stdin=join_z(rows))
        listed = [row.partition("\t") for row in nul_terminated(must("ls-files", "-s", "-z"))]
        absent = {} if commit else self._absent([(head.split()[1], path) for head, _, path in listed])
        if absent:
            must("update-index", "-z", "--skip-worktree", "--stdin", stdin=join_z(absent))
        must("checkout-index", "--all", "--quiet", "--index")
        for path, oid in absent.items():
            self._from_disk(path, oid, target)
        self.pointers |= _pointers(target, [path for head, _, path in listed if not head.startswith(_GITLINK)])
        modules = target / ".gitmodules"
        named = modules.read_text("utf-8", "replace") if modules.is_file() else ""
        for head, _, path in listed:
            # A repository that nobody is told where to get is an empty folder for everybody else.
            told = f"path = {path}\n" in f"{named}\n"
            if head.startswith(_GITLINK) and not (told and self._submodule(path, head.split()[1], target / path)):
                self.lacking.add(path)
        return listed

    def _absent(self, entries: Sequence[tuple[str, str]]) -> dict[str, str]:
        """The files whose content no object folder has: those too big for a snapshot to store."""
        asked = self._must("cat-file", "--batch-check", stdin="".join(f"{oid}\n" for oid, _ in entries).encode())
        rows = asked.decode().splitlines()
        return {path: oid for (oid, path), row in zip(entries, rows, strict=True) if row.endswith(" missing")}

    def _from_disk(self, path: str, oid: str, target: Path) -> None:
        source = self.git.at.top / path
        try:
            if hash_file(source, source.lstat(), self.git.hash_name()) == oid:
                (target / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target / path)
                return
        except OSError:
            pass
        raise Unavailable("tool_errors.git.failed", command="git checkout-index", output=f"content of {path} is gone")

    def _submodule(self, path: str, commit: str, target: Path) -> bool:
        """Whether a submodule's content could be checked out: its repository is at hand and has the commit."""
        place = self.git.at.top / path
        inner = open_repository(place) if place.is_dir() else ""
        if not isinstance(inner, Git) or inner.at.top != place.resolve() or not inner.oid(commit):
            return False
        made = Checkouts(inner, Path(tempfile.mkdtemp(dir=self.folder)))
        try:
            content = made.make("submodule", commit)
        except Unavailable:
            return False
        shutil.rmtree(content / ".git")  # its objects are not at hand in a mount
        target.rmdir()
        content.rename(target)
        return not made.lacking

    def _repository(self, path: Path, head: str) -> Path:
        """A git directory with nothing of its own: HEAD at a commit, the user's tags and objects."""
        at = self.git.at
        for folder in ("objects/info", "refs/heads", "refs/tags", "logs/refs/heads"):
            (path / folder).mkdir(parents=True)
        lent = f"{self.folder / 'objects'}\n{self.folder / BORROWED_OBJECTS}\n"
        (path / "objects" / "info" / "alternates").write_text(lent, encoding="utf-8")
        (path / "HEAD").write_text(f"{head}\n" if head else "ref: refs/heads/none\n", encoding="utf-8")
        formats = f"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = {self.git.hash_name()}\n"
        (path / "config").write_text(formats, encoding="utf-8")
        tags = "".join(f"{oid} {name}\n" for name, oid in sorted(self.git.refs("refs/tags/").items()))
        (path / "packed-refs").write_text(f"# pack-refs with: sorted \n{tags}", encoding="utf-8")
        if (at.common_dir / "shallow").is_file():
            shutil.copyfile(at.common_dir / "shallow", path / "shallow")
        return path

    def _must(
        self,
        *arguments: str,
        manner: Manner = Manner.READ,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> bytes:
        return succeeded(self.git.run(*arguments, manner=manner, env={**self._env, **(env or {})}, stdin=stdin))


def _quoted(path: str) -> str:
    """A folder in a list of them, as git reads that."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if os.pathsep in path or path.startswith('"') else path


def _pointers(folder: Path, paths: Sequence[str]) -> set[str]:
    """The files that hold what Git LFS stores instead of them, where some file is said to be kept by it."""
    attributes = [folder / path for path in paths if path.rpartition("/")[2] == ".gitattributes"]
    if not any(b"filter=lfs" in file.read_bytes() for file in attributes if file.is_file()):
        return set()
    small = (path for path in paths if (folder / path).is_file() and (folder / path).stat().st_size < _POINTER_BYTES)
    return {path for path in small if (folder / path).read_bytes().startswith(_POINTER)}
