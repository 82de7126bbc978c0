"""Evidence as a difference of syntax: which lines of a file say something else than before (SPEC 4, READY impl, evidence).

Both versions are reduced to what has an effect (`effects`). A hunk of git's is looked into token by token: so a comment
behind an old line, an indentation or a line that was only broken anew is no change, wherever git sees one.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from code_intel_server.codebase.evidence.data_files import says_the_same
from code_intel_server.codebase.evidence.dead_code import without_dead_branches
from code_intel_server.codebase.evidence.effects import Effects, Hollow, Token, TooLong, effects_of
from code_intel_server.codebase.evidence.location import RangeVerdict, Replaced
from code_intel_server.codebase.evidence.stubs import is_stub, is_todo
from code_intel_server.codebase.files.languages import Language, LanguageKind, language_of
from code_intel_server.codebase.files.text import decode, is_binary, split_lines

_PREPROCESSED = frozenset({"c", "cpp", "objective-c", "cuda", "csharp", "swift"})
_LONGEST_LINE = 4000
_TOKENS_AT_MOST = 4000
"""Of a hunk; a bigger one is compared line by line."""

_ENTRY = re.compile(r"\A[*+] ")
_BRACKET = re.compile(r"(?:\d+:)?(?:[{}()\[\];,]|(?P<keyword>end))")
_AROUND_AN_OPERATOR = re.compile(r" ?([<>=!~]=|[=,]) ?")
_INDENTED = (".py", ".pyi", ".pyx", ".yml", ".yaml", ".coffee", ".nim", ".fs", ".hs", ".pug", ".haml", ".sass")

_IMPORT_WORDS = {
    "java": "import",
    "kotlin": "import",
    "csharp": "using",
    "go": "import",
    "rust": "use",
    "swift": "import",
    "php": "use",
    "dart": "import",
}
"""What begins an import, in languages in which importing runs nothing that depends on the order."""

_REAL = RangeVerdict(empty=False, trivial=False)
_STUB = RangeVerdict(empty=True, trivial=False, why="an implementation without code")
_PUNCTUATION = RangeVerdict(empty=False, trivial=True, why="only white space or punctuation")
_TO_DO = RangeVerdict(empty=True, trivial=False, why="only a note of what is to be done")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two versions of a file differ in."""

    hunks: tuple[Replaced, ...] = ()
    before: Effects = field(default_factory=Effects)
    after: Effects = field(default_factory=Effects)
    changed: tuple[Token, ...] = ()
    """The tokens that are new or other than before."""
    gaps: tuple[tuple[int, int], ...] = ()
    """Where tokens are gone: the lines around them."""
    by_lines: bool = False
    """Whether code was compared line by line, as it is too large or too deep for a syntax tree, or none was made in time."""

    def judge(self, start: int, end: int) -> RangeVerdict:
        """What lines `start`..`end` (1-based, inclusive) of the later version show."""
        tokens = [token for token in self.changed if start <= token.line <= end]
        gaps = [gap for gap in self.gaps if start <= gap[1] and gap[0] <= end]
        hollow = [one for one in self.after.hollow if start <= one.end and one.start <= end]
        gone = any(not any(one.start <= gap[0] and gap[1] <= one.end for one in hollow) for gap in gaps)
        real = [token for token in tokens if self._counts(token)]
        if gone or any(not _is_bracket(token) for token in real):
            return _REAL
        stubs = len(real) < len(tokens)
        if real and not stubs:
            words = {token.line for token in self.after.tokens if not _is_bracket(token)}
            return _REAL if any(token.line in words for token in real) else _PUNCTUATION
        if stubs or gaps:
            inner = [one for one in hollow if not any(_lies_in(other, one) for other in hollow)]
            overrides = bool(inner) and all(one.overrides for one in inner)
            return RangeVerdict(empty=True, trivial=False, why=_STUB.why, overrides=overrides)
        return self._of_nothing(start, end)

    def _counts(self, token: Token) -> bool:
        """Whether a token is no stub: what is new in front of a hollow body that was there before is none."""
        if not token.stub:
            return True
        around = [one for one in self.after.hollow if one.start <= token.line <= one.end]
        inner = max(around, key=lambda one: one.name, default=None)
        return inner is not None and token.byte < inner.body and all(one.byte != inner.name for one in self.changed)

    def _of_nothing(self, start: int, end: int) -> RangeVerdict:
        """Why the changed lines of a range are no work."""
        old: list[int] = []
        new: list[int] = []
        for (old_first, old_count), (first, count) in self.hunks:
            if start <= (first + count - 1 if count else first + 1) and first <= end:
                new += range(max(first, start), min(first + count - 1, end) + 1)
                old += range(old_first, old_first + old_count)
        idle = [self.after.idle[line] for line in new if line in self.after.idle]
        if idle:
            return RangeVerdict(empty=False, trivial=True, why=idle[0])
        said = [self.after.prose[line] for line in new if line in self.after.prose]
        words = [line for line in said if re.search(r"\w", line)]
        if words and all(map(is_todo, words)):
            return _TO_DO
        prose = bool(words) or any(line in self.before.prose for line in old)
        why = "only comments or documentation" if prose else "changes of white space or notation"
        return RangeVerdict(empty=False, trivial=True, why=why, prose=prose)


def _lies_in(inner: Hollow, outer: Hollow) -> bool:
    return inner is not outer and outer.start <= inner.start and inner.end <= outer.end


def _is_bracket(token: Token) -> bool:
    found = _BRACKET.fullmatch(token.key)
    return found is not None and not (found["keyword"] and token.named)


def compare(path: str, before: bytes | None, after: bytes, hunks: Sequence[Replaced]) -> Comparison:
    """Compare two versions of a file, of which the hunks are known; `before` is None where there was none."""
    if is_binary(after):
        return Comparison(tuple(hunks))
    by_lines = False
    if before is not None and not (_is_utf8(before) or _is_utf8(after)):
        before, after = decode(before).encode(), decode(after).encode()
    language = language_of(path, after[:4096])
    olds, news = [old for old, _ in hunks], [new for _, new in hunks]
    try:
        now = _parsed_effects(path, after, language, news)
        then = _parsed_effects(path, before, language, olds) if before and now else Effects()
    except TooLong:
        now, then, by_lines = None, None, True
    if now is None or then is None:
        now = _text_effects(path, after, language)
        then = _text_effects(path, before, language) if before else Effects()
    changed: list[Token] = []
    gaps: list[tuple[int, int]] = []
    if before is not None and says_the_same(language, before, after):
        return Comparison(tuple(hunks), then, now, by_lines=by_lines)
    moved = _moved_imports(language, before, after, hunks) if before is not None else (set[int](), set[int]())
    for old, new in hunks:
        was = [token for token in _among(then.tokens, old) if token.line not in moved[0]]
        is_now = [token for token in _among(now.tokens, new) if token.line not in moved[1]]
        if was or is_now:
            _difference(was, is_now, new, changed, gaps)
    return Comparison(tuple(hunks), then, now, tuple(changed), tuple(gaps), by_lines)


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def whole(path: str, content: bytes) -> Comparison:
    """A file as if all of it were new."""
    count = len(split_lines(decode(content)))
    return compare(path, None, content, [((0, 0), (1, count))])


def _parsed_effects(
    path: str, content: bytes, language: Language | None, lines: Sequence[tuple[int, int]]
) -> Effects | None:
    """The effects by syntax tree; None where no grammar reads the file. Raises TooLong, too where none was made in time."""
    if language is None or not language.grammar or language.kind is LanguageKind.DOCS:
        return None
    from code_intel_server.codebase.syntax.structure import has_queries, parse

    if not has_queries(language):
        return None
    content, dead = without_dead_branches(content) if language.name in _PREPROCESSED else (content, {})
    near = [(first - 1, first + max(count, 1)) for first, count in lines]
    parsed = parse(content, language)
    if parsed is None:
        raise TooLong
    found = effects_of(parsed, path, near)
    if not (found.tokens or found.idle) and re.search(rb"\w", content):
        return None  # the grammar of a dialect: `.conf` is INI here and something else there
    found.idle |= dead
    return found


def _text_effects(path: str, content: bytes, language: Language | None) -> Effects:
    return _of_lines(split_lines(decode(content)), language, indented=path.endswith(_INDENTED))


def _moved_imports(
    language: Language | None, before: bytes, after: bytes, hunks: Sequence[Replaced]
) -> tuple[set[int], set[int]]:
    """The lines before and after that hold an import which only has another place, where its place says nothing."""
    if language is None or language.name not in _IMPORT_WORDS:
        return set(), set()
    found: list[dict[int, str]] = []
    for side, content in enumerate((before, after)):
        lines = split_lines(decode(content))
        numbers = (n for hunk in hunks for n in range(hunk[side][0], sum(hunk[side])) if 0 < n <= len(lines))
        found.append({n: lines[n - 1].strip() for n in numbers if _is_import(lines[n - 1].strip(), language.name)})
    old, new = found
    same = {*old.values()} & {*new.values()}
    return {n for n, line in old.items() if line in same}, {n for n, line in new.items() if line in same}


def _is_import(line: str, language: str) -> bool:
    """Whether a line imports and does nothing else; within Go's `import (...)` that is a quoted path alone."""
    if language == "go" and line.startswith('"'):
        return line.endswith('"') and line.count('"') == 2
    return "(" not in line and line.startswith(f"{_IMPORT_WORDS[language]} ")


def _among(tokens: Sequence[Token], lines: tuple[int, int]) -> list[Token]:
    first, count = lines
    begin, end = (bisect_left(tokens, line, key=lambda token: token.line) for line in (first, first + count))
    return [*tokens[begin:end]]


def _difference(
    old: Sequence[Token],
    new: Sequence[Token],
    lines: tuple[int, int],
    changed: list[Token],
    gaps: list[tuple[int, int]],
) -> None:
    """Add what is new in the tokens of one hunk, and between which lines some are gone."""
    was, now = [token.key for token in old], [token.key for token in new]
    if was == now:
        # Emptied and filled in are changes, though the words are the same.
        changed += [token for token, earlier in zip(new, old, strict=True) if token.stub < earlier.stub]
        return
    first, last = lines[0], lines[0] + (lines[1] - 1 if lines[1] else 1)
    if len(was) > _TOKENS_AT_MOST or len(now) > _TOKENS_AT_MOST or not was:
        known = set(was)
        changed += [token for token in new if token.key not in known] if was else new
        return
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        changed += new[j1:j2]
        if i2 > i1 and j1 == j2:
            gaps.append((new[j1 - 1].line if j1 else first, new[j1].line if j1 < len(new) else last))


def _of_lines(lines: Sequence[str], language: Language | None, *, indented: bool) -> Effects:
    """The effects of a file that no grammar reads: its lines without comments and white space."""
    found = Effects()
    closing = ""
    for number, line in enumerate(lines, 1):
        bare, closing = _uncommented(line.strip(), language, closing)
        words = " ".join(bare.split())
        if words != " ".join(line.split()):
            found.prose[number] = _unmarked(line.strip(), language)
        if not re.search(r"\w", words):
            continue
        if language and language.kind is LanguageKind.CONFIG:
            words = _AROUND_AN_OPERATOR.sub(r"\1", words)
        is_code = language is not None and language.kind is LanguageKind.CODE
        stub = is_stub(words, language.name) if is_code and language else is_todo(words)
        depth = f"{len(line) - len(line.lstrip())}:" if indented else ""
        # Text flows: where its lines break says nothing, nor by which mark an entry of a list begins.
        said = _ENTRY.sub("- ", words).split() if language and language.kind is LanguageKind.DOCS else [words]
        found.tokens += (Token(f"{depth}{one}", number, number, stub) for one in said)
    return found


def _unmarked(line: str, language: Language | None) -> str:
    """A line without the marker that opens a comment."""
    markers = [*language.line_comments, *(opening for opening, _ in language.block_comments)] if language else []
    return next((line[len(marker) :] for marker in markers if line.lower().startswith(marker.lower())), line)


def _uncommented(line: str, language: Language | None, closing: str) -> tuple[str, str]:
    """A line without its comments, and what closes one that goes on."""
    if language is None or language.kind is LanguageKind.DOCS:
        return line, ""
    if closing:
        before, found, line = line.partition(closing)
        if not found:
            return "", closing
    if len(line) > _LONGEST_LINE:
        for opening, end in language.block_comments:
            line = re.sub(re.escape(opening) + ".*?" + re.escape(end), " ", line)
        return line, ""
    for opening, end in language.block_comments:
        while opening in line:
            before, _, rest = line.partition(opening)
            if before.count('"') % 2 or before.count("'") % 2:
                break
            _, found, after = rest.partition(end)
            if not found:
                return before, end
            line = before + after
    for marker in language.line_comments:
        if line.lower().startswith(marker.lower()):
            return "", ""
        at = line.find(f" {marker}")
        if at >= 0 and not line[:at].count('"') % 2 and not line[:at].count("'") % 2:
            line = line[:at]
    return line, ""
