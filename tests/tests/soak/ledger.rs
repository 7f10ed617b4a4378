//! What clients know about their calls, in files that survive `kill -9`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

/// What a limit of an entity must have consumed, in tokens: exactly `booked`, or what is in doubt more.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Booked {
    pub(crate) booked: i64,
    pub(crate) doubt: i64,
}

/// By entity and limit.
pub(crate) type Books = BTreeMap<(String, &'static str), Booked>;

/// The file of one task: a line before each call, and one when it is known what it came to.
pub(crate) struct Ledger(File);

/// One call: who is charged, what is asked and what will have been used in the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) entity: &'a str,
    pub(crate) parent: &'a str,
    pub(crate) estimate: u64,
    pub(crate) used: u64,
}

impl Ledger {
    pub(crate) fn create(path: &Path) -> Self {
        Self(File::create_new(path).unwrap())
    }

    pub(crate) fn begins(&mut self, call: &Call<'_>) {
        let Call {
            entity,
            parent,
            estimate,
            used,
        } = call;
        // One write, so that no line is ever torn by the end of the process.
        self.0
            .write_all(format!("{entity} {parent} {estimate} {used}\n").as_bytes())
            .unwrap();
    }

    pub(crate) fn ended(&mut self, counted: bool) {
        self.0
            .write_all(if counted { b"counted\n" } else { b"nothing\n" })
            .unwrap();
    }
}

/// Reads all ledgers of a folder.
pub(crate) fn books(folder: &Path) -> Books {
    let mut books = Books::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "ledger") {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for call in lines.chunks(2) {
                add(&mut books, call);
            }
        }
    }
    books
}

fn add(books: &mut Books, lines: &[&str]) {
    let parts: Vec<&str> = lines[0].split(' ').collect();
    let number = |at: usize| parts[at].parse::<i64>().unwrap();
    let (estimate, used) = (number(2), number(3));
    for entity in &parts[..2] {
        for (limit, asked, counted) in [("rpm", 1, 1), ("tpm", estimate, used)] {
            let entry = books.entry(((*entity).to_owned(), limit)).or_default();
            match lines.get(1) {
                Some(&"counted") => entry.booked += counted,
                Some(_) => {}
                // Killed in between: nothing, what was asked, or what was used.
                None => entry.doubt += asked.max(counted),
            }
        }
    }
}
