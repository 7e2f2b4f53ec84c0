//! The network.

use crate::lost::end;
use crate::resolve::Resolver;
use crate::route::Route;
use crate::source::{Piece, What};
use anyhow::{Context, Result};
use std::time::Duration;
use tokio::time::Instant;
use upstream::tape::{Ending, Exchange, Head, Read};
use upstream::{End, Request};

/// A way to one server.
#[derive(Debug)]
pub struct Network {
    client: reqwest::Client,
}

impl Network {
    /// Nothing is connected yet. Redirects are never followed: a key goes to the address it was meant for, and nowhere else.
    ///
    /// # Errors
    /// When the system's certificates cannot be read.
    pub fn new(connect_timeout: Duration, url: &str, route: &Route) -> Result<Network> {
        // Somebody else may have set one; ours is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = reqwest::Client::builder()
            .user_agent(concat!("toolpipe/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(connect_timeout)
            .tcp_nodelay(true)
            .dns_resolver(std::sync::Arc::new(Resolver));
        if let Some((host, addresses)) = &route.pinned {
            client = client.resolve_to_addrs(host, addresses);
        }
        if route.is_local {
            client = client.no_proxy();
            if url.starts_with("http:") {
                // Nothing will be encrypted, so the system's certificates need not be read: half of the time until the request.
                client = client.tls_certs_only([]);
            }
        }
        Ok(Network { client: client.build().context("TLS cannot be set up, check the system's certificates")? })
    }

    /// Sends a request and waits for the head of the answer. May be dropped while it waits.
    ///
    /// # Errors
    /// How the connection ended instead.
    pub async fn send(&self, request: &Request, sent: Instant) -> Result<(Head, reqwest::Response), End> {
        let response = self.open(request).await.map_err(|e| end(&e))?;
        let text = |v: &reqwest::header::HeaderValue| String::from_utf8_lossy(v.as_bytes()).into_owned();
        let headers = response.headers().iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        Ok((Head { after: elapsed(sent), status: response.status().as_u16(), headers }, response))
    }

    /// Asks something small: the body of a success, `None` for any other answer or one of more than `most` bytes. May be dropped while it
    /// waits.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn ask(&self, request: &Request, most: usize) -> Result<Option<String>, End> {
        let mut response = self.open(request).await.map_err(|e| end(&e))?;
        let mut body = Vec::new();
        if !response.status().is_success() {
            return Ok(None);
        }
        while let Ok(Some(bytes)) = response.chunk().await {
            if body.len() + bytes.len() > most {
                return Ok(None);
            }
            body.extend_from_slice(&bytes);
        }
        Ok(String::from_utf8(body).ok())
    }

    async fn open(&self, request: &Request) -> reqwest::Result<reqwest::Response> {
        let method = if request.method == "GET" { reqwest::Method::GET } else { reqwest::Method::POST };
        let mut builder = self.client.request(method, &request.url);
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        builder.body(request.body.clone()).send().await
    }
}

/// A response on its way.
#[derive(Debug)]
pub struct Live {
    response: reqwest::Response,
    sent: Instant,
    chunk: Vec<u8>,
    /// When the last line of the recording happened, and the recording, if one is made.
    last: Duration,
    recording: Option<Exchange>,
    /// When the end came, or was decided.
    ended: Option<Duration>,
}

impl Live {
    /// The body of an answer. `recording` holds its request and gets everything that follows.
    pub fn new(response: reqwest::Response, head: &Head, sent: Instant, recording: Option<Exchange>) -> Live {
        let recording = recording.map(|exchange| Exchange { head: Some(head.clone()), ..exchange });
        Live { response, sent, chunk: vec![], last: head.after, recording, ended: None }
    }

    /// Waits for the next bytes. May be dropped while it waits.
    pub async fn next(&mut self) -> Piece<'_> {
        let got = self.response.chunk().await;
        let at = elapsed(self.sent);
        let what = match got {
            Ok(Some(bytes)) => {
                self.chunk.clear();
                self.chunk.extend_from_slice(&bytes);
                if let Some(exchange) = &mut self.recording {
                    exchange.reads.push(Read { after: at.saturating_sub(self.last), bytes: self.chunk.clone() });
                    self.last = at;
                }
                What::Bytes(&self.chunk)
            }
            Ok(None) => {
                self.ended = Some(at);
                What::End(End::Eof)
            }
            Err(e) => {
                self.ended = Some(at);
                What::End(end(&e))
            }
        };
        Piece { at: Some(at), what }
    }

    /// Nobody waits any more: gives the time, which is that of the end.
    pub fn stop(&mut self) -> Duration {
        *self.ended.insert(elapsed(self.sent))
    }

    /// What was recorded; the answer ended like this.
    pub fn recorded(self, end: &End) -> Option<Exchange> {
        let after = self.ended.unwrap_or_else(|| elapsed(self.sent)).saturating_sub(self.last);
        Some(Exchange { end: Some((after, ending(end))), ..self.recording? })
    }
}

/// The word on a tape for an end that the network brought.
pub fn ending(end: &End) -> Ending {
    match end {
        End::Reset(_) => Ending::Reset,
        End::Timeout(_) => Ending::Timeout,
        End::Eof | End::Cancelled => Ending::Eof,
    }
}

/// Since `since`, in the microseconds that a tape holds.
pub fn elapsed(since: Instant) -> Duration {
    Duration::from_micros(u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX))
}
