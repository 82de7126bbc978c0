"""Reads what commits changed from `git log --name-status -z`, each file under the name that it has now."""

from collections.abc import Iterator

_HEAD = "\x01"
_MOVED = ("R", "C")

LOG = ("log", "-z", "--no-merges", "--find-renames=70%", "--name-status", f"--format=%x{ord(_HEAD):02x}")


def changed_paths(printed: str) -> Iterator[tuple[str, ...]]:
    """The paths of each commit that `LOG` printed, newest first; a file that was renamed later goes by its later name."""
    now: dict[str, str] = {}
    for entry in printed.split(_HEAD)[1:]:
        fields = iter([field for part in entry.split("\0") if (field := part.removeprefix("\n"))])
        paths: dict[str, None] = {}
        for status in fields:
            path = next(fields, "")
            later = next(fields, "") if status.startswith(_MOVED) else path
            known = now.get(later, later)
            paths[known] = None
            if status.startswith("R"):
                now[path] = known
            elif status == "A":
                now.pop(path, None)  # before that the name was another file's
        yield tuple(paths)
