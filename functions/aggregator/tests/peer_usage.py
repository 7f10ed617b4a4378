"""Prints the usage that the Python peer finds in a table, by entity and by resource, as JSON."""

import json
import sys
from dataclasses import asdict

from zae_limiter import SyncRepository

name, endpoint = sys.argv[1], sys.argv[2]
repository = SyncRepository(name, region="us-east-1", endpoint_url=endpoint)


def found(window, **whose):
    snapshots, _ = repository.get_usage_snapshots(window_type=window, **whose)
    return sorted((asdict(snapshot) for snapshot in snapshots), key=lambda one: one["window_start"])


print(
    json.dumps(
        {
            window: [found(window, entity_id="user-1"), found(window, resource="gpt-4")]
            for window in ["hourly", "daily", "monthly"]
        }
    )
)
