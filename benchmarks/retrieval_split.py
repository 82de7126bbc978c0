"""Splits the public benchmark into a tuning half and a reported half, by language, before anything was measured.

    retrieval_split.py REPOS_JSON > retrieval_split.json

Deterministic (seed 20261121): within each language the repositories are shuffled and dealt alternately, and the half
that gets the first card alternates between languages, so both halves speak every language that has two repositories.
"""

import json
import random
import sys
from pathlib import Path

SEED = 20261121


def split(repos: list[dict[str, str]]) -> dict[str, list[str]]:
    """The two halves as sorted names."""
    chance = random.Random(SEED)
    halves: tuple[list[str], list[str]] = ([], [])
    turn = 0
    for language in sorted({repo["language"] for repo in repos}):
        names = sorted(repo["name"] for repo in repos if repo["language"] == language)
        chance.shuffle(names)
        for name in names:
            halves[turn].append(name)
            turn = 1 - turn
    return {"tuning": sorted(halves[0]), "reported": sorted(halves[1])}


if __name__ == "__main__":
    print(json.dumps(split(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), indent=1))
