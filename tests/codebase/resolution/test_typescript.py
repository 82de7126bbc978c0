"""Resolution of TypeScript and JavaScript: which definition a name means where it stands."""

import re
import time
from pathlib import Path

import pytest
from tests.codebase.lookup_project import explorer, write
from tests.codebase.resolution.meanings import bindings, meaning

from code_intel_server.codebase.files.project import ProjectScope
from code_intel_server.codebase.resolution.resolver import Resolver

SHOP = """\
export interface Priced { price(): number; owner?: Till }
export class Basket<T> implements Priced {
  till: Till; first!: T
  constructor(private readonly desk: Till) { this.till = desk }
  price() { return 1 }
  get open(): Till { return this.desk }
  self(): this { return this }
}
export class Till { ring(): void {} }
export const made = (): Basket<Till> => new Basket(new Till())
export function each(call: (basket: Basket<Till>) => void) {}
export enum Kind { Small, Large }
export type Options = { verbose?: boolean } & Priced
const hidden = 1
export { hidden as shown }
export default made
"""


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("import { Basket } from './shop'; let b: §Basket", 2),
        ("import { Basket as B } from './shop'; new §B()", 2),
        ("import * as s from './shop'; s.§made()", 10),
        ("import { made } from './shop.js'; made().till.§ring()", 9),
        ("import { made } from './shop'; made().first.§ring()", 9),
        ("import { made } from './shop'; const { till } = made(); till.§ring()", 9),
        ("import { made } from './shop'; made().self().open.§ring()", 9),
        ("import { each } from './shop'; each((b) => b.§price())", 5),
        ("import { each } from './shop'; each(({ till: t }) => t.§ring())", 9),
        ("import { Kind } from './shop'; Kind.§Large", 12),
        ("import { Options } from './shop'; const o: Options = { §verbose: true }", 13),
        ("import { Basket } from './shop'; class Rich extends Basket<number> { f() { this.§price() } }", 5),
        ("import { shown } from './shop'; §shown", 14),
        ("import anything from './shop'; §anything()", 10),
        ("import { Basket } from './shop'; function f(b: Basket<any>[]) { for (const x of b) x.§price() }", 5),
        (
            "import { made } from './shop'; async function f(p: Promise<ReturnType<typeof made>>) { (await p).§price() }",
            5,
        ),
        ("import { made } from './shop'; [made()].map((b) => b.§till)", 3),
        ("import { Till } from './shop'; function f(this: Till) { this.§ring() }", 9),
        ("import { Basket } from './barrel'; new §Basket()", 2),
        ("import { Basket } from '@shop/core'; new §Basket()", 2),
    ],
)
def test_a_name_means_what_blocks_imports_and_types_say(tmp_path: Path, code: str, line: int) -> None:
    files = {
        "shop.ts": SHOP,
        "barrel.ts": "export * from './shop'\n",
        "package.json": '{"name": "@shop/core", "main": "shop.ts"}',
    }
    assert meaning(tmp_path, {**files, "use.ts": code + "\n"}) == [f"shop.ts:{line}"]


def test_a_renamed_export_is_followed_to_its_uses(tmp_path: Path) -> None:
    files = {
        "core.ts": "const _null = 1\nexport { _null as null_, _null as nil }\n",
        "index.ts": "export * from './core'\n",
        "use.ts": "import { nil as nothing, null_ } from './index'\nnull_; nothing\n",
    }
    assert bindings(tmp_path, files, "core._null") == {
        "core.ts:1": "certain",
        "core.ts:2": "certain",
        "use.ts:1": "certain",
        "use.ts:2": "certain",
    }


MERGED = {
    "kind.ts": "export interface Kind { size: number }\nexport const Kind = make()\nexport class Both {}\nexport interface Both {}\n",
    "use.ts": "import { Kind, Both } from './kind'\nlet a: Kind\nKind()\nlet b: typeof Kind\nlet c: Both\nnew Both()\n",
}


@pytest.mark.parametrize(
    ("at", "lines"),
    [
        ("kind.ts:1", ["kind.ts:1", "use.ts:1", "use.ts:2"]),
        ("use.ts:2:8", ["kind.ts:1", "use.ts:1", "use.ts:2"]),
        ("kind.ts:2", ["kind.ts:2", "use.ts:1", "use.ts:3", "use.ts:4"]),
        ("use.ts:3", ["kind.ts:2", "use.ts:1", "use.ts:3", "use.ts:4"]),
        ("kind.ts:3", ["kind.ts:3", "kind.ts:4", "use.ts:1", "use.ts:5", "use.ts:6"]),
    ],
)
def test_a_type_and_a_value_of_one_name_are_told_apart_by_where_it_stands(
    tmp_path: Path, at: str, lines: list[str]
) -> None:
    assert bindings(tmp_path, MERGED, at=at) == dict.fromkeys(lines, "certain")


def test_modules_of_node_are_followed(tmp_path: Path) -> None:
    files = {
        "lib.js": "function make() {}\nexports.other = 1\nmodule.exports = { make }\n",
        "use.js": "const { make } = require('./lib')\n§make()\n",
    }
    assert "lib.js:3" in meaning(tmp_path, files)


def test_an_interface_and_what_implements_it_are_one_in_references(tmp_path: Path) -> None:
    use = "import { Priced, Till } from './shop'\nfunction f(p: Priced, t: Till) { p.price(); t.price() }\n"
    found = bindings(tmp_path, {"shop.ts": SHOP, "use.ts": use}, "Basket.price")
    assert found == {"shop.ts:1": "certain", "shop.ts:5": "certain", "use.ts:2": "certain"}


def test_import_cycles_end(tmp_path: Path) -> None:
    files = {
        "a.ts": "export * from './b'\n",
        "b.ts": "export * from './a'\n",
        "use.ts": "import { x } from './a'\n§x\n",
    }
    assert meaning(tmp_path, files)[0].startswith(("which x is meant", "outside"))


def test_an_attribute_of_markup_is_a_property_of_its_component_or_element(tmp_path: Path) -> None:
    shop = "type Props = { price: number }\nexport const Tag = (props: Props) => null\n"
    types = "declare namespace JSX {\n interface Link { href: string }\n interface IntrinsicElements { a: Link }\n}\n"
    files = {"shop.tsx": shop, "types.d.ts": types}
    for number, (code, where) in enumerate((("<Tag §price={1} />", "shop.tsx:1"), ("<a §href='x' />", "types.d.ts:2"))):
        use = f"import {{ Tag }} from './shop'\nexport const x = {code}\n"
        assert meaning(tmp_path / str(number), {**files, "use.tsx": use}) == [where]


def test_an_object_that_is_set_to_what_holds_it_ends(tmp_path: Path) -> None:
    code = """class Command {
  constructor() {
    this._output = { write: (text) => text }
    this._output = this._output
  }
  show() { return this._output.§write('a') }
}
"""
    assert meaning(tmp_path, {"lib.js": code}) == ["lib.js:3"]


def test_a_member_by_its_name_as_text_is_a_use(tmp_path: Path) -> None:
    code = (
        "export interface Schema { _def: { kind: string } }\n"
        "export type Kind<T extends Schema> = T['_def']['kind']\n"
        "export function of(schema: Schema) { return schema['_def'] }\n"
        "export const said = '_def'\n"
    )
    assert bindings(tmp_path, {"a.ts": code}, "Schema._def") == {f"a.ts:{line}": "certain" for line in (1, 2, 3)}


ASSIGNED = {
    "app.js": "const app = module.exports = {}\napp.render = function render(view) { return view }\n",
    "use.js": "const app = require('./app')\napp.render('a')\nother.render('b')\n",
    "res.js": "res.render = function (view) { return view }\n",
}


def test_a_function_that_an_object_is_given_is_its_member(tmp_path: Path) -> None:
    found = bindings(tmp_path, ASSIGNED, "app.render")
    assert found == {"app.js:2": "certain", "use.js:2": "certain"}
    rows = explorer(tmp_path, ASSIGNED).find_references(at="app.js:2").results
    assert {(row.path, row.start_line) for row in rows if row.binding == "certain"} == {("app.js", 2), ("use.js", 2)}


def test_a_function_that_something_unknown_is_given_is_told_from_those_that_are_known(tmp_path: Path) -> None:
    found = explorer(tmp_path, ASSIGNED).find_references("res.render")
    assert {f"{row.path}:{row.start_line}": row.binding for row in found.results} == {
        "res.js:1": "certain",
        "use.js:3": "possible",
    }
    assert found.other == 2


def test_no_use_of_a_kind_or_below_a_path_is_no_unknown_name(tmp_path: Path) -> None:
    found = explorer(tmp_path, {**ASSIGNED, "sub/a.py": "import os.path\nos.path.join('a')\n", "sub/b.py": "join()\n"})
    assert found.find_references("res.render", kinds=("import",)).total == 0
    assert found.find_references("os.path.join", path="app.js").total == 0


def test_a_barrel_passes_on_what_its_files_do_not_spell(tmp_path: Path) -> None:
    files = {
        "shop.ts": "export const till = 1\n",
        "inner.ts": "export * from './shop'\n",
        "other.ts": "export const desk = 2\n",
        "index.ts": "export * from './other'\nexport * from './inner'\n",
        "use.ts": "import { till } from './index'\n§till\n",
    }
    assert meaning(tmp_path, files) == ["shop.ts:1"]


@pytest.mark.parametrize(("count", "known"), [(20, True), (300, False)])
def test_a_union_is_all_its_types_unless_they_are_more_than_anybody_asks_for(
    tmp_path: Path, count: int, known: bool
) -> None:
    types = "".join(f"export interface T{number} {{ till: number }}\n" for number in range(count))
    union = " | ".join(f"T{number}" for number in range(count))
    found = meaning(tmp_path, {"shop.ts": f"{types}export function f(x: {union}) {{ x.§till }}\n"})
    assert len(found) == (count if known else 1)


def test_a_package_that_git_ignores_is_none_of_the_projects(tmp_path: Path) -> None:
    files = {
        ".gitignore": "built/\n",
        "built/till/package.json": '{"name": "till"}\n',
        "built/till/index.ts": "export const ring = 1\n",
        "packages/a/desk/package.json": '{"name": "desk"}\n',
        "packages/a/desk/index.ts": "export const open = 1\n",
    }
    assert meaning(tmp_path, {**files, "x/a.ts": "import { open } from 'desk'\n§open\n"}) == [
        "packages/a/desk/index.ts:1"
    ]
    assert "outside" in meaning(tmp_path, {**files, "x/a.ts": "import { ring } from 'till'\n§ring\n"})[0]


TYPED = """\
export interface Def { kind: string }
export interface Schema<D extends Def = Def> { def: D; parse(): void }
export interface TextDef extends Def { pattern: string }
export interface Text extends Schema<TextDef> {}
export interface Maker<T extends { def: any }, D = T["def"]> { new (def: D): T }
export declare function maker<T extends { def: any }>(name: string, set: (made: T) => void): Maker<T>
export declare function wait<E extends object>(kind?: E[]): Promise<E>
export type Made<T extends Schema> = { new (def: T["def"]): T }
export type Same<T> = { [K in keyof T]: T[K] }
export type Chosen<T> = T extends string ? Text : never
export class Box<T extends object> { item: T }
"""


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("const x: Maker<Text> = maker('x', (made) => { made.§parse() })", 2),
        ("maker<Text>('x', (made) => { made.def.§pattern })", 3),
        ("declare const M: Maker<Text>; new M({ §pattern: 'a' })", 3),
        ("declare const M: Made<Text>; new M({ §pattern: 'a' })", 3),
        ("declare const M: Made<Text>; new M({}).def.§pattern", 3),
        ("function f(x: Schema) { x.def.§kind }", 1),
        ("function f(x: Same<Text>) { x.§parse() }", 2),
        ("function f(x: Chosen<string>) { x.§parse() }", 2),
        ("wait<Text>().then(); async function f() { (await wait<Text>()).§parse() }", 2),
        ("const all = new Map<string, Text>(); all.get('a').§parse()", 2),
        ("declare const x: Text; expect<typeof x.def.§pattern>().toBe<'a' | 'b'>()", 3),
    ],
)
def test_type_parameters_are_what_a_call_a_type_and_its_place_make_of_them(
    tmp_path: Path, code: str, line: int
) -> None:
    names = "import { Box, Chosen, Made, Maker, Same, Schema, Text, maker, wait } from './typed'\n"
    assert meaning(tmp_path, {"typed.ts": TYPED, "use.ts": f"{names}{code}\n"}) == [f"typed.ts:{line}"]


@pytest.mark.parametrize(
    ("code", "binding"),
    [
        ("const made = { kind: 'a' }", None),
        ("console.log({ kind: 'a' })", None),
        ("absent<Def>({ kind: 'a' })", "possible"),
        ("run(...all, { kind: 'a' })", "possible"),
        ("export const f = (run) => run(() => ({ kind: 'a' }))", "possible"),
        ("for (const x of y) yield { kind: 'a' }", "possible"),
        ("let found = null; found = find(); found.kind", "possible"),
        ("async function f() { (await wait()).kind }", "possible"),
        ("new Box(anything).item.kind", "possible"),
        ("type Last<T> = T extends [infer R extends object] ? R['kind'] : never", "possible"),
        ("type At<T, K extends keyof T> = T[K]['kind']", "possible"),
        ("type All<T> = { [K in keyof T]: K['kind'] }", "possible"),
    ],
)
def test_only_what_is_proven_to_be_another_is_left_out(tmp_path: Path, code: str, binding: str | None) -> None:
    use = f"import {{ Box, Def, wait }} from './typed'\nimport {{ absent, run }} from 'absent'\n{code}\n"
    found = bindings(tmp_path, {"typed.ts": TYPED, "use.ts": use}, "Def.kind")
    assert found == {"typed.ts:1": "certain", **({"use.ts:3": binding} if binding else {})}


UNION = """\
export class Coin { readonly kind!: "coin"; worth = 1 }
export class Note { readonly kind!: "note"; worth = 2 }
export class Card { readonly kind!: "card" | "token"; worth = 3 }
export type Money = Coin | Note | Card
export interface Pay { (money: Money): void }
"""


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("m.§worth", [1, 2, 3]),
        ("if (m.kind === 'note') m.§worth", [2]),
        ("if (m.kind !== 'note') m.§worth", [1, 3]),
        ("if (m.kind === 'note') return; m.§worth", [1, 3]),
        ("if (m.kind === 'note') { go() } m.§worth", [1, 2, 3]),
        ("if (m.kind === 'note') { go() } else m.§worth", [1, 3]),
        ("if (!(m.kind === 'note' || m instanceof Coin)) m.§worth", [3]),
        ("if (m.kind === 'note' || go()) m.§worth", [1, 2, 3]),
        ("m.kind === 'token' && m.§worth", [3]),
        ("m.kind === 'coin' ? 1 : m.§worth", [2, 3]),
        ("if (m instanceof Coin) m.§worth", [1]),
        ("if (n.kind === 'note') m.§worth", [1, 2, 3]),
        ("switch (m.kind) { case 'coin': break; case 'note': { m.§worth } }", [2]),
        ("switch (m.kind) { case 'coin': case 'note': m.§worth }", [1, 2, 3]),
    ],
)
def test_of_a_union_is_left_what_the_conditions_around_a_place_leave(
    tmp_path: Path, body: str, lines: list[int]
) -> None:
    use = f"import {{ Coin, Money, Pay }} from './money'\nexport const pay: () => Pay = () => (m) => {{ {body} }}\n"
    assert meaning(tmp_path, {"money.ts": UNION, "use.ts": use}) == [f"money.ts:{line}" for line in lines]


def test_what_is_added_to_another_module_may_be_what_others_add_to_it(tmp_path: Path) -> None:
    adds = 'declare module "./index" {{\n  interface Known {{ {} }}\n}}\nexport {{}}\n'
    files = {"index.ts": "export {}\n", "a.ts": adds.format("a: 1"), "b.ts": adds.format("b: 1")}
    assert bindings(tmp_path, files, at="a.ts:2") == {"a.ts:2": "certain", "b.ts:2": "possible"}


def test_what_a_function_sets_on_its_declared_this_is_a_member_of_that(tmp_path: Path) -> None:
    code = "export interface Till { ring: number }\nexport function set(this: Till) {\n  this.ring = 1\n}\n"
    assert bindings(tmp_path, {"a.ts": code}, "Till.ring") == {"a.ts:1": "certain", "a.ts:3": "certain"}


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("if (m.kind === 'note') return; m = next(); m.§worth", [1, 2, 3]),
        ("if (m.kind === 'note') { while (go()) { for (m of all) go() } m.§worth }", [1, 2, 3]),
        ("if (m.kind === 'note') { while (go()) { ({ m } = next()) } m.§worth }", [1, 2, 3]),
        ("if (m.kind === 'note') { while (go()) { [, m = m] = next() } m.§worth }", [1, 2, 3]),
        ("if (m.kind === 'note') { (m) = next(); m.§worth }", [1, 2, 3]),
        ("if (m.kind === 'note') return () => m.§worth; m = next()", [1, 2, 3]),
        ("const set = () => { m = next() }; if (m.kind === 'note') { set(); m.§worth }", [1, 2, 3]),
        ("if (m.kind === 'note') { m.worth = 3; n.m = m; m.§worth }", [2]),
        ("if (m.kind === 'note') { for (const n of m) n(m); ({ m: n } = m); m.§worth }", [2]),
        ("if (m.kind === 'note') return () => m.§worth", [2]),
    ],
)
def test_what_a_condition_says_of_a_name_is_not_known_of_what_it_is_set_to(
    tmp_path: Path, body: str, lines: list[int]
) -> None:
    use = f"import {{ Money, Pay }} from './money'\nexport const pay: () => Pay = () => (m) => {{ {body} }}\n"
    assert meaning(tmp_path, {"money.ts": UNION, "use.ts": use}) == [f"money.ts:{line}" for line in lines]


@pytest.mark.parametrize(
    ("between", "lines"),
    [
        ("this.m = next();", [1, 2, 3]),
        ("this.n.m = next();", [2]),
        ("go();", [2]),
        ("this.m = next(); return () =>", [1, 2, 3]),
    ],
)
def test_what_a_condition_says_of_a_member_holds_until_it_is_set(
    tmp_path: Path, between: str, lines: list[int]
) -> None:
    body = f"if (this.m.kind !== 'note') return; {between} this.m.§worth"
    till = f"class Till {{ m!: Money; start() {{ this.m = next() }} pay() {{ {body} }} }}"
    use = f"import {{ Money }} from './money'\n{till}\n"
    assert meaning(tmp_path, {"money.ts": UNION, "use.ts": use}) == [f"money.ts:{line}" for line in lines]


def _nested_arguments(base: str, name: str) -> list[str]:
    """Each after those that it holds, and used before the next, so that what it means is known there."""
    rows = [
        f"type {name}{each + 1} = Ext<{name}{each}, {name}{each}, {name}{each}>\nconst {name.lower()}{each} = (x: {name}{each}) => x.held"
        for each in range(24)
    ]
    return [f"type {name}0 = {base}", *rows]


def test_types_that_hold_each_other_three_times_are_not_compared_to_the_end(tmp_path: Path) -> None:
    last = "interface X extends P12, Q12, Ext<P12 | Q12> { held: number }\nexport const use = (x: X) => x.held"
    rows = ["import { Ext } from 'absent'", *_nested_arguments("string", "P"), *_nested_arguments("string", "Q"), last]
    began = time.thread_time()
    assert bindings(tmp_path, {"a.ts": "\n".join(rows)}, "X.held") == {"a.ts:100": "certain", "a.ts:101": "certain"}
    assert time.thread_time() - began < 4


MANY = " | ".join(f"'{each}'" for each in range(1100))


@pytest.mark.parametrize(
    ("code", "binding"),
    [
        (f"export const f = (m: Coin | {{ kind: {MANY} }}) => {{ if (m.kind === 'coin') m.worth }}", "certain"),
        ("export const c: Coin = { worth: 1 }" + " || x" * 400, "certain"),
        ("export const c: Coin = " + "(" * 400 + "{ worth: 1 }" + ")" * 400, "certain"),
        ("export const c: Coin = " + "x ? y : " * 400 + "{ worth: 1 }", "certain"),
        ("export const c: Coin = " + "[" * 400 + "{ worth: 1 }" + "]" * 400, "possible"),
        ("export const f = (m: Money) => { if (" + "x && " * 1100 + "m.kind === 'coin') m.worth }", "possible"),
    ],
)
def test_what_nests_deeper_than_can_be_followed_ends_no_lookup(tmp_path: Path, code: str, binding: str) -> None:
    use = f"import {{ Coin, Money }} from './money'\nexport const own = (coin: Coin) => coin.worth\n{code}\n"
    found = bindings(tmp_path, {"money.ts": UNION, "use.ts": use}, "Coin.worth")
    assert found == {"money.ts:1": "certain", "use.ts:2": "certain", "use.ts:3": binding}


def test_hundreds_of_conditions_around_a_place_end_with_the_time(tmp_path: Path) -> None:
    body = "if (m.kind !== 'note') { m.worth;\n" * 3000 + "}" * 3000
    use = f"import {{ Money }} from './money'\nexport function f(m: Money) {{\n{body}\n}}\n"
    write(tmp_path, {"money.ts": UNION, "use.ts": use})
    resolver = Resolver(ProjectScope(tmp_path), 1.0)
    target = resolver.target_at("money.ts", 1, UNION.index("worth") + 1)
    began = time.thread_time()
    for line in range(3002, 2, -1):
        list(resolver.bindings(target, "use.ts", line, re.compile(rb"worth")))
    assert resolver.late
    assert time.thread_time() - began < 2.5
