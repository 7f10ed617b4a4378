//! TypeScript: type-checked by the compiler in strict mode, and run. Needs node 20, which `scripts/install-typescript` looks for.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::book::markdown::Block;
use crate::book::{blocks, pages};

/// The compiler's options: nothing unused, nothing untyped.
fn options() -> Value {
    json!({
        "compilerOptions": {
            "strict": true, "noUnusedLocals": true, "noUnusedParameters": true, "skipLibCheck": true,
            "target": "es2022", "module": "node16", "moduleResolution": "node16",
            "outDir": "out", "types": ["node"],
        },
        "include": ["*.ts", "*.mts"],
    })
}

/// The major version of node; `None` if it is not installed.
fn node_major() -> Option<u32> {
    let output = Command::new("node").arg("--version").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// A project in a directory of its own.
pub(crate) struct Project {
    directory: TempDir,
}

impl Project {
    /// Nothing if the tools are not installed.
    pub(crate) fn new() -> Option<Self> {
        let tools = pages::root().join(".tools/typescript");
        if !tools.join(".installed").exists() || node_major().is_none_or(|major| major < 20) {
            eprintln!(
                "skipped: scripts/install-typescript has not installed TypeScript, or node 20 is missing"
            );
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(tools.join("node_modules"), directory.path().join("node_modules"))
            .unwrap();
        let project = Self { directory };
        project.write("tsconfig.json", &options().to_string());
        Some(project)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// Runs a program in the folder with node, and returns what it prints, or what is wrong.
    fn node(&self, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new("node")
            .args(arguments)
            .current_dir(self.directory.path())
            .env("CDK_OUTDIR", self.path("cdk.out"))
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        if output.status.success() {
            Ok(text)
        } else {
            Err(text)
        }
    }

    /// Compiles everything, and returns what is wrong.
    pub(crate) fn compile(&self) -> Result<String, String> {
        self.node(&["node_modules/typescript/bin/tsc", "-p", "."])
    }

    /// Runs a compiled program.
    pub(crate) fn run(&self, program: &str) -> Result<String, String> {
        self.node(&[&format!("out/{program}")])
    }
}

/// The block that deploys with the CDK.
pub(crate) fn cdk_program() -> (String, Block) {
    let mut programs = blocks::of("typescript");
    programs.retain(|(_, block)| block.text.contains("aws-cdk-lib"));
    assert_eq!(programs.len(), 1);
    programs.remove(0)
}

/// An application with the stack of the page and a role of its own.
const APPLICATION: &str = r#"
import { App, Stack } from "aws-cdk-lib";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { LimiterStack } from "./limiter-stack";

const app = new App();
const assumedBy = new ServicePrincipal("ecs-tasks.amazonaws.com");
const application = new Role(new Stack(app, "Application"), "Role", { assumedBy });
new LimiterStack(app, "Limiter", { application });
app.synth();
"#;

#[test]
fn the_cdk_program_compiles_and_its_stack_has_the_resources_of_the_template() {
    let Some(project) = Project::new() else { return };
    let (place, block) = cdk_program();
    let template = "template/rendered/cloudformation/zae-limiter.json";
    project.write("limiter-stack.ts", &block.text);
    project.write("app.ts", APPLICATION);
    project.write(template, &pages::read(template));
    for function in ["aggregator", "archiver"] {
        project.write(&format!("functions/{function}.zip"), function);
    }
    project
        .compile()
        .unwrap_or_else(|error| panic!("{place}: {error}"));
    project
        .run("app.js")
        .unwrap_or_else(|error| panic!("{place}: {error}"));

    let synthesized = read_json(&project.path("cdk.out/Limiter.template.json"));
    let template: Value = serde_json::from_str(&pages::read(template)).unwrap();
    for (id, resource) in template["Resources"].as_object().unwrap() {
        assert_eq!(synthesized["Resources"][id]["Type"], resource["Type"], "{id}");
    }
    let code = &synthesized["Resources"]["AggregatorFunction"]["Properties"]["Code"];
    assert!(code["S3Key"].is_string(), "the code is an asset: {code}");
    let application = read_json(&project.path("cdk.out/Application.template.json"));
    assert!(
        application.to_string().contains("AcquireOnlyPolicy"),
        "the role of the application has the policy: {application}"
    );
}

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_compiler_notices_a_wrong_name_and_a_wrong_type() {
    let Some(project) = Project::new() else { return };
    let declarations = pages::read("server/clients/typescript/zae-limiter.d.mts");
    project.write("zae-limiter.d.mts", &declarations);
    let import =
        "import { RateLimiter } from \"./zae-limiter.mjs\";\nconst limiter = new RateLimiter(\"\");\n";
    project.write("name.mts", &format!("{import}await limiter.take(\"user-1\");"));
    project.write(
        "type.mts",
        &format!("{import}await limiter.available(1, \"gpt-4\");"),
    );
    let errors = project.compile().unwrap_err();
    assert!(
        errors.contains("name.mts(3,15)") && errors.contains("type.mts(3,25)"),
        "{errors}"
    );
}
