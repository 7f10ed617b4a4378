//! What can go wrong with a request.

use std::time::Duration;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use serde_json::json;

use super::response;

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing, in a list of faults that are met in order.
    None,
    /// The request does not arrive, and the connection breaks.
    LostRequest,
    /// Nobody listens: the connection is refused.
    ConnectionRefused,
    /// The request is executed; the response does not arrive.
    LostResponse,
    /// The request is executed after this time; the connection breaks at once.
    Late(Duration),
    /// The request does not arrive, and there is never a response.
    Silence,
    /// The request is executed, and there is never a response.
    SilentResponse,
    /// Nothing of a batch is processed.
    NothingProcessed,
    /// Only half of a batch is processed.
    HalfProcessed,
    /// Too many requests.
    Throttled,
    /// A transaction is at work on the item.
    Conflict,
    /// The service fails.
    ServerError,
    /// The caller may not do this.
    Denied,
    /// There is no such table.
    NoTable,
    /// The request is malformed.
    Invalid,
}

impl Fault {
    /// The error response of the service, for faults that are one.
    pub(super) fn error(self, operation: &str) -> Option<HttpResponse> {
        let transaction = operation.starts_with("Transact");
        let (status, name) = match self {
            Self::Throttled => (400, "ProvisionedThroughputExceededException"),
            Self::Conflict if transaction => (400, "TransactionCanceledException"),
            Self::Conflict => (400, "TransactionConflictException"),
            Self::ServerError => (500, "InternalServerError"),
            Self::Denied => (400, "AccessDeniedException"),
            Self::NoTable => (400, "ResourceNotFoundException"),
            Self::Invalid => (400, "ValidationException"),
            _ => return None,
        };
        let mut body =
            json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{name}"), "message": "as told" });
        if self == Self::Conflict && transaction {
            body["CancellationReasons"] = json!([{ "Code": "TransactionConflict" }]);
        }
        Some(response(status, &body))
    }
}

/// How often writes of one item meet which fault, in percent.
#[derive(Debug, Clone, Copy, Default)]
pub struct FaultRates {
    /// [`Fault::LostResponse`].
    pub lost_responses: u8,
    /// [`Fault::Late`], by less than 400 ms.
    pub late: u8,
    /// [`Fault::Throttled`].
    pub throttled: u8,
    /// [`Fault::Conflict`].
    pub conflicts: u8,
}

impl FaultRates {
    pub(super) fn draw(self, random: &mut fastrand::Rng) -> Option<Fault> {
        let drawn = random.u8(0..100);
        let delay = Duration::from_millis(random.u64(0..400));
        let faults = [
            (self.lost_responses, Fault::LostResponse),
            (self.late, Fault::Late(delay)),
            (self.throttled, Fault::Throttled),
            (self.conflicts, Fault::Conflict),
        ];
        let mut below = 0;
        faults.into_iter().find_map(|(percent, fault)| {
            below += percent;
            (drawn < below).then_some(fault)
        })
    }
}

/// What goes wrong all the time, in the same way in every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// Nothing.
    Fair,
    /// Every page of a query or scan ends after one item.
    OneItemPages,
    /// The same, and one call in four is throttled, loses its response, meets a conflict or fails; batches are
    /// processed in halves.
    Storm,
}

impl Weather {
    /// What the call with this number meets.
    pub(super) fn fault(self, operation: &str, number: usize) -> Option<Fault> {
        if self != Self::Storm {
            return None;
        }
        match number % 16 {
            3 => Some(Fault::Throttled),
            7 => Some(Fault::LostResponse),
            11 => Some(Fault::ServerError),
            15 if operation == "TransactWriteItems" => Some(Fault::Conflict),
            _ if operation.starts_with("Batch") && number.is_multiple_of(2) => Some(Fault::HalfProcessed),
            _ => None,
        }
    }
}
