"""Which engine tags a file, and the tags in one vocabulary whichever it was.

Universal Ctags tags a large tree in a second; a syntax tree is one to two orders slower but knows languages ctags does not.
`Language.tree` says where the tree's answer is the better one (`benchmarks/definitions.md`).
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from code_intel_server.codebase.files.languages import LANGUAGES, Language, LanguageKind, language_of
from code_intel_server.codebase.files.roles import Role, role
from code_intel_server.codebase.files.text import decode, is_binary, read_bytes
from code_intel_server.codebase.symbols import ctags
from code_intel_server.codebase.symbols.ctags import Tag
from code_intel_server.codebase.symbols.names import style_kind
from code_intel_server.codebase.syntax.markup import less_names
from code_intel_server.codebase.syntax.values import Symbol, SymbolKind

SYNTAX_TREE = "tree-sitter"
NO_ENGINE = ""
"""Who tags a file in a language that neither ctags nor a query file of ours knows."""
_MODULES = frozenset({SymbolKind.MODULE, SymbolKind.NAMESPACE})

_MISREAD = {
    "go": re.compile(rb"^(?:func \([^()\n]*\[|type \w+\[\w+ |\t+type \w+ )", re.MULTILINE),
    "java": re.compile(
        rb"\brecord\s+\w+\s*[(<]|\bnew\s+[\w.]+(?:<[^<>;(){}]{0,80}>)?\s*\([^;{}]{0,200}\)\s{0,80}\{|^(?:open )?module [\w.]+ ?\{",
        re.MULTILINE,
    ),
}
"""What ctags 5.9 takes for something else, in languages that it reads well otherwise: type parameters, records; or misses: types within functions, classes without a name, modules."""

_ANNOTATED = re.compile(rb"[ \t]+([^\W\d]\w*)[ \t]*:[ \t]*[\w\"'\[]")
"""A line of a class's body that may declare a field by its type."""

_NAMED_ABOVE = frozenset({"go", "php"})
"""Languages in which a line names the package or namespace of all that follows, and which is reported with every name."""

_UNTAGGED_KINDS = frozenset({LanguageKind.DOCS, LanguageKind.CONFIG, LanguageKind.MARKUP})
_WHOLE_NAMES = frozenset(name for language in LANGUAGES for name in language.file_names)
_TAGGED_ANYWAY = frozenset({"makefile", "terraform", "hcl", "cmake", "vue", "svelte", "astro"})


@dataclass(frozen=True, slots=True)
class FileTags:
    """What one file defines and which engine said so (NO_ENGINE: nobody looked)."""

    path: str
    engine: str
    tags: tuple[Tag, ...]


@dataclass(frozen=True, slots=True)
class Tagging:
    """A batch of files tagged."""

    files: tuple[FileTags, ...]
    problems: tuple[str, ...] = ()


def taggable(path: str) -> bool:
    """Whether a file may define symbols, by its name alone (a name without an ending may turn out to be a script)."""
    return _taggable_name(_name_like(path))


def _name_like(path: str) -> str:
    """A name that tells as much as the path's own: one for all files of an ending, so that what it tells can be kept."""
    name = path.rsplit("/", 1)[-1]
    stem, dot, ending = name.rpartition(".")
    return f"x.{ending}" if dot and stem and name.lower() not in _WHOLE_NAMES else name


@lru_cache(maxsize=4096)
def _taggable_name(name: str) -> bool:
    language = language_of(name)
    if language is None:
        return "." not in name
    return language.kind not in _UNTAGGED_KINDS or language.name in _TAGGED_ANYWAY


def content_keys(root: Path, paths: Iterable[str]) -> dict[str, bytes]:
    """What the files' tags are found by: files with the same key have the same; without those that cannot be read."""
    reads = ctags.reader()
    keys: dict[str, bytes] = {}
    for path in paths:
        if (data := read_bytes(root, path)) is not None:
            key = hashlib.blake2b(data, digest_size=20)
            key.update(
                os.fsencode(f"\0{path.rsplit('/', 1)[-1]}\0{role(path) is Role.VENDORED}{reads(_name_like(path))}")
            )
            keys[path] = key.digest()
    return keys


def tag_files(root: Path, paths: Sequence[str], *, seconds: float = 20.0) -> Tagging:
    """Tag `paths` (relative), each by the better engine that is there; files without symbols have empty tags.

    Those that ctags does not know and that cannot be read are left out.
    """
    reads = ctags.reader()
    has_ctags = ctags.ctags_program() is not None
    by_tree = [
        path
        for path in paths
        if not has_ctags or not ctags.accepts(path) or _prefers_tree(path, reads) or _is_misread(root, path)
    ]
    by_ctags = sorted(set(paths).difference(by_tree))
    tagged = ctags.tag(root, by_ctags, seconds=seconds) if by_ctags else ctags.Tagged({})
    if tagged.problem:
        # One poisonous file must not cost the others their symbols.
        by_tree, by_ctags = [*by_tree, *by_ctags], []
    files = [FileTags(path, ctags.ENGINE, _with_fields(root, path, tagged.tags.get(path, ()))) for path in by_ctags]
    files += filter(None, (_by_tree(root, path) for path in by_tree))
    return Tagging(tuple(files), (tagged.problem,) if tagged.problem else ())


def _with_fields(root: Path, path: str, tags: Sequence[Tag]) -> tuple[Tag, ...]:
    """The tags, and of a class of Python the fields that are only annotated (`width: int`), which ctags leaves out."""
    if not path.endswith(".py") or not any(tag.kind == SymbolKind.CLASS for tag in tags):
        return tuple(tags)
    found = []
    known = {(tag.name, tag.start_line) for tag in tags}
    for number, line in enumerate((read_bytes(root, path) or b"").split(b"\n"), 1):
        field = _ANNOTATED.match(line)
        if field is None:
            continue
        around = [tag for tag in tags if tag.start_line < number <= tag.end_line]
        owner = max(around, key=lambda tag: tag.start_line, default=None)
        name = decode(field[1])
        if owner is not None and owner.kind == SymbolKind.CLASS and (name, number) not in known:
            scope = f"{owner.scope}.{owner.name}" if owner.scope else owner.name
            found.append(Tag(name, SymbolKind.FIELD.value, scope, "", number, number, owner.language))
    return (*tags, *found)


@lru_cache(maxsize=65536)
def _prefers_tree(path: str, reads: Callable[[str], bool]) -> bool:
    if role(path) is Role.VENDORED:
        return False  # other people's bundles: large, and rarely asked about
    language = language_of(path)
    # A name that tells nothing may be a script, whose first line tells; ctags would not look.
    return language is None or language.tree or not reads(_name_like(path))


def _is_misread(root: Path, path: str) -> bool:
    language = language_of(path)
    pattern = _MISREAD.get(language.name) if language else None
    return pattern is not None and pattern.search(read_bytes(root, path) or b"") is not None


def _by_tree(root: Path, path: str) -> FileTags | None:
    from code_intel_server.codebase.syntax import structure

    data = read_bytes(root, path)
    if data is None:
        return None
    language = None if is_binary(data) else language_of(path, data)
    if language is not None and not structure.has_queries(language):
        return FileTags(path, NO_ENGINE, ())
    return FileTags(path, SYNTAX_TREE, _outlined(data, language) if language else ())


def _outlined(data: bytes, language: Language) -> tuple[Tag, ...]:
    from code_intel_server.codebase.syntax import structure

    outline = structure.outline(data, language)
    tags = tuple(_tag(symbol, language, package) for symbol, package in _packed(outline.symbols, language))
    return (*tags, *_missed(data, language, tags)) if language.name == "less" and outline.has_errors else tags


def _missed(data: bytes, language: Language, tags: Sequence[Tag]) -> Iterator[Tag]:
    """What patterns read of Less that its grammar, which is another's, makes no tree of."""
    known = {(tag.name, tag.start_line) for tag in tags}
    for marked, line in less_names(decode(data)):
        kind = style_kind(marked)
        name = marked[1:] if kind else marked
        if (name, line) not in known:
            yield Tag(name, kind or SymbolKind.VARIABLE.value, "", "", line, line, language.name)


def _packed(symbols: Sequence[Symbol], language: Language) -> Iterator[tuple[Symbol, str]]:
    """The symbols, each with the namespace or package that a line above it names for all that follows."""
    package, end = "", 0
    for symbol in symbols:
        yield symbol, package if symbol.start_byte > end else ""
        if language.name in _NAMED_ABOVE and symbol.kind in _MODULES and symbol.parent_index is None:
            package, end = symbol.name.replace("\\", "."), symbol.end_byte


def _tag(symbol: Symbol, language: Language, package: str) -> Tag:
    """A symbol by the name it is asked for: of a module `My.Mod` the last part, `#name` and `r#name` without their marks."""
    scope, name = symbol.scope.replace("\\", "."), symbol.name.removeprefix("r#").removeprefix("#")
    if symbol.kind in _MODULES:
        outer, _, name = name.replace("\\", ".").rpartition(".")
        scope = ".".join(filter(None, (scope, outer)))
    elif package:
        scope = ".".join(filter(None, (package, scope)))
    return Tag(name, symbol.kind.value, scope, symbol.signature, symbol.line, symbol.end_line, language.name)
