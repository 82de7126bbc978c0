"""The writable set: which files an implementation may change (SPEC 4, READY impl; SPEC 2 check_write_target).

Pure string rules over normalised project paths, without pydantic or git, because the hook command asks the same question
in under 100 ms.
"""

from collections.abc import Collection
from enum import StrEnum
from posixpath import dirname


class Why(StrEnum):
    """Why a path may, or may not, be written."""

    EARLY = "no plan yet"
    EXPLORED = "explored"
    ADDED = "added with a reason"
    BESIDE = "new file in an explored folder"
    UNEXPLORED = "not explored"

    @property
    def allowed(self) -> bool:
        """Whether the path may be written."""
        return self in {Why.EXPLORED, Why.ADDED, Why.BESIDE}


def why_writable_in(
    phase: str, substep: str | None, path: str, explored: Collection[str], added: Collection[str], *, exists: bool
) -> Why:
    """Judge a write at a place of the session: files are written in steps 13 and 14, on the road of a plan.

    What `check_write_target` answers and what the hook refuses (SPEC 2, 12).
    """
    if phase != "READY" or substep in {None, "plan"}:
        return Why.EARLY
    return why_writable(path, explored, added, exists=exists)


def why_writable(path: str, explored: Collection[str], added: Collection[str], *, exists: bool) -> Why:
    """Judge one normalised path; `exists` tells whether it was there when the session began or is there now."""
    if path in explored:
        return Why.EXPLORED
    if path in added:
        return Why.ADDED
    if not exists and dirname(path) in {dirname(known) for known in (*explored, *added)}:
        return Why.BESIDE
    return Why.UNEXPLORED
