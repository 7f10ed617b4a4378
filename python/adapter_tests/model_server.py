"""A server with the APIs of OpenAI and Anthropic. Prompts say how it responds."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

INPUT, OUTPUT = 30, 12
# In a prompt: respond with an error; end the stream in the middle, or there when the test says so; wait there, or before it begins, until the
# caller leaves.
FAIL, BREAK, BREAK_LATER, STALL, SILENCE = "please fail", "please break", "please do break later", "please stall", "please be silent"
break_now = threading.Event()


def chat(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a chat completion."""
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": request["model"]}
    for word in ("Hello", " world"):
        yield {**base, "choices": [{"index": 0, "delta": {"role": "assistant", "content": word}, "finish_reason": None}]}
    yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    if (request.get("stream_options") or {}).get("include_usage"):
        yield {**base, "choices": [], "usage": chat_usage()}


def chat_usage() -> dict[str, int]:
    return {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}


def chat_response(request: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": '{"text": "Hello"}'}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "c1", "object": "chat.completion", "created": 1, "model": request["model"], "choices": [choice], "usage": chat_usage()
    }


def responses_response(request: dict[str, Any]) -> dict[str, Any]:
    content = [{"type": "output_text", "text": "Hello", "annotations": []}]
    output = [{"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": content}]
    details = {"input_tokens_details": {"cached_tokens": 10}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": INPUT, "output_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT, **details}
    return {
        "id": "r1", "object": "response", "created_at": 1, "status": "completed", "model": request["model"], "output": output,
        "parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "usage": usage,
    }


def responses(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a response."""
    begun = {**responses_response(request), "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "sequence_number": 0, "response": begun}
    yield {
        "type": "response.output_text.delta", "sequence_number": 1, "delta": "Hello", "item_id": "m1", "output_index": 0,
        "content_index": 0, "logprobs": [],
    }
    yield {"type": "response.completed", "sequence_number": 2, "response": responses_response(request)}


def message_response(request: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": INPUT, "output_tokens": OUTPUT, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3}
    return {
        "id": "m1", "type": "message", "role": "assistant", "model": request["model"], "stop_reason": "end_turn",
        "stop_sequence": None, "content": [{"type": "text", "text": "Hello"}], "usage": usage,
    }


def messages(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a message."""
    begun = message_response(request) | {"content": [], "stop_reason": None}
    yield {"type": "message_start", "message": begun | {"usage": begun["usage"] | {"output_tokens": 1}}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}
    yield {"type": "content_block_stop", "index": 0}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": OUTPUT}}
    yield {"type": "message_stop"}


def embeddings(request: dict[str, Any]) -> dict[str, Any]:
    data = [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]
    return {
        "object": "list", "data": data, "model": request["model"], "usage": {"prompt_tokens": INPUT, "total_tokens": INPUT}
    }


WHOLE: dict[str, Any] = {
    "chat/completions": chat_response, "responses": responses_response, "messages": message_response, "embeddings": embeddings
}
STREAMS: dict[str, Any] = {"chat/completions": chat, "responses": responses, "messages": messages}


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        request = json.loads(body)
        self.server.requests.append(request)  # type: ignore[attr-defined]
        path = self.path.partition("?")[0].removeprefix("/v1/")
        if FAIL in body:
            self._send(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "it failed"}})
        elif request.get("stream"):
            self._stream(STREAMS[path](request), body)
        else:
            self._send(200, WHOLE[path](request))

    def _send(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _wait_for_the_end(self) -> None:
        """Waits until the caller closes the connection."""
        self.rfile.read(1)
        self.close_connection = True

    def _stream(self, events: Iterator[dict[str, Any]], prompt: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        sent = []
        if SILENCE in prompt:
            self._wait_for_the_end()
            return
        for event in events:
            sent.append(event)
            name = f"event: {event['type']}\n" if "type" in event else ""
            self._chunk(f"{name}data: {json.dumps(event)}\n\n")
            if len(sent) == 2 and (BREAK in prompt or BREAK_LATER in prompt):
                if BREAK_LATER in prompt:
                    break_now.wait()
                # The body is not ended as its encoding asks for.
                self.close_connection = True
                return
            if len(sent) == 2 and STALL in prompt:
                self._wait_for_the_end()
                return
        if "type" not in sent[0]:
            self._chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def _chunk(self, text: str) -> None:
        self.wfile.write(f"{len(text.encode()):x}\r\n{text}\r\n".encode())
        self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def model_server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The URL of a server, and the requests that it has got."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.requests = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.requests  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
