//! Requests to a provider beside those for answers: its models, whether it can be reached, the tokens of a request, and paths that are passed.

use super::{MODELS, QUESTION_TIME, REPLAY, Upstream};
use crate::asked::Asked;
use ::upstream::{Api, ListedModel, Request, ServerKind, error_message, listed_models, models_request, passed_request};
use answer::Failure;
use ask::{TurnDraft, TurnOptions, sentence};
use client::{Body, Error, Head, PieceContent, Response, TimeLimits, retry_after};
use hyper::body::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::time::Instant;

/// The most bytes of a provider's error.
const ERROR: usize = 1 << 20;

/// The most bytes of a count of tokens: `/tokenize` lists each token.
const TOKENS: usize = 64 << 20;

impl Upstream {
    /// The models that may be asked for.
    ///
    /// # Errors
    /// Why the provider does not give its list. A provider that has none gives an empty one.
    pub async fn models(&self) -> Result<Vec<ListedModel>, Failure> {
        if let Some(model) = self.provider.model() {
            return Ok(vec![model.into()]);
        }
        if let Some(playlist) = &self.playlist {
            let models = playlist.models();
            return Ok(if models.is_empty() {
                vec![REPLAY.into()]
            } else {
                models.into_iter().map(ListedModel::from).collect()
            });
        }
        if self.network.is_none() {
            return Ok(self.provider.recorded_model().map(ListedModel::from).into_iter().collect());
        }
        match self.list().await {
            Ok(body) => Ok(listed_models(&body)),
            Err(failure) if matches!(failure.status, 404 | 405 | 501) => Ok(vec![]),
            Err(failure) => Err(failure),
        }
    }

    /// The provider's list of models as it comes: the smallest request that needs its address, its key and its answer to be right.
    async fn list(&self) -> Result<String, Failure> {
        let request = models_request(self.provider.api, &self.provider.request_options());
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
            Err(failure) if !matches!(failure.status, 404 | 405 | 501) => Err(failure),
            _ => Ok(()),
        }
    }

    /// Warns where the provider cannot be reached. A server on this machine gets a connection without a request, which nobody counts.
    pub async fn warn_unreachable(&self) {
        if self.network.is_none() {
            return;
        }
        let route = &self.provider.route;
        let reached = if route.is_local {
            route.connect(QUESTION_TIME).await.map_err(|error| self.lost(&error))
        } else {
            self.list().await.map(drop)
        };
        if let Err(failure) = reached
            && matches!(&*failure.code, UNREACHABLE | TIMEOUT)
        {
            self.notices.warn(UNREACHABLE, &format!("{}; requests get an error until then", failure.message));
        }
    }

    /// The tokens that the provider counts for a request of Anthropic's API, which `body` is; `None` where it does not count.
    pub async fn count_tokens(&self, mut asked: Asked, body: &Bytes) -> Option<u64> {
        let model =
            self.provider.model().map(str::to_owned).or_else(|| asked.request.model.clone()).unwrap_or_default();
        let deadline = Instant::now() + QUESTION_TIME;
        let counting = async {
            self.network.as_ref().filter(|_| self.recorder.is_none())?;
            if self.provider.api == Api::Anthropic {
                let mut body: Value = serde_json::from_slice(body).ok()?;
                body["model"] = model.into();
                let answer = self.post("/v1/messages/count_tokens", &asked.headers, &body, ERROR).await?;
                return answer["input_tokens"].as_u64();
            }
            if self.server(&model).await.kind != ServerKind::LlamaCpp {
                return None;
            }
            // The prompt that the server would make of the request, and its tokens.
            let media = asked.request.estimated_media_tokens();
            let options = TurnOptions {
                model: Some(model),
                system: None,
                tools: asked.request.tools.clone(),
                tool_choice: None,
                params: vec![],
                headers: vec![],
                streams: false,
                id: None,
            };
            let mut turn = TurnDraft::new(Arc::clone(&self.provider), options);
            turn.converse(std::mem::take(&mut asked.request.conversation));
            let request = turn.request(turn.form).ok()?;
            let request: Value = serde_json::from_str(&request.body).ok()?;
            let prompt = self.post("/apply-template", &[], &request, TOKENS).await?;
            let text = json!({"content": prompt.get("prompt")?, "add_special": true, "parse_special": true});
            let tokens = self.post("/tokenize", &[], &text, TOKENS).await?;
            Some(tokens["tokens"].as_array()?.len() as u64 + media as u64)
        };
        tokio::time::timeout_at(deadline, counting).await.ok().flatten()
    }

    /// Posts JSON to a path of the server's; the JSON of a success.
    async fn post(&self, path: &str, headers: &[(String, String)], body: &Value, most: usize) -> Option<Value> {
        let json = ("content-type".to_owned(), "application/json".to_owned());
        let headers = [&[json], headers].concat();
        let request = passed_request(self.provider.api, &self.provider.request_options(), "POST", path, None, &headers);
        let answer = self.fetch(request, body.to_string().into(), most).await.ok()?;
        serde_json::from_str(&answer).ok()
    }

    /// Sends a request with these bytes as its body, and returns the body of a success.
    async fn fetch(&self, request: Request, bytes: Bytes, most: usize) -> Result<String, Failure> {
        let limits = TimeLimits { idle: None, deadline: Some(Instant::now() + QUESTION_TIME) };
        let Response { head, mut body } = self.send(request, bytes, limits).await?;
        let bytes = whole(&mut body, most).await.map_err(|error| self.lost(&error))?;
        let text = String::from_utf8_lossy(&bytes);
        if (200..300).contains(&head.status) { Ok(text.into_owned()) } else { Err(self.refused(&head, &text)) }
    }

    async fn send(&self, request: Request, bytes: Bytes, limits: TimeLimits) -> Result<Response, Failure> {
        let failure = |code: &str, message: String| Failure {
            status: 502,
            code: code.to_owned(),
            message: self.provider.redactor().text(&message).into_owned(),
            ..Failure::default()
        };
        let Some(network) = &self.network else {
            return Err(failure("no_provider", "every answer is recorded".into()));
        };
        self.provider.check(&request).map_err(|error| failure("invalid_request", format!("{error:#}")))?;
        network.send_bytes(request, bytes, limits).await.map_err(|error| self.lost(&error))
    }

    /// Sends a request for a path that is passed: `path` as the server has it, with the query and these headers of the client's. Returns the head of
    /// the answer with its body, which is at hand where the provider refuses.
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
        let options = self.provider.request_options();
        let request = passed_request(self.provider.api, &options, method, path, query, headers);
        let deadline = self.connection.timeout.map(|time| Instant::now() + time);
        let limits = TimeLimits { idle: Some(self.connection.idle_timeout), deadline };
        let Response { head, mut body } = self.send(request, bytes, limits).await?;
        match head.status {
            200..300 => Ok((head, Passed::Stream(body))),
            // A redirect would lead the client past this service.
            100..400 => Err(self.refused(&head, "a redirect, which is not followed; correct --base-url")),
            _ => {
                let bytes = whole(&mut body, ERROR).await.map_err(|error| self.lost(&error))?;
                // A server may repeat the key that it was sent.
                let text = self.provider.redactor().text(&String::from_utf8_lossy(&bytes)).into_owned();
                Ok((head, Passed::Refusal(text.into())))
            }
        }
    }

    /// Whether paths can be passed: there is a provider, and not recorded answers alone.
    pub fn passes(&self) -> bool {
        self.network.is_some()
    }

    /// The failure of a request without an answer.
    pub fn lost(&self, error: &Error) -> Failure {
        let (status, code) = if error.is_timeout() { (504, TIMEOUT) } else { (502, UNREACHABLE) };
        let message = self.provider.redactor().text(&sentence(error)).into_owned();
        Failure { status, code: code.to_owned(), message, ..Failure::default() }
    }

    fn refused(&self, head: &Head, body: &str) -> Failure {
        let message = error_message(head.status, body.as_bytes());
        let wait = retry_after(head, SystemTime::now());
        Failure {
            status: if head.status >= 400 { head.status } else { 502 },
            code: match head.status {
                401 | 403 => "upstream_key_refused".to_owned(),
                _ => "upstream_failed".to_owned(),
            },
            message: self.provider.redactor().text(&message).into_owned(),
            retry_after_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
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

/// The provider did not answer in time.
const TIMEOUT: &str = "upstream_timeout";

/// Reads a body to its end, or to `most` bytes.
async fn whole(body: &mut Body, most: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    loop {
        match body.next().await.what {
            PieceContent::Bytes(more) if bytes.len() + more.len() <= most => bytes.extend_from_slice(more),
            PieceContent::Bytes(_) | PieceContent::End => return Ok(bytes),
            PieceContent::Lost(error) => return Err(error),
        }
    }
}
