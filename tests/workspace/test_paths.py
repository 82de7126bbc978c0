"""Paths: what an agent names is followed as the system would, and never leads out of the project."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_intel_server.errors import Rejected, UserActionNeeded
from code_intel_server.workspace import paths
from code_intel_server.workspace.paths import Project, exclude_from_git, find_root, glob_filter, relative_path
from tests.programs import ran


def project(root: Path, *files: str) -> Path:
    """A folder with empty files."""
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def test_the_root_is_the_nearest_folder_upwards_with_code_intel(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".code-intel").mkdir()
    (tmp_path / "pkg" / ".code-intel").mkdir(parents=True)
    (tmp_path / "pkg" / "src" / "deep").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    assert find_root(tmp_path / "pkg" / "src" / "deep") == tmp_path / "pkg"
    assert find_root(tmp_path / "other") == tmp_path


def test_without_it_the_git_root_is_the_root_also_of_a_worktree_or_submodule(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    assert find_root(tmp_path / "src") == tmp_path


def test_a_code_intel_folder_above_the_git_root_belongs_to_another_project(tmp_path: Path) -> None:
    (tmp_path / ".code-intel").mkdir()
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src").mkdir()
    assert find_root(tmp_path / "repo" / "src") == tmp_path / "repo"


def test_with_neither_the_start_is_the_root_and_an_override_always_is(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "alias").symlink_to("a")
    assert find_root(tmp_path / "alias") == tmp_path / "a"
    assert find_root(tmp_path, override=tmp_path / "alias") == tmp_path / "a"


@pytest.mark.parametrize(("given_path", "expected"), [
    ("a.py", "a.py"), ("./a.py", "a.py"), ("src/../a.py", "a.py"), ("src//b.py", "src/b.py"),
    ("src/./b.py", "src/b.py"), ("src/", "src"), (".", "."), ("src/..", "."), ("new/not/yet.py", "new/not/yet.py"),
    ("link.py", "a.py"), ("linked/b.py", "src/b.py"), ("linked/../a.py", "a.py"), ("with space.py", "with space.py"),
    ("-rf", "-rf"), ("--pre=x", "--pre=x"), (":0", ":0"), ("~", "~"), ("$HOME", "$HOME"),
    ("ünïcode/日本.py", "ünïcode/日本.py"), (".gitignore", ".gitignore"), (".github/x", ".github/x"),
])  # fmt: skip
def test_a_path_comes_back_relative_and_resolved(tmp_path: Path, given_path: str, expected: str) -> None:
    project(tmp_path, "a.py", "src/b.py")
    (tmp_path / "link.py").symlink_to("a.py")
    (tmp_path / "linked").symlink_to("src")
    assert relative_path(tmp_path, given_path) == expected
    assert relative_path(tmp_path, str(tmp_path / given_path)) == expected


def test_a_last_link_stays_itself_when_it_is_the_subject(tmp_path: Path) -> None:
    project(tmp_path, "src/b.py")
    (tmp_path / "linked").symlink_to("src")
    (tmp_path / "src" / "out").symlink_to("/etc/passwd")
    assert relative_path(tmp_path, "linked", follow=False) == "linked"
    assert relative_path(tmp_path, "linked/out", follow=False) == "src/out"
    assert relative_path(tmp_path, "src/..", follow=False) == "."
    with pytest.raises(Rejected):
        relative_path(tmp_path, "linked/out")


@pytest.mark.parametrize("given_path", [
    "..", "../x", "/", "/etc/passwd", "src/../../x", "out/passwd", "out", "up/x", "../{name}-evil/x", "//etc/passwd",
    "/proc/self/root/etc/passwd", "src/" + "../" * 40 + "etc/passwd", "../{name}/../x",
])  # fmt: skip
def test_what_leads_out_of_the_project_is_refused(tmp_path: Path, given_path: str) -> None:
    root = project(tmp_path / "root", "src/b.py")
    project(tmp_path / "root-evil", "x")
    (root / "out").symlink_to("/etc")
    (root / "up").symlink_to("..")
    with pytest.raises(Rejected, match="path_outside_project"):
        relative_path(root, given_path.format(name="root"))


def test_dots_after_a_link_mean_what_the_system_takes_them_for(tmp_path: Path) -> None:
    root = project(tmp_path / "root", "a.py")
    project(tmp_path / "elsewhere", "deep/x")
    (root / "out").symlink_to(tmp_path / "elsewhere" / "deep")
    with pytest.raises(Rejected, match="path_outside_project"):
        relative_path(root, "out/../a.py")


@pytest.mark.parametrize(
    "given_path",
    ["a\0b", "\ud800.py", "x" * 300, "d/" * 3000, "loop", "loop/x", ".git/config", ".git", "src/.git/x", ".GIT/config"],
)
def test_what_no_file_of_the_project_can_be_called_is_refused_with_its_reason(tmp_path: Path, given_path: str) -> None:
    project(tmp_path, ".git/config", "src/.git/x")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(Rejected, match="path_invalid") as raised:
        relative_path(tmp_path, given_path)
    assert raised.value.params["reason"]
    assert str(raised.value.params["path"]).isprintable()
    assert len(str(raised.value.params["path"])) < 1000


@pytest.mark.parametrize("given_path", ["", "   ", None, 7, ["a.py"], b"a.py"])
def test_what_is_no_text_is_refused_as_an_argument(tmp_path: Path, given_path: object) -> None:
    with pytest.raises(Rejected, match="argument_invalid"):
        relative_path(tmp_path, given_path)


pieces = st.sampled_from(["a", "b.py", "..", ".", "", "link", "out", "new", "ü", "x" * 256, ".git", "\0", "\ud800"])


@given(st.lists(pieces | st.text(max_size=20), max_size=8), st.booleans(), st.booleans())
def test_whatever_comes_back_is_inside_the_project_and_names_the_same_file_again(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], absolute: bool, follow: bool
) -> None:
    root = tmp_path_factory.getbasetemp() / "property"
    if not root.exists():
        project(root, "a/b.py", "b.py", ".git/HEAD")
        (root / "link").symlink_to("a")
        (root / "out").symlink_to("/usr")
    text = "/".join(parts)
    try:
        found = relative_path(root, f"{root}/{text}" if absolute else text, follow=follow)
    except Rejected:
        return
    assert not found.startswith("/")
    assert ".." not in found.split("/")
    assert (root / found if follow or found == "." else (root / found).parent).resolve().is_relative_to(root)
    assert relative_path(root, found, follow=follow) == found
    if os.path.exists(root / text) and follow and not absolute:  # noqa: PTH110 - pathlib raises for a name too long
        assert (root / found).samefile(root / text)


def test_where_the_volume_folds_case_a_path_is_spelled_as_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, "src/ReadMe.md", "Ü/x")
    monkeypatch.setattr(paths, "folds_case", lambda _: True)  # stands in for a volume we cannot mount here
    assert relative_path(tmp_path, "SRC/README.MD") == "src/ReadMe.md"
    assert relative_path(tmp_path, "u\u0308/X") == "Ü/x"
    assert relative_path(tmp_path, "src/New.py") == "src/New.py"
    assert relative_path(tmp_path, "missing/New.py") == "missing/New.py"
    monkeypatch.undo()
    assert relative_path(tmp_path, "SRC/README.MD") == "SRC/README.MD"


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("**/*.md", ["a.md", "d/a.md", "d/e/a.md"], ["a.mdx", "md", "a.md/b"]),
        ("docs/", ["docs/a", "docs/d/b.md"], ["docs", "x/docs/a"]),
        ("node_modules/**", ["node_modules/a", "node_modules/b/c"], ["node_modules", "x/node_modules/a"]),
        ("**/node_modules/**", ["node_modules/a", "x/y/node_modules/b/c"], ["node_modules", "a/b"]),
        ("*.md", ["a.md", "d/e/a.md"], ["a.txt"]),
        ("/README.md", ["README.md"], ["d/README.md"]),
        ("./docs/*.md", ["docs/a.md"], ["docs/d/a.md"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/x", "ab"]),
        ("a?c.[ch]", ["abc.c", "d/abc.h"], ["ac.c", "abc.x"]),
        ("[!a]*.py", ["b.py"], ["a.py"]),
        ("a[", ["a["], ["a"]),
        ("[z-a]", [], ["z", "b"]),
        ("a/**/b/**/c.md", ["a/b/c.md", "a/1/b/2/3/c.md", "a/b/b/c.md"], ["a/c.md"]),
    ],
)
def test_globs(pattern: str, matching: list[str], other: list[str]) -> None:
    matches = glob_filter((pattern,))
    assert [path for path in matching if not matches(path)] == []
    assert [path for path in other if matches(path)] == []


def test_no_glob_matches_nothing_and_a_hostile_one_takes_no_time() -> None:
    assert not glob_filter(())("a")
    assert not glob_filter(("", "/", "//"))("a")
    matches = glob_filter(("**/" * 60 + "x", "*a" * 60 + "b", "/".join(["**", "*a*"] * 40) + "/**/b"))
    assert not matches("/".join(["a" * 60] * 60))


def test_the_project_knows_its_places_by_its_real_root(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    one = Project(tmp_path / "alias")
    assert one == Project(tmp_path / "real")
    folder = tmp_path / "real" / ".code-intel"
    assert (one.sessions, one.logs, one.cache) == (folder / "sessions", folder / "logs", folder / "cache")
    assert (one.config_file, one.context_file) == (folder / "config.json", folder / "context.yml")
    assert one.contract_file == folder / "phase_contract.yml"
    assert one.ledger_file("20260201_123456") == folder / "logs" / "ledger" / "20260201_123456.jsonl"
    assert one.inside("x.py") == "x.py"
    assert set(paths.EXCLUDED) < set(paths.SERVER_WRITES)


def test_a_folder_for_the_server_is_made_when_it_is_missing(tmp_path: Path) -> None:
    one = Project(tmp_path)
    assert one.writable("logs", "ledger") == one.logs / "ledger"
    assert one.writable("logs", "ledger").is_dir()
    assert one.writable() == one.folder


@pytest.mark.parametrize("bad", [".code-intel", ".code-intel/sessions", ".code-intel/logs/ledger"])
def test_a_folder_that_a_repository_aims_elsewhere_is_not_written_to(tmp_path: Path, bad: str) -> None:
    root, target = tmp_path / "root", tmp_path / "target"
    target.mkdir()
    (root / bad).parent.mkdir(parents=True)
    (root / bad).symlink_to(target)
    parts = ("sessions",) if "sessions" in bad else ("logs", "ledger")
    with pytest.raises(UserActionNeeded, match="state_folder_unsafe") as raised:
        Project(root).writable(*parts)
    assert str(raised.value.params["folder"]).startswith(".code-intel")
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("name", [".code-intel", *(f".code-intel/{name}" for name in (*paths.EXCLUDED, "agreements"))])
def test_a_project_whose_folders_lead_elsewhere_is_refused_as_a_whole(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    (root / name).parent.mkdir(parents=True)
    Project(root).check_folders()
    (root / name).symlink_to(tmp_path)
    with pytest.raises(UserActionNeeded, match="state_folder_unsafe"):
        Project(root).check_folders()


def test_links_above_the_project_are_the_users_own_affair(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    assert not paths.aimed_elsewhere(tmp_path / "alias" / ".code-intel" / "sessions")
    assert not paths.aimed_elsewhere(tmp_path / "alias" / "state")


def test_a_file_in_the_place_of_a_folder_is_told(tmp_path: Path) -> None:
    project(tmp_path, ".code-intel/sessions")
    with pytest.raises(UserActionNeeded, match="state_folder_unsafe"):
        Project(tmp_path).writable("sessions")


def test_the_servers_own_folders_are_excluded_once_and_the_users_lines_stay(tmp_path: Path) -> None:
    exclude = tmp_path / ".git" / "info" / "exclude"
    exclude.parent.mkdir(parents=True)
    exclude.write_bytes(b"# mine\n*.secret \xff")
    exclude.chmod(0o664)
    one = Project(tmp_path)
    assert exclude_from_git(one, tmp_path / ".git", tmp_path) is True
    first = exclude.read_bytes()
    assert first.startswith(b"# mine\n*.secret \xff\n")
    assert b"\n/.code-intel/sessions/\n/.code-intel/cache/\n" in first
    assert exclude.stat().st_mode & 0o777 == 0o664
    assert exclude_from_git(one, tmp_path / ".git", tmp_path) is False
    assert exclude.read_bytes() == first


def test_git_itself_sees_none_of_the_servers_files_also_in_a_monorepo_folder_of_any_name(tmp_path: Path) -> None:
    ran(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".git" / "info" / "exclude").unlink()
    one = Project(project(tmp_path / "pkg [x]*", "a.py"))
    for name in paths.EXCLUDED:
        project(one.writable(name), "file")
    project(one.folder, "config.json")
    exclude_from_git(one, tmp_path / ".git", tmp_path)
    seen = ran(["git", "-c", "core.quotePath=false", "status", "--porcelain", "-uall"], tmp_path, check=True).stdout
    assert seen.splitlines() == ['?? "pkg [x]*/.code-intel/config.json"', '?? "pkg [x]*/a.py"']


def test_an_exclude_file_that_is_a_link_is_written_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / ".git" / "info").mkdir(parents=True)
    (tmp_path / "shared").write_text("mine\n")
    (tmp_path / ".git" / "info" / "exclude").symlink_to(tmp_path / "shared")
    exclude_from_git(Project(tmp_path), tmp_path / ".git", tmp_path)
    assert (tmp_path / ".git" / "info" / "exclude").is_symlink()
    assert (tmp_path / "shared").read_text().startswith("mine\n#")
