"""What part a file plays in a project, derived from its path alone: code, test, documentation, configuration, markup, vendored."""

import re
from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache

from code_intel_server.common.word_set import word_set


class Role(StrEnum):
    """Groups of SPEC 8, and `vendored` for what nobody here writes by hand: other people's code, built code, translations."""

    CODE = "code"
    TESTS = "tests"
    CONFIGURATION = "configuration"
    DOCUMENTATION = "documentation"
    MARKUP = "markup"
    VENDORED = "vendored"


RELEVANCE = {
    Role.CODE: 0,
    Role.MARKUP: 1,
    Role.TESTS: 2,
    Role.CONFIGURATION: 3,
    Role.DOCUMENTATION: 4,
    Role.VENDORED: 5,
}
"""Lower comes first among equally good matches."""


RUNNER_FILES = word_set(
    "conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini noxfile.py .coveragerc sitecustomize.py "
    "usercustomize.py *.pth entry_points.txt .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .env .env.* go.work "
    "go.work.sum rust-toolchain rust-toolchain.toml *.mk Makefile makefile GNUmakefile justfile Justfile "
    "Taskfile.yml Taskfile.yaml .mocharc* jest.config.* vitest.config.* vitest.workspace.* karma.conf.* .nycrc* "
    ".c8rc* playwright.config.* ava.config.* .taprc nextest.toml .cargo/config.toml phpunit.xml* .rspec *.snap"
)
"""Names of files that say how tests are found and run, whatever their folder."""

TEST_TABLES: Mapping[str, tuple[str, ...]] = {
    "pyproject.toml": ("tool.pytest", "tool.coverage", "tool.tox", "tool.nox", "tool.hatch.envs", "tool.poe"),
    "Cargo.toml": ("test", "bench", "profile.test", "dev-dependencies"),
    "setup.cfg": ("tool:pytest", "coverage:*", "aliases", "tox*"),
    "package.json": ("scripts", "mocha", "jest", "vitest", "ava", "tap", "nyc", "c8"),
    "tsconfig.json": ("compilerOptions.paths", "compilerOptions.baseUrl"),
}
"""Files that are product and steer tests at once, with the tables in them that steer tests."""

_VENDORED = word_set(
    "node_modules vendor vendored _vendor third_party thirdparty third-party bower_components dist site-packages "
    ".venv venv"
)
_GENERATED_SUFFIXES = {".po", ".pot", ".map", ".snap"}
_TESTS = word_set(
    "test tests testing spec specs __tests__ testdata e2e fixtures __mocks__ __fixtures__ __snapshots__ golden"
)
_COLLECTED = re.compile(
    r"test_\w+\.py|\w+_(?:test|spec)s?\.\w+|.+\.(?:test|spec)\.\w+|\w+Tests?\.\w+|Tests?[A-Z]\w*\.\w+"
)
_DOCS = {"doc", "docs", "documentation", "man"}
_DOC_SUFFIXES = {".md", ".rst", ".txt", ".adoc", ".org", ".mdx", ".tex"}
_DOC_NAMES = {"readme", "changelog", "changes", "license", "copying", "authors", "contributing", "news", "history"}
_CONFIG_SUFFIXES = word_set(
    ".json .jsonl .ndjson .csv .tsv .yml .yaml .toml .ini .cfg .conf .properties .env .xml .lock .plist .gradle .tf "
    ".hcl .editorconfig .gitignore"
)
_CONFIG_NAMES = word_set(
    "dockerfile makefile procfile jenkinsfile vagrantfile cmakelists.txt manifest.in go.mod go.sum requirements.txt"
)
_MARKUP_SUFFIXES = word_set(
    ".html .htm .css .scss .sass .less .erb .jinja .jinja2 .j2 .hbs .mustache .ejs .haml .slim .pug .twig .svg"
)


@lru_cache(maxsize=65536)
def role(path: str) -> Role:
    """The part `path` (relative, '/'-separated) plays."""
    folder, _, name = path.lower().rpartition("/")
    vendored, tests, docs = _among(folder)
    stem, suffix = in_two(name)
    if vendored or ".min." in name or suffix in _GENERATED_SUFFIXES:
        return Role.VENDORED
    if tests or _is_test_name(name) or ("est" in name and _is_collected(path)):
        return Role.TESTS
    if name in _CONFIG_NAMES:
        return Role.CONFIGURATION
    if suffix in _DOC_SUFFIXES or stem in _DOC_NAMES or (docs and suffix not in _MARKUP_SUFFIXES and suffix != ".py"):
        return Role.DOCUMENTATION
    if suffix in _CONFIG_SUFFIXES or (name.startswith(".") and not suffix):
        return Role.CONFIGURATION
    if suffix in _MARKUP_SUFFIXES:
        return Role.MARKUP
    return Role.CODE


@lru_cache(maxsize=16384)
def _among(folder: str) -> tuple[bool, bool, bool]:
    """Whether files in this folder are vendored, tests, documentation by their folder."""
    names = set(folder.split("/"))
    return not names.isdisjoint(_VENDORED), not names.isdisjoint(_TESTS), not names.isdisjoint(_DOCS)


def in_two(name: str) -> tuple[str, str]:
    """Stem and suffix of a file's name as `PurePath` has them, which is ten times as slow."""
    dot = name.rfind(".")
    return (name[:dot], name[dot:]) if 0 < dot < len(name) - 1 else (name, "")


def _is_test_name(name: str) -> bool:
    stem = name.split(".", 1)[0]
    return (
        stem.startswith("test_")
        or stem.endswith(("_test", "_tests", "_spec"))
        or ".test." in name
        or ".spec." in name
        or stem == "conftest"
    )


def is_test_file(path: str) -> bool:
    """Whether a file is a test's, by its folder or by a name that runners collect."""
    return role(path) is Role.TESTS


def _is_collected(path: str) -> bool:
    """Whether runners collect a file by its name; what build tools keep in `src/main` is product, whatever its name."""
    return "src/main/" not in path and named_as_tests(path)


def named_as_tests(path: str) -> bool:
    """Whether a file has a name by which common runners collect tests, whatever its folder."""
    return _COLLECTED.fullmatch(path.rpartition("/")[2]) is not None


def is_runner_file(path: str) -> bool:
    """Whether a file says how tests are found and run, derived from its path."""
    name = path.rpartition("/")[2]
    return any(
        fnmatchcase(name if "/" not in pattern else path, pattern) or path.endswith(f"/{pattern}")
        for pattern in RUNNER_FILES
    )
