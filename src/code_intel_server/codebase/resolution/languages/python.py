"""Python: scopes of functions, modules found from the importing file's folders upwards, members through `self`."""

import builtins
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from code_intel_server.codebase.resolution.evaluation import NOT_KNOWN, SELF, Meaning
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
from code_intel_server.common.word_set import word_set

if TYPE_CHECKING:
    from tree_sitter import Node

    from code_intel_server.codebase.resolution.evaluation import Environment, Evaluator

_SCALARS = frozenset({"str", "int", "float", "bool", "bytes", "complex", "None", "bytearray", "len", "repr", "id"})
_LISTS = (
    "list set frozenset tuple Sequence Iterable Iterator Collection MutableSequence deque List Set Tuple FrozenSet AbstractSet"
    " MutableSet Generator AsyncIterator AsyncIterable AsyncGenerator KeysView enumerate"
)
_MAPPINGS = "dict Dict Mapping MutableMapping OrderedDict defaultdict DefaultDict"
_COLLECTIONS = word_set(
    "dictionary tuple list_comprehension set_comprehension generator_expression dictionary_comprehension"
)
_OPERATORS = {"/": "__truediv__", "+": "__add__", "-": "__sub__", "|": "__or__", "&": "__and__", "*": "__mul__"}
_PROPERTIES = ("property", "cached_property")
_WRAPPERS = word_set(
    "Optional Union Annotated ClassVar Final Required NotRequired ReadOnly InitVar Awaitable Coroutine Unpack"
)


class Python(LanguageRules):
    """Python 3."""

    name: ClassVar[str] = "python"
    queries: ClassVar[Sequence[str]] = ("python",)
    members: ClassVar[Mapping[str, tuple[str, str]]] = {"attribute": ("object", "attribute")}
    calls: ClassVar[Mapping[str, str]] = {"call": "function"}
    same: ClassVar[frozenset[str]] = frozenset(
        {"parenthesized_expression", "await", "list_splat", "expression_list", "unary_operator"}
    )
    either: ClassVar[Mapping[str, Sequence[str]]] = {
        "boolean_operator": ("left", "right"),
        "named_expression": ("value",),
    }
    literals: ClassVar[Mapping[str, str]] = {
        "string": "str",
        "concatenated_string": "str",
        "integer": "int",
        "float": "float",
        "true": "bool",
        "false": "bool",
        "none": "None",
        "comparison_operator": "bool",
        "not_operator": "bool",
    }
    lists: ClassVar[frozenset[str]] = frozenset({"list", "set"})
    type_names: ClassVar[frozenset[str]] = frozenset({"identifier"})
    type_members: ClassVar[Mapping[str, tuple[str, str]]] = {"attribute": ("object", "attribute")}
    type_same: ClassVar[frozenset[str]] = frozenset({"type", "parenthesized_expression"})
    elements: ClassVar[Mapping[str, int]] = {
        **dict.fromkeys(_LISTS.split(), 0),
        **dict.fromkeys(_MAPPINGS.split(), 0),
        "ValuesView": 0,
    }
    giving: ClassVar[frozenset[str]] = frozenset({"pop", "popleft", "popitem", "__next__", "__getitem__"})
    keeping: ClassVar[frozenset[str]] = frozenset({"copy", "union", "intersection", "difference"})
    plain: ClassVar[frozenset[str]] = _SCALARS
    call_member: ClassVar[str] = "__call__"
    names_self: ClassVar[bool] = True
    body_in_scope: ClassVar[bool] = True
    aliases_by_value: ClassVar[bool] = True

    # Declarations

    def declare(self, model: Model, one_: Declaration, scope: Scope) -> None:
        """Bind as Python does: by function, `global` at the top, `self.x` in the class."""
        if one_.kind == "wide":
            model.top.wide.append(one_)
        elif one_.kind == "global":
            target = (
                model.top if one_.node.type == "global_statement" else scope.parent and scope.parent.around("function")
            )
            if target is not None and one_.name in target.symbols:
                scope.symbols[one_.name] = target.symbols[one_.name]
            elif target is model.top:
                scope.symbols[one_.name] = model.bind(one_, target)
        elif one_.kind == "field":
            self._declare_field(model, one_, scope)
        elif one_.kind in {"again", "capture"}:
            if (
                one_.name not in scope.symbols
                and one_.kind == "capture"
                and one_.name != "_"
                and one_.name[:1].islower()
            ):
                model.bind(one_, scope)
        else:
            if one_.node.type == "named_expression":
                scope = scope.around("function", "module", "class") or scope
            model.bind(one_, scope)

    @staticmethod
    def _declare_field(model: Model, one_: Declaration, scope: Scope) -> None:
        holder = one_.node.child_by_field_name("left")
        holder = holder.child_by_field_name("object") if holder else None
        function = scope.around("function")
        while function is not None and not (function.owner and function.owner.name):
            function = function.parent.around("function") if function.parent else None
        method = function.owner if function else None
        if holder is None or method is None or function is None or function.parent is None:
            return
        owner = function.parent
        if owner.kind == "class" and _first_parameter(method) == model.text(holder):
            model.bind(one_, owner)

    def hides(self, scope: Scope, symbol: BoundSymbol, node: "Node") -> bool:
        """A class body and a parameter's own annotation do not see fields set elsewhere, nor parameters."""
        first = symbol.declarations[0]
        if scope.kind == "class":
            return first.kind == "field" or first.name_node.start_byte > node.start_byte
        if first.kind in {"parameter", "several"} and first.name_node.start_byte != node.start_byte:
            parameters = first.node.parent if first.node.type != "parameters" else first.node
            return parameters is not None and parameters.start_byte <= node.start_byte < parameters.end_byte
        return False

    def canonical(self, ev: "Evaluator", symbol: BoundSymbol) -> BoundSymbol:
        """What a method only sets is the member that a class above declares."""
        owner = symbol.owner
        if owner is None or any(one_.kind != "field" or one_.type_node for one_ in symbol.declarations):
            return symbol
        above = ev.member(Instance(owner, (), above=True), symbol.name).symbols
        return min(above, key=lambda one_: one_.key) if above else symbol

    def bases(self, one_: Declaration) -> "list[Node]":
        """What is in a class's brackets."""
        given = one_.node.child_by_field_name("superclasses")
        return [node for node in given.named_children if node.type != "keyword_argument"] if given else []

    def parameters(self, ev: "Evaluator", one_: Declaration) -> Sequence[BoundSymbol]:
        """Those in brackets behind the name, else those of `Generic[T]` and the like."""
        own = super().parameters(ev, one_)
        if own:
            return own
        if one_.kind == "function":
            return self._named_in(ev, one_.model, one_.type_node) if one_.type_node else ()
        found: dict[BoundSymbol, None] = {}
        for base in self.bases(one_):
            for node in _arguments(base):
                if node.type == "identifier":
                    meant = ev.name(one_.model, node)
                    found.update((symbol, None) for symbol in meant.symbols if self._is_type_variable(symbol))
        return list(found)

    def _named_in(self, ev: "Evaluator", model: Model, node: "Node") -> list[BoundSymbol]:
        """The type variables in a type."""
        if node.type == "identifier":
            return [symbol for symbol in ev.name(model, node).symbols if self._is_type_variable(symbol)]
        return [symbol for child in node.named_children for symbol in self._named_in(ev, model, child)]

    @staticmethod
    def _is_type_variable(symbol: BoundSymbol) -> bool:
        value = symbol.declarations[0].value_node
        return value is not None and value.type == "call" and (value.text or b"").split(b"(")[0].endswith(b"TypeVar")

    # Imports

    def imported(self, ev: "Evaluator", one_: Declaration) -> Meaning:
        """The module or the name that an import binds."""
        if one_.node.type == "import_statement":
            aliased = one_.name_node.parent
            if aliased is not None and aliased.type == "aliased_import":
                dotted = aliased.child_by_field_name("name")
                return self._module(ev, one_.model, one_.model.text(dotted) if dotted else "")
            return self._module(ev, one_.model, one_.name)
        name_node = one_.name_node
        if name_node.parent is not None and name_node.parent.type == "aliased_import":
            name_node = name_node.parent.child_by_field_name("name") or name_node
        return self._from(ev, one_.model, one_.node, one_.model.text(name_node))

    def _from(self, ev: "Evaluator", model: Model, statement: "Node", name: str) -> Meaning:
        module = statement.child_by_field_name("module_name")
        found = self._module(ev, model, model.text(module) if module else "")
        return self._of_modules(ev, found, name)

    def _of_modules(self, ev: "Evaluator", found: Meaning, name: str) -> Meaning:
        if found.outside:
            return Meaning(outside=f"{found.outside}.{name}")
        meant = Meaning.of(ev.in_module(path, name) for path in found.modules)
        return meant or NOT_KNOWN

    def wide(self, ev: "Evaluator", one_: Declaration, name: str) -> Meaning:
        """What `from x import *` gives a name."""
        module = one_.node.child_by_field_name("module_name")
        found = self._module(ev, one_.model, one_.model.text(module) if module else "")
        if found.outside or found.unknown:
            return NOT_KNOWN
        return Meaning.of(ev.in_module(path, name) for path in found.modules if path != one_.model.path)

    def module_member(self, ev: "Evaluator", path: str, name: str) -> Meaning | None:
        """A module of a package; anything where the package has `__getattr__`."""
        folder, _, file = path.rpartition("/")
        if file == "__init__.py" or not file:
            prefix = f"{folder}/{name}" if folder else name
            for candidate in (f"{prefix}.py", f"{prefix}/__init__.py", f"{prefix}.pyi"):
                if ev.files.is_file(candidate):
                    return Meaning(modules=frozenset({candidate}))
        model = ev.files.model(path)
        return NOT_KNOWN if model is not None and "__getattr__" in model.top.symbols else None

    def _module(self, ev: "Evaluator", model: Model, dotted: str) -> Meaning:
        """The file of a module, absolute or relative."""
        dotted = dotted.replace(" ", "")
        bare = dotted.lstrip(".")
        level = len(dotted) - len(bare)
        parts = [part for part in bare.split(".") if part]
        folder = model.path.rpartition("/")[0]
        if level:
            for _ in range(level - 1):
                folder = folder.rpartition("/")[0]
            path = _module_file(ev, folder, parts)
            return Meaning(modules=frozenset({path})) if path else NOT_KNOWN
        if not parts:
            return NOT_KNOWN
        for root in _roots(folder):
            path = _module_file(ev, root, parts)
            if path and path != model.path:
                return Meaning(modules=frozenset({path}))
        return self._elsewhere(ev, parts)

    @staticmethod
    def _elsewhere(ev: "Evaluator", parts: Sequence[str]) -> Meaning:
        """Wherever the project has such a module: in a source folder of another name, in a package of a larger project."""
        if not parts:
            return NOT_KNOWN
        ends = (f"{'/'.join(parts)}.py", f"{'/'.join(parts)}/__init__.py")
        names = (f"{parts[-1]}.py", "__init__.py")
        found = [
            path
            for end, name in zip(ends, names, strict=True)
            for path in ev.files.named(name)
            if f"/{path}".endswith(f"/{end}")
        ]
        tops = [path for path in found if not ev.files.is_file(_above(path, len(parts)))]
        if len(tops) == 1:
            return Meaning(modules=frozenset(tops))
        return NOT_KNOWN if tops else Meaning(outside=".".join(parts))

    def beyond(self, ev: "Evaluator", model: Model, name: str) -> Meaning | None:
        """Nothing of the project where it is built in; anything where nobody knows who binds it."""
        return None if hasattr(builtins, name) else NOT_KNOWN

    # What a name means in other places

    def at(self, ev: "Evaluator", model: Model, node: "Node") -> Meaning | None:
        """A keyword argument, a name within an import."""
        parent = node.parent
        if parent is None:
            return NOT_KNOWN
        if parent.type == "keyword_argument" and fills(parent, "name", node):
            return self._keyword(ev, model, parent, model.text(node))
        if parent.type in {"aliased_import", "dotted_name"}:
            return self._in_import(ev, model, node, parent)
        return None

    def _in_import(self, ev: "Evaluator", model: Model, node: "Node", parent: "Node") -> Meaning | None:
        dotted = parent if parent.type == "dotted_name" else node
        statement = dotted.parent
        while statement is not None and not statement.type.endswith("_statement"):
            statement = statement.parent
        if statement is None or not statement.type.startswith("import"):
            return None
        before = model.parsed.text[dotted.start_byte : node.end_byte].decode("utf-8", "replace")
        module = statement.child_by_field_name("module_name")
        if statement.type == "import_from_statement" and module is not None and dotted.start_byte >= module.end_byte:
            return self._from(ev, model, statement, before)
        if module is not None and module.type == "relative_import":
            before = model.parsed.text[module.start_byte : node.end_byte].decode("utf-8", "replace")
        return self._module(ev, model, before)

    def _keyword(self, ev: "Evaluator", model: Model, argument: "Node", name: str) -> Meaning:
        call = argument.parent.parent if argument.parent is not None else None
        function = call.child_by_field_name("function") if call is not None else None
        if function is None:
            return NOT_KNOWN
        return Meaning.of(self._parameter(ev, value, name) for value in ev.infer(model, function)) or NOT_KNOWN

    def _parameter(self, ev: "Evaluator", value: object, name: str) -> Meaning:
        if isinstance(value, Outside):
            return Meaning(outside=f"{value.name}({name})")
        if isinstance(value, Class):
            made = ev.member(value, "__init__")
            ways = (one_ for symbol in made.symbols for one_ in symbol.declarations)
            found = [self._parameter(ev, Function(one_), name) for one_ in ways]
            known = [meant for meant in found if meant.symbols]
            return Meaning.of(known) if known else ev.member(value, name)
        if isinstance(value, Function) and value.declaration.inner is not None:
            symbol = value.declaration.inner.symbols.get(name)
            if symbol is not None and symbol.declarations[0].kind == "parameter":
                return Meaning(frozenset({symbol}))
            if any(one_.declarations[0].kind == "several" for one_ in value.declaration.inner.symbols.values()):
                return NOT_KNOWN
        return NOT_KNOWN

    # Expressions

    def special(self, ev: "Evaluator", model: Model, node: "Node") -> Values | None:
        """`super()`, `cast`, items, conditions, arithmetic, dictionaries, comprehensions, what `isinstance` narrows."""
        kind = node.type
        if kind == "call":
            return self._special_call(ev, model, node)
        if kind == "identifier":
            return self._narrowed(ev, model, node)
        if kind == "subscript":
            value = node.child_by_field_name("value")
            return self._item(ev, model, node, ev.infer(model, value)) if value else UNKNOWN
        if kind == "attribute" and (name := node.child_by_field_name("attribute")) is not None:
            if name.text == b"__dict__":
                return outside("dict")
            holder = node.child_by_field_name("object")
            if name.text == b"__class__" and holder is not None:
                return self._classes(ev.infer(model, holder))
        if kind == "keyword_argument":
            value = node.child_by_field_name("value")
            return ev.infer(model, value) if value else UNKNOWN
        if kind == "conditional_expression":
            return union(ev.infer(model, part) for part in node.named_children[:1] + node.named_children[2:3])
        if kind == "binary_operator":
            return self._arithmetic(ev, model, node)
        if kind in _COLLECTIONS:
            return self._collection(ev, model, node)
        return None

    @staticmethod
    def _arithmetic(ev: "Evaluator", model: Model, node: "Node") -> Values:
        left, operator = (node.child_by_field_name(name) for name in ("left", "operator"))
        values = ev.infer(model, left) if left else UNKNOWN
        if all(isinstance(value, Outside) for value in values):
            return values
        name = _OPERATORS.get(operator.type if operator else "", "")
        return ev.called(model, ev.taken(values, name), []) if name else UNKNOWN

    @staticmethod
    def _collection(ev: "Evaluator", model: Model, node: "Node") -> Values:
        kind, body = node.type, node.child_by_field_name("body")
        if kind == "dictionary":
            pairs = [part for part in node.named_children[:4] if part.type == "pair"]
            sides = [[pair.child_by_field_name(field) for pair in pairs] for field in ("key", "value")]
            return outside("dict", *(union(ev.infer(model, part) for part in side if part) for side in sides))
        if kind == "tuple":
            return outside("tuple", *(ev.infer(model, part) for part in node.named_children[:8]))
        if kind == "dictionary_comprehension":
            value = body.child_by_field_name("value") if body else None
            return outside("dict", UNKNOWN, ev.infer(model, value)) if value else UNKNOWN
        return outside("list", ev.infer(model, body)) if body else UNKNOWN

    def _special_call(self, ev: "Evaluator", model: Model, node: "Node") -> Values | None:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or arguments is None:
            return UNKNOWN
        name, given = model.text(function), arguments.named_children
        if name == "super":
            owner = self.class_of(model, node.start_byte)
            return one(Instance(owner, (), above=True)) if owner else UNKNOWN
        if name in {"cast", "typing.cast", "t.cast"} and given:
            return self.as_type(ev.denoted(model, given[0]))
        if name == "type" and len(given) == 1:
            return self._classes(ev.infer(model, given[0]))
        if name in {"iter", "list", "tuple", "set", "sorted", "reversed", "frozenset"} and given:
            return outside("list", self.items_of(ev, ev.infer(model, given[0])))
        if name in {"next", "anext", "max", "min"} and given:
            return self.items_of(ev, ev.infer(model, given[0]))
        if name in {"copy.copy", "copy.deepcopy", "copy", "deepcopy"} and given:
            return ev.infer(model, given[0])
        if name == "enumerate" and given:
            return outside("list", outside("tuple", outside("int"), self.items_of(ev, ev.infer(model, given[0]))))
        if name == "zip" and given:
            return outside("list", outside("tuple", *(self.items_of(ev, ev.infer(model, part)) for part in given)))
        return None

    @staticmethod
    def _classes(values: Values) -> Values:
        return frozenset(Class(value.declaration) if isinstance(value, Instance) else value for value in values)

    def _item(self, ev: "Evaluator", model: Model, node: "Node", values: Values) -> Values:
        index = node.child_by_field_name("subscript")
        found = []
        for value in values:
            if isinstance(value, Outside):
                last = value.name.rpartition(".")[2]
                if last in _MAPPINGS.split() and len(value.arguments) > 1:
                    found.append(value.arguments[1])
                elif index is not None and index.type == "slice":
                    found.append(one(value))
                elif index is not None and index.type == "integer" and last in {"tuple", "Tuple"}:
                    found.append(self.items_of(ev, one(value), int((index.text or b"0").replace(b"_", b""), 0)))
                else:
                    found.append(self.items_of(ev, one(value)))
            elif isinstance(value, Instance):
                found.append(ev.called(model, ev.taken(one(value), "__getitem__"), []))
            else:
                found.append(one(value))
        return union(found) if found else UNKNOWN

    def _narrowed(self, ev: "Evaluator", model: Model, node: "Node") -> Values | None:
        """What `if isinstance(x, T):` around a name says that it is."""
        name, inner, above = node.text, node, node.parent
        while above is not None and above.type not in {"function_definition", "module", "lambda", "class_definition"}:
            consequence = (
                above.child_by_field_name("consequence") if above.type in {"if_statement", "elif_clause"} else None
            )
            if consequence is not None and inner.byte_range == consequence.byte_range:
                condition = above.child_by_field_name("condition")
                tested = _tested(condition, name or b"") if condition is not None else None
                if tested is not None:
                    parts = tested.named_children if tested.type == "tuple" else [tested]
                    return self.as_type(union(ev.denoted(model, part) for part in parts))
            inner, above = above, above.parent
        return None

    def outside_call(self, ev: "Evaluator", called: Outside, arguments: "list[Node]", model: Model) -> Values:
        """Also what a dictionary's methods give."""
        owner, _, method = called.name.rpartition(".")
        kind = owner.rpartition(".")[2]
        if kind in _MAPPINGS.split() and len(called.arguments) > 1:
            key, value = called.arguments[:2]
            if method in {"get", "pop", "setdefault"}:
                return value
            if method == "values":
                return outside("list", value)
            if method == "items":
                return outside("list", outside("tuple", key, value))
            if method == "keys":
                return outside("list", key)
        return super().outside_call(ev, called, arguments, model)

    def iterated(self, ev: "Evaluator", value: Instance) -> Values:
        """What `__iter__` or `__aiter__` yields."""
        for name in ("__iter__", "__aiter__", "__getitem__"):
            meant = ev.member(value, name)
            if meant.symbols:
                made = ev.called(next(iter(meant.symbols)).declarations[0].model, ev.taken(one(value), name), [])
                return made if name == "__getitem__" else self.items_of(ev, frozenset(v for v in made if v != value))
        return UNKNOWN

    def entered(self, ev: "Evaluator", values: Values) -> Values:
        """What `__enter__` gives."""
        found = []
        for value in values:
            if isinstance(value, Instance):
                meant = [ev.member(value, name) for name in ("__enter__", "__aenter__")]
                functions = [symbol for each in meant for symbol in each.symbols]
                made = [
                    ev.returns(one_, value)
                    for symbol in functions
                    for one_ in symbol.declarations
                    if one_.kind == "function"
                ]
                found.append(union(made) - UNKNOWN or one(value) if made else one(value))
            elif isinstance(value, Outside) and value.arguments and value.name.rpartition(".")[2] in self.elements:
                found.append(self.items_of(ev, one(value)))
            else:
                found.append(one(value))
        return union(found)

    # Types

    def special_type(self, ev: "Evaluator", model: Model, node: "Node", env: "Environment") -> Values | None:
        """Subscripts, `A | B`, quoted types, `Self`."""
        kind = node.type
        if kind == "identifier":
            if node.text == b"Self":
                return self._self_type(model, node, env)
            return self._variable(ev, model, node, env)
        if kind == "attribute" and (node.text or b"").endswith(b".Self"):
            return self._self_type(model, node, env)
        if kind == "none":
            return outside("None")
        if kind in {"binary_operator", "union_type"}:
            return union(ev.denoted(model, child, env) for child in node.named_children)
        if kind in {"subscript", "generic_type"}:
            return self._generic(ev, model, node, env)
        if kind == "string":
            return self._quoted(ev, model, node, env)
        if kind == "call":
            return self.as_type(ev.infer(model, node))
        if kind == "tuple":
            return union(ev.denoted(model, child, env) for child in node.named_children)
        return None

    def _variable(self, ev: "Evaluator", model: Model, node: "Node", env: "Environment") -> Values | None:
        """A type variable, where the name is one: what it stands for, else its bound."""
        for symbol in ev.name(model, node).symbols:
            value = symbol.declarations[0].value_node
            if value is None or not self._is_type_variable(symbol):
                continue
            if symbol.key in env:
                return env[symbol.key]
            given = value.child_by_field_name("arguments")
            for argument in given.named_children if given else []:
                name, bound = argument.child_by_field_name("name"), argument.child_by_field_name("value")
                if (
                    argument.type == "keyword_argument"
                    and name is not None
                    and name.text == b"bound"
                    and bound is not None
                ):
                    return ev.denoted(symbol.declarations[0].model, bound)
            return UNKNOWN
        return None

    def _self_type(self, model: Model, node: "Node", env: "Environment") -> Values:
        owner = self.class_of(model, node.start_byte)
        return env.get(SELF) or (one(Instance(owner)) if owner else UNKNOWN)

    def _generic(self, ev: "Evaluator", model: Model, node: "Node", env: "Environment") -> Values:
        base, parts = node.named_children[0], _arguments(node)
        last = model.text(base).rpartition(".")[2]
        if last in {"Annotated", "ClassVar", "Final", "Required", "NotRequired", "ReadOnly", "InitVar", "Awaitable"}:
            parts = parts[:1]
        if last == "Coroutine":
            parts = parts[-1:]
        if last in _WRAPPERS:
            return union(ev.denoted(model, part, env) for part in parts)
        if last in {"type", "Type"}:
            found = union(ev.denoted(model, part, env) for part in parts)
            return frozenset(Outside("type", (one(value),)) for value in found)
        if last in {"Literal", "LiteralString"}:
            return outside("str")
        if last == "Callable":
            return (
                outside("Callable", self.as_type(ev.denoted(model, parts[-1], env))) if parts else outside("Callable")
            )
        arguments = tuple(self.as_type(ev.denoted(model, part, env)) for part in parts)
        return ev.applied(self.transparent, ev.denoted(model, base, env), arguments)

    def as_type(self, values: Values) -> Values:
        """Objects of the classes; of `type[C]` the class."""
        found: list[Values] = []
        for value in super().as_type(values):
            if isinstance(value, Outside) and value.name == "type" and value.arguments:
                found.append(
                    frozenset(
                        Class(v.declaration, v.arguments) if isinstance(v, Class | Instance) else v
                        for v in value.arguments[0]
                    )
                )
            else:
                found.append(one(value))
        return union(found)

    @staticmethod
    def _quoted(ev: "Evaluator", model: Model, node: "Node", env: "Environment") -> Values:
        """A type in quotes: dotted names joined by bars and brackets are told, by their words."""
        text = model.text(node).strip("\"'rbu ")
        head = text.partition("[")[0]
        found = []
        for part in head.split("|") if "[" not in text or "|" in head else [head]:
            dotted = part.strip()
            if dotted == "None" or not dotted:
                continue
            first, *others = dotted.split(".")
            meant = ev.lookup(model, first, node) or Meaning(outside=first)
            for name in others:
                meant = ev.members(ev.values(meant), name)
            found.append(ev.denoted_by(meant, env))
        if "[" in text and head not in {"Optional", "t.Optional"}:
            return UNKNOWN if head in _WRAPPERS or "|" in text.partition("]")[2] else union(found)
        return union(found) if found else UNKNOWN

    # Functions

    def implicit(self, ev: "Evaluator", one_: Declaration) -> Values:
        """`self`, `cls`, and in a test what the fixture of that name gives."""
        function = one_.scope.owner
        if one_.kind != "parameter" or function is None or function.kind != "function":
            return outside("tuple") if one_.kind == "several" else UNKNOWN
        owner = function.owner
        if owner is not None and _first_parameter(function) == one_.name:
            marks = _decorators(function)
            if "staticmethod" not in marks:
                is_class = "classmethod" in marks or function.name in {
                    "__new__",
                    "__init_subclass__",
                    "__class_getitem__",
                }
                return one(Class(owner)) if is_class else one(Instance(owner))
        return self._fixture(ev, one_) if _is_test(one_.model.path) else UNKNOWN

    def _fixture(self, ev: "Evaluator", one_: Declaration) -> Values:
        folder = one_.model.path.rpartition("/")[0]
        models = [
            one_.model,
            *(ev.files.model(f"{root}/conftest.py" if root else "conftest.py") for root in _up(folder)),
        ]
        for model in models:
            symbol = model.top.symbols.get(one_.name) if model else None
            if symbol is not None and symbol.declarations[0].kind == "function":
                declaration = symbol.declarations[0]
                if any("fixture" in mark for mark in _decorators(declaration)):
                    made = ev.returns(declaration)
                    yields = frozenset(v for v in made if isinstance(v, Outside) and v.name in self.elements)
                    return (made - yields) | self.items_of(ev, yields) if yields else made
        return UNKNOWN

    def is_property(self, one_: Declaration) -> bool:
        """Whether it is decorated as one."""
        return any(mark.rpartition(".")[2].endswith(_PROPERTIES) for mark in _decorators(one_))

    def returned(self, ev: "Evaluator", one_: Declaration) -> Values:
        """What its `return` statements give; of a generator a list of what it yields."""
        body = one_.node.child_by_field_name("body")
        if body is None:
            return UNKNOWN
        returns, yields = _results(body)
        if yields:
            given = [part for node in yields[:3] for part in node.named_children[:1]]
            return outside("list", union(ev.infer(one_.model, part) for part in given) if given else UNKNOWN)
        given = [part for node in returns[:6] for part in node.named_children[:1]]
        if not returns:
            return outside("None")
        found = union(ev.infer(one_.model, part) for part in given)
        return frozenset(value for value in found if value != Outside("None")) or outside("None")

    def of_class(self, ev: "Evaluator", one_: Declaration, holder: Values, values: Values) -> Values:
        """A member of an enumeration is one of its objects."""
        owner = one_.owner
        if owner is None or one_.kind != "variable" or one_.value_node is None:
            return values
        line = ev.line_of_descent(Class(owner))
        if any(
            isinstance(base, Outside)
            and base.name.rpartition(".")[2] in {"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"}
            for base in line
        ):
            return one(Instance(owner))
        return values


def _module_file(ev: "Evaluator", root: str, parts: Sequence[str]) -> str | None:
    base = "/".join([*([root] if root else []), *parts])
    for candidate in (
        *([f"{base}/__init__.py"] if base else ["__init__.py"]),
        *([f"{base}.py", f"{base}.pyi"] if parts else []),
    ):
        if ev.files.is_file(candidate):
            return candidate
    return None


def _roots(folder: str) -> Iterator[str]:
    """Where an absolute import may begin: the folders around a file, and the usual source folders in them."""
    for path in _up(folder):
        yield path
        for name in ("src", "lib"):
            yield f"{path}/{name}" if path else name


def _up(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
    yield ""


def _above(path: str, parts: int) -> str:
    folder = path.rpartition("/")[0]
    for _ in range(parts - (0 if path.endswith("/__init__.py") else 1)):
        folder = folder.rpartition("/")[0]
    return f"{folder}/__init__.py" if folder else "__init__.py"


def _first_parameter(function: Declaration) -> str:
    parameters = function.node.child_by_field_name("parameters")
    first = next(iter(parameters.named_children), None) if parameters else None
    while first is not None and first.type != "identifier" and first.named_children:
        first = first.named_children[0]
    return function.model.text(first) if first is not None else ""


def _decorators(one_: Declaration) -> list[str]:
    parent = one_.node.parent
    if parent is None or parent.type != "decorated_definition":
        return []
    found = [node for node in parent.named_children if node.type == "decorator" and node.named_children]
    return [one_.model.text(node.named_children[0]).partition("(")[0] for node in found]


def _arguments(node: "Node") -> "list[Node]":
    """The types in a subscript's brackets."""
    if node.type == "subscript":
        parts = node.named_children[1:]
        return parts[0].named_children if len(parts) == 1 and parts[0].type == "tuple" else parts
    if node.type == "generic_type":
        return [part for child in node.named_children[1:] for part in child.named_children]
    return []


def _results(body: "Node") -> "tuple[list[Node], list[Node]]":
    """The `return` and `yield` nodes of a function's body, those of functions within it left out."""
    returns, yields, pending = [], [], [body]
    while pending:
        node = pending.pop()
        if node.type == "return_statement":
            returns.append(node)
        elif node.type == "yield":
            yields.append(node)
        if node.type not in {"function_definition", "class_definition", "lambda"}:
            pending += reversed(node.named_children)
    return returns, yields


def _tested(condition: "Node", name: bytes) -> "Node | None":
    """The classes that a condition tests a name for."""
    if condition.type == "boolean_operator" and condition.children[1].type == "and":
        found = [_tested(part, name) for part in (condition.children[0], condition.children[2])]
        return next((one_ for one_ in found if one_ is not None), None)
    if condition.type == "parenthesized_expression" and condition.named_children:
        return _tested(condition.named_children[0], name)
    if condition.type != "call":
        return None
    arguments = condition.child_by_field_name("arguments")
    function = condition.child_by_field_name("function")
    if function is None or function.text != b"isinstance" or arguments is None or len(arguments.named_children) != 2:
        return None
    return arguments.named_children[1] if arguments.named_children[0].text == name else None


def _is_test(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
