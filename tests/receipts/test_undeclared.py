"""What only the user's own folders have and a change needs is asked for; what something asks for is not (SPEC 4, Receipts)."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from code_intel_server.receipts.report import UNDECLARED, seen_tests
from code_intel_server.receipts.undeclared import undeclared
from code_intel_server.workspace.files import read_regular
from code_intel_server.workspace.values import Change, ChangeKind
from tests.receipts.alone import judged, run_alone
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
    run_alone(tmp_path, monkeypatch)
    return Repo.make(tmp_path, monkeypatch)


def _asked(repo: Repo, old: dict[str, str], new: dict[str, str], *argv: str) -> dict[str, str]:
    for files in (old, new):
        repo.change(files)
    verdict = judged(repo, argv, stall=60)
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


class _Project:
    """A project's lent folders, and which words its files ask for."""

    def __init__(self, root: Path) -> None:
        self.site = root / ".venv/lib/python3.11/site-packages"
        self.node = root / "node_modules"
        self.folders = [root / ".venv", self.node]
        self.asked: dict[str, str] = {}
        self.searches = 0
        self.distribution("shops-1", METADATA=METADATA.format("shops") + "Requires-Dist: needed>=1\n")
        self.distribution("Exact.Rates-1", METADATA=METADATA.format("Exact.Rates"), RECORD="fine_rates/__init__.py,,\n")
        self.manifest("shops", '{"dependencies": {"needed": "1"}}')

    def distribution(self, name: str, **files: str | bytes) -> Path:
        made = self.site / f"{name}.dist-info"
        made.mkdir(parents=True)
        for file, text in files.items():
            (made / file).write_bytes(text if isinstance(text, bytes) else text.encode())
        return made

    def manifest(self, name: str, text: str) -> Path:
        made = self.node / name / "package.json"
        made.parent.mkdir(parents=True)
        made.write_text(text)
        return made

    def undeclared(self, *wanted: str) -> list[str]:
        return undeclared(wanted, self.folders, self._mentioning)

    def _mentioning(self, words: Sequence[str]) -> list[str]:
        self.searches += 1
        return [path for word, path in self.asked.items() if word in words]


RATES = ("node_modules/needed", "node_modules/rates", "site-packages/fine_rates", "site-packages/needed")


@pytest.mark.parametrize("table", ["null", "1", "[{}]", '"rates"', '["rates"]'])
def test_what_is_no_table_of_a_manifest_requires_nothing(tmp_path: Path, table: str) -> None:
    project = _Project(tmp_path)
    project.manifest("odd", f'{{"dependencies": {table}, "peerDependencies": {{"other": "1"}}}}')
    project.manifest("list", "[]")
    assert project.undeclared(*RATES, "node_modules/other") == ["fine_rates", "rates"]


def test_what_a_package_brings_for_its_own_tests_is_no_manifest_of_one(tmp_path: Path) -> None:
    project = _Project(tmp_path)
    for name, text in {"broken": "{", "deep": "[" * 100_000}.items():
        project.manifest(f"shops/test/{name}", text)
    (project.node / "shops/test/folder/package.json").mkdir(parents=True)
    (project.node / "shops/test/gone").mkdir()
    (project.node / "shops/test/gone/package.json").symlink_to("nowhere")
    assert project.undeclared(*RATES) == ["fine_rates", "rates"]


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "\x00", None])
def test_a_package_whose_manifest_cannot_be_read_may_require_any(tmp_path: Path, text: str | None) -> None:
    project = _Project(tmp_path)
    made = project.manifest("@odd/one", text or "")
    if text is None:
        made.unlink()
        os.mkfifo(made)
    assert project.undeclared(*RATES) == ["fine_rates"]


@pytest.mark.parametrize("file", ["METADATA", "RECORD", "requires.txt"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_distribution_that_cannot_be_read_may_require_any(
    tmp_path: Path, file: str, make: Callable[[Path], None]
) -> None:
    project = _Project(tmp_path)
    make(project.distribution("odd-1") / file)
    assert project.undeclared(*RATES) == ["rates"]


def test_a_distribution_without_metadata_is_known_by_its_folder(tmp_path: Path) -> None:
    project = _Project(tmp_path)
    project.distribution("quick_tax-2.1", RECORD='\n"tax/a,b.py",,\n\n')
    assert project.undeclared("site-packages/tax") == ["tax"]
    project.asked = {"quick-tax": "requirements.txt"}
    assert project.undeclared("site-packages/tax") == []


def test_metadata_in_any_encoding_is_read(tmp_path: Path) -> None:
    project = _Project(tmp_path)
    text = METADATA.format("Quick.Tax") + "Author: Zo\xeb\nRequires-Dist: Fine_Rates; python_version > '3'\n"
    project.distribution("odd-2", METADATA=text.encode("latin-1"), RECORD=b"tax.py,,\n\xff\xfe,,\n")
    assert project.undeclared(*RATES, "site-packages/tax") == ["rates", "tax"]
    project.asked = {"quick-tax": "requirements.txt"}
    assert project.undeclared("site-packages/tax") == []


def test_the_older_forms_of_a_distribution_are_read(tmp_path: Path) -> None:
    project = _Project(tmp_path)
    (project.site / "single-1.egg-info").write_text(METADATA.format("single") + "Requires-Dist: tax\n")
    made = project.site / "folder-1.egg-info"
    made.mkdir()
    (made / "PKG-INFO").write_text(METADATA.format("Quick.Rates"))
    (made / "SOURCES.txt").write_text("quick/__init__.py\n")
    (made / "requires.txt").write_text("[more]\nother>=1\n")
    wanted = [f"site-packages/{name}" for name in ("other", "quick", "tax")]
    assert project.undeclared(*wanted) == ["quick"]
    project.asked = {"quick-rates": "requirements.txt"}
    assert project.undeclared(*wanted) == []


def test_each_file_is_read_once_and_the_project_searched_once_where_nothing_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = _Project(tmp_path)
    read: list[Path] = []

    def counted(path: Path, limit: int, *, follow: bool = False) -> bytes:
        read.append(path)
        return read_regular(path, limit, follow=follow)

    monkeypatch.setattr("code_intel_server.receipts.undeclared.read_regular", counted)
    names = [f"one{number}" for number in range(60)]
    wanted = [f"{folder}/{name}" for folder in ("site-packages", "node_modules") for name in names]
    assert project.undeclared(*wanted) == sorted(names)
    assert project.searches == 1 and len(read) == len({*read})
    project.asked = {"one7": "README.md", "one8": "notes.py"}
    assert project.undeclared(*wanted) == sorted({*names} - {"one7"})
    project.searches = 0
    assert not project.undeclared("site-packages/one7") and project.searches == 1
    assert not project.undeclared() and project.searches == 1
