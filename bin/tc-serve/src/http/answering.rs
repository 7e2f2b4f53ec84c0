//! One answer while it is made: its source, its machines, its signs of life.

use super::body;
use super::refusal::Refusal;
use super::response::{Exchange, ResponseBody};
use super::route::Route;
use super::{Admitted, Service, whole};
use crate::access_log::AccessLine;
use crate::asked::Asked;
use crate::pipe::{EventLines, Output, Pipe};
use ::upstream::{Api, InboundRequest};
use answer::{AnswerOptions, Encoder, Form, Front, NamespacedName};
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Request, Response, StatusCode};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, Sleep, sleep};

/// The time that a client of a full service is asked to wait.
const FULL_MS: u64 = 1000;

/// One answer while it is made. The response's body polls it, so that a client that reads slowly slows its source, and one that leaves
/// ends it.
pub struct Answering {
    work: Pin<Box<dyn Future<Output = ()>>>,
    pipe: Rc<Pipe>,
    has_ended: bool,
    /// When the next sign of life is due.
    timer: Pin<Box<Sleep>>,
    keep_alive: Duration,
}

impl Answering {
    /// Polls the source until it has to wait.
    fn poll_work(&mut self, cx: &mut Context<'_>) {
        if !self.has_ended && self.work.as_mut().poll(cx).is_ready() {
            self.has_ended = true;
            self.pipe.finish();
            // What the source held is closed before the last byte is on its way.
            self.work = Box::pin(async {});
        }
    }

    /// The next bytes of the answer; `None` after the last.
    pub fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        self.poll_work(cx);
        let mut bytes = self.pipe.take();
        if bytes.is_empty() {
            if self.has_ended {
                return Poll::Ready(None);
            }
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.pipe.keep_alive();
            bytes = self.pipe.take();
        }
        self.timer.as_mut().reset(Instant::now() + self.keep_alive);
        // Registers the timer for the next wait.
        let _ = self.timer.as_mut().poll(cx);
        Poll::Ready(Some(bytes))
    }

    /// Waits until the status is known: the answer has content, or has ended. A stream does not wait longer than `most`.
    async fn until_known(&mut self, most: Option<Duration>) {
        let known = poll_fn(|cx| {
            self.poll_work(cx);
            let is_known = self.has_ended || (most.is_some() && self.pipe.has_begun());
            if is_known { Poll::Ready(()) } else { Poll::Pending }
        });
        match most {
            // An error means that the time has passed, which is an end of the wait, too.
            Some(most) => drop(tokio::time::timeout(most, known).await),
            None => known.await,
        }
    }

    /// Adds to the log what is known of the answer.
    pub fn note(&self, line: &mut AccessLine) {
        let counts = self.pipe.counts();
        (line.calls, line.warnings) = (counts.calls, counts.warnings);
        line.error = self.pipe.failure().map(|failure| failure.code);
    }
}

impl Service {
    /// Answers a request of a front, or one for events.
    pub(super) async fn turn(
        self: &Rc<Self>,
        request: Request<Incoming>,
        admitted: &Admitted,
        exchange: &mut Exchange,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let (headers, bytes) = body::read(request, &self.limits).await?;
        let front = admitted.route.front().unwrap_or(Front::Chat);
        let api = api_of(front);
        let inbound =
            ::upstream::inbound(api, &bytes).map_err(|e| Refusal::new(400, "invalid_request_error", e.to_string()))?;
        exchange.line().notes.clone_from(&inbound.notes);
        let wants_events = admitted.route == Route::Events;
        let is_stream = inbound.streams || wants_events;
        let (output, kind) = if wants_events {
            let accepts = headers.get("accept").and_then(|accept| accept.to_str().ok()).unwrap_or_default();
            let is_sse = accepts.contains("text/event-stream");
            let kind = if is_sse { EVENT_STREAM } else { "application/x-ndjson; charset=utf-8" };
            (Output::Events(EventLines::new(is_sse)), kind)
        } else {
            let form = if inbound.streams { Form::Stream } else { Form::Whole };
            let options = self.answer_options(front, admitted, &inbound, &bytes);
            let kind = if inbound.streams { EVENT_STREAM } else { "application/json" };
            (Output::Answer(Box::new(Encoder::new(front, form, options))), kind)
        };
        drop(bytes);
        let asked = Asked { id: admitted.id.clone(), api, request: inbound, headers: forwarded(api, &headers) };
        drop(headers);
        let mut answering = self.answering(asked, output, admitted.key);
        answering.until_known(is_stream.then_some(self.limits.status_time)).await;
        answering.note(exchange.line());
        if let Some(failure) = answering.pipe.failure().filter(|_| answering.has_ended && !answering.pipe.has_begun()) {
            return Err(Refusal { failure, allow: None });
        }
        if !is_stream {
            return Ok(whole(StatusCode::OK, kind, answering.pipe.take()));
        }
        answering.pipe.begin();
        let mut response = Response::new(ResponseBody::stream(answering));
        let headers = response.headers_mut();
        headers.insert("content-type", HeaderValue::from_static(kind));
        headers.insert("cache-control", HeaderValue::from_static("no-cache"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(response)
    }

    fn answering(self: &Rc<Self>, asked: Asked, output: Output, key: Option<usize>) -> Box<Answering> {
        let pipe =
            Rc::new(Pipe::new(self.pipe.clone(), self.source.reads_text(), self.source.turns(&asked.request), output));
        let (service, feed) = (Rc::clone(self), Rc::clone(&pipe));
        let work = async move {
            let places = service.places(key);
            let answer = async {
                match places.take().await {
                    Some(_place) => service.source.run(&asked, &feed).await,
                    None => feed.fail("too_many_requests", "too many answers are open", 429, Some(FULL_MS)),
                }
            };
            tokio::select! {
                biased;
                () = answer => {}
                () = service.ending.is_cut() => feed.fail("shutting_down", "the server is being stopped", 503, None),
            }
        };
        let (keep_alive, timer) = (self.keep_alive, Box::pin(sleep(self.keep_alive)));
        Box::new(Answering { work: Box::pin(work), pipe, has_ended: false, timer, keep_alive })
    }

    fn answer_options(
        &self,
        front: Front,
        admitted: &Admitted,
        inbound: &InboundRequest,
        body: &Bytes,
    ) -> AnswerOptions {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        AnswerOptions {
            id: admitted.id.clone(),
            model: inbound.model.clone().unwrap_or_default(),
            created,
            choices: Some(
                inbound.params.get("n").and_then(serde_json::Value::as_u64).map_or(1, |n| n.clamp(1, 128) as u32),
            ),
            include_usage: inbound.include_usage,
            extras: self.extras,
            echo: if front == Front::Responses { echo(body) } else { Vec::new() },
            custom_tools: inbound.custom_tools.clone(),
            namespaced_tools: inbound.namespaced_tools.iter().map(namespaced_name).collect(),
        }
    }

    /// Estimates the tokens of a request of Anthropic's API.
    pub(super) async fn count_tokens(&self, request: Request<Incoming>) -> Result<Response<ResponseBody>, Refusal> {
        let (_, bytes) = body::read(request, &self.limits).await?;
        let inbound = ::upstream::inbound(Api::Anthropic, &bytes)
            .map_err(|e| Refusal::new(400, "invalid_request_error", e.to_string()))?;
        let body = format!("{{\"input_tokens\":{}}}", inbound.estimated_tokens());
        let mut response = whole(StatusCode::OK, "application/json", body.into_bytes());
        response.headers_mut().insert("x-toolpipe-estimate", HeaderValue::from_static("true"));
        Ok(response)
    }
}

fn namespaced_name(tool: &::upstream::NamespacedTool) -> NamespacedName {
    let ::upstream::NamespacedTool { full_name, namespace, name } = tool.clone();
    NamespacedName { full_name, namespace, name }
}

const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

fn api_of(front: Front) -> Api {
    match front {
        Front::Chat => Api::OpenaiChat,
        Front::Responses => Api::OpenaiResponses,
        Front::Messages => Api::Anthropic,
    }
}

/// The headers that a provider of the client's own API may get.
fn forwarded(api: Api, headers: &HeaderMap) -> Vec<(String, String)> {
    let values = |name: &&'static str| {
        let values: Vec<&str> = headers.get_all(*name).iter().filter_map(|value| value.to_str().ok()).collect();
        (!values.is_empty()).then(|| ((*name).to_owned(), values.join(",")))
    };
    ::upstream::forwarded_headers(api).iter().filter_map(values).collect()
}

/// The members of a request that an answer of OpenAI Responses repeats.
/// Source: <https://platform.openai.com/docs/api-reference/responses/object>.
fn echo(body: &Bytes) -> Vec<(String, String)> {
    const REPEATED: [&str; 21] = [
        "background",
        "conversation",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt_cache_key",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    ];
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(body).unwrap_or_default();
    let repeated = REPEATED.into_iter().filter_map(|name| Some((name, members.get(name)?.get())));
    repeated.filter(|(_, json)| *json != "null").map(|(name, json)| (name.to_owned(), json.to_owned())).collect()
}
