//! Limits change only with `edit`, after a confirmation, and the audit trail says who did it.

use hyper::Method;
use zae_limiter::audit::{AuditAction, AuditSubject};
use zae_limiter::{ConfigLevel, Limit, LimitSet, Mode, PageRequest};
use zae_limiter_server::UiOptions;

use crate::client::Response;
use crate::ui::stage::{Stage, text};

const TOKEN: &str = "0123456789abcdef-admin";
const LEVEL: &str = "resource=gpt-4";

/// The value of a hidden field.
fn field(page: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let at = page.find(&start).unwrap_or_else(|| panic!("no {name}: {page}")) + start.len();
    page[at..].split('"').next().unwrap().to_owned()
}

/// The value as a form sends it.
fn form_urlencoded(value: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    value.bytes().map(escape).collect()
}

struct Browser<'a> {
    stage: &'a Stage,
    cookie: Option<String>,
}

impl<'a> Browser<'a> {
    fn on(stage: &'a Stage) -> Self {
        Self { stage, cookie: None }
    }

    async fn get(&self, path: &str) -> Response {
        self.send(Method::GET, path, &[], String::new()).await
    }

    async fn post(&self, path: &str, body: String) -> Response {
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        self.send(Method::POST, path, &headers, body).await
    }

    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: String) -> Response {
        let mut headers = headers.to_vec();
        if let Some(cookie) = &self.cookie {
            headers.push(("cookie", cookie.as_str()));
        }
        self.stage.server.send(method, path, &headers, body).await
    }

    /// Sends the form on this level to be reviewed.
    async fn review(&self, body: String) -> Response {
        self.post(&format!("/ui/limits/review?{LEVEL}"), body).await
    }

    /// Sends the form on this level to be applied.
    async fn apply(&self, body: String) -> Response {
        self.post(&format!("/ui/limits/apply?{LEVEL}"), body).await
    }

    /// The tokens that a form on this level must send.
    async fn hidden(&self) -> String {
        let page = text(&self.get(&format!("/ui/limits/edit?{LEVEL}")).await.expect(200));
        hidden_fields(&page)
    }
}

/// The limits that the level stores.
async fn stored_limits(stage: &Stage) -> LimitSet {
    let repository = stage.limiter.repository();
    repository.get_resource_defaults("gpt-4").await.unwrap()
}

/// The hidden fields of the form on a page, as the form sends them.
fn hidden_fields(page: &str) -> String {
    format!(
        "form_token={}&seen={}",
        field(page, "form_token"),
        form_urlencoded(&field(page, "seen"))
    )
}

#[tokio::test]
async fn a_change_is_reviewed_confirmed_and_audited_with_the_principal() {
    let tokens = format!("ops@example.com admin {TOKEN}").parse().unwrap();
    let stage = Stage::empty(UiOptions::default().edit(true), Some(tokens)).await;
    let before = [Limit::per_minute("rpm", 600).unwrap()];
    stage
        .limiter
        .repository()
        .set_resource_defaults("gpt-4", before)
        .await
        .unwrap();
    let mut browser = Browser::on(&stage);
    let signed_in = browser
        .post("/ui/login", format!("token={TOKEN}"))
        .await
        .expect(303);
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap();
    browser.cookie = Some(cookie.to_owned());

    let hidden = browser.hidden().await;
    let body =
        format!("{hidden}&name=rpm&capacity=700&period=60&burst=900&refill=&name=&capacity=&policy=block");
    let review = text(&browser.review(body.clone()).await.expect(200));
    assert!(
        review.contains("rpm:600/min") && review.contains("rpm:700/min:900"),
        "{review}"
    );
    let stored = stored_limits(&stage).await;
    assert_eq!(
        stored.iter().next().unwrap().capacity().get(),
        600,
        "not before it is confirmed"
    );

    let applied = browser.apply(body.clone()).await.expect(303);
    assert_eq!(applied.header("location"), Some("/ui/limits?changed=1"));
    let stored = stored_limits(&stage).await;
    let limit = stored.iter().next().unwrap();
    assert_eq!((limit.capacity().get(), limit.burst().get()), (700, 900));
    let subject = AuditSubject::Resource("gpt-4".parse().unwrap());
    let events = stage
        .limiter
        .repository()
        .list_audit_events(&subject, &PageRequest::new(1))
        .await
        .unwrap();
    assert_eq!(events.items[0].action, AuditAction::LimitsSet);
    assert_eq!(events.items[0].principal.as_deref(), Some("ops@example.com"));

    let stale = browser.apply(body).await.expect(409);
    assert!(text(&stale).contains("These limits have changed in the meantime"));
}

#[tokio::test]
async fn removing_every_row_deletes_the_level_and_says_what_goes_with_its_limits() {
    let stage = Stage::filled(UiOptions::default().edit(true)).await;
    let repository = stage.limiter.repository();
    let level = ConfigLevel::Resource("gpt-4".parse().unwrap());
    repository.set_mode(&level, Mode::Observe).await.unwrap();
    let browser = Browser::on(&stage);
    let body = browser.hidden().await + "&policy=";
    let review = text(&browser.review(body.clone()).await.expect(200));
    for text in ["This level will store nothing", "Its mode, observe, goes too."] {
        assert!(review.contains(text), "{text} is not in {review}");
    }
    browser.apply(body).await.expect(303);
    assert!(stored_limits(&stage).await.is_empty());
}

#[tokio::test]
async fn invalid_limits_are_explained_in_the_form() {
    let stage = Stage::filled(UiOptions::default().edit(true)).await;
    let browser = Browser::on(&stage);
    let body = browser.hidden().await + "&name=rpm&capacity=lots";
    let response = browser.review(body).await.expect(422);
    let page = text(&response);
    assert!(
        page.contains("capacity of rpm &quot;lots&quot; is invalid"),
        "{page}"
    );
    assert!(page.contains("value=\"lots\""), "what was typed stays");
}

#[tokio::test]
async fn nothing_changes_without_edit_or_with_a_forged_form() {
    let read_only = Stage::filled(UiOptions::default()).await;
    let browser = Browser::on(&read_only);
    for path in ["/ui/limits/review", "/ui/limits/apply"] {
        browser
            .post(path, "name=rpm&capacity=1".to_owned())
            .await
            .expect(403);
    }
    browser.get("/ui/limits/edit").await.expect(403);

    let stage = Stage::filled(UiOptions::default().edit(true)).await;
    let browser = Browser::on(&stage);
    let apply = format!("/ui/limits/apply?{LEVEL}");
    let forged = browser
        .post(&apply, "seen=&name=rpm&capacity=1".to_owned())
        .await
        .expect(403);
    assert!(text(&forged).contains("The form is out of date"));
    let hidden = browser.hidden().await;
    let elsewhere = [("sec-fetch-site", "cross-site")];
    let body = hidden + "&name=rpm&capacity=1";
    let crossed = browser
        .send(Method::POST, &apply, &elsewhere, body)
        .await
        .expect(403);
    assert!(text(&crossed).contains("Another site sent this request"));
    let stored = stored_limits(&stage).await;
    assert_eq!(stored.iter().next().unwrap().capacity().get(), 600);
}

#[tokio::test]
async fn a_form_without_a_session_changes_nothing_and_asks_to_sign_in() {
    let tokens = format!("ops admin {TOKEN}").parse().unwrap();
    let stage = Stage::empty(UiOptions::default().edit(true), Some(tokens)).await;
    let limits = "name=rpm&capacity=1&period=60&burst=&refill=&policy=";
    for browser in [
        Browser::on(&stage),
        Browser {
            stage: &stage,
            cookie: Some("zae-limiter-guess=guess".to_owned()),
        },
    ] {
        for refused in [
            browser.review(limits.to_owned()).await,
            browser.apply(limits.to_owned()).await,
        ] {
            let page = text(&refused.expect(401));
            assert!(page.contains("You are not signed in"), "{page}");
        }
    }
    assert!(stored_limits(&stage).await.is_empty());
}

#[tokio::test]
async fn of_two_changes_from_the_same_form_one_is_refused() {
    let stage = Stage::filled(UiOptions::default().edit(true)).await;
    let browser = Browser::on(&stage);
    let hidden = browser.hidden().await;
    let apply = format!("/ui/limits/apply?{LEVEL}");
    let change = format!("{hidden}&name=rpm&capacity=700&period=60&burst=&refill=&policy=");
    let deletion = format!("{hidden}&policy=");
    let (changed, deleted) = tokio::join!(browser.post(&apply, change), browser.post(&apply, deletion));
    let mut statuses = [changed.status.as_u16(), deleted.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 409]);
    let stored = stored_limits(&stage).await;
    assert_eq!(
        stored.is_empty(),
        deleted.status.as_u16() == 303,
        "the other one changed nothing"
    );
}

#[tokio::test]
async fn a_level_that_was_deleted_and_set_again_is_not_the_one_that_was_shown() {
    let stage = Stage::empty(UiOptions::default().edit(true), None).await;
    let repository = stage.limiter.repository();
    let set =
        |capacity| repository.set_resource_defaults("gpt-4", [Limit::per_minute("rpm", capacity).unwrap()]);
    set(600).await.unwrap();
    let browser = Browser::on(&stage);
    let hidden = browser.hidden().await;
    let level = zae_limiter::ConfigLevel::Resource("gpt-4".parse().unwrap());
    repository.delete_config(&level).await.unwrap();
    set(5).await.unwrap();
    let record = repository.get_config(&level).await.unwrap().unwrap();
    assert_eq!(record.config_version, 1, "the version is the same again");
    let body = format!("{hidden}&name=rpm&capacity=700&period=60&burst=&refill=&policy=");
    let refused = browser.apply(body).await.expect(409);
    assert!(text(&refused).contains("These limits have changed in the meantime"));
}

#[tokio::test]
async fn a_form_that_is_out_of_date_is_shown_again_with_what_is_stored_now() {
    let stage = Stage::filled(UiOptions::default().edit(true)).await;
    let repository = stage.limiter.repository();
    let browser = Browser::on(&stage);
    let row = "&name=rpm&capacity=700&period=60&burst=&refill=&policy=";
    let body = browser.hidden().await + row;
    let changed = Limit::per_minute("rpm", 650).unwrap();
    repository
        .set_resource_defaults("gpt-4", [changed])
        .await
        .unwrap();
    for path in ["review", "apply"] {
        let refused = browser
            .post(&format!("/ui/limits/{path}?{LEVEL}"), body.clone())
            .await
            .expect(409);
        let page = text(&refused);
        for shown in ["rpm:600/min", "rpm:650/min", "rpm:700/min", "value=\"650\""] {
            assert!(page.contains(shown), "{shown} is not in {page}");
        }
        assert!(!page.contains("value=\"700\""), "{page}");
        let again = hidden_fields(&page) + row;
        browser.review(again).await.expect(200);
    }
}

#[tokio::test]
async fn limits_of_the_form_can_end_and_what_the_level_has_stays() {
    let stage = Stage::empty(UiOptions::default().edit(true), None).await;
    let repository = stage.limiter.repository();
    let before = [Limit::per_minute("rpm", 600).unwrap()];
    repository.set_resource_defaults("gpt-4", before).await.unwrap();
    let browser = Browser::on(&stage);
    let hidden = browser.hidden().await;
    let body = |until: &str| {
        format!("{hidden}&name=rpm&capacity=900&period=60&burst=&refill=&policy=&until={until}")
    };
    let refused = text(&browser.review(body("tomorrow")).await.expect(422));
    assert!(
        refused.contains("it must be a date such as 2026-12-01"),
        "{refused}"
    );
    let review = text(&browser.review(body("2150-01-01")).await.expect(200));
    assert!(
        review.contains("rpm:900/min") && review.contains("2150-01-01"),
        "{review}"
    );
    browser.apply(body("2150-01-01")).await.expect(303);

    let level = zae_limiter::ConfigLevel::Resource("gpt-4".parse().unwrap());
    let stored = repository.get_config(&level).await.unwrap().unwrap();
    let capacity = |limits: &LimitSet| limits.named("rpm").unwrap().capacity().get();
    let temporary = stored.temporary.unwrap();
    assert_eq!(
        (capacity(&stored.limits), capacity(&temporary.limits)),
        (600, 900)
    );
    assert_eq!(temporary.until.to_string(), "2150-01-01T00:00:00Z");
    let tree = text(&browser.get("/ui/limits").await.expect(200));
    assert!(
        tree.contains("rpm:600/min") && tree.contains("2150-01-01T00:00:00Z"),
        "{tree}"
    );
    let past = text(
        &browser
            .apply(format!(
                "{}&name=rpm&capacity=1&until=2020-01-01",
                browser.hidden().await
            ))
            .await
            .expect(409),
    );
    assert!(past.contains("it must be later than now"), "{past}");
}
