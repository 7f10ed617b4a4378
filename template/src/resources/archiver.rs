//! The function that archives audit events.

use std::collections::BTreeMap;

use zae_limiter_schema::VersionRecord;

use super::archive::Archive;
use super::context::Context;
use super::function::{self, Deployed, LambdaFunction, Profile};
use super::policies;
use crate::Error;
use crate::model::lambda::Code;
use crate::model::{Model, Text};

/// Adds the archiver.
pub(super) fn add(
    model: &mut Model,
    cx: &Context<'_>,
    archive: &Archive,
    code: Code,
) -> Result<Deployed, Error> {
    let environment = BTreeMap::from([
        ("ARCHIVE_BUCKET_NAME", archive.name.clone()),
        (
            "ZAE_LIMITER_SCHEMA_VERSION",
            Text::from(VersionRecord::SCHEMA_VERSION),
        ),
    ]);
    let profile = Profile {
        which: LambdaFunction::Archiver,
        description: "Writes audit events to S3",
        role_description: "For the archiver of the rate limiter",
        external_role: cx.options.archiver_role_arn().cloned(),
        data: vec![policies::archive_events(archive.arn.clone())],
        environment,
        filter: crate::filters::archiver(),
        batch_size: 100,
        parallelization: 1,
    };
    function::add(model, cx, code, profile)
}
