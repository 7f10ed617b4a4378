//! What a stack's status means for us.

/// The states of a stack that call for different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Situation {
    /// Nothing is going on and the last operation succeeded.
    Settled,
    /// The last update took effect; what it replaced is being cleaned up.
    CleaningUp,
    /// The last update or import was undone.
    RolledBack,
    /// Somebody is at work.
    Busy,
    /// There is a name, and a change set, and nothing else.
    Review,
    /// It was never created.
    FailedCreate,
    /// An update failed and so did undoing it.
    StuckRollback,
    /// An update failed and was left as it was.
    FailedUpdate,
    /// A deletion failed.
    FailedDelete,
    /// It is no more.
    Gone,
}

impl Situation {
    /// The situation that a status stands for. Statuses of the future that end with `_IN_PROGRESS` are waited for, and
    /// others are taken as failed updates, so that nothing is changed on a guess.
    pub(crate) fn of(status: &str) -> Self {
        match status {
            "CREATE_COMPLETE" | "UPDATE_COMPLETE" | "IMPORT_COMPLETE" => Self::Settled,
            "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS" => Self::CleaningUp,
            "UPDATE_ROLLBACK_COMPLETE" | "IMPORT_ROLLBACK_COMPLETE" => Self::RolledBack,
            "REVIEW_IN_PROGRESS" => Self::Review,
            "CREATE_FAILED" | "ROLLBACK_COMPLETE" | "ROLLBACK_FAILED" => Self::FailedCreate,
            "UPDATE_ROLLBACK_FAILED" | "IMPORT_ROLLBACK_FAILED" => Self::StuckRollback,
            "DELETE_FAILED" => Self::FailedDelete,
            "DELETE_COMPLETE" => Self::Gone,
            busy if busy.ends_with("_IN_PROGRESS") => Self::Busy,
            _ => Self::FailedUpdate,
        }
    }

    /// Whether an operation that ended in it did what it was to do.
    pub(crate) fn succeeded(self) -> bool {
        matches!(self, Self::Settled | Self::CleaningUp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_of_cloudformation_has_its_situation() {
        use aws_sdk_cloudformation::types::StackStatus;
        let expected = |status: &str| match status {
            "CREATE_COMPLETE" | "UPDATE_COMPLETE" | "IMPORT_COMPLETE" => Situation::Settled,
            "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS" => Situation::CleaningUp,
            "UPDATE_ROLLBACK_COMPLETE" | "IMPORT_ROLLBACK_COMPLETE" => Situation::RolledBack,
            "CREATE_IN_PROGRESS"
            | "UPDATE_IN_PROGRESS"
            | "IMPORT_IN_PROGRESS"
            | "ROLLBACK_IN_PROGRESS"
            | "UPDATE_ROLLBACK_IN_PROGRESS"
            | "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
            | "IMPORT_ROLLBACK_IN_PROGRESS"
            | "DELETE_IN_PROGRESS" => Situation::Busy,
            "REVIEW_IN_PROGRESS" => Situation::Review,
            "ROLLBACK_COMPLETE" | "CREATE_FAILED" | "ROLLBACK_FAILED" => Situation::FailedCreate,
            "UPDATE_ROLLBACK_FAILED" | "IMPORT_ROLLBACK_FAILED" => Situation::StuckRollback,
            "UPDATE_FAILED" => Situation::FailedUpdate,
            "DELETE_FAILED" => Situation::FailedDelete,
            "DELETE_COMPLETE" => Situation::Gone,
            new => unreachable!("CloudFormation has a status that nobody thought of: {new}"),
        };
        for status in StackStatus::values() {
            assert_eq!(Situation::of(status), expected(status), "{status}");
        }
    }

    #[test]
    fn statuses_of_the_future_are_waited_for_or_left_alone() {
        assert_eq!(Situation::of("MOVE_IN_PROGRESS"), Situation::Busy);
        assert_eq!(Situation::of("MOVE_FAILED"), Situation::FailedUpdate);
    }
}
