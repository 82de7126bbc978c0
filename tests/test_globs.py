"""Whether a glob can be read is told as ripgrep would tell it, without asking it."""

import random
from pathlib import Path

import pytest

from code_intel_server import process
from code_intel_server.codebase.files import ripgrep
from code_intel_server.common import globs

WRITTEN = (
    *("[", "[]", "[!]", "[!a", "{", "}", "{a", "a}", "a\\", "[z-a]", "[a", "{a,[}", "[a\\"),
    *("[]a]", "[a-z]", "{a,b}", "a\\\\", "\\[", "[\\]", "[^]]", "**", "a**b", "**/x/**", "[a-]", "[-a]", "[a-c-b]", ""),
)


def ripgrep_reads(pattern: str, folder: Path) -> bool:
    argv = [ripgrep.ripgrep_program(), "--no-config", "--files", "--glob", f"!{pattern}", "."]
    return b"error parsing glob" not in process.run(argv, cwd=folder, timeout=20).stderr


@pytest.mark.parametrize("seed", range(4))
def test_brackets_and_braces_that_ripgrep_cannot_read_are_known(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret
    made = ["".join(dice.choices("[]{}!^-a\\z,*", k=dice.randint(1, 7))) for _ in range(60)]
    wrong = [one for one in (*WRITTEN, *made) if bool(globs.fault(one)) == ripgrep_reads(one, tmp_path)]
    assert wrong == []
