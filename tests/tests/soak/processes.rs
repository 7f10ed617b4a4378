//! Processes of the run, which end with it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The table's process: serves the file and prints its port.
pub(crate) fn table(file: &Path, port: u16) {
    zae_limiter_testing::serve_dynamodb(file, port, |port| println!("{port}"));
}

/// A process that is killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let started = Command::new(std::env::current_exe().unwrap())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = started.unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &command])
                .status()
                .unwrap()
                .success()
        );
    }

    pub(crate) fn write_line(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next line that it prints.
    pub(crate) fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// What it printed, when it has ended well.
    pub(crate) fn output(mut self) -> String {
        let output = std::io::read_to_string(&mut self.output).unwrap();
        assert!(self.child.wait().unwrap().success(), "{output}");
        output
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The table's process, always on the same file and port.
pub(crate) struct Table {
    file: PathBuf,
    pub(crate) port: u16,
    pub(crate) process: Process,
}

impl Table {
    pub(crate) fn start(file: PathBuf) -> Self {
        let (process, port) = Self::serve(&file, 0);
        Self { file, port, process }
    }

    fn serve(file: &Path, port: u16) -> (Process, u16) {
        let mut process = Process::start(&["process-table", file.to_str().unwrap(), &port.to_string()]);
        let port = process
            .read_line()
            .parse()
            .expect("the table's process prints its port");
        (process, port)
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Ends the process and deletes its file.
    pub(crate) fn remove(mut self) {
        self.process.kill();
        for extension in ["db", "db-wal", "db-shm"] {
            let _ = std::fs::remove_file(self.file.with_extension(extension));
        }
    }

    pub(crate) fn restart(&mut self) {
        self.process = Self::serve(&self.file, self.port).0;
    }
}
