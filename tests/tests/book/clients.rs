//! The blocks with the example clients of the server, run against a server in the process.

use std::process::Command;

use serde_json::json;
use zae_limiter_testing::clients_python;

use crate::book::markdown::Block;
use crate::book::server::Serving;
use crate::book::typescript::Project;
use crate::book::{blocks, pages};

/// The block of a language in the guide of the server, with its setup, for this server.
fn program(language: &str, server: &Serving) -> String {
    let is_client = |place: &str| place.starts_with("docs/guide/server.md");
    let (_, block): (_, Block) = blocks::of(language)
        .into_iter()
        .find(|(place, _)| is_client(place))
        .unwrap();
    let setup = block.setup.trim();
    let text = format!("{setup}\n{}\n", block.text);
    assert!(text.contains("127.0.0.1:8080"), "{text}");
    text.replace("127.0.0.1:8080", &server.address.to_string())
}

/// The program has taken one request and the tokens of the corrected call.
fn took_its_tokens(server: &Serving) {
    let left = server.get("/v1/entities/user-1/resources/gpt-4/available");
    assert_eq!(left["tokens"], json!({ "rpm": 99, "tpm": 9_380 }));
}

#[test]
fn the_python_program_runs() {
    let server = Serving::start();
    let run = "import ast, asyncio, inspect, sys\n\
               code = compile(sys.argv[1], 'block', 'exec', ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)\n\
               result = eval(code, {'__name__': 'block'})\n\
               asyncio.run(result)\n";
    let output = Command::new(clients_python())
        .args(["-B", "-c", run, &program("python", &server)])
        .current_dir(pages::root().join("server/clients/python"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    took_its_tokens(&server);
}

#[test]
fn the_typescript_program_compiles_against_the_declarations_and_runs() {
    let Some(project) = Project::new() else { return };
    let server = Serving::start();
    for file in ["zae-limiter.mjs", "zae-limiter.d.mts"] {
        project.write(file, &pages::read(&format!("server/clients/typescript/{file}")));
    }
    project.write("main.mts", &program("typescript", &server));
    project.compile().unwrap_or_else(|error| panic!("{error}"));
    // The compiler writes the program, and not the module that it uses.
    let module = pages::read("server/clients/typescript/zae-limiter.mjs");
    project.write("out/zae-limiter.mjs", &module);
    project.run("main.mjs").unwrap_or_else(|error| panic!("{error}"));
    took_its_tokens(&server);
}
