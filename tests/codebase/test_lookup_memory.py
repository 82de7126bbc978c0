"""Memory and time stay bounded when a program that a lookup runs prints without end.

Each case is a process of its own: what a process took at most never goes down again.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.codebase.lookup_project import program, write

SOURCE = Path(__file__).parents[2] / "src"
MOST_MEGABYTES = 200
MOST_SECONDS = 20
"""Of the processor, not of the clock: the machine may be busy with others."""
MATCHES = "printf './a.py\\000'; yes '1:needle'"
PATHS = "yes './some/folder/file.py' | tr '\\n' '\\000'"
RUBBISH = "printf './a.py\\000'; yes 'neither a path nor a match'"
TAGS = (
    'case "$*" in *list-features*) echo "json  x";; *) '
    'yes \'{"_type": "tag", "name": "x", "path": "/nowhere/a.py", "line": 1, "kind": "function"}\';; esac'
)
CHILD = """
import json, sys, time
from code_intel_server.codebase.symbols.definitions import NameMatch
from code_intel_server.codebase.explorer import Explorer

found = Explorer(sys.argv[1])
answer = {lookup}
answer = getattr(answer, "answer", answer)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps([int(status["VmHWM"].split()[0]) // 1024, time.process_time(), answer.complete]))
"""
CASES = {
    "one pattern": ("rg", MATCHES, "found.search_text('needle')"),
    "several patterns": ("rg", MATCHES, "found.search_text(['needle', 'need'])"),
    "a regex over lines that define": ("rg", MATCHES.replace("needle", "def needle"), "found.search_text('need.e')"),
    "references": ("rg", MATCHES, "found.find_references('needle')"),
    "impact": ("rg", MATCHES, "found.analyze_impact(['needle'])"),
    "files": ("rg", PATHS, "found.search_files('x')"),
    "definitions over endless files": ("rg", PATHS, "found.find_definitions('x')"),
    "text that is no answer": ("rg", RUBBISH, "found.search_text('needle')"),
    "file names that are none": ("rg", RUBBISH, "found.find_definitions('x')"),
    "tags": ("ctags", TAGS, "found.find_definitions('needle')"),
}


QUICK = {"several patterns", "a regex over lines that define", "references", "text that is no answer"}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in QUICK else pytest.mark.full) for case in CASES]
)
def test_a_program_that_prints_without_end_costs_bounded_memory_and_time(tmp_path: Path, case: str) -> None:
    name, script, lookup = CASES[case]
    program(tmp_path / "bin", name, script)
    root = write(tmp_path / "project", {"a.py": "needle = 1\n" * 50})
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(lookup=lookup), str(root)],
        env=os.environ
        | {"PATH": os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]]), "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        check=True,
        timeout=300,
    )
    megabytes, seconds, complete = json.loads(done.stdout)
    assert megabytes < MOST_MEGABYTES
    assert not complete or name == "ctags"
    assert seconds < MOST_SECONDS
