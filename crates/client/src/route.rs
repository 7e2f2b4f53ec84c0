//! Whether an address is on this machine, and what may be sent to it.

use crate::Error;
use api::Request;
use redact::{is_secret_header, is_secret_parameter};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;
use tokio::net::TcpStream;
use url::{Host, Url};

/// The route to the server of a base URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The base URL.
    pub url: String,
    /// Whether every connection stays on this machine.
    pub is_local: bool,
    /// The host and its addresses, if the host is `localhost` or a name under it and all its
    /// addresses are loopback addresses. Connections go to these addresses only.
    pub(crate) pinned: Option<(String, Vec<SocketAddr>)>,
    /// The host of the URL.
    pub(crate) host: Option<Host>,
}

/// A proxy for requests. The proxy resolves the names of servers itself, so a [`crate::Guard`]
/// cannot check their addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// The proxy's URL, with a user and password if it needs them.
    pub url: String,
}

/// Why a request must not be sent to its address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The address is not a URL.
    #[error("{0}, write it as https://HOST/PATH")]
    Invalid(String),
    /// The address is a URL without a host, or its scheme is neither http nor https.
    #[error("{0} is not an http or https address, write it as https://HOST/PATH")]
    Scheme(String),
    /// A secret would be sent unencrypted.
    #[error("the key would go over http to {0}, where anybody on the way can read it: use https")]
    Exposed(String),
}

impl Route {
    /// Returns the route to the server of `url`. The name `localhost`, and each name under it, is
    /// resolved: such a name does not guarantee this machine (RFC 6761), so the route is local only
    /// if all its addresses are loopback addresses.
    pub fn of(url: &str) -> Route {
        let Ok(parsed) = Url::parse(url) else {
            return Route {
                url: url.to_owned(),
                ..Route::default()
            };
        };
        let other = Route {
            url: url.to_owned(),
            host: parsed.host().map(|host| host.to_owned()),
            ..Route::default()
        };
        let host = parsed.host_str().unwrap_or_default();
        if let Ok(address) = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>()
        {
            return Route {
                is_local: address.to_canonical().is_loopback(),
                ..other
            };
        }
        let name = host.trim_end_matches('.');
        if name != "localhost" && !name.ends_with(".localhost") {
            return other;
        }
        let port = parsed.port_or_known_default().unwrap_or(80);
        // /etc/hosts has names without the trailing dot of a fully qualified name.
        other.pinned_to(
            host,
            (name, port)
                .to_socket_addrs()
                .map(Iterator::collect)
                .unwrap_or_default(),
        )
    }

    fn pinned_to(self, host: &str, addresses: Vec<SocketAddr>) -> Route {
        let is_local = !addresses.is_empty()
            && addresses
                .iter()
                .all(|a| a.ip().to_canonical().is_loopback());
        Route {
            is_local,
            pinned: is_local.then(|| (host.to_owned(), addresses)),
            ..self
        }
    }

    /// Connects to the server, then closes the connection without sending a request. Intended for a
    /// server on this machine, which the method does not check.
    ///
    /// # Errors
    /// Why the server cannot be reached.
    pub async fn connect(&self, longest: Duration) -> Result<(), Error> {
        let url = Url::parse(&self.url).map_err(|e| Error::address(&e.to_string()))?;
        let addresses = match &self.pinned {
            Some((_, addresses)) => addresses.clone(),
            None => url
                .socket_addrs(|| None)
                .map_err(|e| Error::address(&e.to_string()))?,
        };
        let server = url.origin().ascii_serialization();
        match tokio::time::timeout(longest, TcpStream::connect(&*addresses)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(e)) => Err(Error::connect(&server, &e)),
            Err(_) => Err(Error::connect(&server, &io::ErrorKind::TimedOut.into())),
        }
    }

    /// Checks that a request has an http or https address, and that it does not send a secret over
    /// http to another machine. `is_secret` returns whether the header with this name has a secret
    /// value.
    ///
    /// # Errors
    /// See [`AddressError`]. The caller may ignore [`AddressError::Exposed`] if the user permits
    /// secrets over http.
    pub fn check(
        &self,
        request: &Request,
        is_secret: impl Fn(&str) -> bool,
    ) -> Result<(), AddressError> {
        let url = Url::parse(&request.url).map_err(|e| AddressError::Invalid(e.to_string()))?;
        let host = url.host_str().unwrap_or_default();
        if !matches!(url.scheme(), "http" | "https") || host.is_empty() {
            return Err(AddressError::Scheme(url.scheme().to_owned()));
        }
        let has_secret = || {
            let mut names = request.headers.iter().map(|(name, _)| name);
            names.any(|name| is_secret_header(name) || is_secret(name)) || !in_url(&url).is_empty()
        };
        // The route describes the host of the base URL, so it says nothing about other hosts.
        let is_own = |host: Host<&str>| self.host.as_ref().is_some_and(|own| *own == host);
        let is_local = self.is_local && url.host().is_some_and(is_own);
        if url.scheme() == "http" && !is_local && has_secret() {
            return Err(AddressError::Exposed(host.to_owned()));
        }
        Ok(())
    }
}

/// Returns `url`, with the path of `usual` (such as `/v1`) if `url` has no path: users write only
/// the address of a server, and most servers have the paths of the provider whose API they speak.
pub fn with_path_of(url: String, usual: &str) -> String {
    let (Ok(mut bare), Ok(usual)) = (Url::parse(&url), Url::parse(usual)) else {
        return url;
    };
    if !matches!(bare.path(), "" | "/") {
        return url;
    }
    bare.set_path(usual.path());
    bare.into()
}

/// Returns the secrets in a URL: the password, or the user name if there is no password, and the
/// values of parameters named like a credential. Each secret is returned both as written and
/// decoded.
pub fn secrets_in_url(url: &str) -> Vec<String> {
    Url::parse(url).map(|url| in_url(&url)).unwrap_or_default()
}

fn in_url(url: &Url) -> Vec<String> {
    let mut secrets = vec![];
    if let Some(password) = url.password() {
        // reqwest sends the user and password as `Authorization: Basic`.
        secrets.extend([decoded(password), password.to_owned()]);
    } else if !url.username().is_empty() {
        secrets.extend([decoded(url.username()), url.username().to_owned()]);
    }
    for (name, value) in url
        .query_pairs()
        .filter(|(name, value)| is_secret_parameter(name) && !value.is_empty())
    {
        let raw = url
            .query()
            .into_iter()
            .flat_map(|query| query.split('&'))
            .filter_map(|pair| pair.split_once('='));
        secrets.extend(
            raw.filter(|(raw, _)| *raw == name)
                .map(|(_, value)| value.to_owned()),
        );
        secrets.push(value.into_owned());
    }
    secrets
}

fn decoded(text: &str) -> String {
    let pair = format!("x={}", text.replace('+', "%2B"));
    Url::parse(&format!("http://h/?{pair}"))
        .ok()
        .and_then(|url| {
            url.query_pairs()
                .next()
                .map(|(_, value)| value.into_owned())
        })
        .unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_by_its_address() {
        for url in [
            "http://127.0.0.1",
            "http://127.1",
            "http://127.255.3.4:80/v1",
            "http://[::1]:1/",
            "http://0x7f000001",
            "http://2130706433",
            "http://0177.0.0.1",
            "http://[::ffff:127.0.0.1]",
            "http://[::ffff:7f00:1]",
        ] {
            let route = Route::of(url);
            assert!(route.is_local && route.pinned.is_none(), "{url}");
        }
        for url in [
            "http://localhost.example.com",
            "http://mylocalhost",
            "http://10.0.0.1",
            "http://0.0.0.0",
            "http://127.0.0.1.example.com",
            "http://127.0.0.1@example.com",
            "http://[::ffff:10.0.0.1]",
            "http://[::127.0.0.1]",
            "nonsense",
        ] {
            let route = Route::of(url);
            assert!(!route.is_local && route.pinned.is_none(), "{url}");
        }
    }

    #[test]
    fn a_name_is_this_machine_only_if_all_its_addresses_are() {
        let to = |addresses: &[&str]| {
            Route::default().pinned_to(
                "x.localhost",
                addresses.iter().map(|text| text.parse().unwrap()).collect(),
            )
        };
        let local = to(&["127.0.0.1:80", "[::1]:80"]);
        let (host, addresses) = local.pinned.unwrap();
        assert!(local.is_local && host == "x.localhost" && addresses.len() == 2);
        assert!(to(&["[::ffff:127.0.0.1]:80"]).is_local);
        for addresses in [
            &[][..],
            &["10.0.0.1:80"],
            &["127.0.0.1:80", "10.0.0.1:80"],
            &["[fe80::1]:80"],
        ] {
            assert_eq!(to(addresses), Route::default(), "{addresses:?}");
        }
        for url in ["http://localhost:8080/v1", "http://LOCALHOST.:8080"] {
            let route = Route::of(url);
            assert!(
                route.is_local && route.pinned.unwrap().1.iter().all(|a| a.port() == 8080),
                "{url}"
            );
        }
    }

    #[test]
    fn what_is_secret_in_an_address() {
        let secrets = secrets_in_url;
        for (url, secret) in [
            ("http://h/v1?api_key=abc%2Fdef", "abc/def"),
            ("http://h/v1?api_key=abc%2Fdef", "abc%2Fdef"),
            ("http://h/v1?x=1&access_token=t", "t"),
            ("http://h/v1?KEY=k&sig=s", "k"),
            ("http://h/v1?api-version=1&code=c", "c"),
            ("http://me:p%40ss@h/", "p@ss"),
            ("http://sk-1@h/", "sk-1"),
        ] {
            assert!(
                secrets(url).iter().any(|s| s == secret),
                "{url}: {:?}",
                secrets(url)
            );
        }
        for url in [
            "http://h/v1",
            "http://h/v1?api-version=2024-10-21&alt=sse",
            "http://h/?key=",
        ] {
            assert!(secrets(url).is_empty(), "{url}: {:?}", secrets(url));
        }
    }

    #[test]
    fn a_secret_goes_over_http_only_to_the_machine_of_the_route() {
        let check = |base: &str, url: &str, header: &str| {
            let headers = vec![(header.to_owned(), "v".to_owned())];
            let request = Request {
                method: "POST",
                url: url.to_owned(),
                headers,
                body: String::new(),
            };
            Route::of(base)
                .check(&request, |name| name == "x-mine")
                .map_err(|e| e.to_string())
        };
        for (base, url, header) in [
            ("https://h/v1", "https://h/v1/chat", "authorization"),
            ("http://h/v1", "http://h/v1/chat", "x-title"),
            ("http://127.0.0.1", "http://127.0.0.1/chat", "authorization"),
        ] {
            assert_eq!(check(base, url, header), Ok(()), "{url}");
        }
        for (base, url, header, says) in [
            (
                "http://h/v1",
                "http://h/v1/chat",
                "authorization",
                "over http to h,",
            ),
            (
                "http://h/v1",
                "http://h/v1/chat",
                "x-mine",
                "over http to h,",
            ),
            (
                "http://h/v1",
                "http://h/v1?api_key=k",
                "x-title",
                "over http to h,",
            ),
            (
                "http://127.0.0.1",
                "http://h/chat",
                "authorization",
                "over http to h,",
            ),
            (
                "ftp://h",
                "ftp://h/",
                "x-title",
                "ftp is not an http or https address",
            ),
            ("h", "h", "x-title", "write it as https://HOST/PATH"),
        ] {
            assert!(
                check(base, url, header).unwrap_err().contains(says),
                "{url}"
            );
        }
    }

    #[test]
    fn a_bare_address_gets_the_usual_path() {
        for (usual, url, full) in [
            ("https://api.openai.com/v1", "http://h:1", "http://h:1/v1"),
            (
                "https://api.openai.com/v1",
                "http://h/?v=2",
                "http://h/v1?v=2",
            ),
            ("https://api.openai.com/v1", "http://h/api", "http://h/api"),
            ("https://x/v1beta", "https://h", "https://h/v1beta"),
            ("http://localhost:11434", "http://h:2", "http://h:2/"),
            ("https://api.openai.com/v1", "not a url", "not a url"),
        ] {
            assert_eq!(with_path_of(url.to_owned(), usual), full);
        }
    }
}
