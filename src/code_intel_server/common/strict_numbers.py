"""Numbers of a JSON text that are numbers: hooks for `json.loads`, which by itself takes NaN, and 1e999 for infinity."""

import math
from typing import NoReturn


def finite(text: str) -> float:
    """`parse_float`: the number. Raises ValueError where it is beyond what a float holds."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large a number")
    return number


def no_constant(name: str) -> NoReturn:
    """`parse_constant`: NaN, Infinity and -Infinity are no JSON. Raises ValueError."""
    raise ValueError(f"{name} is no number")
