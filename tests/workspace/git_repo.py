"""A real git repository to try things on, and the sentinel that hashes everything a user could lose in it."""

import hashlib
import os
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Repo:
    """A repository at `path` with branch `main` and a clean home of its own."""

    path: Path

    @classmethod
    def make(cls, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: str) -> "Repo":
        """An empty repository under `folder`; the process's HOME is a clean one from now on."""
        home = folder / "home"
        home.mkdir()
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            monkeypatch.delenv(name)
        (home / ".gitconfig").write_text(
            "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n"
        )
        repo = cls(folder / "project")
        repo.path.mkdir()
        repo.git("init", "-q", *(f"--{name.replace('_', '-')}={value}" for name, value in options.items()))
        return repo

    @classmethod
    def with_files(cls, folder: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> "Repo":
        """A repository with one commit; keyword names are file names with `__` for `.`."""
        repo = cls.make(folder, monkeypatch)
        for name, text in (files or {"a__py": "one = 1\n", "b__py": "two = 2\n"}).items():
            repo.write(name.replace("__", "."), text)
        repo.commit("first")
        return repo

    def git(self, *arguments: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None) -> str:
        """Run git as the user and return what it printed, without the last newline."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            input=stdin,
            capture_output=True,
            env={**os.environ, **(env or {})},
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return os.fsdecode(done.stdout).rstrip("\n")

    def fails(self, *arguments: str) -> bool:
        """Whether this git command fails."""
        done = subprocess.run(["git", *arguments], cwd=self.path, capture_output=True, check=False)
        return done.returncode != 0

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file below the project, making its folders."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def read(self, name: str) -> str:
        """The text of a file."""
        return (self.path / name).read_text("utf-8")

    def commit(self, message: str, *paths: str) -> str:
        """Add (everything, or the paths) and commit; returns the id."""
        self.git("add", "-A", "--", *(paths or (".",)))
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def change(self, files: Mapping[str, str], message: str = "change") -> str:
        """Write files by their names and commit everything; returns the id."""
        for name, text in files.items():
            self.write(name, text)
        return self.commit(message)

    def objects_over(self, size: int) -> list[str]:
        """Ids of the objects of more than this many bytes."""
        rows = self.git("cat-file", "--batch-check=%(objectsize) %(objectname)", "--batch-all-objects").splitlines()
        return [oid for length, oid in (row.split() for row in rows) if int(length) > size]

    def hook(self, name: str, script: str) -> Path:
        """Install an executable hook."""
        path = self.path / ".git" / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        return path

    def files(self) -> dict[str, tuple[str, bytes]]:
        """Every file below the project but `.git`: kind and content."""
        found: dict[str, tuple[str, bytes]] = {}
        for folder, folders, names in os.walk(self.path):
            if ".git" in folders:
                folders.remove(".git")
            for name in [*names, *(f for f in folders if Path(folder, f).is_symlink())]:
                path = Path(folder, name)
                if path.name == ".git":
                    continue
                mode = path.lstat().st_mode
                content = os.fsencode(path.readlink()) if stat.S_ISLNK(mode) else path.read_bytes()
                kind = "link" if stat.S_ISLNK(mode) else "exec" if mode & 0o100 else "file"
                found[path.relative_to(self.path).as_posix()] = (kind, content)
        return found

    def sentinel(self) -> str:
        """A hash over every file, the index, all refs with HEAD, the stash and every reflog."""
        digest = hashlib.sha256(repr(sorted(self.files().items())).encode())
        for arguments in (("ls-files", "-s", "-t", "-z"), ("for-each-ref",), ("symbolic-ref", "-q", "HEAD")):
            digest.update(self.git(*arguments).encode("utf-8", "surrogateescape"))
        for log in sorted((self.path / ".git" / "logs").rglob("*")):
            if log.is_file():
                digest.update(log.read_bytes())
        return digest.hexdigest()
