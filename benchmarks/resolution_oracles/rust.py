"""Where rustc wants a symbol renamed, as a truth for `benchmarks/resolution.py`.

    python benchmarks/resolution_oracles/rust.py CRATE OUT.json SEED PER_STRATUM [rustc's flags ...]

The definition is renamed in a copy, then whatever rustc complains about, until it is content. A symbol with which that does not
come to an end is left out. What is compiled under another configuration, tests too, rustc does not see: such lines of `mod tests`
are undecided.
"""

import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROUNDS = 12
OWNER = re.compile(rb"(impl\b.*?|(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait) \w+.*)\{")
ITEM = re.compile(
    rb"[ \t]*(?:pub(?:\([^)]*\))? )?(?:(?:const|unsafe|async) )*(fn|struct|enum|trait|const|static|type) ([A-Za-z]\w*)"
)
FIELD = re.compile(rb"    (?:pub(?:\([^)]*\))? )?([a-z]\w*): [^=;(]*,$")
NOT_NAMES = {b"pub", b"struct", b"enum", b"trait", b"impl", b"crate", b"super", b"unsafe"}
Symbol = tuple[str, int, int, str, str, str]
"""Path, line, column, name, owner, kind."""


class Crate:
    """A copy of a crate's sources that can be renamed in."""

    def __init__(self, source: Path, flags: list[str]) -> None:
        # Beside its workspace's texts, which some crates include.
        top = Path(tempfile.mkdtemp())
        self.root = top / "crates" / source.name
        shutil.copytree(source / "src", self.root / "src")
        for text in source.parent.parent.glob("*.md"):
            shutil.copy(text, top)
        self.files = {path.relative_to(self.root).as_posix(): path.read_bytes() for path in self.root.rglob("*.rs")}
        self._flags = [
            "--edition",
            "2021",
            "--crate-type",
            "lib",
            "src/lib.rs",
            "--emit=metadata",
            "--error-format=json",
        ]
        self._flags += ["-o", str(top / "out.rmeta"), "-A", "warnings", *flags]

    def errors(self) -> list[dict[str, Any]] | None:
        """What rustc complains about; None where it is content."""
        done = subprocess.run(["rustc", *self._flags], cwd=self.root, capture_output=True, text=True, check=False)
        found = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        return [one for one in found if one["level"] == "error"] if done.returncode else None

    def uses(self, symbol: Symbol) -> set[tuple[str, int]] | None:
        """The lines that change with a symbol's name."""
        name = symbol[3].encode()
        new = (b"zz_" if symbol[3][0].islower() else b"Zz") + name
        now, changed = dict(self.files), set[tuple[str, int]]()
        spots = {(symbol[0], symbol[1], symbol[2])}
        complaints: list[dict[str, Any]] | None = None
        for _ in range(ROUNDS):
            for path, line, column in sorted(spots, reverse=True):
                lines = now[path].split(b"\n")
                text = lines[line - 1]
                if re.match(name + rb"(?!\w)", text[column:]) and not re.search(rb"\w$", text[:column]):
                    lines[line - 1] = text[:column] + new + text[column + len(name) :]
                    now[path] = b"\n".join(lines)
                    changed.add((path, line))
            self._write(now)
            before, complaints = spots, self.errors()
            if complaints is None:
                break
            spots = {
                spot
                for one in complaints
                for span in one["spans"]
                if span["is_primary"]
                for spot in spots_of(span, now, name)
            }
            if spots <= before:
                break
        self._write(self.files)
        return changed if complaints is None else None

    def _write(self, files: dict[str, bytes]) -> None:
        for path, text in files.items():
            if (self.root / path).read_bytes() != text:
                (self.root / path).write_bytes(text)


def spots_of(span: dict[str, Any], files: dict[str, bytes], name: bytes) -> Iterator[tuple[str, int, int]]:
    """Where the name stands in what rustc points at, and in what that was expanded from."""
    path = span["file_name"]
    for number in range(span["line_start"], span["line_end"] + 1) if path in files else ():
        text = files[path].split(b"\n")[number - 1]
        begin = span["column_start"] - 1 if number == span["line_start"] else 0
        end = span["column_end"] - 1 if number == span["line_end"] else len(text)
        for found in re.finditer(rb"(?<!\w)" + name + rb"(?!\w)", text):
            if begin <= found.start() and found.end() <= end <= begin + len(name) + 40:
                yield path, number, found.start()
    if span.get("expansion"):
        yield from spots_of(span["expansion"]["span"], files, name)


def symbols(path: str, text: bytes) -> Iterator[Symbol]:
    """Items, methods and fields before the file's tests."""
    owner, in_struct = "", False
    for number, line in enumerate(text.split(b"\nmod tests")[0].split(b"\n"), 1):
        opened = OWNER.match(line)
        if opened:
            words = re.findall(rb"\w+", re.sub(rb"<[^{]*?>", b"", opened[1]).split(b" for ")[-1])
            owner = next((word.decode() for word in words if word not in NOT_NAMES), "")
            in_struct = b"struct " in opened[1]
        elif line.startswith(b"}"):
            owner = ""
        item, depth = ITEM.match(line), len(line) - len(line.lstrip())
        if item and (depth == 0 or (depth == 4 and owner)):
            kind = "function" if item[1] == b"fn" else "class"
            yield path, number, item.start(2), item[2].decode(), owner if depth else "", kind
        field = FIELD.match(line)
        if field and owner and in_struct:
            yield path, number, field.start(1), field[1].decode(), owner, "field"


def main() -> None:
    source, out, seed, per = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    crate = Crate(source, sys.argv[5:])
    problems = crate.errors()
    if problems is not None:
        sys.exit(f"does not compile as it is: {problems[0]['message']}")
    every = sorted(one for path, text in crate.files.items() for one in symbols(path, text))
    owners: dict[str, set[tuple[str, str]]] = {}
    for one in every:
        owners.setdefault(one[3], set()).add((one[0], one[4]))
    strata: dict[str, list[Symbol]] = {"unique": [], "few": [], "common": []}
    for one in every:
        count = len(owners[one[3]])
        strata["unique" if count == 1 else "few" if count <= 5 else "common"].append(one)
    tests = [
        (path, number)
        for path, text in crate.files.items()
        if b"\nmod tests" in text
        for number in range(text.partition(b"\nmod tests")[0].count(b"\n") + 1, text.count(b"\n") + 2)
    ]
    drawing, found = random.Random(seed), []
    for stratum, members in strata.items():
        drawing.shuffle(members)
        count = 0
        for one in members:
            uses = crate.uses(one) if count < per else None
            if uses is not None:
                count += 1
                fields = dict(zip(("path", "line", "column", "name", "owner", "kind"), one, strict=True))
                found.append({**fields, "stratum": stratum, "uses": sorted(uses), "undecided": tests})
    truth = {"root": str(source), "exts": [".rs"], "below": ["src/"], "symbols": found, "sites": []}
    out.write_text(json.dumps(truth), encoding="utf-8")


if __name__ == "__main__":
    main()
