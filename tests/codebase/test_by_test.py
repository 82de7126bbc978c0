"""An assertion is compared with those of its own test, and what lets it pass more is told; another layout or place is not (SPEC 4)."""

import pytest

from code_intel_server.codebase.weakening import weakened

PY, JS, JV, GO = "tests/test_a.py", "src/a.test.js", "src/test/java/ATest.java", "a_test.go"
CS, RS, RB = "tests/ATests.cs", "tests/a.rs", "spec/a_spec.rb"


def py(body: str, name: str = "test_a") -> str:
    return f"def {name}():\n    {body}\n"


def js(body: str) -> str:
    return f"it('adds', () => {{\n  {body}\n}});\n"


def jv(body: str) -> str:
    return f"class ATest {{\n  @Test void a() {{\n    {body}\n  }}\n}}\n"


def go(body: str) -> str:
    return f"package a\n\nfunc TestA(t *testing.T) {{\n\t{body}\n}}\n"


def cs(body: str) -> str:
    return f"class ATests {{\n  [Fact]\n  public void A() {{\n    {body}\n  }}\n}}\n"


def fatal(condition: str) -> str:
    return go(f"if {condition} {{\n\t\tt.Fatal(1)\n\t}}")


LOOSER = {
    "a condition": (PY, py("assert f(1) == 4"), py("assert f(1) == 4 if x else True")),
    "a tuple": (PY, py("assert f(1) == 4"), py("assert (f(1) == 4, 'message')")),
    "a list": (PY, py("assert f(1) == 4"), py("assert [f(1) == 4]")),
    "approx abs": (PY, py("assert f(1) == approx(5)"), py("assert f(1) == approx(5, abs=100)")),
    "plain->approx": (PY, py("assert f(1) == 5"), py("assert f(1) == approx(5)")),
    "plain->approx abs": (PY, py("assert f(1) == 5"), py("assert f(1) == pytest.approx(5, rel=0.5)")),
    "places": (PY, py("self.assertAlmostEqual(a, b)"), py("self.assertAlmostEqual(a, b, places=1)")),
    "delta": (PY, py("self.assertAlmostEqual(a, b)"), py("self.assertAlmostEqual(a, b, delta=50)")),
    "places pos": (PY, py("self.assertAlmostEqual(a, b)"), py("self.assertAlmostEqual(a, b, 1)")),
    "allclose": (PY, py("np.testing.assert_allclose(a, b)"), py("np.testing.assert_allclose(a, b, rtol=1e-1)")),
    "np.allclose": (PY, py("assert np.allclose(a, b)"), py("assert np.allclose(a, b, atol=10)")),
    "isclose": (PY, py("assert math.isclose(a, b)"), py("assert math.isclose(a, b, rel_tol=1)")),
    "isclose var": (PY, py("assert math.isclose(a, b)"), py("assert math.isclose(a, b, rel_tol=TOL)")),
    "tol const": (
        PY,
        "TOLERANCE = 1e-6\n" + py("assert math.isclose(a, b, rel_tol=TOLERANCE)"),
        "TOLERANCE = 10\n" + py("assert math.isclose(a, b, rel_tol=TOLERANCE)"),
    ),
    "tol const2": (
        PY,
        "FLOAT_TOL = 1e-6\n" + py("assert math.isclose(a, b, rel_tol=FLOAT_TOL)"),
        "FLOAT_TOL = 10\n" + py("assert math.isclose(a, b, rel_tol=FLOAT_TOL)"),
    ),
    "junit": (JV, jv("assertEquals(5.0, x.f(1));"), jv("assertEquals(5.0, x.f(1), 100.0);")),
    "assertj": (JV, jv("assertThat(x).isEqualTo(5.0);"), jv("assertThat(x).isCloseTo(5.0, within(100.0));")),
    "xunit": ("tests/ATests.cs", cs("Assert.Equal(5.0, F(1));"), cs("Assert.Equal(5.0, F(1), 2);")),
    "close js": (JS, js("expect(f(1)).toBeCloseTo(5);"), js("expect(f(1)).toBeCloseTo(5, -3);")),
    "close js call": (
        JS,
        js("expect(f(1)).toBeCloseTo(Math.sqrt(2));"),
        js("expect(f(1)).toBeCloseTo(Math.sqrt(2), -3);"),
    ),
    "tobe->close": (JS, js("expect(f(1)).toBe(5);"), js("expect(f(1)).toBeCloseTo(5);")),
    "go abs": (GO, go("if f(1) != 5 {\n\t\tt.Fatal(1)\n\t}"), go("if math.Abs(f(1)-5) > 100 {\n\t\tt.Fatal(1)\n\t}")),
    "go abs wider": (
        GO,
        go("if math.Abs(f(1)-5) > 0.1 {\n\t\tt.Fatal(1)\n\t}"),
        go("if math.Abs(f(1)-5) > 100 {\n\t\tt.Fatal(1)\n\t}"),
    ),
    "go InDelta": (GO, go("assert.Equal(t, 5.0, f(1))"), go("assert.InDelta(t, 5.0, f(1), 100)")),
    "swift": (
        "Tests/ATests.swift",
        "class A: XCTestCase { func testB() { XCTAssertEqual(f(1), 5) } }\n",
        "class A: XCTestCase { func testB() { XCTAssertEqual(f(1), 5, accuracy: 100) } }\n",
    ),
    "rust": (
        "tests/a.rs",
        "#[test]\nfn a() {\n    assert_relative_eq!(f(), 4.0);\n}\n",
        "#[test]\nfn a() {\n    assert_relative_eq!(f(), 4.0, epsilon = 9.0);\n}\n",
    ),
    "ruby": (
        "test/a_test.rb",
        "class A < T\n def test_a\n assert_in_delta 5, f\n end\nend\n",
        "class A < T\n def test_a\n assert_in_delta 5, f, 100\n end\nend\n",
    ),
    "rspec": (
        "spec/a_spec.rb",
        "describe 'x' do\n it 'a' do\n expect(f).to eq(5)\n end\nend\n",
        "describe 'x' do\n it 'a' do\n expect(f).to be_within(100).of(5)\n end\nend\n",
    ),
    "elixir": (
        "test/a_test.exs",
        'defmodule A do\n test "a" do\n assert_in_delta f(), 5, 0.1\n end\nend\n',
        'defmodule A do\n test "a" do\n assert_in_delta f(), 5, 100\n end\nend\n',
    ),
    "cpp": (
        "tests/a_test.cpp",
        "TEST(A, b) {\n EXPECT_EQ(f(), 5);\n}\n",
        "TEST(A, b) {\n EXPECT_NEAR(f(), 5, 100);\n}\n",
    ),
    "and or": (PY, py("assert a == 1 and b == 2"), py("assert a == 1 or b == 2")),
    "or added": (PY, py("assert a == 1"), py("assert a == 1 or a")),
    "js or": (JS, js("expect(a === 1 && b).toBe(true);"), js("expect(a === 1 || b).toBe(true);")),
    "sorted": (PY, py("assert f() == [1, 2]"), py("assert sorted(f()) == sorted([1, 2])")),
    "set": (PY, py("assert f() == [1, 2]"), py("assert set(f()) == {1, 2}")),
    "set x": (PY, py("assert f() == x"), py("assert set(f()) == set(x)")),
    "js sort": (JS, js("expect(f()).toEqual([1, 2]);"), js("expect(f().sort()).toEqual([1, 2].sort());")),
    "eq in": (PY, py("assert f() == x"), py("assert f() in x")),
    "eq in hidden": (PY, py("assert f() == x"), py("assert f() in x\n    assert 1 == 1")),
    "assertEqual In": (PY, py("self.assertEqual(f(), x)"), py("self.assertIn(f(), x)")),
    "assertEqual True": (PY, py("self.assertEqual(f(), x)"), py("self.assertTrue(f(), x)")),
    "go &&": (
        GO,
        go("if f(1) != 4 {\n\t\tt.Fatal(1)\n\t}"),
        go("if x := f(1); x != 4 && x != 5 {\n\t\tt.Fatal(1)\n\t}"),
    ),
    "in tuple": (PY, py("assert f() == 4"), py("assert f() in (4, 5)")),
    "any": (PY, py("assert all(x == 4 for x in y)"), py("assert any(x == 4 for x in y)")),
    "lower": (PY, py("assert f() == 'ab'"), py("assert f().lower() == 'ab'")),
    "anything": (JS, js("expect(f()).toEqual({a: x});"), js("expect(f()).toEqual({a: expect.anything()});")),
    "not": (PY, py("assert f(1)"), py("assert not f(1)")),
    "not ==": (PY, py("assert f(1) == 4"), py("assert not f(1) == 4")),
    "assertFalse": (PY, py("self.assertTrue(f(1))"), py("self.assertFalse(f(1))")),
    "java": (JV, jv("assertTrue(f(1));"), jv("assertFalse(f(1));")),
    "java!": (JV, jv("assertTrue(f(1));"), jv("assertTrue(!f(1));")),
    "rust!": ("tests/a.rs", "#[test]\nfn a() {\n    assert!(f());\n}\n", "#[test]\nfn a() {\n    assert!(!f());\n}\n"),
    "go !": (GO, go("if !f(1) {\n\t\tt.Fatal(1)\n\t}"), go("if f(1) {\n\t\tt.Fatal(1)\n\t}")),
    "go ! 2": (GO, go("if f(1) {\n\t\tt.Fatal(1)\n\t}"), go("if !f(1) {\n\t\tt.Fatal(1)\n\t}")),
}
HIDDEN = {
    "hide 4==4": (PY, py("assert f(1) == 4"), py("assert f(1) == 5") + "\n\ndef test_b():\n    assert g() == 4\n"),
    "hide assert 4": (PY, py("assert f(1) == 4"), py("assert f(1) == 5") + "\n\ndef test_b():\n    assert 4\n"),
    "hide cases": (PY, py("assert f(1) == 4"), py("assert f(1) == 5") + "\nexpected = 4\n"),
    "hide dup": (
        PY,
        py("assert f() == 4") + "\n" + py("assert f() == 4").replace("_a", "_b"),
        py("assert f() == 5")
        + "\n"
        + py("assert f() == 4").replace("_a", "_b")
        + "\n\ndef test_c():\n    assert k() == 4\n",
    ),
    "hide same test": (PY, py("assert f(1) == 4"), py("assert f(1) == 5\n    assert f(9) == 4")),
    "hide same test other": (PY, py("assert f(1) == 4"), py("assert f(1) == 5\n    other = 4 == 4\n    assert other")),
    "hide js": (
        JS,
        js("expect(f(1)).toBe(4);"),
        js("expect(f(1)).toBe(5);") + "it('b', () => {\n  expect(g()).toBe(4);\n});\n",
    ),
    "hide go": (
        GO,
        go("if f(1) != 4 {\n\t\tt.Fatal(1)\n\t}"),
        go("if f(1) != 5 {\n\t\tt.Fatal(1)\n\t}")
        + "\nfunc TestB(t *testing.T) {\n\tif g(1) != 4 {\n\t\tt.Fatal(1)\n\t}\n}\n",
    ),
    "hide java": (
        JV,
        jv("assertEquals(4, f(1));"),
        jv("assertEquals(5, f(1));").replace("  }\n}", "  }\n  @Test void b() {\n    assertEquals(4, g(1));\n  }\n}"),
    ),
    "hide rust": (
        "tests/a.rs",
        "#[test]\nfn a() {\n    assert_eq!(f(), 4);\n}\n",
        "#[test]\nfn a() {\n    assert_eq!(f(), 5);\n}\n#[test]\nfn b() {\n    assert_eq!(g(), 4);\n}\n",
    ),
    "hide ruby": (
        "spec/a_spec.rb",
        "describe 'x' do\n it 'a' do\n expect(f).to eq(4)\n end\nend\n",
        "describe 'x' do\n it 'a' do\n expect(f).to eq(5)\n end\n it 'b' do\n expect(g).to eq(4)\n end\nend\n",
    ),
    "hide kt": (
        "src/test/kotlin/ATest.kt",
        "class A { @Test fun a() { assertEquals(4, f(1)) } }",
        "class A { @Test fun a() { assertEquals(5, f(1)) }\n @Test fun b() { assertEquals(4, g(1)) } }",
    ),
    "hide php": (
        "tests/ATest.php",
        "<?php class A { public function testB() { $this->assertSame(4, f(1)); } }",
        "<?php class A { public function testB() { $this->assertSame(5, f(1)); }\n public function testC() { $this->assertSame(4, g(1)); } }",
    ),
    "hide ex": (
        "test/a_test.exs",
        'defmodule A do\n test "a" do\n assert f() == 4\n end\nend\n',
        'defmodule A do\n test "a" do\n assert f() == 5\n end\n test "b" do\n assert g() == 4\n end\nend\n',
    ),
}
HONEST = {
    "brackets": (PY, py("assert f(1, 2) == 4"), py("assert (f(1, 2) == 4)")),
    "lists": (PY, py("assert [a] == [f(1)]"), py("assert [a] == [ f(1) ]")),
    "new approx test": (
        PY,
        py("assert f(1) == 4"),
        py("assert f(1) == 4") + "\n\ndef test_b():\n    assert g() == approx(5, abs=1)\n",
    ),
    "new approx assertion": (
        PY,
        py("assert f(1) == 4"),
        py("assert f(1) == 4\n    assert g() == approx(5, abs=1) or x"),
    ),
    "renamed": (PY, py("assert f(1) == 4"), py("assert f(1) == 4").replace("test_a", "test_renamed")),
    "split": (
        PY,
        py("assert f(1) == 4\n    assert g() == 5"),
        py("assert f(1) == 4") + "\n\ndef test_b():\n    assert g() == 5\n",
    ),
    "and split": (PY, py("assert a == 1 and b == 2"), py("assert a == 1\n    assert b == 2")),
    "into class": (PY, py("assert f(1) == 4"), "class TestA:\n    def test_a(self):\n        assert f(1) == 4\n"),
    "into class both": (
        PY,
        py("assert f(1) == 4") + py("assert f(2) == 5").replace("_a", "_b"),
        "class TestA:\n    def test_a(self):\n        assert f(1) == 4\n    def test_b(self):\n        assert f(2, 3) == 5\n",
    ),
    "constant": (PY, py("assert f(1) == 4"), "EXPECTED = 4\n\n" + py("assert f(1) == EXPECTED")),
    "helper": (PY, py("assert f(1) == 4"), "def check(x):\n    assert x == 4\n\n" + py("check(f(1))")),
    "swap": (PY, py("assert f(1) == 4\n    assert f(2) == 5"), py("assert f(2) == 5\n    assert f(1) == 4")),
    "unittest->assert": (PY, py("self.assertEqual(f(1), 4)"), py("assert f(1) == 4")),
    "assert->unittest": (PY, py("assert f(1) == 4"), py("self.assertEqual(f(1), 4)")),
    "unittest2": (
        PY,
        py(
            "self.assertIsNone(f(1))\n    self.assertIn(1, x)\n    self.assertNotIn(1, x)\n    self.assertTrue(x)\n    self.assertFalse(y)\n    self.assertGreater(a, 3)"
        ),
        py(
            "assert f(1) is None\n    assert 1 in x\n    assert 1 not in x\n    assert x\n    assert not y\n    assert a > 3"
        ),
    ),
    "raises": (
        PY,
        py("with self.assertRaises(ValueError):\n        f()"),
        py("with pytest.raises(ValueError):\n        f()"),
    ),
    "1_000": (PY, py("assert f(1) == 1000"), py("assert f(1) == 1_000")),
    "0x10": (PY, py("assert f(1) == 0x10"), py("assert f(1) == 16")),
    "label go": (
        GO,
        go('tests := []struct{name string; in, want int}{\n\t\t{name: "one", in: 2, want: 4},\n\t}'),
        go('tests := []struct{name string; in, want int}{\n\t\t{name: "two is", in: 2, want: 4},\n\t}'),
    ),
    "label id": (
        PY,
        "@pytest.mark.parametrize(('a', 'b'), [pytest.param(1, 4, id='x')])\ndef test_a(a, b):\n    assert f(a) == b\n",
        "@pytest.mark.parametrize(('a', 'b'), [pytest.param(1, 4, id='y')])\ndef test_a(a, b):\n    assert f(a) == b\n",
    ),
    "handed over or": (PY, py("assert f(1) == 4"), py("assert f(a or b, sorted(x), delta=4) == 4")),
    "js rename describe": (
        JS,
        "describe('a', () => {\n" + js("expect(f(1)).toBe(4);") + "});",
        "describe('b', () => {\n" + js("expect(f(1)).toBe(4);") + "});",
    ),
}


def said(path: str, before: str, after: str) -> tuple[str, ...]:
    assert before != after
    return weakened(path, before.splitlines(), after.splitlines())


@pytest.mark.parametrize(("path", "before", "after"), LOOSER.values(), ids=LOOSER)
def test_what_lets_an_assertion_pass_more_is_said(path: str, before: str, after: str) -> None:
    assert said(path, before, after)


@pytest.mark.parametrize(("path", "before", "after"), HIDDEN.values(), ids=HIDDEN)
def test_a_value_is_gone_though_another_test_names_it(path: str, before: str, after: str) -> None:
    (found,) = said(path, before, after)
    assert found == "expects no longer `4`"


@pytest.mark.parametrize(("path", "before", "after"), HONEST.values(), ids=HONEST)
def test_what_expects_the_same_elsewhere_or_in_other_words_is_not(path: str, before: str, after: str) -> None:
    assert said(path, before, after) == ()


TWO = "def test_a():\n    x = f(1)\n    assert x == 4\n    assert x.y\n"
OTHER = "\n\ndef test_b():\n    assert g() == 4\n"


def test_an_assertion_that_a_test_lost_is_said_though_a_new_test_has_as_many() -> None:
    gone = TWO.replace("    assert x == 4\n", "") + OTHER
    assert said(PY, TWO, gone) == ("1 assertion fewer in tests that stay",)


@pytest.mark.parametrize(
    "after",
    [
        TWO.replace("    assert x == 4\n", "") + OTHER + "    assert x == 4\n",
        TWO.replace("    assert x == 4\n", "    check(x)\n") + OTHER + "\n\ndef check(x):\n    assert x == 4\n",
        "@pytest.mark.parametrize('a', [4])\n" + TWO.replace("    assert x == 4\n", "") + OTHER,
    ],
    ids=["moved", "helper", "table"],
)
def test_an_assertion_that_stands_elsewhere_now_is_not_lost(after: str) -> None:
    assert said(PY, TWO, after) == ()
