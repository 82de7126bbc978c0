"""The doctor's look at the machine: interpreter, programs, libraries."""

import platform
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from code_intel_server import __version__, process
from code_intel_server.cli.console import explained
from code_intel_server.cli.doctor.finding import Finding, bad, good, warning
from code_intel_server.cli.init.proposals import install_command
from code_intel_server.errors import Unavailable

_GIT_AT_LEAST = (2, 38)
_PYTHON_AT_LEAST = (3, 11)


def programs(root: Path) -> Iterator[Finding]:
    """Python, git, ripgrep, Universal Ctags."""
    version = platform.python_version()
    if sys.version_info < _PYTHON_AT_LEAST:
        yield bad("python", version, "install Python 3.11 or newer and set code-intel up with it")
    else:
        yield good("python", f"{version}, code-intel {__version__}")
    yield _git(root)
    yield _ripgrep(root)
    yield _ctags(root)


def _git(root: Path) -> Finding:
    said = _version(["git", "--version"], root)
    found = re.search(r"(?<!\d)(\d+)\.(\d+)", said)
    if found is None:
        return bad("git", "not found", f"install it: {_install('git')}")
    if (int(found[1]), int(found[2])) < _GIT_AT_LEAST:
        return bad("git", said, "merging without touching your files needs git 2.38 or newer")
    return good("git", said.removeprefix("git version "))


def _ripgrep(root: Path) -> Finding:
    from code_intel_server.codebase.files import ripgrep

    try:
        program = ripgrep.ripgrep_program()
    except Unavailable:
        return bad("ripgrep", "not found", f"install it: {_install('ripgrep')}")
    if not (said := _version([program, "--version"], root)):
        return bad("ripgrep", f"{program} cannot be started", f"install it: {_install('ripgrep')}")
    return good("ripgrep", f"{said} ({program})")


def _ctags(root: Path) -> Finding:
    from code_intel_server.codebase.symbols import ctags

    program = ctags.ctags_program()
    if program is None:
        said = "Universal Ctags not found: definitions come from tree-sitter"
        return warning("ctags", said, f"for more languages: {_install('universal-ctags')}")
    return good("ctags", _version([program, "--version"], root).split(",")[0])


def libraries(_root: Path) -> Iterator[Finding]:
    """Grammars, embedding model, ChromaDB: each tried, not only looked for."""
    yield _grammars()
    yield _model()
    yield _chroma()


def _grammars() -> Finding:
    try:
        from code_intel_server.codebase.syntax.grammars import Parsed  # noqa: F401 - loading it is the trial
    except (ImportError, OSError) as error:
        return bad("grammars", str(error), "reinstall code-intel-server")
    return good("grammars", "loaded")


def _model() -> Finding:
    from code_intel_server.index.vectors.embedding import load_encoder

    try:
        vector = load_encoder("bundled").encode(["a word"], "query")
    except (Unavailable, OSError, ValueError, ImportError) as error:
        why = explained(error) if isinstance(error, Unavailable) else str(error)
        return bad("embedding", why, "reinstall code-intel-server; until then search goes by words")
    return good("embedding", f"bundled, {vector.shape[1]} dimensions")


def _chroma() -> Finding:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return good("chromadb", version("chromadb"))
    except PackageNotFoundError:
        return warning("chromadb", "not installed: vectors are searched in SQLite", "reinstall code-intel-server")


def _version(argv: list[str], root: Path) -> str:
    """The first line a program says of itself; '' where it cannot be started."""
    try:
        done = process.run(argv, cwd=root, timeout=20, env=process.clean_environment())
    except OSError:
        return ""
    return done.stdout.decode("utf-8", "replace").partition("\n")[0].strip()


def _install(package: str) -> str:
    return shlex.join(install_command(package)) or f"your package manager, package {package}"
