"""A SCIP index as the project's second source, and what becomes of one that is stale, foreign, broken, huge or slow."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from tests.codebase.external.shops import PYTHON, PYTHON_INDEX, TYPESCRIPT, TYPESCRIPT_INDEX
from tests.codebase.lookup_project import write

from code_intel_server.codebase.answers import LookupAnswer
from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.external_resolution import SourceSettings
from code_intel_server.codebase.external_resolution import scip as scip_source
from code_intel_server.codebase.references.classify import ReferenceRow

RESOLVED = {"src/till.ts:2": "certain", "src/use.ts:3": "certain"}
KNOWN = {**RESOLVED, "src/use.ts:5": "certain", "src/use.ts:6": "possible"}


def indexed(root: Path, files: Mapping[str, str | bytes], index: bytes | None) -> Explorer:
    """An explorer of a project that has these files and this index."""
    write(root, {**files, **({} if index is None else {"index.scip": index})})
    return Explorer(root, sources=lambda: SourceSettings("index.scip"))


def uses(found: LookupAnswer[ReferenceRow]) -> dict[str, str]:
    """`path:line` → binding."""
    return {f"{row.path}:{row.start_line}": row.binding for row in found.results}


def number(value: int) -> bytes:
    """A varint of protobuf."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + number(value >> 7)


def message(*fields: tuple[int, bytes | str | int]) -> bytes:
    """A message of protobuf."""
    said = b""
    for key, value in fields:
        data = value.encode() if isinstance(value, str) else value
        said += (
            number(key << 3) + number(data)
            if isinstance(data, int)
            else number(key << 3 | 2) + number(len(data)) + data
        )
    return said


def scip(*documents: bytes) -> bytes:
    """A SCIP index."""
    return message((1, message((2, message((1, "tiny"), (2, "1"))))), *((2, one) for one in documents))


def document(path: str, occurrences: Iterable[tuple[int, int, int, str, bool]], *, encoding: int = 0) -> bytes:
    """A document with these names: 0-based line, columns, symbol, whether it is defined there."""
    named = (
        message((1, b"".join(map(number, (line, start, end)))), (2, symbol), (3, int(defines)))
        for line, start, end, symbol, defines in occurrences
    )
    return message((1, path), *((2, one) for one in named), (6, encoding))


def test_what_an_index_of_typescript_knows_is_certain_and_the_answer_names_it(tmp_path: Path) -> None:
    found = indexed(tmp_path, TYPESCRIPT, TYPESCRIPT_INDEX).find_references(at="src/till.ts:2")
    assert uses(found) == KNOWN
    assert found.engine.endswith("SCIP index (scip-typescript 0.4.0)")
    assert found.other == 2


def test_what_an_index_of_python_knows_is_certain(tmp_path: Path) -> None:
    found = indexed(tmp_path, PYTHON, PYTHON_INDEX).find_references("Till.pay")
    certain = [place for place, binding in uses(found).items() if binding == "certain"]
    assert certain == ["till.py:2", "use.py:5", "use.py:7"]
    assert found.engine.endswith("SCIP index (scip-python 0.6.6)")


def test_without_one_the_text_tells(tmp_path: Path) -> None:
    found = Explorer(write(tmp_path, TYPESCRIPT)).find_references(at="src/till.ts:2")
    assert uses(found) == RESOLVED
    assert "SCIP" not in found.engine


def test_a_definition_that_only_the_index_knows_is_found_with_its_end(tmp_path: Path) -> None:
    found = indexed(tmp_path, TYPESCRIPT, TYPESCRIPT_INDEX)
    answer = found.find_definitions(at="src/use.ts:5:24")
    [row] = answer.results
    assert (row.path, row.start_line, row.scope, answer.notes) == ("src/till.ts", 2, "Till", ())
    assert "SCIP index" in answer.engine
    unknown = found.find_definitions(at="src/use.ts:6:19")
    assert "index.scip names nothing at src/use.ts:6:19: resolved without it" in unknown.notes


def test_a_renamed_import_is_a_use(tmp_path: Path) -> None:
    found = indexed(tmp_path, TYPESCRIPT, TYPESCRIPT_INDEX).find_references(at="src/till.ts:1:14")
    assert uses(found)["src/use.ts:2"] == "certain"


@pytest.mark.parametrize("text", [
    "// moved down by a line\n" + TYPESCRIPT["src/till.ts"],
    TYPESCRIPT["src/till.ts"].replace("Till", "Desk").replace("Bank", "Bulk").replace("pay", "buy"),
    "class Till { pay() {} }\n",
    "",
], ids=["moved", "renamed", "shorter", "empty"])  # fmt: skip
def test_a_file_that_reads_otherwise_now_is_resolved_without_the_index(tmp_path: Path, text: str) -> None:
    found = indexed(tmp_path, {**TYPESCRIPT, "src/till.ts": text}, TYPESCRIPT_INDEX)
    answer = found.find_references(at="src/use.ts:5:24")
    assert answer.notes[0] == "index.scip saw another content of 1 file, the first src/till.ts"
    assert all(not place.startswith("src/till") for place, binding in uses(answer).items() if binding == "certain")


def test_the_place_asked_for_may_be_in_such_a_file(tmp_path: Path) -> None:
    text = TYPESCRIPT["src/till.ts"].replace("export class Till", "\nexport class Till")
    found = indexed(tmp_path, {**TYPESCRIPT, "src/till.ts": text}, TYPESCRIPT_INDEX).find_references(at="src/till.ts:3")
    assert uses(found) == {"src/till.ts:3": "certain", "src/use.ts:3": "certain"}
    assert "index.scip saw another content of src/till.ts: resolved without it" in found.notes


PAY = ("src/till.ts", [(1, 2, 5, "npm shop `src/till.ts`/Till#pay().", True)])


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (None, "cannot be read: No such file"),
        (b"", "cannot be read: not a SCIP index"),
        (b"not protobuf at all", "cannot be read:"),
        (b"\xff" * 40, "cannot be read: a number without an end"),
        (TYPESCRIPT_INDEX[:-40], "cannot be read: not a SCIP index"),
        (message((1, b"x"), (2, document(*PAY)))[:-1] + b"\x12", "cannot be read:"),
        (scip(message((1, "src/till.ts"), (2, b"\x0a\x7f"))), "cannot be read: a field longer than its message"),
        (PYTHON_INDEX, "index.scip does not know src/till.ts"),
        (scip(document("../till.ts", PAY[1]), document("/src/till.ts", PAY[1])), "does not know src/till.ts"),
        (scip(document("src/till.ts", [(1, 900, 905, "x", True)])), "saw another content of src/till.ts"),
        (scip(document("src/till.ts", [(2**60, 0, 3, "x", True)])), "saw another content of src/till.ts"),
    ],
)
def test_a_broken_or_foreign_index_leaves_the_answer_as_it_was_with_one_line(
    tmp_path: Path, index: bytes | None, said: str
) -> None:
    found = indexed(tmp_path, TYPESCRIPT, index).find_references(at="src/till.ts:2")
    assert uses(found) == RESOLVED
    [note] = [note for note in found.notes if "index.scip" in note and not note.startswith("possible: ")]
    assert said in note
    assert note.endswith(": resolved without it")


def test_an_index_that_is_no_file_or_lies_outside_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(write(tmp_path / "shop", TYPESCRIPT) / "index.scip")
    found = Explorer(tmp_path / "shop", sources=lambda: SourceSettings("index.scip"))
    assert any("cannot be read" in note for note in found.find_references(at="src/till.ts:2").notes)
    (tmp_path / "elsewhere.scip").write_bytes(TYPESCRIPT_INDEX)
    (tmp_path / "shop" / "linked.scip").symlink_to(tmp_path / "elsewhere.scip")
    found = Explorer(tmp_path / "shop", sources=lambda: SourceSettings("linked.scip"))
    assert uses(found.find_references(at="src/till.ts:2")) == RESOLVED


def test_of_one_too_large_or_too_slow_to_read_the_limits_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = indexed(tmp_path, TYPESCRIPT, TYPESCRIPT_INDEX)
    monkeypatch.setattr(scip_source, "SCIP_SECONDS", -1.0)
    assert any("took more than" in note for note in found.find_references(at="src/till.ts:2").notes)
    with (tmp_path / "index.scip").open("r+b") as file:
        file.truncate(scip_source.MAX_SCIP_BYTES + 1)  # a hole: nothing is written
    answer = found.find_references(at="src/till.ts:2")
    assert uses(answer) == RESOLVED
    assert any("larger than 1 GB" in note for note in answer.notes)


def test_a_new_index_counts_at_once(tmp_path: Path) -> None:
    found = indexed(tmp_path, TYPESCRIPT, scip(document(*PAY)))
    assert uses(found.find_references(at="src/till.ts:2")) == RESOLVED
    (tmp_path / "index.scip").write_bytes(TYPESCRIPT_INDEX)
    assert uses(found.find_references(at="src/till.ts:2")) == KNOWN


BEFORE = "'käse😀'.length; "


@pytest.mark.parametrize(
    ("encoding", "start"), [(1, len(BEFORE.encode())), (2, len(BEFORE) + 1), (0, len(BEFORE) + 1), (3, len(BEFORE))]
)
def test_columns_are_counted_as_the_document_says(tmp_path: Path, encoding: int, start: int) -> None:
    index = scip(document("a.js", [(0, start, start + 3, "local 1", True)], encoding=encoding))
    found = indexed(tmp_path, {"a.js": f"{BEFORE}pay()\n"}, index).find_definitions(at=f"a.js:1:{len(BEFORE) + 1}")
    assert [(row.path, row.start_line) for row in found.results] == [("a.js", 1)]
    assert "SCIP" in found.engine


def test_a_language_that_no_resolver_of_ours_reads_is_known_by_the_index(tmp_path: Path) -> None:
    files = {"a.rb": "class Till\n  def pay; end\nend\n", "b.rb": "till.pay\nbank.pay\n"}
    till, bank = "gem shop 1 Till#pay().", "gem shop 1 Bank#pay()."
    index = scip(
        document("a.rb", [(1, 6, 9, till, True)]), document("b.rb", [(0, 5, 8, till, False), (1, 5, 8, bank, False)])
    )
    found = indexed(tmp_path, files, index)
    answer = found.find_references(at="a.rb:2:7")
    assert (uses(answer), answer.other) == ({"a.rb:2": "certain", "b.rb:1": "certain"}, 1)
    assert [(row.path, row.start_line) for row in found.find_definitions(at="b.rb:1:6").results] == [("a.rb", 2)]
    outside = found.find_definitions(at="b.rb:2:6")
    assert outside.notes == ("outside of the project: shop 1 Bank#pay().",)


def test_where_index_and_text_disagree_neither_is_believed(tmp_path: Path) -> None:
    files = {"a.py": "def pay(): ...\n\n\npay()\n"}
    index = scip(document("a.py", [(0, 4, 7, "pip a pay().", True), (3, 0, 3, "pip b pay().", False)]))
    found = indexed(tmp_path, files, index).find_references(at="a.py:1")
    assert uses(found) == {"a.py:1": "certain", "a.py:4": "possible"}
