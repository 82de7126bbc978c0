"""`.code-intel/config.json`: what the project wants of index, proofs, finish and unattended runs.

A broken file never stops anyone: what cannot be used falls back to its default, with a warning that names the line. Which
keys fell back is kept, because a guard that was configured and cannot be read must not pass for one that was never wanted.
"""

import difflib
import errno
import hashlib
import json
import os
import posixpath
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from code_intel_server.common import globs
from code_intel_server.common.own_folder import FOLDER
from code_intel_server.common.printable import printable
from code_intel_server.common.strict_numbers import finite, no_constant
from code_intel_server.workspace.files import read_regular

MAX_CONFIG_BYTES = 256 * 1024
MAX_CONFIG_WARNINGS = 20
WHOLE_FILE = "*"

_Text = Annotated[str, Field(max_length=4096)]
_Argv = Annotated[tuple[_Text, ...], Field(min_length=1, max_length=200)]
_Seconds = Annotated[float, Field(gt=0, le=7200, allow_inf_nan=False)]
Mutants = Literal["auto", "on", "off"]
"""Where tests run on functions that do nothing: where nothing outside can be reached, everywhere, nowhere."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


ABOUT: Mapping[str, str] = {
    "version": "version of this file's form",
    "embedding_model": "`bundled`, or a sentence-transformers model (short name, hub name, local folder) with the extra of that name",
    "source_dirs": "folders that are indexed; empty, or `.`, for all. Lookups by text and name see the whole project",
    "exclude_patterns": "globs that index and lookups leave out, beside `.gitignore`; `gen/**` is anchored at the root, `*.min.js` matches anywhere",
    "chunk_strategy": "how files are cut for the index: by syntax, or into windows of lines",
    "chunk_max_tokens": "the largest chunk",
    "sync_on_start": "bring the index up to date in the background when a session starts",
    "sync_ttl_hours": "how old the index must be for that, in hours; 0 for always",
    "verify_commands": "what the server runs to believe that it works: argument lists, or objects with the keys below",
    "verify_commands.argv": "the program and its arguments; no shell",
    "verify_commands.timeout": "seconds",
    "verify_commands.cwd": "the folder it runs in, below the root",
    "verify_commands.in_place": "run it in the project as it is, never in a clean checkout",
    "verify_limit": "seconds for all runs of one verdict together; 0 for three times the commands' own",
    "verify_mutants": "run the new tests once more where new and changed functions do nothing, and some old ones with their assertions turned round, and name those that pass all the same: `auto` where the system can keep that run from changing, signalling and reaching anything outside (Linux with user namespaces), `on` elsewhere too, with your rights: what a guard would stop goes through",
    "borrowed_folders": "folders that git ignores and tests need: clean checkouts get them, at the root and beside manifests",
    "resolution.scip": "a SCIP index of the project (`index.scip`), below the root: what it knows of a name goes before what the server tells from the text",
    "resolution.language_servers": "the same from language servers that speak over standard input and output: argument lists by language (`python`, `typescript`, ...). They run the repository's code, so only what `trust` allowed is started",
    "outside_sessions": "what the hook does at the end of a turn that changed files outside a session: nothing, say once what no run has proven, or run the trusted commands in the background and say what they showed",
    "lane": "how much of the flow a change is led through where the user gives no flag: a lane, or `advised` for what start_session would advise",
    "finish": "whether a session ends with a merge, or with its branch kept for a pull request",
    "headless.stale_branches": "what is done about left-over task branches where nobody can be asked",
    "headless.escalation": "whether a session stops or goes on where it would have to ask for help",
    "chroma.mode": "ChromaDB in a child process from 50,000 chunks on, or a server that is already there",
    "chroma.host": "its name or address",
    "chroma.port": "its port",
    "chroma.ssl": "speak https",
    "chroma.headers": "sent with every request, for example a token; the file is committed, so mind what it holds",
    "chroma.tenant": "as that server names it",
    "chroma.database": "as that server names it",
}
"""What each setting is for, by its dotted name: the reference is made from it."""


def _passable(argv: tuple[str, ...]) -> tuple[str, ...]:
    if not argv[0].strip() or any(part != printable(part) for part in argv):
        raise ValueError("a program and its arguments, without control characters")
    return argv


class VerifyCommand(_Part):
    """A command that proves the work: `argv` without a shell, run in `cwd` below the root for at most `timeout` seconds."""

    argv: _Argv = Field(strict=False)
    timeout: _Seconds = 300.0
    cwd: _Text = "."
    in_place: bool = False

    @model_validator(mode="before")
    @classmethod
    def _list_is_argv(cls, value: object) -> object:
        if isinstance(value, list):
            return {"argv": value}
        if not isinstance(value, dict):
            raise ValueError('a list of arguments, for example ["python3", "-m", "pytest"]')  # noqa: TRY004 - pydantic's
        return value

    @field_validator("argv")
    @classmethod
    def _can_be_passed(cls, argv: tuple[str, ...]) -> tuple[str, ...]:
        return _passable(argv)


class Finish(StrEnum):
    """How a session ends: merged into its base, or with the task branch kept for a pull request (SPEC 12)."""

    MERGE = "merge"
    BRANCH = "branch"


class Headless(_Part):
    """What is chosen where nobody can be asked; the defaults are the harmless choices."""

    stale_branches: Literal["continue", "delete", "merge"] = "continue"
    escalation: Literal["stop", "continue"] = "stop"


class Resolution(_Part):
    """What the project has of its own that tells what names mean: a SCIP index, language servers by language (SPEC 2)."""

    scip: _Text = ""
    language_servers: dict[str, Annotated[_Argv, Field(strict=False)]] = Field(default_factory=dict, max_length=20)

    @field_validator("scip")
    @classmethod
    def _below_the_root(cls, path: str) -> str:
        path = posixpath.normpath(path.strip()) if path.strip() else ""
        if path.startswith(("/", "../")) or path == "..":
            raise ValueError("a file of the project, named from its root")
        return path

    @field_validator("language_servers")
    @classmethod
    def _can_be_passed(cls, servers: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        return {language: _passable(argv) for language, argv in servers.items()}


class Chroma(_Part):
    """Where ChromaDB runs: in a child process over `.code-intel/chroma`, or as a server."""

    mode: Literal["local", "http"] = "local"
    host: _Text = "localhost"
    port: Annotated[int, Field(ge=1, le=65535)] = 8000
    ssl: bool = False
    headers: dict[str, str] = Field(default_factory=dict)
    tenant: _Text = "default_tenant"
    database: _Text = "default_database"


class Config(_Part):
    """The settings of a project, with the defaults of a project that has none."""

    version: _Text = "1.0"
    embedding_model: _Text = "bundled"
    source_dirs: tuple[_Text, ...] = Field(default=(), max_length=200, strict=False)
    exclude_patterns: tuple[_Text, ...] = Field(
        default=("**/node_modules/**", "**/__pycache__/**"), max_length=500, strict=False
    )
    chunk_strategy: Literal["ast", "text"] = "ast"
    chunk_max_tokens: Annotated[int, Field(ge=64, le=8192)] = 512
    sync_ttl_hours: Annotated[float, Field(ge=0, le=8760, allow_inf_nan=False)] = 1.0
    sync_on_start: bool = True
    verify_commands: tuple[VerifyCommand, ...] = Field(default=(), max_length=50, strict=False)
    verify_limit: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)] = 0.0
    verify_mutants: Mutants = "auto"
    borrowed_folders: tuple[_Text, ...] = Field(default=(".venv", "venv", "node_modules"), max_length=50, strict=False)
    outside_sessions: Literal["off", "remind", "verify"] = "remind"
    lane: Literal["auto", "fast", "quick", "full", "advised"] = "auto"
    finish: Annotated[Finish, Field(strict=False)] = Finish.MERGE
    headless: Headless = Headless()
    chroma: Chroma = Chroma()
    resolution: Resolution = Resolution()

    @field_validator("source_dirs")
    @classmethod
    def _as_paths_are_listed(cls, folders: tuple[str, ...]) -> tuple[str, ...]:
        """`./src/` is `src`: files are compared with these names as they stand."""
        folders = tuple(posixpath.normpath(folder.strip()) for folder in folders)
        if any(folder.startswith(("/", "../")) or folder == ".." for folder in folders):
            raise ValueError("folders of the project, named from its root")
        return folders

    @field_validator("borrowed_folders")
    @classmethod
    def _below_the_root(cls, folders: tuple[str, ...]) -> tuple[str, ...]:
        folders = tuple(posixpath.normpath(folder.strip()) for folder in folders)
        if any(folder.startswith(("/", "..")) or folder in {"", ".", ".git"} for folder in folders):
            raise ValueError("names of folders below the root")
        return folders

    @field_validator("exclude_patterns")
    @classmethod
    def _leave_something(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """With a pattern that ripgrep cannot read it lists no file: the index would be emptied, and no search find anything."""
        for pattern in patterns:
            if not pattern.strip():
                raise ValueError("an empty pattern would exclude everything")
            if why := globs.fault(pattern):
                raise ValueError(f"{pattern!r} cannot be read: {why}")
        return patterns


_DEFAULTS = Config()

_PARTS: Mapping[str, type[BaseModel]] = {
    "verify_commands": VerifyCommand,
    "headless": Headless,
    "chroma": Chroma,
    "resolution": Resolution,
}
"""The keys whose values have keys of their own."""

_IN_JSON = (
    *((f"{kind} should have", "must have") for kind in ("Tuple", "Dictionary", "String")),
    (" after validation, not 0", ""),
    (" after validation", ""),
    ("Input should be a valid tuple", "must be a list"),
    ("Input should be", "must be"),
)
"""What pydantic says of a value, and how it is said of JSON."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration as it was read once: later edits of the file change nothing here.

    `digest` is the SHA-256 of its bytes, '' where there is no file. `fell_back` names keys whose value could not be used,
    WHOLE_FILE where nothing could.
    """

    path: Path
    config: Config = _DEFAULTS
    digest: str = ""
    warnings: tuple[str, ...] = ()
    fell_back: frozenset[str] = frozenset()

    @classmethod
    def load(cls, path: Path) -> "ConfigFile":
        """Read `path`; never raises."""
        try:
            data = read_regular(path, MAX_CONFIG_BYTES)
        except FileNotFoundError:
            return cls(path)
        except OSError as error:
            why = (
                f"larger than {MAX_CONFIG_BYTES // 1024} KB"
                if error.errno == errno.EFBIG
                else error.strerror or str(error)
            )
            return cls(path, warnings=(_warning(1, why),), fell_back=frozenset({WHOLE_FILE}))
        digest = hashlib.sha256(data).hexdigest()
        try:
            text, content = _parsed(data)
        except _Broken as broken:
            return cls(path, Config(), digest, (_warning(broken.line, broken.why),), frozenset({WHOLE_FILE}))
        config, warnings, fell_back = _validated(text, content)
        warnings = (*warnings, *_nothing_to_index(path, text, config.source_dirs))
        return cls(path, config, digest, warnings[:MAX_CONFIG_WARNINGS], fell_back)

    def edited(self) -> "ConfigFile":
        """The file as it serves a session that began with another content of it: nothing in it counts."""
        why = _warning(1, "edited during the session")
        return ConfigFile(self.path, Config(), self.digest, (*self.warnings, why), frozenset({WHOLE_FILE}))

    @property
    def commands(self) -> tuple[Collection[object], ...]:
        """What it names that would run, for which the user has to trust it."""
        return self.config.verify_commands, self.config.resolution.language_servers.items()

    def lost(self, key: str) -> bool:
        """Whether the file may have set `key` and it could not be read."""
        return key in self.fell_back or WHOLE_FILE in self.fell_back


class _Broken(Exception):
    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line
        self.why = why


def _parsed(data: bytes) -> tuple[str, dict[str, object]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _Broken(data.count(b"\n", 0, error.start) + 1, "not UTF-8") from None
    try:
        content = json.loads(text, object_pairs_hook=_unique, parse_constant=no_constant, parse_float=finite)
    except json.JSONDecodeError as error:
        raise _Broken(error.lineno, error.msg) from None
    except _Broken as broken:
        raise _Broken(_line_of(text, broken.why), f"'{broken.why}' stands twice") from None
    except (ValueError, RecursionError) as error:
        raise _Broken(1, str(error)[:100]) from None
    if not isinstance(content, dict):
        raise _Broken(1, "the file must be an object: { ... }")
    return text, content


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content: dict[str, object] = {}
    for name, value in pairs:
        if name in content:
            raise _Broken(1, name)
        content[name] = value
    return content


def _validated(text: str, content: dict[str, object]) -> tuple[Config, tuple[str, ...], frozenset[str]]:
    """The settings that can be used, what is wrong with the others, and which of them fell back to their default."""
    known = {name: value for name, value in content.items() if name in Config.model_fields}
    warnings = [
        _warning(_line_of(text, name), f"unknown key '{printable(name)[:60]}'{_meant(name, Config)}")
        for name in content.keys() - known.keys()
    ]
    fell_back: set[str] = set()
    while True:
        try:
            return Config.model_validate(known), tuple(sorted(warnings, key=_by_line)), frozenset(fell_back)
        except ValidationError as error:
            for problem in error.errors(include_url=False, include_context=False):
                name = str(problem["loc"][0])
                where = ".".join(str(part) for part in problem["loc"])
                why = f"{printable(where)[:100]}: {printable(_problem_text(problem))}; the default serves"
                warnings.append(_warning(_line_of(text, name), why))
                known.pop(name, None)
                fell_back.add(name)


def _nothing_to_index(path: Path, text: str, folders: tuple[str, ...]) -> tuple[str, ...]:
    """What is reported where none of the source folders is there: the index would be empty without a word."""
    if not folders or path.parent.name != FOLDER:
        return ()
    if any(os.path.exists(path.parents[1] / folder) for folder in folders):  # noqa: PTH110 - raises for no name
        return ()
    said = f"source_dirs: {printable(', '.join(folders))[:200]}: none of them is in the project, so nothing is indexed"
    return (_warning(_line_of(text, "source_dirs"), said),)


def _problem_text(problem: ErrorDetails) -> str:
    """What pydantic found, in words for people."""
    if problem["type"] == "extra_forbidden":
        part = _PARTS.get(str(problem["loc"][0]))
        return f"unknown key{_meant(str(problem['loc'][-1]), part) if part else ''}"
    if problem["type"] == "missing":
        return "is missing"
    if problem["type"] in {"model_type", "dict_type"}:
        return "must be an object"
    said = problem["msg"].removeprefix("Value error, ")
    for theirs, ours in _IN_JSON:
        said = said.replace(theirs, ours)
    return said


def _meant(name: str, part: type[BaseModel]) -> str:
    near = difflib.get_close_matches(name, part.model_fields, n=1)
    return f" (did you mean '{near[0]}'?)" if near else f" (known are {', '.join(part.model_fields)})"


def _line_of(text: str, name: str) -> int:
    """The line where a key first stands, as good as a search can tell; 1 where it cannot."""
    found = re.search(re.escape(json.dumps(name, ensure_ascii=False)) + r"\s*:", text)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def _warning(line: int, why: str) -> str:
    return f"line {line}: {why}"


def _by_line(warning: str) -> int:
    return int(warning.removeprefix("line ").partition(":")[0])
