//! Sends requests over the network.

mod authorities;
mod failure;
mod guard;
mod live;

pub use guard::Guard;
pub(crate) use live::LiveBody;

use crate::{Error, Proxy, Response, Route, TimeLimits};
use api::Request;
use api::tape::{Head, TapeExchange};
use authorities::NoAuthorities;
use bytes::Bytes;
use failure::chain;
use guard::{ForbiddenAddress, Resolver};
use live::{elapsed, ending};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// A client of one server. Cheap to clone; all clones share connections, and any number of requests
/// may be in flight.
#[derive(Clone, Debug)]
pub struct Network {
    client: reqwest::Client,
    /// The only server that requests may go to, if a [`Guard`] has checked it.
    only: Option<Url>,
}

/// Why requests cannot be sent, such as a system without certificates.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NetworkError(String);

impl From<NoAuthorities> for NetworkError {
    fn from(error: NoAuthorities) -> NetworkError {
        NetworkError(error.to_string())
    }
}

impl From<reqwest::Error> for NetworkError {
    fn from(error: reqwest::Error) -> NetworkError {
        let last = chain(&error).last();
        NetworkError(last.map_or_else(|| error.to_string(), ToString::to_string))
    }
}

/// The time limit for fetching a document.
const DOCUMENT: Duration = Duration::from_secs(60);

/// The most bytes in a document.
const LONGEST_DOCUMENT: usize = 32 << 20;

/// Fetches the document at an address that the user gave. Returns `None` if the response is not a
/// success, is too long or is not UTF-8.
///
/// # Errors
/// If the server cannot be reached, or does not respond in time.
pub async fn document(url: &str) -> Result<Option<String>, Error> {
    let network = Network::new(&Route::of(url), DOCUMENT);
    let network = network.map_err(|e| Error::address(&e.to_string()))?;
    let request = Request {
        method: "GET",
        url: url.to_owned(),
        headers: vec![("accept".to_owned(), "application/json, */*".to_owned())],
        body: String::new(),
    };
    let limits = TimeLimits {
        idle: None,
        deadline: Instant::now().checked_add(DOCUMENT),
    };
    limits.wait(network.ask(&request, LONGEST_DOCUMENT)).await?
}

impl Network {
    /// Creates a client for `route`, without connecting yet. Redirects are never followed, so that
    /// a key goes only to the server it is meant for.
    ///
    /// # Errors
    /// If the server uses https and the system has no certificate of an authority.
    pub fn new(route: &Route, connect_timeout: Duration) -> Result<Network, NetworkError> {
        let mut client = builder(connect_timeout).dns_resolver(Arc::new(Resolver { guard: None }));
        if let Some((host, addresses)) = &route.pinned {
            client = client.resolve_to_addrs(host, addresses);
        }
        if route.is_local {
            client = client.no_proxy();
        }
        if !route.url.starts_with("http:") {
            authorities::check()?;
        }
        Ok(Network {
            client: client.build()?,
            only: None,
        })
    }

    /// Creates a client for the server of `url` only, at addresses that `guard` allows. Each
    /// request resolves the name once, checks every address and connects to one of them.
    /// Connections are not reused, no proxy other than `proxy` is used, and redirects are not
    /// followed.
    ///
    /// # Errors
    /// [`Error`] if the scheme of `url` is neither http nor https, its host is a forbidden IP
    /// address, or TLS cannot be set up.
    pub fn guarded(
        url: &str,
        guard: Guard,
        connect_timeout: Duration,
        proxy: Option<&Proxy>,
    ) -> Result<Network, Error> {
        let only =
            Url::parse(url).map_err(|e| Error::address(&format!("the URL is not valid: {e}")))?;
        let Some((host, port)) = only.host_str().zip(only.port_or_known_default()) else {
            return Err(Error::address("the URL has no host"));
        };
        if !matches!(only.scheme(), "http" | "https") {
            return Err(Error::address(&format!(
                "{} is neither http nor https",
                only.scheme()
            )));
        }
        // The HTTP client connects to an IP address without calling the resolver.
        if let Ok(ip) = host.trim_start_matches('[').trim_end_matches(']').parse() {
            guard
                .check(host, &[SocketAddr::new(ip, port)])
                .map_err(|e| Error::forbidden(&e))?;
        }
        let mut client = builder(connect_timeout).pool_max_idle_per_host(0);
        client = match proxy {
            None => {
                let guard = Some((guard, port));
                client.no_proxy().dns_resolver(Arc::new(Resolver { guard }))
            }
            Some(_) if guard.needs_loopback() => {
                return Err(Error::forbidden(&ForbiddenAddress::Exposed(
                    host.to_owned(),
                )));
            }
            Some(proxy) => {
                let proxy = reqwest::Proxy::all(&proxy.url)
                    .map_err(|_| Error::address("the proxy is not a URL"))?;
                client
                    .proxy(proxy)
                    .dns_resolver(Arc::new(Resolver { guard: None }))
            }
        };
        if only.scheme() == "https" {
            authorities::check().map_err(|e| Error::address(&e.to_string()))?;
        }
        let client = client
            .build()
            .map_err(|e| Error::address(&NetworkError::from(e).to_string()))?;
        Ok(Network {
            client,
            only: Some(only),
        })
    }

    /// Sends a request and waits for the response's status and headers. `limits` also apply to the
    /// body. The exchange is added to `recording`, which holds the request (see
    /// [`crate::Recorder::begin`]).
    ///
    /// # Errors
    /// Why there is no response, with the recording of that failure.
    pub async fn send(
        &self,
        request: Request,
        limits: TimeLimits,
        recording: Option<Box<TapeExchange>>,
    ) -> Result<Response, (Error, Option<Box<TapeExchange>>)> {
        let sent = Instant::now();
        if let Err(error) = self.check_server(&request) {
            return Err((error, recording));
        }
        let opened = limits.wait(self.open(request, None)).await;
        let response = match opened.and_then(|opened| opened.map_err(|e| Error::from(&e))) {
            Ok(response) => response,
            Err(error) => {
                let end = Some((elapsed(sent), ending(Some(&error))));
                return Err((
                    error,
                    recording.map(|exchange| Box::new(TapeExchange { end, ..*exchange })),
                ));
            }
        };
        Ok(begun(response, sent, limits, recording))
    }

    /// Sends a request with other bytes as its body, and waits for the response's status and
    /// headers. `limits` also apply to the body.
    ///
    /// # Errors
    /// Why there is no response.
    pub async fn send_bytes(
        &self,
        request: Request,
        bytes: Bytes,
        limits: TimeLimits,
    ) -> Result<Response, Error> {
        let sent = Instant::now();
        self.check_server(&request)?;
        let response = limits
            .wait(self.open(request, Some(bytes)))
            .await?
            .map_err(|e| Error::from(&e))?;
        Ok(begun(response, sent, limits, None))
    }

    /// Sends a request whose response is small. Returns the body of a successful response, or
    /// `None` if the response is not a success, has more than `most` bytes, was cut off or is not
    /// UTF-8.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub async fn ask(&self, request: &Request, most: usize) -> Result<Option<String>, Error> {
        self.check_server(request)?;
        let mut response = self
            .open(request.clone(), None)
            .await
            .map_err(|e| Error::from(&e))?;
        let mut body = Vec::new();
        if !response.status().is_success() {
            return Ok(None);
        }
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) if body.len() + bytes.len() <= most => {
                    body.extend_from_slice(&bytes)
                }
                Ok(None) => return Ok(String::from_utf8(body).ok()),
                _ => return Ok(None),
            }
        }
    }

    /// Checks that a request goes to the server that a [`Guard`] checked, if there is one.
    fn check_server(&self, request: &Request) -> Result<(), Error> {
        let origin = || Url::parse(&request.url).map(|url| url.origin());
        match &self.only {
            Some(only) if origin() != Ok(only.origin()) => {
                let host = only.host_str().unwrap_or_default().to_owned();
                Err(Error::forbidden(&ForbiddenAddress::OtherServer(host)))
            }
            _ => Ok(()),
        }
    }

    async fn open(
        &self,
        request: Request,
        bytes: Option<Bytes>,
    ) -> reqwest::Result<reqwest::Response> {
        let method =
            reqwest::Method::from_bytes(request.method.as_bytes()).unwrap_or(reqwest::Method::POST);
        let mut builder = self.client.request(method, &request.url);
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        // The body may be large, so it is moved rather than copied, and freed once it is sent.
        let builder = match bytes {
            Some(bytes) => builder.body(bytes),
            None => builder.body(request.body),
        };
        builder.send().await
    }
}

/// Returns the response whose status and headers have arrived.
fn begun(
    response: reqwest::Response,
    sent: Instant,
    limits: TimeLimits,
    recording: Option<Box<TapeExchange>>,
) -> Response {
    let text =
        |v: &reqwest::header::HeaderValue| String::from_utf8_lossy(v.as_bytes()).into_owned();
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect();
    let head = Head {
        after: elapsed(sent),
        status: response.status().as_u16(),
        headers,
    };
    let body = LiveBody::new(response, sent, limits, &head, recording).into();
    Response { head, body }
}

/// Returns a builder with the settings that all clients share.
fn builder(connect_timeout: Duration) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(authorities::tls())
        .user_agent(concat!("toolpipe/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(connect_timeout)
        .tcp_nodelay(true)
}
