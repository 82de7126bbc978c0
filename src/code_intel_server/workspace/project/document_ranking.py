"""Which of a project's documents a request should be read with (SPEC 4, DOCUMENT_RESEARCH)."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log
from pathlib import Path, PurePosixPath

from code_intel_server.workspace.files import read_regular

MAX_READ = 400
"""How many documents are read for a ranking."""
MAX_DOCUMENT_BYTES = 512 * 1024
"""A longer document is not read."""
RULES = ("contributing", "changelog", "changes", "history", "news", "pull_request_template")
"""Documents that most changes must obey or add a line to, by the name without its suffix."""

_NEAR, _FEW = 0.4, 2
"""What a document's score must be of the best one's to be named; so many are named whatever they score."""
_WORD = re.compile(r"[^\W\d_]\w{2,}")
_NAME = re.compile(r"(?P<before>`|(?<=\w)\.)?(?P<name>[^\W\d]\w++)(?P<behind>[`(=])?")
_OF_WORDS = re.compile(r"[a-z][A-Z]|[^\W_]_[^\W_]")


def rank_documents(root: Path, documents: Sequence[str], query: str, most: int) -> tuple[str, ...]:
    """At most `most` of the documents (project-relative paths): those that share the rarest words with
    the query, as far as they come near the best of them, and one of each kind in `RULES` whatever it says.

    Of a query that names code only documents that name some of it, or are called by a word of it, are taken; the best few where there are no rules.
    """
    words = {word.lower() for word in _WORD.findall(query)}
    names = _named(query) - {PurePosixPath(path).suffix[1:] for path in documents}  # of `README.md`, md is no code
    texts = {path: _text(root / path) for path in documents[:MAX_READ]}
    scores = _scores({path: _counts(text, words) for path, text in texts.items()})
    ordered = sorted(documents, key=lambda path: -scores.get(path, 0.0))
    rules = _rules(documents)[:most]
    near = _NEAR * max(scores.values(), default=0.0)
    others = [path for path in ordered if path not in rules]
    if names:
        speaking = [
            path
            for path in others
            if PurePosixPath(path).stem.lower() in words or any(name in texts.get(path, "") for name in names)
        ]
        others = speaking if rules or speaking else others
    fitting = [path for path in others if scores.get(path, 0.0) >= near] if near else others
    chosen = {*rules, *(fitting if len(fitting) > _FEW else others[:_FEW])[: most - len(rules)]}
    return tuple(path for path in ordered if path in chosen)


def _text(path: Path) -> str:
    try:
        return read_regular(path, MAX_DOCUMENT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _named(text: str) -> set[str]:
    """The names that are written as code: in back quotes, behind a dot, called, set, or of several words in one."""
    return {
        found["name"]
        for found in _NAME.finditer(text)
        if found["before"] or found["behind"] or _OF_WORDS.search(found["name"])
    }


def _counts(text: str, words: set[str]) -> Counter[str]:
    return Counter(word for word in map(str.lower, _WORD.findall(text)) if word in words)


def _scores(counts: Mapping[str, Counter[str]]) -> dict[str, float]:
    having = Counter(word for found in counts.values() for word in found)
    return {
        path: sum(log(1 + count) * log(1 + len(counts) / having[word]) for word, count in found.items())
        for path, found in counts.items()
    }


def _rules(documents: Iterable[str]) -> list[str]:
    """The document of each kind in `RULES` that lies nearest to the top."""
    nearest: dict[str, str] = {}
    for path in sorted(documents, key=lambda path: path.count("/")):
        stem = PurePosixPath(path).stem.lower()
        if stem in RULES:
            nearest.setdefault(stem, path)
    return list(nearest.values())
