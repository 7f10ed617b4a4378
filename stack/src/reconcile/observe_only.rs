//! Comparing the stack without changing it.

use zae_limiter_template::VERSION;

use super::converge::Run;
use super::draft::Depth;
use super::goal::Goal;
use crate::mode::differences;
use crate::outcome::{Change, Outcome};
use crate::patience::{Deadline, patiently};
use crate::plan::{Action, describe_place};
use crate::{CodeError, Error, Stack};

impl Stack {
    /// Deploys if this process may, and otherwise observes.
    pub(super) async fn converge_or_observe(
        &self,
        goal: &Goal<'_>,
        deadline: Deadline,
    ) -> Result<Outcome, Error> {
        let (why, stopped_by) = match self.converge(goal, deadline).await {
            Err(error @ (Error::Denied { .. } | Error::ManagedElsewhere { .. })) => (error, None),
            Err(Error::TableManaged { .. }) => return Ok(self.left_to_terraform()),
            Err(error) if concerns_deployers(&error) => {
                let name = self.name.as_str();
                match patiently(&deadline, || self.cloud.try_execution(name)).await {
                    Err(failure) if failure.denied() => (failure.into(), Some(error)),
                    _ => return Err(error),
                }
            }
            done => return done,
        };
        let observed = match (self.compare(goal, deadline).await, &stopped_by) {
            // Without the permission to read the stack, the table may still serve.
            (Err(Error::Denied { .. }), None) => self.unread(),
            (Err(error), _) => return Err(stopped_by.unwrap_or(error)),
            (Ok(observed), _) => observed,
        };
        let mut warnings = vec![format!("the stack was only observed: {why}")];
        let obstacle = stopped_by.map(|error| error.to_string());
        // A comparison may have met the same obstacle.
        warnings.extend(obstacle.filter(|obstacle| !observed.warnings.contains(obstacle)));
        warnings.extend(observed.warnings);
        Ok(Outcome { warnings, ..observed })
    }

    /// The stack as it is, with each difference as a warning. Waits for a running operation first.
    pub(super) async fn compare(&self, goal: &Goal<'_>, deadline: Deadline) -> Result<Outcome, Error> {
        let mut run = Run::until(deadline);
        let draft = match self.next_draft(goal, Depth::Templates, &mut run).await {
            Ok(draft) => draft,
            // An existing stack serves although its last operation failed, or although a declared function is missing or runs
            // on another processor.
            Err(
                error @ (Error::Failed { .. }
                | Error::Code(
                    CodeError::Missing { deployed: true, .. } | CodeError::ArchitectureChanged { .. },
                )),
            ) => return self.serving_despite(error, deadline).await,
            Err(error) => return Err(error),
        };
        if let Some(found) = draft.plan.found {
            return Ok(found);
        }
        match draft.deployed {
            Some(deployed) if draft.plan.action == Action::Update => {
                let warnings = draft.plan.warnings.iter().cloned();
                let warnings = warnings.chain(differences(&draft.plan, &deployed)).collect();
                let mut outcome = self.unchanged(&deployed, warnings);
                if run.awaited {
                    outcome.change = Change::Awaited;
                }
                Ok(outcome)
            }
            _ if self.is_managed_by_terraform().await? => Ok(self.left_to_terraform()),
            _ => Err(self.missing().await),
        }
    }

    /// The same, with differences as an error.
    pub(super) async fn require_exact(&self, goal: &Goal<'_>, deadline: Deadline) -> Result<Outcome, Error> {
        let outcome = self.compare(goal, deadline).await?;
        if outcome.warnings.is_empty() {
            return Ok(outcome);
        }
        Err(Error::Differs {
            stack: self.name.to_string(),
            differences: outcome.warnings,
        })
    }

    async fn serving_despite(&self, error: Error, deadline: Deadline) -> Result<Outcome, Error> {
        match self.observe(&deadline).await? {
            Some(deployed) if deployed.stack.situation().serves() => {
                Ok(self.unchanged(&deployed, vec![error.to_string()]))
            }
            _ => Err(error),
        }
    }

    /// The error for a stack that does not exist, with the account and region where it was looked for.
    pub(crate) async fn missing(&self) -> Error {
        let place = match self.place().await {
            Ok(place) => describe_place(Some(&place.account), &place.region),
            Err(_) => describe_place(None, &self.cloud.region().unwrap_or_default()),
        };
        Error::NoSuchStack {
            stack: self.name.to_string(),
            place,
        }
    }

    pub(crate) fn unread(&self) -> Outcome {
        Outcome {
            change: Change::None,
            stack_id: String::new(),
            outputs: std::collections::BTreeMap::new(),
            audit_retention_days: self.options.audit_retention_days(),
            version: VERSION.to_owned(),
            warnings: vec![],
        }
    }
}

/// Whether an error is about a change that only a deployer can make. It comes before CloudFormation is asked for the change, so
/// it does not show whether the caller is one.
fn concerns_deployers(error: &Error) -> bool {
    matches!(
        error,
        Error::Guarded { .. }
            | Error::Preflight { .. }
            | Error::Code(CodeError::Missing { .. } | CodeError::ArchitectureChanged { .. })
            | Error::Failed { .. }
            | Error::RolledBackBefore { .. }
    )
}
