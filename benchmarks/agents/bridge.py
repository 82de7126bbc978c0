"""Gives any agent with a shell the tools of the server, as a client would, and keeps a log of every call."""

import collections
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.wire import Client, Refused


def serve(folder: Path, project: Path, command: list[str]) -> None:
    """Run the server in `project` and answer on FOLDER/socket until told to stop."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    listener.listen(8)
    try:
        with Client(command, project) as client, (folder / "calls.jsonl").open("a", encoding="utf-8") as log:
            while True:
                connection, _ = listener.accept()
                with connection, connection.makefile("rwb") as pipe:
                    asked = json.loads(pipe.readline())
                    answer = _answer(client, asked)
                    if asked["method"] == "tools/call":
                        row = {"seconds": round(answer.pop("seconds"), 3), **asked["params"], "answer": answer}
                        log.write(json.dumps(row) + "\n")
                        log.flush()
                    pipe.write(json.dumps(answer).encode() + b"\n")
                if asked["method"] == "stop":
                    return
    finally:
        (folder / "socket").unlink()


def _answer(client: Client, asked: dict[str, Any]) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        answer = {} if asked["method"] == "stop" else client.rpc(asked["method"], **asked["params"])
    except Refused as error:
        answer = {"content": [{"type": "text", "text": str(error)}]}
    return {**answer, "seconds": time.perf_counter() - began} if asked["method"] == "tools/call" else answer


def start(folder: Path, project: Path, command: list[str]) -> None:
    """Start the server in the background; returns once it answers."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "server.log").open("a") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.agents", "_serve", str(folder), str(project), *command],
            cwd=Path(__file__).parents[2],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    while not (folder / "socket").exists():
        if child.poll() is not None:
            sys.exit(f"the server did not start: see {folder / 'server.log'}")
        time.sleep(0.05)
    ask(folder, "ping")


def ask(folder: Path, method: str, **params: object) -> dict[str, Any]:
    """One request to the server that `start` keeps."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(folder / "socket"))
    with connection, connection.makefile("rwb") as pipe:
        pipe.write(json.dumps({"method": method, "params": params}).encode() + b"\n")
        pipe.flush()
        answer: dict[str, Any] = json.loads(pipe.readline())
    return answer


def shown(answer: dict[str, Any]) -> str:
    """The text of a tool's answer, which is what a model sees."""
    return "\n".join(part.get("text", "") for part in answer.get("content", []))


def count(folder: Path) -> dict[str, Any]:
    """Calls and bytes by tool, refused submits quoted; the changes shown for review are counted apart."""
    calls: collections.Counter[str] = collections.Counter()
    size: collections.Counter[str] = collections.Counter()
    refusals = []
    log = folder / "calls.jsonl"
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
        row = json.loads(line)
        text = shown(row["answer"])
        calls[row["name"]] += 1
        size[row["name"]] += len(text.encode())
        structure = row["answer"].get("structuredContent") or {}
        shown_changes = len(json.dumps(structure.get("review", ""), ensure_ascii=False).encode()) - 2
        size[row["name"]] -= shown_changes
        size["review_changes"] += shown_changes
        if structure.get("success") is False:
            refusals.append({"tool": row["name"], "error": structure.get("error"), "message": structure.get("message")})
    return {
        "calls": dict(calls),
        "bytes": sum(size.values()) - size["review_changes"],
        "review_bytes": size["review_changes"],
        "refusals": refusals,
    }
