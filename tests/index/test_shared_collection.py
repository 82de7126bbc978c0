"""Checkouts and clones of one repository on one ChromaDB server: each file is embedded once, and each finds its own."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from code_intel_server.index.code_index import CodeIndex
from code_intel_server.index.values import ChromaMode, ChromaSettings, IndexSettings
from code_intel_server.tools.services import ProjectServices
from tests.index.builders import SAMPLE, HashEncoder, indexed, lister, make_index, manager_of, write_files
from tests.index.chroma_server import chroma_server, free_port

FILES = SAMPLE | {f"src/m{n}.py": f"def function_{n}():\n    return {n}\n" for n in range(20)}
QUESTIONS = ("login throttle", "open the database", "matchRoute", "function 7", "how is the program run")


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    number = free_port()
    with chroma_server(tmp_path_factory.mktemp("server"), number):
        yield number


@contextlib.contextmanager
def opened(
    root: Path, port: int, encoder: HashEncoder, repository: str, shared: Path | None = None
) -> Iterator[CodeIndex]:
    """The index of one checkout, which keeps its vectors on the server."""
    chroma = ChromaSettings(mode=ChromaMode.HTTP, host="127.0.0.1", port=port)
    index = CodeIndex(
        root,
        IndexSettings(chroma=chroma),
        encoder=lambda: encoder,
        lister=lister(root),
        shared=lambda: shared,
        repository=lambda: repository,
    )
    try:
        yield index
    finally:
        index.close()


def answers(index: CodeIndex) -> list[list[tuple[str, str]]]:
    """What is found first, with its text: behind it are functions of the same words, and one is as good as the other."""
    return [[(hit.path, hit.text) for hit in index.search(question).hits[:1]] for question in QUESTIONS]


def test_of_four_checkouts_of_one_repository_each_file_is_embedded_once(tmp_path: Path, port: int) -> None:
    """Two clones with a second worktree each, which have a file of their own; each answers as an exact index of its own."""
    embedded = []
    with contextlib.ExitStack() as ends:
        found = []
        for number in range(4):
            root, encoder = tmp_path / str(number), HashEncoder()
            write_files(root, FILES | {f"src/own_{number}.py": f"def of_checkout_{number}():\n    return {number}\n"})
            common = tmp_path / f"clone-{number // 2}"
            index = ends.enter_context(opened(root, port, encoder, "four-checkouts", common))
            index.sync()
            assert manager_of(index).await_ready(60)
            embedded.append(encoder.encoded)
            found.append(index)
        for number, index in enumerate(found):
            assert index.search("login throttle").engine == "chromadb+bm25"
            seen = answers(index)
            cold = tmp_path / f"cold-{number}"
            write_files(
                cold, {path.relative_to(index.root).as_posix(): path.read_bytes() for path in every(index.root)}
            )
            with contextlib.closing(make_index(cold)) as alone:
                alone.sync()
                assert seen == answers(alone)
                chunks = indexed(alone, "chunks")
    assert embedded == [chunks, 1, 1, 1]


def every(root: Path) -> list[Path]:
    """A project's files."""
    return [root / path for path in lister(root)().paths]


def test_what_one_checkout_removes_the_others_still_find_and_another_model_has_a_collection_of_its_own(
    tmp_path: Path, port: int
) -> None:
    first, second, third = HashEncoder(), HashEncoder(), HashEncoder(dim=24, name="another")
    for name in "ab":
        write_files(tmp_path / name, FILES)
    with (
        opened(tmp_path / "a", port, first, "removed") as one,
        opened(tmp_path / "b", port, second, "removed") as other,
    ):
        one.sync()
        assert manager_of(one).await_ready(60)
        other.sync()
        assert manager_of(other).await_ready(60)
        before = answers(other)
        (tmp_path / "a/src/auth/throttle.py").unlink()
        one.sync()
        assert manager_of(one).await_ready(60)
        assert "src/auth/throttle.py" not in {path for path, _ in answers(one)[0]}
        assert answers(other) == before
        assert other.search("login throttle").engine == "chromadb+bm25"
    with opened(tmp_path / "b", port, third, "removed") as index:
        index.sync()
        assert manager_of(index).await_ready(60)
        assert index.search("login throttle").engine == "chromadb+bm25"
    assert (second.encoded, third.encoded) == (0, first.encoded)


def test_where_too_much_of_what_is_near_is_of_others_the_own_vectors_are_compared(tmp_path: Path, port: int) -> None:
    write_files(tmp_path / "many", {f"src/login_{n}.py": f"def login_{n}():\n    login()\n" for n in range(600)})
    write_files(tmp_path / "few", FILES)
    with (
        opened(tmp_path / "many", port, HashEncoder(), "few") as many,
        opened(tmp_path / "few", port, HashEncoder(), "few") as few,
    ):
        for index in (many, few):
            index.sync()
            assert manager_of(index).await_ready(60)
        assert answers(few)[0][0][0] == "src/auth/throttle.py"


def test_without_a_server_everything_is_embedded_here(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    encoder = HashEncoder()
    with opened(tmp_path, free_port(), encoder, "no-server") as index:
        report = index.sync()
        assert encoder.encoded == report.embedded == report.chunks
        assert index.search("login throttle").engine == "sqlite-vectors+bm25"


def test_clones_of_a_repository_are_called_alike(tmp_path: Path) -> None:
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(tmp_path / "first"))
    write_files(tmp_path / "first", SAMPLE)
    for arguments in (
        ("init", "-q"),
        ("add", "."),
        ("commit", "-qm", "one"),
        ("commit", "-qm", "two", "--allow-empty"),
    ):
        subprocess.run([*git, *arguments], check=True)
    subprocess.run(["git", "clone", "-q", str(tmp_path / "first"), str(tmp_path / "second")], check=True)
    (tmp_path / "third").mkdir()
    first, second, third = (ProjectServices(tmp_path / name)._repository() for name in ("first", "second", "third"))
    assert first == second != third == ""
