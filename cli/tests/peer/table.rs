//! A table and the two command lines on it.

use std::process::Command;

use aws_credential_types::Credentials;
use serde_json::Value;
use zae_limiter::RateLimiter;
use zae_limiter_testing::{dynamodb_endpoint, peer_output, workspace};

/// A table that both command lines use.
pub(crate) struct Table {
    pub(crate) name: &'static str,
}

impl Table {
    /// Creates it as the library does.
    pub(crate) async fn create(name: &'static str) -> Self {
        let limiter = RateLimiter::builder(name)
            .endpoint_url(dynamodb_endpoint())
            .region("us-east-1")
            .credentials(Credentials::from_keys("test", "test", None))
            .create_table(true);
        limiter.await.unwrap().shutdown().await;
        Self { name }
    }

    /// What our command prints as JSON.
    #[track_caller]
    pub(crate) fn ours(&self, arguments: &[&str]) -> Value {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("zae-limiter"));
        command
            .args(arguments)
            .args(self.place())
            .args(["--output", "json"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", "/nonexistent")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_EC2_METADATA_DISABLED", "true");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// What the peer's command prints, for each of these arguments. One interpreter runs them all.
    #[track_caller]
    pub(crate) fn peer(&self, commands: &[&[&str]]) -> Vec<String> {
        let place = self.place();
        let commands: Vec<Vec<&str>> = commands
            .iter()
            .map(|arguments| arguments.iter().chain(&place).copied().collect())
            .collect();
        let script = workspace().join("cli/tests/peer/commands.py");
        let printed = peer_output(&script, &[&serde_json::to_string(&commands).unwrap()]);
        serde_json::from_slice(&printed).unwrap()
    }

    /// The options with which both find the table.
    fn place(&self) -> [&str; 6] {
        let endpoint = dynamodb_endpoint();
        [
            "--name",
            self.name,
            "--region",
            "us-east-1",
            "--endpoint-url",
            endpoint,
        ]
    }
}
