"""Java: classes found by package and file name, members seen by their bare name, methods besides variables of the same name."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from code_intel_server.codebase.resolution.evaluation import NO_MEANING, NOT_KNOWN, Meaning
from code_intel_server.codebase.resolution.language import LanguageRules
from code_intel_server.codebase.resolution.model import BoundSymbol, Declaration, Model, Scope, fills
from code_intel_server.codebase.resolution.values import (
    NO_VALUES,
    UNKNOWN,
    Class,
    Function,
    Instance,
    Outside,
    Values,
    instances,
    one,
    outside,
    union,
)

if TYPE_CHECKING:
    from tree_sitter import Node

    from code_intel_server.codebase.resolution.evaluation import Environment, Evaluator

_LISTS = (
    "list List ArrayList LinkedList Set HashSet LinkedHashSet TreeSet SortedSet NavigableSet Collection Iterable Iterator"
    " Stream Optional Queue Deque ArrayDeque Vector Stack Supplier Enumeration ListIterator Spliterator AtomicReference"
    " ThreadLocal WeakReference SoftReference Reference Future CompletableFuture Callable Class"
)
_MAPPINGS = "Map HashMap LinkedHashMap TreeMap ConcurrentMap ConcurrentHashMap SortedMap Hashtable WeakHashMap"
_GIVING = (
    "get next remove poll peek pop element getFirst getLast first last orElse orElseGet orElseThrow join previous"
    " removeFirst removeLast pollFirst pollLast peekFirst peekLast getOrDefault put computeIfAbsent call"
)
_KEEPING = (
    "stream filter sorted distinct limit skip peek parallel iterator subList findFirst findAny min max toList values"
    " listIterator descendingIterator reversed parallelStream copyOf of"
)
_PLAIN = "boolean int long short byte char float double void String Object Integer Long Boolean Character Double Float CharSequence"
_DECLARED = r"^((abstract|final|sealed|non-sealed|strictfp) )*(class|interface|enum) \w+"
_NAME = re.compile(r"\b(?:class|interface|enum) (\w+)")
_CALL = "()"
"""Behind a method's name where its scope keeps it: a variable may have the same one."""


class Java(LanguageRules):
    """Java."""

    name: ClassVar[str] = "java"
    queries: ClassVar[Sequence[str]] = ("java",)
    names: ClassVar[frozenset[str]] = frozenset({"identifier", "type_identifier"})
    members: ClassVar[Mapping[str, tuple[str, str]]] = {"field_access": ("object", "field")}
    same: ClassVar[frozenset[str]] = frozenset({"parenthesized_expression"})
    either: ClassVar[Mapping[str, Sequence[str]]] = {
        "ternary_expression": ("consequence", "alternative"),
        "assignment_expression": ("left",),
    }
    literals: ClassVar[Mapping[str, str]] = {
        "string_literal": "String",
        "decimal_integer_literal": "int",
        "hex_integer_literal": "int",
        "decimal_floating_point_literal": "double",
        "character_literal": "char",
        "true": "boolean",
        "false": "boolean",
        "null_literal": "None",
        "instanceof_expression": "boolean",
        "binary_expression": "int",
        "unary_expression": "int",
        "update_expression": "int",
        "integral_type": "int",
        "floating_point_type": "double",
        "boolean_type": "boolean",
        "void_type": "void",
    }
    type_members: ClassVar[Mapping[str, tuple[str, str]]] = {}
    type_arguments: ClassVar[Mapping[str, tuple[str, str]]] = {"generic_type": ("type", "arguments")}
    type_same: ClassVar[frozenset[str]] = frozenset({"annotated_type", "wildcard", "type_bound"})
    type_parents: ClassVar[frozenset[str]] = frozenset({"marker_annotation", "annotation"})
    elements: ClassVar[Mapping[str, int]] = {**dict.fromkeys(_LISTS.split(), 0), **dict.fromkeys(_MAPPINGS.split(), 1)}
    giving: ClassVar[frozenset[str]] = frozenset(_GIVING.split())
    keeping: ClassVar[frozenset[str]] = frozenset(_KEEPING.split())
    plain: ClassVar[frozenset[str]] = frozenset(_PLAIN.split())
    members_in_scope: ClassVar[bool] = True
    is_closed: ClassVar[bool] = True
    wide_scopes: ClassVar[bool] = True

    # Declarations

    def declare(self, model: Model, one_: Declaration, scope: Scope) -> None:
        """Methods are kept next to variables of their name."""
        if one_.kind == "wide":
            model.top.wide.append(one_)
            return
        if one_.type_node is not None and one_.type_node.text == b"var":
            one_.type_node = None
        model.bind(one_, scope, f"{one_.name}{_CALL}" if one_.kind == "function" else one_.name)

    def member_names(self, name: str) -> tuple[str, ...]:
        """A field or a class, and a method."""
        return name, f"{name}{_CALL}"

    def bases(self, one_: Declaration) -> "list[Node]":
        """What it extends and implements; of a class without a name what it is made from."""
        if not one_.name:
            made = one_.node.parent.child_by_field_name("type") if one_.node.parent is not None else None
            return [made] if made is not None else []
        found: list[Node] = []
        for child in one_.node.named_children:
            if child.type == "superclass":
                found += child.named_children
            elif child.type in {"super_interfaces", "extends_interfaces"}:
                found += child.named_children[0].named_children if child.named_children else []
        return found

    def further_member(self, ev: "Evaluator", one_: Declaration, name: str) -> Sequence[BoundSymbol]:
        """The accessors of a record."""
        symbol = one_.inner.symbols.get(name.removesuffix(_CALL)) if one_.inner and name.endswith(_CALL) else None
        return [symbol] if symbol is not None and symbol.declarations[0].kind == "parameter" else []

    # Packages

    def imported(self, ev: "Evaluator", one_: Declaration) -> Meaning:
        """A class, or a class's static member."""
        written = one_.name_node.parent
        return self._dotted(ev, one_.model.text(written).replace(" ", "") if written else one_.name)

    def _dotted(self, ev: "Evaluator", dotted: str) -> Meaning:
        parts = dotted.split(".")
        for end in range(len(parts), 0, -1):
            for path in ev.files.named(f"{parts[end - 1]}.java"):
                model = ev.files.model(path)
                if model is None or _package(model) != ".".join(parts[: end - 1]):
                    continue
                symbol = model.top.symbols.get(parts[end - 1])
                found = Meaning(frozenset({symbol})) if symbol else NO_MEANING
                for name in parts[end:]:
                    values = ev.values(found)
                    every = [ev.members(values, each) for each in self.member_names(name)]
                    found = Meaning.of(each for each in every if each.symbols)
                if found:
                    return found
        return Meaning(outside=dotted)

    def wide(self, ev: "Evaluator", one_: Declaration, name: str) -> Meaning:
        """A class of a package, or a member of a class."""
        found = self._dotted(ev, f"{one_.model.text(one_.name_node).replace(' ', '')}.{name}")
        return found if found.symbols else NO_MEANING

    def beyond(self, ev: "Evaluator", model: Model, name: str) -> Meaning | None:
        """A class of the same package."""
        package = _package(model)
        found = self._dotted(ev, f"{package}.{name}" if package else name)
        if found.symbols:
            return found
        for path in ev.once(("not public",), partial(_not_public, ev)).get(name, ()):
            other = ev.files.model(path)
            symbol = other.top.symbols.get(name) if other is not None and _package(other) == package else None
            if symbol is not None:
                return Meaning(frozenset({symbol}))
        return None

    # What a name means in other places

    def at(self, ev: "Evaluator", model: Model, node: "Node") -> Meaning | None:
        """A method, a constant of a `switch`, a value of an annotation, what is in an import."""
        parent = node.parent
        if parent is None:
            return NOT_KNOWN
        if parent.type == "method_invocation" and fills(parent, "name", node):
            return self._method(ev, model, parent, model.text(node))
        if parent.type == "method_reference" and parent.named_children[-1].byte_range == node.byte_range:
            return ev.members(ev.infer(model, parent.named_children[0]), f"{model.text(node)}{_CALL}")
        if parent.type == "switch_label":
            return self._label(ev, model, parent, node)
        if parent.type == "element_value_pair" and fills(parent, "key", node):
            annotation = parent.parent.parent if parent.parent is not None else None
            name = annotation.child_by_field_name("name") if annotation is not None else None
            return ev.members(ev.infer(model, name), f"{model.text(node)}{_CALL}") if name is not None else NOT_KNOWN
        if parent.type in {"labeled_statement", "break_statement", "continue_statement"}:
            return Meaning(outside="label")
        if parent.type == "scoped_identifier":
            before = model.parsed.text[parent.start_byte : node.end_byte].decode("utf-8", "replace")
            return self._dotted(ev, before.replace(" ", "")) if fills(parent, "name", node) else None
        if parent.type == "scoped_type_identifier" and parent.named_children[-1].byte_range == node.byte_range:
            return ev.members(ev.infer(model, parent.named_children[0]), model.text(node))
        return None

    def _method(self, ev: "Evaluator", model: Model, call: "Node", name: str) -> Meaning:
        holder = call.child_by_field_name("object")
        if holder is not None:
            return ev.members(ev.infer(model, holder), f"{name}{_CALL}")
        scope: Scope | None = model.scope_at(call.start_byte)
        beyond = ""
        while scope is not None:
            if scope.kind == "class" and scope.owner is not None:
                found = ev.members(self.self_of(scope.owner), f"{name}{_CALL}")
                if found.symbols or found.unknown:
                    return found
                beyond = found.outside or beyond
            scope = scope.parent
        imported = model.top.symbols.get(name)
        if imported is not None:
            return ev.follow(imported)
        for each in model.top.wide:
            found = self.wide(ev, each, name)
            if found.symbols:
                return found
        return Meaning(outside=beyond or name)

    def _label(self, ev: "Evaluator", model: Model, label: "Node", node: "Node") -> Meaning:
        switch: Node | None = label
        while switch is not None and switch.type not in {"switch_expression", "switch_statement"}:
            switch = switch.parent
        condition = switch.child_by_field_name("condition") if switch is not None else None
        found = ev.members(ev.infer(model, condition), model.text(node)) if condition is not None else NOT_KNOWN
        return found if found.symbols else ev.name(model, node)

    # Expressions

    def special(self, ev: "Evaluator", model: Model, node: "Node") -> Values | None:
        """Calls, what is made, casts, items, `this`, lambdas."""
        kind = node.type
        if kind == "method_invocation":
            return self._invoked(ev, model, node)
        if kind == "object_creation_expression":
            body = next((child for child in node.named_children if child.type == "class_body"), None)
            made = model.nameless_at.get(body.byte_range) if body is not None else None
            declared = node.child_by_field_name("type")
            return one(Instance(made)) if made else instances(ev.denoted(model, declared)) if declared else UNKNOWN
        if kind in {"cast_expression", "array_creation_expression"}:
            declared = node.child_by_field_name("type")
            values = self.as_type(ev.denoted(model, declared)) if declared else UNKNOWN
            return values if kind == "cast_expression" else outside("list", values)
        if kind == "array_access":
            array = node.child_by_field_name("array")
            return self.items_of(ev, ev.infer(model, array)) if array else UNKNOWN
        if kind in {"this", "super"}:
            owner = self.class_of(model, node.start_byte)
            return one(Instance(owner, (), above=kind == "super")) if owner else UNKNOWN
        if kind == "field_access" and node.children[-1].type == "this":
            return instances(ev.infer(model, node.children[0]))
        if kind == "lambda_expression":
            found = model.nameless_at.get(node.byte_range)
            return one(Function(found)) if found else UNKNOWN
        if kind == "class_literal" and node.named_children:
            return outside("Class", self.as_type(ev.denoted(model, node.named_children[0])))
        if kind in {"generic_type", "scoped_type_identifier", "array_type"}:
            return ev.denoted(model, node)
        return None

    def _invoked(self, ev: "Evaluator", model: Model, node: "Node") -> Values:
        holder, name, arguments = (node.child_by_field_name(field) for field in ("object", "name", "arguments"))
        if name is None or arguments is None:
            return UNKNOWN
        given, written = list(arguments.named_children), model.text(name)
        if holder is None:
            return self._called(ev, model, ev.values(self._method(ev, model, node, written)), given)
        found = []
        for value in ev.infer(model, holder):
            if isinstance(value, Outside):
                called = Outside(f"{value.name}.{written}", value.arguments)
                found.append(self.outside_call(ev, called, given, model))
            elif (
                written in {"values", "valueOf"}
                and isinstance(value, Class)
                and value.declaration.node.type == "enum_declaration"
            ):
                made = one(Instance(value.declaration))
                found.append(made if written == "valueOf" else outside("list", made))
            elif written == "getClass":
                found.append(outside("Class", one(value)))
            else:
                found.append(self._called(ev, model, ev.taken(one(value), f"{written}{_CALL}"), given))
        return union(found) if found else UNKNOWN

    @staticmethod
    def _called(ev: "Evaluator", model: Model, values: Values, given: "list[Node]") -> Values:
        """What a call gives, of overloads those of as many parameters."""
        fitting = frozenset(
            value for value in values if not isinstance(value, Function) or _arity(value.declaration) == len(given)
        )
        found = []
        for value in fitting or values:
            if isinstance(value, Outside | Instance):
                found.append(one(value) if isinstance(value, Instance) else UNKNOWN)
            else:
                found.append(ev.called(model, one(value), given))
        return union(found) if found else UNKNOWN

    def outside_call(self, ev: "Evaluator", called: Outside, arguments: "list[Node]", model: Model) -> Values:
        """Also what `map`, `keySet` and `entrySet` give."""
        owner, _, method = called.name.rpartition(".")
        if called.arguments:
            if method in {"map", "flatMap", "thenApply"} and arguments:
                made = ev.called(model, ev.infer(model, arguments[0]), [])
                return outside(owner, made) if method != "flatMap" else made
            if owner.rpartition(".")[2] in _MAPPINGS.split():
                if method == "keySet":
                    return outside("Set", called.arguments[0])
                if method == "entrySet":
                    return outside("Set", outside("Entry", *called.arguments))
                if method == "values":
                    return outside("Collection", called.arguments[-1])
            if owner.rpartition(".")[2] == "Entry":
                return called.arguments[0] if method == "getKey" else called.arguments[-1]
        return super().outside_call(ev, called, arguments, model)

    def implicit(self, ev: "Evaluator", one_: Declaration) -> Values:
        """A constant is one of its enumeration; a lambda's parameter what it is called with."""
        if one_.kind == "constant":
            return one(Instance(one_.scope.owner)) if one_.scope.owner else UNKNOWN
        function = one_.scope.owner
        if one_.kind != "parameter" or function is None or function.node.type != "lambda_expression":
            return UNKNOWN
        around = one_.name_node.parent
        index = (
            around.named_children.index(one_.name_node)
            if around is not None and around.type == "inferred_parameters"
            else 0
        )
        return self._given(ev, one_.model, function.node, index)

    def _given(self, ev: "Evaluator", model: Model, function: "Node", index: int) -> Values:
        wanted = self._wanted(ev, model, function)
        found = []
        for value in wanted:
            if isinstance(value, Outside) and value.arguments:
                found.append(value.arguments[min(index, len(value.arguments) - 1)])
            elif isinstance(value, Instance) and value.declaration.inner is not None:
                found += [
                    ev.value_of_declaration(parameter, ev.environment(value))
                    for symbol in value.declaration.inner.symbols.values()
                    for method in symbol.declarations[:1]
                    if method.kind == "function" and method.node.child_by_field_name("body") is None
                    for parameter in _parameters(method)[index : index + 1]
                ]
        return union(found) or UNKNOWN

    def _wanted(self, ev: "Evaluator", model: Model, node: "Node") -> Values:
        """The type that the place of a lambda wants."""
        parent = node.parent
        if parent is None:
            return NO_VALUES
        if parent.type == "variable_declarator" and parent.parent is not None:
            declared = parent.parent.child_by_field_name("type")
            return self.as_type(ev.denoted(model, declared)) if declared else NO_VALUES
        call = parent.parent
        if parent.type != "argument_list" or call is None:
            return NO_VALUES
        place = [child.start_byte for child in parent.named_children].index(node.start_byte)
        holder, name = call.child_by_field_name("object"), call.child_by_field_name("name")
        if call.type == "method_invocation" and name is not None:
            values = ev.infer(model, holder) if holder is not None else NO_VALUES
            outsides = frozenset(value for value in values if isinstance(value, Outside))
            if outsides:
                return outsides
            meant = self._method(ev, model, call, model.text(name))
            functions = [one_ for symbol in meant.symbols for one_ in symbol.declarations if one_.kind == "function"]
            fitting = [one_ for one_ in functions if _arity(one_) == len(parent.named_children)]
            parameters = [_parameters(one_)[place] for one_ in fitting if place < len(_parameters(one_))]
            return union(ev.value_of_declaration(parameter) for parameter in parameters)
        return NO_VALUES

    # Types

    def special_type(self, ev: "Evaluator", model: Model, node: "Node", env: "Environment") -> Values | None:
        """Types within types, arrays, types of the standard library."""
        kind = node.type
        if kind == "scoped_type_identifier":
            return ev.denoted_by(
                ev.members(ev.denoted(model, node.named_children[0], env), model.text(node.named_children[-1])), env
            )
        if kind == "array_type":
            element = node.child_by_field_name("element")
            return outside("list", self.as_type(ev.denoted(model, element, env))) if element else UNKNOWN
        if kind == "type_identifier" and node.text == b"var":
            return UNKNOWN
        return None

    def value_of_type(self, one_: Declaration, values: Values) -> Values:
        """Several arguments are a list."""
        return outside("list", values) if one_.kind == "several" else values

    def returned(self, ev: "Evaluator", one_: Declaration) -> Values:
        """What a lambda gives."""
        body = one_.node.child_by_field_name("body")
        if body is None or one_.node.type != "lambda_expression":
            return UNKNOWN
        if body.type != "block":
            return ev.infer(one_.model, body)
        given = [
            node.named_children[0]
            for node in body.named_children
            if node.type == "return_statement" and node.named_children
        ]
        return union(ev.infer(one_.model, part) for part in given) or UNKNOWN


def _not_public(ev: "Evaluator") -> dict[str, list[str]]:
    """The files of the classes that need not be called as their file is."""
    found: dict[str, list[str]] = {}
    for path, lines in ev.files.holding(_DECLARED).items():
        for line in lines if path.endswith(".java") else ():
            name = _NAME.search(line)
            if name is not None:
                found.setdefault(name[1], []).append(path)
    return found


def _package(model: Model) -> str:
    clause = next((node for node in model.parsed.root.named_children if node.type == "package_declaration"), None)
    return (
        model.text(clause.named_children[-1]).replace(" ", "") if clause is not None and clause.named_children else ""
    )


def _parameters(method: Declaration) -> list[Declaration]:
    every = [symbol.declarations[0] for symbol in method.inner.symbols.values()] if method.inner else []
    return [one_ for one_ in every if one_.kind in {"parameter", "several"}]


def _arity(method: Declaration) -> int:
    parameters = method.node.child_by_field_name("parameters")
    return len([node for node in parameters.named_children if node.type.endswith("_parameter")]) if parameters else 0
