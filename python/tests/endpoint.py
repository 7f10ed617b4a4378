"""moto's DynamoDB as a server, for the core, which is not Python and cannot be intercepted in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server


@contextmanager
def moto_server(before: Callable[[str], None] | None = None) -> Iterator[str]:
    """The URL of moto, as long as the block runs. `before` is called with the operation of each request.

    moto checks a condition and applies the update in two steps without a lock, so that requests of two threads can both pass
    a condition that only one of them may. DynamoDB does not: one request at a time.
    """
    application, lock = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def one_at_a_time(environment: dict[str, Any], respond: Any) -> Any:
        if before is not None:
            before(environment.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2])
        with lock:
            return application(environment, respond)

    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
