"""The lookup, semantic and impact tools as they answer: rows, totals, warranty, 10,000 characters (SPEC 2, 8, 9)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import JsonValue

from code_intel_server.codebase.answers import LookupAnswer, Page
from code_intel_server.codebase.files.roles import Role
from code_intel_server.codebase.issue_report import read_report
from code_intel_server.codebase.symbols.file_structure import FIRST_FILES
from code_intel_server.codebase.symbols.folding import folded
from code_intel_server.common.plain import plain
from code_intel_server.errors import Rejected
from code_intel_server.flow import responses
from code_intel_server.flow.access import ACCESS
from code_intel_server.flow.turn import Note
from code_intel_server.index.values import Agreement, Collection, Hit
from code_intel_server.tools.current_project import CurrentProject
from code_intel_server.tools.guard import contract_of
from code_intel_server.tools.shaping import (
    AROUND,
    DEFAULT_CHARACTERS,
    MAX_ANSWER_BYTES,
    Fields,
    Fitted,
    answer_rows,
    fitting_rows,
    narrowed,
    size_of,
)

if TYPE_CHECKING:
    from code_intel_server.codebase.explorer import Explorer
    from code_intel_server.codebase.impact import Impact

_MAX_LIMIT = 1000
_SNIPPETS = (500, 350, 200)
"""Characters of a hit's text: the most with which all hits fit."""
_ECHOED = 200
"""Characters of a question that its answer repeats."""
_AGREEMENTS, _AGREED_NAMES, _AGREED_CHARACTERS = 3, 10, 200
"""How many agreements are shown, how many of their symbols and files, and how much of each text: the files may be anybody's."""
_FIRST_TOUCHED = 20
"""Files of an impact that are shown unless more are asked for."""
_FIRST_IMPACT = 3_900
"""Characters of an impact as long as no more files are asked for."""
_BESIDE_ROWS = 1_500
"""Characters of an impact that are not its rows, at most."""


def page_of(limit: int, offset: int) -> Page:
    """A page; limits outside 1 to 1,000 and negative offsets are brought inside."""
    return Page(min(max(limit, 1), _MAX_LIMIT), max(offset, 0))


def _explorer(current: CurrentProject) -> "Explorer":
    """The project's lookups; what they skip is counted from the first on, in a session or outside."""
    explorer = current.services.explorer
    explorer.skips.begin()
    return explorer


def listed(
    current: CurrentProject, limit: int, offset: int, ask: "Callable[[Explorer, Page], LookupAnswer[object]]"
) -> Fields:
    """A page of what a lookup finds, `ask`ed of the project's lookups, as every list tool answers (SPEC 2)."""
    page = page_of(limit, offset)
    return answer_rows(ask(_explorer(current), page), page.offset)


def get_symbols(current: CurrentProject, path: str, offset: int) -> Fields:
    """The outline of a file; what does not fit into one answer is folded before it is cut (SPEC 2)."""
    first = page_of(1, offset).offset
    found = current.services.explorer.get_symbols(path)
    if fitting_rows(found.results, DEFAULT_CHARACTERS - AROUND).rows < len(found.results):
        found = folded(found)
    return answer_rows(replace(found, results=found.results[first:]), first)


def get_function_at_line(current: CurrentProject, path: str, line: int) -> Fields:
    """The innermost function or class around a line, with its source (SPEC 2)."""
    return answer_rows(current.services.explorer.get_function_at_line(path, line))


def analyze_structure(current: CurrentProject, path: str, offset: int) -> Fields:
    """Classes, functions, imports and calls of a file or folder (SPEC 2)."""
    return listed(current, FIRST_FILES.limit, offset, lambda lookups, page: lookups.analyze_structure(path, page=page))


def query(current: CurrentProject, question: str, limit: int) -> Fields:
    """One question, routed; semantic search only where the phase allows it. Says which lookups ran, and why.

    A whole report is asked by its title and prose, and answered with starting points in front, which may use meaning in any phase.
    """
    from code_intel_server.codebase.query_router import route

    active = current.sessions.active
    allowed = active is None or active.state.phase in ACCESS["semantic_search"].phases
    report = read_report(question)
    begun = current.services.starting_points.rows(question) if report.is_whole else {}
    asked = (f"{report.title}\n{report.prose}" if allowed else report.title) if begun else question
    routed = route(
        _explorer(current),
        asked,
        limit=page_of(limit, 0).limit,
        semantic=(lambda text, most: _semantic_answer(current, text, most)) if allowed else None,
    )
    chosen = routed.chosen
    answer = begun | answer_rows(chosen.answer, budget=DEFAULT_CHARACTERS - size_of(begun))
    shown = {name: value[:_ECHOED] if isinstance(value, str) else value for name, value in chosen.arguments.items()}
    answer |= {"tool": chosen.tool, "arguments": plain(shown), "why": chosen.why}
    tried: list[JsonValue] = [
        {"tool": step.tool, "why": step.why, "found": step.answer.total} for step in routed.steps if step is not chosen
    ]
    return answer | {"tried_before": tried} if tried else answer


def _semantic_answer(current: CurrentProject, text: str, most: int) -> LookupAnswer[Hit]:
    found = current.services.index.search(text, limit=most)
    hits = tuple(replace(hit, text=hit.text[: _SNIPPETS[0]]) for hit in found.hits)
    why, notes = ((), found.notes) if found.complete else (found.notes, ())
    return LookupAnswer(hits, found.total, found.engine, complete=found.complete, incomplete_because=why, notes=notes)


def semantic_search(
    current: CurrentProject, text: str, limit: int, path: str, language: str | None, collection: str
) -> Fields:
    """Map first, then Forest; what the answer is worth is reported with it."""
    where = "" if path in {"", "."} else current.services.project.inside(path)
    if not current.services.root.joinpath(
        where
    ).exists():  # else nothing would be found there, and that be the whole truth
        raise Rejected("tool_errors.generic.path_not_found", path=path)
    found = current.services.index.search(
        text, limit=min(max(limit, 1), 100), path=where, language=language or "", collection=Collection(collection)
    )
    agreements: list[JsonValue] = [_agreement_row(one) for one in found.agreements[:_AGREEMENTS]]
    shown = _shown_hits(found.hits, DEFAULT_CHARACTERS - 600 - size_of(agreements))
    truncated = shown.rows < len(found.hits)
    answer: Fields = {
        "results": shown.results,
        "total": found.total,
        "truncated": truncated,
        "engine": found.engine,
        "complete": found.complete and not truncated,
        "collection": str(found.collection),
        "pending": found.pending,
        "indexed_files": found.indexed_files,
    }
    if found.notes:
        answer["notes" if found.complete else "incomplete_because"] = [*found.notes]
    if found.agreements:
        answer["agreements"] = agreements
    if found.collection is Collection.MAP:
        answer["forest_skipped"] = True
        hit = Note("hints.map_hit", {"score": found.agreements[0].score}) if found.agreements else None
        answer["hint"] = responses.say(contract_of(current), hit or Note("hints.map_miss"))
    return answer


def _agreement_row(agreement: Agreement) -> JsonValue:
    def cut(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(text[:_AGREED_CHARACTERS] for text in texts[:_AGREED_NAMES])

    query = agreement.query[:_AGREED_CHARACTERS]
    shown = replace(agreement, query=query, symbols=cut(agreement.symbols), files=cut(agreement.files))
    return plain(replace(shown, score=round(agreement.score, 2)))


def _shown_hits(hits: Sequence[Hit], room: int) -> Fitted:
    """As many hits as fit; rather all of them with shorter texts than fewer with longer ones."""
    shown = Fitted([], 0, narrowed=False)
    for most in _SNIPPETS:
        shown = fitting_rows([replace(hit, text=hit.text[:most]) for hit in hits], room)
        if shown.rows == len(hits):
            break
    return shown


def fetch_chunk_detail(current: CurrentProject, chunk_id: str, neighbours: int) -> Fields:
    """One chunk whole, with its neighbours."""
    hits = current.services.index.chunk(chunk_id, min(max(neighbours, 0), 5))
    results = fitting_rows(hits, MAX_ANSWER_BYTES).results
    return {"results": results, "total": len(hits), "truncated": False, "engine": "sqlite", "complete": True}


def analyze_impact(current: CurrentProject, targets: Sequence[str], depth: int, limit: int, offset: int) -> Fields:
    """What a change to these symbols or files touches."""
    if not [target for target in targets if target.strip()]:
        raise Rejected("tool_errors.query.no_symbol")
    page = page_of(limit, offset)
    found = _explorer(current).analyze_impact(
        targets, depth=min(max(depth, 1), 5), page=page, history=current.services.history
    )
    return impact_fields(found, page)


def impact_fields(found: "Impact", page: Page) -> Fields:
    """An impact as it is answered: within 4 KB, unless more files than by default are asked for.

    Of the files that fit, tests that need not be verified come behind those of the product and documents.
    """
    beside: Fields = {
        "targets": [*dict.fromkeys(f"{one.path}:{one.start_line} {one.symbol}".rstrip() for one in found.targets)],
        "must_verify": [f"{row.must_verify} {row.path}:{row.start_line}" for row in found.must_verify],
    }
    if found.unresolved:
        beside["unresolved"] = [*found.unresolved]
    beside = narrowed(beside, _BESIDE_ROWS)
    most = DEFAULT_CHARACTERS if page.limit > _FIRST_TOUCHED else _FIRST_IMPACT
    room = most - size_of(beside) - size_of(found.answer.notes)
    rows, homes = found.answer.results, {one.path for one in found.targets}
    fitting = fitting_rows(rows, room - AROUND).rows
    tests_last = sorted(
        rows[:fitting],
        key=lambda row: row.group is Role.TESTS and not row.must_verify and row.path not in homes,
    )
    answer = replace(found.answer, results=(*tests_last, *rows[fitting:]))
    return answer_rows(answer, page.offset, room) | beside
