"""A new test that passes where new functions do nothing is named; those of honest work are not (SPEC 4, Receipts)."""

import os
import sys
from pathlib import Path

import pytest

from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.syntax.mutants import functions, mutant
from code_intel_server.receipts import notary
from code_intel_server.receipts.compare import ALL_SURVIVED
from code_intel_server.receipts.notary import Verdict
from code_intel_server.receipts.report import seen_tests
from code_intel_server.workspace.values import Change, ChangeKind
from tests.receipts.alone import judged, run_alone
from tests.workspace.git_repo import Repo

PYTEST = (sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider")
OLD = {
    "calc.py": "def add(a, b):\n    return a + b\n",
    "test_calc.py": "import calc\n\ndef test_add():\n    assert calc.add(1, 1) == 2\n",
}
NEW = '''

def double(a):
    """Twice as much."""
    # Not a statement.
    if a is None:
        raise ValueError(a)
    return 2 * a


def count(to):
    yield from range(to)


async def later(a): return a + 1


async def several():
    yield 1
    yield 2


def outer(a):
    def inner(b):
        return a * b

    return inner


class Box:
    def __init__(self, size):
        self.size = size

    @property
    def half(self):
        return self.size / 2

    def grown(self, by=1, *, lines=("a",
                                    "b")):
        """Has a docstring"""; self.size += by
        return self
'''
HONEST = """
import asyncio

async def listed():
    return [one async for one in calc.several()]

def test_double(): assert calc.double(2) == 4
def test_count(): assert list(calc.count(2)) == [0, 1]
def test_later(): assert asyncio.run(calc.later(1)) == 2
def test_several(): assert asyncio.run(listed()) == [1, 2]
def test_outer(): assert calc.outer(2)(3) == 6
def test_init(): assert calc.Box(4).size == 4
def test_property(): assert calc.Box(4).half == 2
def test_grown(): assert calc.Box(4).grown().size == 5
def test_raises():
    with pytest.raises(ValueError):
        calc.double(None)
"""
EMPTY = """
import inspect
import pytest
from unittest import mock

def test_mock(monkeypatch):
    monkeypatch.setattr(calc, 'double', mock.Mock(return_value=4))
    assert calc.double(2) == 4
def test_constant():
    calc.double
    assert 2 * 2 == 4
def test_source(): assert '2 * a' in inspect.getsource(calc.double)
def test_file(): assert 'def double' in open(calc.__file__).read()
def test_no_assertion(): calc.double(2)
def test_no_round():
    for number in calc.count(3):
        assert number >= 0
def test_of_a_type(): assert isinstance(calc.Box(1), calc.Box)
def test_nothing_comes_of_it(): assert calc.double is not None
"""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """An empty repository."""
    run_alone(tmp_path, monkeypatch)
    home = os.environ["HOME"]
    made = Repo.make(tmp_path, monkeypatch)
    monkeypatch.setenv("GOCACHE", f"{home}/.cache/go-build")
    return made


def _verdict(repo: Repo, *argv: str) -> Verdict:
    return judged(repo, argv or PYTEST, stall=60, mutants="on")


def _names(ids: tuple[str, ...]) -> set[str]:
    return {id_.rpartition("::")[2] for id_ in ids}


def _asked(verdict: Verdict) -> dict[str, str]:
    changes = [Change(path, ChangeKind.MODIFIED) for path in ("calc.py", "test_calc.py")]
    return seen_tests(verdict, changes, 1).questions


def test_a_test_that_passes_where_new_functions_do_nothing_is_named_and_an_honest_one_is_not(repo: Repo) -> None:
    repo.change(OLD)
    repo.change({"calc.py": OLD["calc.py"] + NEW, "test_calc.py": OLD["test_calc.py"] + EMPTY + HONEST})
    verdict = _verdict(repo)
    empty = {line.split()[1].partition("(")[0] for line in EMPTY.splitlines() if line.startswith("def ")}
    assert _names(verdict.receipt.survived) == empty
    assert len(verdict.receipt.fail_to_pass) == len(empty) + HONEST.count("def test_")
    assert verdict.good, verdict
    seen = seen_tests(verdict, [Change("calc.py", ChangeKind.MODIFIED), Change("test_calc.py", ChangeKind.MODIFIED)], 1)
    assert not seen.questions
    assert seen.counts["survived"] == len(seen.listed["survived"]) == len(empty)
    assert any(
        note.startswith(f"survived: {len(empty)} of {len(verdict.receipt.fail_to_pass)} in fail_to_pass")
        for note in seen.notes
    )
    assert repo.git("status", "--porcelain", "--ignored") == ""


def test_where_all_that_fails_without_the_change_survives_a_reason_is_asked_for_once(repo: Repo) -> None:
    repo.change(OLD)
    repo.change({"calc.py": OLD["calc.py"] + NEW, "test_calc.py": OLD["test_calc.py"] + EMPTY})
    verdict = _verdict(repo)
    assert verdict.receipt.survived == verdict.receipt.fail_to_pass
    assert [*_asked(verdict)] == [ALL_SURVIVED]


def test_a_function_that_was_there_and_one_that_was_moved_do_what_they_did(repo: Repo) -> None:
    repo.change(OLD | {"more.py": "def double(a):\n    return 2 * a\n"})
    repo.git("rm", "-q", "more.py")
    more = "def double(a):\n    return 2 * a\n\ndef new(a):\n    return a\n"
    tests = "\ndef test_moved():\n    assert calc.double(2) == 4\n\ndef test_new():\n    assert calc.new(calc.add(1, 1)) == 2\n"
    repo.change({"calc.py": OLD["calc.py"] + more, "test_calc.py": OLD["test_calc.py"] + tests})
    assert _names(_verdict(repo).receipt.survived) == {"test_moved"}


def test_tests_that_cannot_be_collected_without_what_new_functions_do_are_a_note(repo: Repo) -> None:
    repo.change(OLD)
    new = "\ndef made():\n    return {'a': 1}\n\nTABLE = dict(made())\n"
    test = "\ndef test_table():\n    assert calc.TABLE\n"
    repo.change({"calc.py": OLD["calc.py"] + new, "test_calc.py": OLD["test_calc.py"] + test})
    verdict = _verdict(repo)
    assert verdict.good and not verdict.receipt.survived, verdict
    assert any(
        note.startswith("new tests on emptied new code: of 1 tests none was seen") and "NoneType" in note
        for note in verdict.notes
    )


def test_where_the_time_is_over_a_note_says_so(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notary, "_MUTANT_SECONDS", -1000)
    repo.change(OLD)
    new, test = "\ndef new():\n    return 1\n", "\ndef test_new():\n    calc.new()\n"
    repo.change({"calc.py": OLD["calc.py"] + new, "test_calc.py": OLD["test_calc.py"] + test})
    verdict = _verdict(repo)
    assert verdict.good and not verdict.receipt.survived, verdict
    assert "new tests on emptied new code: of 1 tests none was seen: the time is over" in verdict.notes


def test_where_too_many_files_changed_to_be_looked_at_a_note_says_so(repo: Repo) -> None:
    repo.change(OLD)
    many = {f"more/part_{number}.py": f"def part():\n    return {number}\n" for number in range(100)}
    more = {"calc.py": OLD["calc.py"] + "\ndef new():\n    return 1\n", "README.md": "New.\n"}
    repo.change({**many, **more, "test_calc.py": OLD["test_calc.py"] + "\ndef test_new():\n    calc.new()\n"})
    verdict = _verdict(repo)
    assert verdict.good and not verdict.receipt.survived, verdict
    assert any(note.startswith("new tests on emptied new code: left out") for note in verdict.notes)


def test_a_test_of_mere_time_is_named_and_asks_for_nothing(repo: Repo) -> None:
    slow = "import time\n\ndef wait():\n    time.sleep(0.4)\n"
    repo.change(OLD | {"calc.py": OLD["calc.py"] + slow})
    test = "\ndef test_quick():\n    began = time.monotonic()\n    calc.wait()\n    assert time.monotonic() - began < 0.3\n"
    tests = "import time\n" + OLD["test_calc.py"] + test
    repo.change({"calc.py": OLD["calc.py"] + slow.replace("0.4", "0.001"), "test_calc.py": tests})
    verdict = _verdict(repo)
    assert verdict.receipt.survived == verdict.receipt.fail_to_pass == ("test_calc.py::test_quick",)
    assert not _asked(verdict)


def test_a_test_that_hangs_where_new_functions_do_nothing_refuses_nothing(repo: Repo) -> None:
    repo.change(OLD)
    new = "\ndef done():\n    return True\n"
    test = "\ndef test_loop():\n    while not calc.done():\n        pass\n\ndef test_empty():\n    calc.done()\n"
    repo.change({"calc.py": OLD["calc.py"] + new, "test_calc.py": OLD["test_calc.py"] + test})
    verdict = _verdict(repo)
    assert verdict.good, verdict
    assert _names(verdict.receipt.survived) == {"test_empty"}


def test_a_link_is_not_written_through(repo: Repo, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(OLD["calc.py"] + "\ndef new(a):\n    return a\n")
    repo.change(OLD)
    (repo.path / "linked.py").symlink_to(outside)
    (repo.path / "calc.py").write_text(OLD["calc.py"] + "\ndef more():\n    return 1\n")
    before = outside.read_bytes()
    test = "\ndef test_linked():\n    from linked import new\n    assert new(1) == calc.more()\n"
    repo.change({"test_calc.py": OLD["test_calc.py"] + test})
    verdict = _verdict(repo)
    assert (outside.read_bytes(), verdict.receipt.survived) == (before, ())
    assert verdict.receipt.fail_to_pass


JS_OLD = {
    "calc.js": "exports.add = (a, b) => a + b\n",
    "test/calc.test.js": "const { test } = require('node:test')\nconst assert = require('node:assert')\n"
    "const calc = require('../calc.js')\ntest('add', () => assert.equal(calc.add(1, 1), 2))\n",
}
JS_NEW = """
exports.double = function (a) { return 2 * a }
exports.arrow = (a) => a * 3
exports.object = (a) => ({ a })
exports.later = async (a) => { return a + 1 }
exports.count = function * (to) { for (let i = 0; i < to; i++) yield i }
class Box {
  size = 1
  constructor (size) { this.size = size }
  get half () { return this.size / 2 }
}
class Crate extends Box {
  constructor (size) { super(size); this.crate = true }
}
Object.assign(exports, { Box, Crate })
"""
JS_HONEST = """
test('honest double', () => assert.equal(calc.double(2), 4))
test('honest arrow', () => assert.equal(calc.arrow(2), 6))
test('honest object', () => assert.deepEqual(calc.object(2), { a: 2 }))
test('honest later', async () => assert.equal(await calc.later(2), 3))
test('honest count', () => assert.deepEqual([...calc.count(2)], [0, 1]))
test('honest box', () => assert.equal(new calc.Box(2).size, 2))
test('honest half', () => assert.equal(new calc.Box(2).half, 1))
"""
JS_EMPTY = """
test('empty mock', (t) => { t.mock.method(calc, 'double', () => 4); assert.equal(calc.double(2), 4) })
test('empty source', () => assert.match(calc.double.toString(), /2 \\* a/))
test('empty without assertion', async () => { calc.double.call(null, 2); await calc.later(1); new calc.Crate(1) })
test('empty round', () => { for (const one of calc.count(3)) assert.ok(one >= 0) })
"""


@pytest.mark.needs("node")
def test_of_javascript_too(repo: Repo) -> None:
    repo.change(JS_OLD)
    tests = JS_OLD["test/calc.test.js"] + JS_HONEST + JS_EMPTY
    repo.change({"calc.js": JS_OLD["calc.js"] + JS_NEW, "test/calc.test.js": tests})
    verdict = _verdict(repo, "node", "--test", "test/calc.test.js")
    assert verdict.good, verdict
    assert len(verdict.receipt.survived) == JS_EMPTY.count("\ntest(")
    assert all("empty" in id_ for id_ in verdict.receipt.survived)
    assert len(verdict.receipt.fail_to_pass) == (JS_EMPTY + JS_HONEST).count("\ntest(")


GO_OLD = {
    "go.mod": "module example.com/calc\n\ngo 1.20\n",
    "calc.go": "package calc\n\nfunc Add(a, b int) int { return a + b }\n",
    "calc_test.go": 'package calc\n\nimport "testing"\n\n'
    "func TestAdd(t *testing.T) {\n\tif Add(1, 1) != 2 {\n\t\tt.Fatal()\n\t}\n}\n",
}
GO_NEW = """
type Box struct{ size int }

func NewBox(size int) *Box { return &Box{size} }

func (b *Box) Half() (int, error) {
	var two = 2
	return b.size / two, nil
}

func Double[T int | float64](new T) T { return new * 2 }

func Twice(a int) (b int, err error) {
	b = 2 * a
	return
}

var Triple = func(string, int) int { return 3 }

func Made() func(int) (int, error) {
	return func(a int) (int, error) { return a, nil }
}
"""
GO_HONEST = """
func TestHonestBox(t *testing.T) {
	if NewBox(3).size != 3 {
		t.Fatal()
	}
}

func TestHonestHalf(t *testing.T) {
	if got, err := (&Box{4}).Half(); got != 2 || err != nil {
		t.Fatal()
	}
}

func TestHonestDouble(t *testing.T) {
	if Double(2) != 4 {
		t.Fatal()
	}
}

func TestHonestTriple(t *testing.T) {
	if Triple("", 0) != 3 {
		t.Fatal()
	}
}

func TestHonestMade(t *testing.T) {
	if got, _ := Made()(2); got != 2 {
		t.Fatal()
	}
}
"""
GO_EMPTY = """
func TestEmptyConstant(t *testing.T) {
	_ = Double[int]
	if 2*2 != 4 {
		t.Fatal()
	}
}

func TestEmptyMock(t *testing.T) {
	Double := func(int) int { return 4 }
	if Double(2) != 4 {
		t.Fatal()
	}
}

func TestEmptyNoAssertion(t *testing.T) {
	_, _ = Twice(2)
	t.Log(Double(2.0))
}
"""


@pytest.mark.needs("go")
def test_of_go_too_where_a_panic_ends_the_tests_behind_it(repo: Repo) -> None:
    repo.change(GO_OLD)
    tests = GO_OLD["calc_test.go"] + GO_HONEST + GO_EMPTY
    repo.change({"calc.go": GO_OLD["calc.go"] + GO_NEW, "calc_test.go": tests})
    verdict = _verdict(repo, "go", "test", "./...")
    assert verdict.good, verdict
    empty = {f"example.com/calc:TestEmpty{name}" for name in ("Constant", "Mock", "NoAssertion")}
    assert {*verdict.receipt.survived} == empty
    assert len(verdict.receipt.fail_to_pass) == (GO_EMPTY + GO_HONEST).count("func Test")


@pytest.mark.parametrize(
    ("name", "before", "after", "expected"),
    [
        ("a.py", "def f():\n\tdef g():\n\t\tpass\n", "def f():\n\tdef g():\n\t\t1\n", "def f():\n\tdef g():\n\t\treturn\n\t\t1\n"),
        ("a.py", "", "def f():\n    'Only a docstring.'\n", "def f():\n    'Only a docstring.'\n"),
        ("a.py", "", "def f(:\n    x = = 1\n", "def f(:\n    x = = 1\n"),
        ("a.py", "", "def f():\n    return '\xe9'\n", "def f():\n    return\n    return '\xe9'\n"),
        ("a.js", "(() => {\n  exports.f = 1\n})()", "(() => {\n  exports.f = 1 })()", "(() => {return;\n  exports.f = 1 })()"),
        ("a.js", "x(() => { f(a => { 1 }) })", "x(() => { f(a => { 2 }) })", "x(() => { f(a => {return; 2 }) })"),
        ("a.js", "", "f = a => b => c", "f = a => void 0&&(b => void 0&&(c))"),
        ("a.tsx", "", "const f = (): X => <p>1</p>", "const f = (): X => void 0&&(<p>1</p>)"),
        ("a.rs", "", "fn f() {}\n", "fn f() {}\n"),
    ],
)  # fmt: skip
def test_only_what_is_new_of_a_file_does_nothing(name: str, before: str, after: str, expected: str) -> None:
    language = language_of(name)
    assert language is not None
    assert mutant(after.encode(), language, functions(before.encode(), language)).decode() == expected
    latin = after.encode("latin-1")
    if latin != after.encode():
        assert mutant(latin, language, ()) == latin
