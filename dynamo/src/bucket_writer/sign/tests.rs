#![allow(clippy::unwrap_used)]

use std::time::{Duration, SystemTime};

use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use aws_smithy_runtime_api::client::identity::Identity;

use super::*;

/// What the SDK's own signer makes of the same request: its date and its authorization.
fn signed_by_the_sdk(
    endpoint: &str,
    scope: (&str, &str),
    body: &str,
    credentials: &Credentials,
    now: Timestamp,
) -> Signature {
    let identity: Identity = credentials.clone().into();
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(now.millis().unsigned_abs());
    let parameters = SigningParams::builder()
        .identity(&identity)
        .region(scope.0)
        .name(scope.1)
        .time(time)
        .settings(SigningSettings::default())
        .build()
        .unwrap();
    let headers = [("content-type", CONTENT_TYPE), ("x-amz-target", TARGET)];
    let body = SignableBody::Bytes(body.as_bytes());
    let request = SignableRequest::new("POST", endpoint, headers.into_iter(), body).unwrap();
    let (instructions, _) = sign(request, &parameters.into()).unwrap().into_parts();
    let (headers, _) = instructions.into_parts();
    let header = |wanted: &str| {
        let found = headers.iter().find(|header| header.name() == wanted);
        found.unwrap().value().to_owned()
    };
    Signature {
        date: header("x-amz-date"),
        authorization: header("authorization"),
    }
}

/// Parts of random requests.
struct Draw(fastrand::Rng);

impl Draw {
    fn text(&mut self, letters: &str, length: std::ops::Range<usize>) -> String {
        let letters: Vec<char> = letters.chars().collect();
        let length = self.0.usize(length);
        (0..length)
            .map(|_| letters[self.0.usize(..letters.len())])
            .collect()
    }

    fn endpoint(&mut self) -> String {
        let scheme = self.0.choice(["http", "https"]).unwrap();
        let port = self.0.choice(["", "", ":80", ":443", ":8000"]).unwrap();
        let segments = [
            ".", "..", "", "proxy", "a.b", "~x_y-z", "%41%2f", "a+b:@c", "(1)", "x=1&y",
        ];
        let mut path = String::new();
        for _ in 0..self.0.usize(0..5) {
            push_all(&mut path, &["/", self.0.choice(segments).unwrap()]);
        }
        format!("{scheme}://{}.example{port}{path}", self.text("abc-1", 1..9))
    }

    fn credentials(&mut self) -> Credentials {
        const LETTERS: &str = "abcXYZ0189/+=";
        let token = self.0.bool().then(|| self.text(LETTERS, 1..900));
        // A key longer than a block of SHA-256 is hashed before it is used.
        let secret = self.text(LETTERS, 1..120);
        Credentials::new(self.text("AKIDX019", 1..21), secret, token, None, "test")
    }
}

#[test]
fn random_requests_are_signed_like_by_the_sdk() {
    for seed in 0..2_000 {
        let mut draw = Draw(fastrand::Rng::with_seed(seed));
        let endpoint = draw.endpoint();
        let (region, service) = (draw.text("eu-west1", 1..12), draw.text("dynamob", 1..9));
        let signer = Signer::new(&endpoint.parse().unwrap(), &region, &service);
        let mut credentials = draw.credentials();
        for _ in 0..4 {
            if draw.0.bool() {
                credentials = draw.credentials();
            }
            let body = draw.text("{}\":ab\u{e9}\u{1f600}", 0..400);
            let now = Timestamp::from_millis(draw.0.i64(0..4_102_444_800_000));
            assert_eq!(
                signer.sign(&body, &credentials, now).unwrap(),
                signed_by_the_sdk(&endpoint, (&region, &service), &body, &credentials, now),
                "seed {seed}: {endpoint}"
            );
        }
    }
}

/// The example of AWS: "Create a signed AWS API request", with its key and its text to sign.
#[test]
fn the_published_text_has_the_published_signature() {
    let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    let credentials = Credentials::new("AKIDEXAMPLE", secret, None, None, "test");
    let endpoint = "https://iam.amazonaws.com".parse().unwrap();
    let signer = Signer::new(&endpoint, "us-east-1", "iam");
    let mut mac = signer.key(&credentials, "20150830").unwrap();
    mac.update(
        b"AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/iam/aws4_request\n\
          f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59",
    );
    let mut signature = String::new();
    push_hex(&mut signature, &mac.finalize().into_bytes());
    assert_eq!(
        signature,
        "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    );
}

#[test]
fn the_key_changes_with_the_day_and_the_secret() {
    let endpoint = "https://dynamodb.eu-west-1.amazonaws.com".parse().unwrap();
    let signer = Signer::new(&endpoint, "eu-west-1", "dynamodb");
    let sign = |secret: &str, day: i64| {
        let credentials = Credentials::new("AKID", secret, None, None, "test");
        let now = Timestamp::from_millis(day * 86_400_000);
        signer.sign("{}", &credentials, now).unwrap().authorization
    };
    let first = sign("one", 20_000);
    assert_ne!(first, sign("two", 20_000));
    assert_ne!(first, sign("one", 20_001));
    assert_eq!(first, sign("one", 20_000));
}
