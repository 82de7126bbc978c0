"""Mine (documentation, code) pairs from the unpacked packages.

    python benchmarks/embedder/mine.py WORK

Writes WORK/pairs.jsonl: {package, path, name, doc, code}. Python by its syntax tree (docstring, the definition without it);
other languages by a documentation comment that stands directly over a definition. `doc` is the comment's first paragraph without
markup, `code` the definition with comments as they are. Pairs whose documentation says nothing (licences, lint switches, fewer
than three words, the bare name) are dropped, and so are repeated ones; a package gives at most CAP pairs, evenly spread.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from code_intel_server.index.retrieval.words import split_words

CAP = 9000
MAX_FILE = 600_000
MAX_LINES = 45
SKIP_PARTS = re.compile(
    r"(^|/)(node_modules|vendor|third_party|min|tests?|testing|testdata|locale|__pycache__|_vendor|bower_components)(/|$)|\.min\.|\.d\.ts$|\.umd\.|bundle|_test\.|\.(test|spec)\."
)
SLASHES = r"\.(m?js|cjs|tsx?|go|java|php|rs|kts?|scala|c|cc|cpp|h|hpp|cs|swift)$"
HASHES = r"\.(rb)$"
DASHES = r"\.(hs|lua)$"
KNOWN = re.compile(rf"\.(py|exs?)$|{SLASHES}|{HASHES}|{DASHES}")
NOISE = re.compile(
    r"copyright|licen[sc]e|eslint|todo|fixme|@internal|generated|deprecated|istanbul|noinspection|nolint|pragma|clang-format|prettier|"
    r"webpack|---|===|\*\*\*|see also|inheritdoc|^@|^\W*$",
    re.IGNORECASE,
)
KEYWORD = re.compile(
    r"\b(?:def|function|func|fn|class|struct|interface|trait|enum|type|module|macro_rules!|object|data|newtype)\s+(?:\([^)]*\)\s*)?(?:self\.)?([A-Za-z_]\w*)"
)
CALLABLE = re.compile(r"([A-Za-z_]\w*)\s*(?:=\s*(?:async\s*)?(?:function|\()|\(|::|:\s*function)")
CONTROL = re.compile(r"\s*(?:if|for|while|switch|return|else|try|catch|do|case|throw|assert|await|defer|go)\b")


@dataclass(frozen=True, slots=True)
class Pair:
    """What somebody wrote about a definition, and the definition."""

    package: str
    path: str
    name: str
    doc: str
    code: str


def first_paragraph(text: str) -> str:
    """Prose of the comment's head: markup, tags and examples gone; at most 300 characters."""
    text = re.split(r"\n\s*\n|\n\s*(?:@\w|:param|Parameters\b|Args:|Returns:|>>>|```|#\s)", text.strip(), maxsplit=1)[0]
    text = re.sub(r"<[^>]{1,60}>|\{@\w+\s+([^}]*)\}|:\w+:`~?([^`]*)`|[`*_]{2,}", r" \1\2", text)
    return " ".join(text.split())[:300]


def python_pairs(source: str) -> Iterator[tuple[str, str, str]]:
    """(name, doc, code) of every documented function and class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            return
    lines = source.splitlines()
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        doc = ast.get_docstring(node)
        if not doc or node.end_lineno is None:
            continue
        inner = node.body[0]
        kept = lines[node.lineno - 1 : inner.lineno - 1] + lines[inner.end_lineno or inner.lineno : node.end_lineno]
        yield node.name, doc, "\n".join(kept[:MAX_LINES])


def comment_style(path: str) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
    """(a line inside a comment block, what to strip from it)."""
    if re.search(SLASHES, path):
        return re.compile(r"\s*(///?|//!|/\*|\*)"), re.compile(r"^\s*(?://[/!]?|/\*+!?|\*+/?)\s?|\s*\*+/\s*$")
    if re.search(HASHES, path):
        return re.compile(r"\s*#"), re.compile(r"^\s*#+\s?")
    if re.search(DASHES, path):
        return re.compile(r"\s*--"), re.compile(r"^\s*--+\s?\|?\s?")
    return None


def commented_pairs(source: str, path: str) -> Iterator[tuple[str, str, str]]:
    """(name, doc, code) of every definition directly under a comment block."""
    style = comment_style(path)
    if style is None:
        return
    inside, strip = style
    lines = source.splitlines()
    at = 0
    while at < len(lines):
        if not inside.match(lines[at]):
            at += 1
            continue
        start = at
        while at < len(lines) and inside.match(lines[at]):
            at += 1
        body = at
        while body < len(lines) and re.match(r"\s*(@|#\[|\[)", lines[body]):
            body += 1
        found = named(lines[body]) if body < len(lines) else None
        if found:
            doc = "\n".join(strip.sub("", line) for line in lines[start:at])
            yield found, doc, "\n".join(definition(lines, at))


def named(line: str) -> str | None:
    """The name that a line defines: by a keyword, or as something callable near the margin; remarks inside bodies do not count."""
    found = KEYWORD.search(line)
    if found is None and len(line.expandtabs(4)) - len(line.lstrip()) <= 4 and not CONTROL.match(line):
        found = CALLABLE.search(line)
    return found.group(1) if found else None


def elixir_pairs(source: str) -> Iterator[tuple[str, str, str]]:
    """(name, doc, code) under `@doc` here-documents."""
    for found in re.finditer(r'@doc (?:~S)?"""\n(.*?)"""\n(.*?)(?=\n\s*@doc|\n\n\s*(?:@spec|#)|\Z)', source, re.DOTALL):
        name = re.search(r"\bdef\w*\s+([a-z_]\w*[?!]?)", found.group(2))
        if name:
            yield name.group(1), found.group(1), "\n".join(found.group(2).splitlines()[:MAX_LINES])


def definition(lines: list[str], start: int) -> list[str]:
    """The lines of a definition: to the first line that falls back to its indentation after a blank or as a closer."""
    base = len(lines[start]) - len(lines[start].lstrip())
    for at in range(start + 1, min(len(lines), start + MAX_LINES)):
        line = lines[at]
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent < base:
            return lines[start:at]
        if (
            line.strip()
            and indent == base
            and re.match(r"\s*([})\]]|end\b)", line)
            and not re.match(r"\s*[})\]].*[{(]\s*$", line)
        ):
            return lines[start : at + 1]
        if (
            not line.strip()
            and at + 1 < len(lines)
            and len(lines[at + 1]) - len(lines[at + 1].lstrip()) <= base
            and lines[at + 1].strip() != "{"
        ):
            return lines[start:at]
    return lines[start : start + MAX_LINES]


def useful(name: str, doc: str, code: str) -> bool:
    """Whether the pair teaches anything: prose of three words that are not only the name, and some code."""
    words = [word.lower() for word in split_words(doc)]
    spelled = {word.lower() for word in split_words(name)}
    return (
        3 <= len(words) <= 60
        and not NOISE.search(doc)
        and len(set(words) - spelled) >= 2
        and len(split_words(code)) >= 8
        and sum(char.isalpha() or char == " " for char in doc) > 0.8 * len(doc)
    )


def documented(path: str, source: str) -> Iterator[tuple[str, str, str]]:
    """(name, doc, code) of every documented definition, whatever the language."""
    if path.endswith(".py"):
        return python_pairs(source)
    if path.endswith((".ex", ".exs")):
        return elixir_pairs(source)
    return commented_pairs(source, path)


def package_pairs(package: str, root: Path) -> list[Pair]:
    """Every useful pair of one package, each documentation once."""
    found: dict[str, Pair] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if (
            SKIP_PARTS.search(name)
            or not path.is_file()
            or path.is_symlink()
            or not KNOWN.search(name)
            or path.stat().st_size > MAX_FILE
        ):
            continue
        source = path.read_text(encoding="utf-8", errors="replace")
        for symbol, doc, code in documented(name, source):
            prose = first_paragraph(doc)
            if prose not in found and useful(symbol, prose, code):
                found[prose] = Pair(package, "/".join(name.split("/")[-4:]), symbol, prose, code[:3000])
    pairs = list(found.values())
    kept = min(CAP, len(pairs))
    return [pairs[i * len(pairs) // kept] for i in range(kept)]


def main() -> None:
    """Mine every package; print what each gave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    args = parser.parse_args()
    total = 0
    with (args.work / "pairs.jsonl").open("w", encoding="utf-8") as out:
        for root in sorted((args.work / "sources").glob("*/*")):
            pairs = package_pairs(f"{root.parent.name}/{root.name}", root)
            for pair in pairs:
                out.write(json.dumps(asdict(pair), ensure_ascii=False) + "\n")
            total += len(pairs)
            print(f"{len(pairs):6d} {root.parent.name}/{root.name}", flush=True)
    print(f"{total:6d} pairs")


if __name__ == "__main__":
    main()
