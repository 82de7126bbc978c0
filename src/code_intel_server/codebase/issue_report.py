"""Takes a report apart: title, what people wrote, the frames of its tracebacks, the names and paths it mentions (SPEC 2).

It is read line by line and never followed: a report is anybody's text. Logs, listings of versions, quoted mail and the
headings of templates are left out of the prose, because they say nothing of the place.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import eq

from code_intel_server.codebase.files.languages import language_of

MAX_REPORT_CHARACTERS = 200_000
"""Characters of a report that are read; of a longer one the beginning and the end."""
_LONGEST_LINE = 400
_PROSE = 2_000
_NAMES, _CODE_NAMES, _FRAMES, _PATHS = 24, 24, 40, 12


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of a traceback: the path as that machine has it, the line (0: not said) and the function ('': not said)."""

    path: str
    line: int = 0
    function: str = ""


@dataclass(frozen=True, slots=True)
class IssueReport:
    """A report taken apart; every list in order of appearance, each thing once.

    `frames` begin with the innermost of the last traceback. `names` stand in the title, in back quotes or in the prose;
    `code_names` only in code blocks and tracebacks.
    """

    title: str
    prose: str
    frames: tuple[Frame, ...] = ()
    names: tuple[str, ...] = ()
    code_names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it is more than a question: a title with a text or code below it."""
        return bool(self.title) and bool(self.prose or self.frames or self.code_names)


_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING = re.compile(r"\s{0,3}(?:#{1,6}\s+(?P<hash>[^\n]{1,80})|\*\*(?P<bold>[^*\n]{1,80})\*\*:?\s*\Z)")
_ASIDE = re.compile(
    r"\b(?:versions?|environment|system info|platform|dependenc(?:y|ies)|installed|screenshots?|checklist|your project|pip list"
    r"|os|operating system|python version|setup)\b",
    re.IGNORECASE,
)
"""Headings below which a template asks for the machine."""
_LOG = re.compile(
    r"\s*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|(?:DEBUG|INFO|TRACE|NOTICE)\b|[\w.-]++==\d|[\w.+-]++\s++v?\d++\.\d++[\w.+-]*+\s*+\Z)"
)
_PROMPT = re.compile(r"\s*(?:>>> ?|\.\.\. ?|In \[\d+\]: ?|Out\[\d+\]: ?)")
_TRACE = re.compile(r"Traceback \(most recent call last\)|\A\s*(?:E {2,}|> {2,}\S)")
_URL = re.compile(r"https?://[^\s)>\]\"']+")
_BLOB = re.compile(r"/(?:blob|tree)/[^/]+/(?P<path>[^#?]+)(?:#L(?P<line>\d{1,7}))?")
_FRAMES_OF = (
    re.compile(r"File \"(?P<path>[^\"\n]{1,300})\", line (?P<line>\d{1,7})(?:, in (?P<function>[\w.<>]+))?"),
    re.compile(
        r"(?:\A|\s)(?:File )?(?P<path>[~\w./\\@-]{1,200}\.pyx?)(?::(?P<line>\d{1,7}),?)? in (?P<function>\w+)\("
    ),
    re.compile(
        r"\bat (?P<function>[\w.$<>]{1,200})\s?\((?P<path>[^\s()]{1,200}\.\w{1,5}):(?P<line>\d{1,7})(?::\d{1,5})?\)"
    ),
    re.compile(
        r"(?P<path>[~\w./\\@-]{0,200}[\w-]\.[A-Za-z]\w{0,4}):(?P<line>\d{1,7})\b(?::\d{1,5})?(?:: in (?P<function>\w+))?"
    ),
)
_TICKS = re.compile(r"``?([^`\n]{1,120})``?")
_CODE = re.compile(
    r"\b[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)+|\b\w+(?=\(\))|\b[A-Za-z]\w*_\w+|\b_\w+|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z0-9]+[A-Z]\w*|(?<=@)\w+"
    r"|\b[A-Z]{2,}[a-z]\w+|\b[A-Z]+[0-9]*_[A-Z0-9_]+"
)
HYPHENATED = re.compile(r"(?<![\w-])[A-Z0-9][A-Za-z0-9]*+(?:-[A-Z0-9][A-Za-z0-9]*+)+(?![\w-])")
"""Written as headers and algorithms are (`If-Range`, `SHA-1`), of which no part is a name."""
_CALLED = re.compile(
    r"(?<![\w.])([A-Za-z_][\w.]*+)\s?\(|\bimport ([\w., ]{1,120})|\bfrom ([\w.]++) import|\bclass (\w++)"
)
_NAME = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->|#)[A-Za-z_]\w*)*(?:\(.*\))?", re.DOTALL)
_PATH = re.compile(r"(?<![\w/:.])(?:[~\w.@-]+[/\\])+[\w.@-]*\w|(?<![\w/.])[\w-]+\.[a-z]{1,5}\b")
_ABBREVIATIONS = frozenset({"e.g", "i.e", "a.k.a", "w.r.t"})
_ENDING = re.compile(r"\.[A-Za-z]\w{0,4}\Z")


def read_report(text: str) -> IssueReport:
    """Take a report apart, in time that grows with its length and within bounds whatever it holds."""
    if len(text) > MAX_REPORT_CHARACTERS:
        head, tail = text[: MAX_REPORT_CHARACTERS // 2], text[-MAX_REPORT_CHARACTERS // 2 :]
        text = "\n".join((head.rpartition("\n")[0] or head, tail.partition("\n")[2]))  # no half of a line
    title, _, body = _COMMENT.sub(" ", text).lstrip().partition("\n")
    if len(title) > _LONGEST_LINE:  # one paragraph, and its first sentence
        title, body = title[:_LONGEST_LINE], f"{title}\n{body}"
    kept = _Kept(title)
    for line in body.splitlines():
        kept.take(line[:_LONGEST_LINE].rstrip())
    return kept.report()


class _Kept:
    """What was read so far."""

    def __init__(self, title: str) -> None:
        self._title = title.strip().lstrip("# ")
        self._prose: list[str] = []
        self._room = _PROSE
        self._frames: list[Frame] = []
        self._names: dict[str, None] = {}
        self._code_names: dict[str, None] = {}
        self._paths: dict[str, None] = {}
        self._fence = ""
        self._aside = False
        self._trace = False
        self._words(self._title)

    def take(self, line: str) -> None:
        """Read a line of the body."""
        fence = _FENCE.match(line)
        if fence and (not self._fence or fence[1] == self._fence):
            self._fence = "" if self._fence else fence[1]
            self._trace = False
            return
        heading = None if self._fence else _HEADING.match(line)
        if heading:
            self._aside = _ASIDE.search(heading["hash"] or heading["bold"]) is not None
            return
        frames = [*_frames(line)] if "." in line else []
        self._frames += frames
        self._trace = self._trace_goes_on(line)
        if self._aside or frames or _LOG.match(line):
            return
        if self._fence or self._trace or _PROMPT.match(line) or line.startswith(("    ", "\t")):
            self._code(line)
        else:
            self._words(line)
            self._say(line)

    def _trace_goes_on(self, line: str) -> bool:
        if _TRACE.search(line):
            return True
        return self._trace and (not line or line.startswith((" ", "\t")))

    def _words(self, line: str) -> None:
        """The names and paths in what somebody wrote."""
        for url in _URL.finditer(line):
            blob = _BLOB.search(url[0])
            if blob:
                self._frames.append(Frame(blob["path"], int(blob["line"] or 0)))
        line = _URL.sub(" ", line)
        for ticked in _TICKS.finditer(line):
            said = ticked[1].strip(" `")
            if _NAME.fullmatch(said) and not _is_path(said):
                self._names[said.partition("(")[0]] = None
        for found in _PATH.finditer(line):
            if _is_path(found[0]):
                self._paths[found[0].replace("\\", "/")] = None
        self._names |= dict.fromkeys(_names(line))

    def _code(self, line: str) -> None:
        for found in _CALLED.finditer(line):
            for name in re.split(r"[, ]+", next(filter(None, found.groups()), "")):
                if name and name != "as":
                    self._code_names[name] = None
        self._code_names |= dict.fromkeys(_names(line))

    def _say(self, line: str) -> None:
        said = _URL.sub(" ", line).strip(" >*-#")
        if said and self._room > 0:
            self._prose.append(said[: self._room])
            self._room -= len(said)

    def report(self) -> IssueReport:
        """All that was read."""
        return IssueReport(
            self._title,
            "\n".join(self._prose),
            tuple(dict.fromkeys(reversed(self._frames)))[:_FRAMES],
            _first(self._names, _NAMES),
            _first((name for name in self._code_names if name not in self._names), _CODE_NAMES),
            _first(self._paths, _PATHS),
        )


def _first(found: Iterable[str], most: int) -> tuple[str, ...]:
    return tuple(one for _, one in zip(range(most), found, strict=False))


def _names(line: str) -> Iterator[str]:
    """What is written as code writes names; `e.g` is none."""
    words = HYPHENATED.sub(" ", line)
    return (
        found[0] for found in _CODE.finditer(words) if found[0].lower() not in _ABBREVIATIONS and not _is_path(found[0])
    )


def _frames(line: str) -> Iterator[Frame]:
    """The places that a line of a traceback names."""
    for pattern in _FRAMES_OF:
        found = pattern.search(line)
        if found and "://" not in line[: found.end()]:
            yield Frame(found["path"].replace("\\", "/"), int(found["line"] or 0), found["function"] or "")
            return


def _is_path(text: str) -> bool:
    return language_of(text) is not None and _ENDING.search(text) is not None


def matching(path: str, known: Sequence[str]) -> str:
    """The file of the project that a path of another machine means: the one that shares most of its end; '' for none.

    A name alone is enough only where one file has it.
    """
    ends = ((one.split("/")[::-1], one) for one in known)
    parts = path.split("/")[::-1]
    shared = ((len([*takewhile(bool, map(eq, parts, end))]), one) for end, one in ends)
    best = sorted(shared, reverse=True)
    if not best or not best[0][0] or (len(best) > 1 and best[0][0] == best[1][0]):
        return ""
    return best[0][1]
