"""Computes every vector with the peer itself and prints the results in the form of the table."""

import json
import sys

from zae_limiter import Limit, ValidationError, schema
from zae_limiter.bucket import calculate_retry_after, force_consume, refill_bucket, try_consume
from zae_limiter.models import BucketState, validate_identifier, validate_resource

with open(sys.argv[1]) as file:
    table = json.load(file)


def state(tokens):
    return BucketState(
        entity_id="user-123",
        resource="gpt-4",
        limit_name="tpm",
        tokens_milli=tokens,
        last_refill_ms=0,
        capacity_milli=100_000_000,
        burst_milli=100_000_000,
        refill_amount_milli=100_000_000,
        refill_period_ms=60_000,
    )


def refill(row):
    result = refill_bucket(row["tokens"], 0, row["elapsed"], row["burst"], row["amount"], row["period"])
    return {**row, "after": result.new_tokens_milli}


def take(row):
    result = try_consume(state(row["tokens"]), row["asked"], row["elapsed"])
    return {**row, "available": result.available, "after": result.new_tokens_milli if result.success else None}


def wait(row):
    seconds = calculate_retry_after(row["deficit"], row["amount"], row["period"])
    return {**row, "peer": round(seconds * 1000)}


def force(row):
    return {**row, "peer": force_consume(state(100_000_000), row["amount"], 0)[0]}


def valid(check):
    try:
        check()
    except (ValueError, ValidationError):
        return False
    return True


def limit(row):
    parts = {"capacity": row["capacity"], "burst": row["burst"]}
    parts |= {"refill_amount": row["amount"], "refill_period_seconds": row["period"]}
    return {**row, "valid": valid(lambda: Limit(name=row["name"], **parts))}


def name(row):
    text = row["text"] if "text" in row else "x" * row["repeat"]
    check = {"entity": validate_identifier, "resource": validate_resource}[row["kind"]]
    return {**row, "valid": valid(lambda: check(text, "field"))}


ENTITY, RESOURCE, HOUR, EVENT = "user-123", "gpt-4", "2024-01-15T14:00:00Z", "01ARZ3NDEKTSV4RRFFQ69G5FAV"
keys = {
    "entity": [schema.pk_entity(ENTITY), schema.sk_meta()],
    "bucket": [schema.pk_entity(ENTITY), schema.sk_bucket(RESOURCE)],
    "config of the system": [schema.pk_system(), schema.sk_config()],
    "config of a resource": [schema.pk_resource(RESOURCE), schema.sk_config()],
    "config of an entity": [schema.pk_entity(ENTITY), schema.sk_config(RESOURCE)],
    "version": [schema.pk_system(), schema.sk_version()],
    "resources": [schema.pk_system(), schema.sk_resources()],
    "resources with entity configs": [schema.pk_system(), schema.sk_entity_config_resources()],
    "audit event": [schema.pk_audit(ENTITY), schema.sk_audit(EVENT)],
    "usage of an hour": [schema.pk_entity(ENTITY), schema.sk_usage(RESOURCE, HOUR)],
    "child": [schema.gsi1_pk_parent("org-abc"), schema.gsi1_sk_child(ENTITY)],
    "bucket by resource": [schema.gsi2_pk_resource(RESOURCE), schema.gsi2_sk_bucket(ENTITY)],
    "usage by resource": [schema.gsi2_pk_resource(RESOURCE), schema.gsi2_sk_usage(HOUR, ENTITY)],
}
found = {
    "refill": [refill(row) for row in table["refill"]],
    "take": [take(row) for row in table["take"]],
    "wait": [wait(row) for row in table["wait"]],
    "force": [force(row) for row in table["force"]],
    "limits": [limit(row) for row in table["limits"]],
    "names": [name(row) for row in table["names"]],
    "keys": keys,
}
print(json.dumps(found))
