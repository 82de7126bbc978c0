"""Of a name in many files as many are reported as the page needs: telling all of them takes seconds, and nobody reads them all (SPEC 2).

The order of the files must then be known before they are told, and be the same for the next page. So it is decided by how
large all files with the name are, and by what the symbol cache says they define, never by what is remembered of them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from code_intel_server.codebase.files.project import ProjectScope
from code_intel_server.codebase.files.ripgrep import FileMatches
from code_intel_server.codebase.files.roles import Role, is_test_file, role
from code_intel_server.codebase.symbols.cache import stamp_of
from code_intel_server.codebase.syntax.values import Use

_FIRST_LINES = 2_000
WHOLE_BYTES = 300_000
"""Files of a name that are told whole whatever the page: some 40 ms of parsing."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The first `rows` of these `kinds` (of any, where empty). `defining` gives the files that are likely to define the name."""

    rows: int
    kinds: frozenset[Use]
    defining: Callable[[], Collection[str]]
    near: Callable[[], Collection[str]] = frozenset
    first: int = 0
    """How many rows are before the page."""

    def ordered(self, project: ProjectScope, files: Sequence[FileMatches]) -> tuple[Sequence[FileMatches], int] | None:
        """The files, those first that are likely to define the name, then those `near`, and how many of them to tell first, whatever the page.

        None where they are few enough to be classified whole.
        """
        if not _is_more(WHOLE_BYTES, (_size(project, file) for file in files)):
            return None
        defining, near = self.defining(), self.near()
        first = [file for file in files if file.path in defining or file.path in near] if near else []
        # A bare name's tests come behind its product whatever they define: what the product has tells how many of theirs are shown.
        in_order = sorted(
            files,
            key=lambda file: (
                _is_built(file),
                not near and is_test_file(file.path),
                file.path not in defining,
                file.path not in near,
            ),
        )
        return in_order, len(first) if sum(file.count for file in first) <= _FIRST_LINES else 0

    def held(self, kinds: Iterable[Use]) -> int:
        """How many rows of these kinds are wanted."""
        return sum(not self.kinds or kind in self.kinds for kind in kinds)


def batch(files: Sequence[FileMatches], told: int, missing: int) -> Sequence[FileMatches]:
    """The files to tell next, `told` being done: such whose lines may give what is missing, and more the more lines gave nothing."""
    before = sum(file.count for file in files[:told])
    lines = 0
    end = told
    while end < len(files) and lines < max(missing, before // 2):
        lines += files[end].count
        end += 1
    return files[told:end]


def _size(project: ProjectScope, file: FileMatches) -> int:
    stamp = stamp_of(project, file.path)
    return stamp.size if stamp else 0


def _is_more(limit: int, sizes: Iterator[int]) -> bool:
    total = 0
    return any((total := total + size) > limit for size in sizes)


def _is_built(file: FileMatches) -> bool:
    """Whether nobody here writes it: others' code, or one with lines as no person writes them."""
    return file.may_be_cut or role(file.path) is Role.VENDORED
