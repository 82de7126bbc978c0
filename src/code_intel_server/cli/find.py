"""`find text|def|refs|symbols|impact`: the server's lookups for people (SPEC 8, 12)."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from code_intel_server.cli.console import Failed, explained, guarded, parser, project_root, show, shown_path, typed_path
from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.impact import Impact
from code_intel_server.codebase.references.finder import HOW_TO_GO_ON, HOW_TO_SEE_THEM, ONE_FILE
from code_intel_server.common.plain import plain
from code_intel_server.common.printable import printable
from code_intel_server.errors import CodeIntelError
from code_intel_server.tools.services import ProjectServices
from code_intel_server.tools.shaping import MAX_ANSWER_BYTES, answer_rows
from code_intel_server.workspace.paths import FOLDER
from code_intel_server.workspace.project.config import Config

_MOST_CHARACTERS = 200
_ADVICE = {
    "tool_errors.generic.path_outside_project": "Give a path inside the project.",
    "tool_errors.generic.path_closed": "",
    "tool_errors.generic.path_not_found": "Paths are from where you stand; outside the project, from its root.",
    "tool_errors.generic.not_a_file": "`find text PATTERN --path DIR` looks below a folder.",
    "tool_errors.generic.pattern_not_one_line": "Search for one of its lines.",
    "tool_errors.generic.pattern_invalid": "A backslash lets a character stand for itself.",
    "tool_errors.query.unknown_qualifier": "Ask for one of these, or for the bare name.",
    "tool_errors.generic.program_missing": "`code-intel-server doctor` says how to install it.",
}
"""What to do about an error in this command's terms, where the contract's remedy names tools and arguments."""

_FOR_PEOPLE = {HOW_TO_SEE_THEM: "`find text` shows these", HOW_TO_GO_ON: "--limit shows more", ONE_FILE: "--path FILE"}


def main(arguments: list[str]) -> int:
    """Look something up; exit status 1 where nothing was found."""
    made = parser("find", "Look code up as the server does, and say what the answer is worth.")
    kinds = made.add_subparsers(dest="what", required=True)
    for name, about, argument in (
        ("text", "text, by regular expression", "pattern"),
        ("def", "where a symbol is defined", "symbol"),
        ("refs", "where a symbol is used", "symbol"),
        ("symbols", "the outline of one file", "path"),
        ("impact", "what a change to a symbol or file touches", "target"),
    ):
        kind = kinds.add_parser(name, help=about)
        kind.add_argument(argument)
        kind.add_argument("--json", action="store_true", help="as JSON")
        kind.add_argument("--limit", type=_rows, default=50, metavar="ROWS", help="rows at most (default %(default)s)")
        if name in {"text", "def", "refs"}:
            kind.add_argument("--path", metavar="DIR", help="only below this folder")
    options = made.parse_args(arguments)
    return guarded(lambda: _run(options))


def _rows(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of rows")
    return int(text)


def _run(options: argparse.Namespace) -> int:
    root = project_root(options.project)
    if (root / FOLDER).is_dir():
        explorer = ProjectServices(root).explorer
    else:  # and nothing is written: a `.code-intel` left behind would make this folder a project
        explorer = Explorer(root, Config().exclude_patterns, keeps=False)
    for name in ("path", "target"):
        if typed := getattr(options, name, None):
            setattr(options, name, _meant(root, typed, symbols=name == "target"))
    try:
        found = _shaped(_LOOKUPS[options.what](explorer, options, Page(min(options.limit, 1000))))
    except CodeIntelError as error:
        raise Failed(explained(error, _ADVICE)) from error
    finally:
        explorer.close()
    if options.json:
        print(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        _show(root, found)
    return 0 if found["results"] else 1


def _meant(root: Path, typed: str, *, symbols: bool) -> str:
    """The project's name for a path; with `symbols` what names no file from here stays as it is."""
    path = typed_path(root, typed)
    return path if not symbols or (root / path).exists() else typed


_LOOKUPS: dict[str, Callable[[Explorer, argparse.Namespace, Page], Any]] = {
    "text": lambda found, given, page: found.search_text(given.pattern, given.path or ".", page=page),
    "def": lambda found, given, page: found.find_definitions(given.symbol, path=given.path or ".", page=page),
    "refs": lambda found, given, page: found.find_references(given.symbol, path=given.path or ".", page=page),
    "symbols": lambda found, given, _page: found.get_symbols(given.path),
    "impact": lambda found, given, page: found.analyze_impact([given.target], page=page),
}


def _shaped(answer: Any) -> dict[str, Any]:
    rows = dict(answer_rows(answer.answer if isinstance(answer, Impact) else answer, budget=MAX_ANSWER_BYTES))
    if isinstance(answer, Impact):
        rows["must_verify"] = plain([row.must_verify for row in answer.must_verify])
        rows["unresolved"] = plain(answer.unresolved)
    return rows


def _show(root: Path, found: dict[str, Any]) -> None:
    """One line a row as editors and terminals understand it, then what the answer is worth."""
    lines_shown = 0
    for entry in found["results"]:
        tied = f"{'must' if 'id' in entry else 'should'} verify  {entry['group']}  " if "group" in entry else ""
        for row in entry["rows"]:
            lines, _, said = row.partition(": ")
            for line in lines.split(", "):  # lines that read the same are one row
                place = f"{_one_line(shown_path(root, entry['path']))}:{line.split('-')[0]}"
                print(f"{place}: {tied}{_one_line(said)[:_MOST_CHARACTERS]}")
                lines_shown += not tied
        lines_shown += bool(tied)
    more = "+" if found.get("total_at_least") else ""
    worth = "complete" if found["complete"] else "not complete"
    notes = [f"only the first {lines_shown} are shown: --limit shows more"] if found["truncated"] else []
    notes += found.get("incomplete_because", [])
    notes += [f"not resolved: {name}" for name in found.get("unresolved", [])]
    notes += map(_for_people, found.get("notes", []))
    show(f"-- {found['total']}{more} found by {found['engine']}; {worth}", indent=3)
    for note in notes:
        show(f"   {note}", indent=3)


def _for_people(note: str) -> str:
    """A note with what this command offers in the place of an agent's arguments."""
    for said, instead in _FOR_PEOPLE.items():
        note = note.replace(said, instead)
    return note


def _one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n")
