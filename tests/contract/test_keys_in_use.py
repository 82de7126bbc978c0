"""Every message that the code names exists and gets the values that its texts show (SPEC 5)."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import code_intel_server
from code_intel_server.contract.loader import Contract

SOURCE = Path(code_intel_server.__file__).parent
MESSAGES = Contract.load(None).texts.messages
RAISED = {"Rejected", "UserActionNeeded", "Unavailable"}


@dataclass(frozen=True)
class Use:
    """One place that names a message; `params` is None where they are not written out there."""

    where: str
    key: str
    params: frozenset[str] | None


def uses() -> Iterator[Use]:
    """Every error raised on purpose, every note and every message asked for, where the key is written out."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            where = f"{path.relative_to(SOURCE)}:{node.lineno}"
            name = called(node.func)
            for key in written_keys(node.args[0]):
                if name in RAISED:
                    yield Use(where, key, raised_params(node))
                elif name == "refuse":  # workspace.branches.refusals: the reason is the last part of the key
                    yield Use(where, f"tool_errors.git.{key}", frozenset({"output"}))
                elif name in {"Note", ".message"}:
                    yield Use(where, key, note_params(node))


def called(function: ast.expr) -> str:
    """`Note` for a name, `.message` for a method."""
    if isinstance(function, ast.Attribute):
        return f".{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def written_keys(node: ast.expr) -> list[str]:
    """The key, or the two of a conditional; none where it is computed."""
    if isinstance(node, ast.IfExp):
        return [*written_keys(node.body), *written_keys(node.orelse)]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def raised_params(node: ast.Call) -> frozenset[str] | None:
    names = [keyword.arg for keyword in node.keywords]
    return None if None in names else frozenset(name for name in names if name and name != "details")


def note_params(node: ast.Call) -> frozenset[str] | None:
    if len(node.args) < 2:
        return frozenset()
    given = node.args[1]
    if not isinstance(given, ast.Dict):
        return None
    return frozenset(key.value for key in given.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))


USES = list(uses())


@pytest.mark.parametrize("use", USES, ids=lambda use: f"{use.where} {use.key}")
def test_a_message_that_is_named_exists_and_gets_its_values(use: Use) -> None:
    assert use.key in MESSAGES
    if use.params is not None:
        assert MESSAGES[use.key].names() <= use.params


def test_the_scan_sees_the_flow() -> None:
    assert len({use.key for use in USES if use.where.startswith("flow")}) > 60
