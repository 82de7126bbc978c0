"""What makes test runners report: plugins and reporters in a folder of ours, and the variables that load them."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_FILES = (
    *("pytest_results.py", "unittest_results.py", "node_results.cjs", "node_test_results.mjs"),
    *("vitest_results.mjs", "vitest_canary.mjs"),
)
_HOOK = "module.exports = require('./node_results.cjs')"
_SMALL_FILES = {
    "jest_results.cjs": f"{_HOOK}.Jest\n",
    "jest_filter.cjs": f"{_HOOK}.jestFilter\n",
    "jest_runner.cjs": f"{_HOOK}.jestRunner\n",
    "jest_canary.cjs": f"test(process.env.CODE_INTEL_CANARY, {_HOOK[17:]}.mustFail)\n",
    "mocha_canary.cjs": (
        "describe(process.env.CODE_INTEL_CANARY, () => {\n"
        f"  it(process.env.CODE_INTEL_CANARY, {_HOOK[17:]}.mustFail)\n}})\n"
    ),
}
SELECTIVE = frozenset({"pytest", "unittest", "go", "node", "mocha", "jest", "vitest"})
"""Runners that are left to chosen tests or files, and into which a test that must fail can be put."""

_GO = r"""#!/bin/sh
# `go test` writes its events to a file, for chosen packages and tests only; every other command of go is as it was.
if [ "$1" = test ] && [ -n "$CODE_INTEL_RESULTS" ]; then
  shift
  results=$CODE_INTEL_RESULTS
  export CODE_INTEL_RESULTS=
  # Of two -run the last counts, so the command's own is taken out, and given back where ours does not choose.
  before= run=
  for word do
    shift
    case $before$word in
      -run | --run) before=is: ;;
      is:*) run=$word before= ;;
      -run=* | --run=*) run=${word#*=} ;;
      *) set -- "$@" "$word" ;;
    esac
  done
  run=${run:+$run${CODE_INTEL_CANARY:+|^$CODE_INTEL_CANARY\$}}
  run=${CODE_INTEL_GO_RUN:-${run:-$CODE_INTEL_GO_FUNCTIONS}}
  if [ -n "$run" ]; then set -- -run "$run" "$@"; fi
  if [ -n "$CODE_INTEL_GO_PACKAGES" ]; then
    asked=
    for word do
      shift
      case $word in
        . | ./* | ../* | */... | ...) asked="$asked $word" ;;
        *) set -- "$@" "$word" ;;
      esac
    done
    found=$("$CODE_INTEL_GO" list -e -f '{{.ImportPath}}	{{.Dir}}' ${asked:-.} |
      awk -F'\t' 'NR == FNR { wanted[$0] = 1; next } $1 in wanted || $2 in wanted { print $1 }' \
        "$CODE_INTEL_GO_PACKAGES" -)
    [ -n "$found" ] || exit 0
    set -- $found "$@"
  fi
  if [ -n "$CODE_INTEL_GO_SKIP" ]; then set -- -skip "$CODE_INTEL_GO_SKIP" "$@"; fi
  # What passed once in the project is no answer: it is seen to pass again.
  case " $* " in *" -count"*) ;; *) set -- -count=1 "$@" ;; esac
  exec "$CODE_INTEL_GO" test -json "$@" >>"$results"
fi
exec "$CODE_INTEL_GO" "$@"
"""

_CARGO = r"""#!/bin/sh
# What `cargo test` prints goes to a file, all of its targets run; every other command of cargo is as it was.
if [ "$1" = test ] && [ -n "$CODE_INTEL_RESULTS" ]; then
  shift
  results=$CODE_INTEL_RESULTS
  export CODE_INTEL_RESULTS=
  echo '{"event": "runner", "name": "cargo"}' >>"$results"
  exec "$CODE_INTEL_CARGO" test --no-fail-fast "$@" >>"$results" 2>&1
fi
exec "$CODE_INTEL_CARGO" "$@"
"""
_NPM_OPTIONS = re.compile(r"^[ \t]*node-options[ \t]*=(.*\S)", re.MULTILINE)
_QUOTES = "\"'"
_WRAPPED = {"go": _GO, "cargo": _CARGO}

_ENVIRONMENT = r"""#!/bin/sh
# A recipe, an npm setting or `env` in front may have set anew what loads the instruments; then the program itself.
here=${0%/*}
name=${0##*/}
if [ -n "$CODE_INTEL_RESULTS" ]; then
  case ":$PYTHONPATH:" in *":${here%/bin}:"*) ;; *) export PYTHONPATH="${here%/bin}${PYTHONPATH:+:$PYTHONPATH}" ;; esac
  case "$NODE_OPTIONS" in
    *node_results*) ;;
    *) export NODE_OPTIONS="${NODE_OPTIONS:+$NODE_OPTIONS }--require \"${here%/bin}/node_results.cjs\"" ;;
  esac
fi
program=$(PATH=${PATH%%"$here":*}${PATH#*"$here":} command -v "$name")
exec "${program:-/no/$name}" "$@"
"""
_FOUND_BY_PATH = ("python", "python3", "pytest", "py.test", "node")
_SET_IN_FRONT = re.compile(r"(?:^|(?<=[\s;&]))PYTHONPATH=")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which tests of a suite are run: of these files (absolute), with these ids, all but `skip`; all of them by default.

    Go, which runs whole packages, is left to `functions` of them where there are any. `canary` is the name of a test
    that must fail, which is run next to them, in `canaries` places.
    """

    files: tuple[str, ...] | None = None
    functions: tuple[str, ...] = ()
    ids: tuple[str, ...] | None = None
    skip: tuple[str, ...] = ()
    canary: str = ""
    canaries: int = 1

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self.files is None and self.ids is None and not self.skip


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
        for name, text in _SMALL_FILES.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        for name, text in (_WRAPPED | dict.fromkeys(_FOUND_BY_PATH, _ENVIRONMENT)).items():
            program = self.folder / "bin" / name
            program.write_text(text, encoding="utf-8")
            program.chmod(0o755)

    def results(self) -> Path:
        """A new file for the events of one run."""
        self._runs += 1
        return self.folder / f"results-{self._runs}.jsonl"

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command with `go` or `cargo` by its path, `-m unittest` replaced, and our folder in a PYTHONPATH that it sets."""
        folder = str(self.folder)
        words = [
            _SET_IN_FRONT.sub(f"PYTHONPATH={shlex.quote(folder) if before == '-c' else folder}:", word)
            for before, word in zip(("", *argv), argv, strict=False)
        ]
        if (name := Path(words[0]).name) in _WRAPPED:
            words[0] = str(self.folder / "bin" / name)
        if "-m" in words[:-1] and words[(at := words.index("-m") + 1)] == "unittest":
            words[at] = "unittest_results"
        return words

    def variables(
        self, argv: Sequence[str], results: Path, root: Path, selection: Selection, env: Mapping[str, str]
    ) -> dict[str, str]:
        """What is added to `env` so that the runners that `argv` starts report to `results`, files relative to `root`."""
        added = {
            "CODE_INTEL_RESULTS": str(results),
            "CODE_INTEL_ROOT": str(root),
            "CODE_INTEL_CANARY": selection.canary,
            "PYTEST_ADDOPTS": env.get("PYTEST_ADDOPTS", "") + " -p pytest_results",
            "PYTHONPATH": _joined(str(self.folder), env.get("PYTHONPATH", "")),
            "NODE_OPTIONS": f'{env.get("NODE_OPTIONS", "")} --require "{self.folder}/node_results.cjs"'.strip(),
        }
        added["PATH"] = _joined(str(self.folder / "bin"), env.get("PATH", ""))
        for name in _WRAPPED:
            named = argv[0] if Path(argv[0]).name == name and "/" in argv[0] else name
            added[f"CODE_INTEL_{name.upper()}"] = shutil.which(named, path=env.get("PATH")) or f"no-{name}"
        if selection.files is not None or selection.ids is not None or selection.skip:
            chosen = {"files": selection.files, "ids": selection.ids, "skip": selection.skip}
            only = results.with_suffix(".only")
            kept = {name: value for name, value in chosen.items() if value is not None}
            only.write_text(json.dumps(kept), encoding="utf-8")
            added["CODE_INTEL_ONLY"] = str(only)
        return added | _for_go(selection, results.with_suffix(".packages"))


def npm_options(folders: Sequence[Path], node_options: str) -> dict[str, str]:
    """What keeps `node_options` where npm's own settings replace NODE_OPTIONS; the `.npmrc` of the first folder counts."""
    for folder in folders:
        try:
            text = (folder / ".npmrc").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if found := _NPM_OPTIONS.findall(text):
            return {"npm_config_node_options": f"{found[-1].strip().strip(_QUOTES)} {node_options}"}
    return {}


def _for_go(selection: Selection, packages: Path) -> dict[str, str]:
    """What `_GO` is given of a selection; the packages, by folder or import path, in a file."""
    wanted = {os.path.dirname(file) for file in selection.files or ()}  # noqa: PTH120 - text in, text out
    wanted |= {id_.partition(":")[0] for id_ in selection.ids or ()}
    added = {}
    if selection.files is not None or selection.ids is not None:
        packages.write_text("\n".join([*sorted(wanted), ""]), encoding="utf-8")
        added["CODE_INTEL_GO_PACKAGES"] = str(packages)
    tops = sorted(id_.partition(":")[2].partition("/")[0] or id_ for id_ in selection.ids or ())
    if selection.functions:
        functions = filter(None, (*selection.functions, selection.canary))
        added["CODE_INTEL_GO_FUNCTIONS"] = f"^({'|'.join(functions)})$"
    if tops:
        added["CODE_INTEL_GO_RUN"] = f"^({'|'.join(tops)})$"
    if skip := [id_.partition(":")[2] for id_ in selection.skip if ":" in id_]:
        paths = (f"^{'$/^'.join(map(re.escape, name.split('/')))}$" for name in skip)
        added["CODE_INTEL_GO_SKIP"] = "|".join(paths)
    return added


def _joined(*folders: str) -> str:
    return os.pathsep.join(filter(None, folders))
