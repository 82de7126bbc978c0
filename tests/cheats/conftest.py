"""The stage on which these tests play."""

from tests.e2e.stage import pristine, stage

__all__ = ["pristine", "stage"]
