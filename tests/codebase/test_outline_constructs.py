"""Constructs that real files showed the outline to miss or to invent, each in a few lines of its own (benchmarks/outlines.md)."""

import time

import pytest

from code_intel_server.codebase.files.languages import LANGUAGES_BY_NAME
from code_intel_server.codebase.syntax import grammars
from code_intel_server.codebase.syntax.masking import masked, mended
from code_intel_server.codebase.syntax.structure import outline

CONSTRUCTS: dict[str, tuple[str, str, list[str]]] = {
    "a definition outside of its class has its own name in C++, whatever the class's arguments": ("cpp",
     ("template <class K, class V>\nvoid Map<K, std::pair<V, V>>::put(K k) {}\ntemplate <class K, class V>\n"
      "struct Map<K, V>::Node { int x; };\ntemplate <>\nint f<ns::T>(int a) { return a; }\n"
      "bool Foo::operator<(const Foo& b) { return 1; }\n"),
     ["method Map.put 2-2", "struct Map.Node 4-4", "field Map.Node.x 4-4", "function f 6-6", "method Foo.operator< 7-7"]),
    "what is called like its class is a constructor in C++": ("cpp",
     "class A {\n  A() = default;\n  explicit A(int x) : y(x) {}\n  A(long);\n  ~A();\n};\nB::B(int x) : y(x) {}\nC::C() = default;\nC::~C() = default;\n",
     ["class A 1-6", "constructor A.A 2-2", "constructor A.A 3-3", "constructor A.A 4-4", "method A.~A 5-5",
      "constructor B.B 7-7", "constructor C.C 8-8", "method C.~C 9-9"]),
    "a pointer to a function that returns a pointer is a type, or a field, in C": ("c",
     "typedef Iterator* (*Block)(void*, int);\ntypedef int (*Other)(void);\nstruct A { const char* (*name)(void*); };\n",
     ["type Block 1-1", "type Other 2-2", "struct A 3-3", "field A.name 3-3"]),
    "what is declared without a value is defined in TypeScript": ("typescript",
     ("declare var A: { new (): B };\nexport declare const C: number;\ndeclare global { var D: B }\n"
      "declare module 'm' {\n  const E: B;\n  export let F: B;\n}\nnamespace N { const G = 1; export var H = 2 }\n"),
     ["variable A 1-1", "variable C 2-2", "variable D 3-3", "module m 4-7", "variable m.E 5-5", "variable m.F 6-6",
      "namespace N 8-8", "variable N.G 8-8", "variable N.H 8-8"]),
    "what is taken out of an object at the top is defined in TypeScript, unless it is imported": ("typescript",
     ("export const { add, remove: drop, load = 1, ...rest } = slice.actions;\nconst { a } = b;\n"
      "const { readFile } = require('fs');\nconst { c } = await import('./c');\nfunction f() { const { d } = e }\n"),
     ["variable add 1-1", "variable drop 1-1", "variable load 1-1", "variable rest 1-1", "variable a 2-2",
      "function f 5-5"]),
    "what a constructor's parameter declares is a field of its class in TypeScript": ("typescript",
     "class A {\n  constructor(private readonly b: B, readonly c?: C, d: D, @Inject() protected e = 1) {}\n}\n",
     ["class A 1-3", "constructor A.constructor 2-2", "field A.b 2-2", "field A.c 2-2", "field A.e 2-2"]),
    "methods of objects are methods, under whatever name, in JavaScript": ("javascript",
     "const a = {\n  b() {},\n  get c() { return 1 },\n  1: () => 2,\n  [d.e]: function* () {},\n  'f': x => x,\n}\n",
     ["variable a 1-7", "method a.b 2-2", "method a.c 3-3", "method a.1 4-4", "method a.[d.e] 5-5", "method a.f 6-6"]),
    "a function with a name of its own is one, unless it is bound to another, in JavaScript": ("javascript",
     "function f() {\n  return function g() {}\n}\nh(function i() {});\nexports.j = function k() {};\nlet l = function* m() {};\n",
     ["function f 1-3", "function f.g 2-2", "function i 4-4", "function j 5-5", "function l 6-6"]),
    "a constructor without a body is a constructor in TypeScript": ("typescript", "declare class A {\n  constructor(b: B);\n  #c;\n  d() { this.#c = () => 1 }\n}\n",
     ["class A 1-5", "constructor A.constructor 2-2", "field A.#c 3-3", "method A.d 4-4", "function A.d.#c 4-4"]),
    "call signatures without semicolons, modifiers of variance and escaped ticks do no harm in TypeScript": ("typescript",
     ("export type * from './a';\nexport const b: {\n  /** says */\n  <A>(self: A): B<A>\n  /** more */\n  <A, C>(self: A, c: C): B<A>\n"
      "  (self: D): B<D>\n} = dual(2, e)\ninterface F<in out G, out H = never> {\n  i: G\n}\nexport const j = (k: L) => k\n"
      "type M = `a \\`b\\` ${string}`\nexport const n = 1\n"),
     ["variable b 2-8", "interface F 9-11", "property F.i 10-10", "function j 12-12", "type M 13-13",
      "variable n 14-14"]),
    "functions of one name and different arity are two in Elixir": ("elixir",
     ("defmodule Shop do\n  def sum(list), do: sum(list, 0)\n  defp sum([], total), do: total\n"
      "  defp sum([head | tail], total) when head > 0 do\n    sum(tail, total + head)\n  end\nend\n"),
     ["module Shop 1-7", "function Shop.sum 2-2", "function Shop.sum 3-6"]),
    "functions of one name and different arity are two in Erlang": ("erlang",
     "sum(List) -> sum(List, 0).\nsum([], Total) -> Total;\nsum([Head | Tail], Total) -> sum(Tail, Total + Head).\n",
     ["function sum 1-1", "function sum 2-3"]),
    "a method is called by its whole selector in Objective-C": ("objective-c",
     ("@protocol Cache\n- (BOOL)removeAll;\n+ (nullable Image *)imageNamed:(NSString *)name in:(Bundle *)b;\n@end\n"
      "@implementation Foo\n- (void)addImage:(Image *)image\n      withIdentifier:(NSString *)identifier {\n}\n"
      "- (void)log:(NSString *)format, ... { }\n- plain { }\n- (id)at:(int)x :(int)y { }\n@end\n"),
     ["interface Cache 1-4", "method Cache.removeAll 2-2", "method Cache.imageNamed:in: 3-3", "impl Foo 5-12",
      "method Foo.addImage:withIdentifier: 6-8", "method Foo.log: 9-9", "method Foo.plain 10-10",
      "method Foo.at:: 11-11"]),
    "a type without parameters is a type in Elixir": ("elixir",
     "defmodule Shop do\n  @type price :: integer\n  @typep pair(x) :: {x, x}\n  @opaque key :: binary\nend\n",
     ["module Shop 1-5", "type Shop.price 2-2", "type Shop.pair 3-3", "type Shop.key 4-4"]),
    "an operator is a function in Haskell": ("haskell",
     ("(<+>) :: Int -> Int -> Int\n(<+>) a b = a\n\nleft +++ right = left\n\nclass Joined a where\n  (<->) :: a -> a -> a\n\n"
      "instance Joined Int where\n  a <-> b = a - b\n"),
     ["function <+> 1-2", "function +++ 4-4", "interface Joined 6-7", "method Joined.<-> 7-7", "impl Joined 9-10",
      "method Joined.<-> 10-10"]),
    "what a type demands of its members, and what is private, is there in F#": ("fsharp",
     "module Shop\n\ntype ICache =\n    abstract Store: key: int -> unit\n    abstract Size: int\n\nlet private hash (text: string) =\n    text\n",
     ["module Shop 1-8", "class Shop.ICache 3-5", "method Shop.ICache.Store 4-4", "property Shop.ICache.Size 5-5",
      "function Shop.hash 7-8"]),
    "a type's procedures and a generic name are callable in Fortran": ("fortran",
     ("module shop\n  type :: price\n    integer :: amount\n  contains\n    generic :: operator(==) => equals\n"
      "    procedure, private :: equals, less\n    procedure :: show => show_price\n    generic :: get => get_int, get_real\n"
      "  end type price\n  interface new_price\n    module procedure :: price_from_int\n  end interface new_price\nend module shop\n"),
     ["module shop 1-13", "struct shop.price 2-9", "field shop.price.amount 3-3", "method shop.price.equals 6-6",
      "method shop.price.less 6-6", "method shop.price.show 7-7", "method shop.price.get 8-8",
      "function shop.new_price 10-12"]),
    "methods with type parameters, of other modules and with a result type are functions in Julia": ("julia",
     ("Pair{A, B}() where {A, B} = Pair{A, B}(1)\nBase.length(p::Pair{A}) where {A} = 2\nhalf(x)::Int = 1\n"
      "function Pair{A}(x) where A\n    x\nend\n"),
     ["function Pair 1-1", "method Base.length 2-2", "function half 3-3", "function Pair 4-6"]),
    "what implements a protocol is a method in Clojure": ("clojure",
     ("(extend-protocol Priced\n  Long\n  (price [this]\n    this))\n\n(extend-type String Priced (price [this] 1))\n\n"
      "(defrecord Item [amount]\n  Priced\n  (price [this] amount))\n"),
     ["method Priced.price 3-4", "method String.price 6-6", "class Item 8-10", "method Item.price 10-10"]),
    "error sets and types in a block are types in Zig": ("zig",
     'const Failure = error{\n    Empty,\n};\n\ntest "kinds" {\n    const Kind = enum { a };\n    _ = Kind.a;\n}\n',
     ["enum Failure 1-3", "member Failure.Empty 2-2", "function kinds 5-8", "enum kinds.Kind 6-6",
      "member kinds.Kind.a 6-6"]),
    "what is called behind a keyword is no method in Groovy": ("groovy",
     ("class Shop {\n  Price load(Path path) {\n    if( path )\n      return open(path).read(1)\n    new Loader(path)\n  }\n"
      "  Price sell(int n) {\n    assert valid(n)\n    throw new Wrong(n)\n  }\n}\n"),
     ["class Shop 1-11", "method Shop.load 2-6", "method Shop.sell 7-10"]),
    "a macro before a class's name does not hide the class in C++": ("cpp",
     ("class SHOP_EXPORT Price : public base::Value {\n public:\n  Price();\n  int amount() const { return 1; }\n};\n\n"
      "struct SHOP_API(1) SHOP_PACKED Item final {\n  enum KIND kind : 3;\n};\n"),
     ["class Price 1-5", "constructor Price.Price 3-3", "method Price.amount 4-4", "struct Item 7-9",
      "field Item.kind 8-8"]),
    "what a configuration macro wraps is there in Rust": ("rust",
     ("cfg_shop! {\n    pub struct Price {\n        amount: u32,\n    }\n\n    pub fn free() -> Price {\n        Price { amount: 0 }\n    }\n}\n\n"
      "fn after() {}\n"),
     ["struct Price 2-4", "field Price.amount 3-3", "function free 6-8", "function after 11-11"]),
    "a string that begins like arithmetic does not end the script in Bash": ("bash",
     'first() {\n  if eval "(( \\${#${array}[@]} > 0 ))"; then\n    echo 1\n  fi\n}\n\nsecond() {\n  echo 2\n}\n',
     ["function first 1-5", "function second 7-9"]),
    "a class on one line has what stands in it in Kotlin": ("kotlin",
     ("class A { companion object { val X = 1 } }\nclass B { val y = 2; companion object Made { fun of() = B() } }\n"
      "class C { fun f() = 1 }\ninterface D { companion object }\nenum class E { ONE, TWO }\n"
      "class F {\n  val all = list.map { it.x }\n  val first = list.first { it }.name\n  fun g() { if (a) { b() } else { c() } }\n}\n"),
     ["class A 1-1", "property A.X 1-1", "class B 2-2", "property B.y 2-2", "object B.Made 2-2", "method B.Made.of 2-2",
      "class C 3-3", "method C.f 3-3", "interface D 4-4", "enum E 5-5", "member E.ONE 5-5", "member E.TWO 5-5",
      "class F 6-10", "property F.all 7-7", "property F.first 8-8", "method F.g 9-9"]),
}  # fmt: skip


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_the_outline_knows_that(construct: str) -> None:
    language, source, rows = CONSTRUCTS[construct]
    made = outline(source.encode(), LANGUAGES_BY_NAME[language])
    assert [f"{s.kind} {s.qualified} {s.start_line}-{s.end_line}" for s in made.symbols] == rows
    assert not made.has_errors


@pytest.mark.parametrize(("language", "piece"), [
    ("cpp", b"class AB CD : "), ("cpp", b"class AB "), ("cpp", b"struct AB C<"), ("rust", b"cfg_x! {\n"),
    ("bash", b'="(('), ("kotlin", b"} "), ("kotlin", b"x }"), ("c", b"#ifdef __cplusplus\n"),
    ("c", b"#ifdef __cplusplus\n}\n"), ("c", b"/*"), ("c", b"/**/"), ("cpp", b"class AB /* */ \\\n"),
    *(("c", piece) for piece in (
        b"AAAA\n", b"AAA ", b"AAA(\n", b") AAA;", b") AAA(b) {\n", b"static ", b"a * ", b"\n\nAAA a ", b"#if (\n",
        b"#if 1\n{\n#else\n", b"#if (\n}\n#endif\n", b"'{", b'"\\')),
    *(("typescript", piece) for piece in (
        b"*/\n <A", b"/**/\n <A>", b"\n (", b"\n (a" + b"()" * 400, b"<in ", b"//\n\n <A", b",/*x")),
])  # fmt: skip
def test_text_made_to_slow_the_masking_or_the_mending_does_not(language: str, piece: bytes) -> None:
    text = piece * (512 * 1024 // len(piece)) + (b"#else\n#endif\n" * 1000 if language == "c" else b"")
    began = time.thread_time()
    assert len(masked(text, language)) == len(mended(text, language)) == len(text)
    assert time.thread_time() - began < 5


class Ticking:
    """A clock in place of `time` that goes on by `step` seconds whenever somebody looks."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.looks = 0

    def thread_time(self) -> float:
        """How often somebody looked, in seconds."""
        self.looks += 1
        return self.looks * self.step


def test_a_text_that_is_parsed_twice_has_one_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"interface Box<in A, out B> { a: A }\n" * 4000
    unhurried = Ticking(0.0)
    monkeypatch.setattr(grammars, "time", unhurried)
    mended_in_time = grammars.parse(text, LANGUAGES_BY_NAME["typescript"])
    assert mended_in_time and not mended_in_time.has_errors
    slow = Ticking(3.0 / unhurried.looks)  # both parses would take 3 s, each alone less than the limit
    monkeypatch.setattr(grammars, "time", slow)
    parsed = grammars.parse(text + b"\n", LANGUAGES_BY_NAME["typescript"])  # another text: the last ones are kept
    assert parsed and parsed.has_errors
    assert slow.thread_time() < 2.1


def test_what_goes_on_in_the_next_line_is_left_alone_by_the_mending() -> None:
    text = b"type A =\n  <B>(b: B) => C\ntype D = (e: E) =>\n  // says\n  <B>(b: B) => F extends\n  <B>(b: B) => G ? 1 : 2\n"
    assert mended(text, "typescript") == text
    assert mended(b"f(a,\n  (b: C): D => e)", "typescript") == b"f(a,\n  (b: C): D => e)"
    assert mended(b"{ a: B\n  <C>(): D }", "typescript") == b"{ a: B\n ;<C>(): D }"
    assert mended(b"{ a: B\n  <C>(): D }", "javascript") == b"{ a: B\n  <C>(): D }"


def test_masking_leaves_lines_and_offsets_alone() -> None:
    text = b"class A_B\n  C_D Price {\n};\nclass LONE {};\nstruct FOO item;\nenum KIND kind : 3;\nstruct FOO make(int a) {\n}\n"
    made = masked(text, "cpp")
    assert made == text.replace(b"A_B\n  C_D", b"   \n     ")
    assert masked(text, "c") == text
