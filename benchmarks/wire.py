"""A small MCP client for any server over standard input and output: it measures, and answers what servers ask back."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

Fields = dict[str, Any]
HANDSHAKE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"roots": {}},
    "clientInfo": {"name": "benchmarks", "version": "0"},
}


class Refused(Exception):
    """The server answered with a protocol error, or a tool failed."""


class Client:
    """One server process, spoken to in lines of JSON-RPC; `started` holds the seconds from spawn to answered initialize."""

    def __init__(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None, limit: float = 600
    ) -> None:
        self.root = cwd
        began = time.perf_counter()
        self.process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env or os.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._number = 0
        self._limit = limit
        self.rpc("initialize", **HANDSHAKE)
        self.started = time.perf_counter() - began
        self.cpu_at_start = self.cpu()
        self.memory_at_start = self.memory()
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, tool: str, **arguments: object) -> Fields:
        """What a tool answers: its structure where it has one, else {'text': …}."""
        result = self.rpc("tools/call", name=tool, arguments=arguments)
        text = "\n".join(part.get("text", "") for part in result.get("content", []))
        if result.get("isError"):
            raise Refused(f"{tool}: {text[:500]}")
        content = result.get("structuredContent")
        return content if isinstance(content, dict) else {"text": text}

    def submit(self, **data: object) -> Fields:
        """submit_phase with a summary and an empty tools list unless given."""
        return self.call("submit_phase", data={"summary": "Done.", "tools_used": [], **data})

    def accepted(self, **data: object) -> Fields:
        """A submit that must be accepted."""
        answer = self.submit(**data)
        assert answer["success"], answer
        return answer

    def list_tools(self) -> list[Fields]:
        """What tools/list says."""
        tools: list[Fields] = self.rpc("tools/list")["tools"]
        return tools

    def rpc(self, method: str, **params: object) -> Fields:
        """One request; raises Refused for an error and EOFError where the server has ended (or was, after `limit` seconds)."""
        self._number += 1
        number = self._number
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        assert self.process.stdout is not None
        alarm = threading.Timer(self._limit, self.process.kill)
        alarm.start()
        try:
            while line := self.process.stdout.readline():
                message = json.loads(line)
                if "method" in message and "id" in message:
                    self._answer(message)
                elif message.get("id") == number:
                    if "error" in message:
                        raise Refused(f"{method}: {message['error']}")
                    result: Fields = message["result"]
                    return result
        finally:
            alarm.cancel()
        raise EOFError(f"the server ended during {method}")

    def _answer(self, message: Fields) -> None:
        """What a server asks a client: its roots, or whether it is there."""
        result: Fields = (
            {"roots": [{"uri": self.root.as_uri(), "name": "project"}]} if message["method"] == "roots/list" else {}
        )
        self._send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _send(self, message: Fields) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def cpu(self) -> float:
        """Seconds of processor time the process has used."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Megabytes resident."""
        return resident(self.process.pid)

    def family(self) -> float:
        """Megabytes of the process and all its descendants, shared pages divided among those who share them."""
        return sum(proportional(pid) for pid in descendants(self.process.pid))

    def close(self) -> None:
        """Close the pipe, and end the server where that does not."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.close()
            self.process.wait(10)
        except BrokenPipeError:
            self.process.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def resident(pid: int) -> float:
    """Megabytes a process has in RAM."""
    return _kilobytes(Path(f"/proc/{pid}/status"), "VmRSS:") / 1024


def proportional(pid: int) -> float:
    """Megabytes a process has in RAM, shared pages divided among those who share them."""
    return _kilobytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss:") / 1024


def _kilobytes(file: Path, field: str) -> int:
    try:
        return next(int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith(field))
    except (OSError, StopIteration):
        return 0


def descendants(pid: int) -> list[int]:
    """A process and everything below it."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(word) for word in task.read_text().split()]
    return found
