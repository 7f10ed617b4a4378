//! Mutations of examples.

/// What parsers often get wrong.
const TOKENS: [&str; 40] = [
    "0",
    "-1",
    "1e999",
    "-0.0",
    "0.1",
    "99999999999999999999999999999999999999",
    "-9223372036854775809",
    "18446744073709551616",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "NaN",
    "#",
    "##",
    "_default_",
    "$SYSTEM",
    "\u{0}",
    "\n",
    "\u{feff}",
    "\u{202e}",
    "é",
    "𝟙",
    "'",
    "\\",
    "\"",
    ":",
    "::",
    "/",
    "@",
    "--",
    "-l",
    "=",
    "&a [*a]",
    "<<: *a",
    "!!binary x",
    "\"N\"",
    "\"S\"",
    "\"L\"",
];

/// An endless, repeatable sequence of mutated examples.
pub(crate) struct Mutator<'a> {
    state: u64,
    corpus: &'a [Vec<u8>],
}

impl<'a> Mutator<'a> {
    pub(crate) fn new(seed: u64, corpus: &'a [Vec<u8>]) -> Self {
        Self { state: seed, corpus }
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound.max(1) as u64).unwrap()
    }

    /// An example with one to four changes.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        assert!(!self.corpus.is_empty(), "a target without examples");
        let from = self.below(self.corpus.len());
        let mut input = self.corpus[from].clone();
        for _ in 0..=self.below(4) {
            self.change(&mut input);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let until = (at + self.below(12)).min(input.len());
        match self.below(7) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 => drop(input.drain(at..until)),
            2 => {
                let copied = input[at..until].to_vec();
                let to = self.below(input.len() + 1);
                drop(input.splice(to..to, copied));
            }
            3 => {
                let other = &self.corpus[self.below(self.corpus.len())];
                let from = self.below(other.len() + 1);
                drop(input.splice(at.., other[from..].iter().copied()));
            }
            4 => input.truncate(at),
            5 => drop(input.splice(at..at, TOKENS[self.below(TOKENS.len())].bytes())),
            _ => drop(input.splice(at..until, TOKENS[self.below(TOKENS.len())].bytes())),
        }
    }
}
