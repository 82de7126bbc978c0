"""Which files of a project steer its tests, which are its product, and which are both (SPEC 4, Receipts).

One table as data. What is neither named here nor a test is product.
"""

import configparser
import io
import json
import re
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from code_intel_server.codebase.files.roles import TEST_TABLES, is_runner_file, is_test_file


class FileClass(StrEnum):
    """Whose version of a file counts when old tests run on a new product."""

    TEST = "test or runner"
    PRODUCT = "product"
    BOTH = "both"


_HEADER = re.compile(r"^\[\[?([^\]\n]+)\]\]?\s*(?:#.*)?$")


def file_class(path: str) -> FileClass:
    """The class of a file by its path (relative, '/'-separated)."""
    name = path.rpartition("/")[2]
    if name in TEST_TABLES:
        return FileClass.BOTH
    if is_test_file(path) or is_runner_file(path):
        return FileClass.TEST
    return FileClass.PRODUCT


def merged_file(path: str, product: bytes, runner: bytes) -> bytes | None:
    """A file of both classes with the test tables of `runner` and all else of `product`; None where it cannot be made."""
    name = path.rpartition("/")[2]
    tables = TEST_TABLES[name]
    try:
        match name.rpartition(".")[2]:
            case "json":
                return _merged_json(json.loads(product), json.loads(runner), tables)
            case "toml":
                return _merged_toml(product.decode(), runner.decode(), tables)
            case _:
                return _merged_ini(product.decode(), runner.decode(), tables)
    except (ValueError, AttributeError, RecursionError, configparser.Error):
        return None


def _merged_json(product: dict[str, Any], runner: dict[str, Any], tables: tuple[str, ...]) -> bytes:
    made = _without(product, tables)
    for table in tables:
        *above, last = table.split(".")
        theirs = _at(runner, table)
        if theirs is not None:
            inner = made
            for key in above:
                inner = inner.setdefault(key, {})
            inner[last] = theirs
    return json.dumps(made, indent=2).encode()


def _merged_toml(product: str, runner: str, tables: tuple[str, ...]) -> bytes | None:
    """By blocks of lines, since nothing here writes TOML; what comes out is read again and compared."""
    theirs = [block for header, block in _blocks(runner) if _is_among(header, tables)]
    text = "".join([*(block for header, block in _blocks(product) if not _is_among(header, tables)), *theirs])
    wanted = _without(tomllib.loads(product), tables)
    found = tomllib.loads(text)
    same_product = _without(found, tables) == wanted
    same_runner = all(_at(found, table) == _at(tomllib.loads(runner), table) for table in tables)
    return text.encode() if same_product and same_runner else None


def _blocks(text: str) -> list[tuple[str, str]]:
    """(header, its lines) of every table; '' is the header of what is before the first."""
    blocks: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        found = _HEADER.match(line)
        if found:
            blocks.append(("".join(found[1].replace('"', "").split()), []))
        blocks[-1][1].append(line + "\n")
    return [(header, "".join(lines)) for header, lines in blocks]


def _is_among(header: str, tables: tuple[str, ...]) -> bool:
    return any(header == table or header.startswith(table + ".") for table in tables)


def _at(content: Mapping[str, Any], table: str) -> Any:
    value: Any = content
    for key in table.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _without(content: dict[str, Any], tables: tuple[str, ...]) -> dict[str, Any]:
    """A copy without the tables, and without tables that hold nothing else."""
    kept: dict[str, Any] = {}
    for key, value in content.items():
        if key in tables:
            continue
        below = tuple(table.removeprefix(key + ".") for table in tables if table.startswith(key + "."))
        inner = _without(value, below) if below and isinstance(value, dict) else value
        if inner or not below:
            kept[key] = inner
    return kept


def _merged_ini(product: str, runner: str, tables: tuple[str, ...]) -> bytes:
    ours, theirs = (configparser.RawConfigParser(strict=False) for _ in range(2))
    ours.read_string(product)
    theirs.read_string(runner)
    for section in [name for name in ours.sections() if _named(name, tables)]:
        ours.remove_section(section)
    for section in [name for name in theirs.sections() if _named(name, tables)]:
        ours[section] = dict(theirs[section])
    text = io.StringIO()
    ours.write(text)
    return text.getvalue().encode()


def _named(section: str, tables: tuple[str, ...]) -> bool:
    return any(fnmatchcase(section, table) for table in tables)
