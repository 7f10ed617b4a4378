//! The live view.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zae_limiter_server::UiOptions;

use crate::ui::stage::Stage;

async fn connect(stage: &Stage) -> TcpStream {
    let mut stream = TcpStream::connect(stage.server.address).await.unwrap();
    let request = "GET /ui/entities/key-1/buckets/gpt-4/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Reads until the text has arrived.
async fn until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = String::new();
    let mut buffer = [0; 4096];
    while !read.contains(text) {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "no {text} before the end: {read}");
        read.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    read
}

#[tokio::test]
async fn events_show_the_bucket_as_it_changes() {
    let stage = Stage::filled(UiOptions::default()).await;
    let mut stream = connect(&stage).await;
    let first = until(&mut stream, "Writers").await;
    assert!(
        first.contains("text/event-stream") && first.contains("event: bucket"),
        "{first}"
    );
    assert!(first.contains(">599</span>"), "{first}");
    let call = stage.limiter.acquire("key-1", "gpt-4").consume("rpm", 99);
    call.await.unwrap().commit().await.unwrap();
    until(&mut stream, ">500</span>").await;
}

#[tokio::test]
async fn an_open_live_view_does_not_keep_the_server_from_stopping() {
    let mut stage = Stage::filled(UiOptions::default()).await;
    let mut stream = connect(&stage).await;
    until(&mut stream, "event: bucket").await;
    stage.server.stop();
    let mut rest = vec![];
    stream.read_to_end(&mut rest).await.unwrap();
    let closed = stage.server.stopped().await;
    assert_eq!(closed.unwritten, 0);
}
