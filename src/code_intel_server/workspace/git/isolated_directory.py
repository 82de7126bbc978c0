"""A git directory of our own over the user's files, where looking at them can run nothing.

Whatever inspects a working tree with the repository's own configuration can be made to execute it: fsmonitor, clean
filters on a file whose stat data looks racy, textconv. So we look at the files through a second git directory under
`<git-dir>/code-intel/<room>`: its configuration is ours, the user's and the system's are not read, its
`info/attributes` (which beats every `.gitattributes`) switches the filter drivers off, its index and objects are its
own, and the real objects are borrowed as alternates. Ignore rules are the project's and the user's: they execute
nothing. The user's index and object store are never written.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from code_intel_server.process import MEBIBYTE, Completed
from code_intel_server.workspace.git.child import Manner, checked_run, environment, succeeded
from code_intel_server.workspace.git.repository import Git
from code_intel_server.workspace.paths import folds_case, keeps_modes

RAW_ATTRIBUTES = "* -filter -text -eol -ident -working-tree-encoding !diff\n"
"""Content as it lies on disk: the tree hash, and differences line by line in all that is text, whatever the project calls binary."""
NO_DRIVERS = "* -filter\n"
"""Line endings as the project says, drivers off: is this file what the index has?"""

_TAKEN_OVER = (
    "core.filemode",
    "core.ignorecase",
    "core.symlinks",
    "core.precomposeunicode",
)
# Not core.trustctime and core.checkStat: without the change time a file of the same size can be given its old time stamp.
_CONVERSION = ("core.autocrlf", "core.eol", "core.safecrlf")
_KNOWN = re.compile(
    r"(HEAD|config|objects|refs|info|index|streams\.json|heads\.json|nested\.json|exclude\.json)(\.[0-9.]+(\.new)?)?\Z|index\..*\Z|sharedindex\.[0-9a-f]+\Z"
)
_AT_ONCE = 16 * MEBIBYTE
_LINKS = re.compile(r"sharedindex\.")


@dataclass(frozen=True, slots=True)
class IsolatedGit:
    """One private git directory. `excluded` are paths (from the top of the repository) that are never looked at, `ignored` patterns
    as in a `.gitignore`. With `lasting` what git ignores beyond `.gitignore` stays as it was when the room was made, or
    last told to `follow`: nobody sees a line in `info/exclude`.
    """

    git: Git
    name: str
    attributes: str
    excluded: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    lasting: bool = False

    @property
    def path(self) -> Path:
        """The private git directory."""
        return self.git.own_folder() / self.name

    @property
    def objects(self) -> Path:
        """Where it keeps what it stores."""
        return self.path / "objects"

    def run(
        self,
        *arguments: str,
        index: Path,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run one command on the user's files with `index` as its index."""
        settings = {
            "GIT_DIR": str(self.path),
            "GIT_WORK_TREE": str(self.git.at.top),
            "GIT_INDEX_FILE": str(index),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **(env or {}),
        }
        return checked_run(
            ["git", "--no-pager", "--literal-pathspecs", *arguments],
            cwd=self.git.at.top,
            env=environment(Manner.READ, settings),
            stdin=stdin,
        )

    def must(
        self, *arguments: str, index: Path, stdin: bytes | None = None, env: Mapping[str, str] | None = None
    ) -> bytes:
        """Standard output of a command that has to succeed."""
        return succeeded(self.run(*arguments, index=index, stdin=stdin, env=env))

    def headers(self, oids: Iterable[str], *, index: Path) -> dict[str, tuple[str, int]]:
        """Kind and size of those of these objects that are there."""
        asked = self.must("cat-file", "--batch-check", index=index, stdin=id_lines(sorted({*oids})))
        rows = (row.split() for row in asked.decode().splitlines())
        return {row[0]: (row[1], int(row[2])) for row in rows if len(row) == 3}

    def contents(self, sizes: Mapping[str, int], *, index: Path) -> Iterator[tuple[str, str, bytes]]:
        """Id, kind and content of these objects, given with their sizes; nothing of one that vanished meanwhile."""
        for group in in_groups(sizes):
            answer, at = self.must("cat-file", "--batch", index=index, stdin=id_lines(group)), 0
            while at < len(answer):
                start = answer.index(b"\n", at) + 1
                words = answer[at : start - 1].decode().split()
                at = start + int(words[2]) + 1 if len(words) == 3 else start
                if len(words) == 3:
                    yield words[0], words[1], answer[start : at - 1]

    def prepare(self) -> dict[str, str]:
        """Make the room, or bring its few files in line with the repository's present configuration, which is returned."""
        config = self.git.config()
        self._evict_strangers()
        for folder in ("objects/info", "objects/pack", "refs", "info"):
            (self.path / folder).mkdir(parents=True, exist_ok=True)
        _keep(self.path / "HEAD", "ref: refs/heads/none\n")
        _keep(self.path / "config", self._config(config))
        _keep(self.path / "objects/info/alternates", f"{_quoted(self.git.at.common_dir / 'objects')}\n")
        _keep(self.path / "info/attributes", self.attributes)
        if not (self.lasting and (self.path / "info/exclude").exists()):
            _keep(self.path / "info/exclude", self._exclude(config))
        self._share_split_index()
        return config

    def follow(self) -> None:
        """Ignore from the next `prepare` on what the user has git ignore by then."""
        (self.path / "info/exclude").unlink(missing_ok=True)

    def empty(self) -> None:
        """Throw away everything the room holds; the next `prepare` makes it anew."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _evict_strangers(self) -> None:
        """A git directory may have come from elsewhere with a room in it that would redirect git or bring hooks."""
        if self.path.is_symlink():
            self.path.unlink()
        elif self.path.is_dir():
            with os.scandir(self.path) as entries:
                known = all(
                    _KNOWN.match(entry.name) and (_LINKS.match(entry.name) or not entry.is_symlink())
                    for entry in entries
                )
            if not known:
                self.empty()

    def _config(self, config: Mapping[str, str]) -> str:
        names = _TAKEN_OVER + (_CONVERSION if self.attributes == NO_DRIVERS else ())
        # What the volume does with modes is asked of it too: switched off by hand, it would hide who may execute a file.
        if self.attributes == RAW_ATTRIBUTES and keeps_modes(str(self.git.own_folder())):
            names = tuple(name for name in names if name != "core.filemode")
        # What the volume does is asked of it: set by hand, it would hide a file whose name another differs from by its case.
        if not folds_case(str(self.git.at.top)):
            names = tuple(name for name in names if name != "core.ignorecase")
        lines = [f"\t{name.removeprefix('core.')} = {_value(config[name])}" for name in names if name in config]
        excludes = os.devnull if self.lasting else config.get("core.excludesfile")
        if excludes:
            lines.append(f"\texcludesfile = {_value(excludes)}")
        fixed = ("repositoryformatversion = 1", "bare = false", "fsmonitor = false", f"hooksPath = {os.devnull}")
        return "\n".join(
            [
                "[core]",
                *(f"\t{line}" for line in fixed),
                *lines,
                "[extensions]",
                f"\tobjectformat = {self.git.hash_name()}",
                "",
            ]
        )

    def _exclude(self, config: Mapping[str, str]) -> str:
        sources = [self.git.at.common_dir / "info" / "exclude"]
        if self.lasting:
            home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
            sources.insert(0, Path(config.get("core.excludesfile") or f"{home}/git/ignore"))
        theirs = [_text(Path(os.path.expanduser(source))) for source in sources]  # noqa: PTH111 - `~name` may be nobody's
        return "\n".join([*self.ignored, *theirs, *(f"/{path}" for path in self.excluded), ""])

    def _share_split_index(self) -> None:
        """A split index names its shared half, which git looks for in the git directory it was told."""
        for shared in self.git.at.git_dir.glob("sharedindex.*"):
            with contextlib.suppress(FileExistsError):
                (self.path / shared.name).symlink_to(shared)


@contextlib.contextmanager
def scratch_index(path: Path, source: Path | None = None) -> Iterator[Path]:
    """A temporary index, a copy of `source` where there is one; gone at the end, and so is the lock that a killed git left."""
    if source is not None and source.exists():
        copy_index(source, path)
    try:
        yield path
    finally:
        for left in (path, path.with_name(f"{path.name}.lock")):
            left.unlink(missing_ok=True)


def copy_index(source: Path, target: Path) -> None:
    """Copy an index with its time stamp: by that git knows which entries are too young for their stat data to be believed."""
    found = source.stat()
    shutil.copyfile(source, target)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def id_lines(oids: Iterable[str]) -> bytes:
    """Ids as `cat-file` and `pack-objects` read them."""
    return "".join(f"{oid}\n" for oid in oids).encode()


def in_groups(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """The objects in groups of which each can be read at once."""
    group: list[str] = []
    left = _AT_ONCE
    for oid, size in sizes.items():
        if group and size > left:
            yield group
            group, left = [], _AT_ONCE
        group.append(oid)
        left -= size
    if group:
        yield group


def _text(source: Path) -> str:
    """What a file of patterns holds; '' where it cannot be read."""
    try:
        return source.read_text("utf-8", "surrogateescape") if source.stat().st_size < 1_000_000 else ""
    except OSError:
        return ""


def _keep(path: Path, text: str) -> None:
    """Write only what differs: these files are read by children that may be running."""
    data = text.encode("utf-8", "surrogateescape")
    if path.is_file() and path.read_bytes() == data:
        return
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.write_bytes(data)
    fresh.replace(path)


def _value(text: str) -> str:
    """A configuration value in quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _quoted(path: Path) -> str:
    """A line of `alternates`: git unquotes it when it begins with a quote."""
    text = str(path)
    return _value(text) if "\n" in text or text.startswith(('"', "#")) else text
