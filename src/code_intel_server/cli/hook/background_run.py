"""The run of `outside_sessions: verify`: trusted verify commands on the files as a turn left them, in the background (SPEC 12).

Started by the hook as a process of its own. It ends with its verdict, at its time limit, with a signal, or when a session
begins, and its children with it. A lock says that it lives; the same file, and `status`, say whose it is and until when.
"""

import contextlib
import json
import os
import re
import signal
import threading
import time
from pathlib import Path

from code_intel_server.cli.hook.outside_sessions import place_of, settings
from code_intel_server.cli.hook.sessions import live_session
from code_intel_server.common import lifetime
from code_intel_server.errors import CodeIntelError
from code_intel_server.receipts import ALL_SURVIVED, NONE_RED
from code_intel_server.tools.services import ProjectServices
from code_intel_server.workspace.project.config import Config, ConfigFile
from code_intel_server.workspace.proofs import ProofRunner
from code_intel_server.workspace.state.tree_state import TreeState, Worktree
from code_intel_server.workspace.values import Proof, ProofStatus, ToCommit

OUTSIDE = "00000000_000000"
"""The session id under which the runs outside of sessions are kept."""

_GRACE_SECONDS = 30.0
_TIMES_THE_LIMITS = 4
_TEXT_CHARACTERS = 1_500
_TRIED = re.compile(r"\nTry \d+ on these files, .*\Z")
"""What a session says of its tries."""


class _SessionBegan(Exception):
    """A session runs the commands itself."""


def main(root: str, base: str, lock: int) -> int:
    """Verify as a process of its own, which a signal ends with all its children."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lifetime.end_now)
    verify(root, base, lock)
    return 0


def verify(root: str, base: str, lock: int) -> None:
    """Run the commands and keep what they showed. `base` is the commit the change is upon, `lock` a descriptor that holds the lock."""
    place = place_of(root)
    if place is not None and settings(root)[0] == "verify":
        with contextlib.suppress(_SessionBegan, CodeIntelError, OSError):
            _verify(place, base, lock)
    os.ftruncate(lock, 0)
    os.close(lock)


def _verify(place: Worktree, base: str, lock: int) -> None:
    services = ProjectServices(Path(place.root))
    try:
        config = ConfigFile.load(services.project.config_file)
        limit = _limit(config.config)
        seen = place.look()
        _say(lock, seen, limit)
        tree = services.tree.snapshot()
        if place.look().digest != seen.digest:
            return  # somebody is writing: the end of that turn starts another run
        overdue = threading.Timer(limit, _overdue, (place, seen, services.key, limit))
        overdue.daemon = True
        overdue.start()
        runner = ProofRunner(
            services.project,
            config,
            services.tree,
            suites=services.runs,
            check=lambda: _no_session(place.root),
            commits=False,
        )
        commit = ToCommit(base, services.tree.head_snapshot(base))
        proof = runner.run(OUTSIDE, lambda *_: None, tree, commit)
        overdue.cancel()
        same = place.look().digest == seen.digest
        _keep(place, seen, services.key, str(_status(proof, same=same)), _outcome_text(proof, same=same))
    finally:
        services.close()


def _limit(config: Config) -> float:
    """Seconds for everything."""
    return (
        config.verify_limit or _TIMES_THE_LIMITS * sum(one.timeout for one in config.verify_commands)
    ) + _GRACE_SECONDS


def _say(lock: int, seen: TreeState, limit: float) -> None:
    """Who runs, since when, until when at most, and on what."""
    now = time.time()
    clock = [time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at)) for at in (now, now + limit)]
    said = {"pid": os.getpid(), "since": clock[0], "until": clock[1], "digest": seen.digest}
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps(said).encode(), 0)


def _no_session(root: str) -> None:
    if live_session(root):
        raise _SessionBegan


def _overdue(place: Worktree, seen: TreeState, key: bytes, limit: float) -> None:
    with contextlib.suppress(OSError):
        _keep(place, seen, key, str(ProofStatus.UNPROVEN), f"Ended after its time limit of {limit:.0f} s.")
    lifetime.end_now()


def _keep(place: Worktree, seen: TreeState, key: bytes, status: str, text: str) -> None:
    """Keep a verdict; where it is good the files are the last proven ones."""
    kept = place.read("verdict", key)
    at = time.strftime("%Y-%m-%d %H:%M")
    kept["last"] = {"digest": seen.digest, "status": status, "text": text[:_TEXT_CHARACTERS], "at": at}
    if status == ProofStatus.PROVEN:
        kept |= {"proven": seen.kept(), "by": f"the last proven run ({at})"}
    place.write("verdict", kept, key)


def _status(proof: Proof, *, same: bool) -> ProofStatus:
    """Proven only where no test asks for a reason either, and where all that ran saw these files.

    That no test shows what the change does is said, and asked for in sessions only.
    """
    in_place = proof.tests is None or not proof.tests.seen
    said = {NONE_RED, ALL_SURVIVED}
    asked = proof.tests is not None and (proof.tests.questions.keys() - said or proof.tests.unavailable)
    if proof.status is ProofStatus.PROVEN and (asked or (in_place and not same)):
        return ProofStatus.UNPROVEN
    return proof.status


def _outcome_text(proof: Proof, *, same: bool) -> str:
    """Each command with how it ended, what failed, and which tests ask for a reason."""
    lines = []
    for run in proof.runs:
        said = "; ".join(filter(None, (run.reason, _TRIED.sub("", run.output_tail))))
        lines.append(f"`{' '.join(run.argv)}`: {run.outcome}{f': {said}' if said else ''}")
    if proof.tests is not None:
        counts = proof.tests.counts
        if proof.tests.seen:
            lines.append(f"fail_to_pass {counts.get('fail_to_pass', 0)}, pass_to_pass {counts.get('pass_to_pass', 0)}")
        lines += [f"{what}: {why}" for what, why in [*proof.tests.questions.items()][:10]]
    if not same:
        lines.append("Files were changed while the commands ran.")
    return "\n".join(lines)
