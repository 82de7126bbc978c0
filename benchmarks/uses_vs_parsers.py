"""Definitions and uses beside the parsers of other languages: every symbol of an outline, and what every name is.

    python benchmarks/uses_vs_parsers.py go=path/to/sources ... [--files 500] [--seed 20261122] [--wrong 40]

Files are drawn without replacement; those that the language's own parser refuses count for nothing. What a parser says comes
from the programs in `parsers/`, one a language; `COMMANDS` says how each is run and where it is to be had. Of C Clang tells only
what no condition leaves out, and the roles of what it resolves: look at recall there. A definition is
(kind, qualified name, line). A name is every word of the file that is none of the language's own: both say where it is used,
and as what, where that has one meaning in both: definition, call, import, attribute, type. Prints a Markdown table; --wrong
also the most frequent differences, with as many examples.
"""

import argparse
import json
import random
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from code_intel_server.codebase.files.languages import LANGUAGES_BY_NAME
from code_intel_server.codebase.symbols import tagging
from code_intel_server.codebase.syntax import structure
from code_intel_server.codebase.syntax.values import Use

HERE = Path(__file__).parent / "parsers"
COUNTED = frozenset({"definition", "call", "import", "attribute", "type"})
COMMANDS = {
    "go": (".go", f"go run {HERE / 'names.go'}"),  # Debian: golang-go, its library golang-src
    "java": (  # Debian: openjdk-17-jdk, its library openjdk-17-source
        ".java",
        f"java --add-exports jdk.compiler/com.sun.tools.javac.tree=ALL-UNNAMED {HERE / 'Names.java'}",
    ),
    "ruby": (".rb", f"ruby {HERE / 'names.rb'}"),  # Debian: ruby, its library libruby3.1
    # PyPI: libclang, for whose python --command stands, with the folders of headers (its own: Debian's libclang-common-14-dev)
    "c": (".c", f"python {HERE / 'c_names.py'}"),
    "php": (".php", f"node {HERE / 'php_names.js'}"),  # npm: php-parser, NODE_PATH then says where
}
WORDS = {
    "ruby": "BEGIN END __ENCODING__ __END__ __FILE__ __LINE__ alias and begin break case class def defined defined? do else elsif end ensure "
    "false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield",
    "php": "abstract and array as break callable case catch class clone const continue declare default do echo else elseif empty "
    "enddeclare endfor endforeach endif endswitch endwhile enum extends final finally fn for foreach from function global goto if "
    "implements include include_once instanceof insteadof interface isset list match namespace new null or print private protected "
    "public readonly require require_once return self static parent switch throw trait try unset use var while xor yield true false "
    "exit die eval mixed void never int string bool float iterable object php __CLASS__ __DIR__ __FILE__ __FUNCTION__ __LINE__ __METHOD__ __NAMESPACE__ __TRAIT__ integer CONST TRUE FALSE NULL",
    "c": "auto break case char const continue default do double else enum extern float for goto if inline int long register restrict "
    "return short signed sizeof static struct switch typedef union unsigned void volatile while _Bool define undef include ifdef "
    "ifndef endif elif error pragma defined bool true false NULL",
    "java": "abstract assert boolean break byte case catch char class const continue default do double else enum extends final finally "
    "float for goto if implements import instanceof int interface long native new package private protected public return "
    "short static strictfp super switch synchronized this throw throws transient try void volatile while true false null var "
    "sealed permits module requires exports opens to uses provides with transitive",
    "go": "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var _",
}
_WORD = re.compile(rb"(?<![\w\x80-\xff])[A-Za-z_\x80-\xff][\w\x80-\xff]*")
_OWN_WORD = {
    "java": re.compile(rb"(?<![\w$\x80-\xff])[A-Za-z_$\x80-\xff][\w$\x80-\xff]*"),
    "ruby": re.compile(rb"(?<![\w\x80-\xff])[A-Za-z_\x80-\xff][\w\x80-\xff]*(?:[?!](?!=(?![=~>])))?"),
}

Definition = tuple[str, str, int]


@dataclass
class Score:
    """Counts over the files of one language."""

    files: int = 0
    errors: int = 0
    octets: int = 0
    sums: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def share(self, part: str, whole: str) -> str:
        return f"{self.sums[part] / max(self.sums[whole], 1):.4f}"

    def note(self, what: str, where: str) -> None:
        self.wrong[what].append(where)

    def row(self, name: str) -> str:
        cells = (
            name,
            str(self.files),
            str(self.errors),
            str(self.sums["definitions"]),
            self.share("defined", "definitions"),
            self.share("defined", "outlined"),
            self.share("tagged", "taggable"),
            str(self.sums["names"]),
            self.share("seen", "names"),
            self.share("seen", "used"),
            str(self.sums["roles"]),
            self.share("told", "roles"),
        )
        return f"| {' | '.join(cells)} |"


def by_parser(command: str, root: Path, paths: list[str]) -> Iterator[dict[str, list]]:
    asked = "".join(f"{path}\n" for path in paths)
    done = subprocess.run(command.split(), cwd=root, input=asked, stdout=subprocess.PIPE, text=True, check=True)
    yield from map(json.loads, done.stdout.splitlines())


def by_us(data: bytes, language: str) -> tuple[set[Definition], dict[int, tuple[str, str]], bool]:
    """Our symbols, our names by byte, and whether the file has errors."""
    parsed = structure.parse(data, LANGUAGES_BY_NAME[language])
    if parsed is None:
        return set(), {}, True
    symbols = {(symbol.kind.value, symbol.qualified, symbol.line) for symbol in structure.outline_of(parsed).symbols}
    uses, words, names = structure.Uses(parsed), frozenset(WORDS[language].split()), {}
    for line, start in enumerate(parsed.line_starts, 1):
        for found in _OWN_WORD.get(language, _WORD).finditer(parsed.text, start, parsed.line_end(line)):
            name = found[0].decode("utf-8", "replace")
            if name not in words and not uses.is_part(found.start(), found[0]):
                names[found.start()] = (name, uses.at(line, found.start() - start).value)
    return symbols, names, parsed.has_errors


def compare(score: Score, language: str, root: Path, file: Mapping[str, list]) -> None:
    path = str(file["path"])
    data = (root / path).read_bytes()
    symbols, names, has_errors = by_us(data, language)
    score.files += 1
    score.errors += has_errors
    score.octets += len(data)
    if has_errors:
        score.note("! errors", path)
    wanted = {(str(kind), str(name), int(line)) for kind, name, line in file["definitions"]}
    score.sums.update(definitions=len(wanted), outlined=len(symbols), defined=len(wanted & symbols))
    for what, some in (("- definition", wanted - symbols), ("+ definition", symbols - wanted)):
        for kind, name, line in some:
            score.note(f"{what} {kind}", f"{path}:{line} {name}")
    theirs = {
        int(byte): (str(name), str(role)) for byte, name, role in file["names"] if name not in WORDS[language].split()
    }
    prose = {Use.COMMENT.value, Use.STRING.value}
    ours = {byte: one for byte, one in names.items() if one[1] not in prose or byte in theirs}
    used = [byte for byte, one in ours.items() if one[1] not in prose]
    counted = {byte: one for byte, one in theirs.items() if one[1] in COUNTED}
    score.sums.update(
        names=len(theirs),
        used=len(used),
        seen=sum(byte in theirs for byte in used),
        roles=len(counted),
        told=sum(ours.get(byte, ("", ""))[1] == one[1] for byte, one in counted.items()),
    )
    for byte in theirs.keys() | ours.keys():
        name, role = theirs.get(byte, ("", "nothing"))
        our_name, our_role = ours.get(byte, ("", "nothing"))
        if role != our_role:
            line = data.count(b"\n", 0, byte) + 1
            text = data.split(b"\n")[line - 1].decode("utf-8", "replace").strip()[:110]
            score.note(f"{role} we tell {our_role}", f"{path}:{line} {name or our_name} | {text}")


def compare_tags(score: Score, root: Path, files: list[Mapping[str, list]]) -> None:
    """The names that find_definitions knows, by whichever engine."""
    tagged = tagging.tag_files(root, [str(file["path"]) for file in files], seconds=120)
    tags = {file.path: {(tag.name, tag.start_line) for tag in file.tags} for file in tagged.files}
    kinds = {
        file.path: {(tag.name, tag.start_line): (tag.kind, tag.scope, file.engine) for tag in file.tags}
        for file in tagged.files
    }
    for file in files:
        path = str(file["path"])
        wanted = {
            (re.split(r"[.\\]", str(name))[-1], int(line)): (kind, name) for kind, name, line in file["definitions"]
        }
        ours = tags.get(path, set())
        score.sums.update(taggable=len(wanted), tagged=len(wanted.keys() & ours))
        for one in wanted.keys() - ours:
            score.note(f"- tag {wanted[one][0]}", f"{path}:{one[1]} {wanted[one][1]}")
        for one in ours - wanted.keys():
            score.note(f"+ tag {kinds[path][one][0]} {kinds[path][one][2]}", f"{path}:{one[1]} {one[0]}")
        for one in ours & wanted.keys():
            kind, scope, engine = kinds[path][one]
            if kind != wanted[one][0]:
                score.note(f"tag {engine} {wanted[one][0]} as {kind}", f"{path}:{one[1]} {one[0]}")
            if not f".{scope}.{one[0]}".endswith("." + wanted[one][1].replace("\\", ".")):
                score.note(f"tag {engine} scope {kind}", f"{path}:{one[1]} {wanted[one][1]} is {scope}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="language=path")
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--command", help="how the parser's program is run, where not as usual")
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--wrong", type=int, default=0)
    options = parser.parse_args()
    print(
        "| language | files | with errors | definitions | recall | precision | found by find_definitions | names | recall | precision | roles | told alike |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for source in options.sources:
        language, _, folder = source.partition("=")
        root = Path(folder).resolve()
        ending, command = COMMANDS[language]
        every = sorted(
            str(path.relative_to(root))
            for path in root.rglob(f"*{ending}")
            if path.is_file() and not path.is_symlink() and path.stat().st_size < 300_000
        )
        command = options.command or command
        paths = random.Random(options.seed).sample(every, min(options.files, len(every)))
        score = Score()
        files = list(by_parser(command, root, paths))
        for file in files:
            compare(score, language, root, file)
        compare_tags(score, root, files)
        print(score.row(language), flush=True)
        for what, places in sorted(score.wrong.items(), key=lambda item: -len(item[1]))[: 100 if options.wrong else 0]:
            print(f"\n{what}: {len(places)}")
            print(*random.Random(1).sample(places, min(options.wrong, len(places))), sep="\n")


if __name__ == "__main__":
    main()
