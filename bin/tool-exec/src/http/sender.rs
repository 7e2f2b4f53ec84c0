//! Sends a request to the server that its tool names, and follows redirects.

use client::{
    Error, Guard, Network, Proxy, RedirectError, Request, Response, Route, TimeLimits, follow,
    redirect,
};
use redact::is_secret_header;
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;
use tool::{AllowedAddresses, CALL_ID, HttpRequest, HttpRun, VariableError};
use trace::TraceContext;

/// The time limit for connecting.
const CONNECT: Duration = Duration::from_secs(10);

/// Sends requests.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    /// The networks for the tools' servers, by the settings that determine them. Kept because
    /// creating one reads the system's certificates.
    networks: RefCell<HashMap<String, Network>>,
}

/// Why a request got no response.
#[derive(Debug)]
pub(crate) enum SendError {
    /// A variable that the query or a header needs is missing or invalid.
    Variable(VariableError),
    /// The network failed. `is_sent` means that a byte of the request, or of an earlier redirected
    /// request, may have reached a server. `server` is the host and port that the request was for.
    Network {
        error: Error,
        is_sent: bool,
        server: String,
    },
    /// The server redirected to an address that is not followed.
    Redirect(RedirectError),
}

impl Sender {
    /// Sends the request of a call and waits for the head of the response. `id` is the call's
    /// idempotency key, `trace` its span. A redirect beyond the limit is returned as the response.
    ///
    /// # Errors
    /// See [`SendError`].
    pub(crate) async fn send(
        &self,
        http: &HttpRun,
        request: &HttpRequest,
        id: &str,
        trace: Option<&TraceContext>,
        limits: TimeLimits,
    ) -> Result<Response, SendError> {
        let (mut request, named) =
            with_variables(http, request, id).map_err(SendError::Variable)?;
        for (name, value) in trace.into_iter().flat_map(TraceContext::headers) {
            // A header set in the tools file takes precedence.
            if !request
                .headers
                .iter()
                .any(|(typed, _)| typed.eq_ignore_ascii_case(name))
            {
                request.headers.push((name.to_owned(), value));
            }
        }
        let in_header = |name: &String| is_secret_header(name) || named.contains(name);
        let mut hop = 0;
        loop {
            let has_secret = request.headers.iter().any(|(name, _)| in_header(name))
                || (hop == 0
                    && http
                        .query
                        .iter()
                        .any(|(_, text)| text.variables().next().is_some()))
                || !client::secrets_in_url(&request.url).is_empty();
            let failed = |error: Error| SendError::Network {
                is_sent: hop > 0 || !error.kind.is_before_sending(),
                error,
                server: server_of(&request.url),
            };
            let network = self
                .network(http, &request.url, has_secret, hop == 0)
                .map_err(failed)?;
            let sent = network.send(request.clone(), limits, None).await;
            let response = sent.map_err(|(error, _)| failed(error))?;
            let Some(place) = redirect(&response.head).filter(|_| hop < http.redirects) else {
                return Ok(response);
            };
            request = follow(&request, response.head.status, place).map_err(SendError::Redirect)?;
            hop += 1;
        }
    }

    /// Returns the network for the server of `url`.
    fn network(
        &self,
        http: &HttpRun,
        url: &str,
        has_secret: bool,
        is_own: bool,
    ) -> Result<Network, Error> {
        let only_loopback = has_secret && url.starts_with("http:") && !http.insecure;
        let key = format!(
            "{} {only_loopback} {:?} {:?}",
            http.origin(),
            http.proxy,
            http.allow
        );
        if is_own && let Some(network) = self.networks.borrow().get(&key) {
            return Ok(network.clone());
        }
        let proxy = http.proxy.as_ref().map(|url| Proxy { url: url.clone() });
        let network = guarded(url, is_own, &http.allow, only_loopback, proxy.as_ref())?;
        if is_own {
            self.networks.borrow_mut().insert(key, network.clone());
        }
        Ok(network)
    }
}

/// Returns a network that connects only to public internet addresses and to addresses that the
/// tools file allows. With `is_own`, the tools file itself names `url`, so a loopback address in it
/// is intended. With `only_loopback`, connections must stay on this machine.
///
/// # Errors
/// If the address is invalid.
pub(crate) fn guarded(
    url: &str,
    is_own: bool,
    allow: &AllowedAddresses,
    only_loopback: bool,
    proxy: Option<&Proxy>,
) -> Result<Network, Error> {
    let allow = allow.clone();
    let is_local = is_own && Route::of(url).is_local;
    let mut guard = Guard::new(move |host, address| {
        (is_local && address.ip().is_loopback()) || allow.allows(host, address.ip(), address.port())
    });
    if only_loopback {
        guard = guard.only_loopback();
    }
    Network::guarded(url, guard, CONNECT, proxy)
}

/// Returns the host and port of a URL, in the form used in `allow`.
fn server_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
    let port = if scheme == "https" { 443 } else { 80 };
    match host.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => host.to_owned(),
        _ => format!("{host}:{port}"),
    }
}

/// Returns the request with variables filled in, and the names of the headers that contain them.
fn with_variables(
    http: &HttpRun,
    request: &HttpRequest,
    id: &str,
) -> Result<(Request, Vec<String>), VariableError> {
    let value = |name: &str| {
        if name == CALL_ID {
            Some(id.to_owned())
        } else {
            crate::variable(name)
        }
    };
    let mut url = request.url.clone();
    for (name, text) in &http.query {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(&format!(
            "{name}={}",
            event::url::percent_encoded(&text.fill(value)?)
        ));
    }
    let mut headers = Vec::new();
    for (name, text) in &http.headers {
        headers.push((name.clone(), text.fill(value)?));
    }
    let (media_type, body) = match &request.body {
        Some((media_type, body)) => (Some(*media_type), body.clone()),
        None => (None, String::new()),
    };
    if let Some(media_type) =
        media_type.filter(|_| !headers.iter().any(|(name, _)| name == "content-type"))
    {
        headers.push(("content-type".to_owned(), media_type.to_owned()));
    }
    let named = http
        .headers
        .iter()
        .filter(|(_, text)| text.variables().next().is_some());
    let named = named.map(|(name, _)| name.clone()).collect();
    Ok((
        Request {
            method: request.method,
            url,
            headers,
            body,
        },
        named,
    ))
}
