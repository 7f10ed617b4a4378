"""Makes calls of AWS APIs. scripts/aws-call starts it.

Usage: aws-call.py SERVICE OPERATION [PARAMETERS as JSON] [QUERY]
       aws-call.py --serve SOCKET    make the calls of other processes, which have ZAE_AWS_CALLS=SOCKET, until the parent ends
"""

import contextlib
import json
import os
import socket
import sys

# How often the server looks whether its parent is still there, in seconds.
INTERVAL = 1


class Caller:
    """Makes calls, with one client for each service and each set of credentials."""

    def __init__(self):
        self.clients = {}

    def client(self, service, settings):
        key = (service, tuple(sorted(settings.items())))
        if key not in self.clients:
            import botocore.session

            for name in aws_settings():
                del os.environ[name]
            os.environ.update(settings)
            session = botocore.session.get_session()
            self.clients[key] = session.create_client(service, region_name=os.environ.get("AWS_REGION"))
        return self.clients[key]

    def call(self, settings, service, operation, parameters="{}", query="@"):
        """Whether the call succeeded, and what the query finds in all pages of the response, or what is wrong."""
        import botocore.exceptions
        import jmespath

        try:
            client = self.client(service, settings)
            if client.can_paginate(operation):
                response = client.get_paginator(operation).paginate(**json.loads(parameters)).build_full_result()
            else:
                response = getattr(client, operation)(**json.loads(parameters))
        except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
            return False, f"{service} {operation}: {error}"
        found = jmespath.search(query, response)
        return True, found if isinstance(found, str) else json.dumps(found, default=str)


def aws_settings():
    return {name: value for name, value in os.environ.items() if name.startswith("AWS_")}


def serve(path):
    caller, parent = Caller(), os.getppid()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{path}.new")
        listener.listen()
        listener.settimeout(INTERVAL)
        # Anyone who sees the path can connect.
        os.rename(f"{path}.new", path)
        while os.getppid() == parent:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            # A client that is interrupted hangs up. The calls that clean up come after it.
            with contextlib.suppress(OSError, ValueError), connection, connection.makefile("rw") as stream:
                settings, arguments = json.loads(stream.readline())
                json.dump(caller.call(settings, *arguments), stream)


def ask(path, arguments):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        with connection.makefile("rw") as stream:
            print(json.dumps([aws_settings(), arguments]), file=stream, flush=True)
            return json.load(stream)


def main():
    if sys.argv[1] == "--serve":
        return serve(sys.argv[2])
    server = os.environ.get("ZAE_AWS_CALLS")
    succeeded, text = ask(server, sys.argv[1:]) if server else Caller().call(aws_settings(), *sys.argv[1:])
    if not succeeded:
        sys.exit(text)
    print(text)


if __name__ == "__main__":
    main()
