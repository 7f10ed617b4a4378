//! The table.

use zae_limiter_schema::keys::GSI2;
use zae_limiter_schema::table::{self, IndexDefinition, KeyDefinition, TABLE};

use super::ids;
use crate::Error;
use crate::model::dynamodb::{
    AttributeDefinition, BillingMode, ContributorInsights, Encryption, Index, KeyElement, OnDemandThroughput,
    PointInTimeRecovery, Projection, ProjectionType, Stream, StreamView, Table, TimeToLive, key,
};
use crate::model::{Handle, Model, Tag, Text};
use crate::options::{IndexProjection, StackOptions, TableClass};

pub(super) fn add(model: &mut Model, name: Text, options: &StackOptions) -> Result<Handle<Table>, Error> {
    let table = Table {
        table_name: name,
        billing_mode: BillingMode::PayPerRequest,
        attribute_definitions: TABLE.key_attributes().map(AttributeDefinition::text).collect(),
        key_schema: key_schema(TABLE.key),
        global_secondary_indexes: TABLE
            .indexes
            .into_iter()
            .map(|definition| index(definition, options))
            .collect(),
        stream_specification: Stream {
            stream_view_type: match TABLE.stream {
                table::StreamView::NewAndOldImages => StreamView::NewAndOldImages,
            },
        },
        time_to_live_specification: TimeToLive {
            attribute_name: TABLE.time_to_live.to_owned(),
            enabled: true,
        },
        point_in_time_recovery_specification: PointInTimeRecovery {
            point_in_time_recovery_enabled: true,
            recovery_period_in_days: options.pitr_recovery_days(),
        },
        deletion_protection_enabled: options.enable_deletion_protection(),
        table_class: match options.table_class() {
            TableClass::Standard => None,
            TableClass::InfrequentAccess => Some("STANDARD_INFREQUENT_ACCESS"),
        },
        on_demand_throughput: throughput(options),
        encryption: options.kms_key_arn().map(|key| Encryption {
            enabled: true,
            kind: "KMS",
            key: key.as_str().into(),
        }),
        contributor_insights_specification: options
            .enable_contributor_insights()
            .then_some(ContributorInsights { enabled: true }),
        tags: vec![Tag::new("Application", "zae-limiter")],
    };
    model.add(ids::TABLE, &table)
}

/// The stack's options may widen the projection of GSI2, and of nothing else.
fn index(definition: IndexDefinition, options: &StackOptions) -> Index {
    let projection_type = match (definition.name, options.gsi2_projection(), definition.projection) {
        (GSI2, IndexProjection::All, _) | (_, _, table::Projection::All) => ProjectionType::All,
        (_, _, table::Projection::KeysOnly) => ProjectionType::KeysOnly,
    };
    Index {
        index_name: definition.name,
        key_schema: key_schema(definition.key),
        projection: Projection { projection_type },
        on_demand_throughput: throughput(options),
    }
}

fn throughput(options: &StackOptions) -> Option<OnDemandThroughput> {
    let (reads, writes) = (
        options.max_read_request_units(),
        options.max_write_request_units(),
    );
    (reads.is_some() || writes.is_some()).then_some(OnDemandThroughput {
        max_read_request_units: reads,
        max_write_request_units: writes,
    })
}

fn key_schema(definition: KeyDefinition) -> Vec<KeyElement> {
    key(definition.partition, definition.sort)
}
