//! The reconciler on the model of CloudFormation: first the rules that matter most, then everything in random order.

use std::collections::BTreeSet;
use std::time::Duration;

use zae_limiter_stack::{Change, Deletion, Error, Stack, StackOptions};

use super::cloudformation::Model;
use super::support::bare;
use super::{body, changed, stack};

fn on(model: &Model, options: &StackOptions) -> Stack {
    stack(options, &model.tape()).0
}

/// Options that differ by a property that is changed in place.
fn with_recovery() -> StackOptions {
    bare().to_builder().pitr_recovery_days(7).build().unwrap()
}

/// Fails the test unless the stack is as the options say.
#[track_caller]
fn assert_deployed(model: &Model, options: &StackOptions, history: &[String]) {
    assert_eq!(model.template(), Some(body(options)), "{history:#?}");
    let protected = model.protected();
    assert!(protected.is_some(), "no table: {history:#?}");
    // A table that was protected before it was imported stays so.
    if options.enable_deletion_protection() {
        assert_eq!(protected, Some(true), "deletion protection: {history:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_plan_of_the_same_state_has_a_change_set_of_its_own() {
    let model = Model::default();
    on(&model, &bare()).ensure().await.unwrap();
    let planner = on(&model, &changed());
    let (one, other) = (planner.plan().await.unwrap(), planner.plan().await.unwrap());
    assert_eq!(model.change_sets().len(), 2);
    let names: BTreeSet<_> = model.names().into_iter().collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(planner.apply(&other).await.unwrap().change, Change::Updated);
    let late = planner.apply(&one).await.unwrap_err();
    assert!(matches!(late, Error::PlanObsolete { .. }), "{late}");
    assert_deployed(&model, &changed(), &[]);
}

#[tokio::test(start_paused = true)]
async fn a_stack_that_is_created_over_an_empty_one_gets_its_protection() {
    let model = Model::default();
    model.leave_shell();
    let outcome = on(&model, &changed()).ensure().await.unwrap();
    assert_eq!(outcome.change, Change::Created);
    assert_deployed(&model, &changed(), &[]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_creation_over_an_empty_stack_rolls_back_whole() {
    let model = Model::default();
    model.leave_shell();
    model.fail_next(true);
    let error = on(&model, &changed()).ensure().await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
    assert_eq!(model.status().as_deref(), Some("ROLLBACK_COMPLETE"));
    assert_eq!(model.protected(), None, "no table is left");
    let again = on(&model, &changed()).recreate_failed(true);
    assert_eq!(again.ensure().await.unwrap().change, Change::Created);
    assert_deployed(&model, &changed(), &[]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_import_leaves_the_table() {
    let model = Model::default();
    let deployer = on(&model, &bare());
    deployer.ensure().await.unwrap();
    deployer.delete().await.unwrap();
    model.fail_next(true);
    let error = deployer.ensure().await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
    assert_eq!((model.lost(), model.protected()), (0, Some(true)));
    let again = deployer.clone().recreate_failed(true);
    assert_eq!(again.ensure().await.unwrap().change, Change::Imported);
    assert_deployed(&model, &bare(), &[]);
    assert_eq!(model.protected(), Some(false), "as before the first import");
}

/// Errors that a deployer understands. Everything else is a request that CloudFormation should not have got.
fn is_expected(error: &Error) -> bool {
    matches!(
        error,
        Error::Failed { .. }
            | Error::RolledBackBefore { .. }
            | Error::PlanObsolete { .. }
            | Error::NotDeletable { .. }
    )
}

/// One random run; the history is shown if it breaks a rule.
struct Walk {
    model: Model,
    random: fastrand::Rng,
    history: Vec<String>,
}

impl Walk {
    fn options(&mut self) -> StackOptions {
        match self.random.u8(..3) {
            0 => bare(),
            1 => changed(),
            _ => with_recovery(),
        }
    }

    fn note<T>(&mut self, what: &str, result: Result<T, Error>) -> Option<T> {
        let status = self.model.status();
        match result {
            Ok(value) => {
                self.history.push(format!("{what}: done, {status:?}"));
                Some(value)
            }
            Err(error) => {
                self.history.push(format!("{what}: {error}, {status:?}"));
                assert!(is_expected(&error), "{error:?}: {:#?}", self.history);
                None
            }
        }
    }

    async fn step(&mut self) {
        let options = self.options();
        let stack = on(&self.model, &options)
            .recreate_failed(self.random.bool())
            .retry_rolled_back(self.random.bool());
        match self.random.u8(..10) {
            0..=2 => {
                let result = stack.ensure().await;
                if self.note("ensure", result).is_some() {
                    assert_deployed(&self.model, &options, &self.history);
                }
            }
            3 => {
                let before = self.model.change_sets().len();
                let result = stack.plan().await;
                if let Some(plan) = self.note("plan", result) {
                    stack.discard(&plan).await;
                    let after = self.model.change_sets().len();
                    assert!(
                        after <= before,
                        "a discarded plan leaves nothing: {:#?}",
                        self.history
                    );
                }
            }
            4 => {
                let result = stack.plan().await;
                if let Some(plan) = self.note("plan to apply", result) {
                    if self.random.bool() {
                        self.model.disturb();
                    }
                    let result = stack.apply(&plan).await;
                    self.note("apply", result);
                }
            }
            5 => {
                // The process is killed.
                let time = Duration::from_millis(self.random.u64(1..20_000));
                let killed = tokio::time::timeout(time, stack.ensure()).await.is_err();
                self.history.push(format!("killed: {killed}"));
            }
            6 => {
                let purge = self.random.u8(..4) == 0;
                let how = Deletion {
                    purge,
                    retain: vec![],
                };
                let result = stack.delete_with(&how).await;
                self.note("delete", result);
            }
            7 => self.model.fail_next(true),
            8 => self.model.disturb(),
            _ => self.model.leave_shell(),
        }
        assert_eq!(self.model.lost(), 0, "a table was lost: {:#?}", self.history);
    }

    /// Whatever happened, the next deployment brings the stack to what its options say.
    async fn settle(&mut self) {
        self.model.fail_next(false);
        let options = self.options();
        let stack = on(&self.model, &options)
            .recreate_failed(true)
            .retry_rolled_back(true);
        if let Err(error) = stack.ensure().await {
            panic!("{error}: {:#?}", self.history);
        }
        assert_deployed(&self.model, &options, &self.history);
        let names = self.model.names();
        let different: BTreeSet<_> = names.iter().collect();
        assert_eq!(names.len(), different.len(), "{names:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn in_any_order_of_events_the_stack_ends_as_declared_and_no_table_is_lost() {
    for seed in 0..150 {
        let mut walk = Walk {
            model: Model::default(),
            random: fastrand::Rng::with_seed(seed),
            history: vec![format!("seed {seed}")],
        };
        for _ in 0..12 {
            walk.step().await;
        }
        walk.settle().await;
    }
}
