"""Rust: modules by `mod` and `use`, members in any `impl` block of the crate, traits as what a type is built on."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from code_intel_server.codebase.resolution.evaluation import NO_MEANING, NOT_KNOWN, Meaning
from code_intel_server.codebase.resolution.language import LanguageRules
from code_intel_server.codebase.resolution.model import BoundSymbol, Declaration, Model, Scope, fills
from code_intel_server.codebase.resolution.values import (
    UNKNOWN,
    Class,
    Function,
    Instance,
    Module,
    Outside,
    Values,
    one,
    outside,
    union,
)
from code_intel_server.common.word_set import word_set

if TYPE_CHECKING:
    from tree_sitter import Node

    from code_intel_server.codebase.resolution.evaluation import Environment, Evaluator

_LISTS = (
    "list Option Result Vec VecDeque HashSet BTreeSet Iter IntoIter Iterator IntoIterator Peekable Range RangeInclusive"
    " Take Rev Chain Skip Fuse Enumerate Box Rc Arc"
)
_TRANSPARENT = (
    "Box Rc Arc Cow Pin Ref RefMut RefCell Cell Mutex RwLock MutexGuard RwLockReadGuard RwLockWriteGuard ManuallyDrop"
    " PhantomData NonNull LazyLock OnceLock OnceCell Lazy"
)
_GIVING = (
    "unwrap expect unwrap_or unwrap_or_default unwrap_or_else unwrap_unchecked next next_back get get_mut first last pop"
    " pop_front pop_back nth find peek remove min max insert get_or_insert_with"
)
_KEEPING = (
    "as_ref as_mut as_deref as_deref_mut iter iter_mut into_iter cloned copied ok ok_or ok_or_else filter take rev skip"
    " by_ref clone map_err drain peekable chain step_by take_while skip_while as_slice to_vec collect or or_else and flatten"
    " with_context context inspect get_unchecked"
)
_PLAIN = "str String bool char u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 unit"
_SAME_OBJECT = word_set(
    "clone borrow borrow_mut as_ref as_mut lock read write to_owned into deref deref_mut unwrap expect by_ref"
)
_HEADER = r"^\s*(unsafe )?impl\b"
_FOR = re.compile(r"\bfor\s+(?:&\s*(?:'\w+\s*)?(?:mut\s+)?|dyn\s+)*(?:\w+::)*(\w+)")
_OF = re.compile(r"\bimpl(?:\s*<(?:[^<>]|<[^<>]*>)*>)?\s*(?:\w+::)*(\w+)")
_PACKAGE = re.compile(r"^\[package\][^\[]*?^name\s*=\s*\"([^\"]+)\"", re.MULTILINE | re.DOTALL)
_HOLDING = frozenset({"Some", "Ok"})


class Rust(LanguageRules):
    """Rust."""

    name: ClassVar[str] = "rust"
    queries: ClassVar[Sequence[str]] = ("rust",)
    names: ClassVar[frozenset[str]] = frozenset({"identifier", "type_identifier"})
    members: ClassVar[Mapping[str, tuple[str, str]]] = {
        "field_expression": ("value", "field"),
        "scoped_identifier": ("path", "name"),
        "scoped_type_identifier": ("path", "name"),
    }
    calls: ClassVar[Mapping[str, str]] = {"call_expression": "function"}
    same: ClassVar[frozenset[str]] = frozenset(
        {"parenthesized_expression", "await_expression", "unsafe_block", "bracketed_type"}
    )
    either: ClassVar[Mapping[str, Sequence[str]]] = {
        "if_expression": ("consequence",),
        "generic_function": ("function",),
    }
    literals: ClassVar[Mapping[str, str]] = {
        "string_literal": "str",
        "raw_string_literal": "str",
        "integer_literal": "usize",
        "float_literal": "f64",
        "boolean_literal": "bool",
        "char_literal": "char",
        "binary_expression": "unit",
        "unit_expression": "unit",
        "unit_type": "unit",
        "never_type": "unit",
    }
    lists: ClassVar[frozenset[str]] = frozenset({"array_expression"})
    type_members: ClassVar[Mapping[str, tuple[str, str]]] = {"scoped_type_identifier": ("path", "name")}
    type_arguments: ClassVar[Mapping[str, tuple[str, str]]] = {"generic_type": ("type", "type_arguments")}
    type_same: ClassVar[frozenset[str]] = word_set(
        "reference_type pointer_type abstract_type dynamic_type bounded_type qualified_type removed_trait_bound"
    )
    type_parents: ClassVar[frozenset[str]] = frozenset({"lifetime", "mutable_specifier"})
    transparent: ClassVar[frozenset[str]] = frozenset(_TRANSPARENT.split())
    elements: ClassVar[Mapping[str, int]] = {**dict.fromkeys(_LISTS.split(), 0), "HashMap": 1, "BTreeMap": 1}
    giving: ClassVar[frozenset[str]] = frozenset(_GIVING.split())
    keeping: ClassVar[frozenset[str]] = frozenset(_KEEPING.split())
    plain: ClassVar[frozenset[str]] = frozenset(_PLAIN.split())
    modules_apart: ClassVar[bool] = True

    # Declarations

    def packages(self, ev: "Evaluator") -> Mapping[str, str]:
        """The crates."""
        return ev.once(("crates",), partial(_crates, ev))

    def spelled(self, text: str) -> str:
        """Without the mark of a raw name."""
        return text.removeprefix("r#")

    def declare(self, model: Model, one_: Declaration, scope: Scope) -> None:
        """What is in an `impl` block is a member of its type."""
        if one_.kind == "wide":
            (scope.around("namespace", "module") or model.top).wide.append(one_)
            return
        if one_.kind == "itself":
            around = one_.name_node.parent.parent if one_.name_node.parent is not None else None
            path = around.child_by_field_name("path") if around is not None else None
            one_.name, one_.kind = (model.text(path).rpartition("::")[2] if path is not None else "self"), "import"
        if one_.kind == "part" and _is_constant(one_):
            return
        symbol = model.bind(one_, scope)
        owner = scope.owner
        if scope.kind == "class" and owner is not None and owner.node.type == "impl_item" and one_.kind != "typeparam":
            declared = owner.node.child_by_field_name("type")
            model.apart.append((_last_name(model, declared) if declared is not None else "", symbol))

    def bases(self, one_: Declaration) -> "list[Node]":
        """What a trait wants of its types."""
        bounds = one_.node.child_by_field_name("bounds") if one_.node.type == "trait_item" else None
        return [node for node in bounds.named_children if node.type != "lifetime"] if bounds is not None else []

    def further_bases(self, ev: "Evaluator", one_: Declaration) -> Values:
        """The traits that are implemented for it."""
        found = []
        for model, impl in _impls(ev, one_):
            trait = impl.child_by_field_name("trait")
            if trait is not None:
                found.append(frozenset(value for value in ev.denoted(model, trait) if isinstance(value, Class)))
        return union(found)

    def further_member(self, ev: "Evaluator", one_: Declaration, name: str) -> Sequence[BoundSymbol]:
        """What its `impl` blocks have, its own before those of traits."""
        own: list[BoundSymbol] = []
        by_trait: list[BoundSymbol] = []
        for model, impl in _impls(ev, one_):
            made = model.nameless_at.get(impl.byte_range)
            symbol = made.inner.symbols.get(name) if made is not None and made.inner is not None else None
            if symbol is None or symbol.declarations[0].kind == "typeparam":
                continue
            for each in symbol.declarations:
                each.member_of = one_
            (by_trait if impl.child_by_field_name("trait") is not None else own).append(symbol)
        return own or by_trait

    def root(self, ev: "Evaluator", symbol: BoundSymbol) -> BoundSymbol:
        """Of a trait's member that a type implements, the trait's."""
        scope = symbol.scope
        impl = scope.owner.node if scope.kind == "class" and scope.owner is not None else None
        trait = impl.child_by_field_name("trait") if impl is not None and impl.type == "impl_item" else None
        if trait is None:
            return symbol
        for value in ev.denoted(symbol.declarations[0].model, trait):
            inner = value.declaration.inner if isinstance(value, Class) else None
            if inner is not None and symbol.name in inner.symbols:
                return inner.symbols[symbol.name]
        return symbol

    def parameters(self, ev: "Evaluator", one_: Declaration) -> Sequence[BoundSymbol]:
        """Those in angle brackets."""
        return [
            symbol for symbol in super().parameters(ev, one_) if symbol.declarations[0].node.type == "type_parameter"
        ]

    # Modules

    def imported(self, ev: "Evaluator", one_: Declaration) -> Meaning:
        """A module's file, or what a path leads to."""
        model, node = one_.model, one_.name_node
        if one_.node.type == "mod_item":
            path = _module_file(ev, model.path, one_.name)
            return Meaning(modules=frozenset({path})) if path else NOT_KNOWN
        if node.parent is not None and node.parent.type == "use_as_clause":
            node = node.parent.child_by_field_name("path") or node
        return self._path(ev, model, _segments(model, node), node)

    def _path(self, ev: "Evaluator", model: Model, segments: Sequence[str], node: "Node") -> Meaning:
        """What a path of names leads to, seen from a place."""
        if not segments:
            return NOT_KNOWN
        here = _around(model, node.start_byte)
        first, rest = segments[0], list(segments[1:])
        if first == "crate":
            found = one(Module(_crate(ev, model.path)))
        elif first in {"self", "super"}:
            found = here if first == "self" else _parent(ev, here)
            while rest[:1] == ["super"]:
                found, rest = _parent(ev, found), rest[1:]
        else:
            found = self._first(ev, model, here, first, node)
        meant = _meaning(found)
        for name in rest:
            meant = ev.members(ev.values(meant), name)
        return meant

    def _first(self, ev: "Evaluator", model: Model, here: Values, name: str, node: "Node") -> Values:
        crate = self.packages(ev).get(name)
        for value in here:
            inner = value.declaration.inner if isinstance(value, Class) else model.top
            symbol = inner.symbols.get(name) if inner is not None else None
            if symbol is not None and symbol.declarations[0].name_node.start_byte != node.start_byte:
                return ev.values(ev.follow(symbol))
        if crate is not None:
            return one(Module(crate))
        return outside(name)

    def wide(self, ev: "Evaluator", one_: Declaration, name: str) -> Meaning:
        """What `use x::*` gives a name."""
        found = self._path(ev, one_.model, _segments(one_.model, one_.name_node), one_.name_node)
        if found.outside or found.unknown:
            return NO_MEANING
        meant = ev.members(ev.values(found), name)
        return meant if meant.symbols or meant.modules else NO_MEANING

    def beyond(self, ev: "Evaluator", model: Model, name: str) -> Meaning | None:
        """A crate of the project, a macro of anywhere in it."""
        crate = self.packages(ev).get(name)
        if crate is not None:
            return Meaning(modules=frozenset({crate}))
        for path in ev.files.holding(r"macro_rules!\s*\w"):
            other = ev.files.model(path)
            symbol = other.top.symbols.get(name) if other is not None else None
            if symbol is not None and symbol.declarations[0].kind == "macro":
                return Meaning(frozenset({symbol}))
        return None

    # What a name means in other places

    def at(self, ev: "Evaluator", model: Model, node: "Node") -> Meaning | None:
        """Fields in literals and patterns, parts of a `use`, names in what is given to a macro."""
        parent = node.parent
        if parent is None:
            return NOT_KNOWN
        if parent.type == "token_tree":
            return self._in_macro(ev, model, parent, node)
        if parent.type == "field_expression" and fills(parent, "field", node):
            value = parent.child_by_field_name("value")
            found = ev.members(ev.infer(model, value), model.text(node)) if value is not None else NOT_KNOWN
            return _only(found, functions=parent.parent is not None and fills(parent.parent, "function", parent))
        if parent.type in {"field_initializer", "shorthand_field_initializer"}:
            made = parent.parent.parent if parent.parent is not None else None
            declared = made.child_by_field_name("name") if made is not None else None
            if declared is None or (parent.type == "field_initializer" and not fills(parent, "field", node)):
                return None
            found = _only(ev.members(self._patterned(ev, model, declared), model.text(node)), functions=False)
            return found if parent.type == "field_initializer" else Meaning.of([found, ev.name(model, node)])
        if parent.type == "field_pattern" and fills(parent, "name", node):
            return self._field(ev, model, parent, model.text(node))
        above: Node | None = parent
        while above is not None and above.type in {
            "scoped_identifier",
            "scoped_use_list",
            "use_list",
            "use_as_clause",
            "use_wildcard",
        }:
            above = above.parent
        if above is not None and above.type == "use_declaration":
            return self._path(ev, model, _segments(model, node), node)
        if parent.type == "lifetime":
            return Meaning(outside="lifetime")
        return None

    def also(self, ev: "Evaluator", model: Model, node: "Node") -> Meaning | None:
        """A bare name in a pattern of a struct is a field, too."""
        if node.type != "shorthand_field_identifier" or node.parent is None:
            return None
        own = model.by_name_byte[node.start_byte]
        return Meaning.of([ev.follow(own), self._field(ev, model, node.parent, own.name)])

    def _field(self, ev: "Evaluator", model: Model, pattern: "Node", name: str) -> Meaning:
        declared = pattern.parent.child_by_field_name("type") if pattern.parent is not None else None
        if declared is None:
            return NOT_KNOWN
        return _only(ev.members(self._patterned(ev, model, declared), name), functions=False)

    def _patterned(self, ev: "Evaluator", model: Model, declared: "Node") -> Values:
        """A struct or variant, as a pattern or literal names it."""
        if declared.type in {"scoped_type_identifier", "scoped_identifier"}:
            holder, name = (declared.child_by_field_name(part) for part in ("path", "name"))
            if holder is not None and name is not None:
                meant = ev.members(ev.infer(model, holder), model.text(name))
                variants = [one_ for symbol in meant.symbols for one_ in symbol.declarations if one_.kind == "variant"]
                if variants:
                    return frozenset(Class(one_) for one_ in variants)
        return ev.denoted(model, declared)

    def _in_macro(self, ev: "Evaluator", model: Model, tree: "Node", node: "Node") -> Meaning | None:
        """By the marks before a name: `a.b` and `a::b`, where `a` is one name or told in the same way."""
        parts = tree.children
        place = [part.start_byte for part in parts].index(node.start_byte)
        behind = parts[place + 1] if place + 1 < len(parts) else None
        if place < 2 or parts[place - 1].type not in {".", "::"}:
            return NOT_KNOWN if behind is not None and behind.type == ":" else None
        holder = parts[place - 2]
        if place > 2 and parts[place - 3].type in {".", "::"}:
            before = self._in_macro(ev, model, tree, holder)
            values = ev.values(before) if before is not None else UNKNOWN
        elif holder.type in {"identifier", "self", "crate", "super"}:
            values = ev.infer(model, holder)
        else:
            return NOT_KNOWN
        called = behind is not None and behind.type == "token_tree" and (behind.text or b"").startswith(b"(")
        found = ev.members(values, model.text(node))
        return _only(found, functions=called) if parts[place - 1].type == "." else found

    # Expressions

    def special(self, ev: "Evaluator", model: Model, node: "Node") -> Values | None:
        """`self`, paths, literals of structs, casts, blocks, `?`, closures, macros."""
        kind = node.type
        if kind == "self":
            owner = model.scope_at(node.start_byte).around("function")
            if owner is None or model.scope_at(node.start_byte).around("class") is None:
                return _around(model, node.start_byte)
            return self.as_type(self._self(ev, model, node))
        if kind in {"crate", "super"}:
            here = _around(model, node.start_byte)
            return one(Module(_crate(ev, model.path))) if kind == "crate" else _parent(ev, here)
        if kind in {"identifier", "type_identifier"} and node.text == b"Self":
            return self._self(ev, model, node)
        if kind == "struct_expression":
            declared = node.child_by_field_name("name")
            return self.as_type(ev.denoted(model, declared)) if declared is not None else UNKNOWN
        if kind in {"reference_expression", "type_cast_expression", "unary_expression", "index_expression"}:
            return self._operand(ev, model, node)
        if kind == "try_expression":
            return self.items_of(ev, ev.infer(model, node.named_children[0])) if node.named_children else UNKNOWN
        if kind == "block":
            last = node.named_children[-1] if node.named_children else None
            return (
                ev.infer(model, last)
                if last is not None and not last.type.endswith(("statement", "declaration", "item"))
                else outside("unit")
            )
        if kind == "match_expression":
            body = node.child_by_field_name("body")
            arms = [arm.child_by_field_name("value") for arm in body.named_children[:3]] if body is not None else []
            return union(ev.infer(model, arm) for arm in arms if arm is not None)
        if kind == "call_expression":
            return self._special_call(ev, model, node)
        return self._literal(ev, model, node)

    @staticmethod
    def _literal(ev: "Evaluator", model: Model, node: "Node") -> Values | None:
        kind = node.type
        if kind == "closure_expression":
            made = model.nameless_at.get(node.byte_range)
            return one(Function(made)) if made is not None else UNKNOWN
        if kind == "tuple_expression":
            return outside("tuple", *(ev.infer(model, part) for part in node.named_children[:8]))
        if kind in {"generic_type", "bracketed_type", "reference_type", "primitive_type"}:
            return ev.denoted(model, node)
        return None

    def _operand(self, ev: "Evaluator", model: Model, node: "Node") -> Values:
        if node.type == "type_cast_expression":
            declared = node.child_by_field_name("type")
            return self.as_type(ev.denoted(model, declared)) if declared is not None else UNKNOWN
        inner = node.child_by_field_name("value") or next(
            (child for child in node.named_children if child.type != "mutable_specifier"), None
        )
        values = ev.infer(model, inner) if inner is not None else UNKNOWN
        return self.items_of(ev, values) if node.type == "index_expression" else values

    def _self(self, ev: "Evaluator", model: Model, node: "Node") -> Values:
        scope = model.scope_at(node.start_byte).around("class")
        owner = scope.owner if scope is not None else None
        if owner is None:
            return UNKNOWN
        declared = owner.node.child_by_field_name("type") if owner.node.type == "impl_item" else None
        return ev.denoted(model, declared) if declared is not None else one(Class(owner))

    def _special_call(self, ev: "Evaluator", model: Model, node: "Node") -> Values | None:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or arguments is None:
            return UNKNOWN
        if model.text(function) in _HOLDING and arguments.named_children:
            return outside("Option", ev.infer(model, arguments.named_children[0]))
        if function.type == "field_expression":
            holder, name = function.child_by_field_name("value"), function.child_by_field_name("field")
            if holder is not None and name is not None and model.text(name) in _SAME_OBJECT:
                values = ev.infer(model, holder)
                if values and all(isinstance(value, Instance) for value in values):
                    found = ev.members(values, model.text(name))
                    return None if found.symbols else values
        return None

    def call_of_instance(self, ev: "Evaluator", model: Model, value: Instance, given: "list[Node]") -> Values:
        """A variant with values is one of its enumeration."""
        return one(value) if value.declaration.node.type == "enum_item" else UNKNOWN

    def outside_call(self, ev: "Evaluator", called: Outside, arguments: "list[Node]", model: Model) -> Values:
        """Also what `map` and `enumerate` give."""
        owner, _, method = called.name.rpartition(".")
        if called.arguments and method in {"map", "and_then", "filter_map", "flat_map"} and arguments:
            made = ev.called(model, ev.infer(model, arguments[0]), [])
            return outside(owner, made) if method == "map" else made
        if called.arguments and method == "enumerate":
            return outside("list", outside("tuple", outside("usize"), called.arguments[0]))
        return super().outside_call(ev, called, arguments, model)

    def implicit(self, ev: "Evaluator", one_: Declaration) -> Values:
        """A variant is one of its enumeration."""
        if one_.kind == "variant" and one_.scope.owner is not None:
            return one(Instance(one_.scope.owner))
        return UNKNOWN

    # Patterns

    def part(self, ev: "Evaluator", one_: Declaration) -> Values:
        """What a name in a pattern stands for."""
        node = one_.name_node
        if node.type == "shorthand_field_identifier" and node.parent is not None:
            return ev.values(self._field(ev, one_.model, node.parent, one_.name))
        return self._given(ev, one_.model, node)

    def _given(self, ev: "Evaluator", model: Model, node: "Node") -> Values:
        """What a pattern is compared with."""
        parent = node.parent
        if parent is None:
            return UNKNOWN
        kind = parent.type
        if kind in {
            "ref_pattern",
            "mut_pattern",
            "reference_pattern",
            "captured_pattern",
            "or_pattern",
            "match_pattern",
        }:
            return self._given(ev, model, parent)
        if kind == "tuple_struct_pattern":
            return self._in_variant(ev, model, parent, node)
        if kind == "tuple_pattern":
            return self.items_of(ev, self._given(ev, model, parent), parent.named_children.index(node))
        if kind == "slice_pattern":
            return self.items_of(ev, self._given(ev, model, parent))
        if kind == "field_pattern":
            name = parent.child_by_field_name("name")
            return ev.values(self._field(ev, model, parent, model.text(name))) if name is not None else UNKNOWN
        if kind == "match_arm" and parent.parent is not None and parent.parent.parent is not None:
            value = parent.parent.parent.child_by_field_name("value")
            return ev.infer(model, value) if value is not None else UNKNOWN
        if kind in {"let_declaration", "let_condition", "parameter"}:
            declared, value = (parent.child_by_field_name(part) for part in ("type", "value"))
            if declared is not None:
                return self.as_type(ev.denoted(model, declared))
            return ev.infer(model, value) if value is not None else UNKNOWN
        if kind == "for_expression":
            value = parent.child_by_field_name("value")
            return self.items_of(ev, ev.infer(model, value)) if value is not None else UNKNOWN
        if kind == "closure_parameters" and parent.parent is not None:
            return self._of_closure(ev, model, parent.parent, parent.named_children.index(node))
        return UNKNOWN

    def _in_variant(self, ev: "Evaluator", model: Model, pattern: "Node", node: "Node") -> Values:
        declared = pattern.child_by_field_name("type")
        if declared is None:
            return UNKNOWN
        if model.text(declared) in _HOLDING:
            return self.items_of(ev, self._given(ev, model, pattern))
        if model.text(declared) == "Err":
            every = [value for value in self._given(ev, model, pattern) if isinstance(value, Outside)]
            return union(value.arguments[1] for value in every if len(value.arguments) > 1) or UNKNOWN
        place = [child.start_byte for child in pattern.named_children].index(node.start_byte) - 1
        found = []
        for value in self._patterned(ev, model, declared):
            body = value.declaration.node.child_by_field_name("body") if isinstance(value, Class) else None
            types = body.children_by_field_name("type") if body is not None else []
            if isinstance(value, Class) and place < len(types):
                found.append(self.as_type(ev.denoted(value.declaration.model, types[place])))
        return union(found) or UNKNOWN

    def _of_closure(self, ev: "Evaluator", model: Model, closure: "Node", index: int) -> Values:
        """What a closure is called with that is given to a collection's method."""
        arguments = closure.parent
        call = arguments.parent if arguments is not None and arguments.type == "arguments" else None
        function = call.child_by_field_name("function") if call is not None else None
        if function is None or function.type != "field_expression":
            return UNKNOWN
        holder = function.child_by_field_name("value")
        values = ev.infer(model, holder) if holder is not None else UNKNOWN
        return (
            self.items_of(ev, frozenset(v for v in values if isinstance(v, Outside))) or UNKNOWN
            if index == 0
            else UNKNOWN
        )

    # Types

    def special_type(self, ev: "Evaluator", model: Model, node: "Node", env: "Environment") -> Values | None:
        """`Self`, arrays, tuples, types of the language."""
        kind = node.type
        if kind in {"type_identifier", "identifier"} and node.text == b"Self":
            return self._self(ev, model, node)
        if kind == "primitive_type":
            return outside(model.text(node))
        if kind == "array_type":
            element = node.child_by_field_name("element")
            return outside("list", self.as_type(ev.denoted(model, element, env))) if element is not None else UNKNOWN
        if kind == "tuple_type":
            return outside("tuple", *(self.as_type(ev.denoted(model, part, env)) for part in node.named_children))
        if kind == "function_type":
            return outside("Function")
        return None

    def returned(self, ev: "Evaluator", one_: Declaration) -> Values:
        """What a closure gives; of a function that declares nothing, nothing."""
        body = one_.node.child_by_field_name("body")
        if one_.node.type != "closure_expression" or body is None:
            return outside("unit")
        return ev.infer(one_.model, body)


def _only(found: Meaning, *, functions: bool) -> Meaning:
    """Of a field and a method of one name the one that a place can mean."""
    kept = frozenset(symbol for symbol in found.symbols if (symbol.declarations[0].kind == "function") is functions)
    return replace(found, symbols=kept) if kept else found


def _is_constant(one_: Declaration) -> bool:
    """Whether a name in a pattern is compared with, not bound."""
    return one_.name[:1].isupper()


def _last_name(model: Model, node: "Node") -> str:
    """The name of a type without what is around it."""
    while node.type not in {"type_identifier", "primitive_type", "identifier"}:
        inner = (
            node.child_by_field_name("name")
            or node.child_by_field_name("type")
            or next(
                (child for child in node.named_children if child.type not in {"lifetime", "mutable_specifier"}), None
            )
        )
        if inner is None:
            return ""
        node = inner
    return model.text(node)


def _impls(ev: "Evaluator", one_: Declaration) -> "list[tuple[Model, Node]]":
    """The `impl` blocks of a type, wherever in the project."""
    return ev.once(("impls", one_.key), partial(_find_impls, ev, one_))


def _find_impls(ev: "Evaluator", one_: Declaration) -> "list[tuple[Model, Node]]":
    found = []
    for path in ev.once(("impl files",), partial(_impl_files, ev)).get(one_.name, ()):
        model = ev.files.model(path)
        for made in model.nameless_at.values() if model is not None else ():
            declared = made.node.child_by_field_name("type") if made.node.type == "impl_item" else None
            if model is None or declared is None or _last_name(model, declared) != one_.name:
                continue
            if any(isinstance(value, Class) and value.declaration == one_ for value in ev.denoted(model, declared)):
                found.append((model, made.node))
    return found


def _impl_files(ev: "Evaluator") -> dict[str, list[str]]:
    """The files with `impl` blocks, by the name of the type."""
    found: dict[str, list[str]] = {}
    for path, lines in sorted(ev.files.holding(_HEADER).items()):
        for line in lines if path.endswith(".rs") else ():
            name = _FOR.search(line) or _OF.search(line)
            if name is not None and path not in found.setdefault(name[1], []):
                found[name[1]].append(path)
    return found


def _segments(model: Model, node: "Node") -> list[str]:
    """The names of a path in a `use` up to a node."""
    found: list[str] = []
    leaf, parent = node, node.parent
    if node.type == "scoped_identifier":
        found = [part for part in model.text(node).split("::") if part]
    elif node.type == "use_wildcard":
        found = [part for part in model.text(node).split("::") if part and part != "*"]
    elif node.type != "self" or parent is None or parent.type != "use_list":
        found = [model.text(node)]
    while parent is not None and parent.type != "use_declaration":
        path = parent.child_by_field_name("path")
        if (
            parent.type in {"scoped_identifier", "scoped_use_list"}
            and path is not None
            and path.byte_range != leaf.byte_range
        ):
            found = [*(part for part in model.text(path).split("::") if part), *found]
        leaf, parent = parent, parent.parent
    return [part.strip() for part in found]


def _around(model: Model, byte: int) -> Values:
    """The module around a place."""
    scope = model.scope_at(byte).around("namespace")
    return one(Class(scope.owner)) if scope is not None and scope.owner is not None else one(Module(model.path))


def _parent(ev: "Evaluator", values: Values) -> Values:
    """The module that a module is in."""
    found = []
    for value in values:
        if isinstance(value, Class):
            found.append(_around(value.declaration.model, value.declaration.node.start_byte))
        elif isinstance(value, Module):
            path = _parent_file(ev, value.path)
            found.append(one(Module(path)) if path else UNKNOWN)
        else:
            found.append(UNKNOWN)
    return union(found)


def _parent_file(ev: "Evaluator", path: str) -> str:
    folder, _, name = path.rpartition("/")
    if name == "mod.rs":
        folder = folder.rpartition("/")[0]
    for candidate in (f"{folder}/mod.rs", f"{folder}.rs", f"{folder}/lib.rs", f"{folder}/main.rs"):
        if candidate != path and ev.files.is_file(candidate):
            return candidate
    return ""


def _module_file(ev: "Evaluator", path: str, name: str) -> str:
    folder, _, file = path.rpartition("/")
    base = (
        folder if file in {"mod.rs", "lib.rs", "main.rs"} or _is_top(folder) else f"{folder}/{file.removesuffix('.rs')}"
    )
    for candidate in (f"{base}/{name}.rs", f"{base}/{name}/mod.rs", f"{folder}/{name}.rs"):
        if ev.files.is_file(candidate):
            return candidate
    return ""


def _is_top(folder: str) -> bool:
    return folder.rpartition("/")[2] in {"tests", "examples", "benches", "bin"}


def _crate(ev: "Evaluator", path: str) -> str:
    """The file that a crate begins with."""
    folder = path.rpartition("/")[0]
    if _is_top(folder):
        return path
    while True:
        where = f"{folder}/" if folder else ""
        if ev.files.is_file(f"{where}Cargo.toml"):
            for name in ("src/lib.rs", "src/main.rs", "lib.rs"):
                if ev.files.is_file(f"{where}{name}"):
                    return f"{where}{name}"
        if not folder:
            return path
        folder = folder.rpartition("/")[0]


def _crates(ev: "Evaluator") -> dict[str, str]:
    """The first files of the project's own crates, by name."""
    found: dict[str, str] = {}
    for path in ev.files.named("Cargo.toml"):
        name, folder = _PACKAGE.search(ev.files.text(path)), path.rpartition("/")[0]
        root = f"{folder}/src/lib.rs" if folder else "src/lib.rs"
        if name is not None and ev.files.is_file(root):
            found[name[1].replace("-", "_")] = root
    return found


def _meaning(values: Values) -> Meaning:
    """Values of modules and types as what a name means."""
    symbols = [
        value.declaration.model.by_name_byte.get(value.declaration.name_node.start_byte)
        for value in values
        if isinstance(value, Class | Instance | Function)
    ]
    return Meaning(
        frozenset(symbol for symbol in symbols if symbol is not None),
        frozenset(value.path for value in values if isinstance(value, Module)),
        next((value.name for value in values if isinstance(value, Outside)), ""),
        unknown=not values or any(symbol is None for symbol in symbols),
    )
