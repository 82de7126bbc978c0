#!/usr/bin/env bash
# Set a project up for code-intel, from a fresh machine: makes an environment of its own for the server, installs this checkout
# into it, puts the command `code-intel-server` where clients find it, and hands over to `code-intel-server init`.
#
#   ./init-project.sh [--venv FOLDER] DIR [options of code-intel-server init]
#
# Needs Python 3.11 or newer with venv, and git. Installs nothing outside the environment's folder and one link in ~/.local/bin.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)

usage() {
    sed -n '2,7s/^# \{0,1\}//p' "$0"
    exit "${1:-0}"
}
fail() {
    printf 'init-project.sh: %s\n' "$*" >&2
    exit 1
}

[ -n "${HOME:-}" ] || fail "HOME is not set: set it to your home folder"
venv=${CODE_INTEL_VENV:-${XDG_DATA_HOME:-$HOME/.local/share}/code-intel/venv}
bin=${CODE_INTEL_BIN:-$HOME/.local/bin}

arguments=()
while [ $# -gt 0 ]; do
    case "$1" in
        -h | --help) usage ;;
        --venv) [ $# -ge 2 ] || usage 2; venv=$2; shift ;;
        --venv=*) venv=${1#--venv=} ;;
        *) arguments+=("$1") ;;
    esac
    shift
done
[ ${#arguments[@]} -gt 0 ] || usage 2

# Said before anything is installed, which takes its time and replaces what a session under way was begun with.
value=0
folders=()
for argument in "${arguments[@]}"; do
    case "$value$argument" in
        0--client | 0--include | 0--exclude) value=1; continue ;;
        1* | 0-*) ;;
        *) [ -d "$argument" ] || fail "$argument is no folder"; folders+=("$argument") ;;
    esac
    value=0
done
for folder in "${folders[@]+"${folders[@]}"}"; do
    case " ${arguments[*]} " in *" --yes "* | *" --dry-run "*) break ;; esac
    for session in "$folder"/.code-intel/{,worktrees/*/.code-intel/}sessions/*.json; do
        [ ! -e "$session" ] || fail "session $(basename "$session" .json) is not over: end it first, or use --yes (docs/how-to/upgrading.md)"
    done
done

# -- what the machine must have ----------------------------------------------------------------------------------------

command -v git >/dev/null || fail "git is missing. Debian, Ubuntu: apt install git"
python=${PYTHON:-}
if [ -z "$python" ]; then
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
            python=$candidate
            break
        fi
    done
fi
[ -n "$python" ] || fail "needs Python 3.11 or newer. Debian, Ubuntu: apt install python3 python3-venv. Another one: PYTHON=/path/to/python $0 ..."
command -v "$python" >/dev/null || fail "PYTHON=$python cannot be found"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$python is too old: needs Python 3.11 or newer"
"$python" -c 'import ensurepip, venv' 2>/dev/null \
    || fail "$python has no venv. Debian, Ubuntu: apt install python3-venv"

# -- a dry run -----------------------------------------------------------------------------------------------------------

for argument in "${arguments[@]}"; do
    [ "$argument" = --dry-run ] || continue
    if ! "$venv/bin/python" -c 'import code_intel_server' 2>/dev/null; then
        echo "would install code-intel-server into $venv (about 470 MB), and then say what it writes: run it without --dry-run"
        exit 0
    fi
    echo "would install code-intel-server from $here into $venv in place of what is there"
    PYTHONPATH="$here/src" exec "$venv/bin/python" -m code_intel_server init "${arguments[@]}"
done

# -- the environment ---------------------------------------------------------------------------------------------------

# ChromaDB asks for these and uses them only for what we never do (its own embedding model, clusters): 260 of 750 MB.
# Noted as present, in the oldest version that ChromaDB takes, pip passes them over; whatever else needs one still gets it.
leave_out() {
    local site one info
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    for one in onnxruntime-1.14.1 tokenizers-0.13.2 kubernetes-28.1.0; do
        [ -z "$(compgen -G "$site/${one%-*}-*.dist-info")" ] || continue
        info=$one.dist-info
        mkdir -p "$site/$info"
        printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: left out by init-project.sh\n' "${one%-*}" "${one##*-}" >"$site/$info/METADATA"
        printf '%s,,\n' "$info/METADATA" "$info/RECORD" >"$site/$info/RECORD"
    done
}

packages() { set -- "$venv"/lib/python*/site-packages/*.dist-info; echo $#; }

# One line that changes says how far pip is, or without a terminal one every ten seconds.
tell_progress() { # LOG
    local before last
    before=$(packages)
    while kill -0 $$ 2>/dev/null; do
        sleep "$pause" >/dev/null
        last=$(grep -aE '^ *(Collecting|Downloading|Processing|Building|Installing collected)' "$1" | tail -n 1 | sed 's/^ *//')
        case "$last" in
            Installing*) last="installed $(($(packages) - before)) of $(tr -cd , <<<"$last," | wc -c) packages" ;;
        esac
        printf "$line" $((SECONDS - began)) "${last:-starting pip}"
    done
}
install() { # FOLDER
    local log watcher status=0 began=$SECONDS pause=10 line='  %3d s  %.60s\n'
    [ ! -t 1 ] || { pause=1 line='\r\033[K  %3d s  %.60s'; }
    log=$(mktemp)
    tell_progress "$log" &
    watcher=$!
    # shellcheck disable=SC2064  # as they are now
    trap "kill $watcher 2>/dev/null; rm -f '$log'" EXIT
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off --upgrade "$1" >"$log" 2>&1 || status=$?
    kill "$watcher" && wait "$watcher" 2>/dev/null || true
    [ ! -t 1 ] || printf '\r\033[K'
    [ $status -eq 0 ] || tail -n 20 "$log" >&2
    trap - EXIT
    rm -f "$log"
    return $status
}

if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import sys' 2>/dev/null; then
    echo "making $venv"
    "$python" -m venv --clear "$venv" || fail "$venv cannot be made (see above); --venv FOLDER puts it elsewhere"
fi
leave_out
echo "installing code-intel-server into $venv (about 470 MB)"
install "$here" || fail "the installation failed (see above). It needs a package index: is there network, or a mirror that pip knows? Then run it again."

mkdir -p "$bin" || fail "$bin cannot be made; CODE_INTEL_BIN names another folder on your PATH"
launcher=$bin/code-intel-server
if [ -e "$launcher" ] && [ ! -L "$launcher" ]; then
    echo "left alone: $launcher is a file of yours; the server is $venv/bin/code-intel-server"
else
    ln -sfn "$venv/bin/code-intel-server" "$launcher"
fi

set +e
PATH="$bin:$PATH" "$venv/bin/code-intel-server" init "${arguments[@]}"
status=$?
set -e
if [ $status -eq 0 ] && ! command -v code-intel-server >/dev/null; then
    printf '\n%s is not on your PATH. Add it, then start your client from that shell:\n  export PATH="%s:$PATH"\n' "$bin" "$bin"
fi
exit $status
