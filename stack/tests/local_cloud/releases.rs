//! Archives that are downloaded from a release.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};
use zae_limiter_stack::{Change, Code, CodeError, Error, LambdaFunction, Stack, StackOptions};

use crate::support::{archive, ministack, name};

/// A web server with archives, behind a redirect, that remembers the paths it was asked for.
struct ReleaseServer {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ReleaseServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(vec![]));
        let (log, base) = (asked.clone(), address.clone());
        // Ends with the test process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let Some(Ok(request)) = lines.next() else { continue };
                let path = request.split(' ').nth(1).unwrap().to_owned();
                while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                log.lock().unwrap().push(path.clone());
                stream.write_all(&response(&base, &path)).unwrap();
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn response(base: &str, path: &str) -> Vec<u8> {
    let redirect = |location: String| {
        let head = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\n");
        format!("{head}Content-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
    };
    match path.strip_prefix('/').and_then(|path| path.split_once('/')) {
        Some(("v1", file)) => return redirect(format!("{base}/files/{file}")),
        Some(("circle", _)) => return redirect(format!("{base}{path}")),
        Some(("elsewhere", file)) => return redirect(format!("ftp://example.com/{file}")),
        Some(("cut", _)) => {
            return b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nPK".to_vec();
        }
        _ => {}
    }
    let Some(function) = LambdaFunction::ALL
        .into_iter()
        .find(|function| path == format!("/files/zae-limiter-{function}-x86_64.zip"))
    else {
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec();
    };
    let body = released(function);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}

fn released(function: LambdaFunction) -> Vec<u8> {
    archive::zip(
        "bootstrap",
        format!("#!/bin/sh\n# released {function}\n").as_bytes(),
    )
}

fn sha256(function: LambdaFunction) -> String {
    let hash = Sha256::digest(released(function));
    hash.iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn release(server: &ReleaseServer, folder: &str, sums: &[String; 2]) -> Code {
    let sums = LambdaFunction::ALL
        .into_iter()
        .zip(sums.iter().map(String::as_str));
    Code::release(&format!("{}/{folder}", server.address), sums).unwrap()
}

#[tokio::test]
async fn archives_of_a_release_are_downloaded_once_and_by_their_checksums() {
    let server = ReleaseServer::start();
    let sums = LambdaFunction::ALL.map(sha256);
    let stack = |name_of_stack: &str| {
        Stack::with_clients(name(name_of_stack), StackOptions::default(), ministack::clients())
            .code(release(&server, "v1", &sums))
    };
    let made = stack("released").ensure().await.unwrap();
    assert_eq!(made.change, Change::Created);
    assert!(made.outputs.contains_key("ArchiverFunctionArn"), "{made:?}");
    let both = ["v1", "files"].map(|folder| format!("/{folder}/zae-limiter-aggregator-x86_64.zip"));
    assert_eq!(server.asked()[..2], both);

    // The checksums say that nothing is to be done.
    assert_eq!(stack("released").ensure().await.unwrap().change, Change::None);
    assert_eq!(server.asked(), [""; 0]);
    // Another stack in the account finds the archives in the bucket.
    assert_eq!(
        stack("released-too").ensure().await.unwrap().change,
        Change::Created
    );
    assert_eq!(server.asked(), [""; 0]);
}

#[tokio::test]
async fn an_archive_that_is_not_the_expected_one_is_not_deployed() {
    let server = ReleaseServer::start();
    let wrong = ["00".repeat(32), "11".repeat(32)];
    let ensure = async |code: Code| {
        let stack = Stack::with_clients(
            name("not-released"),
            StackOptions::default(),
            ministack::clients(),
        );
        let error = stack.clone().code(code).ensure().await.unwrap_err();
        assert!(stack.status().await.unwrap().is_none(), "{error}");
        error
    };
    let differs = ensure(release(&server, "v1", &wrong)).await;
    assert!(
        matches!(&differs, Error::Code(CodeError::ReleaseDiffers { found, .. }) if *found == sha256(LambdaFunction::Aggregator)),
        "{differs}"
    );
    let missing = ensure(release(&server, "v2", &wrong)).await.to_string();
    assert!(missing.contains("status 404"), "{missing}");

    server.asked();
    let circle = ensure(release(&server, "circle", &wrong)).await.to_string();
    assert!(circle.contains("redirects more than 5 times"), "{circle}");
    assert_eq!(server.asked().len(), 6);
    let elsewhere = ensure(release(&server, "elsewhere", &wrong)).await.to_string();
    assert!(elsewhere.contains("not an https:// address"), "{elsewhere}");
    let cut = ensure(release(&server, "cut", &wrong)).await;
    assert!(
        matches!(&cut, Error::Code(CodeError::DownloadFailed { .. })),
        "{cut}"
    );
}

#[tokio::test]
async fn a_release_that_cannot_be_reached_is_an_error_with_its_cause() {
    // A port that was just free: nothing listens.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let sums = LambdaFunction::ALL.map(sha256);
    let sums = LambdaFunction::ALL
        .into_iter()
        .zip(sums.iter().map(String::as_str));
    let code = Code::release(&format!("http://{free}/v1"), sums).unwrap();
    let stack = Stack::with_clients(name("unreachable"), StackOptions::default(), ministack::clients());
    let error = stack.clone().code(code).ensure().await.unwrap_err();
    let Error::Code(CodeError::DownloadFailed { problem, .. }) = &error else {
        panic!("{error}")
    };
    assert!(problem.contains("refused"), "{problem}");
    assert!(stack.status().await.unwrap().is_none());
}
