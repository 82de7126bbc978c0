"""Whether ChromaDB's folder is as its last owner left it.

What ChromaDB finds is approximate, so a vector that a damaged file hides looks like one that it just did not find: only a
look at the files themselves tells. The owner that ends in order notes their sizes and times, the next one compares.
"""

import contextlib
import json
import os
from pathlib import Path

from code_intel_server.workspace.files import write_whole

_MAX_BYTES = 1 << 20


class FolderFingerprint:
    """The note about one folder, in a file next to it. A note that is missing or cannot be read says nothing."""

    def __init__(self, folder: Path, note: Path) -> None:
        self._folder = folder
        self._note = note

    def put(self) -> None:
        """Note how the folder is now; for the owner, after the last write."""
        with contextlib.suppress(OSError):
            write_whole(self._note, json.dumps(self._present()).encode())

    def lift(self) -> None:
        """From now on the folder may change; for the owner, before the first write. One that stays costs a refill."""
        with contextlib.suppress(OSError):
            self._note.unlink()

    def broken(self) -> str:
        """The first file that is not as it was noted; '' where all are, nothing was noted, or no file is left at all."""
        try:
            if self._note.stat().st_size > _MAX_BYTES:
                return ""
            noted = json.loads(self._note.read_text(encoding="utf-8"))
            present = self._present()
        except (OSError, ValueError, RecursionError):
            return ""
        if not isinstance(noted, dict) or not present:
            return ""
        return next((name for name in sorted({*noted, *present}) if noted.get(name) != present.get(name)), "")

    def holds_links(self) -> bool:
        """Whether the folder is a link, or one lies anywhere in it: ChromaDB makes none, a repository may have brought it."""
        inside = ((place, name) for place, folders, names in os.walk(self._folder) for name in (*folders, *names))
        return self._folder.is_symlink() or any(Path(place, name).is_symlink() for place, name in inside)

    def _present(self) -> dict[str, list[int]]:
        """Path below the folder → size and time of the last change in ns."""
        found: dict[str, list[int]] = {}
        for folder, _, names in os.walk(self._folder):
            for name in names:
                path = Path(folder, name)
                status = path.lstat()
                found[path.relative_to(self._folder).as_posix()] = [status.st_size, status.st_mtime_ns]
        return found
