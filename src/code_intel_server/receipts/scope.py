"""What a change asks the runs for: which test files alone, and what of it would steer the original tests (SPEC 4, Receipts)."""

import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from code_intel_server.codebase.files.roles import is_runner_file, named_as_tests
from code_intel_server.receipts.checkout import Changed
from code_intel_server.receipts.files import FileClass

_LIBRARIES = ("lib/python*/site-packages", "Lib/site-packages")


def changed_tests(steering: Sequence[Changed], units: Collection[str]) -> frozenset[str] | None:
    """The new and changed test files where nothing else that changed can bear on other tests; None where it can.

    `units` are the files that were seen to hold tests; a new file next to one, of the same kind, is taken for another.
    """
    collected = set()
    kinds = {_kind(unit) for unit in units}
    for one in steering:
        name = one.path.rpartition("/")[2]
        runs = one.file_class is FileClass.BOTH or name == "__init__.py" or is_runner_file(one.path)
        is_new = not one.old.there and _kind(one.path) in kinds
        if runs or not one.new.there or not (one.path in units or named_as_tests(one.path) or is_new):
            return None
        collected.add(one.path)
    return frozenset(collected)


def shadowing(changed: Iterable[Changed], base: Collection[str], borrowed: Iterable[Path]) -> list[Changed]:
    """The added files that a Python process with the project on its search path would take for a library of its own.

    `base` are the files that were there before, `borrowed` the folders with the libraries.
    """
    added = {one.path: one for one in changed if one.path.endswith(".py") and one.new.there and not one.old.there}
    modules = {top for path in added if (top := _module(path))}
    modules -= {path.removeprefix("src/").partition("/")[0].removesuffix(".py") for path in base}
    if not modules:
        return []
    folders = [found for folder in borrowed for pattern in _LIBRARIES for found in folder.glob(pattern)]
    libraries = {entry.name.partition(".")[0] for folder in folders for entry in folder.iterdir()}
    stands_in = modules & (libraries | sys.stdlib_module_names)
    return [
        one
        for path, one in added.items()
        if path.removeprefix("src/").partition("/")[0].removesuffix(".py") in stands_in
    ]


def _module(path: str) -> str:
    """The top-level module that a file makes by itself: `a.py` or `a/__init__.py`; '' where it makes none."""
    inside = path.removeprefix("src/")
    name = inside.removesuffix("/__init__.py").removesuffix(".py")
    return "" if "/" in name else name


def _kind(path: str) -> tuple[str, str]:
    """Folder and suffix of a file."""
    folder, _, name = path.rpartition("/")
    return folder, name.rpartition(".")[2]
