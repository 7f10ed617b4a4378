"""What the Python peer sees in a table, and what it writes to it. Prints JSON."""

import json
import sys

from zae_limiter import Limit, SyncRateLimiter, SyncRepository

name, endpoint, what = sys.argv[1:]
repository = SyncRepository(name, region="us-east-1", endpoint_url=endpoint)


def limit(one):
    return [one.name, one.capacity, one.burst, one.refill_amount, one.refill_period_seconds]


def read():
    key = repository.get_entity("key-1")
    resolved, policy, source = repository.resolve_limits("key-1", "gpt-4")
    system, system_policy = repository.get_system_defaults()
    return {
        "entity": [key.id, key.name, key.parent_id, key.cascade, key.metadata],
        "children": [child.id for child in repository.get_children("acme")],
        "resolved": [[limit(one) for one in resolved], policy, source],
        "default": [limit(one) for one in repository.get_limits("key-1")],
        "resource": [limit(one) for one in repository.get_resource_defaults("gpt-4")],
        "system": [[limit(one) for one in system], system_policy],
        "resources": repository.list_resources_with_defaults(),
        "entity_configs": repository.list_resources_with_entity_configs(),
        "custom": repository.list_entities_with_custom_limits("gpt-4")[0],
        "audit": [[event.action, event.principal, event.resource] for event in repository.get_audit_events("key-1")],
        "version": repository.get_version_record()["schema_version"],
    }


def write():
    repository.create_entity("acme", metadata={"tier": "gold"}, principal="peer")
    repository.create_entity("key-1", name="Key", parent_id="acme", cascade=True, principal="peer")
    repository.set_system_defaults([Limit.per_minute("rpm", 10)], on_unavailable="allow", principal="peer")
    repository.set_resource_defaults("gpt-4", [Limit.per_minute("rpm", 20, burst=25)], principal="peer")
    repository.set_limits("key-1", [Limit.per_day("tpd", 30)], principal="peer")
    repository.set_limits("key-1", [Limit.custom("tpm", 40, 4, 7)], resource="gpt-4", principal="peer")
    limiter = SyncRateLimiter(repository=repository)
    with limiter.acquire(entity_id="key-1", resource="gpt-4", consume={"tpm": 15}):
        pass
    return {}


def use():
    limiter = SyncRateLimiter(repository=repository)
    admitted = 0
    for _ in range(3):
        with limiter.acquire(entity_id="key-1", resource="gpt-4", consume={"rpm": 1, "tpm": 15}):
            admitted += 1
    return {"admitted": admitted}


print(json.dumps({"read": read, "write": write, "use": use}[what]()))
