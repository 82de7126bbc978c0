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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from code_intel_server.process import Completed
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
