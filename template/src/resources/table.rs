//! The table.

use zae_limiter_schema::keys::{GSI1, GSI2, GSI3, attribute};

use super::ids;
use crate::Error;
use crate::model::dynamodb::{
    AttributeDefinition, BillingMode, ContributorInsights, Encryption, Index, PointInTimeRecovery,
    Projection, ProjectionType, Stream, StreamView, Table, TimeToLive, key,
};
use crate::model::{Handle, Model, Tag, Text};
use crate::options::{IndexProjection, StackOptions};

pub(super) fn add(model: &mut Model, name: Text, options: &StackOptions) -> Result<Handle<Table>, Error> {
    let gsi2 = match options.gsi2_projection() {
        IndexProjection::Keys => ProjectionType::KeysOnly,
        IndexProjection::All => ProjectionType::All,
    };
    let keys = [
        attribute::PK,
        attribute::SK,
        attribute::GSI1PK,
        attribute::GSI1SK,
        attribute::GSI2PK,
        attribute::GSI2SK,
        attribute::GSI3PK,
        attribute::GSI3SK,
    ];
    let table = Table {
        table_name: name,
        billing_mode: BillingMode::PayPerRequest,
        attribute_definitions: keys.into_iter().map(AttributeDefinition::text).collect(),
        key_schema: key(attribute::PK, attribute::SK),
        global_secondary_indexes: vec![
            index(GSI1, attribute::GSI1PK, attribute::GSI1SK, ProjectionType::All),
            index(GSI2, attribute::GSI2PK, attribute::GSI2SK, gsi2),
            index(
                GSI3,
                attribute::GSI3PK,
                attribute::GSI3SK,
                ProjectionType::KeysOnly,
            ),
        ],
        stream_specification: Stream {
            stream_view_type: StreamView::NewAndOldImages,
        },
        time_to_live_specification: TimeToLive {
            attribute_name: attribute::TTL.to_owned(),
            enabled: true,
        },
        point_in_time_recovery_specification: PointInTimeRecovery {
            point_in_time_recovery_enabled: true,
            recovery_period_in_days: options.pitr_recovery_days(),
        },
        deletion_protection_enabled: options.enable_deletion_protection(),
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

fn index(name: &'static str, partition: &str, sort: &str, projection_type: ProjectionType) -> Index {
    Index {
        index_name: name,
        key_schema: key(partition, sort),
        projection: Projection { projection_type },
    }
}
