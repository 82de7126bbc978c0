"""The softer ties of an impact analysis: file names, tests by their name, CSS names, words (SPEC 8)."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.ignore import project_files
from code_intel_server.codebase.files.ripgrep import Query
from code_intel_server.codebase.files.roles import Role, role
from code_intel_server.codebase.files.text import decode, is_binary, read_text
from code_intel_server.codebase.impact.run import IMPORTING, Analysis, by_hand, module_word
from code_intel_server.codebase.impact.values import AffectedLine, Tie
from code_intel_server.codebase.references.classify import occurrences
from code_intel_server.codebase.syntax import markup

# What is less likely, or generated, is not worth the time to read it.
_MOST_COMPARED = 400
_MOST_COMPARED_BYTES = 400_000
_WORD = re.compile(rb"[A-Za-z_]\w{3,}")


def tie_by_file_name(run: Analysis, homes: Sequence[str]) -> None:
    """Files that name a target's file (imports, includes, templates, links), and tests that by their name belong to it."""
    words = {PurePosixPath(home).name: home for home in homes} | {
        word: home for home in homes if (word := module_word(home))
    }
    # No line holds a name with a line feed.
    words = {word: home for word, home in words.items() if "\n" not in word and "\0" not in word}
    if not words:
        return
    found = ripgrep.search(run.project, Query(tuple(words), regex=False, word=True))
    run.problems += found.problems
    pattern = occurrences(tuple(words))
    for file in found.files:
        if run.late:
            run.problems.append("the time limit ended the search for file names")
            break
        weight = 0.4 * by_hand(file.path) / (1 + len(found.files) / 100)
        for match in run.standing.matches(file, pattern).lines():
            name = pattern.search(match.text)
            if name is None or words.get(decode(name[0])) in {None, file.path}:
                continue
            whole = b"." in name[0]
            if whole or IMPORTING.search(match.text):
                run.evidence.add(
                    file.path,
                    AffectedLine(
                        match.line, Tie.NAMES_FILE, words[decode(name[0])], strength=weight if whole else 0.8 * weight
                    ),
                )


def tie_by_test_name(run: Analysis, homes: Sequence[str]) -> None:
    """Tests of a target's file by their name: `tests/test_ext_autodoc_config.py` tests `ext/autodoc/`: the words of its name begin with, or hold, those of the path's end."""
    wanted = {home: _name_words(module_word(home)) for home in homes if module_word(home)}
    for path in project_files(run.project).paths if wanted else ():
        if role(path) is not Role.TESTS:
            continue
        words = [
            word
            for word in _name_words(PurePosixPath(path).name.split(".")[0])
            if word not in {"test", "tests", "spec"}
        ]
        for home, module in wanted.items():
            if words in (module, _plural(module)):
                run.evidence.add(path, AffectedLine(0, Tie.TEST_NAME, home, strength=0.5))
            elif any(words[start : start + len(module)] == module for start in range(len(words))):
                run.evidence.add(path, AffectedLine(0, Tie.TEST_NAME, home, strength=0.25))


def _name_words(stem: str) -> list[str]:
    """`ResponseWriter_test` → ['response', 'writer', 'test']."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", stem)]


def _plural(words: Sequence[str]) -> list[str]:
    return [*words[:-1], words[-1].removesuffix("s") if words[-1].endswith("s") else f"{words[-1]}s"] if words else []


def tie_by_markup(run: Analysis, homes: Sequence[str], asked: Sequence[str]) -> None:
    """Classes and ids that were asked for or that the targets declare or bear, wherever else styles, pages and scripts speak of them."""
    names = {*asked}
    for home in homes:
        names |= {mention.name for mention in markup.mentions(home, read_text(run.project.root, home) or "")}
    if not names:
        return
    globs = [part for glob in markup.GLOBS for part in ("--type-add", f"page:{glob}")]
    first = sorted(names, key=lambda name: (name not in asked, name))
    query = Query(tuple(dict.fromkeys(name[1:] for name in first))[:200], regex=False)
    files, problems = ripgrep.matching_files(run.project, query, extra=(*globs, "--type", "page"))
    run.problems += problems
    spoken_of: set[str] = set()
    for path in files:
        if run.late:
            run.problems.append("the time limit ended the search for CSS names")
            return
        for mention in markup.mentions(path, read_text(run.project.root, path) or ""):
            if mention.name not in names:
                continue
            spoken_of.add(mention.name)
            if path not in homes:
                run.evidence.add(
                    path,
                    AffectedLine(
                        mention.line, Tie.MARKUP, mention.name, mention.side.value, certain=mention.name in asked
                    ),
                )
    run.unresolved += [name for name in asked if name not in spoken_of]


def word_similarity(run: Analysis) -> dict[str, float]:
    """How similar the likeliest files are to the changed code by the words they share with it, the rarer the more."""
    asked = {word.encode("utf-8", "replace") for word in run.words}
    shared: dict[str, set[bytes]] = {}
    lengths: dict[str, float] = {}
    others = run.evidence.paths - run.evidence.homes
    for path in sorted(others, key=lambda path: (-run.evidence.chance(path), path))[:_MOST_COMPARED]:
        content = run.standing.content(path) if asked and not run.late else None
        if content and len(content) <= _MOST_COMPARED_BYTES and not is_binary(content):
            words = set(_WORD.findall(content))
            shared[path], lengths[path] = words & asked, math.sqrt(len(words) + 1)
    files = Counter(word for words in shared.values() for word in words)
    rare = {word: math.log((len(shared) + 1) / number) ** 2 for word, number in files.items()}
    most = math.sqrt(sum(rare.values()))
    return {path: sum(rare[word] for word in words) / most / lengths[path] for path, words in shared.items() if words}
