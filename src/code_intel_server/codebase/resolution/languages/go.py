"""Go: one scope a package, which is a folder; methods declared apart from their type; members through what is embedded."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from code_intel_server.codebase.resolution.evaluation import Meaning
from code_intel_server.codebase.resolution.language import LanguageRules
from code_intel_server.codebase.resolution.model import BoundSymbol, Declaration, Model, Scope, fills
from code_intel_server.codebase.resolution.values import (
    UNKNOWN,
    Class,
    Function,
    Instance,
    Outside,
    Values,
    one,
    outside,
    union,
)

if TYPE_CHECKING:
    from tree_sitter import Node

    from code_intel_server.codebase.resolution.evaluation import Environment, Evaluator

_PLAIN = (
    "bool string int int8 int16 int32 int64 uint uint8 uint16 uint32 uint64 uintptr byte rune float32 float64 complex64"
    " complex128 error any comparable"
)
_VERSION = re.compile(r"v\d+")
_MODULE = re.compile(r"^module\s+(\S+)", re.MULTILINE)


@dataclass(slots=True)
class _Package:
    """What the files of one package declare, and the methods by the name of their type."""

    symbols: dict[str, list[BoundSymbol]] = field(default_factory=dict)
    methods: dict[str, dict[str, list[BoundSymbol]]] = field(default_factory=dict)


class Go(LanguageRules):
    """Go."""

    name: ClassVar[str] = "go"
    queries: ClassVar[Sequence[str]] = ("go",)
    names: ClassVar[frozenset[str]] = frozenset({"identifier", "package_identifier", "type_identifier"})
    members: ClassVar[Mapping[str, tuple[str, str]]] = {"selector_expression": ("operand", "field")}
    calls: ClassVar[Mapping[str, str]] = {"call_expression": "function"}
    same: ClassVar[frozenset[str]] = frozenset(
        {"parenthesized_expression", "slice_expression", "literal_element", "variadic_argument"}
    )
    literals: ClassVar[Mapping[str, str]] = {
        "interpreted_string_literal": "string",
        "raw_string_literal": "string",
        "int_literal": "int",
        "float_literal": "float64",
        "rune_literal": "rune",
        "true": "bool",
        "false": "bool",
        "nil": "None",
        "binary_expression": "int",
    }
    type_names: ClassVar[frozenset[str]] = frozenset({"type_identifier", "identifier", "package_identifier"})
    type_members: ClassVar[Mapping[str, tuple[str, str]]] = {"qualified_type": ("package", "name")}
    type_arguments: ClassVar[Mapping[str, tuple[str, str]]] = {"generic_type": ("type", "type_arguments")}
    type_same: ClassVar[frozenset[str]] = frozenset(
        {"pointer_type", "parenthesized_type", "type_elem", "negated_type", "type_constraint"}
    )
    elements: ClassVar[Mapping[str, int]] = {"list": 0, "map": 1, "chan": 0}
    plain: ClassVar[frozenset[str]] = frozenset(_PLAIN.split())
    classes_by_case: ClassVar[bool] = False
    is_closed: ClassVar[bool] = True

    # Declarations

    def spelled(self, text: str) -> str:
        """Of an import's path its last part, which is no version."""
        if text[:1] not in {'"', "`"}:
            return text
        parts = [part for part in text.strip('"`').split("/") if not _VERSION.fullmatch(part)]
        return parts[-1].partition(".v")[0] if parts else ""

    def declare(self, model: Model, one_: Declaration, scope: Scope) -> None:
        """Methods belong to their type, not to a scope."""
        if one_.name == "_":
            return
        if one_.kind == "method":
            one_.kind = "function"
            one_.inner = model.scope_at(one_.name_node.start_byte)
            one_.inner.kind = "function"
            one_.inner.owner = one_
            symbol = BoundSymbol(one_.name, model.top, [one_])
            one_.scope = model.top
            model.by_name_byte[one_.name_node.start_byte] = symbol
            model.apart.append((_receiver(model, one_.node), symbol))
        else:
            model.bind(one_, scope)

    def bases(self, one_: Declaration) -> "list[Node]":
        """What is embedded; of a type that is another one, that."""
        declared = one_.node.child_by_field_name("type") if one_.name else one_.node
        if declared is None:
            return []
        if declared.type == "struct_type":
            fields = [node for part in declared.named_children for node in part.named_children]
            found = [node.child_by_field_name("type") for node in fields if node.child_by_field_name("name") is None]
            return [node for node in found if node is not None]
        if declared.type == "interface_type":
            return [node for node in declared.named_children if node.type == "type_elem"]
        return [declared] if declared.type in {"type_identifier", "qualified_type", "generic_type"} else []

    def further_member(self, ev: "Evaluator", one_: Declaration, name: str) -> Sequence[BoundSymbol]:
        """Its methods."""
        return _package(ev, one_.model).methods.get(one_.name, {}).get(name, ()) if one_.name else ()

    def may_be(self, ev: "Evaluator", seen: Declaration, wanted: Declaration) -> bool:
        """Whether a type has all methods of an interface, so that it may be meant by it."""
        declared = seen.node.child_by_field_name("type")
        if declared is None or declared.type != "interface_type" or seen.inner is None:
            return False
        return all(ev.member(Instance(wanted), name).symbols for name in seen.inner.symbols)

    # Packages

    def imported(self, ev: "Evaluator", one_: Declaration) -> Meaning:
        """A package of the project, or one outside."""
        path = one_.node.child_by_field_name("path")
        written = one_.model.text(path).strip('"`') if path else one_.name
        for folder, module in ev.once(("go.mod",), partial(_modules, ev)):
            if written == module or written.startswith(f"{module}/"):
                inner = written[len(module) + 1 :]
                where = "/".join(part for part in (folder, inner) if part)
                files = [name for name in ev.files.in_folder(where) if _is_source(name)]
                if files:
                    return Meaning(modules=frozenset(files[:1]))
        return Meaning(outside=written)

    def exported(self, ev: "Evaluator", model: Model, name: str) -> Meaning | None:
        """What any file of the package declares."""
        found = _package(ev, model).symbols.get(name)
        return Meaning(frozenset(found)) if found else None

    def beyond(self, ev: "Evaluator", model: Model, name: str) -> Meaning | None:
        """What other files of the package declare."""
        found = _package(ev, model).symbols.get(name)
        return Meaning(frozenset(found)) if found else None

    # What a name means in other places

    def at(self, ev: "Evaluator", model: Model, node: "Node") -> Meaning | None:
        """A field in a composite literal; labels are nothing."""
        parent = node.parent
        if node.type == "label_name":
            return Meaning(outside="label")
        above = parent.parent if parent is not None else None
        if parent is None or above is None or parent.type != "literal_element" or above.type != "keyed_element":
            return None
        if not fills(above, "key", parent) or above.parent is None:
            return None
        found = ev.members(self._wanted(ev, model, above.parent), model.text(node))
        return found if found.symbols else None

    def also(self, ev: "Evaluator", model: Model, node: "Node") -> Meaning | None:
        """What is embedded is a type and a field."""
        own = model.by_name_byte[node.start_byte]
        if own.declarations[0].kind != "field" or node.type != "type_identifier":
            return None
        declared = own.declarations[0].type_node
        if declared is None:
            return None
        if declared.type == "qualified_type":
            package = declared.child_by_field_name("package")
            return Meaning.of(
                [Meaning(frozenset({own})), ev.members(ev.infer(model, package), own.name)] if package else []
            )
        return Meaning.of([Meaning(frozenset({own})), ev.name(model, node)])

    def _wanted(self, ev: "Evaluator", model: Model, body: "Node") -> Values:
        """What a composite literal's body makes, also where its type is left out."""
        parent = body.parent
        if parent is not None and parent.type == "composite_literal":
            declared = parent.child_by_field_name("type")
            return self.as_type(ev.denoted(model, declared)) if declared else UNKNOWN
        if parent is None or parent.parent is None:
            return UNKNOWN
        outer = parent.parent
        if outer.type == "keyed_element" and outer.parent is not None:
            return self.items_of(ev, self._wanted(ev, model, outer.parent))
        return self.items_of(ev, self._wanted(ev, model, outer))

    # Expressions

    def special(self, ev: "Evaluator", model: Model, node: "Node") -> Values | None:
        """Literals of types, conversions, `make` and `new`, items, receives, what a type switch narrows."""
        kind = node.type
        if kind == "composite_literal":
            declared = node.child_by_field_name("type")
            return self.as_type(ev.denoted(model, declared)) if declared else UNKNOWN
        if kind == "literal_value":
            return self._wanted(ev, model, node)
        if kind == "unary_expression":
            operand, operator = node.child_by_field_name("operand"), node.child_by_field_name("operator")
            values = ev.infer(model, operand) if operand else UNKNOWN
            return self.items_of(ev, values) if operator is not None and operator.type == "<-" else values
        if kind in {"type_assertion_expression", "type_conversion_expression"}:
            declared = node.child_by_field_name("type")
            return self.as_type(ev.denoted(model, declared)) if declared else UNKNOWN
        if kind == "func_literal":
            made = model.nameless_at.get(node.byte_range)
            return one(Function(made)) if made else UNKNOWN
        if kind in {
            "slice_type",
            "map_type",
            "array_type",
            "pointer_type",
            "qualified_type",
            "generic_type",
            "channel_type",
        }:
            return ev.denoted(model, node)
        if kind == "index_expression":
            return self._item(ev, model, node)
        if kind == "call_expression":
            return self._special_call(ev, model, node)
        if kind == "identifier":
            return self._switched(ev, model, node)
        return None

    def _special_call(self, ev: "Evaluator", model: Model, node: "Node") -> Values | None:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or arguments is None:
            return UNKNOWN
        given, name = arguments.named_children, model.text(function)
        if name in {"make", "new"} and given and ev.lookup(model, name, function) is None:
            return self.as_type(ev.denoted(model, given[0]))
        if name in {"append", "min", "max"} and given:
            return ev.infer(model, given[0])
        if name in {"len", "cap", "copy"}:
            return outside("int")
        return None

    def _item(self, ev: "Evaluator", model: Model, node: "Node") -> Values:
        operand = node.child_by_field_name("operand")
        values = ev.infer(model, operand) if operand else UNKNOWN
        kept = frozenset(value for value in values if isinstance(value, Function | Class))
        return kept | self.items_of(ev, values - kept) if values - kept else kept

    def _switched(self, ev: "Evaluator", model: Model, node: "Node") -> Values | None:
        """What the case around it says of the variable of a type switch."""
        above = node.parent
        while above is not None and above.type not in {"function_declaration", "method_declaration", "func_literal"}:
            switch = above.parent
            if above.type == "type_case" and switch is not None and switch.type == "type_switch_statement":
                alias = switch.child_by_field_name("alias")
                if alias is not None and alias.text == node.text:
                    types = above.children_by_field_name("type")
                    return self.as_type(ev.denoted(model, types[0])) if len(types) == 1 else None
            above = switch
        return None

    def iterated(self, ev: "Evaluator", value: Instance) -> Values:
        """What the type that it is made of holds."""
        return (
            self.items_of(ev, frozenset(made for made in self._made_of(ev, value) if isinstance(made, Outside)))
            or UNKNOWN
        )

    def call_of_instance(self, ev: "Evaluator", model: Model, value: Instance, given: "list[Node]") -> Values:
        """What the function that its type is gives."""
        functions = frozenset(made for made in self._made_of(ev, value) if isinstance(made, Function))
        return ev.called(model, functions, given) if functions else UNKNOWN

    @staticmethod
    def _made_of(ev: "Evaluator", value: Instance) -> Values:
        declared = value.declaration.node.child_by_field_name("type")
        if declared is None or declared.type in {"struct_type", "interface_type"}:
            return UNKNOWN
        return ev.denoted(value.declaration.model, declared)

    def part(self, ev: "Evaluator", one_: Declaration) -> Values:
        """One of several names that are declared together."""
        model, value = one_.model, one_.value_node
        if value is None:
            return UNKNOWN
        kind = one_.node.type
        if kind == "var_spec":
            place = [node.start_byte for node in one_.node.children_by_field_name("name")].index(
                one_.name_node.start_byte
            )
        else:
            place = one_.name_node.parent.named_children.index(one_.name_node) if one_.name_node.parent else 0
        if kind == "range_clause":
            return self._ranged(ev, ev.infer(model, value), place)
        values = value.named_children if value.type == "expression_list" else [value]
        if place < len(values) and len(values) > 1:
            return ev.infer(model, values[place])
        if values and values[0].type == "call_expression":
            made = ev.infer(model, values[0])
            tuples = frozenset(each for each in made if isinstance(each, Outside) and each.name == "tuple")
            return (self.items_of(ev, tuples, place) if tuples else frozenset()) | (
                made - tuples if not place else frozenset()
            ) or UNKNOWN
        return ev.infer(model, values[0]) if values and not place else outside("bool")

    def _ranged(self, ev: "Evaluator", values: Values, place: int) -> Values:
        found = []
        for value in values:
            every = self._made_of(ev, value) if isinstance(value, Instance) else one(value)
            for made in every:
                if isinstance(made, Outside) and made.name in self.elements and made.arguments:
                    is_first = place == 0 and made.name != "chan"
                    key = made.arguments[0] if made.name == "map" else outside("int")
                    found.append(key if is_first else made.arguments[-1])
                else:
                    found.append(outside("int") if isinstance(made, Outside) and made.name in self.plain else UNKNOWN)
        return union(found) or UNKNOWN

    # Types

    def special_type(self, ev: "Evaluator", model: Model, node: "Node", env: "Environment") -> Values | None:
        """Collections, functions, several results."""
        kind = node.type
        if kind in {"slice_type", "array_type", "implicit_length_array_type"}:
            element = node.child_by_field_name("element")
            return outside("list", self.as_type(ev.denoted(model, element, env))) if element else UNKNOWN
        if kind == "map_type":
            parts = [node.child_by_field_name(name) for name in ("key", "value")]
            return outside("map", *(self.as_type(ev.denoted(model, part, env)) for part in parts if part))
        if kind == "channel_type":
            element = node.child_by_field_name("value")
            return outside("chan", self.as_type(ev.denoted(model, element, env))) if element else UNKNOWN
        if kind in {"function_type", "struct_type", "interface_type"}:
            made = model.nameless_at.get(node.byte_range)
            if made is None:
                return outside("any")
            return one(Function(made)) if kind == "function_type" else one(Class(made))
        if kind == "parameter_list":
            return self._results(ev, model, node, env)
        return None

    def _results(self, ev: "Evaluator", model: Model, node: "Node", env: "Environment") -> Values:
        found = []
        for part in node.named_children:
            declared = part.child_by_field_name("type")
            values = self.as_type(ev.denoted(model, declared, env)) if declared else UNKNOWN
            found += [values] * max(len(part.children_by_field_name("name")), 1)
        return found[0] if len(found) == 1 else outside("tuple", *found)

    def implicit(self, ev: "Evaluator", one_: Declaration) -> Values:
        """A constant is a number or a text; of several arguments there is a list."""
        return outside("int") if one_.kind == "constant" else UNKNOWN

    def value_of_type(self, one_: Declaration, values: Values) -> Values:
        """Several arguments are a list."""
        return outside("list", values) if one_.kind == "several" else values

    def returned(self, ev: "Evaluator", one_: Declaration) -> Values:
        """Nothing, since nothing is declared."""
        return outside("None")


def _receiver(model: Model, method: "Node") -> str:
    """The name of a method's type."""
    receiver = method.child_by_field_name("receiver")
    pending = list(receiver.named_children[:1]) if receiver else []
    while pending:
        node = pending.pop(0)
        if node.type == "type_identifier":
            return model.text(node)
        declared = node.child_by_field_name("type")
        pending = [declared, *pending] if declared is not None else [*node.named_children, *pending]
    return ""


def _package(ev: "Evaluator", model: Model) -> _Package:
    """The package of a file: the files of its folder that say the same name, those of its tests among them."""
    folder, name = model.path.rpartition("/")[0], _package_name(model)
    return ev.once(("package", folder, name), partial(_read, ev, folder, name))


def _read(ev: "Evaluator", folder: str, name: str) -> _Package:
    package = _Package()
    models = [ev.files.model(path) for path in ev.files.in_folder(folder) if path.endswith(".go")]
    for model in models:
        if model is None or _package_name(model) != name:
            continue
        for symbol in model.top.symbols.values():
            if symbol.declarations[0].kind != "import":
                package.symbols.setdefault(symbol.name, []).append(symbol)
        for owner, symbol in model.apart:
            package.methods.setdefault(owner, {}).setdefault(symbol.name, []).append(symbol)
    for owner, methods in package.methods.items():
        for types in package.symbols.get(owner, ())[:1]:
            for symbols in methods.values():
                for symbol in symbols:
                    symbol.declarations[0].member_of = types.declarations[0]
    return package


def _package_name(model: Model) -> str:
    clause = next((node for node in model.parsed.root.named_children if node.type == "package_clause"), None)
    return model.text(clause.named_children[0]) if clause is not None and clause.named_children else ""


def _is_source(path: str) -> bool:
    return path.endswith(".go") and not path.endswith("_test.go")


def _modules(ev: "Evaluator") -> list[tuple[str, str]]:
    """Folder and name of the project's own modules, the longest name first."""
    found = []
    for path in ev.files.named("go.mod"):
        name = _MODULE.search(ev.files.text(path))
        if name is not None:
            found.append((path.rpartition("/")[0], name[1]))
    return sorted(found, key=lambda pair: -len(pair[1]))
