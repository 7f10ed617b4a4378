//! A headless Chromium, driven by the DevTools protocol over pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A browser that ends with the test.
pub struct Chromium {
    child: Child,
    requests: ChildStdin,
    messages: BufReader<ChildStdout>,
    next_id: u64,
    session: Option<String>,
    /// Its profile, which it may write to until it has ended.
    _profile: tempfile::TempDir,
}

/// Where the browser is: `ZAE_TEST_CHROMIUM`, or on the path.
fn binary() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("ZAE_TEST_CHROMIUM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

impl Chromium {
    /// None, with a message, where there is no browser.
    pub fn start() -> Option<Self> {
        let Some(binary) = binary() else {
            eprintln!("skipped: there is no chromium; install it, or name it in ZAE_TEST_CHROMIUM");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // Chromium reads requests from file descriptor 3 and writes to 4.
        let mut child = Command::new("sh")
            .args([
                "-c",
                "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null",
            ])
            .arg(binary)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--no-first-run",
                "--hide-scrollbars",
                "--force-color-profile=srgb",
                "--lang=en-US",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .env("TZ", "Europe/Berlin")
            .env("LANG", "en_US.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut browser = Self {
            requests: child.stdin.take().unwrap(),
            messages: BufReader::new(child.stdout.take().unwrap()),
            child,
            next_id: 0,
            session: None,
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        browser.call("Page.enable", json!({}));
        Some(browser)
    }

    fn send(&mut self, method: &str, parameters: Value) -> u64 {
        self.next_id += 1;
        let mut message = json!({ "id": self.next_id, "method": method });
        message["params"] = parameters;
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.requests.write_all(&bytes).unwrap();
        self.next_id
    }

    fn receive(&mut self) -> Value {
        let mut bytes = vec![];
        self.messages.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser has ended");
        serde_json::from_slice(&bytes).unwrap()
    }

    /// The result of a command.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.send(method, parameters);
        loop {
            let mut message = self.receive();
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].take();
            }
        }
    }

    fn wait_for(&mut self, event: &str) {
        while self.receive()["method"] != event {}
    }

    /// Opens an address and waits until it is loaded.
    pub fn open(&mut self, url: &str) {
        self.send("Page.navigate", json!({ "url": url }));
        self.wait_for("Page.loadEventFired");
    }

    /// Clicks the first element of the selector whose text contains `text`, and waits for the page that it leads to.
    pub fn click(&mut self, selector: &str, text: &str) {
        let script = format!(
            "[...document.querySelectorAll({})].find((e) => e.textContent.includes({})).click()",
            json!(selector),
            json!(text)
        );
        self.send("Runtime.evaluate", json!({ "expression": script }));
        self.wait_for("Page.loadEventFired");
    }

    /// The value of an expression, awaited.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut result = self.call("Runtime.evaluate", parameters);
        assert!(
            result.get("exceptionDetails").is_none(),
            "{expression:.80}: {result}"
        );
        result["result"]["value"].take()
    }

    /// Presses and releases a key.
    pub fn press(&mut self, key: &str, code: u32) {
        for kind in ["rawKeyDown", "keyUp"] {
            let parameters = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code,
            });
            self.call("Input.dispatchKeyEvent", parameters);
        }
    }

    /// Shows pages in a window of this width, or on a phone.
    pub fn width(&mut self, width: u32, mobile: bool) {
        let parameters = json!({
            "width": width, "height": 500, "deviceScaleFactor": if mobile { 2 } else { 1 }, "mobile": mobile,
        });
        self.call("Emulation.setDeviceMetricsOverride", parameters);
    }

    /// Prefers the theme `light` or `dark`.
    pub fn theme(&mut self, theme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// The whole page as a PNG, in base 64.
    pub fn screenshot(&mut self) -> String {
        let size = self.call("Page.getLayoutMetrics", json!({}))["cssContentSize"].take();
        let clip = json!({ "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1 });
        let parameters = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let result = self.call("Page.captureScreenshot", parameters);
        result["data"].as_str().unwrap().to_owned()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
