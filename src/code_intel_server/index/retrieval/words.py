"""Text to vocabulary rows for the bundled model: identifiers fall apart into words, words into word pieces.

`HTTPServer.readLine2` and `http_server read line 2` give the same rows, so a question meets the code it asks for.
A word that the vocabulary lacks is cut greedily into its longest known pieces (`##` marks one that continues a word).
Order is lost on purpose: a static model only adds vectors up, and a bag of distinct rows is cheaper to add.
"""

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from code_intel_server.index.retrieval.lexical import words_of

MAX_CHARACTERS = 1 << 15
"""Text beyond this is not read: chunks are far shorter, and one line of a minified file must not cost seconds."""

MAX_WORD = 32
CACHED_RUNS = 1 << 17
MAX_CACHED_RUN = 64

_RUN = re.compile(r"[^\W_]+")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W_\x00-\x7f]+")


def split_words(text: str) -> list[str]:
    """The words of prose or code in order: split at case changes, digits, underscores and punctuation; accents dropped."""
    return _WORD.findall(_plain(text))


def _plain(text: str) -> str:
    """At most MAX_CHARACTERS of the text without accents."""
    text = text[:MAX_CHARACTERS]
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)[:MAX_CHARACTERS]
    return "".join(char for char in decomposed if not unicodedata.combining(char))


class _Remembered(dict[str, tuple[int, ...]]):
    """Rows of what a text is made of, worked out when first asked for: they are then looked up without running Python."""

    def __init__(self, rows_of: Callable[[str], tuple[int, ...]]) -> None:
        self._rows_of = rows_of

    def __missing__(self, text: str) -> tuple[int, ...]:
        found = self._rows_of(text)
        if len(self) >= CACHED_RUNS:
            self.clear()
        if len(text) <= MAX_CACHED_RUN:
            self[text] = found
        return found


class Vocabulary:
    """The rows of the bundled model by token. Safe to share between threads: the cache is only ever a short cut.

    `source` is the file it was read from, where it was read from one.
    """

    def __init__(self, tokens: Sequence[str], source: Path | None = None) -> None:
        self.source = source
        self._size = len(tokens)
        self._rows = {token: row for row, token in enumerate(tokens)}
        self._longest = max(map(len, tokens), default=0)
        self._runs = _Remembered(self._of_run)
        self._names = _Remembered(self._of_name)

    @classmethod
    def read(cls, source: Path) -> "Vocabulary":
        """The vocabulary in a file, one token a line. Raises OSError, and ValueError for what is no UTF-8."""
        return cls(source.read_text(encoding="utf-8").split("\n"), source)

    def __len__(self) -> int:
        """How many tokens it was made of."""
        return self._size

    def bag(self, text: str) -> dict[int, int]:
        """Row -> how often the text has it; empty where the text has no known word."""
        return Counter(chain.from_iterable(map(self._runs.__getitem__, _RUN.findall(_plain(text)))))

    def passage_bag(self, lead: str, text: str, names: Sequence[str]) -> dict[int, int]:
        """The bag of `lead` and `text`, whose words (the matches of `\\w+` in it) somebody has found already."""
        if len(lead) + len(text) >= MAX_CHARACTERS or not text.isascii():
            return self.bag(f"{lead}\n{text}" if lead else text)
        above = words_of(lead) if lead.isascii() else _RUN.findall(_plain(lead))
        return Counter(chain.from_iterable(map(self._names.__getitem__, chain(above, names))))

    def rows(self, run: str) -> tuple[int, ...]:
        """The rows of letters and digits without a break (`parseURL2`), in order; characters that the vocabulary lacks are skipped."""
        return self._runs[run]

    def _of_run(self, run: str) -> tuple[int, ...]:
        if run.isascii() and run.isalpha() and run.islower():
            return tuple(self._cut(run[:MAX_WORD]))  # what `_WORD` would say of most runs
        return tuple(row for word in _WORD.findall(run) for row in self._cut(word[:MAX_WORD].lower()))

    def _of_name(self, name: str) -> tuple[int, ...]:
        """The rows of runs joined by underscores."""
        return tuple(chain.from_iterable(self._runs[run] for run in name.split("_") if run))

    def _cut(self, word: str) -> list[int]:
        """Greedy longest pieces of one lower-case word."""
        whole = self._rows.get(word)
        if whole is not None:
            return [whole]
        rows: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                row = self._rows.get(prefix + word[start:end])
                if row is not None:
                    rows.append(row)
                    break
            else:
                end = start + 1
            start = end
        return rows


def packed_bag(bag: Mapping[int, int]) -> bytes:
    """A bag in a few bytes, for the way between processes: its rows, then their counts."""
    return array("I", [*bag, *bag.values()]).tobytes()
