"""The git effects of a session: its branch, its commits, the merge, and what is archived before anything is lost."""

from code_intel_server.workspace.branches.archive_refs import ArchiveKind
from code_intel_server.workspace.branches.base_branches import stale_branches
from code_intel_server.workspace.branches.commits import identity_missing
from code_intel_server.workspace.branches.manager import BranchManager
from code_intel_server.workspace.branches.session_worktrees import lose_worktree, new_worktree, sweep_worktrees
from code_intel_server.workspace.branches.trash import KEEP_DAYS, Trash, TrashEntry

__all__ = [
    "KEEP_DAYS",
    "ArchiveKind",
    "BranchManager",
    "Trash",
    "TrashEntry",
    "identity_missing",
    "lose_worktree",
    "new_worktree",
    "stale_branches",
    "sweep_worktrees",
]
