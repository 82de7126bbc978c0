#!/usr/bin/env bash
# Everything CI runs, from a fresh clone: makes its own environment, then checks, tests, thresholds.
#
#   tests/run.sh           what every change must pass (minutes)
#   tests/run.sh --full    also the long variants
#   tests/run.sh --fast    without the environment's refresh, coverage and real clients (while working)
#
# PYTHON names the interpreter for the environment (default python3, 3.11 or newer); VENV its folder (default .venv-test).
# Needs no network beyond the package registries, and nothing that is not installed here.
set -euo pipefail
cd "$(dirname "$0")/.."

full=0 fast=0
for argument in "$@"; do
    case "$argument" in
        --full) full=1 ;;
        --fast) fast=1 ;;
        *) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
done

venv=${VENV:-$PWD/.venv-test}
export VENV=$venv
python=${PYTHON:-python3}
workers=${WORKERS:-2}
started=$SECONDS

say() { printf '\n== %s (%ds)\n' "$*" "$((SECONDS - started))"; }

# -- what the system should have -------------------------------------------------------------------------------------

programs() { # as root with apt they are installed; elsewhere the tests that need them are skipped
    local absent=() packages=() row program
    for row in git:git ctags:universal-ctags strace:strace ssh-keygen:openssh-client tmux:tmux cc: npm:; do
        program=${row%:*}
        case "$program" in
            ctags) ctags --version 2>/dev/null | grep -q 'Universal Ctags' ;;
            *) command -v "$program" >/dev/null ;;
        esac && continue
        if [ "${row#*:}" ]; then packages+=("${row#*:}"); else absent+=("$program"); fi
    done
    "$python" -c 'import ensurepip' 2>/dev/null || packages+=(python3-venv)
    if [ ${#packages[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "installing ${packages[*]}"
        if { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"; } >/dev/null 2>&1; then
            packages=()
        else
            echo "could not be installed"
        fi
    fi
    absent+=(${packages[@]+"${packages[@]}"}) # bash 3 takes an empty list for none at all
    [ ${#absent[@]} -eq 0 ] || echo "Not here: ${absent[*]}. Tests that need one of them are skipped; the summary names it."
}

# -- the environment ---------------------------------------------------------------------------------------------------

environment() {
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
        || { echo "needs Python 3.11 or newer; $python is $("$python" -V). Set PYTHON."; exit 1; }
    local stamp
    stamp=$(cksum <pyproject.toml)
    if [ ! -x "$venv/bin/python" ]; then
        say "making $venv"
        "$python" -m venv "$venv"
    fi
    if [ "$(cat "$venv/.installed" 2>/dev/null)" != "$stamp" ]; then
        say "installing code-intel-server and its test tools"
        "$venv/bin/python" -m pip install -qq --disable-pip-version-check -e '.[dev]'
        echo "$stamp" >"$venv/.installed"
    fi
}

[ $fast = 1 ] || programs
environment
export PATH="$venv/bin:$PATH"

# -- checks --------------------------------------------------------------------------------------------------------------

status=0
check() { # every check runs, whatever the others say
    say "$1"
    shift
    "$@" || status=1
}
check "ruff" ruff check .
check "format" ruff format --check .
types=$(mktemp)
mypy >"$types" 2>&1 & # beside the first tests: both take one core
mypy_pid=$!

# -- tests ---------------------------------------------------------------------------------------------------------------

log=$(mktemp)
trap 'rm -f "$log" "$types"' EXIT
selection=(-m "not full")
[ $full = 1 ] && selection=(-m "full or not full" --hypothesis-profile=full)
[ $fast = 1 ] && selection=(-m "not full and not clients")
coverage=(--cov --cov-branch --cov-report=)
[ $fast = 1 ] && coverage=()

say "pytest"
rm -f .coverage .coverage.*
# In the order of the files: by their number of tests the few that take a minute would come last, and one worker wait for them.
python -m pytest -n "$workers" --dist loadfile --no-loadscope-reorder -q "${selection[@]}" "${coverage[@]}" --durations=10 2>&1 | tee "$log" || status=1

if [ $fast = 0 ]; then
    check "again as an ordinary user, without what a fresh machine lacks" tests/as_ordinary_user.sh
fi

say "mypy"
wait "$mypy_pid" || status=1
cat "$types"

# -- thresholds (branch coverage): the heart whole, overall as measured with a margin (96 %) -----------------------------

threshold() { # NAME PERCENT [coverage report options]
    local name=$1 percent=$2
    shift 2
    if coverage report --precision=2 --fail-under="$percent" "$@" >"$log.report" 2>&1; then
        printf '  %-10s at least %s %%: %s\n' "$name" "$percent" "$(tail -n 1 "$log.report")"
    else
        cat "$log.report"
        printf '  %-10s below %s %%\n' "$name" "$percent"
        status=1
    fi
    rm -f "$log.report"
}

if [ $fast = 0 ]; then
    say "coverage"
    # What a child wrote that outlived the tests is added: without --append it would take the place of all the rest.
    coverage combine -q --append 2>/dev/null || true
    threshold flow 100 --include='*/code_intel_server/flow/*'
    threshold contract 100 --include='*/code_intel_server/contract/*'
    threshold overall 92
fi

say "done, status $status"
grep -E '^(=+ )?[0-9]+ (passed|failed|skipped|error|deselected)|^(FAILED|ERROR) |no tests ran' "$log" | tail -n 30 || true
exit "$status"
