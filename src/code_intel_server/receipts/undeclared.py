"""Lent packages that a change makes the tests load and that nothing in the project asks for: a fresh clone lacks them.

What another installed package requires is asked for, and so is what any text of the project but code names: a manifest, a
lock, a workflow, a container's recipe, a page for people (SPEC 4, Receipts).
"""

import contextlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath

from code_intel_server.codebase.files.roles import Role, role
from code_intel_server.receipts.files import FileClass, file_class
from code_intel_server.workspace.files import read_regular

_PACKAGE = re.compile(r".*(?:^|/)(site-packages|node_modules)/((?:@[^/]+/)?[^/@._][^/]*)")
_INSTALLERS = frozenset({"pip", "setuptools", "pkg_resources", "wheel"})
_RECIPES = frozenset({"setup.py", "noxfile.py", "fabfile.py", "tasks.py"})
_REQUIRED = re.compile(r"[A-Za-z0-9._-]+")
_MODULE_END = re.compile(r"[/.,]")
_TABLES = ("dependencies", "peerDependencies", "optionalDependencies")
_FILE_BYTES = 16 << 20
"""Several times what the largest packages list of their files."""


def packages(paths: Iterable[str]) -> frozenset[str]:
    """The packages that files of lent folders belong to, each as its folder `site-packages` or `node_modules` and its name."""
    found = (_PACKAGE.match(path) for path in paths)
    return frozenset(f"{one[1]}/{_module(one[1], one[2])}" for one in found if one)


def _module(folder: str, name: str) -> str:
    return name.partition(".")[0] if folder == "site-packages" else name


def undeclared(
    wanted: Collection[str], folders: Sequence[Path], mentioning: Callable[[Sequence[str]], Collection[str]]
) -> list[str]:
    """Those of the packages that no file asks for and nothing in the lent `folders` requires.

    `mentioning` says which files of the project hold one of some words. Where what an installed package requires cannot be
    read, that may be any package of its kind, and none of them is named.
    """
    python, node = (
        {name for kind, _, name in (one.partition("/") for one in wanted) if kind == of}
        for of in ("site-packages", "node_modules")
    )
    left: list[tuple[str, set[str]]] = []
    for read, names in ((_left_of_python, python - _INSTALLERS), (_left_of_node, node - _INSTALLERS)):
        with contextlib.suppress(OSError, ValueError, RecursionError):
            left += read(names, folders).items() if names else ()

    def asked_for(words: set[str]) -> bool:
        """Whether a file of the project that names one of the words asks for it."""
        return any(map(_asks, mentioning(sorted(words))))

    # Each search reads the whole project: one for all of them first, which is enough where nothing asks for any.
    if left and asked_for(set().union(*(words for _, words in left))):
        left = [one for one in left if len(left) > 1 and not asked_for(one[1])]
    return sorted({name for name, _ in left})


def _asks(path: str) -> bool:
    other = file_class(path) is FileClass.TEST or role(path) is Role.CODE
    return not other or file_class(path) is FileClass.BOTH or PurePosixPath(path).name in _RECIPES


def _left_of_python(modules: set[str], folders: Sequence[Path]) -> dict[str, set[str]]:
    """Those of the modules that no distribution requires, each with the words that ask for it. Raises OSError."""
    owners: dict[str, set[str]] = {one: {one} for one in modules}
    required: set[str] = set()
    for one in (one for folder in folders for one in folder.glob("lib/python*/site-packages/*")):
        if one.suffix in {".dist-info", ".egg-info"}:
            metadata = HeaderParser().parsestr(_text(one / "METADATA") or _text(one / "PKG-INFO") or _own_text(one))
            lines = [*map(str, metadata.get_all("Requires-Dist", ())), *_text(one / "requires.txt").splitlines()]
            required |= {_plain(found[0]) for line in lines if (found := _REQUIRED.match(line))}
            listed = (_text(one / "RECORD") or _text(one / "SOURCES.txt")).splitlines()
            for module in modules & {_MODULE_END.split(line.lstrip('"'), maxsplit=1)[0] for line in listed}:
                # Its folder is named after it, too, with the version behind it.
                owners[module].add(str(metadata["Name"] or one.stem.partition("-")[0]))
    return {one: _spelled(names) for one, names in owners.items() if not {*map(_plain, names)} & required}


def _left_of_node(names: set[str], folders: Sequence[Path]) -> dict[str, set[str]]:
    """Those of the packages that no package's manifest requires, each with the words that ask for it.

    Raises OSError, ValueError and RecursionError for an installed package's manifest that cannot be read.
    """
    required: set[str] = set()
    for manifest in (one for folder in folders for one in folder.rglob("package.json")):
        try:
            said = json.loads(_text(manifest) or "{}")
        except (OSError, ValueError, RecursionError):
            # Packages bring broken manifests, too, for their own tests; only what is installed requires anything.
            if _PACKAGE.fullmatch(manifest.parent.as_posix()):
                raise
            continue
        tables = (said.get(table) for table in _TABLES) if isinstance(said, dict) else ()
        required |= {_plain(name) for table in tables if isinstance(table, dict) for name in table}
    return {one: _spelled({one}) for one in names if _plain(one) not in required}


def _spelled(names: set[str]) -> set[str]:
    return {spelling for one in names for spelling in (one, _plain(one), _plain(one).replace("-", "_"))}


def _text(path: Path) -> str:
    """The text of a file that an installer wrote, '' where there is none. Raises OSError for what cannot be read."""
    try:
        return read_regular(path, _FILE_BYTES, follow=True).decode("utf-8-sig", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _own_text(path: Path) -> str:
    """The text of a distribution that is one file, as some systems install theirs."""
    return _text(path) if path.is_file() else ""


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
