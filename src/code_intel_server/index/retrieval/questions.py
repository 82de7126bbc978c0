"""Takes a question apart: what kind it is, which names it mentions, which words to look for, what files it asks for."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from code_intel_server.index.retrieval.lexical import STOP_WORDS, expand, query_terms
from code_intel_server.index.vectors.placement import aside


class QueryKind(StrEnum):
    """What a question looks like; decides which score leads."""

    SYMBOL = "symbol"
    PATH = "path"
    NATURAL = "natural"


_IDENTIFIER = r"[A-Za-z_$][\w$]*[!?]?"
_SYMBOL = re.compile(rf"^{_IDENTIFIER}(?:(?:::|->|[.#\\/]){_IDENTIFIER})*(?:\(\))?$")
_CODE_NAME = re.compile(r"\b(?:[A-Za-z]+_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|_\w+)\b|`([^`]+)`")
_CAPITAL = re.compile(r"\b[A-Z]\w+\b")
SEPARATOR = re.compile(r"::|->|[.#\\/]")
_PATH_LIKE = re.compile(r"^[\w@~.-]*(?:/[\w@.-]+)+/?$|^[\w-]+\.[a-z]{1,5}$")


@dataclass(frozen=True, slots=True)
class Question:
    """A query taken apart: `terms` are the stemmed words to look for, `names` the identifiers it mentions.

    `hints` are words that may be names: those with a capital letter, and a lone word.
    """

    text: str
    kind: QueryKind
    names: tuple[str, ...]
    hints: tuple[str, ...]
    terms: tuple[str, ...]
    wants: frozenset[str]
    """The kinds of files it asks for by name: test, example, vendored, generated, doc."""


_ASKS: Mapping[str, frozenset[str]] = {
    "test": frozenset({"test", "tests", "testing", "tested", "spec", "specs", "fixture", "fixtures", "mock"}),
    "vendored": frozenset({"vendor", "vendored", "third-party"}),
    "generated": frozenset({"generated"}),
    "example": frozenset({"example", "examples", "sample", "demo", "benchmark", "benchmarks"}),
    "compat": frozenset({"compat", "compatibility", "legacy", "deprecated", "deprecation"}),
    "doc": frozenset({"doc", "docs", "documentation", "readme", "changelog", "guide", "tutorial"}),
    "data": frozenset(
        {"config", "configuration", "json", "yaml", "toml", "xml", "settings", "workflow", "ci", "package"}
    ),
}


def understand(query: str) -> Question:
    """Take a query apart."""
    text = query.strip()
    words = {word.lower() for word in re.findall(r"[\w-]+", text)}
    kind, names = _kind_and_names(text)
    # A sentence begins with a capital letter whatever its first word is.
    capitals = [found[0] for found in _CAPITAL.finditer(text) if found.start() or " " not in text]
    hints = tuple(dict.fromkeys(word for word in capitals if word.lower() not in STOP_WORDS and word not in names))
    wants = frozenset(aside for aside, asking in _ASKS.items() if words & asking)
    return Question(text, kind, names, hints, tuple(query_terms(text)), wants)


def _kind_and_names(text: str) -> tuple[QueryKind, tuple[str, ...]]:
    if _PATH_LIKE.match(text) and not _SYMBOL_CALL.match(text):
        return QueryKind.PATH, ()
    if _SYMBOL.match(text):
        bare = text.removesuffix("()")
        last = SEPARATOR.split(bare)[-1]
        if bare != bare.lower() or "_" in bare or last != bare or text != bare:
            return QueryKind.SYMBOL, tuple(dict.fromkeys((last, bare)))
        return QueryKind.SYMBOL, (bare,)
    names = [SEPARATOR.split(found[1] or found[0])[-1] for found in _CODE_NAME.finditer(text)]
    return QueryKind.NATURAL, tuple(dict.fromkeys(names))


_SYMBOL_CALL = re.compile(rf"^{_IDENTIFIER}(?:\.{_IDENTIFIER})+\(\)$|^[A-Za-z]\w*\.[A-Z]\w*$|^[A-Z]\w*\.[a-z]\w{{5,}}$")


def relevance(question: Question) -> Callable[[str], float]:
    """How likely a file is what the question is about, by its path alone."""
    wanted = set(query_terms(question.text))

    def value(path: str) -> float:
        """How many words of the question a path has, and what its place says of it."""
        words = {term for part in path.replace("/", " ").replace(".", " ").split() for term in expand(part)}
        return len(words & wanted) + aside(path, question.wants)[0]

    return value
