"""find_definitions(at=…): what the name at a place means (SPEC 2)."""

from code_intel_server.codebase.answers import FIRST_PAGE, LookupAnswer, Page, Skipped, answer
from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.files.project import ProjectScope, valid_text
from code_intel_server.codebase.references.resolved import SourcePlace, no_name_at
from code_intel_server.codebase.resolution import Definition, Resolver
from code_intel_server.codebase.symbols import definitions, tagging
from code_intel_server.codebase.symbols.cache import SymbolCache
from code_intel_server.codebase.symbols.definitions import TEXT_COLUMNS, DefinitionRow
from code_intel_server.codebase.symbols.freshness import SourceFiles


def definitions_at(
    project: ProjectScope, cache: SymbolCache, at: str, *, page: Page = FIRST_PAGE, skipped: Skipped | None = None
) -> LookupAnswer[DefinitionRow]:
    """The definitions of what stands `at` path:line[:column]; all of its name, and a note, where the text does not tell which.

    What lies outside of the project is named in a note. Raises Rejected('tool_errors.query.no_name_at'),
    Rejected('tool_errors.generic.argument_invalid') and the errors of `inside_file`.
    """
    place = SourcePlace.parsed(project, at)
    found = Resolver(project).at(place.path, place.line, place.column)
    if found is None:
        raise no_name_at(at)
    if not found.definitions and not found.outside:
        named = definitions.find_definitions(project, cache, found.name, page=page, skipped=skipped)
        return definitions.with_note(
            named, f"which {valid_text(found.name)} is meant there is not known: all of that name"
        )
    standing = SourceFiles(project.root)
    rows = [_row(one, standing) for one in found.definitions]
    notes = [] if rows else [f"outside of the project: {valid_text(found.outside)}"]
    if rows and not found.certain:
        notes.append("there may be others")
    return answer(page.cut(rows), page, len(rows), engine=tagging.SYNTAX_TREE, notes=notes, skipped=skipped)


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
