//! The names of the attributes that records have. Attributes of limits, slots and usage counters have names of their own:
//! see [`Attr`](crate::bucket::Attr), [`ConfigRecord`](crate::ConfigRecord) and [`usage_attribute`](crate::usage_attribute).

/// Partition key.
pub const PK: &str = "PK";
/// Sort key.
pub const SK: &str = "SK";
/// Partition key of GSI1: parent to children.
pub const GSI1PK: &str = "GSI1PK";
/// Sort key of GSI1.
pub const GSI1SK: &str = "GSI1SK";
/// Partition key of GSI2: resource to buckets and usage.
pub const GSI2PK: &str = "GSI2PK";
/// Sort key of GSI2.
pub const GSI2SK: &str = "GSI2SK";
/// Partition key of GSI3: resource to entities with limits of their own.
pub const GSI3PK: &str = "GSI3PK";
/// Sort key of GSI3.
pub const GSI3SK: &str = "GSI3SK";
/// When DynamoDB may delete the item, in epoch seconds.
pub const TTL: &str = "ttl";

/// The entity's ID; on audit events, the subject.
pub const ENTITY_ID: &str = "entity_id";
/// The resource.
pub const RESOURCE: &str = "resource";
/// The entity's parent.
pub const PARENT_ID: &str = "parent_id";
/// Whether acquires cascade to the parent.
pub const CASCADE: &str = "cascade";

/// Buckets: time of the last refill.
pub const REFILLED_AT: &str = "rf";
/// Buckets: etag.
pub const ETAG: &str = "cf";
/// Buckets: number of acquires.
pub const EVENTS: &str = "ev";
/// Buckets: number of refused acquires.
pub const REFUSALS: &str = "rj";
/// Buckets: number of acquires that passed though the limits did not allow them, because they are only observed.
pub const OBSERVED: &str = "ro";

/// Entities: name.
pub const NAME: &str = "name";
/// Entities: metadata.
pub const METADATA: &str = "metadata";
/// Entities: creation time.
pub const CREATED_AT: &str = "created_at";
/// Entities: version for optimistic locking.
pub const VERSION: &str = "version";

/// Configurations: version for optimistic locking.
pub const CONFIG_VERSION: &str = "config_version";
/// Configurations: the format of levels that older clients would misread: with limits that are no rates, or with a mode. A
/// client that does not know it refuses the level.
pub const LIMITS_FORMAT: &str = "limits_format";
/// The first version that knows that format.
pub const LIMITS_VERSION: &str = "limits_version";
/// Configurations: limits that end, and when. A client that does not know the attribute uses the limits that last.
pub const TEMPORARY_LIMITS: &str = "limits_until";
/// Configurations: what happens while the table is unavailable.
pub const ON_UNAVAILABLE: &str = "on_unavailable";
/// Configurations: whether the limits are enforced.
pub const MODE: &str = "mode";
/// Configurations with prices: the limit that counts money. Without it there are no prices.
pub const MONEY_LIMIT: &str = "p_usd";
/// Configurations with prices: the limits that count tokens.
pub const TOKEN_LIMITS: &str = "p_tok";
/// Configurations: micro-dollars of a million input tokens.
pub const PRICE_INPUT: &str = "p_in";
/// Configurations: micro-dollars of a million output tokens.
pub const PRICE_OUTPUT: &str = "p_out";
/// Configurations: micro-dollars of a million input tokens that are read from a cache.
pub const PRICE_CACHED_INPUT: &str = "p_cr";
/// Configurations: micro-dollars of a million input tokens that are written to a cache.
pub const PRICE_CACHE_WRITE: &str = "p_cw";
/// Configurations: micro-dollars of a call.
pub const PRICE_PER_CALL: &str = "p_call";
/// Configurations: output tokens expected of a request that does not limit them.
pub const DEFAULT_OUTPUT: &str = "p_est";
/// Configurations: the most output tokens that the model makes.
pub const MAX_OUTPUT: &str = "p_max";
/// System configuration: how long audit events are kept, in days.
pub const AUDIT_RETENTION_DAYS: &str = "audit_retention_days";
/// System configuration: whether a newer client may update the functions.
pub const AUTO_UPDATE: &str = "auto_update";
/// System configuration: whether a version mismatch is an error.
pub const STRICT_VERSION: &str = "strict_version";

/// Version record: the table's format.
pub const SCHEMA_VERSION: &str = "schema_version";
/// Version record: the oldest client that may use the table.
pub const CLIENT_MIN_VERSION: &str = "client_min_version";
/// Version record: the version of the Python package's function.
pub const LAMBDA_VERSION: &str = "lambda_version";
/// Version record: when it was written.
pub const UPDATED_AT: &str = "updated_at";
/// Version record: who wrote it.
pub const UPDATED_BY: &str = "updated_by";

/// Audit events: ID.
pub const EVENT_ID: &str = "event_id";
/// Audit events: time.
pub const TIMESTAMP: &str = "timestamp";
/// Audit events: what was done.
pub const ACTION: &str = "action";
/// Audit events: who did it.
pub const PRINCIPAL: &str = "principal";
/// Audit events: the particulars.
pub const DETAILS: &str = "details";

/// Changes of a bucket by hand: what was asked for.
pub const REQUEST: &str = "request";
/// Thresholds that were reached: what was used then.
pub const USED: &str = "used";

/// Applied limits file: whether it manages the system level.
pub const MANAGED_SYSTEM: &str = "managed_system";
/// Applied limits file: the resources whose defaults it manages.
pub const MANAGED_RESOURCES: &str = "managed_resources";
/// Applied limits file: the entities whose limits it manages.
pub const MANAGED_ENTITIES: &str = "managed_entities";
/// Applied limits file: hash of the file.
pub const APPLIED_HASH: &str = "applied_hash";
/// Applied limits file: when it was applied.
pub const LAST_APPLIED: &str = "last_applied";
/// Applied limits file: the resource of a stack that declares the levels.
pub const OWNER: &str = "owner";
/// Applied limits file: the resource that declared them before.
pub const PREVIOUS_OWNER: &str = "previous_owner";
/// Applied limits file: revision for optimistic locking.
pub const REVISION: &str = "revision";
