"""Which files steer tests, and files of both classes merged by key (SPEC 4, Receipts)."""

import json
import tomllib

import pytest

from code_intel_server.receipts.checkout import Changed, FileSide
from code_intel_server.receipts.files import FileClass, file_class, merged_file


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("Calc.Tests/CalcTests.cs", FileClass.TEST),
        ("src/main/CalcTest.java", FileClass.PRODUCT),
        ("src/test/java/CalcTest.java", FileClass.TEST),
        ("tests/data/words.txt", FileClass.TEST),
        ("pkg/calc_test.go", FileClass.TEST),
        ("src/calc.spec.ts", FileClass.TEST),
        ("conftest.py", FileClass.TEST),
        ("Makefile", FileClass.TEST),
        ("web/jest.config.mjs", FileClass.TEST),
        (".pytest.toml", FileClass.TEST),
        (".npmrc", FileClass.TEST),
        ("local.mk", FileClass.TEST),
        ("shop.egg-info/entry_points.txt", FileClass.TEST),
        ("src/latest.py", FileClass.PRODUCT),
        ("src/contest.java", FileClass.PRODUCT),
        ("packages/a/package.json", FileClass.BOTH),
        ("pyproject.toml", FileClass.BOTH),
        ("web/tsconfig.json", FileClass.BOTH),
        ("src/__mocks__/fs.js", FileClass.TEST),
        ("src/page/golden/page.html", FileClass.TEST),
        ("go.work", FileClass.TEST),
        ("build/local.mk", FileClass.TEST),
        (".env.test", FileClass.TEST),
        (".cargo/config.toml", FileClass.TEST),
        ("a/.cargo/config.toml", FileClass.TEST),
        ("x.cargo/config.toml", FileClass.PRODUCT),
        ("__init__.py", FileClass.PRODUCT),
    ],
)
def test_a_file_is_test_product_or_both_by_its_path(path: str, expected: FileClass) -> None:
    assert file_class(path) is expected


def test_pyproject_takes_its_test_tables_from_one_side_and_all_else_from_the_other() -> None:
    product = b'[project]\nname = "new"\n\n[tool.pytest.ini_options]\naddopts = "--deselect a"\n\n[tool.ruff]\nx = 1\n'
    runner = b'[project]\nname = "old"\n[tool.pytest.ini_options]\naddopts = "-q"\n'
    found = merged_file("pyproject.toml", product, runner)
    assert found is not None
    assert tomllib.loads(found.decode()) == {
        "project": {"name": "new"},
        "tool": {"ruff": {"x": 1}, "pytest": {"ini_options": {"addopts": "-q"}}},
    }


def test_a_test_table_that_hides_in_a_dotted_key_cannot_be_merged() -> None:
    product = b'[project]\nname = "new"\n[tool]\npytest.ini_options.addopts = "--deselect a"\n'
    assert merged_file("pyproject.toml", product, b'[tool.pytest.ini_options]\naddopts = "-q"\n') is None


def test_package_json_takes_its_scripts_from_one_side_and_its_dependencies_from_the_other() -> None:
    product = {"scripts": {"test": "true"}, "dependencies": {"a": "2"}}
    runner = {"scripts": {"test": "mocha"}, "dependencies": {"a": "1"}}
    found = merged_file("package.json", json.dumps(product).encode(), json.dumps(runner).encode())
    assert found is not None
    assert json.loads(found) == {"dependencies": {"a": "2"}, "scripts": {"test": "mocha"}}


def test_tsconfig_takes_where_names_lead_from_one_side() -> None:
    product = {"compilerOptions": {"strict": True, "paths": {"@a/*": ["src/fakes/*"]}}, "include": ["src"]}
    found = merged_file("tsconfig.json", json.dumps(product).encode(), b'{"compilerOptions": {"baseUrl": "."}}')
    assert found is not None
    assert json.loads(found) == {"compilerOptions": {"strict": True, "baseUrl": "."}, "include": ["src"]}


def test_an_added_file_above_the_tests_package_is_no_product() -> None:
    there, gone = FileSide("100644", "1" * 40), FileSide("000000", "0" * 40)
    assert Changed("__init__.py", gone, there).file_class is FileClass.TEST
    assert Changed("__init__.py", there, there).file_class is FileClass.PRODUCT


def test_setup_cfg_takes_its_pytest_section_from_one_side() -> None:
    found = merged_file(
        "setup.cfg", b"[metadata]\nname = new\n[tool:pytest]\naddopts = -k no\n", b"[tool:pytest]\naddopts = -q\n"
    )
    assert found is not None
    assert found.decode().split() == ["[metadata]", "name", "=", "new", "[tool:pytest]", "addopts", "=", "-q"]


@pytest.mark.parametrize("content", [b"{", b"[]", b"[" * 100_000])
def test_what_cannot_be_read_cannot_be_merged(content: bytes) -> None:
    assert merged_file("package.json", content, b"{}") is None
