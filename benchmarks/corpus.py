"""Source trees of any size for the benchmarks, made of the functions and classes of Python's own standard library.

    python benchmarks/corpus.py FOLDER FILES

Every file holds three real functions or classes of at most 60 lines under the imports of the module they come from. From
the second time round each name gets a number, so that no text occurs twice: an index cannot answer from its own cache, and
a symbol's definition stays one place. The same FILES always gives the same tree, a hundred files a folder.
"""

import ast
import re
import sys
import sysconfig
from pathlib import Path

PER_FILE = 3
MAX_LINES = 60
PER_FOLDER = 100
MODULES = ("site-packages", "idlelib", "lib2to3", "turtledemo", "pydoc_data", "ensurepip", "__pycache__")


def pieces() -> list[tuple[str, str, str]]:
    """(imports of its module, name, text) of every function and class of the standard library that is not too long."""
    found = []
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        if any(part in MODULES for part in path.parts):
            continue
        try:
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text)
        except (OSError, ValueError, SyntaxError):
            continue
        lines = text.splitlines()
        head = "\n".join(lines[node.lineno - 1] for node in tree.body if isinstance(node, ast.Import))
        found += [
            (head, node.name, "\n".join(lines[node.lineno - 1 : node.end_lineno]))
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
            and 3 <= (node.end_lineno or 0) - node.lineno < MAX_LINES
        ]
    return found


def make(folder: Path, files: int) -> list[str]:
    """Write `files` files below `folder`; their paths relative to it."""
    supply = pieces()
    paths = []
    for number in range(files):
        chosen = [(number * PER_FILE + offset) for offset in range(PER_FILE)]
        texts, heads = [], dict[str, None]()
        for index in chosen:
            turn, at = divmod(index, len(supply))
            head, name, text = supply[at]
            heads[head] = None
            texts.append(numbered(name, text, turn) if turn else text)
        path = f"d{number // PER_FOLDER:04}/m{number:06}.py"
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("\n".join(heads) + "\n\n\n" + "\n\n\n".join(texts) + "\n", encoding="utf-8")
        paths.append(path)
    return paths


def numbered(name: str, text: str, turn: int) -> str:
    """The text with its own name, and those of its methods, made unlike those of the other turns."""
    names = {name, *re.findall(r"^\s+def (\w+)", text, re.MULTILINE)} - {"__init__"}
    return re.sub(r"\b(" + "|".join(map(re.escape, sorted(names))) + r")\b", rf"\g<1>_{turn}", text)


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    print(len(make(Path(sys.argv[1]), int(sys.argv[2]))), "files")
