"""find_definitions(at=…): what the name at a place means (SPEC 2)."""

from code_intel_server.codebase.answers import FIRST_PAGE, LookupAnswer, Page, Skipped, answer
from code_intel_server.codebase.external_resolution import ExternalSources
from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.files.project import ProjectScope, valid_text
from code_intel_server.codebase.references.resolved import SourcePlace, SourcesSaid, no_name_at, target_of
from code_intel_server.codebase.resolution import Definition, Resolution, Resolver
from code_intel_server.codebase.symbols import definitions, tagging
from code_intel_server.codebase.symbols.cache import SymbolCache
from code_intel_server.codebase.symbols.definitions import TEXT_COLUMNS, DefinitionRow
from code_intel_server.codebase.symbols.freshness import SourceFiles
from code_intel_server.errors import Rejected


def definitions_at(
    project: ProjectScope,
    cache: SymbolCache,
    at: str,
    *,
    page: Page = FIRST_PAGE,
    skipped: Skipped | None = None,
    sources: ExternalSources | None = None,
) -> LookupAnswer[DefinitionRow]:
    """The definitions of what stands `at` path:line[:column]; all of its name, and a note, where the text does not tell which.

    What lies outside of the project is named in a note. What the project's own `sources` say goes before what the text
    tells. Raises Rejected('tool_errors.query.no_name_at'),
    Rejected('tool_errors.generic.argument_invalid') and the errors of `inside_file`.
    """
    place = SourcePlace.parsed(project, at)
    resolver = Resolver(project)
    found = resolver.at(place.path, place.line, place.column)
    said = SourcesSaid.at(sources, place, found.name if found else "")
    found = _as_said(said, resolver) if said.symbols else found
    if found is None:
        raise no_name_at(at)
    if not found.definitions and not found.outside:
        named = definitions.find_definitions(project, cache, found.name, page=page, skipped=skipped)
        note = f"which {valid_text(found.name)} is meant there is not known: all of that name"
        return definitions.with_notes(named, note, *said.notes)
    standing = SourceFiles(project.root)
    rows = [_row(one, standing) for one in found.definitions]
    notes = [] if rows else [f"outside of the project: {valid_text(found.outside)}"]
    if rows and not found.certain:
        notes.append("there may be others")
    engine = " + ".join((tagging.SYNTAX_TREE, *said.engines))
    return answer(page.cut(rows), page, len(rows), engine=engine, notes=[*notes, *said.notes], skipped=skipped)


def definitions_otherwise(
    project: ProjectScope, cache: SymbolCache, symbol: str, found: LookupAnswer[DefinitionRow], page: Page = FIRST_PAGE
) -> LookupAnswer[DefinitionRow]:
    """What a qualified name means that nothing is defined under: a re-export, an inherited member, what a package holds.

    `found` is the answer by name. The nearest names are told in a note where there is no such thing.
    """
    resolver = Resolver(project)
    try:
        target = target_of(project, cache, resolver, symbol)
    except Rejected as unknown:
        return definitions.with_notes(
            found, f"{valid_text(symbol)} is not known here; nearest: {unknown.params['nearest']}"
        )
    declared = resolver.definitions(target.symbols) if target else ()
    if not declared:
        return found
    standing = SourceFiles(project.root)
    rows = [_row(one, standing) for one in declared]
    return answer(page.cut(rows), page, len(rows), engine=tagging.SYNTAX_TREE, skipped=found.skipped)


def _as_said(said: SourcesSaid, resolver: Resolver) -> Resolution:
    """What the sources say of a place; how far each definition goes is told by its text."""
    found = []
    for place in dict.fromkeys(place for one in said.symbols for place in one.definitions):
        here = resolver.at(place.path, place.line, place.start + 1)
        same = [one for one in here.definitions if (one.path, one.line) == (place.path, place.line)] if here else []
        bare = Definition(place.path, place.line, place.line, place.start + 1, said.name, "", said.name)
        found.append(same[0] if same else bare)
    return Resolution(said.name, tuple(found), said.symbols[0].outside)


def _row(one: Definition, standing: SourceFiles) -> DefinitionRow:
    text = standing.text(one.path, one.line).strip()[:TEXT_COLUMNS]
    language = language_of(one.path)
    return DefinitionRow(
        path=valid_text(one.path),
        start_line=one.line,
        end_line=one.end_line,
        symbol=one.name,
        kind=one.kind,
        scope=one.qualified.rpartition(".")[0],
        signature=text,
        text=text,
        language=language.name if language else "",
        engine=tagging.SYNTAX_TREE,
    )
