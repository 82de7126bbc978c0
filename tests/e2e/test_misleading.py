"""Answers that once misled an agent, asked of a real server: each lookup says what is there, and no more."""

from collections.abc import Iterator

import pytest

from tests.e2e.driver import Fields, Server, repository

FILES = {
    "rich/console.py": "class ConsoleOptions:\n    max_width: int\n    legacy: bool = False\n\n\n"
    "class Console:\n    def get(self): ...\n\n\ndef width(options: ConsoleOptions):\n    return options.max_width\n",
    "zod/core.ts": "export interface Type { _zod: { output: string } }\nconst _null = 1\nexport { _null as null_ }\n"
    'export type output<T extends Type> = T["_zod"]["output"]\nexport function run(type: Type) { return type._zod }\n',
    "zod/use.ts": "import { null_ } from './core'\nexport const one = null_\nexport const two = [null_, null_]\n",
    "jiff/Cargo.toml": '[package]\nname = "jiff"\n',
    "jiff/src/civil.rs": "impl Timestamp { pub fn civil() {} }\nimpl Clone for Timestamp { }\n",
    "jiff/src/lib.rs": "pub use crate::timestamp::Timestamp;\nmod civil;\nmod timestamp;\n",
    "jiff/src/timestamp.rs": "/// A moment.\npub struct Timestamp { second: i64 }\nimpl Timestamp { pub fn now() {} }\n",
    "tests/spec.js": "describe('a cart', () => {\n  it('pays', () => {\n    pay()\n  })\n})\n;(function () {\n  pay()\n})()\n",
    "many.py": "def pay(): ...\n\n\n" + "pay()\n" * 60,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(repository(tmp_path_factory.mktemp("misleading") / "repo", FILES)) as running:
        yield running


def rows(answer: Fields) -> list[str]:
    """`path:line` of each row, in order."""
    return [
        f"{group['path']}:{row.partition(':')[0]}" if isinstance(row, str) else f"{group['path']}:{row['start_line']}"
        for group in answer["results"]
        for row in group["rows"]
    ]


def test_a_member_of_a_class_that_does_not_exist_is_refused_with_the_nearest(server: Server) -> None:
    refusal = server.call("find_references", symbol="NoSuchClass.get")
    assert "NoSuchClass.get" in refusal["message"]
    assert "Console.get" in refusal["message"]
    nothing = server.call("find_definitions", symbol="NoSuchClass.get")
    assert (nothing["total"], nothing["notes"]) == (0, ["NoSuchClass.get is not known here; nearest: Console.get"])


def test_a_member_that_a_type_names_as_text_is_a_use(server: Server) -> None:
    assert rows(server.call("find_references", symbol="Type._zod")) == [f"zod/core.ts:{line}" for line in (1, 4, 5)]


def test_the_uses_of_a_renamed_export_are_found(server: Server) -> None:
    answer = server.call("find_references", at="zod/core.ts:2")
    assert set(rows(answer)) == {"zod/core.ts:2", "zod/core.ts:3", *(f"zod/use.ts:{line}" for line in (1, 2, 3))}


def test_an_annotated_field_is_known_by_its_class(server: Server) -> None:
    assert rows(server.call("find_definitions", symbol="ConsoleOptions.max_width")) == ["rich/console.py:2"]
    used = server.call("find_references", symbol="ConsoleOptions.max_width")
    assert rows(used) == ["rich/console.py:2", "rich/console.py:11"]


@pytest.mark.parametrize("symbol", ["Timestamp", "jiff::Timestamp", "crate::timestamp::Timestamp"])
def test_a_type_comes_before_the_blocks_that_implement_it(server: Server, symbol: str) -> None:
    assert rows(server.call("find_definitions", symbol=symbol))[0] == "jiff/src/timestamp.rs:2"


def test_a_page_that_leaves_rows_out_never_says_that_it_is_complete(server: Server) -> None:
    for tool, asked in (("find_references", {"symbol": "pay"}), ("search_text", {"patterns": "pay"})):
        first = server.call(tool, limit=5, **asked)
        assert (first["truncated"], first["complete"]) == (True, False)
        assert server.call(tool, limit=1000, **asked)["complete"] is True


def test_no_function_is_named_by_brackets(server: Server) -> None:
    for line in (3, 7):
        found = server.call("get_function_at_line", path="tests/spec.js", line=line)
        assert "()" not in [row.get("symbol") for row in found["results"]]
