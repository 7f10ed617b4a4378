//! Who gets in.

use hyper::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zae_limiter::RateLimiter;
use zae_limiter_server::{LoginToken, Server, UiOptions};

use crate::client::{Response, TestServer, noon};
use crate::ui::stage::{Stage, text};

const ADMIN: &str = "0123456789abcdef-admin";
const READER: &str = "0123456789abcdef-reader";

fn cookie(response: &Response) -> String {
    let cookie = response.header("set-cookie").unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax") && cookie.contains("Path=/ui"),
        "{cookie}"
    );
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_login_address_works_once_and_becomes_a_cookie() {
    let token = LoginToken::random().unwrap();
    let stage = Stage::empty(UiOptions::default().login_once(token.clone()), None).await;
    let sent = stage.server.get("/ui").await.expect(303);
    assert_eq!(sent.header("location"), Some("/ui/login"));
    stage.server.get("/ui/login").await.expect(401);
    stage.server.get("/ui/login?token=guess").await.expect(403);

    let address = token.url("");
    let opened = stage.server.get(&address).await.expect(303);
    assert_eq!(opened.header("location"), Some("/ui"));
    let cookie = cookie(&opened);
    let again = stage.server.get(&address).await.expect(403);
    assert!(text(&again).contains("has already been used"));

    let headers = [("cookie", cookie.as_str())];
    let signed_in = async |method, path| stage.server.send(method, path, &headers, "").await;
    let page = signed_in(Method::GET, "/ui").await.expect(200);
    assert!(text(&page).contains("Overview"));
    let reload = signed_in(Method::GET, &address).await.expect(303);
    assert_eq!(reload.header("location"), Some("/ui"));
    signed_in(Method::POST, "/ui/logout").await.expect(303);
    signed_in(Method::GET, "/ui").await.expect(303);
}

#[tokio::test]
async fn a_server_with_tokens_asks_for_one_with_the_scope_admin() {
    let tokens = format!("ops admin {ADMIN}\nviewer read {READER}")
        .parse()
        .unwrap();
    let stage = Stage::empty(UiOptions::default(), Some(tokens)).await;
    stage.server.get("/ui/audit").await.expect(303);
    let (events, live) = (
        "/ui/entities/key-1/buckets/gpt-4/events",
        [("accept", "text/event-stream")],
    );
    let refused = stage.server.send(Method::GET, events, &live, "").await;
    refused.expect(401);
    stage.server.get("/ui/audit?export=audit.json").await.expect(303);
    let form = stage.server.get("/ui/login").await.expect(200);
    assert!(text(&form).contains("Bearer token with the scope admin"));
    let post = |token: &str| {
        let body = format!("token={token}");
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let server = &stage.server;
        async move { server.send(Method::POST, "/ui/login", &headers, body).await }
    };
    post("0123456789abcdef-other").await.expect(401);
    let reader = post(READER).await.expect(403);
    assert!(text(&reader).contains("does not have the scope admin"));
    let cookie = cookie(&post(ADMIN).await.expect(303));
    let headers = [("cookie", cookie.as_str())];
    let page = stage.server.send(Method::GET, "/ui", &headers, "").await;
    let page = page.expect(200);
    assert!(text(&page).contains("Signed in as ops"));
    assert!(text(&page).contains(r#"action="/ui/logout""#));
    assert!(!text(&form).contains("/ui/logout"));
}

#[tokio::test]
async fn names_of_other_sites_for_this_machine_are_refused() {
    let stage = Stage::empty(UiOptions::default(), None).await;
    let as_host = async |host| stage.server.send(Method::GET, "/ui", &[("host", host)], "").await;
    as_host("evil.example:80").await.expect(403);
    let page = as_host("localhost:8080").await.expect(200);
    assert!(!text(&page).contains("/ui/logout"), "nobody signed in");
}

#[tokio::test]
async fn a_server_of_the_page_alone_has_no_api() {
    let clock = noon();
    let limiter = RateLimiter::embedded().clock(clock.clone()).await.unwrap();
    let builder = Server::builder(limiter).clock(clock.clone());
    let options = UiOptions::default().login_once(LoginToken::random().unwrap());
    let bound = builder.ui(options).ui_only().bind("127.0.0.1:0".parse().unwrap());
    let server = TestServer::running(bound.await.unwrap(), clock);
    for (method, path) in [
        (Method::PUT, "/v1/limits"),
        (Method::GET, "/v1/limits"),
        (Method::POST, "/v1/acquire"),
        (Method::GET, "/v1/entities"),
        (Method::DELETE, "/v1/entities/user-1"),
        (Method::GET, "/metrics"),
        (Method::GET, "/openapi.json"),
        (Method::GET, "/readyz"),
    ] {
        let response = server.send(method, path, &[], "").await;
        response.problem(404, "not-found");
    }
    server.get("/healthz").await.expect(200);
    server.get("/ui").await.expect(303);
}

#[tokio::test]
async fn a_browser_signs_in_over_plain_http_at_another_address() {
    let tokens = format!("ops admin {ADMIN}").parse().unwrap();
    let stage = Stage::empty(UiOptions::default(), Some(tokens)).await;
    let form = stage.server.get("/ui/login").await.expect(200);
    // With no-referrer, browsers send Origin: null with the form.
    assert_eq!(form.header("referrer-policy"), Some("same-origin"));
    // Browsers send no Sec-Fetch-Site to addresses that are not trustworthy.
    let post = async |origin: &str| {
        let headers = [
            ("host", "10.0.0.5:8080"),
            ("origin", origin),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let body = format!("token={ADMIN}");
        stage.server.send(Method::POST, "/ui/login", &headers, body).await
    };
    post("http://10.0.0.5:8080").await.expect(303);
    post("http://10.0.0.6:8080").await.expect(403);
    post("null").await.expect(403);
}

#[tokio::test]
async fn a_preview_of_the_login_address_does_not_use_it_up() {
    let token = LoginToken::random().unwrap();
    let stage = Stage::empty(UiOptions::default().login_once(token.clone()), None).await;
    let address = token.url("");
    let preview = stage.server.send(Method::HEAD, &address, &[], "").await;
    assert_eq!(preview.expect(200).header("set-cookie"), None);
    stage.server.get(&address).await.expect(303);
}

#[tokio::test]
async fn a_session_ends_when_its_token_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.txt");
    std::fs::write(&file, format!("ops admin {ADMIN}\nviewer read {READER}")).unwrap();
    let clock = noon();
    let limiter = RateLimiter::embedded().clock(clock.clone()).await.unwrap();
    let builder = Server::builder(limiter).clock(clock.clone()).token_file(&file);
    let bound = builder.bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let server = TestServer::running(bound, clock);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let signed_in = server
        .send(Method::POST, "/ui/login", &form, format!("token={ADMIN}"))
        .await;
    let cookie = cookie(&signed_in.expect(303));
    let headers = [("cookie", cookie.as_str())];
    server.send(Method::GET, "/ui", &headers, "").await.expect(200);
    let mut live = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "GET /ui/entities/key-1/buckets/gpt-4/events HTTP/1.1\r\nhost: localhost\r\ncookie: {cookie}\r\n\
         accept: text/event-stream\r\nconnection: close\r\n\r\n"
    );
    live.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    live.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    std::fs::write(&file, format!("viewer read {READER}")).unwrap();
    assert!(server.handle.reload_tokens().unwrap());
    server.send(Method::GET, "/ui", &headers, "").await.expect(303);
    // Returns because the server ends the live view.
    live.read_to_end(&mut vec![]).await.unwrap();
}

#[tokio::test]
async fn a_form_that_anyone_may_send_is_small() {
    let stage = Stage::empty(UiOptions::default(), None).await;
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let body = format!("token={}", "x".repeat(5_000));
    let refused = stage.server.send(Method::POST, "/ui/login", &form, body).await;
    refused.problem(413, "body-too-large");
}
