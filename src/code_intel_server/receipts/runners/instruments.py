"""What makes test runners report: plugins and reporters in a folder of ours, and the variables that load them."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_FILES = (
    *("pytest_results.py", "node_results.cjs", "jest_results.cjs", "mocha_canary.cjs"),
    *("vitest_results.mjs", "node_test_results.mjs"),
)
SELECTIVE = frozenset({"pytest", "go"})
"""Runners that run single tests by their ids."""

WITH_CANARY = frozenset({"pytest", "mocha"})
"""Runners into which a test that must fail is put."""

_GO = """#!/bin/sh
# `go test` writes its events to a file; every other command of go is as it was.
if [ "$1" = test ] && [ -n "$CODE_INTEL_RESULTS" ]; then
  shift
  results=$CODE_INTEL_RESULTS
  export CODE_INTEL_RESULTS=
  if [ -n "$CODE_INTEL_GO_RUN" ]; then set -- -count=1 -run "$CODE_INTEL_GO_RUN" "$@"; fi
  exec "$CODE_INTEL_GO" test -json "$@" >>"$results"
fi
exec "$CODE_INTEL_GO" "$@"
"""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which tests of a suite are run: of these files (absolute), with these ids, all but `skip`; all of them by default."""

    files: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None
    skip: tuple[str, ...] = ()
    canary: str = ""

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self.files is None and self.ids is None and not self.skip and not self.canary


@dataclass(slots=True)
class Instruments:
    """The folder with plugins and reporters, made once; each run gets a results file of its own in it."""

    folder: Path
    _runs: int = field(default=0)

    def __post_init__(self) -> None:
        """Put everything in place."""
        (self.folder / "bin").mkdir(parents=True)
        for name in _FILES:
            shutil.copyfile(Path(__file__).with_name(name), self.folder / name)
        go = self.folder / "bin" / "go"
        go.write_text(_GO, encoding="utf-8")
        go.chmod(0o755)

    def results(self) -> Path:
        """A new file for the events of one run."""
        self._runs += 1
        return self.folder / f"results-{self._runs}.jsonl"

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command with `go` by its path replaced; what is found by PATH is found by PATH."""
        return [str(self.folder / "bin" / "go"), *argv[1:]] if Path(argv[0]).name == "go" else [*argv]

    def variables(
        self, argv: Sequence[str], results: Path, selection: Selection, env: Mapping[str, str]
    ) -> dict[str, str]:
        """What is added to `env` so that the runners that `argv` starts report to `results`."""
        added = {
            "CODE_INTEL_RESULTS": str(results),
            "CODE_INTEL_CANARY": selection.canary,
            "PYTEST_ADDOPTS": env.get("PYTEST_ADDOPTS", "") + " -p pytest_results",
            "PYTHONPATH": _joined(str(self.folder), env.get("PYTHONPATH", "")),
            "NODE_OPTIONS": f'{env.get("NODE_OPTIONS", "")} --require "{self.folder}/node_results.cjs"'.strip(),
        }
        named = argv[0] if Path(argv[0]).name == "go" and "/" in argv[0] else "go"
        go = shutil.which(named, path=env.get("PATH"))
        if go:
            added |= {"CODE_INTEL_GO": go, "PATH": _joined(str(self.folder / "bin"), env.get("PATH", ""))}
        if selection.ids is not None and not selection.canary:
            tests = sorted({id_.rpartition(":")[2].partition("/")[0] for id_ in selection.ids})
            added["CODE_INTEL_GO_RUN"] = f"^({'|'.join(tests)})$"
        chosen = {"files": selection.files, "ids": selection.ids, "skip": selection.skip}
        if not selection.whole and not selection.canary:
            only = results.with_suffix(".only")
            kept = {name: value for name, value in chosen.items() if value is not None}
            only.write_text(json.dumps(kept), encoding="utf-8")
            added["CODE_INTEL_ONLY"] = str(only)
        return added


def _joined(*folders: str) -> str:
    return os.pathsep.join(filter(None, folders))
