//! Maps errors of HTTP and TLS to [`Error`].

use super::guard::ForbiddenAddress;
use crate::{Error, ErrorKind};
use std::error::Error as StdError;
use std::io;

impl Error {
    pub(super) fn forbidden(error: &ForbiddenAddress) -> Error {
        let kind = match error {
            ForbiddenAddress::Exposed(_) => ErrorKind::Exposed,
            _ => ErrorKind::Forbidden,
        };
        Error::new(kind, error.to_string())
    }
}

impl From<&reqwest::Error> for Error {
    fn from(e: &reqwest::Error) -> Error {
        if let Some(forbidden) = find::<ForbiddenAddress>(e) {
            return Error::forbidden(forbidden);
        }
        let texts: Vec<String> = chain(e).map(ToString::to_string).collect();
        let has = |words: &str| texts.iter().any(|text| text.contains(words));
        let server = e
            .url()
            .map_or_else(|| "the server".to_owned(), |url| shown(url.clone()));
        let is_plain = e.url().is_some_and(|url| url.scheme() == "http");
        let last = texts.last().map_or("for an unknown reason", String::as_str);
        let (kind, message) = match (e.is_timeout(), e.is_connect()) {
            // Only while connecting: an open connection can also end by a timeout of the system,
            // after the request was sent.
            (true, true) => (
                ErrorKind::ConnectTimeout,
                format!("no connection to {server} in time"),
            ),
            (_, true) => {
                let (kind, reason) = if has("dns error") || has("failed to lookup address") {
                    (
                        ErrorKind::UnknownName,
                        format!("the name cannot be resolved ({last})"),
                    )
                } else if let Some(tls) = find::<rustls::Error>(e) {
                    (of_tls(tls), format!("TLS failed ({tls})"))
                } else {
                    (of_connection(e, is_plain), last.to_owned())
                };
                (kind, format!("no connection to {server}: {reason}"))
            }
            _ if is_plain && has("invalid HTTP") => (
                ErrorKind::MaybeTls,
                format!("{server} answers with something else than HTTP: {last}"),
            ),
            // A TLS server expects a handshake, and closes the connection on plain HTTP.
            _ if is_plain && has("before message completed") => (
                ErrorKind::MaybeTls,
                format!("the connection to {server} was lost before the answer: {last}"),
            ),
            _ => (
                ErrorKind::Lost,
                format!("the connection to {server} was lost: {last}"),
            ),
        };
        Error::new(kind, message)
    }
}

/// Returns the URL without its user, password and query, which may contain a key.
fn shown(mut url: url::Url) -> String {
    url.set_query(None);
    url.set_fragment(None);
    // Both calls fail only for a URL that cannot have a user.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

fn of_tls(error: &rustls::Error) -> ErrorKind {
    match error {
        rustls::Error::InvalidMessage(_) => ErrorKind::PlainHttp,
        rustls::Error::InvalidCertificate(_) => ErrorKind::Certificate,
        _ => ErrorKind::Tls,
    }
}

fn of_connection(e: &reqwest::Error, is_plain: bool) -> ErrorKind {
    match chain(e)
        .filter_map(|inner| inner.downcast_ref::<io::Error>())
        .last()
        .map(io::Error::kind)
    {
        Some(io::ErrorKind::ConnectionRefused) => ErrorKind::Refused,
        Some(io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable) => {
            ErrorKind::Unreachable
        }
        _ if is_plain => ErrorKind::MaybeTls,
        _ => ErrorKind::Connect,
    }
}

fn find<T: StdError + 'static>(e: &reqwest::Error) -> Option<&T> {
    chain(e).find_map(|inner| inner.downcast_ref())
}

/// Returns every error in the chain, including those inside an [`io::Error`], which
/// [`StdError::source`] skips.
pub(super) fn chain(e: &reqwest::Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    std::iter::successors(e.source(), |inner: &&(dyn StdError + 'static)| match inner
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        Some(carried) => Some(carried),
        None => (*inner).source(),
    })
}
