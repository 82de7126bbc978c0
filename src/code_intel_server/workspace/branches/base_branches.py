"""Remembers with every task branch which branch it came from.

The record is a small JSON blob under `refs/code-intel/base/<branch>`: created and deleted in the same ref transaction as
the branch, kept by `git gc`, and, unlike a configuration key, never executed by anything.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from code_intel_server.errors import Unavailable
from code_intel_server.workspace.git.child import is_yes
from code_intel_server.workspace.git.repository import BASES, HEADS, TASK_PREFIX, Git, RefChange, is_oid
from code_intel_server.workspace.git.worktrees import led_elsewhere, session_worktrees


@dataclass(frozen=True, slots=True)
class BaseRecord:
    """`base` is a branch name, `oid` its tip when the task branch was made; `kept` after finish mode `branch`."""

    base: str
    oid: str
    kept: bool = False


def read_base(git: Git, branch: str) -> BaseRecord | None:
    """The record of a task branch; None where there is none that makes sense. Raises Unavailable where git does not answer."""
    if not git.oid(BASES + branch, "blob"):
        return None
    try:
        value = json.loads(git.read_blob(BASES + branch))
    except Unavailable as error:
        if error.key == "tool_errors.git.too_much_output":
            return None  # no record of ours is that long
        raise
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    base, oid = value.get("base"), value.get("oid")
    if not isinstance(base, str) or not isinstance(oid, str) or not is_oid(oid) or not is_branch_name(git, base):
        return None
    return BaseRecord(base, oid, value.get("kept") is True)


def record_change(git: Git, branch: str, record: BaseRecord) -> RefChange:
    """The ref change that stores a record (replacing the present one)."""
    text = json.dumps({"base": record.base, "oid": record.oid, "kept": record.kept}, sort_keys=True)
    return RefChange(BASES + branch, git.oid(BASES + branch, "blob"), git.write_blob(text.encode()))


def drop_changes(git: Git, branch: str) -> list[RefChange]:
    """The ref change that removes the record, where there is one."""
    present = git.refs(BASES + branch).get(BASES + branch)
    return [RefChange(BASES + branch, present, "")] if present else []


def is_branch_name(git: Git, name: str) -> bool:
    """Whether a name can be given to git as a branch: well-formed, and not to be taken for an option or for HEAD."""
    return (
        bool(name)
        and not name.startswith("-")
        and name not in {"@", "HEAD"}
        and is_yes(git.run("check-ref-format", HEADS + name))
    )


def stale_branches(git: Git) -> dict[str, str]:
    """Task branches (name → tip) that nobody means to keep, and whose session has no other working tree.

    Of a session that runs there; or that was interrupted and has the worktree to itself.
    """
    found = git.refs(HEADS + TASK_PREFIX + "*")
    own = {Path(path).name for _, path in session_worktrees(git) if os.path.lexists(path)} if found else set()
    used = {TASK_PREFIX + session_id for session_id in {*led_elsewhere(git), *own}} if found else set()
    names = {ref.removeprefix(HEADS): oid for ref, oid in found.items()}
    return {
        name: oid
        for name, oid in names.items()
        if name not in used and not ((read_base(git, name)) or BaseRecord("", "")).kept
    }
