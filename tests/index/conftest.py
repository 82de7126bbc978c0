"""What several tests of the index begin with."""

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from code_intel_server.index.storage.contents import CONTENTS
from code_intel_server.index.values import ChromaSettings
from tests.index.builders import SAMPLE, ready, write_files
from tests.index.cases import Case


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with an index that ChromaDB has all of, closed: made once, since its process takes long to start."""
    root = tmp_path_factory.mktemp("filled")
    write_files(root, SAMPLE | {f"src/m{n}.py": f"def function_{n}():\n    return {n}\n" for n in range(40)})
    made = Case(root, ChromaSettings(min_chunks=0))
    made.index.sync()
    assert ready(made.index)
    made.index.close()
    return root


@pytest.fixture
def local(tmp_path: Path, filled: Path) -> Iterator[Case]:
    """A filled index in a folder, closed: only that can be damaged under our hands."""
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    cache = tmp_path / ".code-intel" / "cache"
    for name in ("index.sqlite3", CONTENTS):
        with contextlib.closing(sqlite3.connect(cache / name)) as connection, connection:
            # As if it had been moved here: a copy is not believed.
            connection.execute("UPDATE meta SET value = ? WHERE key = 'folder'", (str(cache.stat().st_ino),))
    made = Case(tmp_path, ChromaSettings(min_chunks=0))
    yield made
    made.index.close()
