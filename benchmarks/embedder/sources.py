"""Fetch and unpack the packages of `sources.toml` with the registries' ordinary clients, one at a time.

    python benchmarks/embedder/sources.py WORK --benchmark BENCH/semble/repos.json [--lock sources.lock.tsv]

Writes WORK/sources/<registry>/<name>/ and a lock file of name, version and licence. With an existing lock file the versions
named there are fetched. A package is refused whose licence is not permissive or whose name is a benchmark repository's.
Debian source packages need `deb-src` entries (see README.md).
"""

from __future__ import annotations

import argparse
import email
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Zlib|0BSD|BSL|PostgreSQL|HPND|Unlicense|public domain)",
    re.IGNORECASE,
)
RESTRICTED = re.compile(r"\b(A?GPL|LGPL|MPL|EUPL|SSPL|CC-BY)", re.IGNORECASE)


def run(*argv: str, cwd: Path) -> str:
    """Output of a client; raises where it fails."""
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=True, timeout=300).stdout


def from_pypi(name: str, version: str, scratch: Path, target: Path) -> tuple[str, str]:
    """Unpack a wheel; (version, licence)."""
    wanted = f"{name}=={version}" if version else name
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--only-binary",
        ":all:",
        "-d",
        str(scratch),
        wanted,
    ]
    run(*pip, cwd=scratch)
    (wheel,) = scratch.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target, [member for member in archive.namelist() if member.endswith((".py", "METADATA"))])
    (metadata,) = target.glob("*.dist-info/METADATA")
    fields = email.message_from_string(metadata.read_text(encoding="utf-8"))
    classifiers = [c.split(" :: ")[-1] for c in fields.get_all("Classifier", []) if c.startswith("License")]
    stated = (fields["License-Expression"] or " ".join(classifiers) or (fields["License"] or "")).strip()
    return str(fields["Version"]), stated.splitlines()[0][:60] if stated else ""


def from_npm(name: str, version: str, scratch: Path, target: Path) -> tuple[str, str]:
    """Unpack a package; (version, licence)."""
    run("npm", "pack", "--silent", f"{name}@{version}" if version else name, cwd=scratch)
    (tarball,) = scratch.glob("*.tgz")
    with tarfile.open(tarball) as archive:
        archive.extractall(target, filter="data")
    card = json.loads(next(target.glob("*/package.json")).read_text(encoding="utf-8"))
    return str(card["version"]), str(card.get("license", ""))


def from_debian(name: str, version: str, scratch: Path, target: Path) -> tuple[str, str]:
    """Unpack a binary package that carries source; (version, '')."""
    run("apt-get", "download", f"{name}={version}" if version else name, cwd=scratch)
    (package,) = scratch.glob("*.deb")
    run("dpkg-deb", "-x", str(package), str(target), cwd=scratch)
    return run("dpkg-deb", "-f", str(package), "Version", cwd=scratch).strip(), ""


def from_debian_source(name: str, version: str, scratch: Path, target: Path) -> tuple[str, str]:
    """Unpack the upstream archive of a source package; (version, '')."""
    run("apt-get", "source", "--download-only", f"{name}={version}" if version else name, cwd=scratch)
    (card,) = scratch.glob("*.dsc")
    archive = next(path for path in scratch.iterdir() if ".orig.tar." in path.name and not path.name.endswith(".asc"))
    run("tar", "-xf", str(archive), "-C", str(target), cwd=scratch)
    found = re.search(r"^Version: (.+)$", card.read_text(encoding="utf-8"), re.MULTILINE)
    return found.group(1) if found else "", ""


FETCH: dict[str, Callable[[str, str, Path, Path], tuple[str, str]]] = {
    "pypi": from_pypi,
    "npm": from_npm,
    "debian": from_debian,
    "debian-source": from_debian_source,
}


def banned(benchmark: Path) -> set[str]:
    """Names of the benchmark's repositories, folded, by their own and their URL's last part."""
    names: set[str] = set()
    for spec in json.loads(benchmark.read_text(encoding="utf-8")):
        names |= {fold(spec["name"]), fold(spec["url"].rsplit("/", 1)[-1].removesuffix(".git"))}
    return names


def fold(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def main() -> None:
    """Fetch what is missing; print one line a package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--benchmark", type=Path, required=True)
    parser.add_argument("--lock", type=Path, default=HERE / "sources.lock.tsv")
    args = parser.parse_args()
    wanted = tomllib.loads((HERE / "sources.toml").read_text(encoding="utf-8"))
    rows = (
        [line.split("\t") for line in args.lock.read_text(encoding="utf-8").splitlines()] if args.lock.exists() else []
    )
    lock = {(registry, name): (version, licence) for registry, name, version, licence in rows}
    refused = banned(args.benchmark)
    for registry, names in wanted.items():
        for name in names:
            target = args.work / "sources" / registry / name.replace("/", "+")
            if target.exists():
                continue
            if fold(name) in refused:
                raise SystemExit(f"{name} is a benchmark repository")
            with tempfile.TemporaryDirectory() as scratch:
                unpacked = Path(scratch) / "unpacked"
                unpacked.mkdir()
                try:
                    version, licence = FETCH[registry](
                        name, lock.get((registry, name), ("", ""))[0], Path(scratch), unpacked
                    )
                except (subprocess.SubprocessError, tarfile.TarError, ValueError, StopIteration, OSError) as error:
                    print(f"{registry} {name}: not fetched: {error}", flush=True)
                    continue
                licence = names[name] if isinstance(names, dict) else licence
                if RESTRICTED.search(licence) or not PERMISSIVE.search(licence):
                    print(f"{registry} {name}: refused, licence {licence!r}", flush=True)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(unpacked, target)
            lock[registry, name] = (version, licence)
            args.lock.write_text(
                "".join("\t".join([*key, *value]) + "\n" for key, value in sorted(lock.items())), encoding="utf-8"
            )
            print(registry, name, version, licence, flush=True)


if __name__ == "__main__":
    main()
