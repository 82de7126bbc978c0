"""What makes test runners report: plugins and reporters in a folder of ours, and the variables that load them."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from code_intel_server.workspace.files import read_regular

_NPMRC_BYTES = 1 << 20
_FILES = (
    *("pytest_results.py", "unittest_results.py", "traces.py", "node_results.cjs", "node_test_results.mjs"),
    *("vitest_results.mjs", "vitest_canary.mjs"),
)
_HOOK = "module.exports = require('./node_results.cjs')"
_SMALL_FILES = {
    "jest_results.cjs": f"{_HOOK}.Jest\n",
    "jest_filter.cjs": f"{_HOOK}.jestFilter\n",
    "jest_canary.cjs": f"const hook = {_HOOK[17:]}\ntest(hook.canary, hook.mustFail)\n",
    "mocha_canary.cjs": (
        f"const hook = {_HOOK[17:]}\ndescribe(hook.canary, () => {{\n  it(hook.canary, hook.mustFail)\n}})\n"
    ),
}
SELECTIVE = frozenset({"pytest", "unittest", "go", "node", "mocha", "jest", "vitest"})
"""Runners that are left to chosen tests or files, and into which a test that must fail can be put."""

_PLAIN = r"""#!/bin/sh
# The program itself finds the environment that it finds without us, and reports nothing where a test starts it.
here=${0%/*}
folder=${here%/bin}
. "$folder/settings.sh"
case ":$PATH:" in *":$here:"*) PATH=${PATH%%"$here":*}${PATH#*"$here":} ;; esac
PYTHONPATH=${PYTHONPATH#"$folder"}
PYTHONPATH=${PYTHONPATH#:}
PYTEST_ADDOPTS=${PYTEST_ADDOPTS%" -p pytest_results"}
NODE_OPTIONS=${NODE_OPTIONS%--require \""$folder"*}
NODE_OPTIONS=${NODE_OPTIONS% }
[ -n "$PYTHONPATH" ] || unset PYTHONPATH
[ -n "$PYTEST_ADDOPTS" ] || unset PYTEST_ADDOPTS
[ -n "$NODE_OPTIONS" ] || unset NODE_OPTIONS
"""

_GO = r"""
# `go test` writes its events to a file, for chosen packages and tests only; every other command of go is as it was.
if [ "$1" = test ]; then
  shift
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
  run=${run:+$run${canary:+|^$canary\$}}
  run=${go_run:-${run:-$go_functions}}
  if [ -n "$run" ]; then set -- -run "$run" "$@"; fi
  if [ -n "$go_packages" ]; then
    asked=
    for word do
      shift
      case $word in
        . | ./* | ../* | */... | ...) asked="$asked $word" ;;
        *) set -- "$@" "$word" ;;
      esac
    done
    found=$("$program_go" list -e -f '{{.ImportPath}}	{{.Dir}}' ${asked:-.} |
      awk -F'\t' 'NR == FNR { wanted[$0] = 1; next } $1 in wanted || $2 in wanted { print $1 }' "$go_packages" -)
    [ -n "$found" ] || exit 0
    set -- $found "$@"
  fi
  if [ -n "$go_skip" ]; then set -- -skip "$go_skip" "$@"; fi
  # What passed once in the project is no answer: it is seen to pass again.
  case " $* " in *" -count"*) ;; *) set -- -count=1 "$@" ;; esac
  exec "$program_go" test -json "$@" >>"$results"
fi
exec "$program_go" "$@"
"""

_CARGO = r"""
# What `cargo test` prints goes to a file, all of its targets run; every other command of cargo is as it was.
if [ "$1" = test ]; then
  shift
  echo '{"event": "runner", "name": "cargo"}' >>"$results"
  exec "$program_cargo" test --no-fail-fast "$@" >>"$results" 2>&1
fi
exec "$program_cargo" "$@"
"""
_NPM_OPTIONS = re.compile(r"^[ \t]*node-options[ \t]*=(.*\S)", re.MULTILINE)
_QUOTES = "\"'"
_WRAPPED = {"go": _PLAIN + _GO, "cargo": _PLAIN + _CARGO}

_ENVIRONMENT = r"""#!/bin/sh
# A recipe, an npm setting or `env` in front may have set anew what loads the instruments; then the program itself.
here=${0%/*}
name=${0##*/}
case ":$PYTHONPATH:" in *":${here%/bin}:"*) ;; *) export PYTHONPATH="${here%/bin}${PYTHONPATH:+:$PYTHONPATH}" ;; esac
case "$NODE_OPTIONS" in
  *node_results*) ;;
  *) export NODE_OPTIONS="${NODE_OPTIONS:+$NODE_OPTIONS }--require \"${here%/bin}/node_results.cjs\"" ;;
esac
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
        file = self.folder / f"results-{self._runs}.jsonl"
        file.touch()
        return file

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
        """What is added to `env` so that the runners that `argv` starts report to `results`, files relative to `root`.

        The rest they find in two files beside them: a product could tell by variables that it is looked at.
        """
        chosen = {"files": selection.files, "ids": selection.ids, "skip": selection.skip or None}
        only = {name: value for name, value in chosen.items() if value is not None}
        kept = {"results": str(results), "root": str(root), "canary": selection.canary, "only": only}
        (self.folder / "settings.json").write_text(json.dumps(kept), encoding="utf-8")
        said = {"results": str(results), "canary": selection.canary, **_for_go(selection, results)}
        for name in _WRAPPED:
            named = argv[0] if Path(argv[0]).name == name and "/" in argv[0] else name
            said[f"program_{name}"] = shutil.which(named, path=env.get("PATH")) or f"no-{name}"
        lines = [f"{name}={shlex.quote(value)}\n" for name, value in said.items()]
        (self.folder / "settings.sh").write_text("".join(lines), encoding="utf-8")
        return {
            "PYTEST_ADDOPTS": env.get("PYTEST_ADDOPTS", "") + " -p pytest_results",
            "PYTHONPATH": _joined(str(self.folder), env.get("PYTHONPATH", "")),
            "NODE_OPTIONS": f'{env.get("NODE_OPTIONS", "")} --require "{self.folder}/node_results.cjs"'.strip(),
            "PATH": _joined(str(self.folder / "bin"), env.get("PATH", "")),
        }


def npm_options(folders: Sequence[Path], node_options: str) -> dict[str, str]:
    """What keeps `node_options` where npm's own settings replace NODE_OPTIONS; the `.npmrc` of the first folder counts."""
    for folder in folders:
        try:
            text = read_regular(folder / ".npmrc", _NPMRC_BYTES, follow=True).decode(errors="replace")
        except OSError:
            continue
        if found := _NPM_OPTIONS.findall(text):
            return {"npm_config_node_options": f"{found[-1].strip().strip(_QUOTES)} {node_options}"}
    return {}


def _for_go(selection: Selection, results: Path) -> dict[str, str]:
    """What `_GO` is given of a selection; the packages, by folder or import path, in a file next to the results."""
    wanted = {os.path.dirname(file) for file in selection.files or ()}  # noqa: PTH120 - text in, text out
    wanted |= {id_.partition(":")[0] for id_ in selection.ids or ()}
    packages = results.with_suffix(".packages")
    given = dict.fromkeys(("go_packages", "go_functions", "go_run", "go_skip"), "")
    if selection.files is not None or selection.ids is not None:
        packages.write_text("\n".join([*sorted(wanted), ""]), encoding="utf-8")
        given["go_packages"] = str(packages)
    tops = sorted(id_.partition(":")[2].partition("/")[0] or id_ for id_ in selection.ids or ())
    if selection.functions:
        functions = filter(None, (*selection.functions, selection.canary))
        given["go_functions"] = f"^({'|'.join(functions)})$"
    if tops:
        given["go_run"] = f"^({'|'.join(tops)})$"
    if skip := [id_.partition(":")[2] for id_ in selection.skip if ":" in id_]:
        paths = (f"^{'$/^'.join(map(re.escape, name.split('/')))}$" for name in skip)
        given["go_skip"] = "|".join(paths)
    return given


def _joined(*folders: str) -> str:
    return os.pathsep.join(filter(None, folders))
