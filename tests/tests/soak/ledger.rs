//! What clients know about their calls, in files that survive `kill -9`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

/// What a limit of an entity must have consumed, in tokens: at least `certain`, and at most the unconfirmed tokens more.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Booked {
    pub(crate) certain: i64,
    pub(crate) unconfirmed: i64,
}

/// The outcome of a call, as its caller got it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Admitted, corrected and written.
    Committed,
    /// Admitted and corrected. The table did not respond, and the correction goes on in the background.
    CommitQueued,
    /// Admitted, and given back in the background.
    Dropped,
    /// Refused by one level; what the other one admitted is given back in the background.
    Refused,
    /// The table did not respond: what was written is given back by a later write of the same process.
    Unavailable,
}

impl Ended {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Committed, "committed"),
        (Self::CommitQueued, "commit-queued"),
        (Self::Dropped, "dropped"),
        (Self::Refused, "refused"),
        (Self::Unavailable, "unavailable"),
    ];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(ended, _)| *ended == self).unwrap().1
    }

    fn parse(word: &str) -> Self {
        Self::ALL.iter().find(|(_, known)| *known == word).unwrap().0
    }

    /// Fewest and most tokens that a limit has consumed once the process has shut down (`settled`), or when it was killed.
    fn consumed(self, asked: i64, used: i64, settled: bool) -> (i64, i64) {
        match self {
            Self::Committed => (used, used),
            Self::CommitQueued if settled => (used, used),
            Self::CommitQueued => (asked.min(used), asked.max(used)),
            Self::Dropped | Self::Refused | Self::Unavailable if settled => (0, 0),
            // What was taken, or taken from one level and refused by the other, may not be given back yet.
            Self::Dropped | Self::Refused | Self::Unavailable => (0, asked),
        }
    }
}

/// What follows the outcome of a call that took nothing of its entity's bucket.
const PASSED: &str = " passed";
/// The last line of a process that shut down with nothing unwritten.
const SETTLED: &str = "settled";

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
    /// It also takes the estimate of a quota, and a permit.
    pub(crate) all_kinds: bool,
    /// It also takes the estimate of the entity's quota on another resource, which has no parent.
    pub(crate) budget: bool,
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
            all_kinds,
            budget,
        } = call;
        let kinds = if *all_kinds { "all" } else { "rates" };
        let resources = if *budget { "both" } else { "one" };
        // One write, so that no line is ever torn by the end of the process.
        self.0
            .write_all(format!("{entity} {parent} {estimate} {used} {kinds} {resources}\n").as_bytes())
            .unwrap();
    }

    /// `passed`: the mode of the entity let the call pass, and nothing was taken of its bucket.
    pub(crate) fn ended(&mut self, ended: Ended, passed: bool) {
        let passed = if passed { PASSED } else { "" };
        self.0
            .write_all(format!("{}{passed}\n", ended.word()).as_bytes())
            .unwrap();
    }

    /// The process has shut down: nothing goes on in the background.
    pub(crate) fn settled(&mut self) {
        self.0.write_all(format!("{SETTLED}\n").as_bytes()).unwrap();
    }
}

/// Reads all ledgers of a folder.
pub(crate) fn books(folder: &Path) -> Books {
    let mut books = Books::new();
    for text in ledgers(folder) {
        let (calls, settled) = match text.strip_suffix(&format!("{SETTLED}\n")) {
            Some(calls) => (calls, true),
            None => (text.as_str(), false),
        };
        let lines: Vec<&str> = calls.lines().collect();
        for call in lines.chunks(2) {
            add(&mut books, call, settled);
        }
    }
    books
}

/// Every line about an entity, to find a difference.
pub(crate) fn lines_about(folder: &Path, entity: &str) -> String {
    let mut found = String::new();
    for text in ledgers(folder) {
        let lines: Vec<&str> = text.lines().collect();
        for call in lines
            .chunks(2)
            .filter(|call| call[0].split(' ').any(|part| part == entity))
        {
            let _ = writeln!(found, "{}", call.join(" "));
        }
        found.push_str("--\n");
    }
    found
}

fn ledgers(folder: &Path) -> Vec<String> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ledger"));
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
}

fn add(books: &mut Books, lines: &[&str], settled: bool) {
    let parts: Vec<&str> = lines[0].split(' ').collect();
    let number = |at: usize| parts[at].parse::<i64>().unwrap();
    let (estimate, used) = (number(2), number(3));
    let mut limits = vec![("rpm", 1, 1), ("tpm", estimate, used)];
    limits.extend((parts[4] == "all").then_some(("spend", estimate, used)));
    let mut charged: Vec<(&str, &'static str, i64, i64)> = parts[..2]
        .iter()
        .flat_map(|entity| {
            limits
                .iter()
                .map(|(limit, asked, used)| (*entity, *limit, *asked, *used))
        })
        .collect();
    charged.extend((parts[5] == "both").then_some((parts[0], "usd", estimate, used)));
    for (entity, limit, asked, used) in charged {
        let (fewest, most) = match lines
            .get(1)
            .map(|outcome| outcome.strip_suffix(PASSED).ok_or(*outcome))
        {
            Some(Ok(_)) if entity == parts[0] && limit != "usd" => (0, 0),
            Some(Ok(word) | Err(word)) => Ended::parse(word).consumed(asked, used, settled),
            // Killed in between: nothing, what was asked, or what was used.
            None => (0, asked.max(used)),
        };
        let entry = books.entry((entity.to_owned(), limit)).or_default();
        entry.certain += fewest;
        entry.unconfirmed += most - fewest;
    }
}
