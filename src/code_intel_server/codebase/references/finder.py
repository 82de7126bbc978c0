"""find_references: where a name is used, and as what (SPEC 2).

Ripgrep finds the lines that hold the name, the syntax tree of each file then says what the name is there. Files
that no grammar reads are shown line by line, unless they are documents by their type: of these the answer says how many
there are.
"""

import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from code_intel_server.codebase.answers import EXACT_TOTAL_LIMIT, FIRST_PAGE, LookupAnswer, Page, Skipped, answer
from code_intel_server.codebase.external_resolution import ExternalSources
from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.files.memory import FileMemory
from code_intel_server.codebase.files.project import ProjectScope, of_length, path_inside
from code_intel_server.codebase.files.ripgrep import FileMatches, Query
from code_intel_server.codebase.files.roles import RELEVANCE, role
from code_intel_server.codebase.files.text import counted
from code_intel_server.codebase.references.classify import (
    PROSE,
    NameQuery,
    ReferenceRow,
    Told,
    classify,
    is_document,
    may_hold,
    occurrences,
    unparsed,
)
from code_intel_server.codebase.references.first_page import PageRequest, batch
from code_intel_server.codebase.references.folding import RowFold
from code_intel_server.codebase.references.resolved import (
    Binder,
    Receivers,
    SourcePlace,
    SourcesSaid,
    by_file,
    no_name_at,
    other_names,
    said_of,
    target_of,
)
from code_intel_server.codebase.resolution import Binding, Resolver
from code_intel_server.codebase.symbols import definitions
from code_intel_server.codebase.symbols.cache import SymbolCache, stamp_of
from code_intel_server.codebase.symbols.freshness import SourceFiles
from code_intel_server.codebase.symbols.names import broken, expression, operator_sign, readings, written
from code_intel_server.codebase.symbols.tagging import SYNTAX_TREE
from code_intel_server.codebase.syntax.values import Use
from code_intel_server.errors import Rejected

CLASSIFY_SECONDS = 12.0
ENGINE = f"{ripgrep.ENGINE} + {SYNTAX_TREE}"
HOW_TO_SEE_THEM = "include_comments=true shows these"
HOW_TO_GO_ON = "the next page tells on"
ONE_FILE = "path=FILE"
_WORD = re.compile(r"\w+")
_FOLDED_FILES = 8
_FOLDED_AT_MOST = 500


class Bind(Protocol):
    """Tells which rows mean what was asked for."""

    def __call__(self, rows: Sequence[ReferenceRow], *, every: bool, shown: bool = True) -> Sequence[ReferenceRow]:
        """Those that do or may, in order; `every`: there are no others; `shown`: not only their number matters."""


@dataclass(frozen=True, slots=True)
class References:
    """All references to one name in ranked order, and what kept them from being complete.

    `folded` are rows of tests and data that come behind all others where the product uses the name.
    `documents` are the documents that hold a name and were left out, `silent` the other files of which no line is told: there
    the names are in comments, in strings or within longer names only. Both relative paths in ranked order. `untold` are the
    files that hold a name behind the rows that were wanted.
    """

    rows: tuple[ReferenceRow, ...]
    problems: tuple[str, ...] = ()
    overflowed: bool = False
    documents: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    untold: Sequence[FileMatches] = ()
    folded: tuple[ReferenceRow, ...] = ()

    @property
    def every(self) -> tuple[ReferenceRow, ...]:
        """All rows, the folded ones last."""
        return (*self.rows, *self.folded)


def find_references(
    project: ProjectScope,
    cache: SymbolCache,
    symbol: str | None,
    *,
    at: str | None = None,
    path: str = ".",
    kinds: Sequence[str] = (),
    include_comments: bool = False,
    page: Page = FIRST_PAGE,
    skipped: Skipped | None = None,
    memory: FileMemory[ReferenceRow] | None = None,
    sources: ExternalSources | None = None,
) -> LookupAnswer[ReferenceRow]:
    """Where `symbol`, or what stands `at` path:line[:column], is used: what certainly means it before what may; of the rest the number.

    `Class.method` and names behind their module mean one symbol; a bare name means all that are defined under it; of a selector
    (`move:to:`) the first word is looked for. Comments, strings and prose only with `include_comments`. `kinds` narrows to some of definition,
    call, import, attribute, type, other, comment, string. Of a name in many files as many are reported as the page needs, beginning with those
    that define it and those that know it; `total` then is what is known so far. Where the product uses the name, a page ends before most rows
    of tests and data, which `path` shows file by file. Raises Rejected('tool_errors.query.no_symbol'),
    Rejected('tool_errors.query.no_name_at'), Rejected('tool_errors.query.unknown_qualifier'), Rejected('tool_errors.generic.argument_invalid') and the errors of `path_inside`.
    """
    wanted = _uses(kinds)
    where = path_inside(project.root, path)
    asked = _asked(project, cache, symbol, at, sources)
    names = asked.names
    limits = PageRequest(
        page.range.stop + 1, wanted, lambda: cache.store.files_naming(names[0]), asked.near, page.offset
    )
    if asked.target is not None and asked.target.is_local and where == ".":
        [where] = asked.target.files
    found = collect(
        project,
        names,
        path=where,
        include_comments=include_comments or bool(wanted & PROSE),
        memory=memory,
        wanted=limits,
        bind=asked.bound,
    )
    first = [row for row in found.rows if not wanted or row.kind in wanted]
    rows = [*first, *found.folded]
    if (
        asked.target is not None
        and not asked.target.symbols
        and not asked.own
        and where == "."
        and not any(row.binding == Binding.CERTAIN for row in found.every)
    ):
        asked.give_up(symbol)
    # Where files are told as far as a page needs, certain rows are in order within a file only.
    shown_page = asked.ended(page, first) if asked.is_one and not found.untold else page
    if page.offset < len(first) < shown_page.range.stop:
        shown_page = Page(len(first) - page.offset, page.offset)
    shown = shown_page.cut(rows)
    more = found.overflowed or bool(found.untold)
    kinds_of_all = rows if more or len(shown) < len(rows) else ()
    return answer(
        shown,
        shown_page,
        len(rows),
        engine=" + ".join((ENGINE, *asked.said.engines)),
        incomplete_because=(*found.problems, *_broken(project, names[0], path), *_late(asked)),
        skipped=skipped,
        more=more,
        counts=tuple((use.value, count) for use in Use if (count := sum(row.kind is use for row in kinds_of_all))),
        other=asked.others,
        notes=(
            *(() if asked.is_one else _ambiguity(found.rows, names[0])),
            *asked.said.notes,
            *asked.possible(shown_page, first),
            *(_folded(found) if page.offset < len(first) else ()),
            *_others(asked),
            *asked.receivers.notes(found.every),
            *(() if wanted else _left_out(found, names[0])),
            *_untold(found, names[0]),
        ),
    )


def _asked(
    project: ProjectScope, cache: SymbolCache, symbol: str | None, at: str | None, sources: ExternalSources | None
) -> Binder:
    """What is asked for, with the names under which it is used."""
    resolver = Resolver(project)
    if at:
        place = SourcePlace.parsed(project, at)
        target = resolver.target_at(place.path, place.line, place.column)
        said = SourcesSaid.at(sources, place, target.name if target else "")
        if target is None and not said.symbols:
            raise no_name_at(at)
        name = target.name if target else said.name
        if target is not None and not target.symbols and not target.outside:
            target = None
    else:
        name = last_name(symbol or "")
        target = target_of(project, cache, resolver, symbol or "")
        said = said_of(sources, resolver, target)
    others = other_names(project, resolver, target) if target is not None else ()
    names = tuple(dict.fromkeys((name, *others, *said.names)))
    known = definitions.resolve(cache, symbol) if symbol and not at and target and not target.symbols else ()
    own = {(one.path, one.tag.start_line) for one in known}
    return Binder(project, resolver, target, names, own, said, Receivers.of(cache, resolver, target))


def _late(asked: Binder) -> Iterator[str]:
    if asked.is_late:
        yield "time ran out before every row was told apart: some that are possible may be certain, or mean something else"


def _folded(found: References) -> Iterator[str]:
    if found.folded:
        rest = counted(len(found.folded), "more row")
        files = by_file(found.folded, _FOLDED_FILES)
        yield f"folded: {rest} of tests and data, on the last pages or with {ONE_FILE}: {files}"


def _others(asked: Binder) -> Iterator[str]:
    overridden = [f"{counted(count, 'row')} of {one.qualified}" for one, count in asked.overridden()]
    if overridden:
        yield f"may be this one when it runs: {', '.join(overridden)}"
    if asked.others:
        yield "other: rows that certainly mean something else; search_text with word=true shows them"


def last_name(symbol: str) -> str:
    """The part of a qualified symbol that is written where it is used."""
    found = readings(of_length(symbol, "symbol"))[-1]
    if not found or "\n" in found[-1] or "\0" in found[-1]:
        raise Rejected("tool_errors.query.no_symbol")
    return written(found[-1])


def collect(
    project: ProjectScope,
    names: Sequence[str],
    *,
    path: str = ".",
    include_comments: bool = False,
    memory: FileMemory[ReferenceRow] | None = None,
    seconds: float = CLASSIFY_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    wanted: PageRequest | None = None,
    bind: Bind = lambda rows, *, every, shown=True: rows,  # noqa: ARG005
) -> References:
    """Every reference to any of `names`, files with a definition first, then code, tests, documentation, vendored.

    Of many files only as many are reported as give what is `wanted`. After `seconds` the remaining lines are returned unclassified (`other`), and a problem says how many files they are in.
    `bind` is given rows, and whether they are every one there is; it gives those that are wanted, in order.
    """
    found = ripgrep.search(project, _query(names), path=path)
    asked = NameQuery(occurrences(names), include_comments)
    teller = _Teller(project, asked, FileMemory() if memory is None else memory, clock, clock() + seconds)
    files: Sequence[FileMatches] = sorted(found.files, key=lambda file: (RELEVANCE[role(file.path)], file.path))
    in_order = wanted.ordered(project, files) if wanted else None
    fold = RowFold(wanted.kinds if wanted else frozenset(), several=len(files) > 1)
    rows: list[ReferenceRow] = []
    if wanted and in_order:
        files, first = in_order
        told: list[Told] = []
        for told_now, rows_now in _as_wanted(teller, files, first, wanted, bind, fold):
            told += told_now
            rows += rows_now
    else:
        told = teller.tell(files)
        groups = sorted(
            (one or () for one in told), key=lambda rows: not any(row.kind is Use.DEFINITION for row in rows)
        )
        rows += fold.kept(bind([row for group in groups for row in group], every=True))
    files, untold = files[: len(told)], files[len(told) :]
    silent = [file for file, one in zip(files, told, strict=True) if one is not None and not one]
    documents = {file.path for file in silent if is_document(file.path, language_of(file.path))}
    return References(
        tuple(rows[: 2 * EXACT_TOTAL_LIMIT]),
        (*found.problems, *teller.problems),
        found.overflowed,
        tuple(file.path for file in silent if file.path in documents and may_hold(file, asked)),
        tuple(file.path for file in silent if file.path not in documents),
        untold,
        tuple(fold.folded[: 2 * EXACT_TOTAL_LIMIT]),
    )


def _as_wanted(
    teller: "_Teller", files: Sequence[FileMatches], first: int, wanted: PageRequest, bind: Bind, fold: RowFold
) -> Iterator[tuple[list[Told], Sequence[ReferenceRow]]]:
    """What is found of the first files, and the rows of that, until they are as many as are wanted.

    The rows' order must not depend on the page: but for the `first` files it is that of the files.
    """
    missing = wanted.rows
    done = 0
    while missing > 0 and (chosen := files[:first] if first and not done else batch(files, done, missing)):
        if len(fold.folded) > _FOLDED_AT_MOST and wanted.rows - missing > wanted.first:
            return  # ten thousand files of data are not told for the few rows that a page has left
        told = teller.tell(chosen)
        groups = [[row for one in told for row in one or ()]] if first and not done else told
        rows: list[ReferenceRow] = []
        for group in groups:
            last = wanted.rows - missing + wanted.held(row.kind for row in group or ())
            bound = fold.kept(bind(group or (), every=False, shown=last > wanted.first))
            rows += bound
            missing -= wanted.held(row.kind for row in bound)
        yield told, rows
        done += len(chosen)


@dataclass(slots=True)
class _Teller:
    """Tells what the names are in the files of one question, and remembers it; after `deadline` by the `clock` without parsing."""

    project: ProjectScope
    asked: NameQuery
    memory: FileMemory[ReferenceRow]
    clock: Callable[[], float]
    deadline: float
    standing: SourceFiles = field(init=False)
    unclassified: set[str] = field(default_factory=set)
    unread: int = 0

    def __post_init__(self) -> None:
        self.standing = SourceFiles(self.project.root)

    def tell(self, files: Sequence[FileMatches]) -> list[Told]:
        """What is found of each file, unless that was done for these lines of this file as it still looks."""
        stamps = [stamp_of(self.project, file.path) for file in files]
        looks = [(stamp, hash(file.printed)) for file, stamp in zip(files, stamps, strict=True)]
        questions = [(file.path, self.asked) for file in files]
        told: list[Told] = list(map(self.memory.known, questions, looks))
        new = [place for place, known in enumerate(told) if known is None]
        for place in new:
            one = told[place] = self._classified(files[place])
            if one is not None and files[place].path not in self.unclassified:
                self.memory.keep(questions[place], looks[place], one)
        self.unread += sum(one is None for one in told)
        return told

    @property
    def problems(self) -> Iterator[str]:
        """What keeps that from being complete, a sentence each."""
        if self.unclassified:
            yield f"{len(self.unclassified)} files were searched but not parsed in time"
        if self.unread:
            yield f"{self.unread} files were found but could not be read"

    def _classified(self, file: FileMatches) -> Told:
        if self.clock() <= self.deadline:
            return classify(self.standing, file, self.asked)
        self.unclassified.add(file.path)
        return unparsed(self.standing, file, self.asked)


def _query(names: Sequence[str]) -> Query:
    if any(map(operator_sign, names)):
        return Query(tuple(map(expression, names)))
    return Query(tuple(names), regex=False, word=all(_WORD.fullmatch(name) for name in names))


def _broken(project: ProjectScope, name: str, path: str) -> Iterator[str]:
    """What is reported of an operator's name that goes over several lines: ripgrep tells lines."""
    if pattern := broken(name):
        files, problems = ripgrep.matching_files(
            project, Query((pattern,)), path=path_inside(project.root, path), extra=("--multiline",)
        )
        yield from problems
        if files:
            yield f"in {len(files)} files {name} is written over several lines, which is not told"


def _uses(kinds: Sequence[str]) -> frozenset[Use]:
    try:
        return frozenset(Use(kind.lower()) for kind in kinds)
    except ValueError as problem:
        raise Rejected(
            "tool_errors.generic.argument_invalid",
            field="kinds",
            expected=f"some of {', '.join(use.value for use in Use)}",
        ) from problem


def _ambiguity(rows: Collection[ReferenceRow], name: str) -> Iterator[str]:
    definitions = sum(row.kind is Use.DEFINITION for row in rows)
    if definitions > 1:
        yield f"{definitions} definitions share the name {name}; Class.{name} or at=path:line asks for one"


def _left_out(found: References, name: str) -> Iterator[str]:
    """What the agent does not see without `include_comments`."""
    places = [counted(len(found.documents), "document")] if found.documents else []
    if found.silent:
        places.append(f"{counted(len(found.silent), 'other file')} only in comments, strings or longer names")
    if places:
        yield f"left out: {name} in {' and in '.join(places)}; {HOW_TO_SEE_THEM}"


def _untold(found: References, name: str) -> Iterator[str]:
    if found.untold:
        lines = sum(file.count for file in found.untold)
        yield (
            f"files are told as far as this page needs: {counted(len(found.untold), 'further file')} hold {name} on "
            f"{counted(lines, 'line')}; {HOW_TO_GO_ON}"
        )
