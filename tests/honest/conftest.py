"""The stage on which these tests play."""

from tests.e2e.stage import arena, stage

__all__ = ["arena", "stage"]
