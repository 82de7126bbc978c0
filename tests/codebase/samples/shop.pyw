"""A shop."""

from __future__ import annotations

import os
from collections.abc import Callable

LIMIT = 10
names: list[str] = []


@decorated(option=1)
class Price(Base[int], metaclass=Meta):
    """A price."""

    amount: int = 0

    @property
    def free(self) -> bool:
        return self.amount == 0

    async def load(
        self,
        key: str,
    ) -> Price:
        def helper(x):
            return os.path.join(x)

        return helper(key)

    class Inner:
        def deep(self): ...


if LIMIT:

    def conditional():
        pass


def outer():
    class Local:
        pass

    return Local()
