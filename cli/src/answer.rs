//! What a command answers: one value, shown as a table or as JSON.

use serde::Serialize;

use crate::error::Error;
use crate::exit::Exit;
use crate::output::{Format, Terminal, View};

/// Something that people can read.
pub(crate) trait Text {
    /// The text, fitted to the view.
    fn text(&self, view: &View) -> String;
}

trait Report {
    fn json(&self) -> serde_json::Result<String>;
    fn text(&self, view: &View) -> String;
}

impl<T: Serialize + Text> Report for T {
    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    fn text(&self, view: &View) -> String {
        Text::text(self, view)
    }
}

enum Content {
    /// The same data in both forms.
    Report(Box<dyn Report>),
    /// A document that has one form only, such as a completion script.
    Document(String),
    /// All was said while it happened.
    Nothing,
}

/// What a command answers, and how the process ends.
pub(crate) struct Answer {
    content: Content,
    exit: Exit,
}

impl Answer {
    pub(crate) fn of(report: impl Serialize + Text + 'static) -> Self {
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

    pub(crate) fn nothing() -> Self {
        Self {
            content: Content::Nothing,
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
            (Content::Report(report), Format::Json) => report.json().map_err(|source| Error::Bug {
                what: "the answer is no JSON".to_owned(),
                source: source.into(),
            }),
            (Content::Document(text), _) => Ok(text.clone()),
            (Content::Nothing, _) => Ok(String::new()),
        }
    }
}

/// What a change answers: a sentence, and the thing as it is now.
#[derive(Debug, Serialize)]
pub(crate) struct Done<T> {
    #[serde(skip)]
    pub(crate) sentence: String,
    #[serde(flatten)]
    pub(crate) now: T,
}

impl<T: Text> Text for Done<T> {
    fn text(&self, view: &View) -> String {
        format!("{}\n{}", self.sentence, self.now.text(view))
    }
}
