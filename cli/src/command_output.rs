//! The result of a command: one value that can be printed as text or as JSON.

use serde::Serialize;

use crate::error::Error;
use crate::exit::Exit;
use crate::output::{Format, Terminal, View};

/// A value that can be printed as text for people.
pub(crate) trait Text {
    /// Renders the value to fit the view.
    fn text(&self, view: &View) -> String;
}

/// A value that can be printed both as text and as JSON.
trait Printable {
    fn json(&self) -> serde_json::Result<String>;
    fn text(&self, view: &View) -> String;
}

impl<T: Serialize + Text> Printable for T {
    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    fn text(&self, view: &View) -> String {
        Text::text(self, view)
    }
}

enum Content {
    /// The same data as text or as JSON, as `--output` says.
    Report(Box<dyn Printable>),
    /// A document with a single format, such as a completion script.
    Document(String),
    /// The command has already printed everything, such as its progress as JSON lines.
    Empty,
}

/// What a command prints and the exit code of the process.
pub(crate) struct CommandOutput {
    content: Content,
    exit: Exit,
}

impl CommandOutput {
    pub(crate) fn new(report: impl Serialize + Text + 'static) -> Self {
        Self {
            content: Content::Report(Box::new(report)),
            exit: Exit::Success,
        }
    }

    pub(crate) fn document(text: String) -> Self {
        Self {
            content: Content::Document(text),
            exit: Exit::Success,
        }
    }

    pub(crate) fn empty() -> Self {
        Self {
            content: Content::Empty,
            exit: Exit::Success,
        }
    }

    pub(crate) fn with_exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    pub(crate) fn render(&self, terminal: &Terminal) -> Result<String, Error> {
        match (&self.content, terminal.format) {
            (Content::Report(report), Format::Table) => Ok(report.text(&terminal.view)),
            (Content::Report(report), Format::Json) => report.json().map_err(|source| Error::Internal {
                what: "the result cannot be written as JSON".to_owned(),
                source: source.into(),
            }),
            (Content::Document(text), _) => Ok(text.clone()),
            (Content::Empty, _) => Ok(String::new()),
        }
    }
}

/// A report with a message above it. The message is not part of the JSON.
#[derive(Debug, Serialize)]
pub(crate) struct WithMessage<T> {
    #[serde(skip)]
    pub(crate) message: String,
    #[serde(flatten)]
    pub(crate) report: T,
}

impl<T: Text> Text for WithMessage<T> {
    fn text(&self, view: &View) -> String {
        format!("{}\n{}", self.message, self.report.text(view))
    }
}
