//! Reading a range of one partition, page by page.

use std::collections::HashMap;
use std::fmt::Write as _;

use zae_limiter_schema::keys::{GSI1, GSI2, GSI3, Key, attribute};
use zae_limiter_schema::{AttributeValue, Item};

use crate::{Placeholders, Result, SdkItem, Table, from_sdk_item, to_sdk_item};

/// Which part of a partition.
#[derive(Debug, Clone)]
pub enum Sort {
    /// All of it.
    All,
    /// Sort keys with this prefix.
    StartsWith(String),
    /// Both ends included.
    Between(String, String),
}

/// A condition on the items, applied by DynamoDB.
#[derive(Debug, Clone)]
pub enum Filter {
    /// The attribute has this value.
    Equals(&'static str, AttributeValue),
    /// The attribute lies between these values, both included.
    Between(&'static str, AttributeValue, AttributeValue),
}

/// A range of one partition of the table or of an index.
#[derive(Debug, Clone)]
pub struct Query {
    index: Option<&'static str>,
    partition: String,
    sort: Sort,
    filters: Vec<Filter>,
    newest_first: bool,
    consistent: bool,
    keys_only: bool,
}

/// One page, and where the next one starts.
#[derive(Debug)]
pub struct RawPage {
    /// The items.
    pub items: Vec<Item>,
    /// Where the next page starts, if there is one.
    pub next: Option<SdkItem>,
}

impl RawPage {
    fn new(items: Option<Vec<SdkItem>>, next: Option<SdkItem>) -> Result<Self> {
        let items = items.unwrap_or_default().into_iter().map(from_sdk_item);
        Ok(Self {
            items: items.collect::<Result<_>>()?,
            next: next.filter(|key| !key.is_empty()),
        })
    }
}

impl Query {
    /// A range of the table.
    pub fn table(partition: String, sort: Sort) -> Self {
        Self {
            index: None,
            partition,
            sort,
            filters: vec![],
            newest_first: false,
            consistent: false,
            keys_only: false,
        }
    }

    /// A range of an index.
    pub fn index(index: &'static str, partition: String, sort: Sort) -> Self {
        Self {
            index: Some(index),
            ..Self::table(partition, sort)
        }
    }

    /// Keeps only the items that pass the filter.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filters.push(filter);
        self
    }

    /// Reads from the end.
    #[must_use]
    pub fn newest_first(mut self) -> Self {
        self.newest_first = true;
        self
    }

    /// Reads what was written last.
    #[must_use]
    pub fn consistent(mut self) -> Self {
        self.consistent = true;
        self
    }

    /// Reads only keys.
    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    /// True if there is a filter.
    pub fn is_filtered(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Partition and sort key of the table or index.
    pub fn key_attributes(&self) -> (&'static str, &'static str) {
        match self.index {
            Some(GSI1) => (attribute::GSI1PK, attribute::GSI1SK),
            Some(GSI2) => (attribute::GSI2PK, attribute::GSI2SK),
            Some(GSI3) => (attribute::GSI3PK, attribute::GSI3SK),
            _ => (attribute::PK, attribute::SK),
        }
    }

    /// Where a page starts that follows the item with these keys.
    pub fn start_after(&self, key: &Key, in_index: Option<&Key>) -> SdkItem {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let mut start = HashMap::from([
            (attribute::PK.to_owned(), text(&key.pk)),
            (attribute::SK.to_owned(), text(&key.sk)),
        ]);
        if let Some(in_index) = in_index {
            let (pk, sk) = self.key_attributes();
            start.insert(pk.to_owned(), text(&in_index.pk));
            start.insert(sk.to_owned(), text(&in_index.sk));
        }
        to_sdk_item(Item::from(start))
    }

    /// True if an item with these keys is in the range.
    pub fn holds(&self, key: &Key, in_index: Option<&Key>) -> bool {
        let place = match (self.index, in_index) {
            (None, None) => key,
            (Some(_), Some(in_index)) => in_index,
            _ => return false,
        };
        let sorted = match &self.sort {
            Sort::All => true,
            Sort::StartsWith(prefix) => place.sk.starts_with(prefix),
            Sort::Between(first, last) => (first..=last).contains(&&place.sk),
        };
        place.pk == self.partition && sorted
    }
}

impl Table {
    /// One page, as long as DynamoDB makes it, or of at most `most` items before filtering.
    pub async fn query_page(
        &self,
        query: &Query,
        start: Option<SdkItem>,
        most: Option<usize>,
    ) -> Result<RawPage> {
        let mut placeholders = Placeholders::default();
        let (pk, sk) = query.key_attributes();
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let mut condition = format!(
            "{} = {}",
            placeholders.name(pk),
            placeholders.value(text(&query.partition))
        );
        match &query.sort {
            Sort::All => {}
            Sort::StartsWith(prefix) => {
                let (name, prefix) = (placeholders.name(sk), placeholders.value(text(prefix)));
                let _ = write!(condition, " AND begins_with({name}, {prefix})");
            }
            Sort::Between(first, last) => {
                let (first, last) = (placeholders.value(text(first)), placeholders.value(text(last)));
                let _ = write!(
                    condition,
                    " AND {} BETWEEN {first} AND {last}",
                    placeholders.name(sk)
                );
            }
        }
        let filters: Vec<_> = query
            .filters
            .iter()
            .map(|filter| filter.expression(&mut placeholders))
            .collect();
        let projection = query
            .keys_only
            .then(|| [attribute::PK, attribute::SK, pk, sk].map(|name| placeholders.name(name)))
            .map(|names| names.into_iter().collect::<std::collections::BTreeSet<_>>())
            .map(|names| names.into_iter().collect::<Vec<_>>().join(", "));
        let (names, values) = placeholders.into_maps();
        let most = most.map(|most| i32::try_from(most.max(1)).unwrap_or(i32::MAX));
        let response = self
            .send("Query", self.budget(), || {
                self.client
                    .query()
                    .table_name(self.name.as_str())
                    .set_index_name(query.index.map(str::to_owned))
                    .key_condition_expression(condition.clone())
                    .set_filter_expression((!filters.is_empty()).then(|| filters.join(" AND ")))
                    .set_projection_expression(projection.clone())
                    .set_expression_attribute_names(names.clone())
                    .set_expression_attribute_values(values.clone())
                    .scan_index_forward(!query.newest_first)
                    .consistent_read(query.consistent)
                    .set_exclusive_start_key(start.clone())
                    .set_limit(most)
                    .send()
            })
            .await?;
        RawPage::new(response.items, response.last_evaluated_key)
    }

    /// One page of a scan for items with this sort key.
    pub async fn scan_page(&self, sort_key: &str, start: Option<SdkItem>) -> Result<RawPage> {
        let text = AttributeValue::S(sort_key.to_owned());
        self.scan(start, |p| {
            format!("{} = {}", p.name(attribute::SK), p.value(text))
        })
        .await
    }

    /// One page of a scan for items whose sort key has this prefix.
    pub async fn scan_prefix_page(&self, prefix: &str, start: Option<SdkItem>) -> Result<RawPage> {
        let text = AttributeValue::S(prefix.to_owned());
        self.scan(start, |p| {
            format!("begins_with({}, {})", p.name(attribute::SK), p.value(text))
        })
        .await
    }

    async fn scan(
        &self,
        start: Option<SdkItem>,
        filter: impl FnOnce(&mut Placeholders) -> String,
    ) -> Result<RawPage> {
        let (filter, names, values) = Placeholders::expression(filter);
        let response = self
            .send("Scan", self.budget(), || {
                self.client
                    .scan()
                    .table_name(self.name.as_str())
                    .filter_expression(filter.clone())
                    .set_expression_attribute_names(names.clone())
                    .set_expression_attribute_values(values.clone())
                    .consistent_read(true)
                    .set_exclusive_start_key(start.clone())
                    .send()
            })
            .await?;
        RawPage::new(response.items, response.last_evaluated_key)
    }

    /// Every item of the range.
    pub async fn query_all(&self, query: &Query) -> Result<Vec<Item>> {
        let mut items = vec![];
        let mut start = None;
        loop {
            let page = self.query_page(query, start, None).await?;
            items.extend(page.items);
            start = page.next;
            if start.is_none() {
                return Ok(items);
            }
        }
    }
}

impl Filter {
    fn expression(&self, placeholders: &mut Placeholders) -> String {
        match self {
            Self::Equals(attribute, value) => {
                format!(
                    "{} = {}",
                    placeholders.name(attribute),
                    placeholders.value(value.clone())
                )
            }
            Self::Between(attribute, first, last) => {
                let (name, first) = (placeholders.name(attribute), placeholders.value(first.clone()));
                format!("{name} BETWEEN {first} AND {}", placeholders.value(last.clone()))
            }
        }
    }
}
