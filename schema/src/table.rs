//! The table itself: keys, indexes, projections, time to live and stream.
//!
//! The template, the client's `create_table` and the tests build their tables from [`TABLE`], so that they cannot differ.

use crate::keys::{GSI1, GSI2, GSI3, attribute};

/// The one table of a limiter. Every key attribute is a string, and capacity is paid per request.
pub const TABLE: TableDefinition = TableDefinition {
    key: KeyDefinition {
        partition: attribute::PK,
        sort: attribute::SK,
    },
    indexes: [
        IndexDefinition {
            name: GSI1,
            key: KeyDefinition {
                partition: attribute::GSI1PK,
                sort: attribute::GSI1SK,
            },
            projection: Projection::All,
        },
        // Keys only: a write to a bucket must not pay for an index as well.
        IndexDefinition {
            name: GSI2,
            key: KeyDefinition {
                partition: attribute::GSI2PK,
                sort: attribute::GSI2SK,
            },
            projection: Projection::KeysOnly,
        },
        IndexDefinition {
            name: GSI3,
            key: KeyDefinition {
                partition: attribute::GSI3PK,
                sort: attribute::GSI3SK,
            },
            projection: Projection::KeysOnly,
        },
    ],
    time_to_live: attribute::TTL,
    stream: StreamView::NewAndOldImages,
};

/// The arguments of `CreateTable`, without the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDefinition {
    /// The primary key.
    pub key: KeyDefinition,
    /// The global secondary indexes.
    pub indexes: [IndexDefinition; 3],
    /// The attribute that holds the expiry time, in epoch seconds.
    pub time_to_live: &'static str,
    /// What each stream record contains.
    pub stream: StreamView,
}

/// A partition key and a sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyDefinition {
    /// The attribute that is the partition key.
    pub partition: &'static str,
    /// The attribute that is the sort key.
    pub sort: &'static str,
}

/// A global secondary index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexDefinition {
    /// Its name.
    pub name: &'static str,
    /// Its key.
    pub key: KeyDefinition,
    /// Which attributes it copies. A stack may choose [`Projection::All`] for GSI2.
    pub projection: Projection,
}

/// Which attributes an index copies from the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Projection {
    /// All of them.
    All,
    /// The keys of the table and of the index.
    KeysOnly,
}

/// What a stream record contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamView {
    /// The item before and after the change. Usage is the difference between the two.
    NewAndOldImages,
}

impl TableDefinition {
    /// Every key attribute of the table and its indexes, each once. All are strings.
    pub fn key_attributes(&self) -> impl Iterator<Item = &'static str> {
        let indexes = self.indexes.iter().map(|index| index.key);
        let keys: Vec<_> = [self.key].into_iter().chain(indexes).collect();
        keys.into_iter().flat_map(|key| [key.partition, key.sort])
    }
}

impl Projection {
    /// The name in DynamoDB's API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "ALL",
            Self::KeysOnly => "KEYS_ONLY",
        }
    }
}

impl StreamView {
    /// The name in DynamoDB's API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NewAndOldImages => "NEW_AND_OLD_IMAGES",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_key_attribute_is_named_once() {
        let names: Vec<_> = TABLE.key_attributes().collect();
        assert_eq!(names.len(), 8);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 8);
    }
}
