//! Whether an existing table fits the template.
//!
//! An import does not change the table, so what cannot be changed later must be right before.

use aws_sdk_dynamodb::types::{KeySchemaElement, Projection, StreamViewType, TableDescription};
use serde_json::{Value, json};
use zae_limiter_schema::keys::GSI2;
use zae_limiter_schema::table::TABLE;
use zae_limiter_template::Template;
use zae_limiter_template::model::ids;

use crate::guard::indexes;

/// Why a table cannot be imported; empty if it can.
pub(crate) fn misfits(table: &TableDescription, template: &Template) -> Vec<String> {
    let mut misfits = Vec::new();
    let properties = template
        .resource(&ids::TABLE)
        .and_then(|table| table.get("Properties"))
        .cloned()
        .unwrap_or_default();
    let keys = keys(table.key_schema());
    if Some(&keys) != properties.get("KeySchema") {
        misfits.push(format!("its keys are {keys}"));
    }
    for (name, (keys_wanted, projection_wanted)) in indexes(template).unwrap_or_default() {
        let index = table
            .global_secondary_indexes()
            .iter()
            .find(|index| index.index_name() == Some(&name));
        let Some(index) = index else {
            misfits.push(format!("it has no index {name}"));
            continue;
        };
        let found = self::keys(index.key_schema());
        if found != keys_wanted {
            misfits.push(format!("the keys of its index {name} are {found}"));
        }
        let found = projection(index.projection());
        if found != projection_wanted {
            let advice = if name == GSI2 {
                " (see gsi2_projection)"
            } else {
                ""
            };
            misfits.push(format!("the projection of its index {name} is {found}{advice}"));
        }
    }
    let stream = table
        .stream_specification()
        .filter(|stream| stream.stream_enabled());
    if stream.and_then(|stream| stream.stream_view_type()) != Some(&StreamViewType::NewAndOldImages) {
        misfits.push("its stream does not have old and new images".to_owned());
    }
    misfits
}

/// Whether a table has the layout of this project.
pub(crate) fn looks_like_ours(table: &TableDescription) -> bool {
    let names: Vec<_> = table
        .key_schema()
        .iter()
        .map(KeySchemaElement::attribute_name)
        .collect();
    let has = |index: &str| {
        let mut indexes = table.global_secondary_indexes().iter();
        indexes.any(|found| found.index_name() == Some(index))
    };
    names == [TABLE.key.partition, TABLE.key.sort] && TABLE.indexes.iter().all(|index| has(index.name))
}

fn keys(schema: &[KeySchemaElement]) -> Value {
    let key = |key: &KeySchemaElement| json!({ "AttributeName": key.attribute_name(), "KeyType": key.key_type().as_str() });
    schema.iter().map(key).collect()
}

fn projection(projection: Option<&Projection>) -> Value {
    let kind = projection
        .and_then(Projection::projection_type)
        .map_or("unknown", |kind| kind.as_str());
    let attributes = projection.map(Projection::non_key_attributes).unwrap_or_default();
    if attributes.is_empty() {
        json!({ "ProjectionType": kind })
    } else {
        json!({ "ProjectionType": kind, "NonKeyAttributes": attributes })
    }
}
