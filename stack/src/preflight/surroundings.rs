//! Resources that the stack uses but does not create, and users of the stack.

use std::collections::BTreeSet;

use zae_limiter_template::{CodeBucket, LambdaFunction};

use super::{Checked, Finding, Found, Preflight, found};
use crate::cloud::failure::Failure;
use crate::functions::{function_names, reads_stream};
use crate::patience::patiently;

impl Preflight<'_> {
    /// The topic of the alarms.
    pub(super) async fn alarm_topic(&self) -> Found {
        let Some(topic) = self
            .options
            .alarm_sns_topic()
            .filter(|_| self.options.enable_alarms())
        else {
            return Ok(vec![]);
        };
        let what = format!("topic {topic}");
        if topic.as_str().split(':').nth(3) != Some(&self.place.region) {
            let problem = format!("is not in region {}, where the alarms are", self.place.region);
            return Ok(vec![Finding::new(what, problem, "change alarm_sns_topic")]);
        }
        let response = self
            .cloud
            .clients
            .sns
            .get_topic_attributes()
            .topic_arn(topic.as_str())
            .send()
            .await;
        let response =
            found(response.map_err(|error| Failure::of("sns:GetTopicAttributes", topic.as_str(), &error)))?;
        let missing = Finding::new(what, "does not exist", "create it, or change alarm_sns_topic");
        Ok(if response.is_some() { vec![] } else { vec![missing] })
    }

    /// The archive bucket, if the stack does not create it.
    pub(super) async fn archive_bucket(&self) -> Found {
        let Some(bucket) = self
            .options
            .archive_bucket()
            .filter(|_| self.options.has(LambdaFunction::Archiver))
        else {
            return Ok(vec![]);
        };
        let missing = Finding::new(
            format!("archive bucket {bucket}"),
            "does not exist",
            "create it, or change archive_bucket",
        );
        Ok(
            if found(self.cloud.head_bucket(bucket.as_str(), None).await)?.is_some() {
                vec![]
            } else {
                vec![missing]
            },
        )
    }

    /// Archives in the options.
    pub(super) async fn named_archives(&self) -> Checked {
        let bucket = CodeBucket::of(self.options).name(&self.place.account, &self.place.region);
        let mut checked = Checked::default();
        for function in self.options.functions() {
            let key = match function {
                LambdaFunction::Aggregator => self.options.aggregator_code_key(),
                LambdaFunction::Archiver => self.options.archiver_code_key(),
            };
            let Some(key) = key else { continue };
            let missing = || {
                let advice = format!("upload the {function}'s archive there, or change {function}_code_key");
                Finding::new(format!("archive {bucket}/{key}"), "does not exist", advice)
            };
            let stored = self.cloud.stored(&bucket, key.as_str(), None).await;
            checked.add(stored.map(|stored| stored.is_none().then(missing)));
        }
        checked
    }

    /// Functions of others that read the table's stream, such as an aggregator of zae-limiter for Python. They are refused
    /// whenever a function of the stack reads it too, whether the change adds that reader or not.
    pub(super) async fn stream_readers(&self) -> Found {
        let deployed_template = self.deployed.and_then(|deployed| deployed.template.as_ref());
        let taken_in = self.table.and_then(|table| table.latest_stream_arn());
        let deployed = self
            .deployed
            .and_then(|deployed| deployed.stack.outputs.get("StreamArn"));
        let reads = reads_stream(self.template);
        let Some(stream) = taken_in.or(deployed.map(String::as_str)).filter(|_| reads) else {
            return Ok(vec![]);
        };
        let templates = deployed_template.into_iter().chain([self.template]);
        let own: BTreeSet<_> = templates.flat_map(function_names).collect();
        let foreign: Vec<_> = patiently(self.deadline, || self.cloud.mappings(stream))
            .await?
            .into_iter()
            .filter(|mapping| !own.contains(mapping.function()))
            .map(|mapping| mapping.function_arn)
            .collect();
        if foreign.is_empty() {
            return Ok(vec![]);
        }
        let problem = format!("is read by functions of others ({})", foreign.join(", "));
        let advice = "delete their event source mappings first, because usage would be counted twice and readers throttled; \
                      usage that they counted stays";
        Ok(vec![Finding::new(format!("stream {stream}"), problem, advice)])
    }

    /// Exports that change or are removed although other stacks import them.
    pub(super) async fn exports_in_use(&self) -> Checked {
        let mut checked = Checked::default();
        for export in self.outputs.iter().filter_map(|output| output.export.as_ref()) {
            let in_use = |importers: Vec<String>| {
                let problem = format!(
                    "would change or be removed, and is imported by {}",
                    importers.join(", ")
                );
                Finding::new(format!("export {export}"), problem, "change those stacks first")
            };
            let importers = patiently(self.deadline, || self.cloud.importers(export)).await;
            checked.add(importers.map(|importers| (!importers.is_empty()).then(|| in_use(importers))));
        }
        checked
    }
}
