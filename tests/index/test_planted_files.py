"""What a repository brings in the folders of the index: links lead nowhere, and an index of its making is not believed."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from code_intel_server.errors import UserActionNeeded
from code_intel_server.index.code_index import CodeIndex
from code_intel_server.index.map import Map
from code_intel_server.index.storage.contents import CONTENTS
from code_intel_server.index.storage.fingerprint import FolderFingerprint
from code_intel_server.index.storage.store import Store
from code_intel_server.index.values import ChromaSettings
from code_intel_server.index.vectors.chromadb_manager import ChromaManager
from tests.index.builders import SAMPLE, make_index, write_files

QUERY = "how many failed attempts may a login have"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    write_files(root, SAMPLE)
    return root


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A database and a note of the user's, in a folder that is not the project's."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "index.sqlite3")) as database, database:
        database.execute("CREATE TABLE diary (entry TEXT)")
        database.execute("INSERT INTO diary VALUES ('years of it')")
    for name in ("index.sqlite3-wal", "index.lock", "note"):
        (folder / name).write_text("the user's own\n")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def link(place: Path, target: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(os.path.relpath(target, place.parent))


def used(index: CodeIndex) -> None:
    """Everything that writes."""
    assert index.search(QUERY).hits[0].path == "src/auth/throttle.py"
    index.sync()
    index.sync(rebuild=True)
    assert index.search(QUERY).hits[0].path == "src/auth/throttle.py"
    index.close()


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("cache/index.lock", "note"),
        ("cache/index.sqlite3", "index.sqlite3"),
        ("cache/index.sqlite3-wal", "note"),
        ("cache/index.sqlite3-shm", "note"),
        ("cache", "."),
    ],
)
def test_the_index_writes_through_no_link_and_answers_all_the_same(
    project: Path, theirs: Path, name: str, target: str
) -> None:
    before = contents(theirs)
    link(project / ".code-intel" / name, theirs / target)
    used(make_index(project))
    assert contents(theirs) == before


def test_a_store_of_another_project_is_not_read_through_a_link(tmp_path: Path, project: Path) -> None:
    other = tmp_path / "other"
    write_files(other, {"secret.py": "def login_attempts():\n    return 'of another project'\n"})
    foreign = make_index(other)
    foreign.sync()
    link(project / ".code-intel/cache", other / ".code-intel/cache")
    index = make_index(project)
    assert {hit.path for hit in index.search(QUERY).hits} <= SAMPLE.keys()
    index.close()
    assert foreign.search("login attempts").hits[0].path == "secret.py"
    foreign.close()


def test_an_index_that_came_with_a_clone_is_not_believed_and_one_that_was_moved_is(
    project: Path, tmp_path: Path
) -> None:
    """Its digests may be those of the very files, and its names a lie."""
    made = make_index(project)
    made.sync()
    made.close()
    with closing(sqlite3.connect(project / ".code-intel/cache" / CONTENTS)) as database, database:
        database.execute("UPDATE chunks SET header = 'a lie', symbol = 'a_lie'")
    shutil.copytree(project, tmp_path / "clone")
    cloned = make_index(tmp_path / "clone")
    found = cloned.search(QUERY)
    assert found.hits[0].path == "src/auth/throttle.py"
    assert all("a_lie" not in hit.symbol for hit in found.hits)
    assert any("made in another folder" in note for note in found.notes)
    cloned.close()
    moved = make_index((tmp_path / "clone").rename(tmp_path / "moved"))
    assert not any("set aside" in note for note in moved.search(QUERY).notes)
    moved.close()


@pytest.mark.parametrize("name", ["chroma", "chroma/chroma.sqlite3", "chroma/segment/data_level0.bin"])
def test_chromadb_is_given_no_folder_that_leads_elsewhere(project: Path, theirs: Path, name: str) -> None:
    folder = project / ".code-intel"
    link(folder / name, theirs if name == "chroma" else theirs / "note")
    before = contents(theirs)
    (folder / "cache").mkdir()
    manager = ChromaManager(
        project, folder, Store(folder / "cache/index.sqlite3", writable=True), ChromaSettings(min_chunks=0)
    )
    manager.kick()
    assert manager.await_ready(30)
    manager.close()
    assert manager.rebuilt and contents(theirs) == before
    assert not (folder / "chroma").is_symlink()


def test_the_seal_is_written_through_no_link(project: Path, theirs: Path) -> None:
    before = contents(theirs)
    note = project / ".code-intel/cache/chroma.seal"
    for name in ("chroma.seal", "chroma.tmp"):
        link(note.with_name(name), theirs / "note")
    FolderFingerprint(project / "src", note).put()
    assert contents(theirs) == before and not note.is_symlink()


def test_an_agreement_is_written_through_no_link(project: Path, theirs: Path) -> None:
    before = contents(theirs)
    folder = project / ".code-intel/agreements"
    name = next(iter(_written(project, folder)))
    for suffix in (".tmp", ".md"):
        (folder / name).with_suffix(suffix).unlink(missing_ok=True)
        link((folder / name).with_suffix(suffix), theirs / "note")
    assert name in _written(project, folder)
    assert contents(theirs) == before


def test_agreements_lie_in_no_folder_that_a_link_leads_to(project: Path, theirs: Path) -> None:
    before = contents(theirs)
    link(project / ".code-intel/agreements", theirs)
    with pytest.raises(UserActionNeeded, match="state_folder_unsafe"):
        Map.write(project / ".code-intel/agreements", QUERY, ["allow"], [])
    assert contents(theirs) == before


def _written(project: Path, folder: Path) -> list[str]:
    Map.write(folder, QUERY, ["allow"], ["src/auth/throttle.py"])
    return [path.name for path in folder.iterdir() if not path.is_symlink()]
