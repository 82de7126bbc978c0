"""Generated inputs by the hundred, each judged: checkpoints, session ids, YAML, evidence, patterns, characters (rows 10-12, 36-46)."""

import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from benchmarks.faults.results import Record, size, spread
from benchmarks.faults.scenarios import FILES, frame, moves, plan, start
from benchmarks.faults.sentinel import Sentinel

from code_intel_server.codebase.explorer import Explorer
from code_intel_server.common.printable import printable
from code_intel_server.contract.nodes import Broken
from code_intel_server.contract.strict_yaml import parse_yaml
from code_intel_server.errors import Rejected, Unavailable
from code_intel_server.flow.phases import Flags
from code_intel_server.flow.session import SessionState
from tests.e2e.driver import Server, repository
from tests.faults.test_wire import Lenient, kinds_of_path
from tests.flow.world import Session, World
from tests.workspace.test_checkpoints import SESSION, resealed, store

HEAD = {"schema_version": 1, "generation": 1, "session_id": SESSION}


def body() -> dict[str, Any]:
    """The checkpoint of a session in the middle of its work, as JSON makes it."""
    session = Session(Flags(no_doc=True, fast=True), world=World())
    session.frame()
    session.state.added_files["app.py"] = "holds the function to change"
    session.to_verify().send(passed=False, verifier_used="tests", details="fails")
    read: dict[str, Any] = json.loads(json.dumps(session.state.to_checkpoint()))
    return read


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every member of every object and list."""
    rows: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        rows = list(value.items())
    elif isinstance(value, list):
        rows = list(enumerate(value))
    for key, inner in rows:
        yield (*path, key)
        yield from places(inner, (*path, key))


def edited(value: Any, path: tuple[str | int, ...], new: object) -> Any:
    """A copy with another value at one place."""
    copy = json.loads(json.dumps(value))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return copy


NO_JSON = (
    "NaN", "Infinity", "-Infinity", "1" * 5000, "-" + "9" * 6000, "1e999", "-1e400", "01", "0x10", "'x'", "True", "+1",
)  # fmt: skip


def broken_texts(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """A whole checkpoint in which one value is no JSON number we take, or one name stands twice; what was done, and it."""
    chance, whole = random.Random(seed), {**HEAD, **body()}  # noqa: S311 - repeatable, not secret
    everywhere = list(places(whole))
    for number in range(count):
        path = chance.choice(everywhere)
        if number % 3 and isinstance(path[-1], str):
            inner: Any = whole
            for key in path[:-1]:
                inner = inner[key]
            text = json.dumps(edited(whole, (*path[:-1], f"@@{path[-1]}"), chance.choice([inner[path[-1]], None, 1])))
            yield f"{path} twice", text.replace('"@@', '"', 1).removeprefix("{").encode()
        else:
            raw = NO_JSON[number % len(NO_JSON)]
            text = json.dumps(edited(whole, path, "@@")).replace('"@@"', raw, 1)
            yield f"{path} = {raw[:9]}", text.removeprefix("{").encode()


def test_no_name_twice_and_no_odd_number_in_a_checkpoint_is_taken(tmp_path: Path, record_property: Record) -> None:
    count = size(120, 600)
    for what, rest in broken_texts(10, count):
        resealed(tmp_path, rest)
        try:
            loaded = store(tmp_path).load(SESSION)
            SessionState.from_checkpoint(loaded.body)
        except Unavailable:
            continue
        raise AssertionError(f"{what} was taken")
    record_property("executions", count)


WRONG: tuple[object, ...] = (None, True, 0, -1, 10**30, 1.5, "", "../x\0", [], [1], {}, {"x": 1})


def test_each_field_of_a_checkpoint_with_each_wrong_value_is_refused_or_taken_as_it_stands(
    record_property: Record,
) -> None:
    """Nothing is coerced: what is accepted comes out again exactly as it was written."""
    whole, count = body(), 0
    everywhere = list(places(whole))
    assert len(everywhere) > 100
    for path, value in spread(list(product(everywhere, WRONG)), 400):
        given = edited(whole, path, value)
        count += 1
        try:
            restored = SessionState.from_checkpoint(given)
        except Unavailable:
            continue
        again = json.loads(json.dumps(restored.to_checkpoint()))
        again["orchestrator_state"]["phase_state"]["step"] = given["orchestrator_state"]["phase_state"].get("step")
        assert within(given, again), (path, value)
    record_property("executions", count)


def within(given: object, again: object) -> bool:
    """Whether all that was given is there, of the same kind; what was left out may be there with its default."""
    if isinstance(given, dict) and isinstance(again, dict):
        return all(name in again and within(value, again[name]) for name, value in given.items())
    if isinstance(given, int) and isinstance(again, float):
        return again == float(given) and not isinstance(given, bool)
    return isinstance(given, bool) == isinstance(again, bool) and given == again


def test_each_field_of_our_own_with_each_wrong_value_is_refused(tmp_path: Path, record_property: Record) -> None:
    cases = list(product(HEAD, WRONG))
    for name, value in cases:
        text = json.dumps({**HEAD, name: value, **body()})
        resealed(tmp_path, text.removeprefix("{").encode())
        if name == "generation" and type(value) is int:
            continue  # a number, whatever it counts
        with pytest.raises(Unavailable):
            store(tmp_path).load(SESSION)
    record_property("executions", len(cases))


def test_no_kind_of_path_is_a_session_id(tmp_path: Path, record_property: Record) -> None:
    root = repository(tmp_path / "repo", FILES)
    before = Sentinel.of(root)
    ids = spread(
        [*kinds_of_path(root), *(f"{SESSION}{tail}" for tail in ("/", "/..", ".json", " ", "\n", "%00", ";"))], 15
    )
    with Lenient(root) as server:
        for name in ids:
            for tool, arguments in (("get_session_status", {}), ("record_outcome", {"outcome": "failure"})):
                answer = server.try_call(tool, **arguments, session_id=name)
                assert '"success": true' not in answer, (tool, name)
        for name in ids:
            for act in (store(root / ".code-intel/sessions").load, store(root / ".code-intel/sessions").delete):
                with pytest.raises(Rejected, match="checkpoint_not_found"):
                    act(name)
    assert before.changed(Sentinel.of(root)) == []
    record_property("executions", len(ids))


TAGS = ("!!python/object/apply:os.system ['touch MARK']", "!!python/name:os.system", "!!python/module:os ''", "!!str x",
        "!!int 1", "!!binary aGk=", "!!set {a}", "!!omap [a: 1]", "!!timestamp 2001-01-01", "!!null ''", "!!bool yes",
        "!local x", "!<tag:yaml.org,2002:str> x", "!!python/tuple [1]", "!!merge x", "! x")  # fmt: skip
ALIASES = ("&a x", "&a [x]", "&a {x: 1}", "&" + "a" * 300 + " x", "&1 x", "*a", "*unknown", "&a")
HOLDERS = ("a: {}\n", "a:\n  - x\n  - {}\n", "a: [x, {}]\n", "a: {{b: {}}}\n", "a:\n  b:\n    c: {}\n", "x: 1\n---\na: {}\n",
           "a: |\n  text\nb: {}\n", "# c\n\na: {}\nb: 2\n", "? a\n: {}\n")  # fmt: skip


def test_no_tag_and_no_alias_anywhere_in_yaml_is_read(tmp_path: Path, record_property: Record) -> None:
    cases = [holder.format(value) for holder, value in product(HOLDERS, (*TAGS, *ALIASES))]
    cases += [f"{mark} k: 1\n" for mark in ("!!str", "!x", "&a", "*a")]
    cases += [f"a: &a [x]\nb: {{<<: *a, c: {number}}}\n" for number in range(3)]
    os.chdir(tmp_path)
    for text in cases:
        began = time.monotonic()
        with pytest.raises(Broken):
            parse_yaml(text.encode())
        assert time.monotonic() - began < 5, text
    assert not (tmp_path / "MARK").exists()
    assert len(cases) >= 200
    record_property("executions", len(cases))


TAILS = (
    "", ":", ":0", ":1", ":-1", ":1-0", ":2-1", ":1-99999999999999999999", ":1e3", ":0x1", ":１", ":1:1", "#L1", ":NaN",
)  # fmt: skip


def hostile_evidence(root: Path) -> list[str]:
    """Paths of every kind with every kind of line number; the one that tells the truth is not among them."""
    pairs = product(kinds_of_path(root), TAILS)
    rows = list(dict.fromkeys(f"{path}{tail}" for path, tail in pairs))
    random.Random(44).shuffle(rows)  # noqa: S311 - repeatable, not secret
    return [row for row in rows if len(row) < 60_000]


def test_evidence_that_is_no_line_of_the_project_never_completes_a_task(
    tmp_path: Path, record_property: Record
) -> None:
    """The task is not done, so no line of it can be evidence, however it is written."""
    root = repository(tmp_path / "repo", FILES)
    rows = hostile_evidence(root)[: size(20, 1200)]
    with Lenient(root) as server:
        for move in (start, frame, plan):
            place = move(server)
            assert place["success"]
        server.call("check_write_target", path="app.py")
        for row in rows:
            done = [{"item": "Return two", "status": "done", "evidence": row}]
            data = {"task_id": "t1", "checklist": done, "tools_used": ["check_write_target"], "summary": "Done."}
            answer = server.try_call("submit_phase", data=data)
            assert '"success": true' not in answer and "Traceback" not in answer, row
        status = server.call("get_session_status")
        assert (status["phase"], status["step"]) == (place["phase"], place["step"])
        assert moves(root)[3](server)["success"], "the true evidence still is"
    record_property("executions", len(rows))


MARK = "MARKER"
FLAGS = ("pre", "pre-glob", "file", "files", "search-zip", "hostname-bin", "debug", "type-add", "ignore-file", "options",
         "exec", "replace", "include-zero", "help", "version", "stats", "json", "null", "follow", "hidden", "no-ignore",
         "engine", "max-count", "threads", "sort", "output", "upload-pack", "exec-path", "config", "no-index", "ext-diff",
         "open-files-in-pager", "textconv", "edit", "template", "git-dir", "work-tree", "list-languages", "langdef", "f",
         "e", "o", "z", "L", "u", "c", "r", "g", "t", "O")  # fmt: skip


def like_options() -> list[str]:
    """Texts that a program would take for options of its own: ripgrep's, ctags', git's, each in three forms."""
    rows = [text for name in FLAGS for text in _forms("-" if len(name) == 1 else "--", name)]
    return [*dict.fromkeys([*rows, "-", "--", "---", "-- x", "--=", "-\0x"[:1]])]


def _forms(dashes: str, name: str) -> tuple[str, ...]:
    return (f"{dashes}{name}", f"{dashes}{name}={MARK}", f"{dashes}{name} ./{MARK}.sh")


def test_what_looks_like_an_option_is_none_in_any_lookup(tmp_path: Path, record_property: Record) -> None:
    rows = like_options()
    assert len(rows) >= 150
    (tmp_path / "held.txt").write_text("".join(f"@{row}@\n" for row in rows))
    (tmp_path / "a.py").write_text("def f():\n    return 1\n")
    (tmp_path / f"{MARK}.sh").write_text(f"#!/bin/sh\ntouch {MARK}\n")
    (tmp_path / f"{MARK}.sh").chmod(0o755)
    os.chdir(tmp_path)
    found, count = Explorer(tmp_path), 0
    lookups: list[Callable[[str], Any]] = [
        found.find_definitions, found.find_references, found.search_files, found.get_symbols, found.analyze_structure,
        lambda row: found.search_text("f", globs=[row]), lambda row: found.search_text("f", row),
        lambda row: found.analyze_impact([row]), lambda row: found.get_function_at_line(row, 1),
    ]  # fmt: skip
    for number, row in spread(list(enumerate(rows)), 8):
        lines = [each.start_line for each in found.search_text(f"@{row}@", regex=False).results]
        assert lines == [number + 1], row
        assert number + 1 in [each.start_line for each in found.search_text(f"@{re.escape(row)}@").results], row
        for lookup in lookups:
            count += 1
            try:
                answer = lookup(row)
            except Rejected:
                continue
            assert "a.py" not in {getattr(each, "path", "") for each in getattr(answer, "results", ())}, (row, lookup)
    assert {path.name for path in tmp_path.iterdir()} <= {"a.py", "held.txt", f"{MARK}.sh", ".code-intel"}
    record_property("executions", count)


def exploding(count: int) -> list[str]:
    """Expressions that take exponential time in an engine that goes back."""
    atoms = ("a", "[a-z]", "a|a", "a|aa", "\\w", ".", "a?", "(?:a|b|ab)", "a{1,9}", "\\S")
    shapes = ("({})*$", "({}+)+$", "({}*)*b", "(({}+)+)+c", "^({}+)+!$", "({}*)*\\d", "({})+({})+x", "({}+){{2,9}}z",
              "(({})*({})*)*y", "({}|{})*q")  # fmt: skip
    return [shape.format(atom, atom) for shape, atom in product(shapes, atoms)][:count]


def test_no_regular_expression_explodes(tmp_path: Path, record_property: Record) -> None:
    (tmp_path / "a.txt").write_text(("a" * 5_000 + "!\n") * 4)
    found, rows = Explorer(tmp_path), spread(exploding(100), 10)
    for row in rows:
        began = time.monotonic()
        answer = found.search_text(row)
        assert time.monotonic() - began < 10, row
        assert answer.complete or answer.incomplete_because, row
    record_property("executions", len(rows))


STEERING = [chr(code) for code in (*range(1, 0xA0), *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070),
                                   0xAD, 0x61C, 0x180E, 0xFEFF, *range(0xFFF9, 0xFFFC), *range(0xE0001, 0xE0080))
            if printable(chr(code)) != chr(code)]  # fmt: skip


def strings(value: object) -> Iterator[str]:
    """Every text in an answer, names too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings(key)
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def looking(name: str, char: str, number: int) -> list[tuple[str, dict[str, object]]]:
    """Every tool, made to show this file, its name, or the character itself."""
    return [
        ("search_text", {"patterns": f"mark{number}_", "context_lines": 2}),
        ("search_text", {"patterns": f"x{char}y", "regex": False}),
        ("search_files", {"pattern": f"f{number}_*"}),
        ("find_definitions", {"symbol": f"mark{number}_"}),
        ("find_definitions", {"symbol": f"no{char}such"}),
        ("find_references", {"symbol": f"mark{number}_"}),
        ("get_symbols", {"path": name}),
        ("get_function_at_line", {"path": name, "line": 2}),
        ("analyze_structure", {"path": name}),
        ("analyze_impact", {"targets": [f"mark{number}_", char]}),
        ("query", {"question": f"where is mark{number}_ {char} used"}),
        ("semantic_search", {"query": f"mark{number}_ {char}"}),
        ("fetch_chunk_detail", {"chunk_id": f"{name}{char}"}),
        ("check_write_target", {"path": name}),
        ("add_explored_files", {"paths": [name], "reason": f"because {char} is there"}),
        ("review_changes", {"path": name}),
        ("submit_phase", {"data": {"summary": char, char: char, "task_id": char, "tasks": [{"id": char}]}}),
        ("get_session_status", {"session_id": char}),
        ("cleanup_stale_branches", {"dry_run": True}),
        ("record_outcome", {"outcome": "failure", "notes": char, "session_id": char}),
        ("start_session", {"query": f"Show {char}", "flags": {char: True}}),
        ("update_context", {"summary": f"Rules {char}"}),
    ]


def test_no_tool_shows_a_character_that_steers_or_hides(tmp_path: Path, record_property: Record) -> None:
    assert len(STEERING) >= 200
    root = repository(tmp_path / "repo", FILES)
    chosen, count = spread(list(enumerate(STEERING)), 3), 0
    names = {number: f"f{number}_{char}.py" for number, char in chosen}
    for number, char in chosen:
        (root / names[number]).write_text(
            f"def mark{number}_():  # x{char}y\n    return 'x{char}y'\n\n\nmark{number}_()\n"
        )
    with Lenient(root) as server:
        server.call("sync_index")
        for number, char in chosen:
            for tool, arguments in looking(names[number], char, number):
                whole = server.answer_to(tool, **arguments)
                count += 1
                for text in strings(whole):
                    for each in (text, *(strings(json.loads(text)) if text.startswith("{") else ())):
                        assert printable(each) == each or each == printable(each), (tool, number, each)
                        assert char not in each, (tool, number, each[:300])
    record_property("executions", count)


def aliases(root: Path) -> list[str]:
    """Names under which README.md, which nobody explained, may be meant; the links are made."""
    (root / "inside").symlink_to(".")
    (root / "sub").mkdir()
    (root / "sub" / "up").symlink_to("..")
    for number in range(20):
        (root / f"link{number}.md").symlink_to("README.md" if number % 2 else str(root / "README.md"))
        os.link(root / "README.md", root / f"hard{number}.md")
    befores = ("", "./", ".//", "sub/../", "x/../", "inside/", "inside/inside/", "sub/up/", f"{root}/", "../repo/", "././", "sub/./../",
               "\\", "//", "file://", "~/", " ", "\t", "\u200b", "a/b/../../", "app.py/../", "./sub/up/inside/")  # fmt: skip
    names = ("README.md", "readme.md", "README.MD", "Readme.md", "README.md ", "README.md.", "README.md/", "README.md/.",
             "README.md::$DATA", "README%2Emd", "ＲＥＡＤＭＥ.md", "README.md\n", "README.md\0", "./README.md", "README.m\u200bd")  # fmt: skip
    rows = [f"{before}{name}" for before, name in product(befores, names)]
    links = [f"{before}{kind}{n}.md" for before, kind, n in product(befores[:9], ("link", "hard"), range(20))]
    return [*dict.fromkeys([*rows, *links])]


def test_no_alias_of_a_file_that_nobody_explained_may_be_written(tmp_path: Path, record_property: Record) -> None:
    root = repository(tmp_path / "repo", FILES)
    rows = spread(aliases(root), 15)
    with Lenient(root) as server:
        for move in (start, frame, plan):
            assert move(server)["success"]
        for row in rows:
            answer = server.try_call("check_write_target", path=row)
            if '"allowed": true' in answer:  # a new file, whose name is only like it
                assert not (root / json.loads(answer)["results"][0]["path"]).exists(), row
        assert server.call("check_write_target", path="app.py")["allowed"] is True
    record_property("executions", len(rows))


def test_a_write_through_a_hard_link_is_seen_under_both_names(tmp_path: Path) -> None:
    """`check_write_target` knows names; the tree, which is the law, knows content."""
    root = repository(tmp_path / "repo", FILES)
    os.link(root / "README.md", root / "other.md")
    with Server(root) as server:
        for move in (start, frame):
            assert move(server)["success"]
        server.call("add_explored_files", paths=["app.py", "other.md"], reason="holds the function to change")
        task = {"id": "t1", "description": "Return two", "status": "pending", "checklist": ["Return two"]}
        server.accepted(tasks=[task])
        server.call("check_write_target", path="app.py")
        (root / "app.py").write_text("def main():\n    return 2\n")
        (root / "other.md").write_text("changed\n")
        done = {"item": "Return two", "status": "done", "evidence": "app.py:2"}
        answer = server.submit(task_id="t1", checklist=[done], tools_used=["check_write_target"])
        assert answer["success"] is False and "README.md" in json.dumps(answer)
