//! What an error of the HTTP client means for a person: where, what, and what to do.

use std::error::Error;
use std::io;
use upstream::End;

/// How a connection ended, by the client's error.
pub fn end(e: &reqwest::Error) -> End {
    let whole: Vec<String> = walk(e).map(ToString::to_string).collect();
    let to = e.url().map_or_else(|| "the server".to_owned(), |url| place(url.clone()));
    let plain_http = e.url().is_some_and(|url| url.scheme() == "http");
    let (what, remedy) = meaning(e, &whole, plain_http);
    match (e.is_timeout(), e.is_connect()) {
        (true, _) => End::Timeout(format!(
            "no connection to {to} in time (--connect-timeout); check the address in --base-url and the network"
        )),
        (_, true) => End::Reset(format!("no connection to {to}: {what}; {remedy}")),
        _ if plain_http && whole.iter().any(|text| text.contains("invalid HTTP")) => {
            End::Reset(format!("{to} answers with something else than HTTP: {what}; {remedy}"))
        }
        // It may be a greeting of TLS that was waited for.
        _ if plain_http && whole.iter().any(|text| text.contains("before message completed")) => {
            End::Reset(format!("the connection to {to} was lost before the answer: {what}; {remedy}"))
        }
        _ => End::Reset(format!("the connection to {to} was lost: {what}")),
    }
}

/// An address as it may be shown: a user's name, a password and a query stay out of it, since they may hold a key.
fn place(mut url: reqwest::Url) -> String {
    url.set_query(None);
    url.set_fragment(None);
    // An address that cannot have them needs no care.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

/// What went wrong, and what to do about it.
fn meaning(e: &reqwest::Error, texts: &[String], plain_http: bool) -> (String, &'static str) {
    let last = texts.last().cloned().unwrap_or_else(|| "no reason is known".to_owned());
    let says = |words: &str| texts.iter().any(|text| text.contains(words));
    if says("dns error") || says("failed to lookup address") {
        return (format!("the name cannot be resolved ({last})"), "check the name in --base-url, and the network");
    }
    if let Some(tls) = tls(e) {
        let remedy = match tls {
            rustls::Error::InvalidMessage(_) => "if the server speaks plain HTTP, write http:// in --base-url",
            rustls::Error::InvalidCertificate(_) => {
                "check the name in --base-url and the clock, and name a private authority's certificates with SSL_CERT_FILE"
            }
            _ => "check that the port in --base-url speaks TLS",
        };
        return (format!("TLS failed ({tls})"), remedy);
    }
    let kind = io_kind(e);
    let remedy = match kind {
        Some(io::ErrorKind::ConnectionRefused) => "start the server, or correct the port in --base-url",
        Some(io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable) => "check the network",
        _ if plain_http => "if the server speaks TLS, write https:// in --base-url",
        _ => "check --base-url",
    };
    (last, remedy)
}

/// The error of TLS in the chain.
fn tls(e: &reqwest::Error) -> Option<&rustls::Error> {
    walk(e).find_map(|inner| inner.downcast_ref())
}

fn io_kind(e: &reqwest::Error) -> Option<io::ErrorKind> {
    walk(e).filter_map(|inner| inner.downcast_ref::<io::Error>()).last().map(io::Error::kind)
}

/// Every error in the chain, with those that an [`io::Error`] carries: it hides them from [`Error::source`].
fn walk(e: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(e.source(), |inner: &&(dyn Error + 'static)| {
        match inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(carried) => Some(carried),
            None => (*inner).source(),
        }
    })
}
