"""The floors of the house hold: who may import whom, and which door is the only one (docs/explanation/architecture.md)."""

import ast
from collections.abc import Collection, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "code_intel_server"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE

FLOORS = {
    "errors": 0, "__init__": 0, "process": 0, "common": 0.5, "contract": 1, "workspace": 2, "codebase": 2, "flow": 3,
    "index": 3, "receipts": 3, "tools": 4, "server": 5, "cli": 6, "__main__": 7,
}  # fmt: skip

# Library -> the only modules that may import it; at first use where LAZY says so.
ONLY_DOOR = {
    "subprocess": {"process"}, "multiprocessing": set[str](), "mcp": {"server", "cli.proof.agent"},
    "jinja2": {"cli.pages.render"}, "git": {"workspace.git.repository"}, "tree_sitter": {"codebase.syntax.grammars"},
    "tree_sitter_language_pack": {"codebase.syntax.grammars"}, "chromadb": {"index.vectors.chroma_child"},
}  # fmt: skip
LAZY = {"chromadb", "tree_sitter", "tree_sitter_language_pack", "git", "numpy", "sentence_transformers", "torch"}


def modules() -> list[Path]:
    """Every module of the package."""
    return sorted(SOURCE.rglob("*.py"))


def dotted(path: Path) -> str:
    """`flow.handlers.ready` for src/code_intel_server/flow/handlers/ready.py."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


@cache
def imports(path: Path, *, types: bool = False) -> tuple[tuple[str, int], ...]:
    """(absolute module name, nesting depth: 0 at module level) of every import; with `types` of those for types too."""
    tree = parsed(path)

    def visit(node: ast.AST, depth: int) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, depth) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}: relative import"
                yield from ((f"{child.module}.{alias.name}", depth) for alias in child.names)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test) and not types:
                continue
            else:
                inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from visit(child, depth + inner)

    return tuple(visit(tree, 0))


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_a_module_imports_only_from_lower_floors_or_its_own_package(path: Path) -> None:
    me = dotted(path).split(".")[0]
    for name, _ in imports(path):
        if not name.startswith(PACKAGE + "."):
            continue
        other = name.split(".")[1]
        if other in FLOORS:
            assert other == me or FLOORS[other] < FLOORS[me], f"{dotted(path)} imports {name}"


def test_no_module_imports_itself_round_about_types_included() -> None:
    known = {dotted(path): path for path in modules()}
    TopologicalSorter(
        {me: imported(path, known.keys()) - {me} for me, path in known.items()}
    ).prepare()  # or CycleError


def imported(path: Path, known: Collection[str]) -> set[str]:
    """The modules of the package that a module imports as it loads, or only names types of."""
    tree = parsed(path)
    guarded = [node for one in tree.body if isinstance(one, ast.If) for node in one.body]
    found = [node for node in (*tree.body, *guarded) if isinstance(node, ast.ImportFrom)]
    names = [f"{node.module}.{one.name}".removeprefix(f"{PACKAGE}.") for node in found for one in node.names]
    return {name if name in known else name.rpartition(".")[0] for name in names} & set(known)


DOORS = {
    "codebase.evidence", "codebase.impact", "codebase.resolution", "codebase.text_search", "contract", "receipts",
    "workspace.branches",
}  # fmt: skip
"""Rooms that are entered by what their `__init__` exports, and by nothing else."""


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_a_room_with_a_door_is_entered_by_it(path: Path) -> None:
    me = dotted(path)
    for name, _ in imports(path, types=True):
        module = name.removeprefix(f"{PACKAGE}.")
        module = module if (SOURCE / f"{module.replace('.', '/')}.py").exists() else module.rpartition(".")[0]
        for room in DOORS:
            if module.startswith(f"{room}.") and not f"{me}.".startswith(f"{room}."):
                pytest.fail(f"{me} imports {name}, past the door of {room}")


def test_only_the_transition_table_assigns_a_phase() -> None:
    assigning = {
        dotted(path)
        for path in modules()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for one in ast.walk(target)
        if isinstance(one, ast.Attribute) and one.attr in {"phase", "substep"} and ast.unparse(one.value) != "self"
    }
    assert assigning == {"flow.transitions"}


ROOMS = sorted({path.parent for path in modules()})
MODULES_OF_A_ROOM = 15
LARGER: dict[str, int] = {}
"""Rooms that are still too large, and how large at most: a figure may fall, none may rise."""


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_a_room_says_what_it_is_for_and_has_at_most_fifteen_modules(room: Path) -> None:
    assert ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
    count = sum(path.name != "__init__.py" for path in room.glob("*.py"))
    assert count <= LARGER.get(room.relative_to(SOURCE).as_posix(), MODULES_OF_A_ROOM)


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_each_library_has_one_door(path: Path) -> None:
    for name, _ in imports(path):
        top = name.split(".")[0]
        if top in ONLY_DOOR:
            assert dotted(path) in ONLY_DOOR[top], f"{dotted(path)} imports {name}"


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_heavy_libraries_load_on_first_use(path: Path) -> None:
    if dotted(path) == "codebase.syntax.grammars":
        return  # loaded on first use itself
    for name, depth in imports(path):
        if name.split(".")[0] in LAZY:
            assert depth > 0, f"{dotted(path)} imports {name} at module level"


GIT_COMMANDS = {
    "cli.doctor.machine": "asks for the version",
    "cli.proof": "plays the user, in a repository of its own",
    "workspace.git.isolated_directory": "the door to reading",
    "workspace.git.repository": "the door",
    "workspace.state.tree_state": "asks as the isolated directory does, within the milliseconds of a hook",
}
STARTS = {"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp"}


def test_git_and_processes_are_started_through_one_door_each() -> None:
    for path in modules():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.List | ast.Tuple) and node.elts and ast.unparse(node.elts[0]) == "'git'":
                shown = f"{dotted(path)}:{node.lineno}: {ast.unparse(node)}"
                assert dotted(path) in GIT_COMMANDS or f"join({ast.unparse(node)})" in ast.unparse(parsed(path)), shown
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os":
                starts = node.attr in STARTS or node.attr.startswith(("exec", "spawn"))
                assert not starts or dotted(path) == "process", f"{dotted(path)}:{node.lineno}: os.{node.attr}"


@cache
def parsed(path: Path) -> ast.Module:
    """A module as a syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))
