"""Feeds stream records to the peer's aggregator, batch by batch, and prints the number of its errors."""

import contextlib
import json
import os
import sys

name, endpoint, path = sys.argv[1:]
os.environ["AWS_ENDPOINT_URL"] = endpoint
os.environ["AWS_DEFAULT_REGION"] = "us-east-1"

from zae_limiter_aggregator.processor import process_stream_records  # noqa: E402

with open(path) as file:
    told = json.load(file)
errors = []
# It logs to standard output.
with contextlib.redirect_stdout(sys.stderr):
    for batch in told["batches"]:
        errors += process_stream_records(batch, name, told["windows"]).errors
print(json.dumps(errors))
