"""The world in memory answers to the very calls that the real one does."""

import inspect

import pytest

from code_intel_server.workspace.branches import BranchManager
from code_intel_server.workspace.project.context_provider import ContextProvider
from code_intel_server.workspace.proofs import ProofRunner
from code_intel_server.workspace.state.journals import LedgerFile
from code_intel_server.workspace.tree.tree import TreeJudge
from tests.flow.world import WorldBranches, WorldDocuments, WorldLedger, WorldProofs, WorldTree

PAIRS = {
    WorldBranches: BranchManager,
    WorldDocuments: ContextProvider,
    WorldLedger: LedgerFile,
    WorldProofs: ProofRunner,
    WorldTree: TreeJudge,
}


@pytest.mark.parametrize("fake", PAIRS, ids=lambda one: one.__name__)
def test_what_the_world_answers_is_asked_of_the_real_one_with_the_same_arguments(fake: type[object]) -> None:
    for name, call in inspect.getmembers(fake, inspect.isfunction):
        if not name.startswith("_"):
            mine, real = (inspect.signature(one).parameters for one in (call, getattr(PAIRS[fake], name)))
            assert [*mine] == [*real][: len(mine)], name
            assert all(one.default is not one.empty for one in [*real.values()][len(mine) :]), name
