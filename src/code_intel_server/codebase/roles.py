"""What part a file plays in a project, told from its path alone: code, test, documentation, configuration, markup, vendored."""

import re
from enum import StrEnum
from functools import lru_cache
from pathlib import PurePosixPath


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

_VENDORED = {
    "node_modules",
    "vendor",
    "vendored",
    "_vendor",
    "third_party",
    "thirdparty",
    "third-party",
    "bower_components",
    "dist",
    "site-packages",
    ".venv",
    "venv",
}
_GENERATED_SUFFIXES = {".po", ".pot", ".map", ".snap"}
_TESTS = {"test", "tests", "testing", "spec", "specs", "__tests__", "testdata", "e2e", "fixtures"}
_COLLECTED = re.compile(
    r"test_\w+\.py|\w+_(?:test|spec)s?\.\w+|.+\.(?:test|spec)\.\w+|\w+Tests?\.\w+|Tests?[A-Z]\w*\.\w+"
)
_DOCS = {"doc", "docs", "documentation", "man"}
_DOC_SUFFIXES = {".md", ".rst", ".txt", ".adoc", ".org", ".mdx", ".tex"}
_DOC_NAMES = {"readme", "changelog", "changes", "license", "copying", "authors", "contributing", "news", "history"}
_CONFIG_SUFFIXES = {
    ".json",
    ".yml",
    ".yaml",
    ".toml",
    ".ini",
    ".cfg",
    ".conf",
    ".properties",
    ".env",
    ".xml",
    ".lock",
    ".plist",
    ".gradle",
    ".tf",
    ".hcl",
    ".editorconfig",
    ".gitignore",
}
_CONFIG_NAMES = {
    "dockerfile",
    "makefile",
    "procfile",
    "jenkinsfile",
    "vagrantfile",
    "cmakelists.txt",
    "manifest.in",
    "go.mod",
    "go.sum",
    "requirements.txt",
}
_MARKUP_SUFFIXES = {
    ".html",
    ".htm",
    ".css",
    ".scss",
    ".sass",
    ".less",
    ".erb",
    ".jinja",
    ".jinja2",
    ".j2",
    ".hbs",
    ".mustache",
    ".ejs",
    ".haml",
    ".slim",
    ".pug",
    ".twig",
    ".svg",
}


@lru_cache(maxsize=65536)
def role(path: str) -> Role:
    """The part `path` (relative, '/'-separated) plays."""
    pure = PurePosixPath(path.lower())
    folders, suffix = set(pure.parts[:-1]), pure.suffix
    if folders & _VENDORED or ".min." in pure.name or suffix in _GENERATED_SUFFIXES:
        return Role.VENDORED
    if folders & _TESTS or _is_test_name(pure.name):
        return Role.TESTS
    if pure.name in _CONFIG_NAMES:
        return Role.CONFIGURATION
    if (
        suffix in _DOC_SUFFIXES
        or pure.stem in _DOC_NAMES
        or (folders & _DOCS and suffix not in _MARKUP_SUFFIXES and suffix != ".py")
    ):
        return Role.DOCUMENTATION
    if suffix in _CONFIG_SUFFIXES or (pure.name.startswith(".") and not suffix):
        return Role.CONFIGURATION
    if suffix in _MARKUP_SUFFIXES:
        return Role.MARKUP
    return Role.CODE


def _is_test_name(name: str) -> bool:
    stem = name.split(".", 1)[0]
    return (
        stem.startswith("test_")
        or stem.endswith(("_test", "_tests", "_spec"))
        or ".test." in name
        or ".spec." in name
        or stem == "conftest"
    )


def named_as_tests(path: str) -> bool:
    """Whether a file has a name by which common runners collect tests, whatever its folder."""
    return _COLLECTED.fullmatch(PurePosixPath(path).name) is not None
