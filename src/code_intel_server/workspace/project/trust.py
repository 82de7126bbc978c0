"""What the user has allowed: configuration files whose commands may run, and commands waived for one session.

Both are kept outside every project, in the user's state folder, so nothing that comes with a repository can grant itself
anything; both are signed with a key of that folder. Trust is for a file's real path *and* its content: an edit, by
whomever, ends it. The worktrees of a repository share it: what may run in one may run in each that holds the same
content. A waiver is for one command of one session and ends with it (SPEC 4, POST_IMPL_VERIFY).
"""

import hashlib
import hmac
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from code_intel_server.common.printable import printable
from code_intel_server.errors import Rejected, Unavailable, state_unavailable
from code_intel_server.workspace.files import discard, make_folder, read_regular, write_whole
from code_intel_server.workspace.paths import in_main_worktree
from code_intel_server.workspace.state.checkpoints import valid_id
from code_intel_server.workspace.state.key import load_key, path_hash, state_home

MAX_TRUST_BYTES = 256 * 1024
MAX_DIGESTS = 8
MAX_WAIVERS = 100
MIN_REASON = 10
_KEPT_WAIVER_FILES = 200


@dataclass(frozen=True, slots=True)
class Waiver:
    """A command that the user took out of one session's proof; `at` is an ISO time in UTC, `typed` at a terminal."""

    argv: tuple[str, ...]
    reason: str
    at: str
    typed: bool = False


class Approvals:
    """The user's approvals. `state` is the folder they lie in, the user's own by default."""

    def __init__(self, state: Path | None = None) -> None:
        self._state = state_home() if state is None else state

    def trusted(self, path: Path, digest: str) -> bool:
        """Whether the user has trusted this file with this very content (SHA-256 as hexadecimal digits)."""
        return bool(digest) and digest in self._digests(self._trust_file(path))

    def superseded(self, path: Path, digest: str) -> bool:
        """Whether the user has trusted this content, and another one of the file since."""
        digests = self._digests(self._trust_file(path))
        return digest in digests and digests[-1] != digest

    def trust(self, path: Path) -> str:
        """Trust a file as it is now and return its digest; earlier contents of it (other branches) stay trusted.

        Raises OSError where it cannot be read, Unavailable('tool_errors.generic.state_unavailable') where nothing can be kept.
        """
        digest = hashlib.sha256(read_regular(path, MAX_TRUST_BYTES)).hexdigest()
        for file in self._granted_files(path):
            kept = [known for known in self._digests(file) if known != digest][-(MAX_DIGESTS - 1) :]
            self._write(file, {"path": os.path.realpath(path), "digests": [*kept, digest]})
        return digest

    def revoke(self, path: Path) -> bool:
        """Trust no content of a file any more; whether there was any."""
        existed = [file.exists() for file in self._granted_files(path)]
        for file in self._granted_files(path):
            discard(file)
        return any(existed)

    def waive(self, root: Path, session_id: str, argv: Sequence[str], reason: str, *, typed: bool = False) -> Waiver:
        """Take a command out of the proof of one session of the project at `root`, with a reason of 10+ characters.

        Raises Rejected('tool_errors.generic.argument_invalid') and
        Unavailable('tool_errors.generic.state_unavailable').
        """
        text = printable(" ".join(reason.split()))[:500]
        if len(text) < MIN_REASON:
            expected = f"at least {MIN_REASON} characters"
            raise Rejected("tool_errors.generic.argument_invalid", field="reason", expected=expected)
        waiver = Waiver(tuple(argv), text, datetime.now(UTC).isoformat(timespec="seconds"), typed)
        others = [known for known in self.waivers(root, session_id) if known.argv != waiver.argv]
        self._keep_waivers(root, session_id, [*others, waiver][-MAX_WAIVERS:])
        return waiver

    def withdraw(self, root: Path, session_id: str, argv: Sequence[str]) -> None:
        """Take a waiver back: the command runs again. Raises Unavailable('tool_errors.generic.state_unavailable')."""
        others = [known for known in self.waivers(root, session_id) if known.argv != tuple(argv)]
        self._keep_waivers(root, session_id, others)

    def _keep_waivers(self, root: Path, session_id: str, waivers: Sequence[Waiver]) -> None:
        rows = [{"argv": [*one.argv], "reason": one.reason, "at": one.at, "typed": one.typed} for one in waivers]
        path = self._waiver_file(root, session_id)
        self._write(path, {"session_id": session_id, "waivers": rows})
        self._drop_old(path.parent)

    def waivers(self, root: Path, session_id: str) -> tuple[Waiver, ...]:
        """What the user has waived for a session of the project at `root`."""
        rows = self._read(self._waiver_file(root, session_id)).get("waivers")
        if not isinstance(rows, list):
            return ()
        return tuple(  # signed by us: our own form, or that of 1.16, where the user's own command was the only way
            Waiver(tuple(row["argv"]), row["reason"], row["at"], row.get("typed", True)) for row in rows
        )

    def forget(self, root: Path, session_id: str) -> None:
        """Drop the waivers of a session that has ended."""
        discard(self._waiver_file(root, session_id))

    def _digests(self, file: Path) -> list[str]:
        digests = self._read(file).get("digests")
        return [str(digest) for digest in digests] if isinstance(digests, list) else []

    def _trust_file(self, path: Path, *, claimed: bool = False) -> Path:
        return self._state / "trust" / f"{path_hash(in_main_worktree(path, claimed=claimed))}.json"

    def _granted_files(self, path: Path) -> set[Path]:
        """What the user's word is for: where the folder only claims to be a repository's, that repository's worktrees too."""
        return {self._trust_file(path), self._trust_file(path, claimed=True)}

    def _waiver_file(self, root: Path, session_id: str) -> Path:
        return self._state / "waivers" / f"{path_hash(root)}-{valid_id(session_id)}.json"

    def _drop_old(self, folder: Path) -> None:
        """Sessions that died without an end leave their waivers behind: keep the last written."""
        files = sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime)
        for file in files[:-_KEPT_WAIVER_FILES]:
            discard(file)

    def _write(self, path: Path, content: Mapping[str, object]) -> None:
        try:
            make_folder(path.parent, 0o700)
            data = json.dumps(content)
            write_whole(path, json.dumps({"mac": self._mac(path, data), "content": data}).encode())
        except OSError as error:
            raise state_unavailable(path, error) from error

    def _read(self, path: Path) -> dict[str, object]:
        """What a file of ours says; nothing where it is missing, damaged or not signed by this user's key."""
        try:
            sealed = json.loads(read_regular(path, MAX_TRUST_BYTES))
            data, mac = sealed["content"], sealed["mac"]
            if not hmac.compare_digest(str(mac).encode(), self._mac(path, str(data)).encode()):
                return {}
            content = json.loads(data)
        except (OSError, ValueError, KeyError, TypeError, RecursionError, Unavailable):
            return {}
        return content if isinstance(content, dict) else {}

    def _mac(self, path: Path, data: str) -> str:
        """Bound to the file's name: one approval cannot be renamed into another."""
        message = b"\0".join((b"approval", path.parent.name.encode(), path.name.encode(), data.encode()))
        return hmac.new(load_key(self._state), message, hashlib.sha256).hexdigest()
