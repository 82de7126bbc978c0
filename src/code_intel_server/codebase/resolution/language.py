"""What resolution must know of a language: tables of node types, and how its imports find a file."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, ClassVar

from code_intel_server.codebase.resolution.model import BoundSymbol, Declaration, Model, Scope
from code_intel_server.codebase.resolution.values import (
    NO_VALUES,
    UNKNOWN,
    Class,
    Instance,
    Outside,
    Values,
    instances,
    outside,
    union,
)

if TYPE_CHECKING:
    from tree_sitter import Node

    from code_intel_server.codebase.resolution.evaluation import Environment, Evaluator, Meaning
    from code_intel_server.codebase.syntax.grammars import Captures, Parsed

_TYPED_KINDS = frozenset({"class", "function", "import", "namespace"})
_MOST_ARGUMENTS = 8
_CAMEL = re.compile(r"_*[A-Z]\w*[a-z]")


class LanguageRules:
    """A language as tables; what no table can say is a method. Node types are those of its grammar."""

    name: ClassVar[str]
    queries: ClassVar[Sequence[str]]
    """The files of its query, next to this one."""
    names: ClassVar[frozenset[str]] = frozenset({"identifier"})
    """Leaves that name something in an expression."""
    members: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """What takes a member: the fields of the object and of the member's name."""
    calls: ClassVar[Mapping[str, str]] = {}
    """What calls: the field of what is called."""
    same: ClassVar[frozenset[str]] = frozenset()
    """What stands for the first thing in it."""
    either: ClassVar[Mapping[str, Sequence[str]]] = {}
    """What stands for one of several fields."""
    literals: ClassVar[Mapping[str, str]] = {}
    """What the standard library makes of what is written."""
    lists: ClassVar[frozenset[str]] = frozenset()
    """What holds what is in it."""
    type_names: ClassVar[frozenset[str]] = frozenset({"type_identifier", "identifier"})
    type_members: ClassVar[Mapping[str, tuple[str, str]]] = {}
    type_arguments: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """What gives a type its arguments: the fields of the type and of the arguments."""
    type_same: ClassVar[frozenset[str]] = frozenset()
    type_either: ClassVar[frozenset[str]] = frozenset()
    type_lists: ClassVar[frozenset[str]] = frozenset()
    type_parents: ClassVar[frozenset[str]] = frozenset()
    transparent: ClassVar[frozenset[str]] = frozenset()
    """Outside types that behave as what they hold: a promise, a pointer, an optional."""
    elements: ClassVar[Mapping[str, int]] = {}
    """Outside types of many: which argument is what they hold, from the end where negative."""
    giving: ClassVar[frozenset[str]] = frozenset()
    """Methods of outside types that give what these hold."""
    keeping: ClassVar[frozenset[str]] = frozenset()
    """Methods of outside types that give such a type of the same."""
    plain: ClassVar[frozenset[str]] = frozenset()
    """Outside types all of whose methods give outside things."""
    members_in_scope: ClassVar[bool] = False
    """Whether a class's members are seen by their bare name from within its functions."""
    is_closed: ClassVar[bool] = False
    """Whether a class has nothing but what it and its bases declare."""
    wide_scopes: ClassVar[bool] = False
    """Whether a function's scope begins before its name."""
    modules_apart: ClassVar[bool] = False
    """Whether a module within a file does not see what is around it."""
    body_in_scope: ClassVar[bool] = False
    """Whether they are seen so directly in the class's body."""
    call_member: ClassVar[str] = ""
    aliases_by_value: ClassVar[bool] = False
    """Whether a variable set to a type is one."""
    classes_by_case: ClassVar[bool] = True
    """Whether what is called by a name in capitals is a class."""
    names_self: ClassVar[bool] = False
    """Whether a method's first parameter is the object that it is called on."""

    def is_type_and_value(self, symbol: BoundSymbol) -> bool:
        """Whether a type and a value share the name, which uses tell apart by where they stand."""
        return False

    def is_type(self, node: "Node") -> bool | None:
        """Whether a name stands where a type does; None where it may stand for both."""
        return None

    def packages(self, ev: "Evaluator") -> Mapping[str, str]:
        """The project's own packages by the name under which others import them: the file each begins with."""
        return {}

    def matches(self, parsed: "Parsed") -> "Iterator[Captures]":
        """What the language's query finds in a file."""
        from code_intel_server.codebase.syntax import grammars

        return grammars.matches(parsed, self.query)

    @cached_property
    def query(self) -> str:
        """What opens a scope and what declares a name."""
        folder = files("code_intel_server.codebase.resolution").joinpath("queries")
        return "\n".join(folder.joinpath(f"{name}.scm").read_text(encoding="utf-8") for name in self.queries)

    def spelled(self, text: str) -> str:
        """A name as it is compared."""
        return text

    def declare(self, model: Model, one: Declaration, scope: Scope) -> None:
        """Bind a declaration that is in `scope`."""
        model.bind(one, scope)

    def imported(self, ev: "Evaluator", one: Declaration) -> "Meaning":
        """What an import stands for."""
        raise NotImplementedError

    def defining(self, symbol: BoundSymbol, *, as_type: bool) -> Sequence[Declaration]:
        """The declarations that say what a symbol is: those with a type where there are any."""
        if len(symbol.declarations) == 1:
            return symbol.declarations
        typed = [one for one in symbol.declarations if one.type_node is not None or one.kind in _TYPED_KINDS]
        return typed or symbol.declarations

    def exported(self, ev: "Evaluator", model: Model, name: str) -> "Meaning | None":
        """What a module gives others under a name; None where that is what it binds."""
        return None

    def also(self, ev: "Evaluator", model: Model, node: "Node") -> "Meaning | None":
        """What else a name means that declares something where it is."""
        return None

    def part(self, ev: "Evaluator", one: Declaration) -> Values:
        """What a name in a pattern stands for."""
        return (
            self.items_of(ev, self.items_of(ev, ev.infer(one.model, one.value_node)), one.index)
            if one.value_node
            else UNKNOWN
        )

    def root(self, ev: "Evaluator", symbol: BoundSymbol) -> BoundSymbol:
        """The symbol that stands for all that are renamed with a symbol."""
        return symbol

    def canonical(self, ev: "Evaluator", symbol: BoundSymbol) -> BoundSymbol:
        """The symbol that a symbol is, where another declares the same."""
        return symbol

    def member_names(self, name: str) -> tuple[str, ...]:
        """How scopes keep members of a name."""
        return (name,)

    def bases(self, one: Declaration) -> "list[Node]":
        """The types that a class is built on, as they are written."""
        return []

    def further_bases(self, ev: "Evaluator", one: Declaration) -> Values:
        """The classes that it is built on elsewhere than where it is declared."""
        return NO_VALUES

    def may_be(self, ev: "Evaluator", seen: Declaration, wanted: Declaration) -> bool:
        """Whether an object of the class `wanted` may be meant by `seen`, on which it is not built."""
        return False

    def further_member(self, ev: "Evaluator", one: Declaration, name: str) -> Sequence[BoundSymbol]:
        """Members of a class that are declared elsewhere than in it."""
        return ()

    def parameters(self, ev: "Evaluator", one: Declaration) -> Sequence[BoundSymbol]:
        """The type parameters of a class, in order."""
        if one.inner is None:
            return ()
        return [symbol for symbol in one.inner.symbols.values() if symbol.declarations[0].kind == "typeparam"]

    def padded(self, ev: "Evaluator", one: Declaration, arguments: tuple[Values, ...]) -> tuple[Values, ...]:
        """The arguments of a class, with what its further type parameters are where nothing is written."""
        return arguments

    def beyond(self, ev: "Evaluator", model: Model, name: str) -> "Meaning | None":
        """What a name means that no scope of the file binds; None where the language's own library has it."""
        return None

    def hides(self, scope: Scope, symbol: BoundSymbol, node: "Node") -> bool:
        """Whether a scope's symbol is not seen from a place within it."""
        return False

    def narrowed(self, ev: "Evaluator", model: Model, node: "Node", values: Values) -> Values:
        """What of the values of a name are left where it stands."""
        return values

    def special(self, ev: "Evaluator", model: Model, node: "Node") -> Values | None:
        """What an expression stands for that no table knows; None for what is no special one."""
        return None

    def special_type(self, ev: "Evaluator", model: Model, node: "Node", env: "Environment") -> Values | None:
        """The same of a type."""
        return None

    def implicit(self, ev: "Evaluator", one: Declaration) -> Values:
        """What a variable or parameter is of which nothing is written."""
        return UNKNOWN

    def is_property(self, one: Declaration) -> bool:
        """Whether a function is called by being named."""
        return False

    def returned(self, ev: "Evaluator", one: Declaration) -> Values:
        """What a function gives that declares nothing."""
        return UNKNOWN

    def returned_type(self, ev: "Evaluator", one: Declaration, values: Values) -> Values:
        """What a call gives of a function that declares to give `values`."""
        return values

    def at(self, ev: "Evaluator", model: Model, node: "Node") -> "Meaning | None":
        """What a name means that stands neither for a variable nor for a member; None where it is one of these."""
        return None

    def wide(self, ev: "Evaluator", one: Declaration, name: str) -> "Meaning":
        """What an import of everything gives a name."""
        raise NotImplementedError

    def module_member(self, ev: "Evaluator", path: str, name: str) -> "Meaning | None":
        """What a module holds that its file does not bind."""
        return None

    def value_of_type(self, one: Declaration, values: Values) -> Values:
        """What something is whose declared type stands for these values."""
        return values

    def call_of_instance(self, ev: "Evaluator", model: Model, value: Instance, given: "list[Node]") -> Values:
        """What calling an object gives."""
        if not self.call_member:
            return UNKNOWN
        return ev.called(model, ev.taken(frozenset({value}), self.call_member), given)

    def entered(self, ev: "Evaluator", values: Values) -> Values:
        """What entering these gives (`with`)."""
        return values

    def of_class(self, ev: "Evaluator", one: Declaration, holder: Values, values: Values) -> Values:
        """What a class's own field is when taken from the class."""
        return values

    def items_of(self, ev: "Evaluator", values: Values, index: int | None = None) -> Values:
        """What collections of these values hold, or their item at `index`."""
        return union(self._held(ev, value, index) for value in values)

    def _held(self, ev: "Evaluator", value: object, index: int | None) -> Values:
        if isinstance(value, Outside):
            last = value.name.rpartition(".")[2]
            if index is not None and last in {"tuple", "Tuple"}:
                return value.arguments[index] if index < len(value.arguments) else UNKNOWN
            if last in self.elements and value.arguments:
                place = self.elements[last]
                return value.arguments[place] if -len(value.arguments) <= place < len(value.arguments) else UNKNOWN
            if last in self.plain:
                return outside(last)
        if isinstance(value, Instance):
            return self.iterated(ev, value)
        return UNKNOWN

    def iterated(self, ev: "Evaluator", value: Instance) -> Values:
        """What going over an object of the project gives."""
        return UNKNOWN

    def outside_call(self, ev: "Evaluator", called: Outside, arguments: "list[Node]", model: Model) -> Values:
        """What calling something outside gives."""
        owner, _, method = called.name.rpartition(".")
        kind = owner.rpartition(".")[2]
        if called.arguments and method in self.giving:
            return self.items_of(ev, frozenset({Outside(owner, called.arguments)}))
        if called.arguments and method in self.keeping:
            return outside(owner, *called.arguments)
        if kind in self.plain:
            return outside(kind)
        if method in self.plain or (self.classes_by_case and _CAMEL.match(method)):
            return outside(method)
        # What is given nothing of the project's gives nothing of it.
        given = union(ev.infer(model, node) for node in arguments[:_MOST_ARGUMENTS])
        return outside(f"{called.name}()") if all(isinstance(value, Outside) for value in given) else UNKNOWN

    def as_type(self, values: Values) -> Values:
        """What a type stands for when it is named as one."""
        return instances(values)

    def class_of(self, model: Model, byte: int) -> Declaration | None:
        """The class around a place."""
        scope = model.scope_at(byte).around("class")
        return scope.owner if scope else None

    def self_of(self, one: Declaration) -> Values:
        """An object of a class, seen from within."""
        return frozenset({Instance(one)})

    def class_value(self, one: Declaration) -> Values:
        """A class itself."""
        return frozenset({Class(one)})
