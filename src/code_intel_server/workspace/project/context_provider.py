"""The two layers of context: the project's rules at session start, its documents in DOCUMENT_RESEARCH (SPEC 11).

`context.yml` belongs to the user: reading it constructs nothing (`contract.strict_yaml`), and `update_context` puts the new
summary in the place of the old one and leaves every other line, comments included, as it is.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from code_intel_server.common.printable import printable
from code_intel_server.contract import Broken, Node, Scalar, Table
from code_intel_server.contract import Sequence as ListNode
from code_intel_server.errors import Rejected, state_unavailable
from code_intel_server.workspace.files import read_regular, write_whole
from code_intel_server.workspace.paths import FOLDER, Project, glob_filter
from code_intel_server.workspace.project.context_edit import with_values
from code_intel_server.workspace.project.document_ranking import MAX_READ, rank_documents
from code_intel_server.workspace.project.document_walk import matching_documents
from code_intel_server.workspace.project.prompts import PromptLibrary
from code_intel_server.workspace.project.rule_lines import own_lines
from code_intel_server.workspace.values import Prompt

MAX_CONTEXT_BYTES = 256 * 1024
MAX_SOURCE_BYTES = 4 * 1024 * 1024
MAX_SUMMARY_CHARACTERS = 16_000
MIN_SUMMARY_CHARACTERS = 10
MAX_DOCUMENT_PATTERNS = 200
MAX_RESOURCES = 50

RULE_SOURCES = ("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md")
"""Where project rules are looked for when `context.yml` names no source that exists, in this order."""

CLIENT_FILES = (
    f"{FOLDER}/**",
    ".claude/**",
    ".codex/**",
    ".agents/**",
    ".mcp.json",
    ".opencode/**",
    "/opencode.json*",
    ".gemini/**",
    ".qwen/**",
    ".cursor/**",
    ".vscode/**",
    ".github/{hooks,skills}/**",
    "/CLAUDE.md",
    "/AGENTS.md",
)
"""What set-up writes and clients read: no documents of the project (SPEC 4)."""


@dataclass(frozen=True, slots=True)
class Context:
    """`context.yml` as it was read once. `rules_source` is '' where it names none, `rules_hash` that of the summarised source.

    `warnings` name lines that could not be used.
    """

    rules_source: str = ""
    rules_summary: str = ""
    rules_hash: str = ""
    research_enabled: bool = True
    docs_path: tuple[str, ...] = ()
    default_prompts: tuple[str, ...] = ("default.md",)
    include_patterns: tuple[str, ...] = ("**/*.md", "**/*.rst", "**/*.adoc")
    exclude_patterns: tuple[str, ...] = ("**/node_modules/**",)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectRules:
    """Layer 1 as `start_session` returns it. `update_required` where the source is not the one that was summarised."""

    source: str
    summary: str
    source_hash: str
    update_required: bool


class ContextProvider:
    """The project's context and prompts for one session, read when it is made."""

    def __init__(self, project: Project, library: PromptLibrary | None = None) -> None:
        self._project = project
        self.library = PromptLibrary.load(project) if library is None else library
        self.context = load_context(project.context_file)

    def project_rules(self) -> ProjectRules:
        """The rules' summary, and whether its source has changed since it was written."""
        source = self._rules_source()
        source_hash = self._hash_of(source) if source else ""
        stale = bool(source) and (not self.context.rules_summary or source_hash != self.context.rules_hash)
        return ProjectRules(source, printable(self.context.rules_summary), source_hash, stale)

    def update_context(self, summary: str) -> ProjectRules:
        """Store a new summary and the hash of the source it was made from; the rest of the file stays as the user wrote it.

        Raises Rejected('tool_errors.update_context.summary_required') for an empty or unusable text,
        Rejected('tool_errors.update_context.context_broken') where `context.yml` cannot be read, and
        Unavailable('tool_errors.generic.state_unavailable') where it cannot be written.
        """
        text = _usable_summary(summary)
        source = self._rules_source()
        path = self._project.context_file
        try:
            self._project.writable()
            present = read_regular(path, MAX_CONTEXT_BYTES) if os.path.lexists(path) else b""
            values = {"source": source or RULE_SOURCES[0], "summary": text, "source_hash": self._hash_of(source)}
            changed = with_values(present, "project_rules", values)
            write_whole(path, changed, 0o644)
        except Broken as broken:
            raise Rejected(
                "tool_errors.update_context.context_broken", line=broken.line, error=broken.problem
            ) from None
        except OSError as error:
            raise state_unavailable(f"{FOLDER}/{path.name}", error) from error
        self.context = load_context(path)
        return self.project_rules()

    def any_document(self) -> bool:
        """Whether some project document matches `document_search`; our scaffold and client files are none."""
        return next(self.documents(), None) is not None

    def documents_for(self, query: str, most: int) -> tuple[str, ...]:
        """At most `most` of the project's documents, those that speak about the query first; `document_ranking.rank`."""
        return rank_documents(self._project.root, [*islice(self.documents(), MAX_READ)], query, most)

    def documents(self) -> Iterator[str]:
        """The project's documents that match `document_search`, those below `docs_path` first."""
        if not self.context.research_enabled:
            return
        wanted = glob_filter(self.context.include_patterns)
        unwanted = glob_filter((*self.context.exclude_patterns, *CLIENT_FILES))
        starts = [*(path for given in self.context.docs_path if (path := self._folder(given))), "."]
        yield from matching_documents(self._project.root, starts, lambda path: wanted(path) and not unwanted(path))

    def _folder(self, given: str) -> str:
        """A folder of the project as it is listed; '' where there is none of that name."""
        try:
            path = self._project.inside(given)
        except Rejected:
            return ""
        return path if (self._project.root / path).is_dir() else ""

    def find_prompt(self, kind: str, name: str) -> Prompt | None:
        """The prompt of `kind` that `name` names by stem, file name or path."""
        return self.library.find(kind, name)

    def prompts(self, kind: str) -> tuple[Prompt, ...]:
        """All prompts of a kind, the project's before the packaged."""
        return self.library.prompts(kind)

    def chosen_research(self) -> tuple[Prompt, ...]:
        """The doc_research prompts that `default_prompts` names, in its order; all where it names none that is there."""
        named = (self._prompt(name) for name in self.context.default_prompts)
        return tuple(dict.fromkeys(filter(None, named))) or self.library.prompts("doc_research")

    def missing_research(self) -> tuple[str, ...]:
        """What `default_prompts` names and is not there."""
        missing = (name for name in self.context.default_prompts if not self._prompt(name))
        return tuple(f"default_prompts: there is no prompt '{printable(name)}'" for name in missing)

    def _prompt(self, name: str) -> Prompt | None:
        return self.library.find("doc_research", name)

    def existing(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of the `.code-intel/*` names (globs allowed) that exist as files, as project-relative paths, at most 50."""
        found: dict[str, None] = {}
        for name in names:
            found.update(dict.fromkeys(self._matching(name.removeprefix("./"))))
        return tuple(found)[:MAX_RESOURCES]

    def _matching(self, name: str) -> list[str]:
        below = name.removeprefix(f"{FOLDER}/")
        if below == name or ".." in below.split("/"):
            return []
        folder = (self._project.home_folder / below).parent
        matches = glob_filter((f"/{below}",))
        try:
            files = [file for file in folder.iterdir() if file.is_file() and not file.is_symlink()]
        except OSError:
            return []
        inside = (file.relative_to(self._project.home_folder).as_posix() for file in files)
        return sorted(f"{FOLDER}/{path}" for path in inside if matches(path))

    def _rules_source(self) -> str:
        """The project-relative source of the rules, '' where no file holds more than set-up wrote."""
        configured = [self.context.rules_source] if self.context.rules_source else []
        for name in (*configured, *RULE_SOURCES):
            try:
                path = self._project.inside(name)
            except Rejected:
                continue
            if (self._project.root / path).is_file() and self._has_rules(path):
                return path
        return ""

    def _has_rules(self, source: str) -> bool:
        try:
            text = read_regular(self._project.root / source, MAX_SOURCE_BYTES).decode("utf-8", "replace")
        except OSError:
            return True  # what cannot be read here the agent may still be able to read
        return bool(own_lines(text.splitlines()))

    def _hash_of(self, source: str) -> str:
        try:
            return hashlib.sha256(read_regular(self._project.root / source, MAX_SOURCE_BYTES)).hexdigest()
        except OSError:
            return ""


def load_context(path: Path) -> Context:
    """Read `context.yml`; a missing or broken file gives the defaults, with a warning that names the line. Never raises."""
    try:
        data = read_regular(path, MAX_CONTEXT_BYTES)
    except FileNotFoundError:
        return Context()
    except OSError as error:
        return Context(warnings=(f"line 1: {error.strerror or error}",))
    from code_intel_server.contract import parse_yaml

    try:
        return _Reader().read(parse_yaml(data))
    except Broken as broken:
        return Context(warnings=(f"line {broken.line}: {broken.problem}",))


_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "project_rules": ("source", "summary", "source_hash"),
    "doc_research": ("enabled", "docs_path", "default_prompts"),
    "document_search": ("include_patterns", "exclude_patterns"),
}
"""What can be in `context.yml`."""


class _Reader:
    """Turns nodes into a Context, keeping defaults where a value has the wrong form."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def read(self, root: Table) -> Context:
        """The context a document gives; what it does not say, or says wrongly, is the default's."""
        defaults = Context()
        self._known(root.items, _SECTIONS, "")
        rules = self._section(root, "project_rules")
        research = self._section(root, "doc_research")
        search = self._section(root, "document_search")
        return Context(
            rules_source=self._text(rules, "source", ""),
            rules_summary=self._text(rules, "summary", ""),
            rules_hash=self._text(rules, "source_hash", ""),
            research_enabled=self._flag(research, "enabled", default=True),
            docs_path=self._texts(research, "docs_path", defaults.docs_path),
            default_prompts=self._texts(research, "default_prompts", defaults.default_prompts),
            include_patterns=self._texts(search, "include_patterns", defaults.include_patterns),
            exclude_patterns=self._texts(search, "exclude_patterns", defaults.exclude_patterns),
            warnings=tuple(self.warnings),
        )

    def _section(self, root: Table, name: str) -> Mapping[str, Node]:
        node = root.items.get(name)
        if isinstance(node, Table):
            self._known(node.items, _SECTIONS[name], f"{name}.")
            return node.items
        if node is not None and not _is_null(node):
            self._warn(node, f"{name} must be a mapping")
        return {}

    def _known(self, items: Mapping[str, Node], names: Iterable[str], before: str) -> None:
        """Warn of what nothing reads: most likely it is misspelt."""
        for name, node in items.items():
            if name not in names:
                there_are = ", ".join(names)
                self.warnings.append(
                    f"line {node.line}: nothing reads {before}{printable(name)}; there are {there_are}"
                )

    def _text(self, section: Mapping[str, Node], name: str, default: str) -> str:
        node = section.get(name)
        if isinstance(node, Scalar):
            return "" if _is_null(node) else node.text
        if node is not None:
            self._warn(node, f"{name} must be a text")
        return default

    def _flag(self, section: Mapping[str, Node], name: str, *, default: bool) -> bool:
        node = section.get(name)
        if node is None:
            return default
        if isinstance(node, Scalar) and node.text.lower() in {"true", "yes", "on", "false", "no", "off"}:
            return node.text.lower() in {"true", "yes", "on"}
        self._warn(node, f"{name} must be true or false")
        return default

    def _texts(self, section: Mapping[str, Node], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        node = section.get(name)
        if isinstance(node, Scalar) and not _is_null(node):
            return (node.text,)
        if isinstance(node, ListNode) and all(isinstance(item, Scalar) for item in node.items):
            return tuple(item.text for item in node.items[:MAX_DOCUMENT_PATTERNS] if isinstance(item, Scalar))
        if node is not None and not _is_null(node):
            self._warn(node, f"{name} must be a list of texts")
        return default

    def _warn(self, node: Node, problem: str) -> None:
        self.warnings.append(f"line {node.line}: {problem}; the default serves")


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.plain and node.text in {"", "~", "null"}


def _usable_summary(summary: object) -> str:
    text = re.sub(r"\r\n?", "\n", summary).strip() if isinstance(summary, str) else ""
    if not MIN_SUMMARY_CHARACTERS <= len(text) <= MAX_SUMMARY_CHARACTERS:
        raise Rejected(
            "tool_errors.update_context.summary_required",
            least=MIN_SUMMARY_CHARACTERS,
            most=MAX_SUMMARY_CHARACTERS,
            found=len(text),
        )
    return printable(text)
