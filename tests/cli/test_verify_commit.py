"""`verify-commit` in a fresh clone: what a commit says of its tests is held against what they show (SPEC 4, Receipts)."""

import json
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from code_intel_server.cli.verify_commit import main
from code_intel_server.workspace.project.trust import Approvals
from tests.cli.helpers import Said
from tests.workspace.git_repo import Repo

COMMAND = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
HONEST = "Fix add\n\nCode-Intel-Fail-To-Pass: 1\nCode-Intel-Pass-To-Pass: 1 of 1\n"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A fresh clone of a project with an honest commit, a forged one and a rewritten one, and its commands trusted."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    origin = Repo.with_files(
        tmp_path,
        monkeypatch,
        calc__py="def add(a, b):\n    return a\n",
        test_calc__py="from calc import add\n\ndef test_nothing():\n    assert add(1, 0) == 1\n",
    )
    origin.write(".code-intel/config.json", json.dumps({"verify_commands": [COMMAND]}))
    origin.commit("with commands")
    origin.write("calc.py", "def add(a, b):\n    return a + b\n")
    origin.write("test_calc.py", origin.read("test_calc.py") + "\ndef test_add():\n    assert add(1, 1) == 2\n")
    origin.git("tag", "honest", origin.commit(HONEST))
    origin.git("commit", "--amend", "-q", "-m", HONEST.replace("Pass: 1\n", "Pass: 12\n") + "Code-Intel-Flaky: 8\n")
    origin.git("tag", "forged")
    origin.write("calc.py", "def add(a, b):\n    return 2\n")
    origin.git("commit", "-a", "--amend", "-q", "-m", HONEST)
    origin.git("tag", "rewritten")
    origin.git("clone", "-q", str(origin.path), str(tmp_path / "clone"))
    made = Repo(tmp_path / "clone")
    Approvals().trust(made.path / ".code-intel" / "config.json")
    return made


def test_an_honest_commit_is_good_and_a_forged_or_rewritten_one_is_not(
    clone: Repo, tmp_path: Path, capsys: Said
) -> None:
    project = ["--project", str(clone.path)]
    junit, sarif = tmp_path / "tests.xml", tmp_path / "wrong.sarif"
    assert main(["honest", *project]) == 0
    assert capsys.readouterr().out.endswith("good\n")
    assert main(["forged", *project]) == 1
    said = capsys.readouterr().out
    assert "Code-Intel-Fail-To-Pass: the commit says 12, the runs say 1" in said
    assert "Code-Intel-Flaky: the commit says 8, the runs say 0" in said
    assert main(["rewritten", *project, "--junit", str(junit), "--sarif", str(sarif)]) == 1
    assert "broken          1" in capsys.readouterr().out
    assert len(Xml.parse(junit).findall(".//failure")) == 2  # noqa: S314 - written a moment ago
    assert {one["ruleId"] for one in json.loads(sarif.read_text())["runs"][0]["results"]} == {"broken", "failing"}
    assert clone.git("status", "--porcelain", "--ignored") == ""


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("1", 0),
        ("1 (1 by an import, name or build error)", 0),
        ("1 (1 because what they name is new)", 0),
        ("1 (0 by an import, name or build error)", 1),
    ],
)
def test_why_tests_fail_without_a_commit_may_be_left_out_and_not_be_wrong(clone: Repo, said: str, status: int) -> None:
    clone.git("checkout", "-q", "--detach", "honest")
    clone.write("calc.py", clone.read("calc.py") + "\n\ndef twice(a):\n    return 2 * a\n")
    clone.write("test_twice.py", "from calc import twice\n\ndef test_twice():\n    assert twice(2) == 4\n")
    clone.commit(f"Add twice\n\nCode-Intel-Fail-To-Pass: {said}\n")
    assert main(["HEAD", "--project", str(clone.path)]) == status


@pytest.mark.parametrize(
    ("said", "mutants", "status"),
    [
        ("1 (1 by an import, name or build error; 1 pass where new and changed functions do nothing)", True, 0),
        ("1 (1 by an import, name or build error; 0 pass where new and changed functions do nothing)", True, 1),
        ("1 (1 by an import, name or build error)", True, 0),
        ("1 (1 by an import, name or build error; 1 pass where new and changed functions do nothing)", False, 0),
        ("1 (1 pass where new and changed functions do nothing)", False, 0),
    ],
)
def test_a_test_that_passes_where_new_functions_do_nothing_is_named_whatever_the_commit_says(
    clone: Repo, said: str, mutants: bool, status: int, capsys: Said
) -> None:
    clone.git("checkout", "-q", "--detach", "honest")
    clone.write(
        ".code-intel/config.json",
        json.dumps({"verify_commands": [COMMAND], "verify_mutants": "on" if mutants else "off"}),
    )
    clone.commit("Set the run of mutants")
    Approvals().trust(clone.path / ".code-intel" / "config.json")
    clone.write("calc.py", clone.read("calc.py") + "\n\ndef twice(a):\n    return 2 * a\n")
    clone.write("test_twice.py", "from calc import twice\n\ndef test_twice():\n    assert 2 * 2 == 4\n")
    clone.commit(f"Add twice\n\nCode-Intel-Fail-To-Pass: {said}\n")
    assert main(["HEAD", "--project", str(clone.path)]) == status
    assert ("survived:\n  test_twice.py::test_twice\n" in capsys.readouterr().out) is mutants


@pytest.mark.parametrize("trailer", ["", "Code-Intel-Insensitive: 7\n"])
def test_a_test_that_passes_whatever_it_asserts_is_named_and_not_judged_for_it_is_drawn_by_chance(
    clone: Repo, trailer: str, capsys: Said
) -> None:
    clone.git("checkout", "-q", "--detach", "honest")
    clone.write(".code-intel/config.json", json.dumps({"verify_commands": [COMMAND], "verify_mutants": "on"}))
    clone.commit("Turn the run of mutants on")
    Approvals().trust(clone.path / ".code-intel" / "config.json")
    equal = "\n\nclass Any(int):\n    def __eq__(self, other):\n        return True\n    __hash__ = int.__hash__\n"
    clone.write("calc.py", f"{equal}\n\ndef add(a, b):\n    return Any(a - b)\n")
    clone.commit(f"Subtract\n\nCode-Intel-Pass-To-Pass: 2 of 2\n{trailer}")
    assert main(["HEAD", "--project", str(clone.path)]) == 0
    assert "insensitive:\n  test_calc.py::test_add\n" in capsys.readouterr().out


def test_a_commit_is_not_wrong_where_the_run_of_mutants_saw_none_of_its_tests_this_time(
    clone: Repo, capsys: Said
) -> None:
    clone.git("checkout", "-q", "--detach", "honest")
    clone.write(".code-intel/config.json", json.dumps({"verify_commands": [COMMAND], "verify_mutants": "on"}))
    clone.commit("Set the run of mutants")
    Approvals().trust(clone.path / ".code-intel" / "config.json")
    clone.write("calc.py", clone.read("calc.py") + "\n\ndef twice(a):\n    return 2 * a\n")
    clone.write(
        "test_twice.py", "from calc import twice\n\nFOUR = 0 + twice(2)\n\ndef test_twice():\n    assert FOUR == 4\n"
    )
    clone.write("draft.py", "def unfinished():\n    # later\n")  # as a template of code may be
    said = "1 (1 by an import, name or build error; 1 pass where new and changed functions do nothing)"
    clone.commit(f"Add twice\n\nCode-Intel-Fail-To-Pass: {said}\n")
    status = main(["HEAD", "--project", str(clone.path)])
    out = capsys.readouterr().out
    assert "new tests on emptied new code: of 1 tests none was seen" in out
    assert status == 0, out


def test_a_commit_is_compared_with_what_its_session_began_from(clone: Repo, capsys: Said) -> None:
    clone.git("checkout", "-q", "--detach", "honest")
    session = "Code-Intel-Session: 20260101_000000\n"
    clone.git("commit", "--amend", "-q", "-m", HONEST + session)
    clone.write("calc.py", clone.read("calc.py") + "\n\ndef twice(a):\n    return 2 * a\n")
    clone.write("test_twice.py", "from calc import twice\n\ndef test_twice():\n    assert twice(2) == 4\n")
    clone.commit(HONEST.replace("Pass: 1\n", "Pass: 2\n") + "Code-Intel-Flaky: 1\n" + session)
    assert main(["HEAD", "--project", str(clone.path)]) == 0, capsys.readouterr()


def test_a_commit_whose_content_is_not_at_hand_gives_status_3_and_says_so(clone: Repo, capsys: Said) -> None:
    blob = clone.git("rev-parse", "honest:calc.py")
    pack = next((clone.path / ".git" / "objects" / "pack").glob("*.pack"), None)
    if pack is not None:
        content = pack.read_bytes()
        for file in [*pack.parent.iterdir()]:
            file.unlink()
        clone.git("unpack-objects", "-q", stdin=content)
    (clone.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert main(["honest", "--project", str(clone.path)]) == 3
    assert "unavailable: no clean checkout: " in capsys.readouterr().out
