"""A language server as a source: the few messages of the Language Server Protocol that resolution needs.

It runs as long as somebody asks it: to start one and let it read a project takes seconds. Nobody trusts it: an answer that
does not come in time or makes no sense is none, and after MOST_FAILURES of them in a row the server is left alone for REST_SECONDS.
Messages: Language Server Protocol 3.17 (base protocol, lifecycle, textDocument/definition and /references).
"""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from code_intel_server.codebase.external_resolution.values import (
    KnownSymbol,
    NamePlace,
    SourceError,
    from_utf16,
    in_order,
    text_lines,
    to_utf16,
    whole_word,
)
from code_intel_server.codebase.files.languages import language_of
from code_intel_server.codebase.files.text import decode, read_bytes
from code_intel_server.common.child_link import ChildPipes, why

SERVER_SECONDS = 10.0
"""How long one question may take, the server's start included."""
MOST_FAILURES = 3
REST_SECONDS = 300.0
"""How long one that failed so often is not asked: a machine that was busy, or a project that was being read, may be done by then."""

_MOST_MESSAGE_BYTES = 64 * 1024 * 1024
_MOST_HEADER_BYTES = 4096
_MOST_PLACES = 20_000
_PIECE = 1 << 16
_IDS = {"tsx": "typescriptreact", "bash": "shellscript"}
"""Languages that the protocol calls otherwise than we do."""

Message = dict[str, Any]


class _Connection:
    """A running server and what has come from it."""

    def __init__(self, argv: Sequence[str], root: Path) -> None:
        self.pipes = ChildPipes(argv, root, {})
        self._come = bytearray()
        self._last_id = 0
        self._works: set[str] = set()

    def notify(self, method: str, params: object, deadline: float) -> None:
        """Tell it something. Raises as `ChildPipes.send`."""
        self._send({"method": method, "params": params}, deadline)

    def ask(self, questions: Mapping[str, object], deadline: float) -> list[Any]:
        """The results of these methods, asked at once. Raises as `ChildPipes.send`, and ValueError for nonsense."""
        waiting: dict[int, str] = {}
        for method, params in questions.items():
            self._last_id += 1
            waiting[self._last_id] = method
            self._send({"id": self._last_id, "method": method, "params": params}, deadline)
        results: dict[str, Any] = {}
        while waiting:
            message = self._next(deadline)
            number = message.get("id")
            if isinstance(number, int) and number in waiting and "method" not in message:
                if "error" in message:
                    raise ValueError("it refused")
                results[waiting.pop(number)] = message.get("result")
        return [results[method] for method in questions]

    def settle(self, deadline: float) -> None:
        """Wait until all work is done whose progress it reports. Raises as `ask`."""
        while self._works:
            self._next(deadline)

    def _next(self, deadline: float) -> Message:
        """The next message; what the server asks is answered, what it reports of its work noted."""
        message = self._receive(deadline)
        if "method" in message and "id" in message:
            self._send({"id": message["id"], "result": _settings(message)}, deadline)
        elif message.get("method") == "$/progress":
            token, kind = str(message["params"]["token"]), message["params"]["value"].get("kind")
            (self._works.discard if kind == "end" else self._works.add)(token)
        return message

    def _send(self, message: Message, deadline: float) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.pipes.send(b"Content-Length: %d\r\n\r\n" % len(body) + body, deadline)

    def _receive(self, deadline: float) -> Message:
        """The next message; what has come of one stays for the next call where time runs out."""
        while (end := self._come.find(b"\r\n\r\n")) < 0:
            if len(self._come) > _MOST_HEADER_BYTES:
                raise ValueError("not the Language Server Protocol")
            self._come += self.pipes.read(_PIECE, deadline)
        size = _content_length(bytes(self._come[:end]))
        while len(self._come) < end + 4 + size:
            self._come += self.pipes.read(_PIECE, deadline)
        body = bytes(self._come[end + 4 : end + 4 + size])
        del self._come[: end + 4 + size]
        message = json.loads(body)
        if not isinstance(message, dict):
            raise ValueError("not a message")  # noqa: TRY004 - a broken stream, not a wrong type in our code
        return message


class LanguageServer:
    """The server that one command starts, for the project at `root`. Safe to use from several threads."""

    def __init__(self, root: Path, argv: Sequence[str], languages: Set[str]) -> None:
        self._root = root
        self._argv = argv
        self._languages = languages
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self._engine = ""
        self._failures = 0
        self._rests_until = 0.0
        self._is_ready = self._has_settled = False
        self._stamps: dict[str, int] = {}
        self._open: dict[str, str] | None = None
        """The document that a question which ran out of time has left open."""

    def close(self) -> None:
        """End the server, when the question under way is answered."""
        with self._lock:
            self._drop()

    def symbol_at(self, path: str, line: int, column: int, files: Sequence[str]) -> KnownSymbol:
        """The symbol at a place (1-based). `files` are those it may have to read again. Raises SourceError where it does not tell."""
        deadline = time.monotonic() + SERVER_SECONDS
        name = self._argv[0].rpartition("/")[2]
        if not self._lock.acquire(timeout=SERVER_SECONDS):
            raise SourceError(f"{name} is busy")
        try:
            if time.monotonic() < self._rests_until:
                raise SourceError(f"{name} failed {MOST_FAILURES} times and is not asked for some minutes")
            return self._symbol_at(path, line, column, files, deadline)
        except (OSError, EOFError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            self._failures += 1
            if self._failures >= MOST_FAILURES:
                self._rests_until = time.monotonic() + REST_SECONDS
            late = isinstance(error, TimeoutError)
            # Who is only late may still be reading the project, once it has said that it is there.
            if not late or not self._is_ready or self._failures >= MOST_FAILURES:
                self._drop()
            missing = isinstance(error, FileNotFoundError | PermissionError)
            raise SourceError(f"{name}: {'it cannot be started' if missing else why(_plain(error))}") from None
        finally:
            self._lock.release()

    def _symbol_at(self, path: str, line: int, column: int, files: Sequence[str], deadline: float) -> KnownSymbol:
        connection = self._connection or self._start(deadline)
        self._tell_changes(connection, files, deadline)
        text = decode(read_bytes(self._root, path) or b"")
        if self._open is not None:
            connection.notify("textDocument/didClose", {"textDocument": self._open}, deadline)
        document = self._open = {"uri": self._uri(path)}
        connection.notify("textDocument/didOpen", {"textDocument": {**document, **_opened(path, text)}}, deadline)
        at = {"line": line - 1, "character": to_utf16(text.split("\n")[line - 1], column - 1)}
        asked = {"textDocument": document, "position": at}
        questions = {
            "textDocument/definition": asked,
            "textDocument/references": {**asked, "context": {"includeDeclaration": True}},
        }
        found = connection.ask(questions, deadline)
        while not self._has_settled:  # one that has just begun answers before it has looked around
            connection.settle(deadline)
            before, found = found, connection.ask(questions, deadline)
            self._has_settled = before == found
        connection.notify("textDocument/didClose", {"textDocument": document}, deadline)
        self._open = None
        self._failures = 0
        definitions = in_order(self._places(found[0]))
        references = frozenset(self._places(found[1])) | frozenset(definitions)
        outside = next(self._outside(found[0]), "")
        if not references and not outside:
            raise SourceError(f"{self._engine} knows nothing at {path}:{line}:{column}")
        return KnownSymbol(self._engine, definitions, references, outside)

    def _start(self, deadline: float) -> _Connection:
        self._connection = connection = _Connection(self._argv, self._root)
        uri = self._root.as_uri()
        asked = {
            "processId": os.getpid(),
            "rootUri": uri,
            "capabilities": {
                "workspace": {
                    "configuration": True,
                    "workspaceFolders": True,
                    "didChangeWatchedFiles": {"dynamicRegistration": True},
                },
                "window": {"workDoneProgress": True},
                "textDocument": {"definition": {"linkSupport": True}, "references": {}},
            },
            "workspaceFolders": [{"uri": uri, "name": self._root.name}],
        }
        [result] = connection.ask({"initialize": asked}, deadline)
        info = result.get("serverInfo") or {}
        said = " ".join(str(info[key]) for key in ("name", "version") if info.get(key))
        self._engine = said[:60] or self._argv[0].rpartition("/")[2]
        connection.notify("initialized", {}, deadline)
        self._is_ready = True
        return connection

    def _tell_changes(self, connection: _Connection, files: Sequence[str], deadline: float) -> None:
        """Name the files that changed since the last question: to watch a tree is the client's task."""
        stamps = {}
        for path in files:
            language = language_of(path)
            if language is not None and language.name in self._languages:
                stamps[path] = _modified(self._root / path)
        before, self._stamps = self._stamps, stamps
        if not before:
            return
        kinds = {path: 2 if path in before else 1 for path, stamp in stamps.items() if before.get(path) != stamp}
        kinds |= dict.fromkeys(before.keys() - stamps.keys(), 3)
        if kinds:
            changes = [{"uri": self._uri(path), "type": kind} for path, kind in sorted(kinds.items())]
            connection.notify("workspace/didChangeWatchedFiles", {"changes": changes}, deadline)

    def _places(self, result: object) -> Iterator[NamePlace]:
        """The locations of a result that lie in the project, as far as its files read so. Raises as nonsense does."""
        lines: dict[str, Sequence[str]] = {}
        for location in _locations(result):
            path = self._path(location["uri"])
            if path is None:
                continue
            if path not in lines:
                lines[path] = text_lines(self._root, path)
            begin, end = location["range"]["start"], location["range"]["end"]
            number = int(begin["line"])
            if begin["line"] != end["line"] or not 0 <= number < len(lines[path]):
                continue
            line = lines[path][number]
            start, stop = (from_utf16(line, int(one["character"])) for one in (begin, end))
            if whole_word(line, start, stop):
                yield NamePlace(path, number + 1, start, stop, line[start:stop])

    def _outside(self, result: object) -> Iterator[str]:
        for location in _locations(result):
            if self._path(location["uri"]) is None:
                yield "/".join(unquote(urlsplit(location["uri"]).path).split("/")[-3:])

    def _uri(self, path: str) -> str:
        return (self._root / path).as_uri()

    def _path(self, uri: str) -> str | None:
        """A file of the project, relative to its root; None for any other."""
        parts = urlsplit(uri)
        full = os.path.normpath(unquote(parts.path))
        inside = parts.scheme == "file" and Path(full).is_relative_to(self._root)
        return Path(full).relative_to(self._root).as_posix() if inside else None

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        self._stamps, self._open = {}, None
        self._is_ready = self._has_settled = False
        if connection is not None:
            connection.pipes.close()


def _content_length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            size = int(value)
            if size <= _MOST_MESSAGE_BYTES:
                return size
    raise ValueError("not the Language Server Protocol")


def _opened(path: str, text: str) -> Message:
    language = language_of(path)
    name = language.name if language else ""
    return {"languageId": _IDS.get(name, name), "version": 1, "text": text}


def _settings(message: Message) -> object:
    """The answer to what a server asks: no setting of ours for each that it wants, consent to everything else."""
    if message["method"] == "workspace/configuration":
        return [None for _ in message["params"]["items"]]
    return None


def _locations(result: Any) -> Iterator[Message]:
    """The locations that a result holds, links among them as the places that they lead to."""
    found = result if isinstance(result, list) else [] if result is None else [result]
    for one in found[:_MOST_PLACES]:
        yield {"uri": one["targetUri"], "range": one["targetSelectionRange"]} if "targetUri" in one else one


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _plain(error: Exception) -> Exception:
    """Whatever a server says that cannot be read is nonsense."""
    return error if isinstance(error, OSError | EOFError) else ValueError()
