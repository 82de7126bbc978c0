"""Builds small projects on disk for the lookup tests."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from code_intel_server.codebase.explorer import Explorer


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write `files` below `root`, making their folders."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def explorer(root: Path, files: Mapping[str, str | bytes], *exclude: str) -> Explorer:
    """An explorer of a project that holds `files`."""
    return Explorer(write(root, files), exclude)


def program(folder: Path, name: str, script: str) -> Path:
    """An executable `name` in `folder` that runs a shell script."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def only_on_path(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Put `folders` before the system's own programs, so that a fake one is found first."""
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, folders), os.environ["PATH"]]))
