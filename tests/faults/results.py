"""Where the long tests leave their figures for the report: the folder that `run.sh --full` names."""

import json
import os
from collections.abc import Mapping
from pathlib import Path


def kept(name: str, figures: Mapping[str, object]) -> None:
    """Write `name`.json; nothing where no folder is named."""
    folder = os.environ.get("FAULTS_RESULTS")
    if folder:
        Path(folder, f"{name}.json").write_text(json.dumps(figures) + "\n")
