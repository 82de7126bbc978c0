"""Where the long tests leave their figures for the report: the folder that `run.sh --full` names."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

Case = TypeVar("Case")
Record = Callable[[str, object], None]
"""pytest's `record_property`: `executions` is how many cases a test has judged; the report adds them up."""


def kept(name: str, figures: Mapping[str, object]) -> None:
    """Write `name`.json; nothing where no folder is named."""
    folder = os.environ.get("FAULTS_RESULTS")
    if folder:
        Path(folder, f"{name}.json").write_text(json.dumps(figures) + "\n")


def size(ci: int, full: int) -> int:
    """How many cases a test judges: the number of the plan in the full run, which names that folder, a few in CI."""
    return full if os.environ.get("FAULTS_RESULTS") else ci


def spread(cases: Sequence[Case], ci: int) -> list[Case]:
    """All of the cases in the full run; in CI about so many of them, from everywhere."""
    return list(cases[:: max(1, len(cases) // size(ci, len(cases)))])
