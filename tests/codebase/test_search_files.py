"""search_files: globs mean what they say, and a few letters find the file that was meant."""

import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.codebase.lookup_project import explorer, write
from tests.programs import ran

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.files import ripgrep
from code_intel_server.codebase.files.ignore import project_files
from code_intel_server.codebase.files.roles import Role, role
from code_intel_server.codebase.files.search_files import fuzzy
from code_intel_server.common import globs
from code_intel_server.errors import Rejected
from code_intel_server.workspace.paths import SERVER_WRITES

FILES = dict.fromkeys(
    [
        "src/models/query.py", "src/query_router.py", "src/models/__init__.py", "tests/test_query.py", "docs/query.md",
        "README.md", "src/q.py", "web/Query.tsx",
    ],
    "x\n",
)  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("*.md", ["README.md", "docs/query.md"]),
        ("src/**/*.py", ["src/models/__init__.py", "src/models/query.py", "src/q.py", "src/query_router.py"]),
        ("src/*.py", ["src/q.py", "src/query_router.py"]),
        ("**/query.*", ["src/models/query.py", "docs/query.md"]),
        ("*.{md,tsx}", ["web/Query.tsx", "README.md", "docs/query.md"]),
        ("[qr]*.py", ["src/models/query.py", "src/q.py", "src/query_router.py"]),
        ("*.java", []),
    ],
)
def test_a_glob_finds_exactly_what_it_means(tmp_path: Path, pattern: str, paths: list[str]) -> None:
    answer = explorer(tmp_path, FILES).search_files(pattern)
    assert [row.path for row in answer.results] == paths
    assert answer.complete


@pytest.mark.parametrize(("letters", "first"), [
    ("query.py", "src/models/query.py"), ("query", "src/models/query.py"), ("models/query", "src/models/query.py"),
    ("qrouter", "src/query_router.py"), ("README.md", "README.md"), ("Query.tsx", "web/Query.tsx"),
    ("tquery", "tests/test_query.py"),
])  # fmt: skip
def test_letters_find_the_file_that_was_meant_first(letters: str, first: str) -> None:
    total, (best, *_) = fuzzy(list(FILES), letters)
    assert best.path == first and total >= 1


def test_letters_that_no_path_holds_find_nothing(tmp_path: Path) -> None:
    assert explorer(tmp_path, FILES).search_files("zzz").total == 0


def test_a_path_narrows_and_globs_are_read_from_there(tmp_path: Path) -> None:
    found = explorer(tmp_path, FILES)
    assert [row.path for row in found.search_files("models/*.py", "src").results] == [
        "src/models/__init__.py",
        "src/models/query.py",
    ]
    assert {row.path for row in found.search_files("query", "src").results} == {
        "src/models/query.py",
        "src/query_router.py",
    }


def test_no_pattern_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match=r"query\.no_pattern"):
        explorer(tmp_path, FILES).search_files(" ")


def test_the_listing_leaves_out_what_is_ignored_excluded_ours_or_too_large(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        ".gitignore": "ignored/\n*.tmp\n!kept.tmp\n", "ignored/a.py": "x\n", "b.tmp": "x\n", "kept.tmp": "x\n",
        "vendor/c.py": "x\n", "big.py": b"x" * 1024 * 1025, ".git/config": "x\n", "embedded/.git/config": "x\n",
        ".code-intel/config.json": "{}\n", ".github/workflow.yml": "x\n", "sub/.gitignore": "d.py\n", "sub/d.py": "x\n",
        "sub/e.py": "x\n",
    }  # fmt: skip
    listing = project_files(explorer(tmp_path, files, "vendor/**").project)
    assert set(listing.paths) == {".gitignore", "kept.tmp", ".github/workflow.yml", "sub/.gitignore", "sub/e.py"}


@pytest.mark.parametrize("name", SERVER_WRITES)
def test_what_the_server_of_a_project_within_this_one_writes_is_no_part_of_this_one(tmp_path: Path, name: str) -> None:
    written = f"sub/inner/.code-intel/{name}" if "." in name else f"sub/inner/.code-intel/{name}/deep/needle.py"
    files = {
        written: "def needle(): pass\n",
        # A person's text, though in that folder, and names that are only like it.
        "sub/inner/.code-intel/verifiers/needle.md": "needle\n",
        f"sub/inner/{name}/needle.py": "needle\n",
        f"sub/inner/x.code-intel/{name}/needle.py": "needle\n",
    }
    found = explorer(tmp_path, files)
    kept = set(files) - {written}
    assert set(project_files(found.project).paths) == kept
    assert {row.path for row in found.search_text("needle").results} == kept
    assert {row.path for row in found.search_files("needle").results} == kept
    assert found.find_definitions("needle").total == 0


@settings(max_examples=150)
@given(
    path=st.lists(
        st.text(st.sampled_from("abc.1"), min_size=1, max_size=4).filter(lambda part: part.strip(".")),
        min_size=1,
        max_size=3,
    ).map("/".join),
    pattern=st.lists(
        st.sampled_from(["*", "**", "?", "a", "b", "c", ".1", "[ab]", "[!a]", "{a,b}", "*.1", "a*"]),
        min_size=1,
        max_size=3,
    ).map("/".join),
)
def test_a_glob_means_what_it_means_to_ripgrep(
    tmp_path_factory: pytest.TempPathFactory, path: str, pattern: str
) -> None:
    root = tmp_path_factory.mktemp("glob")
    write(root, {path: "x\n"})
    anchored = f"/{pattern}" if "/" in pattern else pattern
    told = ran(
        [ripgrep.ripgrep_program(), "--no-config", "--hidden", "--no-ignore", "--files", "--glob", anchored], root
    )
    assert (told.stdout.splitlines() == [path]) == globs.matcher(pattern)(path)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(pattern=st.text(max_size=20), path=st.text(max_size=20))
def test_no_glob_fails(pattern: str, path: str) -> None:
    globs.matcher(pattern)(path)


@pytest.mark.parametrize(("path", "part"), [
    ("src/a.py", Role.CODE), ("src/test_a.py", Role.TESTS), ("pkg/a_test.go", Role.TESTS),
    ("web/a.spec.ts", Role.TESTS), ("tests/data/a.json", Role.TESTS), ("docs/a.rst", Role.DOCUMENTATION),
    ("CHANGELOG", Role.DOCUMENTATION), ("docs/conf.py", Role.CODE), ("pyproject.toml", Role.CONFIGURATION),
    (".gitignore", Role.CONFIGURATION), ("Dockerfile", Role.CONFIGURATION), ("CMakeLists.txt", Role.CONFIGURATION),
    ("requirements.txt", Role.CONFIGURATION), ("web/a.css", Role.MARKUP), ("templates/a.html", Role.MARKUP),
    ("node_modules/a/index.js", Role.VENDORED), ("static/jquery.min.js", Role.VENDORED),
    ("contest/latest.py", Role.CODE),
])  # fmt: skip
def test_a_path_tells_what_part_a_file_plays(path: str, part: Role) -> None:
    assert role(path) is part


def test_looking_for_files_needs_no_grammar(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    code = "import sys; from code_intel_server.codebase.explorer import Explorer; e = Explorer(sys.argv[1]); e.search_files('q'); e.search_text('x'); print([m for m in sys.modules if 'tree_sitter' in m])"
    env = {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "PATH": "/usr/bin:/bin"}
    done = ran([sys.executable, "-c", code, tmp_path], env=env, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("customerservicetestz", "services/customer-service/src/main/java/com/example/services/customer/Customer.java"),
        ("a" * 12 + "b", "a" * 60 + ".py"),
        ("*a" * 12 + "b", "a" * 60),
        ("{" * 2000 + "}", "a.py"),
        ("**/" * 500 + "x", "src/" * 20 + "a.py"),
        ("**/a/" * 20 + "x", "a/" * 60 + "y"),
        ("x" + "**b" * 30, "x" + "b" * 60 + "c"),
        ("{*b,*c}" * 30, "b" * 60 + "d"),
        ("{a,aa}" * 30 + "z", "a" * 60),
        ("a/" + "**/{b,b/c}/" * 20 + "z", "a/" + "b/" * 60 + "y"),
        ("*{a}" * 30 + "z", "a" * 60),
        ("*{}" * 30 + "z", "a" * 60),
        ("a/" + "**/{b}/" * 30 + "z", "a/" + "b/" * 60 + "y"),
        ("[" * 9_000 + "z-a]", "a"),
    ],
)
def test_no_pattern_is_tried_in_every_possible_way(tmp_path: Path, pattern: str, path: str) -> None:
    """Each took from half a second to for ever, inside the regular expressions, where nothing else can run."""
    found = explorer(tmp_path, {path: "x\n"})
    assert found.search_files(pattern).total == 0


def test_a_folder_named_like_a_pattern_is_no_pattern(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"app/[id]/src/page.tsx": "x\n", "app/i/src/page.tsx": "x\n"})
    assert [row.path for row in found.search_files("src/*.tsx", "app/[id]").results] == ["app/[id]/src/page.tsx"]


def test_a_long_pattern_over_long_paths_ends_in_time() -> None:
    paths = ["/".join([letter * 200] * 18) for letter in "abcdef"]
    began = time.monotonic()
    assert globs.meant(paths, ["**?" * 1500 + "z"], str) == []
    assert time.monotonic() - began < 60


def test_below_a_link_stands_what_it_leads_to(tmp_path: Path) -> None:
    found = explorer(tmp_path, {"src/deep/query.py": "x\n", "other/query.py": "x\n"})
    (tmp_path / "short").symlink_to("src/deep")
    assert [row.path for row in found.search_files("query", "short").results] == ["src/deep/query.py"]
    assert [row.path for row in found.search_files("*.py", "short").results] == ["src/deep/query.py"]


@pytest.mark.parametrize("pattern", ["**/*.py", "py"])
def test_a_page_is_the_same_as_that_part_of_all_rows(tmp_path: Path, pattern: str) -> None:
    found = explorer(tmp_path, {f"{folder}/m{number}.py": "x\n" for folder in ("src", "tests") for number in range(9)})
    every = found.search_files(pattern, page=Page(100)).results
    assert len(every) == 18
    for start in range(0, 18, 5):
        page = found.search_files(pattern, page=Page(5, start))
        assert (page.results, page.total) == (every[start : start + 5], 18)
