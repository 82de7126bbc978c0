"""Steps 5, 7, 9 and 11: looking at the code, each claim compared with the files and the ledger (SPEC 4)."""

import re
from collections.abc import Iterable, Set
from difflib import get_close_matches

from code_intel_server.codebase.evidence import references_in
from code_intel_server.common.printable import printable
from code_intel_server.errors import Rejected
from code_intel_server.flow.access import LOOKUPS
from code_intel_server.flow.checks import disposal
from code_intel_server.flow.checks.claims import texts_of, wrong_places
from code_intel_server.flow.checks.judgement import files_named, list_of_paths, missing_files, shown_files
from code_intel_server.flow.payloads import ExplorationPayload, HypothesesPayload, ImpactPayload, SemanticPayload
from code_intel_server.flow.phases import DOCUMENT_RESEARCH, Event
from code_intel_server.flow.ports import DOCUMENTS_AT_MOST, Ports
from code_intel_server.flow.turn import Note, Outcome, Turn

# Weights of the server's own confidence: how many kinds of tools, how much was really seen, what resolved.
_TOOL_KINDS_FULL = 4
_WEIGHTS = (0.3, 0.4, 0.3)
_NEAREST = 3


def exploration(turn: Turn[ExplorationPayload]) -> Outcome:
    """Accept files that exist; answer what the server itself makes of the exploration."""
    payload, state = turn.payload, turn.state
    if not payload.explored_files or not any(finding.strip() for finding in payload.findings):
        raise Rejected("failures.EXPLORATION.empty_result")
    missing = missing_files(turn.ports.evidence, payload.explored_files)
    if missing:
        raise Rejected("failures.EXPLORATION.file_not_found", files=list_of_paths(missing))
    found = [files_named(turn.ports.evidence, name) for name in payload.explored_files]
    explored = list(dict.fromkeys(paths[0] for paths in found))
    seen = shown_files(turn.ports)
    if state.route.runs(DOCUMENT_RESEARCH):
        seen = seen.union(turn.ports.documents.documents_for(state.query, DOCUMENTS_AT_MOST))
    shown = [paths for paths in found if not seen.isdisjoint((*paths, printable(paths[0])))]
    state.explored_files = list(dict.fromkeys([*state.explored_files, *(path for paths in shown for path in paths)]))
    state.unseen_files = [path for path in explored if path not in state.explored_files]
    state.confidence = _confidence(turn, len(explored))
    unseen = (Note("hints.unseen_files", {"files": list_of_paths(state.unseen_files)}),) if state.unseen_files else ()
    hints = (*unseen, *wrong_places(payload.findings, turn.ports))
    return Outcome(Event.OK, {"confidence": state.confidence, "unseen_files": [*state.unseen_files]}, hints=hints)


def _confidence(turn: Turn[ExplorationPayload], explored: int) -> float:
    """0 to 1: kinds of lookups used, share of the explored files that a tool showed, share of target symbols resolved."""
    kinds = len({call.tool for call in turn.calls()} & LOOKUPS)
    frame = turn.state.query_frame
    symbols = frame.target_symbols if frame else ()
    rows = turn.ports.relevance.symbols(symbols, turn.state.query)
    turn.state.unresolved_symbols = [row.symbol for row in rows if not row.resolved]
    parts = (
        min(kinds / _TOOL_KINDS_FULL, 1.0),
        1 - len(turn.state.unseen_files) / explored,
        sum(bool(row.resolved) for row in rows) / len(symbols) if symbols else 0.5,
    )
    return round(sum(weight * part for weight, part in zip(_WEIGHTS, parts, strict=True)), 2)


def semantic(turn: Turn[SemanticPayload]) -> Outcome:
    """Accept search results; none only where the server's own last search found none."""
    if not turn.payload.search_results:
        searches = [call for call in turn.calls() if call.tool == "semantic_search"]
        if not searches or searches[-1].results:
            raise Rejected("failures.SEMANTIC.empty_search_results")
    texts, shown = [*texts_of([*turn.payload.search_results])], shown_files(turn.ports)
    if missing := [path for text in texts if (path := _missing_file(turn.ports, text, shown))]:
        raise Rejected(
            "failures.SEMANTIC.file_not_found", files=list_of_paths(missing), nearest=_nearest(shown, *missing)
        )
    return Outcome(Event.OK, hints=_not_shown(turn.ports, texts, shown))


def _missing_file(ports: Ports, text: str, shown: Set[str]) -> str:
    """The file that a text names by a place, where neither that nor another it names exists; `localhost:80` is no file."""
    paths = [reference.path for reference in references_in(text)]
    if any(files_named(ports.evidence, path) for path in paths) or any(path in text for path in shown):
        return ""
    return next((path for path in reversed(paths) if {".", "/"} & {*path}), "")


def _nearest(shown: Set[str], *missing: str) -> str:
    """The files shown in this session whose names are most like those that do not exist."""
    known = {path.rpartition("/")[2]: path for path in sorted(shown)}
    names = [name for path in missing for name in get_close_matches(path.rpartition("/")[2], known, _NEAREST, cutoff=0)]
    return list_of_paths([known[name] for name in dict.fromkeys(names)][:_NEAREST]) or "none"


def _not_shown(ports: Ports, texts: Iterable[str], shown: Set[str]) -> tuple[Note, ...]:
    """A hint that names the files of claimed places which nothing has shown in this session."""
    places = (ports.evidence.normal(one.path) for text in texts for one in references_in(text))
    unseen = sorted({path for path in places if path and path not in shown and ports.evidence.exists(path)})
    return (Note("hints.not_shown", {"files": list_of_paths(unseen)}),) if unseen else ()


def verification(turn: Turn[HypothesesPayload]) -> Outcome:
    """Accept hypotheses that hold, each with a place that exists or a tool that really ran."""
    hypotheses = turn.payload.hypotheses_verified
    if not hypotheses:
        raise Rejected("failures.VERIFICATION.empty_hypotheses")
    if not all(hypothesis.result for hypothesis in hypotheses):
        raise Rejected("failures.VERIFICATION.result_false_exists")
    tools, shown = {call.tool for call in turn.calls()}, shown_files(turn.ports)
    for hypothesis in hypotheses:
        missing = _missing_file(turn.ports, hypothesis.evidence, shown)
        named = tools.intersection(re.findall(r"\w+", hypothesis.evidence))
        if missing or not (_place_exists(turn, hypothesis.evidence) or named):
            raise Rejected(
                "failures.VERIFICATION.evidence_invalid",
                hypothesis=hypothesis.hypothesis,
                evidence=hypothesis.evidence,
                nearest=_nearest(shown, missing),
            )
    return Outcome(Event.OK, hints=_not_shown(turn.ports, (hypothesis.evidence for hypothesis in hypotheses), shown))


def _place_exists(turn: Turn[HypothesesPayload], evidence: str) -> bool:
    for reference in references_in(evidence):
        path = turn.ports.evidence.normal(reference.path)
        total = turn.ports.evidence.total_lines(path) if path else None
        if total is not None and 1 <= reference.start <= reference.end <= total:
            return True
    return False


def impact_analysis(turn: Turn[ImpactPayload]) -> Outcome:
    """Accept a summary of the impact that says something."""
    if not turn.payload.impact_summary:
        raise Rejected("failures.IMPACT_ANALYSIS.empty_impact_summary")
    disposal.note_calls(turn.state, turn.calls())
    disposal.dispose(turn.state, turn.payload.must_verify)
    return Outcome(Event.OK, hints=wrong_places(texts_of(turn.payload.impact_summary), turn.ports))
