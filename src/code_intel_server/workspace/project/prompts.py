"""Prompts: the procedures an agent may name in a payload, the project's own and the packaged ones besides them.

Read once when a session starts: an edit during the session is named by `changed` and takes effect with the next (SPEC 5).
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from code_intel_server.common.printable import printable
from code_intel_server.common.resources import templates_dir
from code_intel_server.workspace.files import read_regular
from code_intel_server.workspace.paths import FOLDER, Project, printable_path
from code_intel_server.workspace.values import Prompt

MAX_PROMPT_BYTES = 64 * 1024
MAX_PROMPTS = 100


class PromptKind(StrEnum):
    """A kind of prompt; its value is the folder, or the file without `.md`, under `.code-intel/`."""

    VERIFIERS = "verifiers"
    INTERVENTIONS = "interventions"
    REVIEW_PROMPTS = "review_prompts"
    DOC_RESEARCH = "doc_research"
    USER_ESCALATION = "user_escalation"
    TASK_PLANNING = "task_planning"


_SINGLE = {PromptKind.USER_ESCALATION, PromptKind.TASK_PLANNING}


@dataclass(frozen=True, slots=True)
class PromptLibrary:
    """All prompts as they were when they were read; `hashes` maps the project's own to the SHA-256 of their bytes."""

    all: Mapping[str, tuple[Prompt, ...]]
    hashes: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @classmethod
    def load(cls, project: Project, packaged: Path | None = None) -> "PromptLibrary":
        """Read the project's prompts and, for names it does not have, the packaged ones. Never raises."""
        defaults = packaged if packaged is not None else templates_dir() / "code-intel"
        found: dict[str, tuple[Prompt, ...]] = {}
        hashes: dict[str, str] = {}
        warnings: list[str] = []
        for kind in PromptKind:
            own: list[Prompt] = []
            for file in _files(project.home_folder, kind):
                path = f"{FOLDER}/{file.relative_to(project.home_folder).as_posix()}"
                try:
                    data = read_regular(file, MAX_PROMPT_BYTES)
                except OSError as error:
                    warnings.append(f"{printable_path(path)}: {error.strerror or error}; not used")
                    continue
                hashes[path] = hashlib.sha256(data).hexdigest()
                own.append(_prompt(kind, path, data, packaged=False))
            names = {prompt.name for prompt in own}
            found[kind] = (*own, *(prompt for prompt in _packaged(defaults, kind) if prompt.name not in names))
        return cls(found, hashes, tuple(warnings))

    def prompts(self, kind: str) -> tuple[Prompt, ...]:
        """All prompts of a kind, the project's before the packaged; none for a kind that is not."""
        return self.all.get(kind, ())

    def find(self, kind: str, name: str) -> Prompt | None:
        """The prompt of `kind` that `name` names: by stem, file name, or path from the kind, `.code-intel` or the root."""
        wanted = name.strip().removeprefix("./")
        for prompt in self.prompts(kind):
            if wanted in _names(prompt):
                return prompt
        return None


def _packaged(defaults: Path, kind: PromptKind) -> list[Prompt]:
    return [
        _prompt(kind, f"{FOLDER}/{file.relative_to(defaults).as_posix()}", file.read_bytes(), packaged=True)
        for file in _files(defaults, kind)
    ]


def _files(folder: Path, kind: PromptKind) -> list[Path]:
    """The Markdown files of a kind by name; links and what lies behind a linked folder are none."""
    if kind in _SINGLE:
        return [file] if os.path.lexists(file := folder / f"{kind}.md") else []
    if (folder / kind).is_symlink():
        return []
    return sorted(_markdown(folder / kind))[:MAX_PROMPTS]


def _markdown(folder: Path) -> Iterable[Path]:
    try:
        return [file for file in folder.iterdir() if file.suffix == ".md" and not file.name.startswith(".")]
    except OSError:
        return []


def _prompt(kind: PromptKind, path: str, data: bytes, *, packaged: bool) -> Prompt:
    text = printable(data.decode("utf-8-sig", "replace").replace("\r\n", "\n"))
    return Prompt(
        kind=kind.value, name=printable_path(Path(path).stem), path=printable_path(path), text=text, packaged=packaged
    )


def _names(prompt: Prompt) -> set[str]:
    below = prompt.path.removeprefix(f"{FOLDER}/")
    return {prompt.name, Path(prompt.path).name, below, prompt.path}
