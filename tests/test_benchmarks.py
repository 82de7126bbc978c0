"""The benchmarks' index is complete: what one command runs is there, and every table is linked."""

import importlib
import itertools
import re
import runpy
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


def listed() -> list[str]:
    """The names that run.sh takes."""
    done = subprocess.run(["bash", "run.sh", "--list"], cwd=FOLDER, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_everything_that_the_one_command_names_is_there() -> None:
    names = listed()
    assert "server_costs" in names
    assert [name for name in names if not (FOLDER / f"{name}.py").is_file()] == []


def test_an_unknown_name_is_refused() -> None:
    done = subprocess.run(["bash", "run.sh", "no_such_one"], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no benchmark 'no_such_one'" in done.stdout


def test_every_table_is_linked_from_the_index_and_every_link_leads_somewhere() -> None:
    links = set(re.findall(r"\]\(([^)#:]+)\)", (FOLDER / "README.md").read_text(encoding="utf-8")))
    tables = {path.name for path in FOLDER.glob("*.md") if not path.name.endswith((".notes.md", "README.md"))}
    assert tables <= links
    assert [link for link in links if not (FOLDER / link).exists()] == []


def test_every_guard_of_the_table_still_stands_in_its_file_and_in_the_page() -> None:
    guards = runpy.run_path(str(FOLDER / "guard_table.py"))["GUARDS"]
    page = (FOLDER / "guards.md").read_text(encoding="utf-8")
    source = FOLDER.parent / "src/code_intel_server"
    assert [guard.name for guard in guards if guard.old not in (source / guard.file).read_text(encoding="utf-8")] == []
    assert [guard.name for guard in guards if f"| {guard.name} |" not in page] == []


def test_the_exact_sign_flip_test_counts_every_pattern_of_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER.parent)
    page = importlib.import_module("benchmarks.agents.page")
    seen = [20, 0, -12, 15, 30, 60, 0, 20]
    sums = [sum(map(int.__mul__, seen, signs)) for signs in itertools.product((1, -1), repeat=len(seen))]
    assert page.sign_flip(seen) == sum(abs(total) >= abs(sum(seen)) for total in sums) / len(sums)


def test_every_task_for_agents_obliges_to_more_than_the_obvious_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER.parent)
    tasks = importlib.import_module("benchmarks.agents.tasks")
    rows, harder = tasks.load(tasks.FIRST).values(), tasks.load(tasks.HARDER).values()
    assert len(rows) >= 24
    assert len({task.repository for task in rows}) >= 8
    assert [task.name for task in rows if not 2 <= len(task.obligations) <= 5] == []
    assert [task.name for task in harder if not 3 <= len(task.obligations) <= 8] == []
    assert [task.name for task in harder if sum(row.get("obvious", False) for row in task.obligations) != 1] == []
    assert [task.name for task in rows if sum(row.get("obvious", False) for row in task.obligations) > 1] == []
