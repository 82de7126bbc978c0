"""Stand-ins for the clients' model services on 127.0.0.1: each request of the conversation is answered by a `reply` function.

Anthropic's Messages API and OpenAI's Responses API as far as the command line clients use them: streamed answers with texts
and tool calls. Everything else they ask for is answered with 404, which they take for "not available".
"""

import gzip
import http.server
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

Fields = dict[str, Any]
_numbers = itertools.count(1)


@dataclass
class Service:
    """A running stand-in: where it is, what it was asked, and what went wrong in `reply`."""

    url: str = ""
    requests: list[Fields] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


Reply = Callable[[Fields], list[Fields]]


def anthropic(reply: Reply) -> AbstractContextManager[Service]:
    """The Messages API. `reply` gets the body of a request with tools and returns content blocks; others get "ok"."""
    return _serving(_Anthropic, reply)


def responses(reply: Reply) -> AbstractContextManager[Service]:
    """The Responses API. `reply` gets the request's body and returns output items."""
    return _serving(_Responses, reply, "/v1")


def completions(reply: Reply) -> AbstractContextManager[Service]:
    """OpenAI's Chat Completions API. `reply` gets the body of a request with tools and returns `say` or `ask` items."""
    return _serving(_Completions, reply, "/v1")


def gemini(reply: Reply) -> AbstractContextManager[Service]:
    """Google's Gemini API. `reply` gets the body of a request with tools and returns `say` or `ask` items."""
    return _serving(_Gemini, reply)


def said(text: str) -> Fields:
    return {"text": text}


def asked(tool: str, arguments: Fields) -> Fields:
    return {"id": f"call_{next(_numbers):08d}", "name": tool, "args": arguments}


def text_block(text: str) -> Fields:
    return {"type": "text", "text": text}


def tool_block(name: str, arguments: Fields) -> Fields:
    return {"type": "tool_use", "id": f"toolu_{next(_numbers):08d}", "name": name, "input": arguments}


def message_item(text: str) -> Fields:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "id": f"msg_{next(_numbers):06d}", "content": content}


def function_item(name: str, namespace: str, arguments: Fields) -> Fields:
    number = next(_numbers)
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name}
    return item | {"arguments": json.dumps(arguments)} | ({"namespace": namespace} if namespace else {})


def custom_item(name: str, text: str) -> Fields:
    number = next(_numbers)
    return {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}", "name": name, "input": text}


@contextmanager
def _serving(kind: "type[_Handler]", reply: Reply, below: str = "") -> Iterator[Service]:
    service = Service()
    own = {"service": service, "reply": staticmethod(reply), "lock": threading.Lock()}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (kind,), own))
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_address[1]}{below}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: Service
    reply: Reply
    lock: threading.Lock

    def log_message(self, *_: Any) -> None:
        pass

    def body(self) -> Fields:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        try:
            content = json.loads(raw or b"{}")
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}

    def answer(self, status: int, content: Fields) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, kind: str, **content: Any) -> None:
        self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **content})}\n\n".encode())

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.answer(404, {"error": {"type": "not_found_error", "message": self.path}})

    def asked(self, body: Fields, failed: Callable[[str], Fields]) -> list[Fields]:
        """The reply to one request; an exception in it is kept and ends the conversation."""
        with self.lock:
            self.service.requests.append(body)
            try:
                return self.reply(body)
            except Exception as error:  # noqa: BLE001 - a failed expectation ends the conversation and is looked at by the test
                self.service.errors.append(f"{type(error).__name__}: {error}")
                return [failed(f"the script failed: {error}")]


class _Anthropic(_Handler):
    def do_POST(self) -> None:
        body, path = self.body(), self.path.split("?")[0]
        if path == "/v1/messages/count_tokens":
            return self.answer(200, {"input_tokens": 1000})
        if path != "/v1/messages":
            return self.answer(404, {"type": "error", "error": {"type": "not_found_error", "message": path}})
        blocks = self.asked(body, text_block) if body.get("tools") else [text_block("ok")]
        return self._stream(body, blocks)

    def _stream(self, body: Fields, blocks: list[Fields]) -> None:
        calls = any(block["type"] == "tool_use" for block in blocks)
        message = {
            "id": f"msg_{next(_numbers):08d}", "type": "message", "role": "assistant",
            "model": body.get("model", "scripted"), "content": [], "stop_reason": None, "stop_sequence": None,
            "usage": {"input_tokens": 1000, "output_tokens": 1},
        }  # fmt: skip
        stop = "tool_use" if calls else "end_turn"
        if not body.get("stream"):
            self.answer(200, {**message, "content": blocks, "stop_reason": stop})
            return
        self.begin_stream()
        self.event("message_start", message=message)
        for index, block in enumerate(blocks):
            start: Fields
            if block["type"] == "text":
                start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                start = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            self.event("content_block_start", index=index, content_block=start)
            self.event("content_block_delta", index=index, delta=delta)
            self.event("content_block_stop", index=index)
        self.event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage={"output_tokens": 20})
        self.event("message_stop")


class _Responses(_Handler):
    def do_POST(self) -> None:
        body, path = self.body(), self.path.split("?")[0]
        if not path.endswith("/responses"):
            return self.answer(404, {"error": {"message": path, "type": "invalid_request_error"}})
        return self._stream(self.asked(body, message_item))

    def _stream(self, items: list[Fields]) -> None:
        name = f"resp_{next(_numbers):06d}"
        self.begin_stream()
        self.event("response.created", response={"id": name, "status": "in_progress", "output": []})
        for index, item in enumerate(items):
            self.event("response.output_item.added", output_index=index, item=item)
            self.event("response.output_item.done", output_index=index, item=item)
        usage = {
            "input_tokens": 1000,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 1010,
        }
        done = {"id": name, "status": "completed", "output": items, "usage": usage}
        self.event("response.completed", response=done)


class _Completions(_Handler):
    def do_GET(self) -> None:
        self.answer(200, {"object": "list", "data": [{"id": "scripted-model", "object": "model"}]})

    def do_POST(self) -> None:
        body = self.body()
        if not self.path.split("?")[0].endswith("/chat/completions"):
            return self.answer(404, {"error": {"message": self.path, "type": "invalid_request_error"}})
        items = self.asked(body, said) if body.get("tools") else [said("ok")]
        text = "".join(item.get("text", "") for item in items)
        calls = [
            {
                "index": at,
                "id": item["id"],
                "type": "function",
                "function": {"name": item["name"], "arguments": json.dumps(item["args"])},
            }
            for at, item in enumerate(item for item in items if "name" in item)
        ]
        message = {"role": "assistant", "content": text or None} | ({"tool_calls": calls} if calls else {})
        return self._stream(body, message, "tool_calls" if calls else "stop")

    def _stream(self, body: Fields, message: Fields, ended: str) -> None:
        usage = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
        about = {"id": f"chat_{next(_numbers)}", "created": 1, "model": body.get("model", "scripted-model")}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": ended}
            return self.answer(200, {**about, "object": "chat.completion", "choices": [choice], "usage": usage})
        self.begin_stream()
        for choice in (
            {"index": 0, "delta": message, "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": ended},
        ):
            self._chunk({**about, "object": "chat.completion.chunk", "choices": [choice]})
        self._chunk({**about, "object": "chat.completion.chunk", "choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")
        return None

    def _chunk(self, content: Fields) -> None:
        self.wfile.write(f"data: {json.dumps(content)}\n\n".encode())


class _Gemini(_Handler):
    def do_POST(self) -> None:
        body, path = self.body(), self.path.split("?")[0]
        if path.endswith(":countTokens"):
            return self.answer(200, {"totalTokens": 1000})
        if "enerateContent" not in path:
            return self.answer(404, {"error": {"message": path}})
        items = self.asked(body, said) if body.get("tools") else [said("{}")]
        parts = [{"functionCall": item} if "name" in item else item for item in items]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1000, "candidatesTokenCount": 10, "totalTokenCount": 1010}
        answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}
        if not path.endswith(":streamGenerateContent"):
            return self.answer(200, answer)
        self.begin_stream()
        self.wfile.write(f"data: {json.dumps(answer)}\n\n".encode())
        return None
