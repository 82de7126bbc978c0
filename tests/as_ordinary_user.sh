#!/usr/bin/env bash
# The tests that depend on optional programs, on root or on a home, again: as an ordinary user of a machine without those programs.
#
#   tests/as_ordinary_user.sh [files and options of pytest]     by default the files that name one of these
#
# Runs as `nobody`, in a copy of the checkout whose path has spaces, with a home that cannot be written, a narrow umask and no
# locale. Only root can become somebody else; who is not is an ordinary user already. VENV names the environment's folder.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
    echo "not root: all tests run as an ordinary user anyway"
    exit 0
fi

venv=$(cd "${VENV:-.venv-test}" && pwd)
hidden=(rg ctags ctags-universal universal-ctags strace tmux ssh-keygen node npm npx cc gcc clang cargo go unshare setpriv sudo)
depends='needs\(|geteuid|getuid|umask|"HOME"|home\(\)|only_on_path|import ctags|"ctags"|Universal Ctags'
dear='test_killed_sessions|test_docs|test_install' # two minutes of processor time, for tests that bring a home of their own
mapfile -t selected < <(if [ $# -gt 0 ]; then printf '%s\n' "$@"; else grep -rlE "$depends" --include='test_*.py' tests | grep -vE "$dear"; fi)

room=$(mktemp -d /tmp/code-intel-XXXXXX)
trap 'rm -rf "$room"' EXIT
checkout="$room/a check out" temporary="$room/temporary files"
mkdir "$checkout" "$temporary" "$room/home" "$room/programs"
chmod 755 "$room" "$checkout" "$room/home" "$room/programs"

as_nobody() { # with no program but the environment's own Python, which can load nothing more once it is nobody
    "$venv/bin/python" -c 'import os, sys, warnings; os.setgroups([]); os.setgid(65534); os.setuid(65534); os.execvp(sys.argv[1], sys.argv[1:])' "$@"
}

git ls-files -z --cached --others --exclude-standard --deduplicate |
    tar --null --files-from=- --ignore-failed-read -c 2>/dev/null | tar -x -C "$checkout"
chown -R 65534:65534 "$checkout" "$temporary"
for folder in /usr/local/bin /usr/bin /bin /usr/sbin /sbin; do
    ln -s "$folder"/* "$room/programs/" 2>/dev/null || true # what is there already came first on the PATH
done
(cd "$room/programs" && rm -f "${hidden[@]}")

# The distribution's own interpreter is what a stranger has, and may be used by anybody; that of the environment may lie below /root.
version=$("$venv/bin/python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
for python in "/usr/bin/$version" "/usr/local/bin/$version" "$(readlink -f "$venv/bin/python")" ""; do
    as_nobody "$python" -c 'import venv' 2>/dev/null && break
done
if [ -z "$python" ]; then
    echo "left out: no $version here that anybody but root may run"
    exit 0
fi
packages="$venv/lib/$version/site-packages"
if ! as_nobody test -r "$packages/pytest/__init__.py"; then # hard links take no time; across file systems they are copied
    cp -al "$packages" "$room/packages" 2>/dev/null || { rm -rf "$room/packages" && cp -a "$packages" "$room/packages"; }
    packages="$room/packages"
fi
"$python" -m venv --without-pip "$room/venv"
rmdir "$room/venv/lib/$version/site-packages"
ln -s "$packages" "$room/venv/lib/$version/site-packages"
cp "$venv/bin/agnix" "$venv/bin/rg" "$room/venv/bin/" # programs of their own; the others name their interpreter

cd "$checkout"
umask 077
as_nobody env -i HOME="$room/home" TMPDIR="$temporary" PATH="$room/venv/bin:$room/programs" PYTHONPATH="$checkout/src" PYTHONDONTWRITEBYTECODE=1 \
    python -m pytest -n "${WORKERS:-2}" --dist loadfile -q -p no:cacheprovider -m "not full and not clients" "${selected[@]}"
