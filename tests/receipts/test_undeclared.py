"""What only the user's own folders have and a change needs is asked for; what something asks for is not (SPEC 4, Receipts)."""

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from code_intel_server.receipts.notary import Notary
from code_intel_server.receipts.report import UNDECLARED, seen_tests
from code_intel_server.workspace.git.repository import Git, open_repository
from code_intel_server.workspace.project.config import VerifyCommand
from code_intel_server.workspace.values import Change, ChangeKind
from tests.workspace.git_repo import Repo

PYTEST = (".venv/bin/python", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider")
OLD = {
    "shop.py": "def tax():\n    return 1\n",
    "test_shop.py": "import shop\n\ndef test_tax():\n    assert shop.tax() == 1\n",
    ".gitignore": ".venv\nnode_modules\n",
}
NEW = {
    "shop.py": OLD["shop.py"] + "\ndef rate():\n    import fine_rates\n    return fine_rates.RATE\n",
    "test_shop.py": OLD["test_shop.py"] + "\ndef test_rate():\n    assert shop.rate() == 7\n",
}
METADATA = "Metadata-Version: 2.1\nName: {}\nVersion: 1\n"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """An empty repository."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return Repo.make(tmp_path, monkeypatch)


def _asked(repo: Repo, old: dict[str, str], new: dict[str, str], *argv: str) -> dict[str, str]:
    for files in (old, new):
        for name, text in files.items():
            repo.write(name, text)
        repo.commit("change")
    git = open_repository(repo.path)
    assert isinstance(git, Git)
    notary = Notary(git, [VerifyCommand(argv=argv, timeout=100)], stall=60)
    verdict = notary.verify(repo.git("rev-parse", "HEAD^"), repo.git("rev-parse", "HEAD"))
    assert verdict.receipt.fail_to_pass and verdict.good, verdict
    return seen_tests(verdict, [Change(path, ChangeKind.MODIFIED) for path in new], 1).questions


def _installed(repo: Repo, **requires: str) -> None:
    """A virtual environment of the project with fine_rates, of a distribution of another name, and with what requires it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(repo.path / ".venv")], check=True)
    site = next((repo.path / ".venv").glob("lib/python*/site-packages"))
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (site / "fine_rates.py").write_text("RATE = 7\n")
    for name, required in {"Exact.Rates": "", **requires}.items():
        made = site / f"{name.replace('.', '_').lower()}-1.dist-info"
        made.mkdir()
        (made / "METADATA").write_text(METADATA.format(name) + (f"Requires-Dist: {required}\n" if required else ""))
        (made / "RECORD").write_text("fine_rates.py,,\n" if not required else f"{name}.py,,\n")


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ({}, True),
        ({"notes.py": "# pip install exact-rates\n"}, True),
        ({"requirements.txt": "exact-rates>=1\n"}, False),
        ({"Dockerfile": "RUN pip install fine_rates\n"}, False),
        ({"setup.py": "install_requires = ['Exact.Rates']\n"}, False),
    ],
)
def test_a_module_that_nothing_says_is_to_be_installed_needs_a_reason(
    repo: Repo, more: dict[str, str], asked: bool
) -> None:
    _installed(repo)
    assert _asked(repo, OLD, NEW | more, *PYTEST) == ({"fine_rates": UNDECLARED} if asked else {})


def test_what_another_package_requires_needs_none_nor_what_was_loaded_before(repo: Repo) -> None:
    _installed(repo, shops="exact_rates (>=1) ; python_version > '3'")
    assert not _asked(repo, OLD, NEW, *PYTEST)
    used = {"test_shop.py": "import fine_rates\n" + OLD["test_shop.py"]}
    (site,) = (repo.path / ".venv").glob("lib/python*/site-packages")
    (site / "shops-1.dist-info" / "METADATA").unlink()
    again = {"test_shop.py": used["test_shop.py"] + "\ndef test_rate():\n    assert shop.rate() == 7\n"}
    assert not _asked(repo, OLD | used, NEW | again, *PYTEST)


def test_where_no_test_began_before_nothing_is_known_of_what_was_loaded(repo: Repo) -> None:
    _installed(repo)
    assert not _asked(repo, OLD | {"conftest.py": "raise ImportError\n"}, NEW | {"conftest.py": ""}, *PYTEST)


@pytest.mark.needs("node")
@pytest.mark.parametrize("declared", ["", "project", "package"])
def test_of_node_modules_too(repo: Repo, declared: str) -> None:
    wanted = '{"dependencies": {"@exact/rates": "1"}}'
    for name in ("@exact/rates", ".pnpm/shops@1/node_modules/shops"):
        folder = repo.path / "node_modules" / name
        folder.mkdir(parents=True)
        (folder / "index.js").write_text("exports.RATE = 7\n")
        (folder / "package.json").write_text(wanted if name[0] == "." and declared == "package" else "{}")
    head = "const { test } = require('node:test')\nconst assert = require('node:assert')\nconst shop = require('../shop.js')\n"
    tax, rate = (f"test('{one}', () => assert.equal(shop.{one}(), {now}))\n" for one, now in (("tax", 1), ("rate", 7)))
    old = {
        "package.json": "{}",
        ".gitignore": "node_modules\n",
        "shop.js": "exports.tax = () => 1\n",
        "test/shop.test.js": head + tax,
    }
    new = {
        "package.json": wanted if declared == "project" else "{ }",
        "shop.js": old["shop.js"] + "exports.rate = () => require('@exact/rates').RATE\n",
        "test/shop.test.js": head + tax + rate,
    }
    asked = _asked(repo, old, new, "node", "--test")
    assert asked == ({} if declared else {"@exact/rates": UNDECLARED})
