"""Runs commands of the peer's command line, given as JSON, and prints what each of them printed. The first that fails is the last."""

import json
import sys

from click.testing import CliRunner
from zae_limiter.cli import cli

printed = []
for arguments in json.loads(sys.argv[1]):
    result = CliRunner().invoke(cli, arguments)
    if result.exit_code != 0:
        sys.exit(f"{arguments} exited with {result.exit_code}: {result.output} {result.exception!r}")
    printed.append(result.output)
print(json.dumps(printed))
