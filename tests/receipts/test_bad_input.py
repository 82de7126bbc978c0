"""Whatever the input, a verdict says what it knows, and nothing is left behind (SPEC 4, Receipts)."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from code_intel_server.receipts.checkout import Checkouts
from code_intel_server.receipts.isolation import can_mount
from code_intel_server.receipts.notary import Verdict
from tests.receipts.alone import judged, opened, run_alone
from tests.workspace.git_repo import Repo

PYTEST = (sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider")
PLAIN = "def test_one():\n    assert True\n"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository with one test, and folders of its own for the runs."""
    run_alone(tmp_path, monkeypatch)
    return Repo.with_files(tmp_path, monkeypatch, calc__py="one = 1\n", test_calc__py=PLAIN)


def _verdict(repo: Repo, files: dict[str, str], borrow: tuple[str, ...] = (), stall: float = 60) -> Verdict:
    repo.change(files)
    return judged(repo, PYTEST, timeout=60, stall=stall, borrow=borrow)


def test_a_loop_that_only_the_base_has_is_what_the_change_fixes(repo: Repo) -> None:
    _verdict(repo, {"calc.py": "def loop():\n    while True: pass\n"})
    test = PLAIN + "def test_loop():\n    from calc import loop\n    loop()\n"
    verdict = _verdict(repo, {"calc.py": "def loop():\n    return 1\n", "test_calc.py": test}, stall=1)
    assert verdict.receipt.fail_to_pass == ("test_calc.py::test_loop",)
    assert verdict.receipt.pass_to_pass == ("test_calc.py::test_one",)
    assert verdict.good, verdict


def test_a_project_without_tests_and_a_base_that_cannot_be_imported_prove_nothing_and_say_so(repo: Repo) -> None:
    repo.git("rm", "-q", "test_calc.py")
    repo.commit("no tests")
    verdict = _verdict(repo, {"calc.py": "two = 2\n"})
    assert not verdict.receipt.pass_to_pass
    assert verdict.unavailable.endswith("exit status 5, as before, and no test was seen")
    repo.write("calc.py", "import nothing_of_this_name\n")
    repo.write("test_calc.py", "import calc\n" + PLAIN)
    repo.commit("broken")
    verdict = _verdict(repo, {"calc.py": "one = 1\n"})
    assert verdict.receipt.fail_to_pass == ("test_calc.py::test_one",)
    assert "no test was seen to pass on the base: nothing can be said of what passed before" in verdict.notes


def test_what_tests_write_start_and_listen_on_is_gone_after_each_run(repo: Repo, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    listen = f"import socket, time; s = socket.socket(); s.bind(('127.0.0.1', {port})); s.listen(); print(flush=True); time.sleep(600)"
    starts = (
        "import pathlib, subprocess, sys\n\ndef test_starts():\n"
        f"    child = subprocess.Popen([sys.executable, '-c', {listen!r}], start_new_session=True, stdout=subprocess.PIPE)\n"
        "    assert child.stdout.read(1)\n"
        f"    pathlib.Path({str(repo.path / 'written')!r}).write_text('x')\n"
    )
    verdict = _verdict(repo, {"test_starts.py": starts})
    assert verdict.receipt.failing == ()
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))
    assert not [*(tmp_path / "temporary").glob("*/*")]
    assert (repo.path / "written").exists() is not can_mount()


def test_an_ignored_file_that_tests_need_is_borrowed_where_it_is_named(repo: Repo) -> None:
    repo.write(".gitignore", ".env\n")
    repo.write(".env", "KEY=1")
    needs = "def test_key():\n    assert open('.env').read() == 'KEY=1'\n"
    verdict = _verdict(repo, {"test_env.py": needs})
    assert verdict.receipt.failing == ("test_env.py::test_key",)
    verdict = _verdict(repo, {"calc.py": "three = 3\n"}, borrow=(".env",))
    assert "test_env.py::test_key" in verdict.receipt.pass_to_pass


def test_results_that_a_product_forges_are_not_believed(repo: Repo) -> None:
    forged = (
        "import gc, types\nmodules = [one for one in gc.get_objects() if isinstance(one, types.ModuleType)]\n"
        "plugin = next((one for one in modules if one.__name__ == 'pytest_results'), None)\n"
        "if plugin:\n    real = plugin._write\n"
        "    plugin._write = lambda **event: real(**{**event, **({'outcome': 'passed'} if 'outcome' in event else {})})\n"
        "def wrong():\n    return False\n"
    )
    verdict = _verdict(
        repo, {"calc.py": forged, "test_calc.py": PLAIN + "import calc\ndef test_two():\n    assert calc.wrong()\n"}
    )
    assert any("must fail was not seen to fail" in text for text in verdict.problems)


def test_an_added_module_that_stands_in_for_a_library_steers_no_original_test(repo: Repo) -> None:
    fake = "import os\nos.write(2, b'faked')\nos._exit(0)\n"
    verdict = _verdict(repo, {"colorsys.py": fake, "test_calc.py": "import colorsys\n" + PLAIN})
    assert any("stands in for a library" in text and "colorsys.py" in text for text in verdict.problems)
    assert verdict.receipt.pass_to_pass == ("test_calc.py::test_one",)
    assert not verdict.good


def test_a_manifest_that_cannot_be_merged_is_the_bases_first_and_that_is_said(repo: Repo) -> None:
    _verdict(repo, {"pyproject.toml": "[project]\nname = 'calc'\nversion = '1'\n"})
    steering = "[project]\nname = 'calc'\nversion = '2'\n[tool]\npytest.ini_options.addopts = '--deselect test_calc.py::test_one'\n"
    verdict = _verdict(repo, {"pyproject.toml": steering, "calc.py": "one = 0\n"})
    assert verdict.receipt.pass_to_pass == ("test_calc.py::test_one",)
    assert verdict.receipt.removed == ("test_calc.py::test_one",)
    assert "pyproject.toml: could not be merged, the original tests ran with the base's" in verdict.notes


def test_lfs_pointers_sparse_and_partial_clones_and_worktrees_are_checked_out_whole_or_named(
    repo: Repo, tmp_path: Path
) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    repo.write("data/big.bin", pointer)
    repo.write(".gitattributes", "*.bin filter=lfs\n")
    repo.commit("with lfs")
    repo.git("config", "uploadpack.allowFilter", "true")
    clones = {"sparse": ("--sparse",), "partial": ("--filter=blob:none", "--no-checkout")}
    for name, options in clones.items():
        repo.git("clone", "-q", *options, f"file://{repo.path}", str(tmp_path / name))
    repo.git("worktree", "add", "-q", str(tmp_path / "worktree"), "HEAD")
    for name in (*clones, "worktree"):
        checkouts = Checkouts(opened(Repo(tmp_path / name)), tmp_path / f"{name}-runs")
        made = checkouts.make("new", repo.git("rev-parse", "HEAD"))
        assert (made / "data" / "big.bin").read_text() == pointer
        assert checkouts.pointers == {"data/big.bin"}
    assert repo.git("worktree", "list", "--porcelain").count("worktree ") == 2


def test_a_kill_in_a_run_leaves_nothing_that_the_next_start_does_not_end(repo: Repo, tmp_path: Path) -> None:
    running = tmp_path / "running"
    os.mkfifo(running)
    slow = f"import pathlib, time\ndef test_slow():\n    pathlib.Path({str(running)!r}).write_text('')\n    time.sleep(600)\n"
    repo.write("test_slow.py", slow)
    repo.commit("change")
    code = (
        "import os, tempfile\nfrom pathlib import Path\n"
        f"tempfile.tempdir = {tempfile.tempdir!r}\n"
        "from code_intel_server.receipts.notary import Notary\n"
        "from code_intel_server.workspace.project.config import VerifyCommand\n"
        "from code_intel_server.workspace.git.repository import open_repository\n"
        f"notary = Notary(open_repository(Path({str(repo.path)!r})), [VerifyCommand(argv={PYTEST!r})])\n"
        "notary.verify('HEAD^', 'HEAD')\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as child:
        running.read_text()  # until the test has opened it
        child.kill()
    _verdict(repo, {"test_slow.py": PLAIN}, stall=1)
    assert not [*(tmp_path / "temporary").glob("*/*")]
    here = str(tmp_path / "temporary").encode()
    assert not [entry for entry in Path("/proc").glob("[0-9]*") if here in _environment(entry)]


def _environment(entry: Path) -> bytes:
    try:
        return (entry / "environ").read_bytes()
    except OSError:
        return b""
