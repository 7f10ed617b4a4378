//! The logical ids of the stack. CloudFormation identifies resources by them, so none may change.

use crate::model::LogicalId;

/// The table.
pub const TABLE: LogicalId = LogicalId::fixed("RateLimitsTable");
/// The archive bucket of audit events.
pub const ARCHIVE_BUCKET: LogicalId = LogicalId::fixed("AuditArchiveBucket");
/// The archive bucket's policy.
pub const ARCHIVE_BUCKET_POLICY: LogicalId = LogicalId::fixed("AuditArchiveBucketPolicy");

/// The resources that hold data, which replacing or removing them would lose.
pub const STATEFUL: [LogicalId; 2] = [TABLE, ARCHIVE_BUCKET];

/// The dashboard.
pub const DASHBOARD: LogicalId = LogicalId::fixed("Dashboard");

/// Bucket with the functions' archives, in exported templates.
pub const CODE_BUCKET: LogicalId = LogicalId::fixed("CodeBucket");

/// Alarm on throttled reads of the table.
pub const READ_THROTTLE_ALARM: LogicalId = LogicalId::fixed("DynamoDBReadThrottleAlarm");
/// Alarm on throttled writes of the table.
pub const WRITE_THROTTLE_ALARM: LogicalId = LogicalId::fixed("DynamoDBWriteThrottleAlarm");

/// Alarm on throttled reads of GSI1.
pub const GSI1_READ_THROTTLE_ALARM: LogicalId = LogicalId::fixed("GSI1ReadThrottleAlarm");
/// Alarm on throttled writes of GSI1.
pub const GSI1_WRITE_THROTTLE_ALARM: LogicalId = LogicalId::fixed("GSI1WriteThrottleAlarm");
/// Alarm on throttled reads of GSI2.
pub const GSI2_READ_THROTTLE_ALARM: LogicalId = LogicalId::fixed("GSI2ReadThrottleAlarm");
/// Alarm on throttled writes of GSI2.
pub const GSI2_WRITE_THROTTLE_ALARM: LogicalId = LogicalId::fixed("GSI2WriteThrottleAlarm");
/// Alarm on throttled reads of GSI3.
pub const GSI3_READ_THROTTLE_ALARM: LogicalId = LogicalId::fixed("GSI3ReadThrottleAlarm");
/// Alarm on throttled writes of GSI3.
pub const GSI3_WRITE_THROTTLE_ALARM: LogicalId = LogicalId::fixed("GSI3WriteThrottleAlarm");

/// The logical ids of a function and its resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionIds {
    /// The function.
    pub function: LogicalId,
    /// The role it runs as.
    pub role: LogicalId,
    /// Its log group.
    pub log_group: LogicalId,
    /// Its event source mapping.
    pub mapping: LogicalId,
    /// Its dead-letter queue.
    pub queue: LogicalId,
    /// The queue's policy.
    pub queue_policy: LogicalId,
    /// Alarm on messages in the queue.
    pub queue_alarm: LogicalId,
    /// Alarm on failed invocations.
    pub error_alarm: LogicalId,
    /// Alarm on slow invocations.
    pub duration_alarm: LogicalId,
    /// Alarm on falling behind.
    pub age_alarm: LogicalId,
    /// Alarm on a mapping that no longer reads the stream.
    pub stopped_alarm: LogicalId,
    /// Alarm on events that the function cannot be invoked with.
    pub failed_events_alarm: LogicalId,
    /// Alarm on throttled invocations.
    pub throttle_alarm: LogicalId,
    /// Alarm on dead letters that cannot be delivered.
    pub destination_alarm: LogicalId,
    /// Key of its archive, in exported templates.
    pub code_key: LogicalId,
}

/// A managed policy of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyKind {
    /// For applications: acquire, adjust and release.
    Acquire,
    /// For administrators: everything on the table's data.
    Full,
    /// For dashboards: read only.
    Read,
}

impl PolicyKind {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Acquire, Self::Full, Self::Read];

    /// Its component of the policy name.
    pub const fn component(self) -> &'static str {
        match self {
            Self::Acquire => "acq",
            Self::Full => "full",
            Self::Read => "read",
        }
    }

    /// Its logical id.
    pub const fn id(self) -> LogicalId {
        LogicalId::fixed(match self {
            Self::Acquire => "AcquireOnlyPolicy",
            Self::Full => "FullAccessPolicy",
            Self::Read => "ReadOnlyPolicy",
        })
    }

    /// Who it is for.
    pub const fn audience(self) -> &'static str {
        match self {
            Self::Acquire => "applications that acquire",
            Self::Full => "administrators",
            Self::Read => "readers",
        }
    }
}

/// A role of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoleKind {
    /// The aggregator's role.
    Aggregator,
    /// The archiver's role.
    Archiver,
    /// For applications.
    App,
    /// For administrators.
    Admin,
    /// For readers.
    Read,
}

impl RoleKind {
    /// Every role.
    pub const ALL: [Self; 5] = [
        Self::Aggregator,
        Self::Archiver,
        Self::App,
        Self::Admin,
        Self::Read,
    ];

    /// Its component of the role name, at most eight characters.
    pub const fn component(self) -> &'static str {
        match self {
            Self::Aggregator => "aggr",
            Self::Archiver => "arch",
            Self::App => "app",
            Self::Admin => "admin",
            Self::Read => "read",
        }
    }

    /// Its logical id.
    pub const fn id(self) -> LogicalId {
        LogicalId::fixed(match self {
            Self::Aggregator => "AggregatorRole",
            Self::Archiver => "ArchiverRole",
            Self::App => "AppRole",
            Self::Admin => "AdminRole",
            Self::Read => "ReadOnlyRole",
        })
    }

    /// Who assumes it.
    pub const fn holder(self) -> &'static str {
        match self {
            Self::Aggregator => "the aggregator",
            Self::Archiver => "the archiver",
            Self::App => "applications",
            Self::Admin => "administrators",
            Self::Read => "readers",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_of_role_names_have_at_most_eight_characters() {
        assert!(RoleKind::ALL.iter().all(|role| role.component().len() <= 8));
    }
}
