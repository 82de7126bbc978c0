"""What decides which tests run: a change of it is told, anything else in the same files is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_intel_server.codebase.steering import steered

MAKE = "all: app\n\nbuild:\n\tcc app.c\n\ntest: build\n\tpytest -q\n\tnpm test\n"
PACKAGE = '{\n  "name": "app",\n  "scripts": {\n    "build": "tsc",\n    "test": "jest"\n  }\n}\n'
PYPROJECT = '[project]\nname = "app"\n\n[tool.pytest.ini_options]\naddopts = [\n    "-q",\n]\n'
TOX = "[testenv]\ndeps = pytest\ncommands =\n    pytest\n    ruff check\n\n[flake8]\nmax-line-length = 99\n"
CALLS = "OBJECTS = a.o\nPYTHON ?= python\nRUN = $(PYTHON) -m\n\nbuild: $(OBJECTS)\n\ntest: $(OBJECTS)\n\t@$(RUN) pytest $(OBJECTS)\n"

STEERED = {
    "a hook that turns outcomes": ("conftest.py", "import os\n", "import os\n\n\ndef pytest_runtest_makereport(item): ...\n"),
    "a hook that deselects": ("tests/conftest.py", "", "def pytest_collection_modifyitems(items):\n    items.clear()\n"),
    "files not collected": ("tests/conftest.py", "A = 1\n", "A = 1\ncollect_ignore = ['test_app.py']\n"),
    "an exit that lies": ("conftest.py", "A = 1\n", "A = 1\nimport os; os._exit(0)\n"),
    "the first options": ("pytest.ini", None, "[pytest]\naddopts = -k fast\n"),
    "options": ("pytest.ini", "[pytest]\n", "[pytest]\naddopts = --ignore=tests/test_app.py\n"),
    "an option of a list": ("pyproject.toml", PYPROJECT, PYPROJECT.replace('"-q"', '"-q", "--deselect=tests/test_app.py"')),
    "a word in a list of options": ("pyproject.toml", PYPROJECT, PYPROJECT.replace('"-q",', '"-q",\n    "tests/test_lib.py",')),
    "another command": ("tox.ini", TOX, TOX.replace("    pytest\n", "    true\n")),
    "another script": ("package.json", PACKAGE, PACKAGE.replace('"jest"', '"true"')),
    "a script before it": ("package.json", PACKAGE, PACKAGE.replace('"build"', '"pretest": "rm -r test",\n    "build"')),
    "a script all on one line": ("package.json", '{"scripts":{"test":"jest"}}', '{"scripts":{"test":"true"}}'),
    "patterns of jest": ("jest.config.js", "module.exports = {}\n", "module.exports = { testPathIgnorePatterns: ['app'] }\n"),
    "a recipe": ("Makefile", MAKE, MAKE.replace("\tpytest -q\n", "\t-pytest -q\n")),
    "a recipe emptied": ("Makefile", MAKE, MAKE.replace("\tpytest -q\n\tnpm test\n", "")),
    "a recipe in another file": ("build/tests.mk", "check:\n\t./run\n", "check:\n\t@true\n"),
    "skipped by maven": ("pom.xml", "<project/>\n", "<project>\n<skipTests>true</skipTests>\n</project>\n"),
    "no harness": ("Cargo.toml", "[lib]\n", "[lib]\ntest = false\n"),
    "a build constraint": ("app_test.go", "package app\n", "//go:build never\n\npackage app\n"),
    "the runner's name": ("pytest.py", None, "print('1 passed')\n"),
    "the runner's name as a package": ("unittest/__init__.py", None, "def main(): ...\n"),
    "the runner's name edited": ("pytest.py", "A = 1\n", "A = 2\n"),
    "a makefile that make takes first": ("GNUmakefile", None, "test:\n\ttrue\n"),
    "an empty configuration that comes first": ("pytest.ini", None, "[pytest]\n"),
    "a hook that collects only": ("conftest.py", "A = 1\n", "A = 1\ndef pytest_configure(config):\n    config.option.collectonly = True\n"),
    "an exit at once": ("conftest.py", "A = 1\n", "A = 1\nimport sys\nsys.exit(0)\n"),
    "a line too long to be looked through": ("Makefile", "all:\n", "all:\n" + "test" * 250_000 + "\n"),
    "no text any more": ("pytest.ini", "[pytest]\n", "\0"),
    "what Python imports first": ("sitecustomize.py", None, "import sys\n"),
    "a test that is built no more": ("CMakeLists.txt", "add_test(NAME a)\nadd_test(NAME b)\n", "add_test(NAME a)\n"),
    "another session of nox": ("noxfile.py", "    session.run('pytest')\n", "    session.run('true')\n"),
    "a script of its own lost": ("package.json", '{\n"test:unit": "jest"\n}\n', "{\n}\n"),
    "another place to import from": ("pyproject.toml", PYPROJECT, f'{PYPROJECT}pythonpath = ["fake"]\n'),
    "a plugin of the project's own": ("pyproject.toml", PYPROJECT, f'{PYPROJECT}\n[project.entry-points.pytest11]\nfake = "fake"\n'),
    "tests that are run until they pass": ("pytest.ini", "[pytest]\n", "[pytest]\nreruns = 5\n"),
    "settings of another kind": ("pytest.ini", "[pytest]\n", "[pytest]\nDJANGO_SETTINGS_MODULE = fake\n"),
    "an outcome that is ignored": ("tox.ini", TOX, TOX.replace("deps", "ignore_outcome = true\ndeps")),
    "variables of tox": ("tox.ini", TOX, TOX.replace("deps", "set_env =\n    PYTHONPATH = fake\ndeps")),
    "modules of jest": ("package.json", PACKAGE, PACKAGE.replace('"scripts"', '"jest": {\n    "moduleNameMapper": {"app": "fake"}\n  },\n  "scripts"')),
    "modules of jest in its own file": ("jest.config.js", "module.exports = {}\n", "module.exports = { moduleNameMapper: { app: 'fake' } }\n"),
    "modules of vitest": ("vitest.config.ts", "export default {}\n", "export default { resolve: { alias: { './app': './fake' } } }\n"),
    "what mocha loads": (".mocharc.json", "{\n}\n", '{\n  "require": "./fake.js"\n}\n'),
    "another shell of make": ("Makefile", MAKE, f"SHELL = /bin/true\n{MAKE}"),
    "failures that make ignores": ("Makefile", MAKE, f".IGNORE:\n{MAKE}"),
    "options of make": ("Makefile", MAKE, f"MAKEFLAGS += -i\n{MAKE}"),
    "another path in make": ("Makefile", MAKE, f"export PATH := fake:$(PATH)\n{MAKE}"),
    "another place to import from in make": ("Makefile", MAKE, f"export PYTHONPATH = fake\n{MAKE}"),
    "the command of a recipe": ("Makefile", CALLS, CALLS.replace("?= python", "= true")),
    "the command of a command of a recipe": ("Makefile", CALLS, CALLS.replace("RUN = $(PYTHON)", "RUN = true $(PYTHON)")),
    "another shell of just": ("justfile", "test:\n  pytest\n", "set shell := ['true']\ntest:\n  pytest\n"),
    "a runner of cargo": (".cargo/config.toml", None, "[target.'cfg(all())']\nrunner = 'true'\n"),
    "another runner of cargo": ("sub/.cargo/config", "[target.x]\nrunner = 'qemu'\n", "[target.x]\nrunner = 'true'\n"),
    "tests that nextest leaves out": (".config/nextest.toml", None, "[profile.default]\ndefault-filter = 'none()'\n"),
    "tests that maven leaves out": (".mvn/maven.config", None, "-DskipTests\n"),
    "another shell of npm": (".npmrc", "save-exact=true\n", "save-exact=true\nscript-shell=/bin/true\n"),
    "what bazel runs tests under": (".bazelrc", "build -c opt\n", "build -c opt\ntest --run_under=true\n"),
    "an exit status of rspec": (".rspec", "--color\n", "--color\n--failure-exit-code 0\n"),
    "an exit status of rspec in its helper": ("spec/spec_helper.rb", "A = 1\n", "A = 1\nRSpec.configure { |c| c.failure_exit_code = 0 }\n"),
    "what phpunit loads": ("phpunit.xml", "<phpunit>\n</phpunit>\n", "<phpunit bootstrap='fake.php'>\n</phpunit>\n"),
    "a test that passes by its output": ("CMakeLists.txt", "add_test(NAME a)\n", "add_test(NAME a)\nset_tests_properties(a PROPERTIES PASS_REGULAR_EXPRESSION .)\n"),
    "what runs at the end": ("conftest.py", "A = 1\n", "A = 1\nimport atexit\natexit.register(print)\n"),
    "a module of the runner's": ("pluggy.py", None, "A = 1\n"),
    "a module of Python's": ("argparse.py", None, "A = 1\n"),
    "a package of Python's": ("json/__init__.py", None, "A = 1\n"),
    "code that reads as a comment": ("test_0.py", None, "# coding: utf-7\n#+AAo-import os+ADs-os._exit(0)\n"),
    "an encoding in the second line": ("app.py", "#!python\nA = 1\n", "#!python\n# -*- coding: unicode_escape -*-\nA = 1\n"),
    "removed": ("pytest.ini", "[pytest]\ntestpaths = tests unit\n", None),
}  # fmt: skip
NOT_STEERED = {
    "a fixture": ("conftest.py", "import pytest\n", "import pytest\n\n\n@pytest.fixture\ndef app():\n    return 1\n"),
    "a dependency": ("pyproject.toml", PYPROJECT, PYPROJECT.replace('name = "app"', 'name = "app"\nversion = "2"')),
    "another line of tox": ("tox.ini", TOX, TOX.replace("99", "120")),
    "another script": ("package.json", PACKAGE, PACKAGE.replace('"tsc"', '"tsc -p ."')),
    "another recipe": ("Makefile", MAKE, MAKE.replace("cc app.c", "cc -O2 app.c")),
    "one more test that is built": ("CMakeLists.txt", "add_test(NAME a)\n", "add_test(NAME a)\nadd_test(NAME b)\n"),
    "one more script": ("package.json", PACKAGE, PACKAGE.replace('"build"', '"test:e2e": "playwright test",\n    "build"')),
    "one more script behind it": ("package.json", PACKAGE, PACKAGE.replace('"jest"', '"jest",\n    "lint": "eslint ."')),
    "the first recipe": ("Makefile", None, MAKE),
    "the first script": ("package.json", "", PACKAGE),
    "indentation": ("package.json", PACKAGE, PACKAGE.replace("    ", "\t")),
    "an ordinary module": ("app.py", None, "def pytest_runtest_makereport(): ...\n"),
    "an empty file": ("unittest/__init__.py", None, ""),
    "an encoding that shows what runs": ("test_0.py", None, "# -*- coding: UTF-8 -*-\nA = 1\n"),
    "an encoding of old": ("test_0.py", None, "# vim: set fileencoding=iso-8859-15 :\nA = 1\n"),
    "an encoding that was there": ("test_0.py", "# coding: punycode\nA = 1\n", "# coding: punycode\nA = 2\n"),
    "an encoding where none is read": ("test_0.py", None, "A = 1\n# coding: utf-7\n# coding: utf-7\n"),
    "an encoding of no Python": ("a.rb", None, "# coding: utf-7\n"),
    "a module of Python's in a package": ("app/types.py", None, "A = 1\n"),
    "a module of Python's that was there": ("calendar.py", "A = 1\n", "A = 2\n"),
    "a package of tests": ("test/__init__.py", None, "A = 1\n"),
    "a variable that no recipe calls": ("Makefile", CALLS, CALLS.replace("a.o", "a.o b.o")),
    "another variable": ("Makefile", CALLS, f"VERSION = 2\n{CALLS}"),
    "a registry of npm": (".npmrc", "save-exact=true\n", "save-exact=true\nfund=false\n"),
    "a first configuration of cargo": (".cargo/config.toml", None, "[net]\nretry = 2\n"),
    "a configuration of something else": ("config.toml", "a = 1\n", "a = 1\nrunner = 'true'\n"),
    "colours of rspec": (".rspec", "--color\n", "--format doc\n"),
    "nothing": ("Makefile", MAKE, MAKE),
}  # fmt: skip


def lines(text: str | None) -> list[str] | None:
    return None if text is None else text.split("\n")


@pytest.mark.parametrize(("path", "before", "after"), STEERED.values(), ids=STEERED)
def test_a_change_of_what_runs_is_told(path: str, before: str | None, after: str | None) -> None:
    (phrase,) = steered(path, lines(before), lines(after))
    assert len(phrase) < 140


@pytest.mark.parametrize(("path", "before", "after"), NOT_STEERED.values(), ids=NOT_STEERED)
def test_any_other_change_is_not(path: str, before: str | None, after: str | None) -> None:
    assert steered(path, lines(before), lines(after)) == ()


def test_the_line_is_shown() -> None:
    assert steered("package.json", lines(PACKAGE), lines(PACKAGE.replace('"jest"', '"true"'))) == (
        'changes which tests run, or how: "test": "true"',
    )


@given(st.sampled_from(["Makefile", "conftest.py", "pyproject.toml", "package.json"]), st.text(max_size=300))
def test_the_same_content_steers_alike(path: str, text: str) -> None:
    assert steered(path, text.split("\n"), text.split("\n")) == ()
