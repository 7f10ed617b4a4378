//! Which call of the engine a request is for.

use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::wording;

type Outcome<T> = std::result::Result<T, DynoxideError>;

/// Runs the operation that `X-Amz-Target` names.
pub(super) fn dispatch(database: &Database, target: &str, body: &[u8]) -> Outcome<String> {
    let operation = target.rsplit('.').next().unwrap_or_default();
    match operation {
        "GetItem" => run(body, |request| database.get_item(request)),
        "UpdateItem" => run(body, |request| database.update_item(request)),
        "PutItem" => run(body, |request| database.put_item(request)),
        "DeleteItem" => run(body, |request| database.delete_item(request)),
        "BatchGetItem" => run(body, |request| database.batch_get_item(request)),
        "BatchWriteItem" => run(body, |request| database.batch_write_item(request)),
        "TransactWriteItems" => run(body, |request| database.transact_write_items(request)),
        "TransactGetItems" => run(body, |request| database.transact_get_items(request)),
        "Query" => run(body, |request| database.query(request)),
        "Scan" => run(body, |request| database.scan(request)),
        "CreateTable" => run(body, |request| database.create_table(request)),
        "DeleteTable" => run(body, |request| database.delete_table(request)),
        "DescribeTable" => run(body, |request| database.describe_table(request)),
        "UpdateTable" => run(body, |request| database.update_table(request)),
        "ListTables" => run(body, |request| database.list_tables(request)),
        "UpdateTimeToLive" => run(body, |request| database.update_time_to_live(request)),
        "DescribeTimeToLive" => run(body, |request| database.describe_time_to_live(request)),
        other => Err(DynoxideError::ValidationException(format!(
            "the embedded store has no operation {other:?}"
        ))),
    }
}

/// True if the operation waits for a file that another process holds.
pub(super) fn is_write(target: &str) -> bool {
    let operation = target.rsplit('.').next().unwrap_or_default();
    matches!(
        operation,
        "UpdateItem" | "PutItem" | "DeleteItem" | "BatchWriteItem" | "TransactWriteItems"
    )
}

fn run<Request, Response>(body: &[u8], call: impl FnOnce(Request) -> Outcome<Response>) -> Outcome<String>
where
    Request: DeserializeOwned,
    Response: Serialize,
{
    let request = serde_json::from_slice(body).map_err(|error| wording::unreadable(&error.to_string()))?;
    let response = call(request)?;
    serde_json::to_string(&response).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}
