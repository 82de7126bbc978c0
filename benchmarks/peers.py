"""The lookups beside the plain programs and beside other MCP servers for code, over the same wire, call by call in turns.

    peers.py [--quick] [--peers FOLDER] [--sizes 5000 50000] [--patience 400]        measures and writes peers.md

FOLDER holds one environment a peer (missing ones are left out and named):

    for peer in code-index-mcp jcodemunch-mcp "mcp-server-tree-sitter mcp<2" "serena-agent jedi-language-server"; do
        python3 -m venv FOLDER/${peer%% *} && FOLDER/${peer%% *}/bin/pip install $peer; done
    npm install --prefix FOLDER/node mcp-ripgrep

The trees are made by corpus.py. Every peer gets time to build what it builds; what is measured is a warm call.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import corpus  # noqa: E402
import measuring  # noqa: E402
from wire import Client, Refused  # noqa: E402

from code_intel_server.codebase.files import ripgrep  # noqa: E402

Act = Callable[[str], object]
CALL_SECONDS = 20.0
PATTERNS = ("deepcopy", r"def get_\w+", r"class \w+Error", "assertRaisesRegex")
COMMON = "import"
SYMBOLS = ("deepcopy", "namedtuple", "urlparse", "getsourcefile", "TestCase")


@dataclass
class Peer:
    """One server: how it is started, made ready, and asked; an operation it has not got is missing."""

    name: str
    argv: list[str]
    ready: Callable[[Client, Path], None]
    asks: Callable[[Client, Path], dict[str, Act]]
    needs: tuple[int, int] = (0, 10**9)
    client: Client | None = None
    acts: dict[str, Act] = field(default_factory=dict)
    prepared: float = 0.0


def peers(folder: Path) -> list[Peer]:
    """Those that can be installed from a registry and run without an account, a model download or a network."""
    return [
        Peer("code-intel", [sys.executable, "-m", "code_intel_server", "serve"], _ready_ours, _ours),
        Peer("mcp-ripgrep", ["node", str(folder / "node/node_modules/mcp-ripgrep/dist/index.js")], lambda *_: None, _mcp_ripgrep),
        Peer("code-index-mcp", [str(folder / "code-index-mcp/bin/code-index-mcp")], _ready_code_index, _code_index),
        Peer("jcodemunch-mcp", [str(folder / "jcodemunch-mcp/bin/jcodemunch-mcp")], _ready_jcodemunch, _jcodemunch),
        Peer("mcp-server-tree-sitter", [str(folder / "mcp-server-tree-sitter/bin/mcp-server-tree-sitter")], _ready_tree_sitter, _tree_sitter),
        Peer("Serena (jedi)", [str(folder / "serena-agent/bin/serena"), "start-mcp-server", "--project", "{root}", "--context", "ide",
              "--agent-interface", "tools", "--enable-web-dashboard", "false", "--enable-gui-log-window", "false", "--log-level", "ERROR"], _ready_serena, _serena),
    ]  # fmt: skip


def _ready_ours(client: Client, _root: Path) -> None:
    client.call("start_session", query="Where is deepcopy?", intent="QUESTION", flags={"no_doc": True})
    while client.call("find_definitions", symbol=SYMBOLS[0]).get("pending"):
        time.sleep(0.2)  # the session tags every file in the background
    client.call("sync_index")  # it builds the index by meaning there, too, and would do so beside what is measured


def _ours(client: Client, _root: Path) -> dict[str, Act]:
    return {
        "search_text": lambda pattern: client.call("search_text", patterns=pattern),
        "find_references": lambda symbol: client.call("find_references", symbol=symbol),
        "find_definitions": lambda symbol: client.call("find_definitions", symbol=symbol),
        "get_symbols": lambda path: client.call("get_symbols", path=path),
    }


def _mcp_ripgrep(client: Client, root: Path) -> dict[str, Act]:
    return {
        "search_text": lambda pattern: client.call("search", pattern=pattern, path=str(root)),
        "find_references": lambda symbol: client.call(
            "advanced-search", pattern=symbol, path=str(root), wordMatch=True
        ),
    }


def _ready_code_index(client: Client, root: Path) -> None:
    client.call("set_project_path", path=str(root))
    client.call("build_deep_index")


def _code_index(client: Client, _root: Path) -> dict[str, Act]:
    return {
        "search_text": lambda pattern: client.call("search_code_advanced", pattern=pattern, regex=True, max_results=50),
        "find_references": lambda symbol: client.call(
            "search_code_advanced", pattern=rf"\b{symbol}\b", regex=True, max_results=50
        ),
        "get_symbols": lambda path: client.call("get_file_summary", file_path=path),
    }


def _ready_jcodemunch(client: Client, root: Path) -> None:
    answer = client.call("index_folder", path=str(root), use_ai_summaries=False)["text"]
    found = re.search(r'"repo":"([^"]+)"', answer)
    assert found, answer[:500]
    client.repo = found[1]  # type: ignore[attr-defined]


def _jcodemunch(client: Client, _root: Path) -> dict[str, Act]:
    repo: str = client.repo  # type: ignore[attr-defined]
    return {
        "search_text": lambda pattern: client.call(
            "search_text", repo=repo, query=pattern, is_regex=True, max_results=50
        ),
        "find_references": lambda symbol: client.call("find_references", repo=repo, identifier=symbol),
        "find_definitions": lambda symbol: client.call("search_symbols", repo=repo, query=symbol, max_results=50),
        "get_symbols": lambda path: client.call("get_file_outline", repo=repo, file_path=path),
    }


def _ready_tree_sitter(client: Client, root: Path) -> None:
    client.call("register_project_tool", path=str(root), name="tree")


def _tree_sitter(client: Client, _root: Path) -> dict[str, Act]:
    return {
        "search_text": lambda pattern: client.call(
            "find_text", project="tree", pattern=pattern, use_regex=True, max_results=50, context_lines=0
        ),
        "find_references": lambda symbol: client.call("find_usage", project="tree", symbol=symbol, language="python"),
        "get_symbols": lambda path: client.call("get_symbols", project="tree", file_path=path),
    }


def _ready_serena(client: Client, _root: Path) -> None:
    client.call("get_symbols_overview", relative_path="d0000/m000000.py")


def _serena(client: Client, root: Path) -> dict[str, Act]:
    def references(symbol: str) -> object:
        path = _home_of(root, symbol)
        return client.call("find_referencing_symbols", name_path=symbol, relative_path=path)

    return {
        "search_text": lambda pattern: client.call("search_for_pattern", substring_pattern=pattern),
        "find_references": references,
        "find_definitions": lambda symbol: client.call("find_symbol", name_path_pattern=symbol),
        "get_symbols": lambda path: client.call("get_symbols_overview", relative_path=path),
    }


_HOMES: dict[str, str] = {}


def _home_of(root: Path, symbol: str) -> str:
    """Where a symbol is defined: Serena wants it with the question."""
    if symbol not in _HOMES:
        done = subprocess.run(
            [ripgrep.ripgrep_program(), "-l", rf"^(def|class) {symbol}\b|^{symbol} =", "."],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        _HOMES[symbol] = (done.stdout.splitlines() or ["./d0000/m000000.py"])[0].removeprefix("./")
    return _HOMES[symbol]


def plain(root: Path, tags: Path) -> dict[str, Act]:
    """The programs themselves: ripgrep, ctags, and readtags on a ready tags file."""

    def run(*argv: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([str(word) for word in argv], cwd=root, capture_output=True, check=False)

    rg = (ripgrep.ripgrep_program(), "--no-config", "--line-number")
    ctags = shutil.which("ctags")
    readtags = shutil.which("readtags")
    acts: dict[str, Act] = {
        "search_text": lambda pattern: run(*rg, "-e", pattern, "--", "./"),
        "find_references": lambda symbol: run(*rg, "--word-regexp", "-e", symbol, "--", "./"),
    }
    if ctags:
        acts["get_symbols"] = lambda path: run(ctags, "--options=NONE", "-f", "-", path)
    if ctags and readtags:
        run(ctags, "--options=NONE", "-R", "-f", tags, ".")
        acts["find_definitions"] = lambda symbol: run(readtags, "-t", tags, symbol)
    return acts


def bring_up(peer: Peer, root: Path, home: Path, patience: float) -> str:
    """Start a peer and let it get ready within `patience` seconds a call; '' or why it cannot take part."""
    missing = next((word for word in peer.argv[:2] if word.startswith("/") and not Path(word).exists()), None)
    if missing or not shutil.which(peer.argv[0]):
        return "not installed here"
    env = {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{Path(peer.argv[0]).parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    env.pop("PYTHONPATH", None)
    if peer.name == "code-intel":
        env["PYTHONPATH"] = str(HERE.parent / "src")
    began = time.perf_counter()
    try:
        peer.client = Client([word.replace("{root}", str(root)) for word in peer.argv], root, env, limit=patience)
        peer.ready(peer.client, root)
        peer.acts = peer.asks(peer.client, root)
    except (Refused, EOFError, OSError, AssertionError) as error:
        if peer.client is not None:
            peer.client.process.kill()
        return f"did not get ready in {time.perf_counter() - began:.0f} s: {str(error)[:160]}"
    peer.client._limit = CALL_SECONDS
    peer.prepared = time.perf_counter() - began
    return ""


def in_turns(sides: dict[str, Act], words: Sequence[str], rounds: int) -> dict[str, list[float] | str]:
    """Milliseconds a call of every side, word by word in turns; a side that fails or takes too long says why instead."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    out: dict[str, str] = {}
    for number in range(rounds + 1):
        for word in words:
            for name, act in sides.items():
                if name in out:
                    continue
                began = time.perf_counter()
                try:
                    act(word)
                except Refused as error:
                    out[name] = f"failed: {str(error)[:80]}"
                except (EOFError, OSError):
                    out[name] = f"over {CALL_SECONDS:.0f} s"
                else:
                    if number:
                        taken[name].append((time.perf_counter() - began) * 1e3)
    return {name: out.get(name) or values for name, values in taken.items()}


def measure(files: int, rounds: int, folder: Path, scratch: Path, patience: float) -> list[str]:
    """All rows of one size."""
    root = scratch / f"tree{files}"
    paths = corpus.make(root, files)
    for argv in (
        ("init", "-q"),
        ("add", "-A"),
        ("-c", "user.name=B", "-c", "user.email=b@example.invalid", "commit", "-qm", "All"),
    ):
        subprocess.run(["git", *argv], cwd=root, check=True, capture_output=True)
    (root / ".serena").mkdir()
    (root / ".serena/project.yml").write_text(
        'project_name: "tree"\nlanguages: ["python_jedi"]\nencoding: "utf-8"\n', encoding="utf-8"
    )
    home = scratch / f"home{files}"
    home.mkdir()
    raw = plain(root, scratch / f"tags{files}")
    present: list[Peer] = []
    left_out: dict[str, str] = {}
    for peer in peers(folder):
        why = bring_up(peer, root, home, patience)
        if why:
            left_out[peer.name] = why
            print(peer.name, why, flush=True)
        else:
            present.append(peer)
    questions: tuple[tuple[str, str, Sequence[str]], ...] = (
        ("search_text", "search_text", PATTERNS),
        (f"search_text `{COMMON}` (in every file)", "search_text", (COMMON,)),
        ("find_references", "find_references", SYMBOLS),
        ("find_definitions", "find_definitions", SYMBOLS),
        ("get_symbols", "get_symbols", paths[:: len(paths) // 5][:5]),
    )
    header = ["what, p50 ms (× raw)", "raw rg / ctags", *(peer.name for peer in present)]
    rows: list[list[object]] = []
    for title, operation, words in questions:
        sides: dict[str, Act] = {"raw": raw[operation]} if operation in raw else {}
        sides |= {peer.name: peer.acts[operation] for peer in present if operation in peer.acts}
        found = in_turns(sides, words, rounds)
        base = found.get("raw")
        cells = [_cell(found.get(name), base) for name in ("raw", *(peer.name for peer in present))]
        rows.append([title, *cells])
        print(dict(zip(header, rows[-1], strict=True)), flush=True)
        for peer in present:
            if peer.client is not None and peer.client.process.poll() is not None:
                bring_up(peer, root, home, patience)  # ended because it took too long
    rows.append(["ready after, s", "", *(peer.prepared for peer in present)])
    rows.append(["memory with children, MB", "", *(peer.client.family() if peer.client else 0.0 for peer in present)])
    for peer in present:
        if peer.client is not None:
            peer.client.close()
    shutil.rmtree(root)
    lines = [f"## {files:,} files", "", *measuring.table(header, rows), ""]
    return [*lines, *(f"- {name}: {why}" for name, why in left_out.items()), ""]


def _cell(found: list[float] | str | None, base: list[float] | str | None) -> str:
    if found is None:
        return "has none"
    if isinstance(found, str):
        return found
    value = measuring.median(found)
    if not isinstance(base, list) or base is found:
        return f"{value:.1f}"
    return f"{value:.1f} ({value / measuring.median(base):.2f} ×)"


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peers", type=Path, default=Path(os.environ.get("PEERS", "peers")))
    parser.add_argument("--sizes", type=int, nargs="+", default=[5_000, 50_000])
    parser.add_argument("--patience", type=float, default=400.0, help="seconds a peer has for getting ready")
    options = parser.parse_args()
    sizes = [1_000] if options.quick else options.sizes
    notes = HERE / "peers.notes.md"
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="peers-") as scratch:
        for files in sizes:
            rounds = 2 if options.quick else 5
            lines += measure(files, rounds, options.peers.resolve(), Path(scratch).resolve(), options.patience)
    measuring.write(
        "peers.quick.md" if options.quick else "peers.md",
        [
            "# Lookups beside other servers",
            "",
            f"Written by `peers.py`. {measuring.machine('mcp', 'rg', 'ctags')}",
            "",
            "Each cell is the median of warm calls over the wire, in milliseconds, and how many times the plain program that is",
            "(`rg --line-number`, `ctags -f - FILE`, `readtags` on a ready tags file; each started anew). The sides took turns call",
            "by call. Nobody does quite the same: what the answers hold is said below.",
            "",
            *lines,
            *(notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []),
        ],
    )


if __name__ == "__main__":
    main()
