"""Lent packages that a change makes the tests load and that nothing in the project asks for: a fresh clone lacks them.

What another installed package requires is asked for, and so is what any text of the project but code names: a manifest, a
lock, a workflow, a container's recipe, a page for people (SPEC 4, Receipts).
"""

import contextlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath
from typing import Any

from code_intel_server.codebase.files.roles import Role, role
from code_intel_server.receipts.files import FileClass, file_class

_PACKAGE = re.compile(r".*(?:^|/)(site-packages|node_modules)/((?:@[^/]+/)?[^/@._][^/]*)")
_INSTALLERS = frozenset({"pip", "setuptools", "pkg_resources", "wheel"})
_RECIPES = frozenset({"setup.py", "noxfile.py", "fabfile.py", "tasks.py"})
_REQUIRED = re.compile(r"[A-Za-z0-9._-]+")
_TABLES = ("dependencies", "peerDependencies", "optionalDependencies")


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

    `mentioning` says which files of the project hold one of some words.
    """
    libraries = [str(one) for folder in folders for one in folder.glob("lib/python*/site-packages")]
    found = []
    for package in sorted(wanted):
        folder, _, name = package.partition("/")
        python = folder == "site-packages"
        owners = [one for one in distributions(path=libraries) if name in _modules(one)] if python else []
        names = {name, *(one.name for one in owners)}
        spelled = {spelling for one in names for spelling in (one, _plain(one), _plain(one).replace("-", "_"))}
        required = _required_of_python(libraries) if python else _required_of_node(folders)
        if name in _INSTALLERS or {*map(_plain, names)} & required or any(map(_asks, mentioning(sorted(spelled)))):
            continue
        found.append(name)
    return found


def _asks(path: str) -> bool:
    other = file_class(path) is FileClass.TEST or role(path) is Role.CODE
    return not other or file_class(path) is FileClass.BOTH or PurePosixPath(path).name in _RECIPES


def _modules(distribution: Distribution) -> set[str]:
    return {file.parts[0].partition(".")[0] for file in distribution.files or () if file.parts}


def _required_of_python(libraries: list[str]) -> set[str]:
    lines = (line for one in distributions(path=libraries) for line in one.requires or ())
    return {_plain(found[0]) for line in lines if (found := _REQUIRED.match(line))}


def _required_of_node(folders: Sequence[Path]) -> set[str]:
    required: set[str] = set()
    for manifest in (one for folder in folders for one in folder.rglob("package.json")):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            said: dict[str, Any] = json.loads(manifest.read_bytes())
            required |= {_plain(name) for table in _TABLES for name in said.get(table, ())}
    return required


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
