//! A request for an answer, or for its events.

use super::answering::Answering;
use super::body;
use super::refusal::Refusal;
use super::response::{Exchange, KeptBytes, ResponseBody, whole};
use super::retries::client_retries;
use super::route::Route;
use super::service::{Admitted, Service};
use crate::asked::Asked;
use crate::budget::FULL_MS;
use crate::pipe::{EventLines, Output, Pipe, TextSearch};
use api::{AnswerOptions, Api, Encoder, Form, Front, InboundRequest, Message, REPEATED};
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Request, Response, StatusCode};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

impl Service {
    /// Answers a request of a front, or one for events.
    pub(super) async fn turn(
        self: &Rc<Self>,
        request: Request<Incoming>,
        admitted: &Admitted,
        exchange: &mut Exchange,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let mut share = self.pipe.budget.share();
        let (headers, bytes) = body::read(request, body::JSON, &self.limits, &mut share).await?;
        exchange.begin_answer();
        let front = admitted.route.front().unwrap_or(Front::Chat);
        let api = front.api();
        let inbound = body::inbound(api, &bytes, &mut share).await?;
        exchange.line().notes.clone_from(&inbound.notes);
        if !self.source.is_of(api) {
            exchange
                .line()
                .notes
                .extend_from_slice(&inbound.foreign_notes);
        }
        self.source.check(api, &inbound).map_err(body::refused)?;
        let wants_events = admitted.route == Route::Events;
        let is_stream = inbound.streams || wants_events;
        let (output, kind) = if wants_events {
            let accepts = headers
                .get("accept")
                .and_then(|accept| accept.to_str().ok())
                .unwrap_or_default();
            let is_sse = accepts.contains("text/event-stream");
            let kind = if is_sse {
                EVENT_STREAM
            } else {
                "application/x-ndjson; charset=utf-8"
            };
            (Output::Events(EventLines::new(is_sse)), kind)
        } else {
            let form = if inbound.streams {
                Form::Stream
            } else {
                Form::Whole
            };
            let options = self.answer_options(front, admitted, &inbound, &bytes);
            let kind = if inbound.streams {
                EVENT_STREAM
            } else {
                "application/json"
            };
            (
                Output::Answer(Box::new(Encoder::new(front, form, options))),
                kind,
            )
        };
        drop(bytes);
        let asked = Asked {
            share,
            key: admitted.key,
            id: admitted.id.clone(),
            api,
            request: inbound,
            retries: client_retries(&headers),
            headers: forwarded(api, &headers),
        };
        drop(headers);
        let mut answering = self.answering(asked, output);
        answering
            .until_known(is_stream.then_some(self.limits.status_time))
            .await;
        answering.note(exchange.line());
        if let Some(failure) = answering.refusal() {
            return Err(Refusal {
                headers: answering.pipe().limits(),
                ..failure.into()
            });
        }
        if !is_stream {
            let (bytes, share) = answering.pipe().take_whole();
            let mut response = whole(StatusCode::OK, kind, KeptBytes::of(bytes, share));
            response.headers_mut().extend(answering.pipe().limits());
            return Ok(response);
        }
        answering.pipe().begin();
        let limits = answering.pipe().limits();
        let mut response = Response::new(ResponseBody::stream(answering));
        let headers = response.headers_mut();
        headers.extend(limits);
        headers.insert("content-type", HeaderValue::from_static(kind));
        headers.insert("cache-control", HeaderValue::from_static("no-cache"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(response)
    }

    fn answering(self: &Rc<Self>, asked: Asked, output: Output) -> Box<Answering> {
        let search = match asked.request.tool_choice.as_deref() {
            _ if !self.source.reads_text() => TextSearch::Nothing,
            Some("none") => TextSearch::Reasoning,
            _ => TextSearch::Calls,
        };
        let mut settings = self.pipe.clone();
        if self.source.reads_text() {
            let calls = asked
                .request
                .conversation
                .messages
                .iter()
                .flat_map(Message::calls);
            Rc::make_mut(&mut settings.accumulate).taken_ids =
                calls.map(|call| call.id.to_owned()).collect();
        }
        let pipe = Rc::new(Pipe::new(
            settings,
            search,
            self.source.turns(&asked.request),
            output,
        ));
        let (service, feed) = (Rc::clone(self), Rc::clone(&pipe));
        let work = async move {
            let places = service.places(asked.key);
            let answer = async {
                match places.take(asked.key).await {
                    Some(_place) => service.source.run(asked, &feed).await,
                    None => feed.fail(
                        "too_many_requests",
                        "too many answers are open",
                        429,
                        Some(FULL_MS),
                    ),
                }
            };
            tokio::select! {
                biased;
                () = answer => {}
                () = service.ending.is_cut() => feed.fail("shutting_down", "the server is being stopped", 503, None),
            }
        };
        Box::new(Answering::new(work, pipe, self.keep_alive))
    }

    fn answer_options(
        &self,
        front: Front,
        admitted: &Admitted,
        inbound: &InboundRequest,
        body: &Bytes,
    ) -> AnswerOptions {
        AnswerOptions {
            id: admitted.id.clone(),
            keeps_ids: self.source.keeps_ids(),
            provider_id: None,
            clock: Some(now),
            model: inbound.model.clone().unwrap_or_default(),
            created: now(),
            choices: Some(
                inbound
                    .params
                    .get("n")
                    .and_then(serde_json::Value::as_u64)
                    .map_or(1, |n| n.clamp(1, 128) as u32),
            ),
            include_usage: inbound.include_usage,
            extras: self.extras,
            echo: if front == Front::Responses {
                echo(body)
            } else {
                Vec::new()
            },
            custom_tools: inbound.custom_tools.clone(),
            namespaced_tools: inbound.namespaced_tools.clone(),
        }
    }
}

/// The seconds since 1970.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

/// The headers that a provider of the client's own API may get.
pub(super) fn forwarded(api: Api, headers: &HeaderMap) -> Vec<(String, String)> {
    let values = |name: &&'static str| {
        let values: Vec<&str> = headers
            .get_all(*name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        (!values.is_empty()).then(|| ((*name).to_owned(), values.join(",")))
    };
    api::forwarded_headers(api)
        .iter()
        .filter_map(values)
        .collect()
}

/// The members of a request that an answer of OpenAI Responses repeats, and their JSON.
fn echo(body: &Bytes) -> Vec<(String, String)> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(body).unwrap_or_default();
    let repeated = REPEATED
        .into_iter()
        .filter_map(|name| Some((name, members.get(name)?.get())));
    repeated
        .filter(|(_, json)| *json != "null")
        .map(|(name, json)| (name.to_owned(), json.to_owned()))
        .collect()
}
