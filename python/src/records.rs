//! Records of the client as data that Python turns into its models.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3::{IntoPyObjectExt, types::PyNone};
use serde_json::{Map, Value, json};
use zae_limiter::audit::AuditEvent;
use zae_limiter::records::{EntityRecord, to_json};
use zae_limiter::usage::{ResourceCapacity, UsageSnapshot, UsageSummary};
use zae_limiter::{BucketLimitKind, BucketState, Limit, LimitStatus, ResolvedConfig};

/// Data as Python objects.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => PyNone::get(py).into_bound_py_any(py),
        Value::Bool(flag) => flag.into_bound_py_any(py),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => number.into_bound_py_any(py),
            (_, Some(number), _) => number.into_bound_py_any(py),
            (_, _, number) => number.into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_python(py, item)?)?;
            }
            list.into_bound_py_any(py)
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for (name, value) in fields {
                dict.set_item(name, to_python(py, value)?)?;
            }
            dict.into_bound_py_any(py)
        }
    }
}

pub(crate) fn limit(limit: &Limit) -> Value {
    json!(limit)
}

pub(crate) fn status(status: &LimitStatus) -> Value {
    json!({
        "entity_id": status.entity.as_str(),
        "resource": status.resource.as_str(),
        "limit": limit(&status.limit),
        "available": status.available,
        "requested": status.requested,
        "exceeded": status.refused,
        "observed": status.observed,
        "retry_after_seconds": status.retry_after.seconds(),
        "resets_at": status.reset.map(|reset| reset.at),
        "window_seconds": status.window_seconds().and_then(|seconds| u64::try_from(seconds).ok()),
    })
}

pub(crate) fn entity(entity: &EntityRecord) -> Value {
    let metadata: Map<_, _> = entity
        .metadata
        .iter()
        .map(|(key, value)| (key.clone(), to_json(value)))
        .collect();
    json!({
        "id": entity.id.as_str(),
        "name": entity.name,
        "parent_id": entity.parent.as_ref().map(zae_limiter::EntityId::as_str),
        "cascade": entity.cascade,
        "metadata": metadata,
        "created_at": entity.created_at,
    })
}

pub(crate) fn resolved(resolved: &ResolvedConfig) -> Value {
    json!({
        "limits": resolved.limits.iter().map(limit).collect::<Vec<_>>(),
        "limits_from": resolved.limits_from,
        "on_unavailable": resolved.on_unavailable,
        "on_unavailable_from": resolved.on_unavailable_from,
        "mode": resolved.mode,
        "mode_from": resolved.mode_from,
    })
}

pub(crate) fn event(event: &AuditEvent) -> Value {
    let details: Map<_, _> = event
        .details
        .iter()
        .map(|(key, value)| (key.clone(), to_json(value)))
        .collect();
    json!({
        "event_id": event.id.to_string(),
        "timestamp": event.timestamp,
        "action": event.action.to_string(),
        "entity_id": event.subject.to_string(),
        "principal": event.principal,
        "resource": event.resource,
        "details": details,
    })
}

pub(crate) fn snapshot(snapshot: &UsageSnapshot) -> Value {
    let counters: Map<_, _> = snapshot
        .counters
        .iter()
        .map(|(name, count)| (name.to_string(), json!(count)))
        .collect();
    json!({
        "entity_id": snapshot.entity.as_str(),
        "resource": snapshot.resource.as_str(),
        "window_start": snapshot.window.start(),
        "window_end": snapshot.window.end(),
        "window_type": snapshot.window.kind(),
        "counters": counters,
        "total_events": snapshot.total_events,
        "refusals": snapshot.refusals,
    })
}

pub(crate) fn summary(summary: &UsageSummary) -> Value {
    let total: Map<_, _> = summary
        .totals
        .iter()
        .map(|(name, count)| (name.to_string(), json!(count)))
        .collect();
    json!({
        "snapshot_count": summary.snapshots,
        "total": total,
        "min_window_start": summary.first,
        "max_window_start": summary.last,
    })
}

pub(crate) fn capacity(capacity: &ResourceCapacity) -> Value {
    let entities = capacity.entities.iter().map(|entity| {
        json!({
            "entity_id": entity.entity.as_str(),
            "capacity": entity.capacity,
            "available": entity.available,
            "utilization_pct": entity.utilization_percent(),
        })
    });
    json!({
        "resource": capacity.resource.as_str(),
        "limit_name": capacity.limit.as_str(),
        "total_capacity": capacity.total_capacity,
        "total_available": capacity.total_available,
        "utilization_pct": capacity.utilization_percent(),
        "entities": entities.collect::<Vec<_>>(),
    })
}

/// One entry per rate, as Python programs know them: their buckets have no other kinds of limits.
pub(crate) fn bucket(bucket: &BucketState) -> Vec<Value> {
    let limits = bucket.limits.iter().filter_map(|limit| {
        let BucketLimitKind::Rate {
            refill_amount,
            refill_period_ms,
        } = limit.kind
        else {
            return None;
        };
        Some(json!({
            "entity_id": bucket.entity.as_str(),
            "resource": bucket.resource.as_str(),
            "limit_name": limit.name.as_str(),
            "tokens": limit.available,
            "last_refill_ms": bucket.refilled_at.millis(),
            "capacity": limit.capacity,
            "burst": limit.burst,
            "refill_amount": refill_amount,
            "refill_period_ms": refill_period_ms,
            "consumed": limit.consumed,
        }))
    });
    limits.collect()
}
