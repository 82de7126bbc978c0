"""Words for BM25: what an identifier, a path or a sentence is made of, the same way for code and for questions.

`getHTTPResponse`, `get_http_response` and "get HTTP response" share the words get, http, response; a name of several
words is kept whole next to its parts (`gethttpresponse`), so that the exact name outranks a mere coincidence of words.
Words are stemmed lightly (validate, validation, validator → valid): questions are prose, code is not. Scripts
without spaces are cut into overlapping pairs of characters.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W_a-zA-Z0-9]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_WORDS_ONLY = bytes(byte if chr(byte).isalnum() or chr(byte) == "_" else ord(" ") for byte in range(128)) + b" " * 128
_LONGEST_WORD = 64
_CACHED_WORDS = 1 << 16

# Longest first; what remains must have three letters at least. Both sides are cut alike, so a stem need not be a word.
_SUFFIXES = (
    "izations", "ization", "izers", "izer", "izing", "ized", "izes", "ize",
    "ations", "ation", "ators", "ator", "ating", "ated", "ates", "ate",
    "ments", "ment", "ables", "able", "ibles", "ible", "ities", "ity", "iveness", "ives", "ive",
    "ings", "ing", "ions", "ion", "ness", "ies", "ied", "ers", "er", "ors", "or", "als", "ally", "al",
    "es", "ed", "ly", "e", "y", "s",
)  # fmt: skip
_NOT_PLURAL = ("ss", "us", "is")

STOP_WORDS = frozenset(
    ["a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "being", "between", "both", "but", "by", "can", "could", "did", "do", "does", "each", "for", "from", "get", "gets", "had", "happen", "happens", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "itself", "let", "me", "more", "most", "my", "no", "not", "of", "off", "on", "onto", "or", "other", "our", "out", "over", "own", "please", "same", "should", "so", "some", "such", "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "through", "to", "under", "until", "up", "use", "used", "uses", "using", "via", "was", "we", "were", "what", "when", "where", "whether", "which", "while", "who", "whose", "why", "will", "with", "within", "without", "work", "works", "would", "you", "your"]
)  # fmt: skip
"""Dropped from questions, unless nothing else is left: they are in every chunk or in none."""


_LONGEST_SUFFIX = max(map(len, _SUFFIXES))
_KNOWN_SUFFIXES = frozenset(_SUFFIXES)
_DOUBLED = re.compile(r"(.{2,})([bdfgmnprtz])\2")


@lru_cache(maxsize=_CACHED_WORDS)
def stem(word: str) -> str:
    """A lower-case word without its ending."""
    for length in range(min(_LONGEST_SUFFIX, len(word) - 3), 0, -1):
        if word[-length:] in _KNOWN_SUFFIXES:
            break
    else:
        return word
    rest = word[:-length]
    if length > 1:
        return _DOUBLED.sub(r"\1\2", rest)
    return word if word.endswith(_NOT_PLURAL) else rest


def identifier_words(identifier: str) -> list[str]:
    """The words of one identifier in lower case, unstemmed: `HTTPServer2` → http, server, 2."""
    return [part.lower() for part in _PART.findall(identifier)]


@lru_cache(maxsize=_CACHED_WORDS)
def expand(word: str) -> tuple[str, ...]:
    """The terms under which a word is found: its stemmed parts, and the whole where it has several."""
    if len(word) > _LONGEST_WORD:
        return ()
    if word.isascii() and word.isalpha() and word.islower():
        return (stem(word),)  # most words are one: what follows says the same of them, at five times the price
    pieces = identifier_words(word)
    terms: list[str] = []
    for piece in pieces:
        if _UNSPACED.match(piece):
            terms += [piece[at : at + 2] for at in range(max(1, len(piece) - 1))]
        else:
            terms.append(stem(piece))
    if len(pieces) > 1:
        terms.append("".join(pieces))
    return tuple(terms)


class _Expanded(dict[str, str]):
    """Words to their terms, cut when first asked for: a dictionary is the quickest of caches."""

    def __missing__(self, word: str) -> str:
        if len(self) >= _CACHED_WORDS:
            self.clear()
        found = self[word] = " ".join(expand(word))
        return found


_EXPANDED = _Expanded()


def words_of(text: str) -> list[str]:
    """The words of a text as written: letters, digits and underscores without a break."""
    if text.isascii():  # the same words in half the time
        return text.encode("ascii").translate(_WORDS_ONLY).decode("ascii").split()
    return _WORD.findall(text)


def index_terms(text: str) -> str:
    """The terms of a text, separated by spaces, in the order of the text."""
    return terms_of(words_of(text))


def terms_of(words: Iterable[str]) -> str:
    """The terms of words, separated by spaces, in their order."""
    return " ".join(map(_EXPANDED.__getitem__, words))


def query_words(query: str) -> list[str]:
    """The identifiers and words of a question as written, stop words dropped (unless nothing else is left)."""
    words = list(dict.fromkeys(_WORD.findall(query)))
    return [word for word in words if word.lower() not in STOP_WORDS] or words


def query_terms(query: str) -> list[str]:
    """The distinct terms to look for, in the order of the question."""
    return list(dict.fromkeys(term for word in query_words(query) for term in expand(word)))
