"""What several tests of the index begin with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from code_intel_server.index.values import ChromaSettings
from tests.index.builders import SAMPLE, ready, write_files
from tests.index.cases import Case


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Case]:
    """A filled index in a folder, closed: only that can be damaged under our hands."""
    write_files(tmp_path, SAMPLE | {f"src/m{n}.py": f"def function_{n}():\n    return {n}\n" for n in range(40)})
    made = Case(tmp_path, ChromaSettings())
    made.index.sync()
    assert ready(made.index)
    made.index.close()
    yield made
    made.index.close()
