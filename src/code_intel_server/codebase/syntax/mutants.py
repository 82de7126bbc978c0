"""Extreme mutation: a file whose functions do nothing, so that a run shows which tests notice that (SPEC 4, Receipts).

Nothing is taken out: each body begins with a return. So a file that compiled still does, a generator stays one, and who
reads the source finds what stood there.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from code_intel_server.codebase.files.languages import Language
from code_intel_server.codebase.syntax.grammars import Captures, Parsed, matches, parse

if TYPE_CHECKING:
    from tree_sitter import Node

Insertion = tuple[int, bytes]
Edit = tuple[int, int, bytes]
"""Where in a text something begins and ends, and what is to stand there."""


def _python(parsed: Parsed, found: Captures) -> Iterator[Insertion]:
    """A return behind the docstring, without a value: no other is allowed in an asynchronous generator."""
    statements = [node for node in found["body"][0].named_children if node.type != "comment"]
    if not statements:  # of a function that is not finished
        return
    first = statements[0].named_children[:1] if statements[0].type == "expression_statement" else []
    if {"string", "concatenated_string"} & {node.type for node in (statements[0], *first)}:
        del statements[0]
    for node in statements[:1]:
        before = parsed.text[parsed.text.rfind(b"\n", 0, node.start_byte) + 1 : node.start_byte]
        yield node.start_byte, b"return; " if before.strip() else b"return\n" + before


def _javascript(_: Parsed, found: Captures) -> Iterator[Insertion]:
    """A return, or an expression of which nothing is evaluated; not where a base class's constructor must be called."""
    body = found["body"][0]
    if body.type != "statement_block":
        yield from ((body.start_byte, b"void 0&&("), (body.end_byte, b")"))
    elif not _must_call_super(found["function"][0]):
        yield body.start_byte + 1, b"return;"


def _must_call_super(method: "Node") -> bool:
    name, class_ = method.child_by_field_name("name"), method.parent.parent if method.parent else None
    derived = class_ is not None and any(child.type == "class_heritage" for child in class_.children)
    return derived and method.type == "method_definition" and name is not None and name.text == b"constructor"


def _go(_: Parsed, found: Captures) -> Iterator[Insertion]:
    """A return of zero values: a panic would end the tests of the package, and results without names get one."""
    for result in found.get("result", ()):
        if result.type != "parameter_list":
            yield from ((result.start_byte, b"(_ "), (result.end_byte, b")"))
            continue
        for one in result.named_children:
            if one.type == "parameter_declaration" and one.child_by_field_name("name") is None:
                yield one.start_byte, b"_ "
    yield found["body"][0].start_byte + 1, b"return;"


_OF_JAVASCRIPT = (
    "function_declaration generator_function_declaration function_expression generator_function arrow_function"
)
_JAVASCRIPT = (
    f"[{' '.join(f'({kind} body: (_) @body)' for kind in (*_OF_JAVASCRIPT.split(), 'method_definition'))}] @function"
)
_OF_GO = ("function_declaration", "method_declaration", "func_literal")
_GO = f"[{' '.join(f'({kind} result: (_)? @result body: (_) @body)' for kind in _OF_GO)}] @function"
LANGUAGES: dict[str, tuple[str, Callable[[Parsed, Captures], Iterator[Insertion]]]] = {
    "python": ("(function_definition body: (_) @body) @function", _python),
    **dict.fromkeys(("javascript", "typescript", "tsx"), (_JAVASCRIPT, _javascript)),
    "go": (_GO, _go),
}
"""What finds the functions of a language, and what their bodies begin with."""


def functions(text: bytes, language: Language) -> frozenset[bytes]:
    """The functions and methods of a file, each by its own text, without the bodies of those inside it."""
    return frozenset(own for own, _, _ in _functions(text, language))


def mutant(text: bytes, language: Language, known: Collection[bytes]) -> bytes:
    """The file, its functions other than the known doing nothing; as it is where there are none, or it is not understood."""
    parsed = parse(text, language)
    insertions = [
        (at, at, inserted)
        for own, parsed, found in _functions(text, language)
        if own not in known and not found["function"][0].has_error
        for at, inserted in LANGUAGES[parsed.language.name][1](parsed, found)
    ]
    return edited(parsed, insertions) if parsed and insertions else text


def edited(parsed: Parsed, edits: Iterable[Edit]) -> bytes:
    """The text with these edits, none within another; as it is where that has errors of syntax that it had not before."""
    done, parts = 0, []
    for start, end, inserted in sorted(edits, key=lambda one: one[0]):
        parts += [parsed.text[done:start], inserted]
        done = end
    made = b"".join([*parts, parsed.text[done:]])
    after = parse(made, parsed.language)
    return parsed.text if after is None or (after.has_errors and not parsed.has_errors) else made


def _functions(text: bytes, language: Language) -> Iterator[tuple[bytes, Parsed, Captures]]:
    parsed = parse(text, language) if language.name in LANGUAGES else None
    if parsed is None or parsed.text != text:
        return
    query = LANGUAGES[parsed.language.name][0]
    found = sorted(matches(parsed, query), key=lambda one: one["function"][0].start_byte)
    pieces: list[list[bytes]] = [[] for _ in found]
    ends = [one["function"][0].start_byte for one in found]
    around: list[int] = []
    for number, one in enumerate(found):
        function, body = one["function"][0], one["body"][0]
        while around and found[around[-1]]["function"][0].end_byte < function.end_byte:
            around.pop()
        if around and ends[around[-1]] <= body.start_byte:
            pieces[around[-1]].append(text[ends[around[-1]] : body.start_byte])
            ends[around[-1]] = body.end_byte
        around.append(number)
    for number, one in enumerate(found):
        yield b"".join([*pieces[number], text[ends[number] : one["function"][0].end_byte]]), parsed, one
