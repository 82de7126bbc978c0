"""A language server as the project's second source: what it is told and asked, and what becomes of one that misbehaves."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.codebase.external.shops import PYTHON
from tests.codebase.lookup_project import write
from tests.index.builders import children_of

from code_intel_server.codebase.answers import LookupAnswer
from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.external_resolution import SourceSettings, language_server
from code_intel_server.codebase.references.classify import ReferenceRow
from code_intel_server.tools.services import ProjectServices
from code_intel_server.workspace.project.trust import Approvals

SPEAKER = Path(__file__).with_name("speaker.py")
FILES = {"a.py": "class A:\n  def pay(self): ...\n", "b.py": "def f(x):\n  x.pay()\n"}
KNOWN = {"a.py:2": "certain", "b.py:2": "certain"}


@pytest.fixture(autouse=True)
def _in_no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded machine starts programs slowly: only who hangs meets a limit here."""
    monkeypatch.setattr(language_server, "SERVER_SECONDS", 60.0)


def argv(tmp_path: Path, manner: str) -> tuple[str, ...]:
    """The command of a server that behaves so; what it hears is in `heard`."""
    return (sys.executable, str(SPEAKER), manner, str(tmp_path / "heard"), "pay")


def spoken(tmp_path: Path, manner: str) -> Explorer:
    """An explorer of a project with such a server."""
    command = argv(tmp_path, manner)
    return Explorer(write(tmp_path / "shop", FILES), sources=lambda: SourceSettings("", {"python": command}))


def uses(found: LookupAnswer[ReferenceRow]) -> dict[str, str]:
    """`path:line` → binding."""
    return {f"{row.path}:{row.start_line}": row.binding for row in found.results}


def heard(tmp_path: Path) -> list[tuple[str, Any]]:
    """What the server was told, in order: methods and parameters."""
    lines = (tmp_path / "heard").read_text(encoding="utf-8").splitlines()
    return [(method, json.loads(said)) for method, _, said in (line.partition(" ") for line in lines)]


def speakers() -> list[int]:
    """The servers that run."""
    name = os.fsencode(SPEAKER)
    return [pid for pid in children_of(os.getpid()) if name in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_what_a_server_knows_is_certain_and_the_answer_names_it(tmp_path: Path) -> None:
    found = spoken(tmp_path, "well")
    answer = found.find_references("A.pay")
    assert (uses(answer), answer.notes) == (KNOWN, ())
    assert "speaker" in answer.engine
    assert "\x1b" not in answer.engine
    [row] = found.find_definitions(at="b.py:2").results
    assert (row.path, row.start_line, row.scope) == ("a.py", 2, "A")
    found.close()


def test_it_is_told_what_a_client_tells(tmp_path: Path) -> None:
    found = spoken(tmp_path, "well")
    found.find_references(at="b.py:2:5")
    write(tmp_path / "shop", {"b.py": "def f(x):\n\n  x.pay()\n", "c.py": "y.pay()\n"})
    (tmp_path / "shop" / "a.py").unlink()
    found.find_references(at="b.py:3:5")
    found.close()
    methods = [method for method, _ in heard(tmp_path)]
    assert methods[:2] == ["initialize", "initialized"]
    assert methods.count("textDocument/didOpen") == methods.count("textDocument/didClose") == 2
    told = dict(heard(tmp_path))
    assert told["answer"] == [None, None]  # it asked for two settings
    changes = told["workspace/didChangeWatchedFiles"]["changes"]
    assert [(one["uri"].rpartition("/")[2], one["type"]) for one in changes] == [("a.py", 3), ("b.py", 2), ("c.py", 1)]


def test_nothing_is_started_before_it_is_asked_and_nothing_left_behind(tmp_path: Path) -> None:
    found = spoken(tmp_path, "well")
    found.find_references("pay")
    found.search_text("pay")
    assert not (tmp_path / "heard").exists()
    found.find_references("A.pay")
    [process] = speakers()
    found.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_other_languages_are_not_its_business(tmp_path: Path) -> None:
    found = spoken(tmp_path, "well")
    write(tmp_path / "shop", {"a.ts": "class A { pay() {} }\n"})
    assert found.find_references(at="a.ts:1:11").engine == "ripgrep + tree-sitter"
    assert not (tmp_path / "heard").exists()


@pytest.mark.parametrize(("manner", "said"), [
    ("hangs", "it did not answer in time"), ("deaf", "it did not answer in time"), ("dies", "it ended"),
    ("babbles", "it answered nonsense"), ("boasts", "it answered nonsense"), ("refuses", "it answered nonsense"),
    ("shapes", "it answered nonsense"), ("stale", "knows nothing at a.py:2:7"),
])  # fmt: skip
def test_of_one_that_misbehaves_the_answer_stays_as_it_was_with_one_line(
    tmp_path: Path, manner: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "time" in said:
        monkeypatch.setattr(language_server, "SERVER_SECONDS", 2.0)
    found = spoken(tmp_path, manner)
    answer = found.find_references("A.pay")
    assert uses(answer) == {"a.py:2": "certain", "b.py:2": "possible"}
    [note] = [note for note in answer.notes if "resolved without it" in note]
    assert said in note
    found.close()


@pytest.mark.parametrize("rest", [60.0, 0.0])
def test_after_three_failures_it_is_left_alone_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: float
) -> None:
    monkeypatch.setattr(language_server, "REST_SECONDS", rest)
    found = spoken(tmp_path, "dies")
    for _ in range(3):
        assert any("it ended" in note for note in found.find_references("A.pay").notes)
    rests = any(
        "failed 3 times and is not asked for some minutes" in note for note in found.find_references("A.pay").notes
    )
    assert (rests, len(heard(tmp_path))) == ((True, 3) if rest else (False, 4))


def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    command = (str(tmp_path / "no-such-server"),)
    found = Explorer(write(tmp_path / "shop", FILES), sources=lambda: SourceSettings("", {"python": command}))
    notes = found.find_references("A.pay").notes
    assert "no-such-server: it cannot be started: resolved without it" in notes


def test_what_it_places_elsewhere_is_outside(tmp_path: Path) -> None:
    found = spoken(tmp_path, "elsewhere")
    answer = found.find_definitions(at="b.py:2:5")
    assert (answer.results, answer.notes) == ((), ("outside of the project: usr/lib/outside.py",))
    found.close()


def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectServices:
    """A project whose configuration names a server."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    resolution = {"language_servers": {"python": argv(tmp_path, "well")}}
    write(tmp_path / "shop", {**FILES, ".code-intel/config.json": json.dumps({"resolution": resolution})})
    return ProjectServices(tmp_path / "shop")


def test_a_server_runs_only_while_the_user_trusts_just_this_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = configured(tmp_path, monkeypatch)
    path, look = services.project.config_file, services.explorer.find_references
    assert any("not trusted (code-intel-server trust)" in note for note in look("A.pay").notes)
    assert not (tmp_path / "heard").exists()
    Approvals().trust(path)
    assert uses(look("A.pay")) == KNOWN
    [process] = speakers()
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert any("not trusted" in note for note in look("A.pay").notes)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    services.close()


@pytest.mark.skipif(shutil.which("basedpyright-langserver") is None, reason="no basedpyright here")
def test_basedpyright_is_asked_as_any_other(tmp_path: Path) -> None:
    command = ("basedpyright-langserver", "--stdio")
    found = Explorer(write(tmp_path, PYTHON), sources=lambda: SourceSettings("", {"python": command}))
    answer = found.find_references("Till.pay")
    assert [place for place, binding in uses(answer).items() if binding == "certain"] == [
        "till.py:2",
        "use.py:5",
        "use.py:7",
    ]
    assert "basedpyright" in answer.engine
    found.close()
