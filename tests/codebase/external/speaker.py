"""A language server that knows one word: run with how it behaves and a file to which it adds each method that it hears."""

import json
import re
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

MANNER, LOG, WORD = sys.argv[1], Path(sys.argv[2]), sys.argv[3]


def heard() -> dict[str, Any]:
    """The next message."""
    size = 0
    while line := sys.stdin.buffer.readline().strip():
        if line.lower().startswith(b"content-length:"):
            size = int(line.split(b":")[1])
    if not size:
        sys.exit(0)
    message: dict[str, Any] = json.loads(sys.stdin.buffer.read(size))
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"{message.get('method', 'answer')} {json.dumps(message.get('params', message.get('result')))}\n")
    return message


def say(**message: object) -> None:
    """Send a message."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


def everywhere(root: Path) -> list[dict[str, Any]]:
    """Every place of the word in the project's Python files."""
    return [
        {
            "uri": path.as_uri(),
            "range": {
                "start": {"line": number, "character": found.start()},
                "end": {"line": number, "character": found.end()},
            },
        }
        for path in sorted(root.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"))
        for found in re.finditer(rf"\b{WORD}\b", line)
    ]


def answered(method: str, places: list[dict[str, Any]]) -> object:
    """What a question is answered with."""
    if MANNER == "shapes":
        return [{"uri": 7, "range": []}, "nonsense"]
    if MANNER == "elsewhere":
        return [{"uri": "file:///usr/lib/outside.py", "range": places[0]["range"]}]
    if MANNER == "stale":
        for place in places:
            place["range"]["start"]["line"] = place["range"]["end"]["line"] = 900
    if method.endswith("definition"):
        first = places[0]
        return [{"targetUri": first["uri"], "targetRange": first["range"], "targetSelectionRange": first["range"]}]
    return places


root, asked = Path(), 0
while True:
    message = heard()
    method, number = message.get("method", ""), message.get("id")
    if MANNER == "hangs" or (MANNER == "deaf" and method == "textDocument/references"):
        time.sleep(3600)
    if MANNER == "dies":
        sys.exit(3)
    if MANNER == "babbles":
        sys.stdout.write("starting ...\n" * 500)
        sys.stdout.flush()
        continue
    if MANNER == "boasts":
        sys.stdout.write(f"Content-Length: {1 << 40}\r\n\r\n")
        sys.stdout.flush()
        continue
    if method == "initialize":
        root = Path(unquote(urlsplit(message["params"]["rootUri"]).path))
        say(id=number, result={"capabilities": {}, "serverInfo": {"name": "speaker\x1b[1m", "version": "7"}})
        say(id="mine", method="workspace/configuration", params={"items": [{}, {}]})
        say(method="$/progress", params={"token": 1, "value": {"kind": "begin", "title": "reading"}})
    elif number is not None and method:
        asked += 1
        if MANNER == "refuses":
            say(id=number, error={"code": -32603, "message": "no"})
        elif asked <= 2:  # it has not looked around yet
            say(id=number, result=[])
            say(method="$/progress", params={"token": 1, "value": {"kind": "end"}})
        else:
            say(id=number, result=answered(method, everywhere(root)))
