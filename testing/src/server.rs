//! Servers in a thread of the test process.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use tokio::runtime::Builder;

/// Runs a server in a thread with a runtime of its own, for as long as the process lives. `serve` sends the address that it
/// listens on, which is returned.
pub fn serve_in_thread<Serve>(
    mut runtime: Builder,
    serve: impl FnOnce(Sender<SocketAddr>) -> Serve + Send + 'static,
) -> SocketAddr
where
    Serve: Future<Output = ()>,
{
    let (started, address) = channel();
    std::thread::spawn(move || {
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(serve(started));
    });
    address.recv().unwrap()
}

/// The URL of a DynamoDB server that all tests of a binary share. The first caller starts it.
pub fn dynamodb_endpoint() -> &'static str {
    static ENDPOINT: OnceLock<String> = OnceLock::new();
    ENDPOINT.get_or_init(|| {
        let mut runtime = Builder::new_multi_thread();
        runtime.worker_threads(1);
        let address = serve_in_thread(runtime, |started| async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            started.send(listener.local_addr().unwrap()).unwrap();
            dynoxide::server::serve_on(listener, dynoxide::Database::memory().unwrap()).await;
        });
        format!("http://{address}")
    })
}

/// Each write looks for the largest number of a stream record. Without an index it reads all records for that.
fn index_stream(file: &std::path::Path) {
    let connection = rusqlite::Connection::open(file).unwrap();
    let index = "CREATE INDEX IF NOT EXISTS stream_record_numbers ON _stream_records (table_name, CAST(sequence_number AS INTEGER))";
    connection.execute(index, ()).unwrap();
}

/// Serves the tables of a file as DynamoDB does, for as long as the process lives. Blocks. On port 0 it takes a free port;
/// `started` gets the one that it has.
pub fn serve_dynamodb(file: &std::path::Path, port: u16, started: impl FnOnce(u16)) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let database = dynoxide::Database::new(file.to_str().unwrap()).unwrap();
        index_stream(file);
        started(listener.local_addr().unwrap().port());
        dynoxide::server::serve_on(listener, database).await;
    });
}
