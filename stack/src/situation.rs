//! What a stack's status means for the reconciler.

/// The situation of a stack: statuses that call for the same reaction are one situation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Situation {
    /// No operation is running and the last one succeeded.
    Settled,
    /// The last update took effect; CloudFormation is deleting what it replaced.
    CleaningUp,
    /// The last update or import was rolled back.
    RolledBack,
    /// An operation is running.
    Busy,
    /// The stack has a change set and no resources yet.
    Review,
    /// Its creation failed.
    CreateFailed,
    /// An update failed, and so did its rollback.
    RollbackFailed,
    /// An import failed, and so did its rollback.
    ImportRollbackFailed,
    /// An update failed and was not rolled back.
    UpdateFailed,
    /// Its deletion failed.
    DeleteFailed,
    /// It was deleted.
    Gone,
}

impl Situation {
    /// The situation for a status. An unknown status counts as busy if it ends in `_IN_PROGRESS` and as a failed update
    /// otherwise, so that nothing is changed on a guess.
    pub(crate) fn of(status: &str) -> Self {
        match status {
            "CREATE_COMPLETE" | "UPDATE_COMPLETE" | "IMPORT_COMPLETE" => Self::Settled,
            "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS" => Self::CleaningUp,
            "UPDATE_ROLLBACK_COMPLETE" | "IMPORT_ROLLBACK_COMPLETE" => Self::RolledBack,
            "REVIEW_IN_PROGRESS" => Self::Review,
            "CREATE_FAILED" | "ROLLBACK_COMPLETE" | "ROLLBACK_FAILED" => Self::CreateFailed,
            "UPDATE_ROLLBACK_FAILED" => Self::RollbackFailed,
            "IMPORT_ROLLBACK_FAILED" => Self::ImportRollbackFailed,
            "DELETE_FAILED" => Self::DeleteFailed,
            "DELETE_COMPLETE" => Self::Gone,
            busy if busy.ends_with("_IN_PROGRESS") => Self::Busy,
            _ => Self::UpdateFailed,
        }
    }

    /// Whether the stack's resources exist and serve.
    pub(crate) fn serves(self) -> bool {
        !matches!(self, Self::Review | Self::CreateFailed | Self::Gone)
    }

    /// Whether an operation that ended like this succeeded.
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
            "ROLLBACK_COMPLETE" | "CREATE_FAILED" | "ROLLBACK_FAILED" => Situation::CreateFailed,
            "UPDATE_ROLLBACK_FAILED" => Situation::RollbackFailed,
            "IMPORT_ROLLBACK_FAILED" => Situation::ImportRollbackFailed,
            "UPDATE_FAILED" => Situation::UpdateFailed,
            "DELETE_FAILED" => Situation::DeleteFailed,
            "DELETE_COMPLETE" => Situation::Gone,
            new => unreachable!("CloudFormation has a new status: {new}"),
        };
        for status in StackStatus::values() {
            assert_eq!(Situation::of(status), expected(status), "{status}");
        }
    }

    #[test]
    fn unknown_statuses_are_waited_for_or_left_alone() {
        assert_eq!(Situation::of("MOVE_IN_PROGRESS"), Situation::Busy);
        assert_eq!(Situation::of("MOVE_FAILED"), Situation::UpdateFailed);
    }
}
