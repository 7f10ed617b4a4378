//! The Python client in `server/clients`, run against the server as a process.

use std::path::Path;
use std::process::Command;

use zae_limiter_testing::clients_python;

use crate::serving::Serving;
use crate::tool::Bench;

const TOKEN: &str = "0123456789abcdef";

#[test]
fn the_python_client_works() {
    let bench = Bench::new();
    let tokens = bench.write("tokens.txt", &format!("client acquire,read,admin {TOKEN}\n"));
    let server = Serving::start(&bench, &["--tokens", &tokens]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/clients/python");
    let output = Command::new(clients_python())
        .args(["-B", "-m", "unittest", "-v", "test_clients"])
        .current_dir(folder)
        .env("ZAE_LIMITER_URL", format!("http://{}", server.address))
        .env("ZAE_LIMITER_TOKEN", TOKEN)
        .output()
        .unwrap();
    let shown = [output.stdout, output.stderr].concat();
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(
        output.status.success() && shown.contains("Ran 20 tests"),
        "{shown}"
    );
}
