#!/usr/bin/env bash
# Runs the benchmarks, prints their tables and writes them: the committed ones where a script owns its table, else benchmarks/out/.
#
#   benchmarks/run.sh                        everything that can run here
#   benchmarks/run.sh NAME...                only these (benchmarks/run.sh --list names them)
#   benchmarks/run.sh --quick [NAME...]      small sizes, minutes instead of hours; tables go to benchmarks/out/ only
#
# PYTHON is an interpreter with this package's `test` extra (default: .venv-test of tests/run.sh, then python3).
# Some need more, and are left out with a word where it is missing:
#   PEERS          folder of environments with other servers (peers.py says how to make it)
#   SEMBLE_PYTHON  interpreter that has semble (index_growth)
#   REPOSITORIES   name=git-dir words (impact_recall);  RETRIEVAL  options of `retrieval.py run ours` (retrieval)
#   REAL_FILES     folder of the files that outlines_expected.json names (outlines)
#   SOURCES        name=folder words of TypeScript or JavaScript, and NODE_PATH with the npm package typescript (references_vs_typescript)
#   TRUTHS         files that the programs in resolution_oracles wrote (resolution)
#   PACKAGES       name=folder words of Python packages (default: three of the interpreter's own)
# Heavy runs want an idle machine. All figures are ratios beside something that ran in the same minutes, all the same.
set -euo pipefail
cd "$(dirname "$0")/.."

all=(house server_costs tree_cost hook_latency enforcement evidence guards lookups definitions outlines resolution references_vs_typescript impact_recall
    peers span_precision retrieval index_speed index_growth worktrees http_chroma)

quick=0 names=()
for word in "$@"; do
    case "$word" in
        --quick) quick=1 ;;
        --list) printf '%s\n' "${all[@]}"; exit ;;
        -*) sed -n '2,20s/^# \{0,1\}//p' "$0"; exit 2 ;;
        *) names+=("$word") ;;
    esac
done
[ ${#names[@]} -gt 0 ] || names=("${all[@]}")

python=${PYTHON:-$PWD/.venv-test/bin/python}
[ -x "$python" ] || python=$(command -v "${PYTHON:-python3}")
export PYTHONPATH="$PWD/src"
mkdir -p benchmarks/out
size() { if [ "$quick" = 1 ]; then echo "$1"; else echo "$2"; fi; }
flag=$(size --quick "")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

packages() {
    if [ -n "${PACKAGES:-}" ]; then echo "$PACKAGES"; return; fi
    "$python" - <<'PY'
from importlib.util import find_spec
from pathlib import Path

found = [(name, find_spec(name)) for name in ("pydantic", "rich", "chromadb")]
print(*(f"{name}={Path(spec.origin).parent}" for name, spec in found if spec and spec.origin))
PY
}
folders() { for word in $(packages); do echo "${word#*=}"; done; }
skip() { echo "left out: $1"; }
run() { "$python" "benchmarks/$1.py" "${@:2}"; }
kept() { tee "benchmarks/out/$1.md"; }

benchmark() {
    case "$1" in
        server_costs | http_chroma | index_growth) run "$1" $flag ;;
        house) run house ;;
        peers) run peers $flag --peers "${PEERS:-peers}" ;;
        tree_cost) if [ "$quick" = 1 ]; then run tree_judgement 1000 | kept tree_cost; else run tree_cost; fi ;;
        hook_latency) if [ "$quick" = 1 ]; then skip "hook_latency has no small size"; else run hook_latency; fi ;;
        enforcement) if [ "$quick" = 1 ]; then skip "enforcement has no small size"; else run enforcement; fi ;;
        guards) if [ "$quick" = 1 ]; then skip "guards has no small size (benchmarks/guards.py WORD runs one)"; else run guards; fi ;;
        lookups)
            run corpus "$scratch/tree" "$(size 1000 5000)" >/dev/null
            run lookups "$scratch/tree" --rounds "$(size 3 7)" --touch d0000/m000007.py | kept lookups ;;
        definitions) run definitions $(packages) | kept definitions ;;
        outlines)
            [ -n "${REAL_FILES:-}" ] || { skip "outlines needs REAL_FILES"; return; }
            run outlines "$REAL_FILES" ;;
        resolution)
            [ -n "${TRUTHS:-}" ] || { skip "resolution needs TRUTHS"; return; }
            run resolution $TRUTHS | kept resolution ;;
        references_vs_typescript)
            [ -n "${SOURCES:-}" ] || { skip "references_vs_typescript needs SOURCES"; return; }
            run references_vs_typescript $SOURCES --names "$(size 10 150)" | kept references_vs_typescript ;;
        impact_recall)
            [ -n "${REPOSITORIES:-}" ] || { skip "impact_recall needs REPOSITORIES"; return; }
            run impact_recall $REPOSITORIES --commits "$(size 2 12)" | kept impact_recall ;;
        span_precision) run span_precision --package $(folders) --queries "$(size 20 100)" | kept span_precision ;;
        retrieval)
            [ -n "${RETRIEVAL:-}" ] || { skip "retrieval needs RETRIEVAL (--score, --data, --repos)"; return; }
            run retrieval run ours $RETRIEVAL --out "$scratch/ours.json" && run retrieval table "$scratch/ours.json" | kept retrieval ;;
        index_speed) run index_speed --source "$("$python" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" --chunks "$(size 2000 10000)" | kept index_speed ;;
        worktrees) run worktrees "$(size 300 5000)" "$(size 3 50)" | kept worktrees ;;
        *) echo "no benchmark '$1' (benchmarks/run.sh --list)"; return 2 ;;
    esac
}

failed=()
for name in "${names[@]}"; do
    printf '\n== %s (%ds, load %s)\n\n' "$name" "$SECONDS" "$(cut -d' ' -f1 /proc/loadavg)"
    benchmark "$name" || failed+=("$name")
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
