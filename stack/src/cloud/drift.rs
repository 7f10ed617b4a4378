//! Drift detection.

use aws_sdk_cloudformation::types::StackResourceDrift;

use super::Cloud;
use super::failure::Failure;

/// The status of a drift detection.
#[derive(Debug, Default)]
pub(crate) struct Detection {
    pub(crate) status: String,
    pub(crate) reason: Option<String>,
    pub(crate) verdict: Option<String>,
}

impl Cloud {
    pub(crate) async fn detect_drift(&self, stack: &str) -> Result<String, Failure> {
        let call = self.clients.cloudformation.detect_stack_drift().stack_name(stack);
        let started = call
            .send()
            .await
            .map_err(|error| Failure::of("cloudformation:DetectStackDrift", stack, &error))?;
        Ok(started.stack_drift_detection_id.unwrap_or_default())
    }

    pub(crate) async fn detection(&self, id: &str) -> Result<Detection, Failure> {
        let call = self
            .clients
            .cloudformation
            .describe_stack_drift_detection_status()
            .stack_drift_detection_id(id);
        let found = call.send().await;
        let found = found
            .map_err(|error| Failure::of("cloudformation:DescribeStackDriftDetectionStatus", id, &error))?;
        Ok(Detection {
            status: found
                .detection_status
                .map(|status| status.as_str().to_owned())
                .unwrap_or_default(),
            reason: found.detection_status_reason,
            verdict: found.stack_drift_status.map(|status| status.as_str().to_owned()),
        })
    }

    pub(crate) async fn resource_drifts(&self, stack: &str) -> Result<Vec<StackResourceDrift>, Failure> {
        let (mut all, mut token) = (Vec::new(), None);
        loop {
            let call = self
                .clients
                .cloudformation
                .describe_stack_resource_drifts()
                .stack_name(stack);
            let page = call.set_next_token(token).send().await;
            let page = page
                .map_err(|error| Failure::of("cloudformation:DescribeStackResourceDrifts", stack, &error))?;
            all.extend(page.stack_resource_drifts().iter().cloned());
            token = page.next_token().map(str::to_owned);
            if token.is_none() {
                return Ok(all);
            }
        }
    }

    /// The drift of one resource, detected synchronously.
    pub(crate) async fn resource_drift(
        &self,
        stack: &str,
        id: &str,
    ) -> Result<Option<StackResourceDrift>, Failure> {
        let call = self
            .clients
            .cloudformation
            .detect_stack_resource_drift()
            .stack_name(stack)
            .logical_resource_id(id);
        let found = call.send().await;
        let found =
            found.map_err(|error| Failure::of("cloudformation:DetectStackResourceDrift", stack, &error))?;
        Ok(found.stack_resource_drift)
    }
}
