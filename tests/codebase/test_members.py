"""Members: of a file that is parsed without some of them, the rest is told exactly as in the whole."""

import random
import re
from collections.abc import Iterable, Iterator
from itertools import chain, combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from code_intel_server.codebase.files.languages import LANGUAGES_BY_NAME, Language, language_of
from code_intel_server.codebase.files.ripgrep import FileMatches
from code_intel_server.codebase.references import classify
from code_intel_server.codebase.references.classify import NameQuery, ReferenceRow
from code_intel_server.codebase.syntax import grammars, members, skeletons
from code_intel_server.codebase.syntax.skeletons import Skeletons
from code_intel_server.codebase.syntax.structure import Parsed

REPOSITORY = Path(__file__).parents[2]
WORDS = NameQuery(re.compile(rb"(?<![\w\x80-\xff])[A-Za-z_]\w*"), include_comments=True)


@pytest.fixture(autouse=True, scope="module")
def everything_counts() -> Iterator[None]:
    """However little it saves, it is left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(members, "_SMALLEST", 1)
        patch.setattr(skeletons, "WORTH_NOTING", 1)
        patch.setattr(skeletons, "_WORTH_LEAVING_OUT", 1)
        patch.setattr(skeletons, "_SHARE_LEFT_OUT", 1 << 30)
        yield


def told(parsed: Parsed, lines: list[int]) -> list[ReferenceRow]:
    """What every word on these lines is."""
    printed = b"".join(
        b"%d:%s\n" % (line, parsed.text[parsed.line_starts[line - 1] : parsed.line_end(line)].rstrip(b"\n"))
        for line in lines
    )
    return list(classify._by_tree(parsed, FileMatches("a", len(lines), printed), WORDS))


def in_part(data: bytes, language: Language, lines: list[int]) -> Parsed | None:
    """The file asked for these lines, where it is not parsed whole; its members are known from the first time."""
    known = Skeletons()
    whole = skeletons.parse(data, language, "a", [1], known)
    again = skeletons.parse(data, language, "a", lines, known)
    assert whole is not None
    assert again is not None
    return again if len(again.tree.included_ranges) > 1 or _bytes(again) < _bytes(whole) else None


def dice(seed: str) -> random.Random:
    """The same throws each time."""
    return random.Random(seed)  # noqa: S311 - not for secrets


def pairs(text: str) -> Iterator[list[int]]:
    """Any two lines."""
    yield from map(list, combinations(range(1, text.count("\n") + 1), 2))


def _bytes(parsed: Parsed) -> int:
    return sum(part.end_byte - part.start_byte for part in parsed.tree.included_ranges)


def told_in_part(text: str | bytes, language: str, questions: Iterable[list[int]] | None = None) -> int:
    """How many questions for some lines (by default for each line) a part of the file answers, and as the whole does."""
    data = text if isinstance(text, bytes) else text.encode()
    whole = grammars.parse(data, LANGUAGES_BY_NAME[language])
    assert whole is not None
    count = 0
    for lines in questions or ([line + 1] for line in range(len(whole.line_starts))):
        part = in_part(data, LANGUAGES_BY_NAME[language], lines)
        if part is not None:
            count += 1
            assert told(part, lines) == told(whole, lines), f"lines {lines} of\n{data.decode()}"
    return count


SAMPLES = {
    "python": """\
import os  # os
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from a import B

    def only_typed(b: B) -> None: ...
else:
    B = object


@decorate(os.path)
class Shop(B):
    "def in_a_string(self): pass"

    size: int = 1
    text = '''
    def in_text(self):
        return size
'''

    @property
    def one(self) -> int:
        # comment of one
        return self.size

        # right of what follows, in one

    # comment of two
    def two(self): return 2
    # behind two

    @overload
    def three(self, a: int) -> int: ...
    @overload
    def three(self, a: str) -> str: ...
    def three(self, a):
        def inner(b):
            return a(b)

        class Local:
            def method(self):
                return inner

        return Local

        # in three, or so
    # in Shop
# left of all, before a method
    async def four(self):
        async with self.one as one:
            yield one
    # in Shop behind four
  # between Shop and the top
# at the top


def after(shop: Shop) -> None:
    print(f"{shop.one:{shop.size}} and def f(x): pass")
    # end of after
# end of all
""",
    "javascript": """\
import { a } from './a'
const one = { b: 1 }
function two(x) { return x + one }
(two)(one)
function three() { return `function ${two(one)} {}` }
const four = three
function five() { return /five{/.test(four) }
[one, two].map(four);

export function six() { return five }
export default function seven() { return six }
class Shop extends Base {
  size = 1
  get
  price() { return this.size }
  static total = `class A { ${this.size} }`;
  *[Symbol.iterator]() { yield 1 }
  async sell(a) {
    // comment of sell
    return a ? /}/ : { a }
  }
  // behind sell
  #hidden() { return this.#hidden }
}
describe('shop', () => {
  it('sells', () => { two(); })
  it('buys', function () { const kept = two(); return kept; });
  function helper() { return four }
  (helper)();
});
exports.eight = function () { return one };
var nine = function () { return eight; };
""",
    "typescript": """\
import type { A } from './a';
export interface Shape { area(): number; name: string }
export abstract class Base<T> implements Shape {
  constructor(private readonly x: T, public name = 'class') { }
  abstract area(): number
  protected twice(): number { return this.area() * 2 }
  get(a: string): string
  get(a: number): number
  get(a: any) { return a }
  @Input() @Other({ a: 1 })
  public method<U extends T>(u: U): U { return u as U }
  @Input()
  field = 1
  last(): void { this.method(this.x) }
}
export enum Color { Red = 1, Green }
function over(a: string): void
function over(a: any) { return a as Color }
export const f = <T,>(x: T) => { return x }
namespace N { export function inside(): A { return null! } export const y = f(1); }
declare module 'm' { export function outside(): void }
type Alias = ReturnType<typeof over>
export default class extends Base<Alias> { area() { return 1 } }
""",
    "tsx": """\
import React from 'react';
export function App({ shop }: Props) {
  return <Shop name="App {x}" on={() => shop.open()}>text shop</Shop>;
}
export const Other: React.FC = () => { return <><App shop={1} /></> };
class Old extends React.Component<Props> {
  render() { return <div>{this.props.shop}</div> }
  other() { return <T,>(x: T) => x }
}
""",
    "java": """\
package shop;
import java.util.List;
/** A doc of Shop. */
@Deprecated
public class Shop<T> extends Base implements Runnable {
    private final List<T> items = new ArrayList<>() { @Override public int size() { return 1; } };
    static { int i = 0; }
    public Shop(List<T> items) { this.items = items; }

    // comment of run
    @Override
    public void run() { items.forEach(item -> { item.sell("void run() {"); }); } // behind run

    enum Kind { BIG(1) { int size() { return 2; } }, SMALL(0); private final int n; Kind(int n) { this.n = n; } int size() { return n; } }
    record Point(int x, int y) {
        Point { if (x < 0) throw new Error(); }
        int sum() { return x + y; }
    }
    interface Seller { default void sell() { } void buy(Shop<?> shop); }
    @interface Note { String value() default "x"; }
}
class Other { Shop.Point point = new Shop.Point(1, 2); }
""",
    "go": """\
package shop

import "fmt"

// Price is one.
type Price struct {
\tamount int
}

func (p *Price) Total() int { return p.amount } // behind Total

func first() {
\tfmt.Println(`func second() {`)
}; func second() {}

var x = func() int { return 1 }()

type Seller interface { Sell(p Price) error }

func Last[T any](t T) T {
\treturn t
}
""",
    "csharp": """\
using System;
namespace Shop
{
    #region all
    [Serializable]
    public class Till<T> : Base where T : new()
    {
        private int size = 1;
        public int Size { get => size; set { size = value; } }
        public Till(int size) : base(size) { this.size = size; }
        // comment of Ring
        [Obsolete("x")]
        public string Ring(T t) { return $"{t.Name} void Ring() {{"; }
        public static Till<T> operator +(Till<T> a, Till<T> b) { return a; }
        #if DEBUG
        public void Debug() { Ring(default); }
        #endif
        struct Inner { int x; void M() { } }
    }
    #endregion
    enum Kind { Big, Small }
    interface ISeller { void Sell(); }
    record Point(int X, int Y) { public int Sum() { return X + Y; } }
}
""",
    "rust": """\
use std::fmt;
/// Doc of Shop.
#[derive(Debug)]
pub struct Shop<'a> { name: &'a str }

impl<'a> Shop<'a> {
    #[inline]
    pub fn name(&self) -> &str { self.name } // behind name
    /// Doc of sell.
    pub fn sell(&self, n: usize) -> String { format!("fn sell() {{ {n} {} }}", self.name()) }
    const LIMIT: usize = 1;
}
cfg_unix! {
    pub fn unix() { Shop::name(); }
}
macro_rules! make { ($x:ident) => { fn $x() {} }; }
make!(made);
pub trait Seller { fn sell(&self); fn twice(&self) { self.sell(); self.sell() } }
#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn sells() { assert_eq!(r#"fn x() {"#, 'a'.to_string()); }
}
fn last<T: Seller>(t: T) where T: fmt::Debug { t.twice() }
""",
}


@pytest.mark.parametrize("language", SAMPLES)
def test_a_line_is_told_as_in_the_whole_though_all_members_without_it_are_left_out(language: str) -> None:
    assert SAMPLES.keys() == members.SHAPES.keys()
    text = SAMPLES[language]
    parsed = grammars.parse(text.encode(), LANGUAGES_BY_NAME[language])
    assert parsed is not None
    assert not parsed.has_errors
    lines = text.count("\n")
    assert told_in_part(text, language) > lines // 2
    assert told_in_part(text.replace("\n", "\r\n"), language) > lines // 2
    assert told_in_part(text, language, dice(language).choices(list(pairs(text)), k=50)) > 20
    told_in_part(text.removesuffix("\n"), language)
    told_in_part(text.replace("    ", "\t"), language)
    told_in_part(b"\xef\xbb\xbf" + text.encode(), language)


ODD_COLUMNS = [
    "class A:\n    def a(self):\n        pass\n    def b(self): pass\n        y = A\nx = A\n",
    "class A:\n    def a(self):\n      pass\n    def b(self):\n        pass\n      # c\n    x = a\n",
    "class A:\n    y = 1; \\\n    z = 11111111\nx = A\n",
    "class A:\n    y = 1\n    \\\n    def b(self):\n        pass; pass\nx = A\n",
    "class A:\n    def a(self):\n        pass\n    \f# c\n    def b(self):\n        pass\nx = A\n",
    "class A:\n    def a(self):\n        pass\n    # c\r# d\n    def b(self):\n        pass\nx = A\n",
    "class A:\n    def a(self):\n        pass\n\u200b    # c\n    def b(self):\n        pass\nx = A\n",
    "class A:\n\tdef a(self):\n\t\tpass\n        # c\n\tdef b(self):\n\t\tpass\n    # d\n\tdef c(self):\n\t\tpass\nx = A\n",
]


@pytest.mark.parametrize("text", ODD_COLUMNS)
def test_columns_that_are_hard_to_tell_change_nothing(text: str) -> None:
    told_in_part(text, "python")
    told_in_part(text, "python", pairs(text))


@pytest.mark.parametrize("language", SAMPLES)
def test_where_a_file_is_cut_off_or_lacks_a_piece_it_is_told_as_in_the_whole(language: str) -> None:
    rolls = dice(language)
    data = SAMPLES[language].encode()
    for _ in range(40):
        start = rolls.randrange(len(data))
        broken = data[:start] + data[start + rolls.choice([1, 1, 5, 40, len(data)]) :]
        whole = grammars.parse(broken, LANGUAGES_BY_NAME[language])
        assert whole is not None
        lines = sorted({rolls.randrange(len(whole.line_starts)) + 1 for _ in range(3)})
        part = in_part(broken, LANGUAGES_BY_NAME[language], lines)
        assert part is None or (not whole.has_errors and told(part, lines) == told(whole, lines)), broken.decode()


def test_our_own_files_are_told_in_part_as_in_the_whole_and_so_they_are_when_they_lack_some_lines() -> None:
    rolls = dice("own")
    files = sorted([*REPOSITORY.glob("src/**/*.py"), *REPOSITORY.glob("tests/**/*.py")])
    files = [path for path in files if path.stat().st_size > 1000]
    parts = 0
    for path in rolls.sample(files, 40):
        data = path.read_bytes()
        language = language_of(path.name, data)
        assert language is not None
        lines = data.splitlines(keepends=True)
        cut = rolls.randrange(len(lines))
        for text in (data, b"".join([*lines[:cut], *lines[cut + rolls.choice([1, 2, 3, 10, 40]) :]])):
            whole = grammars.parse(text, language)
            assert whole is not None
            for wanted in (1, 2, 8):
                asked = sorted({rolls.randrange(len(whole.line_starts)) + 1 for _ in range(wanted)})
                part = in_part(text, language, asked)
                assert part is None or told(part, asked) == told(whole, asked), f"{path} without {cut}: {asked}"
                parts += part is not None
    assert parts > 100


NAMES = st.sampled_from("abcdef")


@st.composite
def python_body(draw: st.DrawFn, indent: int = 0) -> list[str]:
    """The lines of a module or a block, with comments in any column; some functions lack their body, or stand in a wrong column."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        for column in draw(st.lists(st.sampled_from([0, 2, 4, 6, 8, indent, indent + 4]), max_size=2)):
            lines += [f"{' ' * column}# {draw(NAMES)}"]
        space = " " * (indent + draw(st.sampled_from([0] * 20 + [2, 4])))
        name, other = draw(NAMES), draw(NAMES)
        kind = draw(
            st.sampled_from(
                ["def", "class", "if", "one", "text", "assign", "call", "blank", "decorated", "try", "bare"]
            )
        )
        inner = (
            draw(python_body(indent + 4)) if indent < 8 and kind in {"def", "class", "if", "decorated", "try"} else []
        )
        inner = inner if any(not line.lstrip().startswith("#") and line.strip() for line in inner) else []
        body = inner or [f"{space}    {other}({name})"]
        lines += {
            "def": [f"{space}async def {name}({other}={other}):", *body],
            "class": [f"{space}class {name}({other}):", *body],
            "if": [f"{space}if {name}:", *body, f"{space}else:", f"{space}    {other}"],
            "try": [f"{space}try:", *body, f"{space}except {name}:", f"{space}    {other} = 1"],
            "decorated": [f"{space}@{other}.{name}", f"{space}@{name}", f"{space}class {name}:", *body],
            "one": [f"{space}def {name}({other}): return {other}"],
            "text": [f"{space}{name} = '''", f"def {other}({name}):", "    # no comment", f"{space}''' % {other}"],
            "assign": [f"{space}{name}: {other} = {name}.{other}  # {other}"],
            "call": [f"{space}{name}(", f"{other},", f"{space}  {name}={other})"],
            "blank": ["", space],
            "bare": [f"{space}def {name}({other}):"],
        }[kind]
    return lines


@given(python_body(), st.lists(st.integers(0, 200), min_size=1, max_size=4), st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=150)
def test_any_python_module_is_told_in_part_as_in_the_whole(body: list[str], places: list[int], end: str) -> None:
    _compare(end.join(body) + end, "python", places)


@st.composite
def script_body(draw: st.DrawFn, depth: int = 0) -> list[str]:
    """The lines of a script, many of them without a semicolon."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 5))):
        name, other = draw(NAMES), draw(NAMES)
        inner = draw(script_body(depth + 1)) if depth < 2 else [f"return {other}"]
        methods = [[f"{draw(NAMES)}({other}) {{", f"return {name}", "}"] for _ in range(draw(st.integers(0, 2)))]
        lines += draw(
            st.sampled_from(
                [
                    [f"function {name}({other}) {{", *inner, "}"],
                    [f"class {name} extends {other} {{", f"{name} = {other}", *chain.from_iterable(methods), "}"],
                    [
                        f"class {name} {{",
                        *chain.from_iterable(methods),
                        f"static {other}",
                        *chain.from_iterable(methods),
                        f"{name};",
                        "}",
                    ],
                    [f"{name} = function () {{", *inner, "}"],
                    [f"{name} = {other}"],
                    [f"{name} = {{ {other} }}"],
                    [f"({name})({other})"],
                    [f"[{name}].map({other})"],
                    [f"`function {name}() {{ ${{{other}}} }}`"],
                    [f"/{name}/.test({other})"],
                    [f"++{name}"],
                    [f"{name}({other}, () => {{", *inner, "});"],
                    [f"if ({name}) {other}", f"else {name}"],
                    [f"// {name} {other}"],
                    [f"let {name} = {other};"],
                    [""],
                ]
            )
        )
    return lines


@given(script_body(), st.lists(st.integers(0, 200), min_size=1, max_size=4), st.sampled_from(["javascript", "tsx"]))
@settings(max_examples=150)
def test_any_script_is_told_in_part_as_in_the_whole(body: list[str], places: list[int], language: str) -> None:
    _compare("\n".join(body) + "\n", language, places)


def _compare(text: str, language: str, places: list[int]) -> None:
    data = text.encode()
    whole = grammars.parse(data, LANGUAGES_BY_NAME[language])
    assert whole is not None
    lines = sorted({place % len(whole.line_starts) + 1 for place in places})
    part = in_part(data, LANGUAGES_BY_NAME[language], lines)
    assert part is None or told(part, lines) == told(whole, lines), f"{lines}\n{text}"
