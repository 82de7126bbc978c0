#!/usr/bin/env bash
# The fault runs: what CI does, or with --full the long ones. Resumable: results lie in $FAULTS_OUT (default .faults/).
#
#   benchmarks/faults/run.sh            CI size
#   benchmarks/faults/run.sh --full     2,000 kills of whole sessions, each git child in turn, a kill and an error of the disk at
#                                  every point of every move, power loss, the long variants of all tests (one builds a
#                                  repository of HUGE_FILES files in HUGE_FOLDER), mutants, an hour of soak
#
# PYTHON names the interpreter of an environment that has the package and its test tools; SEED the first seed.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
out=${FAULTS_OUT:-.faults}
mkdir -p "$out"
if [ "${1:-}" != --full ]; then
    exec "$python" -m pytest tests/faults -q -m "not full" -n auto
fi
status=0
export FAULTS_RESULTS=$out
# What each test says it has executed goes into the table of rows; an old run's file is kept for what this one leaves out.
read -ra tests <<<"$("$python" -m benchmarks.faults.rows)"
"$python" -m pytest tests/faults "${tests[@]}" -q -m "full or not full" --hypothesis-profile=full -o timeout=3600 -o junit_family=xunit1 \
    --junitxml="$out/tests-$(date +%s).xml" || status=$?
"$python" -m benchmarks.faults.campaign --kills "${KILLS:-2000}" --seed "${SEED:-1}" --out "$out/kills.jsonl" || status=$?
"$python" -m benchmarks.faults.campaign --kills "${ERRORS:-500}" --seed "${SEED:-1}" --errors --out "$out/errors.jsonl" || status=$?
"$python" -m benchmarks.faults.around --out "$out/around.jsonl" || status=$?
"$python" -m benchmarks.faults.points --out "$out/points.jsonl" || status=$?
"$python" -m benchmarks.faults.mutants --out "$out/mutants.json" || status=$?
"$python" -m benchmarks.faults.soak --minutes "${MINUTES:-60}" --out "$out/soak.json" || status=$?
"$python" -m benchmarks.faults.report --from "$out" || status=$?
exit $status
