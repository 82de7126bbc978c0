"""Paths of the project as imports write them."""

from pathlib import PurePosixPath


def joined(*parts: str) -> str:
    """A path of the project, `..` and `.` taken away; '' for the root, and for what leads out of it."""
    found: list[str] = []
    for part in PurePosixPath(*[one for one in parts if one]).parts:
        if part == "..":
            if not found:
                return ""
            found.pop()
        elif part != ".":
            found.append(part)
    return "/".join(found)
