//! Requests to a provider beside those for answers: its models, whether it can be reached, and
//! paths that are passed.

use crate::log::Notices;
use api::{Failure, Request, error_message, host_of, models_request, passed_request, plain_url};
use ask::{ConnectionSettings, Provider, sentence};
use client::{Body, Error, Head, Network, PieceContent, Response, TimeLimits, retry_after};
use hyper::body::Bytes;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// The longest time for a small question to a provider, such as its list of models: Claude Code
/// waits three seconds for the whole answer.
pub const QUESTION_TIME: Duration = Duration::from_millis(2500);

/// The most bytes of a provider's list of models.
const MODELS: usize = 16 << 20;

/// The most bytes of a provider's error.
const ERROR: usize = 1 << 20;

/// The way to a provider for requests that are not for answers.
#[derive(Debug)]
pub struct Direct {
    /// Who is asked.
    pub provider: Arc<Provider>,
    /// The provider with the key that its file had last.
    pub renewed: RefCell<Option<Arc<Provider>>>,
    /// `None` if every answer is recorded.
    pub network: Option<Network>,
    /// Whether a tape is used. Then nobody is asked what only changes an answer, because a replay
    /// must give the same one without a network.
    pub is_taped: bool,
    /// How the provider is reached.
    pub connection: ConnectionSettings,
    /// Where a warning goes.
    pub notices: Notices,
}

impl Direct {
    /// The provider with the key that counts now.
    pub fn current(&self) -> Arc<Provider> {
        Arc::clone(self.renewed.borrow().as_ref().unwrap_or(&self.provider))
    }

    /// The provider's list of models as it comes: the smallest request that needs its address, its
    /// key and its answer to be right.
    ///
    /// # Errors
    /// Why the list could not be had. With a status of [`lacks`] the provider has answered, and has
    /// no such list.
    pub async fn list(&self) -> Result<String, Failure> {
        let request = models_request(self.provider.api, &self.current().request_options());
        self.fetch(request, Bytes::new(), MODELS).await
    }

    /// Asks whether the provider answers.
    ///
    /// # Errors
    /// Why it does not.
    pub async fn check(&self) -> Result<(), Failure> {
        if self.network.is_none() {
            return Ok(());
        }
        match self.list().await {
            Err(failure) if !lacks(&failure) => Err(failure),
            _ => Ok(()),
        }
    }

    /// Warns where the provider cannot be reached. A server on this machine gets a connection
    /// without a request, which nobody counts.
    pub async fn warn_unreachable(&self) {
        if self.network.is_none() {
            return;
        }
        let route = &self.provider.route;
        let reached = if route.is_local {
            route
                .connect(QUESTION_TIME)
                .await
                .map_err(|error| self.failed(&error, None))
        } else {
            self.list().await.map(drop)
        };
        if let Err(failure) = reached
            && matches!(&*failure.code, UNREACHABLE | TIMEOUT | KEY_REFUSED)
        {
            self.notices.warn(
                &failure.code,
                &format!("{}; until then requests get an error", failure.message),
            );
        }
    }

    /// Posts JSON to a path of the server's. Returns the body of a success; `None` for anything
    /// else, and for one of more than `most` bytes.
    pub async fn post(
        &self,
        path: &str,
        headers: &[(String, String)],
        json: Bytes,
        most: usize,
    ) -> Option<String> {
        let kind = ("content-type".to_owned(), "application/json".to_owned());
        let headers = [&[kind], headers].concat();
        let request = passed_request(
            self.provider.api,
            &self.current().request_options(),
            "POST",
            path,
            None,
            &headers,
        );
        self.fetch(request, json, most).await.ok()
    }

    /// Sends a request with these bytes as its body, and returns the body of a success.
    async fn fetch(&self, request: Request, bytes: Bytes, most: usize) -> Result<String, Failure> {
        let fetched = async {
            let Response { head, mut body } =
                self.send(request, bytes, TimeLimits::default()).await?;
            let bytes = whole(&mut body, most)
                .await
                .map_err(|error| self.lost(&error))?;
            let text = String::from_utf8_lossy(&bytes);
            if (200..300).contains(&head.status) {
                Ok(text.into_owned())
            } else {
                Err(self.refused(&head, &text))
            }
        };
        tokio::time::timeout(QUESTION_TIME, fetched).await.unwrap_or_else(|_| {
            let server = plain_url(&self.provider.route.url);
            let message = format!("no answer from {server} within {QUESTION_TIME:?}; check the address in --base-url");
            Err(Failure { status: 504, code: TIMEOUT.to_owned(), message, ..Failure::default() })
        })
    }

    async fn send(
        &self,
        request: Request,
        bytes: Bytes,
        limits: TimeLimits,
    ) -> Result<Response, Failure> {
        let failure = |code: &str, message: String| Failure {
            status: 502,
            code: code.to_owned(),
            message: self.current().redactor().text(&message).into_owned(),
            ..Failure::default()
        };
        let Some(network) = &self.network else {
            return Err(failure("no_provider", "every answer is recorded".into()));
        };
        self.provider
            .check(&request)
            .map_err(|error| failure("invalid_request", format!("{error:#}")))?;
        network
            .send_bytes(request, bytes, limits)
            .await
            .map_err(|error| self.lost(&error))
    }

    /// Sends a request for a path that is passed: `path` as the server has it, with the query and
    /// these headers of the client's. Returns the head of the answer with its body, which is at
    /// hand where the provider refuses.
    ///
    /// # Errors
    /// Why no answer came.
    pub async fn pass(
        &self,
        method: &'static str,
        path: &str,
        query: Option<&str>,
        headers: &[(String, String)],
        bytes: Bytes,
    ) -> Result<(Head, Passed), Failure> {
        let options = self.current().request_options();
        let request = passed_request(self.provider.api, &options, method, path, query, headers);
        let deadline = self.connection.timeout.map(|time| Instant::now() + time);
        let limits = TimeLimits {
            idle: Some(self.connection.idle_timeout),
            deadline,
        };
        let Response { head, mut body } = self.send(request, bytes, limits).await?;
        match head.status {
            200..300 => Ok((head, Passed::Stream(body))),
            // A redirect would lead the client past this service.
            100..400 => Err(self.refused(
                &head,
                "a redirect, which is not followed; correct --base-url",
            )),
            _ => {
                let bytes = whole(&mut body, ERROR)
                    .await
                    .map_err(|error| self.lost(&error))?;
                // A server may repeat the key that it was sent.
                let text = self
                    .current()
                    .redactor()
                    .text(&String::from_utf8_lossy(&bytes))
                    .into_owned();
                Ok((head, Passed::Refusal(text.into())))
            }
        }
    }

    /// Whether paths can be passed: there is a provider, and not recorded answers alone.
    pub fn passes(&self) -> bool {
        self.network.is_some()
    }

    /// The failure of a request without an answer, in words for a client.
    pub fn lost(&self, error: &Error) -> Failure {
        self.failed(error, Some(&host_of(&self.provider.route.url)))
    }

    /// The same in words for whoever started the service, or for a client who reads the name of the
    /// `server`.
    fn failed(&self, error: &Error, server: Option<&str>) -> Failure {
        let (status, code) = if error.is_timeout() {
            (504, TIMEOUT)
        } else {
            (502, UNREACHABLE)
        };
        let message = self
            .current()
            .redactor()
            .text(&sentence(error, server))
            .into_owned();
        Failure {
            status,
            code: code.to_owned(),
            message,
            ..Failure::default()
        }
    }

    fn refused(&self, head: &Head, body: &str) -> Failure {
        let message = error_message(head.status, body.as_bytes());
        let wait = retry_after(head, SystemTime::now());
        Failure {
            status: if head.status >= 400 { head.status } else { 502 },
            code: match head.status {
                401 | 403 => KEY_REFUSED.to_owned(),
                _ => "upstream_failed".to_owned(),
            },
            message: self.current().redactor().text(&message).into_owned(),
            retry_after_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            ..Failure::default()
        }
    }
}

/// The body of an answer to a request that is passed.
#[derive(Debug)]
pub enum Passed {
    /// It streams.
    Stream(Body),
    /// The words of a provider that refuses.
    Refusal(Bytes),
}

/// The provider cannot be reached, or the connection to it was lost.
const UNREACHABLE: &str = "upstream_unreachable";

/// The provider does not take the key.
const KEY_REFUSED: &str = "upstream_key_refused";

/// The provider did not answer in time.
const TIMEOUT: &str = "upstream_timeout";

/// Whether a provider has no such path.
pub fn lacks(failure: &Failure) -> bool {
    matches!(failure.status, 404 | 405 | 501)
}

/// Reads a body to its end, or to `most` bytes.
async fn whole(body: &mut Body, most: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    loop {
        match body.next().await.what {
            PieceContent::Bytes(more) if bytes.len() + more.len() <= most => {
                bytes.extend_from_slice(more)
            }
            PieceContent::Bytes(_) | PieceContent::End => return Ok(bytes),
            PieceContent::Lost(error) => return Err(error),
        }
    }
}
