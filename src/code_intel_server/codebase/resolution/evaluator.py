"""What names and expressions mean, worked out from what files declare; nothing is run, and what cannot be known stays unknown.

Lazy: of a question only what its names lead to is parsed. Bounded: cycles end as unknown, as do chains deeper than
`_DEPTH` and everything behind the deadline. The generic rules are here, what differs between languages in `LanguageRules`.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from code_intel_server.codebase.resolution.evaluation import (
    NO_ENVIRONMENT,
    NO_MEANING,
    NOT_KNOWN,
    SELF,
    Answered,
    Call,
    Environment,
    Files,
    Meaning,
)
from code_intel_server.codebase.resolution.model import BoundSymbol, Declaration, Key, Model, Scope, fills
from code_intel_server.codebase.resolution.values import (
    UNKNOWN,
    Class,
    Function,
    Instance,
    Module,
    Outside,
    Unknown,
    Value,
    Values,
    instances,
    one,
    outside,
    union,
)

if TYPE_CHECKING:
    from tree_sitter import Node

    from code_intel_server.codebase.resolution.language import LanguageRules

_DEPTH = 40
SHALLOW = 4
"""What a name's label is worth of which nothing hangs on it: a declared type, an import, no chain of calls."""
_ELSEWHERE = frozenset({"import", "export"})
"""Kinds of declarations that stand for what is declared elsewhere."""
_MOST_VALUES = 30
_ASKED_AT_ONCE = 50
_CLASSES = frozenset({"type", "Type", "Class"})
"""Types of classes themselves."""


class LazyEvaluator:
    """Answers the questions of one lookup; remembers what it found, so that files must not change meanwhile."""

    def __init__(self, files: Files, rules: "Mapping[str, LanguageRules]", seconds: float) -> None:
        """`rules` by language; `seconds` of this thread's time may be spent, from the first question on."""
        self.files = files
        self._rules = rules
        self.depth = _DEPTH
        self._seconds = seconds
        self._deadline = float("inf")
        self._values: dict[tuple[str, int], Values] = {}
        self._of_symbols: dict[Key, Values] = {}
        self._followed: dict[Key, Meaning] = {}
        self._bases: dict[Key, list[Value]] = {}
        self._returned: dict[tuple[Key, Value | None], Values] = {}
        self._active: set[object] = set()
        self._once: dict[object, Any] = {}
        self._denotes: dict[tuple[str, int, frozenset[tuple[Key | str, Values]]], Values] = {}
        self._lines: dict[Value, list[Value]] = {}
        self._depth = 0
        self._cuts = 0
        self._asked = 0
        self._is_late = False

    @property
    def late(self) -> bool:
        """Whether the time is over; the clock is asked now and then, since that costs as much as many answers."""
        self._asked += 1
        if self._asked % _ASKED_AT_ONCE == 1:
            self._is_late = time.thread_time() > self._deadline
        return self._is_late

    def once(self, key: object, answer: Callable[[], Answered], meanwhile: Any = frozenset()) -> Answered:
        """What `answer` gives; asked once for a key, and not again while it works on it: then it is `meanwhile`."""
        if key in self._once:
            return self._once[key]  # type: ignore[no-any-return]
        if ("once", key) in self._active:
            self._cuts += bool(meanwhile)
            return meanwhile  # type: ignore[no-any-return]
        cuts = self._cuts
        self._active.add(("once", key))
        try:
            found = answer()
        finally:
            self._active.discard(("once", key))
        if cuts == self._cuts:
            self._once[key] = found
        return found

    # What a name means

    def meaning(self, model: Model, node: "Node") -> Meaning:
        """What the name at a leaf means, imports followed."""
        if self._deadline == float("inf"):
            self._deadline = time.thread_time() + self._seconds
        if self.late:
            return NOT_KNOWN
        language = self.rules(model)
        own = model.by_name_byte.get(node.start_byte)
        if own is not None and own.name == language.spelled(model.text(node)):
            also = language.also(self, model, node)
            return self.follow(own) if also is None else also
        found = language.at(self, model, node)
        if found is not None:
            return found
        parent = node.parent
        if parent is not None:
            for table in (language.members, language.type_members):
                fields = table.get(parent.type)
                if fields and fills(parent, fields[1], node):
                    holder = parent.child_by_field_name(fields[0])
                    if holder is None:
                        return NOT_KNOWN
                    return self.members(self.infer(model, holder), language.spelled(model.text(node)))
        return self.name(model, node)

    def name(self, model: Model, node: "Node") -> Meaning:
        """What a bare name means where it is."""
        name = self.rules(model).spelled(model.text(node))
        found = self.lookup(model, name, node)
        if found is not None:
            return found
        beyond = self.rules(model).beyond(self, model, name)
        return Meaning(outside=name) if beyond is None else beyond

    def lookup(self, model: Model, name: str, node: "Node") -> Meaning | None:
        """What the scopes around a place bind to a name, imports followed; None where none does."""
        scope: Scope | None = model.scope_at(node.start_byte)
        innermost = True
        while scope is not None:
            symbol = scope.symbols.get(name)
            if symbol is not None and not self.rules(model).hides(scope, symbol, node):
                seen = (
                    scope.kind != "class"
                    or (innermost and self.rules(model).body_in_scope)
                    or self.rules(model).members_in_scope
                )
                if seen or symbol.declarations[0].kind == "typeparam":
                    return self.follow(symbol)
            if scope.kind == "class" and scope.owner and self.rules(model).members_in_scope:
                found = self.members(self.rules(model).self_of(scope.owner), name)
                if found.symbols:
                    return found
            if scope.wide:
                meant = self._widely(scope, name)
                if meant is not None:
                    return meant
            if scope.kind == "namespace" and self.rules(model).modules_apart:
                return None
            innermost = innermost and scope.kind == "block"
            scope = scope.parent
        return None

    def _widely(self, scope: Scope, name: str) -> Meaning | None:
        mark = ("wide", id(scope), name)
        if mark in self._active:
            return None
        self._active.add(mark)
        try:
            found = [self.rules(one.model).wide(self, one, name) for one in scope.wide]
        finally:
            self._active.discard(mark)
        meant = Meaning.of(found)
        return meant if meant.symbols or meant.modules or meant.unknown else None

    def follow(self, symbol: BoundSymbol) -> Meaning:
        """The symbols that a symbol stands for: itself, or what it imports."""
        if symbol.key in self._followed:
            return self._followed[symbol.key]
        mark = ("follow", symbol.key)
        if mark in self._active:
            return NOT_KNOWN
        self._active.add(mark)
        try:
            meant = self.rules(symbol.declarations[0].model).canonical(self, symbol)
            found = Meaning.of(
                self.rules(one.model).imported(self, one) if one.kind in _ELSEWHERE else Meaning(frozenset({meant}))
                for one in symbol.declarations
            )
        finally:
            self._active.discard(mark)
        self._followed[symbol.key] = found
        return found

    def in_module(self, path: str, name: str) -> Meaning:
        """What a module of the project holds under a name, imports followed."""
        model = self.files.model(path)
        if model is None:
            return NOT_KNOWN
        exported = self.rules(model).exported(self, model, name)
        if exported is not None:
            return exported
        symbol = model.top.symbols.get(name)
        if symbol is not None:
            return self.follow(symbol)
        further = self.rules(model).module_member(self, path, name)
        if further is not None:
            return further
        return self._widely(model.top, name) or NO_MEANING

    # Members

    def members(self, values: Values, name: str) -> Meaning:
        """What the values have under a name."""
        every = [self.member(value, name) for value in values if value != Outside("None")]
        return Meaning.of(every) if every else Meaning(outside="None") if values else NOT_KNOWN

    def member(self, value: Value, name: str) -> Meaning:
        """What one value has under a name."""
        if isinstance(value, Module):
            return self.in_module(value.path, name) or NOT_KNOWN
        if isinstance(value, Class | Instance):
            return self._in_class(value, name)
        if isinstance(value, Outside):
            return Meaning(outside=f"{value.name}.{name}")
        if isinstance(value, Function) and self.rules(value.declaration.model).is_closed:
            return Meaning(outside=f"function.{name}")
        return NOT_KNOWN  # a function that may be given members, as Express mixes those of an application into one

    def _in_class(self, value: Class | Instance, name: str) -> Meaning:
        beyond = ""
        line = self.line_of_descent(value)
        for base in line:
            if isinstance(base, Class):
                found = self.own_member(base.declaration, name)
                if found:
                    return Meaning(frozenset(map(self._canonical, found)))
            elif isinstance(base, Outside):
                beyond = base.name
            else:
                return NOT_KNOWN
        if not beyond and self.rules(value.declaration.model).is_closed:
            beyond = value.declaration.name or "object"
        return Meaning(outside=f"{beyond}.{name}") if beyond else NOT_KNOWN

    def _canonical(self, symbol: BoundSymbol) -> BoundSymbol:
        """The symbol that a member is; itself while that is being found out, as where an object is set to what holds it."""
        mark = ("canonical", symbol.key)
        if mark in self._active:
            return symbol
        self._active.add(mark)
        try:
            return self.rules(symbol.declarations[0].model).canonical(self, symbol)
        finally:
            self._active.discard(mark)

    def own_member(self, declaration: Declaration, name: str) -> list[BoundSymbol]:
        """The members of that name that a class declares itself."""
        language = self.rules(declaration.model)
        symbol = declaration.inner.symbols.get(name) if declaration.inner else None
        found = [] if symbol is None or symbol.declarations[0].kind == "typeparam" else [symbol]
        return [*found, *language.further_member(self, declaration, name)]

    def line_of_descent(self, value: Class | Instance) -> list[Value]:
        """A class and all it is built on, the nearest first; what is not of the project or not known stands among them."""
        known = self._lines.get(value)
        if known is not None:
            return known
        cuts = self._cuts
        first = Class(value.declaration, value.arguments)
        seen: dict[object, Value] = {value.declaration.key: first}
        pending: list[Class] = [first]
        while pending and len(seen) < 60:
            current = pending.pop(0)
            env = self.environment(current)
            for base in self.bases_of(current.declaration, env):
                if isinstance(base, Class | Instance):
                    if base.declaration.key not in seen:
                        added = Class(base.declaration, base.arguments)
                        seen[base.declaration.key] = added
                        pending.append(added)
                else:
                    seen.setdefault(base, base)
        line = list(seen.values())[isinstance(value, Instance) and value.above :]
        if cuts == self._cuts:
            self._lines[value] = line
        return line

    def bases_of(self, declaration: Declaration, env: Environment = NO_ENVIRONMENT) -> list[Value]:
        """What a class is directly built on, in order."""
        known = self._bases.get(declaration.key)
        if known is not None and not env:
            return known
        mark = ("bases", declaration.key)
        if mark in self._active:
            return []
        self._active.add(mark)
        try:
            language = self.rules(declaration.model)
            every = [self.denoted(declaration.model, node, env) for node in language.bases(declaration)]
            every.append(language.further_bases(self, declaration))
            found = list(dict.fromkeys(base for values in every for base in sorted(values, key=_order)))
        finally:
            self._active.discard(mark)
        if not env:
            self._bases[declaration.key] = found
        return found

    def environment(self, value: Value | None) -> Environment:
        """What the type parameters of a value's class stand for."""
        if not isinstance(value, Class | Instance) or not value.arguments:
            return NO_ENVIRONMENT
        parameters = self.rules(value.declaration.model).parameters(self, value.declaration)
        return {symbol.key: given for symbol, given in zip(parameters, value.arguments, strict=False)}

    def _seen_from(self, symbol: BoundSymbol, value: Value | None) -> Environment:
        """What type parameters of a member's class stand for, seen from an object of that class or of one built on it."""
        if not isinstance(value, Class | Instance):
            return NO_ENVIRONMENT
        env: dict[Key | str, Values] = {SELF: one(Instance(value.declaration, value.arguments))}
        owner = symbol.owner
        if owner is None or not self.rules(owner.model).parameters(self, owner):
            return env
        for base in self.line_of_descent(value):
            if isinstance(base, Class) and base.declaration == owner:
                env |= self.environment(base)
        return env

    def rules(self, model: Model) -> "LanguageRules":
        """The rules of the language that a file is written in."""
        return self._rules[model.language]

    # Values

    def infer(self, model: Model, node: "Node") -> Values:
        """What an expression stands for."""
        key = (model.path, node.id)
        known = self._values.get(key)
        if known is not None:
            return known
        if key in self._active or self._depth > self.depth or self.late:
            self._cuts += 1
            return UNKNOWN
        cuts = self._cuts
        self._active.add(key)
        self._depth += 1
        try:
            found = self._infer(model, node)
            if len(found) > 1 and (node.type in self.rules(model).names or node.type in self.rules(model).members):
                found = self.rules(model).narrowed(self, model, node, found)
        finally:
            self._depth -= 1
            self._active.discard(key)
        if len(found) > _MOST_VALUES:
            found = UNKNOWN
        if cuts == self._cuts:
            self._values[key] = found
        return found

    def _infer(self, model: Model, node: "Node") -> Values:
        language, kind = self.rules(model), node.type
        special = language.special(self, model, node)
        if special is not None:
            return special
        if kind in language.names:
            return self.values(self.name(model, node))
        if kind in language.members:
            return self._member_values(model, node, language.members[kind])
        if kind in language.calls:
            return self._call(model, node, language.calls[kind])
        if kind in language.literals:
            return outside(language.literals[kind])
        if kind in language.same:
            return self.infer(model, node.named_children[0]) if node.named_children else UNKNOWN
        if kind in language.either:
            parts = [node.child_by_field_name(name) for name in language.either[kind]]
            return union(self.infer(model, part) for part in parts if part)
        if kind in language.lists:
            items_of = union(self.infer(model, part) for part in node.named_children[:4])
            return outside("list", items_of)
        return UNKNOWN

    def _member_values(self, model: Model, node: "Node", fields: tuple[str, str]) -> Values:
        holder, names = node.child_by_field_name(fields[0]), node.children_by_field_name(fields[1])
        if holder is None or not names:
            return UNKNOWN
        # A grammar's hidden nodes hand their fields up: the last is the node's own.
        return self.taken(self.infer(model, holder), self.rules(model).spelled(model.text(names[-1])))

    def taken(self, values: Values, name: str) -> Values:
        """What the values give under a name."""
        found = []
        for value in values:
            if value == Outside("None"):
                continue
            if isinstance(value, Outside):
                found.append(one(Outside(f"{value.name}.{name}", value.arguments)))
                continue
            meant = self.member(value, name)
            found += [self._taken(symbol, value) for symbol in meant.symbols]
            found.append(self._rest(meant))
        return union(found) if found else UNKNOWN

    def _taken(self, symbol: BoundSymbol, value: Value) -> Values:
        receiver = value if isinstance(value, Instance | Class) else None
        if receiver is None:
            return self.value_of(symbol)
        env = self._seen_from(symbol, receiver)
        found = []
        for declaration in self._defining(symbol, as_type=False):
            language = self.rules(declaration.model)
            if declaration.kind == "function":
                if language.is_property(declaration):
                    found.append(self.returns(declaration, receiver))
                else:
                    found.append(one(Function(declaration, receiver)))
            else:
                values = self.value_of_declaration(declaration, env)
                found.append(language.of_class(self, declaration, one(receiver), values))
        return union(found)

    def values(self, meaning: Meaning) -> Values:
        """What stands for a meaning in an expression."""
        return union([*map(self.value_of, meaning.symbols), self._rest(meaning)])

    @staticmethod
    def _rest(meaning: Meaning) -> Values:
        found: set[Value] = {Module(path) for path in meaning.modules}
        if meaning.outside:
            found.add(Outside(meaning.outside))
        if meaning.unknown:
            found.add(Unknown())
        return frozenset(found)

    def value_of(self, symbol: BoundSymbol) -> Values:
        """What a symbol stands for in an expression."""
        known = self._of_symbols.get(symbol.key)
        if known is not None:
            return known
        mark = ("value", symbol.key)
        if mark in self._active or self._depth > self.depth:
            self._cuts += 1
            return UNKNOWN
        cuts = self._cuts
        self._active.add(mark)
        self._depth += 1
        try:
            found = union(self.value_of_declaration(one) for one in self._defining(symbol, as_type=False))
        finally:
            self._depth -= 1
            self._active.discard(mark)
        if cuts == self._cuts:
            self._of_symbols[symbol.key] = found
        return found

    def value_of_declaration(self, declaration: Declaration, env: Environment = NO_ENVIRONMENT) -> Values:
        """What one declaration says that its symbol stands for."""
        model, language = declaration.model, self.rules(declaration.model)
        if declaration.kind in {"class", "namespace"}:
            return language.class_value(declaration)
        if declaration.kind == "part":
            return language.part(self, declaration)
        if declaration.kind == "function":
            return one(Function(declaration))
        if declaration.kind in _ELSEWHERE:
            return self.values(language.imported(self, declaration))
        if declaration.kind == "alias" and declaration.type_node is not None:
            return self.denoted(model, declaration.type_node, env)
        if declaration.type_node is not None:
            return language.value_of_type(
                declaration, language.as_type(self.denoted(model, declaration.type_node, env))
            )
        if declaration.value_node is None:
            return language.implicit(self, declaration)
        values = self.infer(model, declaration.value_node)
        if declaration.how == "element":
            return language.items_of(self, values)
        if declaration.how == "item":
            return language.items_of(self, values, declaration.index)
        return language.entered(self, values) if declaration.how == "enter" else values

    # Types

    def denoted(self, model: Model, node: "Node", env: Environment = NO_ENVIRONMENT) -> Values:
        """The classes that a type as it is written stands for."""
        if self._depth > self.depth or self.late:
            self._cuts += 1
            return UNKNOWN
        key = (model.path, node.id, frozenset(env.items()))
        known = self._denotes.get(key)
        if known is not None:
            return known
        cuts = self._cuts
        self._depth += 1
        try:
            found = self._denoted(model, node, env)
        finally:
            self._depth -= 1
        if cuts == self._cuts:
            self._denotes[key] = found
        return found

    def _denoted(self, model: Model, node: "Node", env: Environment) -> Values:
        language, kind = self.rules(model), node.type
        special = language.special_type(self, model, node, env)
        if special is not None:
            return special
        if kind in language.type_names or kind in language.type_members:
            return self.denoted_by(self.type_meaning(model, node), env)
        if kind in language.type_arguments:
            return self._with_arguments(model, node, language.type_arguments[kind], env)
        if kind in language.type_same:
            inner = next((child for child in node.named_children if child.type not in language.type_parents), None)
            return self.denoted(model, inner, env) if inner else UNKNOWN
        if kind in language.type_either:
            return self._either(model, node, env)
        if kind in language.type_lists:
            return outside(
                "list", *(language.as_type(self.denoted(model, one, env)) for one in node.named_children[-1:])
            )
        if kind in language.literals:
            return outside(language.literals[kind])
        return UNKNOWN

    def _either(self, model: Model, node: "Node", env: Environment) -> Values:
        """All that the alternatives stand for; of more than anybody asks for nothing is known."""
        found: Values = frozenset()
        pending = [node]
        while pending:
            each = pending.pop()
            if each.type in self.rules(model).type_either:
                pending += reversed(each.named_children)  # a union of hundreds nests as deep
                continue
            found |= self.denoted(model, each, env)
            if len(found) > _MOST_VALUES:
                return UNKNOWN
        return found

    def _with_arguments(self, model: Model, node: "Node", fields: tuple[str, str], env: Environment) -> Values:
        language = self.rules(model)
        base = node.child_by_field_name(fields[0]) or (node.named_children[0] if node.named_children else None)
        given = node.child_by_field_name(fields[1]) or (node.named_children[-1] if node.named_children else None)
        if base is None or given is None:
            return UNKNOWN
        arguments = self.type_arguments(model, given, env)
        aliases = self._aliases(model, base) if base.type in language.type_names | language.type_members.keys() else ()
        if not aliases:
            return self.applied(language.transparent, self.denoted(model, base, env), arguments)
        bound = [zip((one.key for one in language.parameters(self, each)), arguments, strict=False) for each in aliases]
        return self.denoted(model, base, {**env, **{key: values for pairs in bound for key, values in pairs}})

    def type_arguments(self, model: Model, node: "Node", env: Environment = NO_ENVIRONMENT) -> tuple[Values, ...]:
        """What the types in brackets stand for."""
        language = self.rules(model)
        parts = [part for part in node.named_children if part.type not in language.type_parents]
        return tuple(language.as_type(self.denoted(model, part, env)) for part in parts)

    def _aliases(self, model: Model, node: "Node") -> list[Declaration]:
        """The aliases with parameters of their own that a type's name means."""
        declarations = [one for symbol in self.type_meaning(model, node).symbols for one in symbol.declarations]
        return [one for one in declarations if one.kind == "alias" and self.rules(one.model).parameters(self, one)]

    def type_meaning(self, model: Model, node: "Node") -> Meaning:
        """What a type's name means, behind that of its module too."""
        fields = self.rules(model).type_members.get(node.type)
        if fields is None:
            return self.name(model, node)
        holder, name = (node.child_by_field_name(field) for field in fields)
        if holder is None or name is None:
            return NOT_KNOWN
        return self.members(self.infer(model, holder), model.text(name))

    def applied(self, transparent: Collection[str], values: Values, arguments: tuple[Values, ...]) -> Values:
        """Types with these arguments; `transparent` ones behave as what they hold."""
        found = []
        for value in values:
            if isinstance(value, Class | Instance):
                padded = self.rules(value.declaration.model).padded(self, value.declaration, arguments)
                found.append(one(Class(value.declaration, padded)))
            elif isinstance(value, Outside):
                last = value.name.rpartition(".")[2]
                found.append(arguments[0] if last in transparent and arguments else outside(last, *arguments))
            else:
                found.append(one(value))
        return union(found)

    def denoted_by(self, meaning: Meaning, env: Environment = NO_ENVIRONMENT) -> Values:
        """What a name stands for as a type."""
        found = [self._rest(meaning)]
        for symbol in meaning.symbols:
            if symbol.key in env:
                found.append(env[symbol.key])
                continue
            for declaration in self._defining(symbol, as_type=True):
                if declaration.kind == "typeparam":
                    bound = declaration.type_node
                    found.append(self.denoted(declaration.model, bound, env) if bound else UNKNOWN)
                elif declaration.kind == "alias" and declaration.type_node is not None:
                    found.append(self._alias(declaration, declaration.type_node, env))
                else:
                    found.append(self._as_alias(declaration, env))
        return union(found)

    def _as_alias(self, declaration: Declaration, env: Environment) -> Values:
        """A variable that is used as a type: what it is set to is one."""
        language, value = self.rules(declaration.model), declaration.value_node
        if declaration.kind == "class":
            return self.applied(language.transparent, language.class_value(declaration), ())
        if declaration.kind != "variable" or value is None or not language.aliases_by_value:
            return self.value_of_declaration(declaration, env)
        return self._alias(declaration, value, env)

    def _alias(self, declaration: Declaration, node: "Node", env: Environment) -> Values:
        mark = ("alias", declaration.key)
        if mark in self._active:
            self._cuts += 1
            return UNKNOWN
        self._active.add(mark)
        try:
            return self.denoted(declaration.model, node, env)
        finally:
            self._active.discard(mark)

    # Calls

    def _call(self, model: Model, node: "Node", field: str) -> Values:
        function = node.child_by_field_name(field)
        if function is None:
            return UNKNOWN
        arguments = node.child_by_field_name("arguments")
        given = list(arguments.named_children) if arguments is not None else []
        types = node.child_by_field_name("type_arguments")
        call = Call(model, given, self.type_arguments(model, types) if types is not None else ())
        return self.called(model, self.infer(model, function), given, call)

    def called(self, model: Model, values: Values, given: "list[Node]", call: Call | None = None) -> Values:
        """What calling the values gives."""
        found = []
        call = call or Call(model, given)
        for value in values:
            if isinstance(value, Class):
                found.append(
                    one(Instance(value.declaration, value.arguments or call.types or self._open(value.declaration)))
                )
            elif isinstance(value, Function):
                found.append(self.returns(value.declaration, value.receiver, replace(call, bound=value.bound)))
            elif isinstance(value, Outside):
                made = self.rules(model).outside_call(self, value, given, model)
                found.append(frozenset(map(partial(_given_types, self.rules(model), call.types), made)))
            elif isinstance(value, Instance):
                found.append(self.rules(model).call_of_instance(self, model, value, given))
            else:
                found.append(UNKNOWN)
        return union(found) if found else UNKNOWN

    def returns(
        self, declaration: Declaration, receiver: Instance | Class | None = None, call: Call | None = None
    ) -> Values:
        """What a call of a function gives."""
        language = self.rules(declaration.model)
        if declaration.type_node is not None:
            env = self.call_environment(declaration, receiver, call or Call(declaration.model))
            values = language.as_type(self.denoted(declaration.model, declaration.type_node, env))
            return language.returned_type(self, declaration, values)
        mark = (declaration.key, receiver)
        known = self._returned.get(mark)
        if known is not None:
            return known
        active = ("returns", declaration.key)
        if active in self._active or self._depth > self.depth // 2:
            self._cuts += 1
            return UNKNOWN
        cuts = self._cuts
        self._active.add(active)
        try:
            found = language.returned(self, declaration)
        finally:
            self._active.discard(active)
        owner = declaration.owner
        if isinstance(receiver, Class | Instance) and owner is not None and Instance(owner) in found:
            found = (found - {Instance(owner)}) | {Instance(receiver.declaration, receiver.arguments)}
        if cuts == self._cuts:
            self._returned[mark] = found
        return found

    def _open(self, declaration: Declaration) -> tuple[Values, ...]:
        """The type parameters of a class of which nothing is said: anything of their bounds."""
        parameters = self.rules(declaration.model).parameters(self, declaration)
        return tuple(self.denoted_by(Meaning(frozenset({symbol}))) | UNKNOWN for symbol in parameters)

    def call_environment(self, declaration: Declaration, receiver: Instance | Class | None, call: Call) -> Environment:
        """What type parameters stand for in a call: as it says, as its arguments tell, as it is wanted; else any of their bound."""
        language = self.rules(declaration.model)
        symbol = declaration.model.by_name_byte.get(declaration.name_node.start_byte) or BoundSymbol(
            declaration.name, declaration.scope, [declaration]
        )
        seen = {**self._seen_from(symbol, receiver), **dict(call.bound)}
        every = language.parameters(self, declaration)
        own = {symbol.key for symbol in every}
        if not own or declaration.inner is None:
            return seen
        found: dict[Key | str, Values] = dict(zip((symbol.key for symbol in every), call.types, strict=False))
        parameters = [
            symbol.declarations[0]
            for symbol in declaration.inner.symbols.values()
            if symbol.declarations[0].kind == "parameter"
        ]
        arguments: list[Callable[[], Values] | None] = [
            None if node is None else partial(self.infer, call.model, node) for node in call.given
        ]
        if language.names_self and declaration.owner is not None and receiver is not None:
            arguments.insert(0, lambda: one(receiver))
        wants = [(parameter.type_node, values) for parameter, values in zip(parameters, arguments, strict=False)]
        for node, values in (*wants, (declaration.type_node, call.wanted)):
            if node is not None and values is not None and not own <= found.keys():
                for key, bound in self._bound_by(declaration.model, node, own - found.keys(), values):
                    found.setdefault(key, bound)
        for symbol in every:
            if not found.get(symbol.key, UNKNOWN) - UNKNOWN:
                found.pop(symbol.key, None)
                found[symbol.key] = language.as_type(self.denoted_by(Meaning(frozenset({symbol})), found)) | UNKNOWN
        return {**seen, **found}

    def _bound_by(
        self, model: Model, node: "Node", own: set[Key], values: Callable[[], Values]
    ) -> Iterator[tuple[Key, Values]]:
        """The type parameters that a parameter's type names, with what an argument makes of them."""
        language = self.rules(model)
        while node.type in language.type_same and node.named_children:
            inner = [child for child in node.named_children if child.type not in language.type_parents]
            node = inner[0] if inner else node.named_children[0]
        if node.type in language.type_names:
            for symbol in self.name(model, node).symbols:
                if symbol.key in own:
                    yield symbol.key, values()
        elif node.type in language.type_arguments and node.named_children:
            parts = node.named_children[-1].named_children
            declared = [
                each
                for symbol in self.type_meaning(model, node.named_children[0]).symbols
                for each in symbol.declarations
            ]
            classes = {each for each in declared if each.kind == "class"}
            if classes:
                given = [
                    base.arguments
                    for value in values()
                    if isinstance(value, Class | Instance)
                    for base in self.line_of_descent(value)
                    if isinstance(base, Class) and base.declaration in classes
                ]
                for arguments in given:
                    for part, argument in zip(parts, arguments, strict=False):
                        yield from self._bound_by(model, part, own, partial(frozenset, argument))
            elif len(parts) == 1:
                is_class = model.text(node.named_children[0]) in _CLASSES
                inner_values = partial(self._unwrapped, language, values, is_class=is_class)
                yield from self._bound_by(model, parts[0], own, inner_values)

    def _defining(self, symbol: BoundSymbol, *, as_type: bool) -> Sequence[Declaration]:
        return self.rules(symbol.declarations[0].model).defining(symbol, as_type=as_type)

    def _unwrapped(self, language: "LanguageRules", values: Callable[[], Values], *, is_class: bool) -> Values:
        return instances(values()) if is_class else language.items_of(self, values())


def _given_types(language: "LanguageRules", types: tuple[Values, ...], value: Value) -> Value:
    """What an outside call gives that is given types of the project: a collection of these, else what nobody knows."""
    if not isinstance(value, Outside) or all(isinstance(each, Outside) for values in types for each in values):
        return value
    return Outside(value.name, types) if value.name.rpartition(".")[2] in language.elements else Unknown()


def _order(value: Value) -> tuple[str, str, int]:
    """Never by what a value holds, which may be as much as a text has characters, to the power of its depth."""
    if isinstance(value, Class | Instance | Function):
        kind = "Function" if isinstance(value, Function) else ""
        return kind, *value.declaration.key
    if isinstance(value, Module):
        return "Module", value.path, 0
    return type(value).__name__, value.name if isinstance(value, Outside) else "", 0
