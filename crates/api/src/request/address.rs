//! Where a request goes, and its headers.

use super::options::RequestOptions;
use crate::provider::{KeyRule, Provider};

/// The headers of every request to this API, with the key's among them.
pub(crate) fn headers(provider: &Provider, options: &RequestOptions) -> Vec<(String, String)> {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    headers.extend(
        provider
            .headers
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned())),
    );
    if let Some(key) = &options.key {
        headers.push(match provider.key {
            KeyRule::Bearer => ("authorization".to_owned(), format!("Bearer {key}")),
            KeyRule::XApiKey => ("x-api-key".to_owned(), key.clone()),
            KeyRule::Google => ("x-goog-api-key".to_owned(), key.clone()),
        });
    }
    for (name, value) in &options.headers {
        let name = name.to_ascii_lowercase();
        headers.retain(|(k, _)| *k != name);
        headers.push((name, value.clone()));
    }
    headers
}

/// Joins a base URL and a path. A segment that the base ends with and the path begins with is
/// written once (`…/v1` and `/v1/messages`); a base that has the whole path already is kept; the
/// query of the base (Azure's `api-version`) goes behind the path.
pub(crate) fn url(base: &str, path: &str) -> String {
    let (base, query) = base
        .split_once('?')
        .map_or((base, None), |(base, query)| (base, Some(query)));
    let (path, own) = path
        .split_once('?')
        .map_or((path, None), |(path, query)| (path, Some(query)));
    let base = base.trim_end_matches('/');
    let first = path
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or_default();
    let authority = base.split_once("://").map_or(base, |(_, rest)| rest);
    let ends_with = |segment: &str| authority.split('/').skip(1).last() == Some(segment);
    let mut url = if base.ends_with(path) {
        base.to_owned()
    } else if ends_with(first) {
        format!("{base}{}", &path[first.len() + 1..])
    } else {
        format!("{base}{path}")
    };
    for (at, query) in query
        .into_iter()
        .chain(own)
        .filter(|q| !q.is_empty())
        .enumerate()
    {
        url.push(if at == 0 { '?' } else { '&' });
        url.push_str(query);
    }
    url
}
