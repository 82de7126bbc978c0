"""TypeScript and JavaScript: blocks, modules by relative path or workspace package, types as they are written."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from code_intel_server.codebase.resolution.evaluation import NO_MEANING, NOT_KNOWN, SELF, Call, Meaning
from code_intel_server.codebase.resolution.language import LanguageRules
from code_intel_server.codebase.resolution.model import BoundSymbol, Declaration, Model, Scope, fills
from code_intel_server.codebase.resolution.paths import joined
from code_intel_server.codebase.resolution.values import (
    NO_VALUES,
    UNKNOWN,
    Class,
    Function,
    Instance,
    Outside,
    Unknown,
    Values,
    one,
    outside,
    union,
)
from code_intel_server.common.word_set import word_set

if TYPE_CHECKING:
    from tree_sitter import Node

    from code_intel_server.codebase.resolution.evaluation import Environment, Evaluator

_ENDINGS = (".ts", ".tsx", ".mts", ".cts", ".d.ts", ".js", ".jsx", ".mjs", ".cjs")
_TYPES_ALONE = frozenset({"interface_declaration", "type_alias_declaration"})
_VALUES_ALONE = frozenset({"variable", "function"})
_WITH_THIS = frozenset({"function_declaration", "function_expression", "method_definition"})
_PASSES_ON = re.compile(r"\bexport\s*[*=]|\bexports\b|\\u")
"""What exports names that are not written: those of another file, or of a value; an escape may hide one."""
_SWAPPED = re.compile(r"\.([mc]?)jsx?$")
_FUNCTIONS = frozenset({"arrow_function", "function_expression", "generator_function"})
_BY_CONTEXT = _FUNCTIONS | {"object", "array"}
"""What is understood by what its place wants."""
_WANTING_NOTHING = word_set(
    "expression_statement member_expression call_expression new_expression template_substitution export_statement"
)
_PATTERNS = word_set(
    "array_pattern object_pattern rest_pattern pair_pattern assignment_pattern object_assignment_pattern"
)
_SETTING = frozenset({"assignment_expression", "augmented_assignment_expression", "for_in_statement"})
_PASSING_ON = frozenset(
    ["parenthesized_expression", "ternary_expression", "await_expression", "spread_element", "object"]
)
_CHOOSING = frozenset({"||", "??", "&&"})
_ON_ELEMENTS = frozenset(
    ["map", "forEach", "filter", "find", "findIndex", "findLast", "some", "every", "flatMap", "sort", "toSorted"]
)
_PASSING = frozenset({"then", "finally"})
_LISTS = (
    "list Array ReadonlyArray Set ReadonlySet Iterable Iterator AsyncIterable AsyncIterator "
    "Generator AsyncGenerator IterableIterator AsyncIterableIterator WeakSet"
)
_TRANSPARENT = (
    "Promise PromiseLike Readonly Partial Required NonNullable Awaited Pick Omit Exclude Extract MaybePromise NoInfer"
)
_GLOBALS = word_set("Array Object Map Set Promise JSON Math Date Error console document window process String Number")
_TYPES_ONLY = frozenset({"interface_declaration"})
# What is never closed is taken to the end, and so is never tried again from each letter of it.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*(?:"|\Z))|\\.|//[^\n]*|/\*.*?(?:\*/|\Z)|,(?=\s*[}\]])', re.DOTALL)
_MAPPINGS = frozenset({"Map", "ReadonlyMap", "WeakMap", "Record"})


class TypeScript(LanguageRules):
    """TypeScript; JavaScript differs in its query."""

    name: ClassVar[str] = "typescript"
    queries: ClassVar[Sequence[str]] = ("javascript", "typescript_own")
    names: ClassVar[frozenset[str]] = frozenset({"identifier", "shorthand_property_identifier", "undefined"})
    members: ClassVar[Mapping[str, tuple[str, str]]] = {"member_expression": ("object", "property")}
    calls: ClassVar[Mapping[str, str]] = {"call_expression": "function", "new_expression": "constructor"}
    same: ClassVar[frozenset[str]] = frozenset(
        {"parenthesized_expression", "await_expression", "non_null_expression", "spread_element"}
    )
    either: ClassVar[Mapping[str, Sequence[str]]] = {
        "ternary_expression": ("consequence", "alternative"),
        "assignment_expression": ("right",),
        "augmented_assignment_expression": ("right",),
    }
    literals: ClassVar[Mapping[str, str]] = {
        "string": "string",
        "template_string": "string",
        "number": "number",
        "true": "boolean",
        "false": "boolean",
        "null": "None",
        "undefined": "None",
        "regex": "RegExp",
        "unary_expression": "number",
        "update_expression": "number",
        "template_literal_type": "string",
        "index_type_query": "string",
        "type_predicate_annotation": "boolean",
        "asserts_annotation": "None",
    }
    lists: ClassVar[frozenset[str]] = frozenset({"array"})
    type_names: ClassVar[frozenset[str]] = frozenset({"type_identifier", "identifier"})
    type_members: ClassVar[Mapping[str, tuple[str, str]]] = {"nested_type_identifier": ("module", "name")}
    type_arguments: ClassVar[Mapping[str, tuple[str, str]]] = {"generic_type": ("name", "type_arguments")}
    type_same: ClassVar[frozenset[str]] = word_set(
        "type_annotation parenthesized_type readonly_type rest_type optional_type constraint default_type"
    )
    type_either: ClassVar[frozenset[str]] = frozenset({"union_type", "intersection_type"})
    type_lists: ClassVar[frozenset[str]] = frozenset({"array_type"})
    transparent: ClassVar[frozenset[str]] = frozenset(_TRANSPARENT.split())
    elements: ClassVar[Mapping[str, int]] = {**dict.fromkeys(_LISTS.split(), 0), **dict.fromkeys(_MAPPINGS, 1)}
    giving: ClassVar[frozenset[str]] = frozenset({"pop", "shift", "find", "findLast", "at", "get"})
    keeping: ClassVar[frozenset[str]] = frozenset(
        ["filter", "slice", "concat", "reverse", "sort", "splice", "toSorted", "toReversed", "values", "entries"]
    )
    plain: ClassVar[frozenset[str]] = frozenset({"string", "number", "boolean", "RegExp", "bigint", "symbol", "None"})

    # Declarations

    def declare(self, model: Model, one_: Declaration, scope: Scope) -> None:
        """Bind by block; `var` and `this.x` further out; exports in a table of their own."""
        kind = one_.kind
        if kind == "wide":
            model.top.wide.append(one_)
        elif kind in {"export", "default"}:
            self._export(model, one_)
        elif kind == "exports":
            one_.kind = "variable"
            _add(model, model.exports, one_)
        elif kind == "whole":
            if one_.name == "exports":
                one_.kind, one_.name = "variable", "export="
                _add(model, model.exports, one_)
        elif kind in {"assigned", "added"}:
            (self._assigned if kind == "assigned" else self._added)(model, one_, scope)
        elif kind == "prototype":
            self._prototype(model, one_)
        elif kind in {"shorthand", "member"}:
            one_.kind = "field"
            model.bind(one_, scope)
        elif kind == "parameter":
            self._parameter(model, one_, scope)
        else:
            if kind == "part" and _required(model, one_.name_node) is not None:
                one_.kind = "import"
            model.bind(one_, self._variable(one_, scope) if kind == "variable" else scope)

    @staticmethod
    def _variable(one_: Declaration, scope: Scope) -> Scope:
        """The scope that a variable is bound in; what one that begins with nothing is set to later is not looked for."""
        if one_.value_node is not None and one_.value_node.type in {"null", "undefined"}:
            one_.value_node = None
        is_wide = one_.node.parent is not None and one_.node.parent.type == "variable_declaration"
        return (scope.around("function", "namespace", "module") or scope) if is_wide else scope

    def _export(self, model: Model, one_: Declaration) -> None:
        if one_.kind == "default":
            one_.name = "default"
            value = one_.value_node
            name = (
                value.child_by_field_name("name") if value is not None and value.type.endswith("declaration") else None
            )
            one_.kind = (
                "export" if name is not None or (value is not None and value.type == "identifier") else "variable"
            )
            if name is not None:
                one_.value_node = name
        _add(model, model.exports, one_)

    @staticmethod
    def _assigned(model: Model, one_: Declaration, scope: Scope) -> None:
        owner: Scope | None = scope
        while owner is not None and not (owner.kind == "class" and owner.owner is not None and owner.owner.name):
            owner = owner.parent
        one_.kind = "field"
        if owner is None:
            function = scope.around("function")
            if (
                function is not None
                and function.owner is not None
                and function.owner.name
                and function.parent
                and function.parent.kind != "class"
                and _declared_this(function.owner.node) is None
            ):
                model.bind(one_, function)
            return
        known = owner.symbols.get(one_.name)
        if known is None:
            model.bind(one_, owner)

    @staticmethod
    def _added(model: Model, one_: Declaration, scope: Scope) -> None:
        """A function that a known object or class is given: `app.render = function …`."""
        left = one_.node.child_by_field_name("left")
        holder = left.child_by_field_name("object") if left else None
        around: Scope | None = scope
        while around is not None and holder is not None and model.text(holder) not in around.symbols:
            around = around.parent
        known = around.symbols[model.text(holder)].declarations[0] if around is not None and holder else None
        inner = known.inner if known is not None and known.kind == "class" else None
        value = known.value_node if known is not None else None
        while value is not None and value.type == "assignment_expression":
            value = value.child_by_field_name("right")
        if value is not None and value.type == "object":
            made = model.nameless_at.get(value.byte_range)
            inner = made.inner if made is not None else None
        if inner is not None and one_.name not in inner.symbols:
            one_.kind = "field"
            model.bind(one_, inner)

    @staticmethod
    def _prototype(model: Model, one_: Declaration) -> None:
        left = one_.node.child_by_field_name("left")
        holder = left.child_by_field_name("object") if left else None
        holder = holder.child_by_field_name("object") if holder else None
        symbol = model.top.symbols.get(model.text(holder)) if holder else None
        inner = symbol.declarations[0].inner if symbol else None
        if inner is not None:
            one_.kind = "field"
            model.bind(one_, inner)

    @staticmethod
    def _parameter(model: Model, one_: Declaration, scope: Scope) -> None:
        symbol = model.bind(one_, scope)
        function = scope.around("function")
        marked = any(
            child.type in {"accessibility_modifier", "readonly", "override_modifier"} for child in one_.node.children
        )
        if marked and function is not None and function.parent is not None and function.parent.kind == "class":
            function.parent.symbols.setdefault(one_.name, symbol)

    def defining(self, symbol: BoundSymbol, *, as_type: bool) -> Sequence[Declaration]:
        """Types where a type is asked for, else what is not only a type."""
        if len(symbol.declarations) == 1:
            return symbol.declarations
        if as_type:
            found = [
                one_
                for one_ in symbol.declarations
                if one_.kind in {"class", "alias", "typeparam", "import", "export", "namespace"}
            ]
        else:
            found = [one_ for one_ in symbol.declarations if one_.kind != "alias" and one_.node.type not in _TYPES_ONLY]
        return super().defining(BoundSymbol(symbol.name, symbol.scope, found or symbol.declarations), as_type=as_type)

    def is_type_and_value(self, symbol: BoundSymbol) -> bool:
        """An interface or alias and a constant or function: what the language merges, and each use takes one half of."""
        halves = {one.node.type in _TYPES_ALONE for one in symbol.declarations}
        values = all(one.node.type in _TYPES_ALONE or one.kind in _VALUES_ALONE for one in symbol.declarations)
        return values and len(halves) == 2

    def is_type(self, node: "Node") -> bool | None:
        """By the kind of its node, except where modules exchange both."""
        if node.parent is not None and node.parent.type in {"import_specifier", "export_specifier", "import_clause"}:
            return None
        return node.type == "type_identifier"

    def bases(self, one_: Declaration) -> "list[Node]":
        """What is behind `extends` and `implements`."""
        found: list[Node] = []
        for child in one_.node.named_children:
            if child.type == "class_heritage":
                for part in child.named_children:
                    found += part.named_children if part.type.endswith("_clause") else [part]
            elif child.type in {"extends_type_clause", "extends_clause"}:
                found += child.named_children
        return [node for node in found if node.type != "type_arguments"]

    def further_bases(self, ev: "Evaluator", one_: Declaration) -> Values:
        """What other declarations of the same interface are built on."""
        symbol = one_.scope.symbols.get(one_.name) if one_.name else None
        others = (
            [other for other in symbol.declarations if other is not one_ and other.kind == "class"] if symbol else []
        )
        return union(one(Class(other)) for other in others)

    def further_member(self, ev: "Evaluator", one: Declaration, name: str) -> Sequence[BoundSymbol]:
        """What a namespace of the same name has."""
        symbol = one.scope.symbols.get(one.name) if one.name else None
        others = [other.inner for other in symbol.declarations if other.kind == "namespace"] if symbol else []
        return [
            inner.symbols[name]
            for inner in others
            if inner is not None and inner is not one.inner and name in inner.symbols
        ]

    # Modules

    def imported(self, ev: "Evaluator", one_: Declaration) -> Meaning:
        """What an import or an export of another name stands for."""
        model, node = one_.model, one_.name_node
        if one_.kind == "export" and one_.name == "default" and one_.value_node is not None:
            return ev.name(model, one_.value_node)
        required = _required(model, node)
        if required is not None:
            key = node.parent.child_by_field_name("key") if node.parent and node.parent.type == "pair_pattern" else node
            return self._from(ev, self.module(ev, model.path, required), model.text(key or node))
        statement = _statement(node)
        source = _source(model, statement) if statement is not None else None
        parent = node.parent
        if parent is None or statement is None:
            return NOT_KNOWN
        if parent.type in {"export_specifier", "import_specifier"}:
            original = parent.child_by_field_name("name") or node
            if source is None:
                symbol = model.top.symbols.get(model.text(original))
                return ev.follow(symbol) if symbol else Meaning(outside=model.text(original))
            return self._from(ev, self.module(ev, model.path, source), model.text(original))
        found = self.module(ev, model.path, source or "")
        if parent.type == "import_clause":
            return self._from(ev, found, "default")
        return found

    def _from(self, ev: "Evaluator", found: Meaning, name: str) -> Meaning:
        if found.outside:
            return Meaning(outside=f"{found.outside}.{name}")
        meant = Meaning.of(ev.in_module(path, name) for path in found.modules)
        if not meant and name == "default" and found.modules:
            return self._whole(ev, found)
        return meant or NOT_KNOWN

    @staticmethod
    def _whole(ev: "Evaluator", found: Meaning) -> Meaning:
        meant = Meaning.of(ev.in_module(path, "export=") for path in found.modules)
        return meant if meant.symbols else found

    def exported(self, ev: "Evaluator", model: Model, name: str) -> Meaning | None:
        """From the table of exports, then what the file binds."""
        symbol = model.exports.get(name)
        if symbol is not None:
            return ev.follow(symbol)
        whole = model.exports.get("export=")
        if whole is not None and name != "default":
            found = ev.members(ev.value_of(whole), name)
            short = [one_ for symbol in found.symbols for one_ in symbol.declarations if _is_short(one_)]
            return Meaning.of([found, *(ev.name(one_.model, one_.name_node) for one_ in short)])
        return None

    def wide(self, ev: "Evaluator", one_: Declaration, name: str) -> Meaning:
        """What `export * from` gives a name."""
        source = _source(one_.model, one_.node)
        found = self.module(ev, one_.model.path, source or "")
        if found.outside or found.unknown or name == "default":
            return NO_MEANING
        return Meaning.of(ev.in_module(path, name) for path in found.modules if _may_export(ev, path, name))

    def module(self, ev: "Evaluator", path: str, source: str) -> Meaning:
        """The file of a module as it is written in an import."""
        if source.startswith("."):
            folder = path.rpartition("/")[0]
            found = _file(ev, joined(folder, source))
            return Meaning(modules=frozenset({found})) if found else NOT_KNOWN
        for candidate in _mapped(ev, path, source):
            found = _file(ev, candidate)
            if found:
                return Meaning(modules=frozenset({found}))
        return Meaning(outside=source)

    def beyond(self, ev: "Evaluator", model: Model, name: str) -> Meaning | None:
        """What the platform has; in a script, which shares its names with others, anything."""
        is_module = any(
            child.type in {"import_statement", "export_statement"} for child in model.parsed.root.named_children
        )
        return None if is_module or name in _GLOBALS or model.exports else NOT_KNOWN

    # What a name means in other places

    def at(self, ev: "Evaluator", model: Model, node: "Node") -> Meaning | None:
        """A key of a pattern, a name within an import or export."""
        parent = node.parent
        if parent is None:
            return NOT_KNOWN
        if node.type == "string_fragment":
            return self._indexed(ev, model, node)
        if parent.type == "pair_pattern" and fills(parent, "key", node):
            return ev.members(self._pattern(ev, model, parent.parent or parent), model.text(node))
        if parent.type in {"import_specifier", "export_specifier"}:
            statement = _statement(node)
            source = _source(model, statement) if statement else None
            if source is not None:
                return self._from(ev, self.module(ev, model.path, source), model.text(node))
            symbol = model.top.symbols.get(model.text(node))
            return ev.follow(symbol) if symbol else Meaning(outside=model.text(node))
        if parent.type == "jsx_attribute":
            return self._attribute(ev, model, parent.parent, model.text(node))
        if parent.type in {"labeled_statement", "break_statement", "continue_statement", "index_signature"}:
            return Meaning(outside="label")
        if (
            parent.type in {"property_signature", "pair", "method_definition", "type_predicate"}
            and node.type == "property_identifier"
        ):
            return NOT_KNOWN
        if node.type == "statement_identifier":
            return Meaning(outside="label")
        return None

    def _indexed(self, ev: "Evaluator", model: Model, node: "Node") -> Meaning:
        """A member by its name as text: `T["name"]`, `value["name"]`."""
        around = node.parent.parent if node.parent else None
        if around is not None and around.type == "literal_type":
            around = around.parent
        holder = around.named_children[0] if around is not None else None
        if around is None or holder is None or holder.end_byte > node.start_byte:
            return NOT_KNOWN
        if around.type == "subscript_expression":
            return ev.members(ev.infer(model, holder), model.text(node))
        return ev.members(ev.denoted(model, holder), model.text(node)) if around.type == "lookup_type" else NOT_KNOWN

    def _attribute(self, ev: "Evaluator", model: Model, element: "Node | None", name: str) -> Meaning:
        """A component's property, or an attribute that `JSX.IntrinsicElements` knows of an element."""
        tag = element.child_by_field_name("name") if element is not None else None
        if tag is None:
            return NOT_KNOWN
        if tag.type == "identifier" and model.text(tag)[:1].islower():
            elements = ev.once(("elements",), partial(self._elements, ev))
            return ev.members(ev.taken(elements, model.text(tag)), name) if elements else NOT_KNOWN
        found = []
        for value in ev.infer(model, tag):
            if isinstance(value, Function):
                found.append(self._argument(ev, value.declaration, 0, value.receiver, Call(model, bound=value.bound)))
            elif isinstance(value, Class):
                found.append(ev.taken(one(Instance(value.declaration)), "props"))
        return ev.members(union(found) or UNKNOWN, name)

    @staticmethod
    def _elements(ev: "Evaluator") -> Values:
        found = []
        for path in ev.files.holding(r"\binterface IntrinsicElements\b"):
            model = ev.files.model(path)
            every = model.by_name_byte.values() if model is not None else ()
            classes = [one_ for symbol in every if symbol.name == "IntrinsicElements" for one_ in symbol.declarations]
            found += [one(Instance(one_)) for one_ in classes if one_.kind == "class"]
        return union(found)

    def also(self, ev: "Evaluator", model: Model, node: "Node") -> Meaning | None:
        """A key of an object is that of the type wanted there; a bare name in a pattern or object is two things."""
        parent = node.parent
        own = model.by_name_byte[node.start_byte]
        if node.type == "shorthand_property_identifier_pattern":
            pattern = parent
            while pattern is not None and pattern.type != "object_pattern":
                pattern = pattern.parent
            values = self._pattern(ev, model, pattern) if pattern else UNKNOWN
            return Meaning.of([ev.follow(own), ev.members(values, own.name)])
        if parent is not None and _augments(parent):
            return Meaning(frozenset({own}), unknown=True)
        if parent is None or own.scope.owner is None or own.scope.owner.node.type != "object":
            return None
        values = self.expected(ev, model, own.scope.owner.node)
        wanted = ev.members(values, own.name)
        here = wanted if wanted.symbols else Meaning(frozenset({own}), unknown=wanted.unknown and bool(values))
        if node.type == "shorthand_property_identifier":
            return Meaning.of([here, ev.name(model, node)])
        return here

    def canonical(self, ev: "Evaluator", symbol: BoundSymbol) -> BoundSymbol:
        """A key of an object is that of the type wanted there."""
        owner = symbol.owner
        if owner is None or owner.node.type != "object":
            return symbol
        wanted = ev.members(self.expected(ev, owner.model, owner.node), symbol.name).symbols
        return min(wanted, key=lambda one_: one_.key) if wanted else symbol

    def root(self, ev: "Evaluator", symbol: BoundSymbol) -> BoundSymbol:
        """The member of the topmost type: types are compared by what they have, so that all below it are renamed with it."""
        owner = symbol.owner
        if owner is None:
            return symbol
        found = symbol
        for base in ev.line_of_descent(Class(owner))[1:]:
            if isinstance(base, Class):
                found = next(iter(ev.own_member(base.declaration, symbol.name)), found)
        return found

    # Expressions

    def special(self, ev: "Evaluator", model: Model, node: "Node") -> Values | None:
        """`this`, functions and objects as they are written, casts, `require`."""
        kind = node.type
        if kind in {"this", "super"}:
            return self._this(ev, model, node, above=kind == "super")
        if kind in _FUNCTIONS or kind in {"object", "class"}:
            made = model.nameless_at.get((node.start_byte, node.end_byte))
            if made is None:
                return UNKNOWN
            if kind == "object":
                return self.expected_class(ev, model, node) or one(Instance(made))
            return one(Class(made)) if kind == "class" else one(Function(made))
        if kind in {"as_expression", "satisfies_expression"}:
            if node.named_child_count < 2:
                return ev.infer(model, node.named_children[0])
            return self.as_type(ev.denoted(model, node.named_children[1]))
        if kind == "binary_expression":
            left, right = (node.child_by_field_name(name) for name in ("left", "right"))
            operator = node.child_by_field_name("operator")
            if operator is not None and operator.type in _CHOOSING:
                return union(ev.infer(model, part) for part in (left, right) if part)
            return outside("number")
        if kind == "subscript_expression":
            return self._item(ev, model, node)
        if kind in {"call_expression", "new_expression"}:
            return self._special_call(ev, model, node)
        if kind == "undefined":
            return outside("None")
        return None

    def _this(self, ev: "Evaluator", model: Model, node: "Node", *, above: bool) -> Values:
        scope: Scope | None = model.scope_at(node.start_byte)
        while scope is not None and scope.kind != "class":
            owner = scope.owner
            if scope.kind == "function" and owner is not None and owner.node.type in _WITH_THIS:
                declared = _declared_this(owner.node)
                if declared is not None:
                    return self.as_type(ev.denoted(model, declared))
                if owner.node.type != "method_definition":
                    return one(Instance(owner)) if owner.name else UNKNOWN
            scope = scope.parent
        if scope is None or scope.owner is None:
            return UNKNOWN
        return one(Instance(scope.owner, (), above=above))

    def _special_call(self, ev: "Evaluator", model: Model, node: "Node") -> Values | None:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or arguments is None:
            return None
        name, given = model.text(function), arguments.named_children
        if function.type == "super":
            return UNKNOWN
        if name == "require" and given and given[0].type == "string":
            return ev.values(self._whole(ev, self.module(ev, model.path, model.text(given[0]).strip("'\"`"))))
        if function.type == "import" and given and given[0].type == "string":
            return ev.values(self.module(ev, model.path, model.text(given[0]).strip("'\"`")))
        if name in {"Object.freeze", "Object.assign", "Object.seal", "structuredClone"} and given:
            return ev.infer(model, given[0])
        if name == "Object.values" and given:
            return outside("list", self.items_of(ev, ev.infer(model, given[0])))
        if name in {"Array.from"} and given:
            return outside("list", self.items_of(ev, ev.infer(model, given[0])))
        if name == "Promise.all" and given:
            return ev.infer(model, given[0])
        return None

    def _item(self, ev: "Evaluator", model: Model, node: "Node") -> Values:
        holder, index = node.child_by_field_name("object"), node.child_by_field_name("index")
        if holder is None or index is None:
            return UNKNOWN
        values = ev.infer(model, holder)
        if index.type == "string":
            return ev.taken(values, model.text(index).strip("'\"`"))
        found = [self.items_of(ev, one(value)) if isinstance(value, Outside) else UNKNOWN for value in values]
        return union(found)

    def outside_call(self, ev: "Evaluator", called: Outside, arguments: "list[Node]", model: Model) -> Values:
        """Also what `map` gives."""
        method = called.name.rpartition(".")[2]
        if called.name == "Function" and called.arguments:
            return called.arguments[0]
        if method in {"map", "flatMap"} and called.arguments and arguments:
            return outside("list", ev.called(model, ev.infer(model, arguments[0]), []))
        return super().outside_call(ev, called, arguments, model)

    def narrowed(self, ev: "Evaluator", model: Model, node: "Node", values: Values) -> Values:
        """Of several types those that the conditions around a place leave: `x.kind === "a"`, its `case`, `instanceof`."""
        found, text = values, model.text(node)
        is_assigned: bool | None = None
        for tested, given, holds in _comparisons(ev, node):
            if text not in {model.text(tested), model.text(tested.child_by_field_name("object") or tested)}:
                continue
            if is_assigned is None:
                is_assigned = self._is_assigned(ev, model, node)
            if is_assigned or ev.late:
                return values
            left = [value for value in found if self._fits(ev, model, value, text, tested, given) is not (not holds)]
            found = frozenset(left) or found
        return found

    @staticmethod
    def _is_assigned(ev: "Evaluator", model: Model, node: "Node") -> bool:
        """Whether a name is set anew where it is seen, or a member in the functions around: then what was tested may be gone."""
        root = node
        while (inner := root.child_by_field_name("object")) is not None:
            root = inner
        name, text = model.text(root), _plain(model.text(node))
        around, scope = model.top, model.scope_at(node.start_byte)
        while scope.parent is not None and scope.kind != "class":
            around, scope = scope if scope.kind == "function" else around, scope.parent
        declaring: Scope | None = model.scope_at(node.start_byte)
        while declaring is not None and name not in declaring.symbols:
            declaring = declaring.parent
        wide = (declaring.around("function") if declaring is not None else None) or model.top
        key = ("assigned", model.path, wide.start, wide.end, name)
        return any(
            text == target or (text.startswith(target) and text[len(target)] in ".[")
            for target, at in ev.once(key, partial(_assigned, ev, model, wide, name))
            if target == name or around.start <= at < around.end
        )

    @staticmethod
    def _fits(ev: "Evaluator", model: Model, value: object, text: str, tested: "Node", given: "Node") -> bool | None:
        """Whether a value fulfils a comparison of it or of a member of it; None where that is not known."""
        if not isinstance(value, Instance):
            return None
        if model.text(tested) == text:
            classes = [each for each in ev.infer(model, given) if isinstance(each, Class)]
            if any(value.declaration in _line(ev, each) for each in classes):
                return None if all(value.declaration != each.declaration for each in classes) else True
            return any(each.declaration in _line(ev, value) for each in classes) if classes else None
        holder, name = (tested.child_by_field_name(field) for field in ("object", "property"))
        if holder is None or name is None or model.text(holder) != text or given.type != "string":
            return None
        kinds: set[str] = set()
        for symbol in ev.member(value, model.text(name)).symbols:
            for one_ in symbol.declarations:
                kinds |= _literals(one_.model, one_.type_node) or {""}
        return None if not kinds or "" in kinds else model.text(given).strip("'\"") in kinds

    # Types that are wanted

    def expected_class(self, ev: "Evaluator", model: Model, node: "Node") -> Values:
        """The types of the project that an object as it is written is to be of."""
        return frozenset(value for value in self.expected(ev, model, node) if isinstance(value, Instance))

    def expected(self, ev: "Evaluator", model: Model, node: "Node") -> Values:
        """What the place of an expression wants it to be."""
        return ev.once(("expected", model.path, node.id), partial(self._expected, ev, model, node), UNKNOWN)

    def _expected(self, ev: "Evaluator", model: Model, node: "Node") -> Values:
        """No values only where it is certain that nothing is wanted: a key of an object there is no other's."""
        parent = node.parent
        while parent is not None and _is_chosen_in(parent):
            node, parent = parent, parent.parent  # chains and brackets of hundreds nest as deep
        if parent is None or parent.type in _WANTING_NOTHING:
            return NO_VALUES
        kind = parent.type
        if kind == "arguments" and parent.parent is not None:
            return self._expected_argument(ev, model, parent.parent, parent.named_children.index(node))
        if kind in {"variable_declarator", "public_field_definition", "required_parameter", "optional_parameter"}:
            declared = parent.child_by_field_name("type")
            return self.as_type(ev.denoted(model, declared)) if declared else NO_VALUES
        if kind in {"as_expression", "satisfies_expression"}:
            if parent.named_child_count < 2:
                return self.expected(ev, model, parent)
            return self.as_type(ev.denoted(model, parent.named_children[1]))
        if kind == "pair" and parent.parent is not None:
            key = parent.child_by_field_name("key")
            holder = self.expected(ev, model, parent.parent)
            return ev.taken(holder, model.text(key)) if key is not None and holder else NO_VALUES
        if kind == "assignment_expression":
            left = parent.child_by_field_name("left")
            return ev.infer(model, left) if left is not None and not fills(parent, "left", node) else NO_VALUES
        if kind == "binary_expression":
            return NO_VALUES
        if kind == "array":
            holder = self.expected(ev, model, parent)
            return self.items_of(ev, holder) if holder else NO_VALUES
        if kind in {"return_statement", "arrow_function"}:
            return self._expected_return(ev, model, parent)
        return UNKNOWN

    def _expected_return(self, ev: "Evaluator", model: Model, node: "Node") -> Values:
        scope = model.scope_at(node.start_byte).around("function")
        function = model.nameless_at.get(node.byte_range) or (scope.owner if scope else None)
        if function is None:
            return NO_VALUES
        if function.type_node is not None:
            return self.as_type(ev.denoted(model, function.type_node))
        if function.node.type in _FUNCTIONS:
            wanted = self.expected(ev, model, function.node)
            known = frozenset(value for value in wanted if isinstance(value, Function | Instance))
            return (ev.called(model, known, []) if known else NO_VALUES) | (wanted & UNKNOWN)
        return UNKNOWN if function.scope.owner is not None and function.scope.owner.node.type == "object" else NO_VALUES

    def _expected_argument(self, ev: "Evaluator", model: Model, call: "Node", index: int) -> Values:
        function = call.child_by_field_name("function") or call.child_by_field_name("constructor")
        arguments, types = (call.child_by_field_name(field) for field in ("arguments", "type_arguments"))
        if function is None or arguments is None:
            return NO_VALUES
        if any(part.type == "spread_element" for part in arguments.named_children[:index]):
            return UNKNOWN
        given = [None if part.type in _BY_CONTEXT else part for part in arguments.named_children]
        explicit = ev.type_arguments(model, types) if types is not None else ()
        made_for = Call(model, given, explicit, partial(self.expected, ev, model, call))
        found = []
        for value in ev.infer(model, function):
            if isinstance(value, Unknown):
                return UNKNOWN
            if isinstance(value, Class):
                made = ev.member(value, "constructor").symbols
                seen = Class(value.declaration, value.arguments or explicit)
                found += [
                    self._argument(ev, one_, index, seen, made_for) for symbol in made for one_ in symbol.declarations
                ] or [UNKNOWN]
            elif isinstance(value, Instance):
                some = [self._argument(ev, one_, index, value, made_for) for one_ in _signatures(ev, value)]
                found += some or [UNKNOWN]
            elif isinstance(value, Function):
                symbol = value.declaration.scope.symbols.get(value.declaration.name) if value.declaration.name else None
                every = (
                    [one_ for one_ in symbol.declarations if one_.kind == "function"] if symbol else [value.declaration]
                )
                made_for = replace(made_for, bound=value.bound)
                found += [self._argument(ev, one_, index, value.receiver, made_for) for one_ in every]
            elif isinstance(value, Outside):
                owner, _, method = value.name.rpartition(".")
                if method in _ON_ELEMENTS and value.arguments and index == 0:
                    found.append(one(Outside("Callback", (self.items_of(ev, one(Outside(owner, value.arguments))),))))
                elif value.arguments or explicit:
                    found.append(UNKNOWN)
        return union(found)

    def _argument(
        self, ev: "Evaluator", function: Declaration, index: int, receiver: "Instance | Class | None", call: Call
    ) -> Values:
        parameter = _parameter_at(function.node, index)
        declared = parameter.child_by_field_name("type") if parameter is not None else None
        if declared is None:
            return NO_VALUES
        values = self.as_type(ev.denoted(function.model, declared, ev.call_environment(function, receiver, call)))
        if parameter is not None and parameter.named_children and parameter.named_children[0].type == "rest_pattern":
            return self.items_of(ev, values)
        return values

    def implicit(self, ev: "Evaluator", one_: Declaration) -> Values:
        """Of a function given to another, what that one calls it with."""
        function = one_.scope.owner
        if one_.kind == "field" and one_.node.type == "enum_body":
            return one(Instance(one_.scope.owner)) if one_.scope.owner else UNKNOWN
        if one_.kind != "parameter" or function is None or function.node.type not in _FUNCTIONS | {"method_definition"}:
            return UNKNOWN
        node = one_.node if one_.node.parent is not None and one_.node.parent.type == "formal_parameters" else None
        index = node.parent.named_children.index(node) if node is not None and node.parent is not None else 0
        return self._given(ev, one_.model, function.node, index)

    def _given(self, ev: "Evaluator", model: Model, function: "Node", index: int) -> Values:
        found = []
        if function.type == "method_definition":
            holder = function.parent
            name = function.child_by_field_name("name")
            if holder is None or holder.type != "object" or name is None:
                return UNKNOWN
            wanted = ev.taken(self.expected(ev, model, holder), model.text(name))
        else:
            wanted = self.expected(ev, model, function)
        for value in wanted:
            if isinstance(value, Outside) and value.name == "Callback" and index == 0:
                found.append(value.arguments[0])
            elif isinstance(value, Function):
                made = Call(model, bound=value.bound)
                found.append(self._argument(ev, value.declaration, index, value.receiver, made))
            elif isinstance(value, Instance):
                found += [self._argument(ev, each, index, value, Call(model)) for each in _signatures(ev, value)]
        return union(found) or UNKNOWN

    # Patterns

    def part(self, ev: "Evaluator", one_: Declaration) -> Values:
        """What a name in a pattern stands for."""
        node, parent = one_.name_node, one_.name_node.parent
        if parent is not None and parent.type in {"assignment_pattern", "object_assignment_pattern", "rest_pattern"}:
            if parent.type == "rest_pattern":
                return self._pattern(ev, one_.model, parent.parent) if parent.parent else UNKNOWN
            node, parent = parent, parent.parent
        return self._piece(ev, one_.model, node, parent, one_.name)

    def _piece(self, ev: "Evaluator", model: Model, node: "Node", parent: "Node | None", name: str) -> Values:
        if parent is None:
            return UNKNOWN
        if parent.type == "array_pattern":
            return self._at_index(ev, self._pattern(ev, model, parent), parent.named_children.index(node))
        if parent.type == "pair_pattern":
            key = parent.child_by_field_name("key")
            name = model.text(key) if key is not None else name
            parent = parent.parent
        return ev.taken(self._pattern(ev, model, parent), name) if parent is not None else UNKNOWN

    def _at_index(self, ev: "Evaluator", values: Values, index: int) -> Values:
        return union(
            self.items_of(ev, one(value), index)
            if isinstance(value, Outside) and value.name == "tuple"
            else self.items_of(ev, one(value))
            for value in values
        )

    def _pattern(self, ev: "Evaluator", model: Model, pattern: "Node") -> Values:
        """What a whole pattern is given."""
        parent = pattern.parent
        node = pattern
        if parent is not None and parent.type == "assignment_pattern":
            node, parent = parent, parent.parent
        if parent is None:
            return UNKNOWN
        if parent.type in {"variable_declarator", "required_parameter", "optional_parameter"}:
            declared, value = (parent.child_by_field_name(name) for name in ("type", "value"))
            if declared is not None:
                return self.as_type(ev.denoted(model, declared))
            if parent.type == "variable_declarator":
                return ev.infer(model, value) if value is not None else UNKNOWN
            node, parent = parent, parent.parent
        if parent is not None and parent.type == "for_in_statement":
            right = parent.child_by_field_name("right")
            return self.items_of(ev, ev.infer(model, right)) if right is not None else UNKNOWN
        if parent is not None and parent.type == "formal_parameters" and parent.parent is not None:
            return self._given(ev, model, parent.parent, parent.named_children.index(node))
        if parent is not None and parent.type in {"pair_pattern", "array_pattern"}:
            return self._piece(ev, model, node, parent, "")
        return UNKNOWN

    # Types

    def special_type(self, ev: "Evaluator", model: Model, node: "Node", env: "Environment") -> Values | None:
        """`this`, `typeof`, object and function types, members of types."""
        kind = node.type
        if kind in {"this_type", "this"}:
            return env.get(SELF) or self._this(ev, model, node, above=False)
        if kind == "predefined_type":
            name = model.text(node)
            return (
                UNKNOWN
                if name in {"any", "unknown", "object"}
                else outside("None" if name in {"void", "never", "undefined"} else name)
            )
        if kind == "literal_type":
            inner = node.named_children[0] if node.named_children else None
            return outside(self.literals.get(inner.type, "None")) if inner else outside("None")
        if kind in {"object_type", "function_type", "constructor_type"}:
            made = model.nameless_at.get((node.start_byte, node.end_byte))
            if made is None:
                return UNKNOWN
            if kind == "object_type":
                return self._object_type(ev, made, env)
            return one(
                Function(
                    made,
                    None,
                    tuple((each.key, env[each.key]) for each in _type_parameters(made.scope) if each.key in env),
                )
            )
        if kind == "type_query" and node.named_children:
            return frozenset(Outside("typeof", (one(value),)) for value in ev.infer(model, node.named_children[0]))
        if kind == "lookup_type" and node.named_child_count == 2:
            return self._looked_up(ev, model, node, env)
        if kind == "conditional_type":
            parts = map(node.child_by_field_name, ("consequence", "alternative"))
            every = {ev.denoted(model, part, env) for part in parts if part is not None}
            known = [
                values for values in every if any(isinstance(value, Class | Instance | Function) for value in values)
            ]
            # Which of two it is is not looked for: a member of either is possible, not certain.
            return (known[0] if len(known) == 1 else NO_VALUES) | UNKNOWN
        if kind == "tuple_type":
            return outside("tuple", *(self.as_type(ev.denoted(model, part, env)) for part in node.named_children))
        if kind in {"member_expression", "call_expression"}:
            return ev.infer(model, node)
        if kind == "generic_type":
            return self._generic(ev, model, node, env)
        return None

    def _object_type(self, ev: "Evaluator", made: Declaration, env: "Environment") -> Values:
        """With what the type parameters around it stand for; of a type that maps another's members, that one."""
        source = _mapped_type(made.model, made.node)
        if source is not None:
            return ev.denoted(made.model, source, env)
        around = self.parameters(ev, made)
        if all(symbol.key not in env for symbol in around):
            return one(Class(made))
        return one(Class(made, tuple(ev.denoted_by(Meaning(frozenset({each})), env) for each in around)))

    def padded(self, ev: "Evaluator", one: Declaration, arguments: tuple[Values, ...]) -> tuple[Values, ...]:
        """With the defaults of those that are left out."""
        return ev.once(("padded", one.key, arguments), partial(self._padded, ev, one, arguments), arguments)

    def _padded(self, ev: "Evaluator", one: Declaration, arguments: tuple[Values, ...]) -> tuple[Values, ...]:
        parameters = self.parameters(ev, one)
        found = list(arguments)
        for symbol in parameters[len(arguments) :]:
            default = symbol.declarations[0].node.child_by_field_name("value")
            if default is None:
                break
            env: Environment = {each.key: values for each, values in zip(parameters, found, strict=False)}
            found.append(self.as_type(ev.denoted(one.model, default, env)))
        return tuple(found)

    def _looked_up(self, ev: "Evaluator", model: Model, node: "Node", env: "Environment") -> Values:
        """`T["name"]`, `T[number]`; of `T[K]` nothing is known."""
        holder, key = node.named_children
        values = self.as_type(ev.denoted(model, holder, env))
        if key.type == "literal_type":
            return ev.taken(values, model.text(key).strip("'\"`"))
        return self.items_of(ev, values) if model.text(key) == "number" else UNKNOWN

    def parameters(self, ev: "Evaluator", one: Declaration) -> Sequence[BoundSymbol]:
        """Its own; of an object's type, which has none, those around it."""
        return list(_type_parameters(one.scope)) if one.node.type == "object_type" else super().parameters(ev, one)

    def call_of_instance(self, ev: "Evaluator", model: Model, value: Instance, given: "list[Node]") -> Values:
        """What the signatures in its type give."""
        call = Call(model, given)
        return union(ev.returns(each, value, call) for each in _signatures(ev, value)) or UNKNOWN

    def _generic(self, ev: "Evaluator", model: Model, node: "Node", env: "Environment") -> Values | None:
        name, given = node.child_by_field_name("name"), node.child_by_field_name("type_arguments")
        if name is None or given is None or not given.named_children:
            return UNKNOWN
        written = model.text(name)
        if written in {"ReturnType", "InstanceType"}:
            inner = self.as_type(ev.denoted(model, given.named_children[0], env))
            return ev.called(model, inner, [])
        if written in self.transparent and ev.lookup(model, written, name) is None:
            return ev.denoted(model, given.named_children[0], env)
        return None

    def as_type(self, values: Values) -> Values:
        """Objects of the classes; of `typeof x` what `x` is."""
        found = []
        for value in super().as_type(values):
            if isinstance(value, Outside) and value.name == "typeof":
                found += [one(inner) for inner in value.arguments[0]]
            else:
                found.append(one(value))
        return union(found)

    def is_property(self, one_: Declaration) -> bool:
        """Whether it is a getter or setter."""
        return any(child.type in {"get", "set"} for child in one_.node.children[:3])

    def returned(self, ev: "Evaluator", one_: Declaration) -> Values:
        """What its `return` statements or its one expression give."""
        body = one_.node.child_by_field_name("body")
        if body is None:
            return UNKNOWN
        if body.type != "statement_block":
            return ev.infer(one_.model, body)
        given = [node.named_children[0] for node in _returns(body)[:6] if node.named_children]
        return union(ev.infer(one_.model, part) for part in given) if given else outside("None")


class TypeScriptX(TypeScript):
    """TypeScript with markup."""

    name: ClassVar[str] = "tsx"


class JavaScript(TypeScript):
    """JavaScript."""

    name: ClassVar[str] = "javascript"
    queries: ClassVar[Sequence[str]] = ("javascript", "javascript_own")


def _declared_this(function: "Node") -> "Node | None":
    """The type of a function's parameter `this`."""
    parameters = function.child_by_field_name("parameters")
    first = parameters.named_children[0] if parameters is not None and parameters.named_children else None
    is_this = first is not None and (first.text or b"").startswith(b"this")
    return first.child_by_field_name("type") if first is not None and is_this else None


def _augments(declaration: "Node") -> bool:
    """Whether it is added to another module: `declare module "other" { … }`."""
    block = (
        declaration.parent.parent
        if declaration.parent and declaration.parent.type == "export_statement"
        else declaration.parent
    )
    around = block.parent if block is not None else None
    name = around.child_by_field_name("name") if around is not None and around.type == "module" else None
    return name is not None and name.type == "string"


def _add(model: Model, table: dict[str, BoundSymbol], one_: Declaration) -> None:
    symbol = table.setdefault(one_.name, BoundSymbol(one_.name, model.top))
    symbol.declarations.append(one_)
    if one_.name not in {"default", "export="}:
        model.by_name_byte[one_.name_node.start_byte] = symbol


def _signatures(ev: "Evaluator", value: Instance) -> Iterator[Declaration]:
    """How an object may be called, or made something of."""
    for base in ev.line_of_descent(value):
        if isinstance(base, Class):
            node = base.declaration.node
            for child in (node.child_by_field_name("body") or node).named_children:
                if child.type in {"call_signature", "construct_signature"}:
                    yield base.declaration.model.nameless_at[child.byte_range]


def _line(ev: "Evaluator", value: Class | Instance) -> list[Declaration]:
    """A class and all of the project that it is built on."""
    return [base.declaration for base in ev.line_of_descent(value) if isinstance(base, Class)]


def _inner(node: "Node | None") -> "Node | None":
    """What is in brackets."""
    while node is not None and node.type == "parenthesized_expression" and node.named_children:
        node = node.named_children[0]
    return node


def _plain(text: str) -> str:
    """A chain of members without what says that a part is there."""
    return re.sub(r"[?!\s]", "", text)


def _assigned(ev: "Evaluator", model: Model, scope: Scope, name: str) -> frozenset[tuple[str, int]]:
    """What is set anew in a scope of a name and the members behind it, each with its place."""
    found = set()
    word = re.compile(rb"(?<![\w$])" + re.escape(name.encode()) + rb"(?![\w$])")
    for match in word.finditer(model.parsed.text, scope.start, scope.end):
        node = None if ev.late else model.leaf(match.start())
        if node is None or node.byte_range != match.span():
            continue
        parent = node.parent
        while parent is not None and (
            parent.type in {"parenthesized_expression", "non_null_expression"} or fills(parent, "object", node)
        ):
            node, parent = parent, parent.parent
        target = node
        while parent is not None and parent.type in _PATTERNS and not _is_beside(parent, node):
            node, parent = parent, parent.parent
        if parent is None or (parent.type == "for_in_statement" and parent.child_by_field_name("kind") is not None):
            continue
        if parent.type == "update_expression" or (parent.type in _SETTING and fills(parent, "left", node)):
            found.add((_plain(model.text(target)).strip("()"), match.start()))
    return frozenset(found)


def _is_chosen_in(parent: "Node") -> bool:
    """Whether of a part of an expression is wanted what is wanted of the whole."""
    operator = parent.child_by_field_name("operator") if parent.type == "binary_expression" else None
    return parent.type in _PASSING_ON or (operator is not None and operator.type in _CHOOSING)


def _is_beside(pattern: "Node", node: "Node") -> bool:
    """Whether a part of a pattern is nothing that is set: a key, what is taken where nothing is there."""
    return fills(pattern, "key", node) or fills(pattern, "right", node)


Comparison: TypeAlias = "tuple[Node, Node, bool]"
"""What is compared, with what, and whether they are the same."""


def _comparisons(ev: "Evaluator", node: "Node") -> Iterator[Comparison]:
    """The comparisons whose outcome is known where something stands."""
    child, parent = node, node.parent
    while parent is not None and not ev.late:
        if parent.type == "switch_case" and not fills(parent, "value", child):
            yield from _case(parent)
        elif parent.type in {"if_statement", "ternary_expression"} and not fills(parent, "condition", child):
            yield from _parts(parent.child_by_field_name("condition"), holds=fills(parent, "consequence", child))
        elif parent.type == "binary_expression" and fills(parent, "right", child):
            operator = parent.child_by_field_name("operator")
            if operator is not None and operator.type in {"&&", "||"}:
                yield from _parts(parent.child_by_field_name("left"), holds=operator.type == "&&")
        elif parent.type == "statement_block":
            for before in parent.named_children:
                if before.start_byte >= child.start_byte:
                    break
                body, other = map(before.child_by_field_name, ("consequence", "alternative"))
                if before.type == "if_statement" and other is None and _leaves(body):
                    yield from _parts(before.child_by_field_name("condition"), holds=False)
        child, parent = parent, parent.parent


def _parts(condition: "Node | None", *, holds: bool) -> Iterator[Comparison]:
    """The single comparisons of a condition that are known where the whole is."""
    node = _inner(condition)
    operator = node.child_by_field_name("operator") if node is not None else None
    if node is None or operator is None:
        return
    if node.type == "unary_expression" and operator.type == "!":
        yield from _parts(node.child_by_field_name("argument"), holds=not holds)
    left, right = (node.child_by_field_name(field) for field in ("left", "right"))
    if left is None or right is None:
        return
    if operator.type == ("&&" if holds else "||"):
        for part in (left, right):
            yield from _parts(part, holds=holds)
    elif operator.type in {"===", "==", "instanceof"}:
        yield left, right, holds
    elif operator.type in {"!==", "!="}:
        yield left, right, not holds


def _case(case: "Node") -> Iterator[Comparison]:
    """What a case says of what is switched on, unless the one before may go on in it."""
    before = case.prev_named_sibling
    switch = case.parent.parent if case.parent is not None else None
    tested = _inner(switch.child_by_field_name("value")) if switch is not None else None
    label = case.child_by_field_name("value")
    if tested is not None and label is not None and (before is None or _leaves(before)):
        yield tested, label, True


def _leaves(node: "Node | None") -> bool:
    """Whether what is behind a statement is not reached from it."""
    while node is not None and node.type in {"statement_block", "switch_case"} and node.named_children:
        node = node.named_children[-1]
    return node is not None and node.type in {
        "return_statement",
        "throw_statement",
        "continue_statement",
        "break_statement",
    }


def _literals(model: Model, node: "Node | None") -> set[str]:
    """The texts that a type allows; none where it allows more."""
    found: set[str] = set()
    pending = [] if node is None else [node]
    while pending:
        each = pending.pop()
        if each.type in {"type_annotation", "parenthesized_type"}:
            pending.append(each.named_children[0])
        elif each.type == "union_type":
            pending += each.named_children  # a union of hundreds nests as deep
        elif each.type == "literal_type":
            found.add(model.text(each).strip("'\""))
        else:
            return set()
    return found


def _type_parameters(scope: Scope | None) -> Iterator[BoundSymbol]:
    """Those that are seen in a scope."""
    while scope is not None:
        yield from (symbol for symbol in scope.symbols.values() if symbol.declarations[0].kind == "typeparam")
        scope = scope.parent


def _mapped_type(model: Model, node: "Node") -> "Node | None":
    """The type whose members `{[K in keyof T]: T[K]}` has."""
    signature = node.named_children[-1] if node.named_children else node
    clause = signature.named_children[0] if signature.type == "index_signature" else node
    keys, name = (clause.child_by_field_name(field) for field in ("type", "name"))
    if keys is None or name is None or keys.type != "index_type_query":
        return None
    source = keys.named_children[0]
    same = f"{model.text(source)}[{model.text(name)}]"
    return source if model.text(signature).rstrip("; ").endswith(same) else None


def _is_short(one_: Declaration) -> bool:
    return one_.name_node.type == "shorthand_property_identifier"


def _required(model: Model, name: "Node") -> str | None:
    """The module of `const {name} = require("module")`."""
    pattern = name.parent
    if pattern is not None and pattern.type == "pair_pattern":
        pattern = pattern.parent
    declarator = pattern.parent if pattern is not None and pattern.type == "object_pattern" else None
    value = declarator.child_by_field_name("value") if declarator and declarator.type == "variable_declarator" else None
    if value is None or value.type != "call_expression" or not model.text(value).startswith("require("):
        return None
    return model.text(value)[len("require(") : -1].strip("'\"` ")


def _statement(node: "Node | None") -> "Node | None":
    while node is not None and node.type not in {"import_statement", "export_statement"}:
        node = node.parent
    return node


def _source(model: Model, statement: "Node") -> str | None:
    source = statement.child_by_field_name("source")
    if source is None:
        clause = next((child for child in statement.named_children if child.type == "import_require_clause"), None)
        source = clause.child_by_field_name("source") if clause else None
    return model.text(source).strip("'\"`") if source is not None else None


def _file(ev: "Evaluator", path: str) -> str | None:
    swapped = _SWAPPED.sub(r".\1ts", path)
    for candidate in (path, swapped, f"{swapped}x", *(path + ending for ending in _ENDINGS)):
        if candidate and "." in candidate.rpartition("/")[2] and ev.files.is_file(candidate):
            return candidate
    for ending in _ENDINGS:
        if ev.files.is_file(f"{path}/index{ending}" if path else f"index{ending}"):
            return f"{path}/index{ending}" if path else f"index{ending}"
    return None


def _mapped(ev: "Evaluator", path: str, source: str) -> Iterator[str]:
    """Where a module may be that is no relative path: by a `tsconfig.json` around the file, in a package of the project."""
    folder = path.rpartition("/")[0]
    while True:
        for name in ("tsconfig.json", "jsconfig.json", "tsconfig.base.json"):
            yield from _by_config(ev, folder, name, source)
        # A package imports itself by its name, whether or not its description is listed.
        where = f"{folder}/" if folder else ""
        beside = (f"{where}package.json", f"{where}packages/{source.partition('/')[0]}/package.json")
        own = ev.once(("package", *beside), partial(_packages, ev, beside))
        for name, package in own.items():
            if source == name or source.startswith(f"{name}/"):
                yield from _in_package(package, source[len(name) + 1 :])
        if not folder:
            break
        folder = folder.rpartition("/")[0]
    packages = ev.once(("packages",), partial(_packages, ev, ev.files.named("package.json")[:400]))
    name = source
    while name:
        if name in packages:
            rest = source[len(name) + 1 :]
            yield from _in_package(packages[name], rest)
            break
        name = name.rpartition("/")[0]


def _may_export(ev: "Evaluator", path: str, name: str) -> bool:
    """Whether a file may export a name, as far as its words tell: most of those that a barrel gathers need no tree then."""
    text = ev.files.text(path)
    return name in text or ev.once(("passes on", path), lambda: _PASSES_ON.search(text) is not None)


def _by_config(ev: "Evaluator", folder: str, name: str, source: str) -> Iterator[str]:
    config = ev.once(("config", folder, name), partial(_json, ev, f"{folder}/{name}" if folder else name))
    options = config.get("compilerOptions")
    if not isinstance(options, dict):
        return
    base = options.get("baseUrl")
    root = joined(folder, base) if isinstance(base, str) else folder
    paths = options.get("paths")
    for pattern, targets in paths.items() if isinstance(paths, dict) else ():
        head, star, tail = str(pattern).partition("*")
        if not (source == pattern or (star and source.startswith(head) and source.endswith(tail))):
            continue
        middle = source[len(head) : len(source) - len(tail)] if star else ""
        for target in targets if isinstance(targets, list) else ():
            yield joined(root, str(target).replace("*", middle))
    if isinstance(base, str):
        yield joined(root, source)


def _json(ev: "Evaluator", path: str) -> dict[str, object]:
    try:
        data = json.loads(_COMMENT.sub(lambda found: found[1] or "", ev.files.text(path)) or "{}")
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _packages(ev: "Evaluator", paths: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Folder and main file of the project's own packages, by name."""
    found: dict[str, tuple[str, str]] = {}
    for path in paths:
        data = _json(ev, path)
        name = data.get("name")
        if isinstance(name, str) and name:
            main = data.get("source") or data.get("main") or ""
            found.setdefault(name, (path.rpartition("/")[0], str(main)))
    return found


def _in_package(package: tuple[str, str], rest: str) -> Iterator[str]:
    folder, main = package
    if rest:
        yield from (joined(folder, part, rest) for part in ("src", "", "lib"))
        return
    yield from (joined(folder, part) for part in ("src/index", "src", "index", main, "lib/index") if part)


def _parameter_at(function: "Node", index: int) -> "Node | None":
    parameters = function.child_by_field_name("parameters")
    if parameters is None:
        return None
    every = [node for node in parameters.named_children if node.type.endswith("_parameter")]
    if every and every[0].text is not None and every[0].text.startswith(b"this"):
        every = every[1:]
    if index < len(every):
        return every[index]
    last = every[-1] if every else None
    return last if last is not None and last.named_children[0].type == "rest_pattern" else None


def _returns(body: "Node") -> "list[Node]":
    found, pending = [], [body]
    while pending:
        node = pending.pop()
        if node.type == "return_statement":
            found.append(node)
        elif node.type not in _FUNCTIONS and not node.type.endswith(
            ("function_declaration", "class_body", "method_definition")
        ):
            pending += reversed(node.named_children)
    return found
