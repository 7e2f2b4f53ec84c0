//! The query of a request.

use super::refusals::member;
use super::response::Refusal;
use hyper::Uri;

/// The default number of members on a page.
const PAGE: usize = 20;

/// The largest number of members on a page.
const LARGEST_PAGE: usize = 100;

/// The query string, not decoded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Query<'q>(pub &'q str);

impl<'q> Query<'q> {
    /// Returns the query of this URI.
    pub(super) fn of(uri: &'q Uri) -> Query<'q> {
        Query(uri.query().unwrap_or_default())
    }

    /// Returns the values with this name, in order.
    pub(super) fn all(self, name: &str) -> impl Iterator<Item = &'q str> {
        let pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter_map(move |(known, value)| (known == name).then_some(value))
    }

    /// Returns the first value with this name.
    pub(super) fn get(self, name: &str) -> Option<&'q str> {
        self.all(name).next()
    }

    /// Whether the name is present, with or without a value.
    pub(super) fn has(self, name: &str) -> bool {
        let mut pairs = self.0.split('&');
        pairs.any(|pair| pair.split('=').next() == Some(name))
    }

    /// Returns the number of members on a page of a list: `limit`.
    ///
    /// # Errors
    /// 400 for a value that is not a number from 1 to 100.
    pub(super) fn limit(self) -> Result<usize, Refusal> {
        match self.get("limit").map(str::parse) {
            None => Ok(PAGE),
            Some(Ok(limit @ 1..=LARGEST_PAGE)) => Ok(limit),
            Some(_) => Err(member("limit", "use a number from 1 to 100")),
        }
    }
}
