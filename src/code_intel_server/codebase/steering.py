"""What a change did to that which decides the tests' outcome: which of them run, by what, and who judges them (SPEC 4, PRE_COMMIT).

A test file can stay as it is and prove nothing: where a configuration leaves it out, a hook turns its outcome around, or a
module takes the runner's name. As in `weakening`, a phrase is a question to the reviewer, which a reason answers.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

_PHRASE_CHARACTERS = 80
_LINE_CHARACTERS = 1_000
"""No pattern looks at a longer line, since some take the square of its length: such a line tells whatever it says."""

_SHADOWED = frozenset(
    {"pytest", "_pytest", "pluggy", "iniconfig", "exceptiongroup", "unittest", "nose", "nose2", "tox", "nox", "sitecustomize", "usercustomize"}
)  # fmt: skip
"""Modules that Python takes from the folder it is started in, before the installed ones."""

_LIBRARY = sys.stdlib_module_names - {"test", "tests", "this"}
"""Python's own modules, of which the same is true; but a project may have had one of that name all along."""

_FIRST_OF_ITS_KIND = frozenset({"GNUmakefile", "makefile", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"})
"""Files that a runner takes in place of those of the same kind that lie there already."""

_CODING = re.compile(r"[ \t\f]*+#.*?coding[:=][ \t]*+([-\w.]++)")
_COMMENT_OR_BLANK = re.compile(r"[ \t\f]*+(?:#|$)")
_SHOWN_AS_IT_RUNS = re.compile(
    r"utf[-_]?8(?:[-_](?:sig|unix|dos))?|(?:us[-_]?)?ascii|l1|latin[-_]?\d*|iso[-_]?8859[-_]?\d+(?:[-_]\w+)?|(?:cp|windows)[-_]?\d+|koi8[-_]?\w"
    r"|gbk|gb2312|gb18030|big5|euc[-_]?\w+|s(?:hift)?[-_]?jis",
    re.IGNORECASE,
)
"""Encodings in which a line of Python is one line, and says what is read."""

_NOTHING = r"(?!)"
_CALLED = re.compile(r"(?:^|[=;&|@+-])[ \t]*+\$[({](\w++)[)}]")
_GIVEN = re.compile(r"(?:(?:export|override)[ \t]++)*(\w++)[ \t]*+(?:[:?+!]|::)?=")


@dataclass(frozen=True, slots=True)
class _Rule:
    """In files of these names, the lines that `lines` matches (with all lines of the block that `block` begins) steer.

    Those that `kept` matches bring tests in: one more is welcome, and only one that is lost or changed tells. Where
    `overrules` is false, a new file of this kind takes nothing from what ran before.
    """

    names: "re.Pattern[str]"
    lines: "re.Pattern[str]"
    block: "re.Pattern[str]"
    kept: "re.Pattern[str]"
    overrules: bool


def _rule(names: str, lines: str, *, block: str = _NOTHING, kept: str = _NOTHING, overrules: bool = True) -> _Rule:
    flags = re.IGNORECASE
    return _Rule(re.compile(names, flags), re.compile(lines), re.compile(block, flags), re.compile(kept), overrules)


_RULES = (
    _rule(
        r"conftest\.py",
        r"\bcollect_ignore(?:_glob)?\b|\bpytest_(?:ignore_collect|collection_\w+|collect_\w+|make_\w+|generate_tests|itemcollected|deselected|runtest_\w+"
        r"|plugins|pyfunc_call|report_teststatus|session\w+|configure|unconfigure|addoption|load_initial_conftests|cmdline_\w+)\b"
        r"|\bos\._exit\b|\batexit\b|\b(?:sys|pytest)\.exit\b|\bSystemExit\b|\bexitstatus\s*="
        r"|\bautouse\b|\bsys\.(?:modules|path|meta_path)\b|\bbuiltins\b|\bAssertionError\b",
    ),
    _rule(
        r"\.?pytest\.(?:ini|toml)|tox\.ini|setup\.cfg|pyproject\.toml|\.coveragerc",
        r"^\s*[\"']?(?:addopts|testpaths|norecursedirs|python_(?:files|classes|functions)|collect_ignore\w*|fail_under|xfail_strict|confcutdir|empty_parameter_set_mark|pythonpath|doctest_optionflags|reruns|DJANGO_\w+"
        r"|pytest11|ignore_(?:outcome|errors)|change_?dir|set_?env)\b"
        r"|^\s*(?:usefixtures|env|required_plugins|asyncio_mode)\s*=|\bPYTHONOPTIMIZE\b|\bPYTEST_(?:ADDOPTS|PLUGINS|DISABLE_PLUGIN_AUTOLOAD)\b|\bPYTHONPATH\b|\bentry-points\.pytest11\b"
        r"|--(?:ignore|deselect|collect-only|co)\b|(?:^|[\s\"'])-[km][\s=\"']",
        block=r"\s*(?:addopts|commands(?:_pre|_post)?|testpaths|norecursedirs|usefixtures|pythonpath|(?:set_?)?env)\s*=",
    ),
    _rule(
        r"package\.json|deno\.jsonc?|composer\.json",
        r"\"(?:pre|post)?test\"\s*:|\"(?:testPathIgnorePatterns|testMatch|testRegex|passWithNoTests|moduleNameMapper"
        r"|modulePaths|setupFiles\w*|globalSetup|testRunner|resolver|roots)\"",
        kept=r"\"test[\w:.-]+\"\s*:",
        overrules=False,
    ),
    _rule(
        r"(?:jest|vitest|vite|karma|playwright|cypress|ava|wdio)\.(?:conf|config)\b.*|\.(?:mocharc|nycrc|c8rc)\b.*",
        r"\b(?:testPathIgnorePatterns|testMatch|testRegex|testIgnore|testDir|passWithNoTests|setupFiles\w*|globalSetup|exclude|include"
        r"|spec|ignore|f?grep|invert|runner|testRunner|moduleNameMapper|modulePaths|resolver|roots|alias|retry|retries|dangerouslyIgnoreUnhandledErrors)\b"
        r"|(?:^|[\s{,])[\"']?(?:require|import)[\"']?\s*:",
    ),
    _rule(r"(?:gnu)?makefile|.*\.mk|\.?justfile|rakefile|taskfile\.ya?ml", r"\bPYTHON(?:OPTIMIZE|PATH)\b|\bPYTEST_\w|^\s*(?:export\s+)?(?:SHELL|\.SHELLFLAGS|(?:GNU)?MAKEFLAGS|PATH)\s*[:?+]*=|^\.IGNORE\b|^\s*set\s+(?:windows-)?shell\b|\bignore_error\b", block=r"\s*(?:task\s+:?)?(?>[\w.:-]*?(?:test|check|verify|spec))[\w.-]*+\s*[:=]", overrules=False),
    _rule(
        r"build\.gradle(?:\.kts)?|pom\.xml|cmakelists\.txt|meson\.build|cargo\.toml|phpunit\.xml(?:\.dist)?|.*\.csproj|noxfile\.py",
        r"(?i)\bskip(?:tests|exec)?\b|\bexcludes?\b|ignoreFailures|testFailureIgnore|\benabled\s*=\s*false|^\s*(?:test|harness|autotests|doctest)\s*="
        r"|\b(?:should_fail|WILL_FAIL|DISABLED|PASS_REGULAR_EXPRESSION|SKIP_R\w+)\b|\bbootstrap\s*=",
        kept=r"\badd_test\b|\bsession\.run\(|\bgtest_discover_tests\b",
        overrules=False,
    ),
    _rule(r"\.rspec", r"--(?:failure-exit-code|(?:exclude-)?pattern|tag|example|only-failures|next-failure|dry-run|require)\b|(?:^|\s)-[terP]\b"),
    _rule(r"(?:spec|rails|test)_helper\.rb", r"\bfailure_exit_code\b|\bfilter_run|\bexclude_pattern\b|\bat_exit\b|\bexit\b", overrules=False),
    _rule(r"\.npmrc", r"^\s*(?:script-shell|node-options|ignore-scripts)\s*="),
    _rule(r"\.bazelrc", r"--(?:run_under|test_\w+|build_tests_only|flaky_test_attempts)\b"),
    _rule(r"nextest\.toml", r"\b(?:retries|(?:default-)?filter|run-wrapper|setup)\b"),
    _rule(r".*_test\.go", r"^//\s*(?:go:build|\+build)\b"),
    _rule(r"(?:jest|vitest|tests?|mocha)[.-]?setup\.[cm]?[jt]sx?|setup[.-]?(?:tests?|jest|vitest|mocha)\.[cm]?[jt]sx?", r"\S", overrules=False),
)  # fmt: skip

_PLACED = (
    _rule(r"\.cargo/config(?:\.toml)?", r"\brunner\b|\brustc\b|\brustc-(?:workspace-)?wrapper\b|\brust(?:doc)?flags\b"),
    _rule(r"\.mvn/(?:maven|jvm)\.config", r"(?i)skip|-Dtest|failIfNo|testFailureIgnore|surefire"),
)  # fmt: skip
"""Files that only their folder tells from others of their name, by both."""

_PIPELINE = re.compile(
    r"(?:.*/)?\.(?:github/workflows|forgejo/workflows|gitea/workflows|circleci)/[^/]+\.ya?ml"
    r"|(?:.*/)?(?:\.gitlab-ci|azure-pipelines|bitbucket-pipelines|\.travis|\.drone|appveyor)\.ya?ml|(?:.*/)?jenkinsfile",
    re.IGNORECASE,
)
_PIPELINES = _rule(
    r".*",
    r"(?i)\btest|\bpytest\b|\bjest\b|\bvitest\b|\btox\b|\bnox\b|\bmake\b|\bmvn\b|\bgradlew?\b|\bcheck\b|\bverify\b"
    r"|\bcontinue-on-error\b|\ballow_failure\b|\|\|\s*(?:true|:|exit 0)|\bset \+e\b|^\s*+(?:-\s*+)?(?:if|when|only|except|rules|needs|on|branches|paths)\s*+:",
    overrules=False,
)  # fmt: skip


def steered(path: str, before: Sequence[str] | None, after: Sequence[str] | None) -> tuple[str, ...]:
    """What two versions of a file steer differently, one short phrase each; `None` (or nothing) is a version without it."""
    name = PurePosixPath(path).name
    if _shadows(path) and _there(after):
        return (f"takes the place of the module {_module(path)} that tests run by",)
    if _takes_from_the_library(path) and not _there(before) and _there(after):
        return (f"takes the place of Python's module {_module(path)}, also where tests run",)
    coding = _coding(path, after)
    if coding and coding != _coding(path, before):
        return (f"is read as {coding[:_PHRASE_CHARACTERS]}, so something else may run than is shown",)
    placed = next((rule for rule in _PLACED if rule.names.fullmatch("/".join(path.split("/")[-2:]))), None)
    rule = _PIPELINES if _PIPELINE.fullmatch(path) else placed or _rule_of(name)
    if rule is None or [*(before or ())] == [*(after or ())]:
        return ()
    if any("\0" in line for line in after or ()):
        return ("decides which tests run, or how, and cannot be read",)
    if not _there(before):
        if name in _FIRST_OF_ITS_KIND:
            return ("takes the place of what decided which tests run, or how",)
        if not rule.overrules:
            return ()
    old, new = _telling(rule, before or ()), _telling(rule, after or ())
    kept = {_bare(line) for line in after or ()}
    brought = [line for line in before or () if len(line) <= _LINE_CHARACTERS and rule.kept.search(line)]
    lost = [_bare(line) for line in brought if _bare(line) not in kept]
    if old == new and not lost:
        return ()
    both = {*old} & {*new}
    shown = next((line for line in (*new, *old, *lost) if line not in both), "their order")
    return (f"changes which tests run, or how: {shown[:_PHRASE_CHARACTERS]}",)


def decides(name: str) -> bool:
    """Whether a file of this name may decide which tests run, or how."""
    return _rule_of(name) is not None


def telling_lines(name: str, lines: Sequence[str]) -> list[str]:
    """The lines of a file of this name that decide which tests run, or how."""
    rule = _rule_of(name)
    return [] if rule is None else _telling(rule, lines)


def _rule_of(name: str) -> _Rule | None:
    return next((rule for rule in _RULES if rule.names.fullmatch(name)), None)


def _there(lines: Sequence[str] | None) -> bool:
    return bool(lines) and any(lines or ())


def _module(path: str) -> str:
    pure = PurePosixPath(path)
    return pure.parent.name if pure.name == "__init__.py" else pure.stem


def _shadows(path: str) -> bool:
    return path.endswith(".py") and _module(path) in _SHADOWED


def _coding(path: str, lines: Sequence[str] | None) -> str:
    """The encoding that a file of Python asks to be read in, in one of its first two lines, where that hides what runs; or ''."""
    for line in (lines or ())[:2] if path.endswith((".py", ".pyi", ".pyw")) else ():
        said = _CODING.match(line)
        if said:
            return "" if _SHOWN_AS_IT_RUNS.fullmatch(said[1]) else said[1]
        if not _COMMENT_OR_BLANK.match(line):
            break
    return ""


def _takes_from_the_library(path: str) -> bool:
    """Whether a module or package stands where the project's commands are started, and has a name of Python's own."""
    inside = path.removesuffix("/__init__.py") if path.endswith("/__init__.py") else path.removesuffix(".py")
    return path.endswith(".py") and "/" not in inside and inside in _LIBRARY


def _bare(line: str) -> str:
    """A line without what changes with its neighbours: indentation, and the comma at the end of an entry."""
    return line.strip().removesuffix(",")


def _telling(rule: _Rule, lines: Sequence[str]) -> list[str]:
    """The lines that steer, and those that say what a command of theirs stands for (`$(RUN) tests`, `RUN = python`)."""
    found = _steering(rule, lines)
    given: dict[str, list[str]] = {}
    for line in map(_bare, lines):
        if len(line) <= _LINE_CHARACTERS and (match := _GIVEN.match(line)):
            given.setdefault(match[1], []).append(line)
    asked: set[str] = set()
    for line in found:  # which grows meanwhile
        fresh = [name for name in _CALLED.findall(line) if name in given and name not in asked]
        asked.update(fresh)
        found += [meaning for name in fresh for meaning in given.pop(name, ())]
    return found


def _steering(rule: _Rule, lines: Sequence[str]) -> list[str]:
    """The lines that steer by themselves."""
    found: list[str] = []
    depth: int | None = None
    for line in lines:
        text = _bare(line)
        indent = len(line) - len(line.lstrip())
        if depth is not None and text and indent <= depth and text not in {"]", ")", "}"}:
            depth = None
        long = len(line) > _LINE_CHARACTERS
        if not long and rule.block.match(line):
            depth = indent
        if text and (long or depth is not None or rule.lines.search(line)):
            found.append(text)
    return found
