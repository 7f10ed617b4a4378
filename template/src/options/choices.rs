//! Options that are one of a few words.

use std::fmt;

/// An option that is one of a few words.
pub(super) trait Choice: Sized + 'static {
    /// The words.
    const WORDS: &'static [&'static str];

    /// The choice with this word, or the rule that the word breaks.
    fn parse(word: &str) -> Result<Self, String>;
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every choice.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word that options files use.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

        }

        impl Choice for $name {
            const WORDS: &'static [&'static str] = &[$($word),+];

            fn parse(word: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().copied().find(|choice| choice.as_str() == word);
                found.ok_or_else(|| format!("must be one of {}", Self::WORDS.join(", ")))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl From<$name> for String {
            fn from(choice: $name) -> Self {
                choice.as_str().to_owned()
            }
        }
    };
}

choice! {
    /// What the index of buckets and usage by resource (GSI2) copies from the table.
    IndexProjection {
        /// Only keys: a bucket write costs one write unit.
        Keys = "keys",
        /// All attributes: twice the write cost, and zae-limiter for Python can list by resource.
        All = "all",
    }
}

choice! {
    /// The storage class of the table.
    TableClass {
        /// For tables whose requests cost more than their storage.
        Standard = "standard",
        /// Cheaper storage and dearer requests.
        InfrequentAccess = "infrequent_access",
    }
}

choice! {
    /// Where in the stream newly created event source mappings start.
    StreamStart {
        /// At the oldest change in the stream, up to 24 hours ago.
        TrimHorizon = "trim_horizon",
        /// At the next change: for a table whose usage another aggregator has counted until now.
        Latest = "latest",
    }
}

choice! {
    /// The processor that the functions run on. Their archives must be built for it.
    Architecture {
        /// Intel and AMD.
        X86_64 = "x86_64",
        /// Graviton.
        Arm64 = "arm64",
    }
}

choice! {
    /// How narrow the acquire policy is.
    AcquirePolicy {
        /// Limited to the partition keys of entities.
        Keys = "keys",
        /// Limited to the partition keys of entities and the attributes of buckets.
        Attributes = "attributes",
    }
}

choice! {
    /// Who may delete archived events before their lock expires.
    ObjectLockMode {
        /// Principals with `s3:BypassGovernanceRetention`.
        Governance = "governance",
        /// Nobody, not even the account's root user.
        Compliance = "compliance",
    }
}
