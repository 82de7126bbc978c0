"""What a path says: the words of its name and folders, and whether it is aside (tests, vendored, generated …)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from code_intel_server.index.retrieval.lexical import expand, identifier_words, stem

_ASIDE: Mapping[str, tuple[re.Pattern[str], float]] = {
    "test": (
        re.compile(
            r"(?:^|/)(?:tests?|__tests__|specs?|testing|testdata|fixtures|test[-_]\w+)/|(?:^|/)(?:test_[^/]*\.(?:py|c|cc|cpp|lua|dart|rb|sh|jl|el)|conftest\.py|"
            r"[^/]*[_.-](?:test|spec|tests|specs)\.[^/]+|[^/]*(?:Tests?|Spec|Suite)\.(?:java|kt|scala|cs|swift|php|groovy|cpp|cc))$"
        ),
        0.3,
    ),
    "vendored": (re.compile(r"(?:^|/)(?:vendor|vendored|_vendor|third[-_]?party|node_modules|external|deps)/"), 0.4),
    "generated": (
        re.compile(r"(?:\.min\.(?:js|css)|[._-]generated\.|\.pb\.go|_pb2(?:_grpc)?\.py|\.g\.(?:cs|dart)|\.designer\.cs|\.lock|-lock\.\w+)"),
        0.4,
    ),
    "example": (re.compile(r"(?:^|/)(?:_?examples?|samples?|demos?|benchmarks?|bench|docs?_src|playground)/"), 0.4),
    "compat": (re.compile(r"(?:^|/)_?(?:compat|legacy|deprecated)(?:/|\.)"), 0.5),
    "doc": (re.compile(r"(?:\.(?:md|rst|txt|adoc|mdx|html?)$)|(?:^|/)docs?/|(?:^|/)(?:change(?:s|log)|history|news)\b", re.IGNORECASE), 0.4),
    "data": (re.compile(r"\.(?:json|ya?ml|toml|ini|cfg|xml|csv|svg|lock|po)$"), 0.5),
    "barrel": (re.compile(r"(?:^|/)(?:__init__\.py|index\.(?:js|ts|jsx|tsx|mjs)|mod\.rs|lib\.rs|package-info\.java)$"), 0.7),
    "declaration": (re.compile(r"\.d\.ts$|\.pyi$"), 0.7),
}  # fmt: skip

PathWords = Mapping[str, Sequence[str]]
"""Words by their first three letters."""


@lru_cache(maxsize=8192)
def aside(path: str, wants: frozenset[str]) -> tuple[float, str]:
    """The factor for a path and what it is (test, vendored …); 1 and '' for plain source or what is asked for."""
    factor, why = 1.0, []
    for name, (pattern, weight) in _ASIDE.items():
        if name not in wants and pattern.search(path):
            factor *= weight
            why.append(name)
    return factor, ", ".join(why)


@lru_cache(maxsize=8192)
def path_words(path: str) -> tuple[int, PathWords, PathWords]:
    """The number of words of a file's name, those words, and the words of its last two folders; all stemmed."""
    *folders, name = path.split("/")
    own = {stem(part) for part in identifier_words(name.partition(".")[0] or name)}
    return len(own), _by_beginning(own), _by_beginning({term for folder in folders[-2:] for term in expand(folder)})


def _by_beginning(words: Iterable[str]) -> PathWords:
    found: dict[str, list[str]] = defaultdict(list)
    for word in words:
        found[word[:3]].append(word)
    return dict(found)


@lru_cache(maxsize=8192)
def stem_of(path: str) -> str:
    """A file's name without folder and ending, as one flat word."""
    name = path.rpartition("/")[2]
    return flat(name.rpartition(".")[0] or name)


@lru_cache(maxsize=16384)
def flat(name: str) -> str:
    """A name as its words in lower case without anything between them."""
    return "".join(identifier_words(name))


def likeness(term: str, words: PathWords) -> tuple[float, str]:
    """1 where the word is there, .7 where one begins like the other (config, configuration); and the word."""
    for word in words.get(term[:3], ()):
        if word == term:
            return 1.0, word
    for word in words.get(term[:3], ()):
        if word.startswith(term) or term.startswith(word) or _same_beginning(word, term):
            return 0.7, word
    return 0.0, ""


def _same_beginning(one: str, other: str) -> bool:
    """Whether two words differ in their last letters only (analysis, analyze), beyond what the stemmer knows."""
    shared = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    return shared >= 5 and shared >= 0.7 * max(len(one), len(other))
