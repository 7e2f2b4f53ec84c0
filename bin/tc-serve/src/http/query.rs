//! The query of a request.

use super::refusals::member;
use super::response::Refusal;
use hyper::Uri;

/// How many members a page has, unless the client asks for another number.
const PAGE: usize = 20;

/// How many members a page has at most.
const LARGEST_PAGE: usize = 100;

/// The pairs of a query, as they are typed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Query<'q>(pub &'q str);

impl<'q> Query<'q> {
    /// The query of this address.
    pub(super) fn of(uri: &'q Uri) -> Query<'q> {
        Query(uri.query().unwrap_or_default())
    }

    /// The values of this name, in order.
    pub(super) fn all(self, name: &str) -> impl Iterator<Item = &'q str> {
        let pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter_map(move |(known, value)| (known == name).then_some(value))
    }

    /// The first value of this name.
    pub(super) fn get(self, name: &str) -> Option<&'q str> {
        self.all(name).next()
    }

    /// Whether the name is there, with or without a value.
    pub(super) fn has(self, name: &str) -> bool {
        let mut pairs = self.0.split('&');
        pairs.any(|pair| pair.split('=').next() == Some(name))
    }

    /// How many members a page of a list has: `limit`.
    ///
    /// # Errors
    /// 400 for what is not a number from 1 to 100.
    pub(super) fn limit(self) -> Result<usize, Refusal> {
        match self.get("limit").map(str::parse) {
            None => Ok(PAGE),
            Some(Ok(limit @ 1..=LARGEST_PAGE)) => Ok(limit),
            Some(_) => Err(member("limit", "use a number from 1 to 100")),
        }
    }
}
