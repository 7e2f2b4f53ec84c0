//! Handles a request for a response, or for a response's events.

use super::body;
use super::headers::{accepts_sse, client_retries, forwarded};
use super::kept_request::KeptRequest;
use super::response::{Answering, Refusal, RequestRecord, ResponseBody, respond};
use super::service::{Admitted, Service};
use crate::budget::FULL_MS;
use crate::client_request::ClientRequest;
use crate::front::AnyFront;
use crate::pipe::{Pipe, PipeOutput, TextSearch};
use crate::traces::{AnswerTrace, client_trace};
use crate::turns::Turns;
use api::{AnswerForm, AnswerOptions, Clock, Front, InboundRequest, Message, REPEATED};
use api::{UiOptions, UiRunner};
use hyper::body::{Bytes, Incoming};
use hyper::{HeaderMap, Request, Response};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};
use trace::SpanContext;

impl Service {
    /// Answers a request in a client's protocol, or one for events.
    pub(super) async fn turn(
        self: &Rc<Self>,
        request: Request<Incoming>,
        admitted: &Admitted,
        front: AnyFront,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let mut share = self.pipe.budget.share();
        let (headers, bytes) =
            body::read(request, body::ONLY_JSON, &self.limits, &mut share).await?;
        exchange.begin_answer();
        let api = front.api();
        let bytes = match front {
            AnyFront::Api(Front::Responses) => self.with_items(bytes, admitted).await?,
            _ => bytes,
        };
        let mut inbound = body::inbound(front, &bytes, &mut share).await?;
        let notes = &mut exchange.line.notes;
        notes.clone_from(&inbound.notes);
        if self
            .source
            .upstream(inbound.model.as_deref())
            .is_none_or(|upstream| upstream.api() != api)
        {
            notes.extend_from_slice(&inbound.foreign_notes);
        }
        if let Some(sessions) = self.keeps(front, &headers, &inbound) {
            let asked = KeptRequest {
                admitted,
                front,
                headers: &headers,
                inbound,
                body: bytes,
                share,
            };
            return self.kept_turn(&sessions, asked, exchange).await;
        }
        self.recall(admitted, &mut inbound, &mut share).await?;
        self.source.check(api, &inbound).map_err(body::refused)?;
        let is_stream = front.streams(&inbound);
        let client = client_trace(&headers);
        let (output, kind) = self.output(front, &admitted.id, &headers, &inbound, &bytes);
        drop(bytes);
        let asked = ClientRequest {
            share,
            key: admitted.key,
            id: admitted.id.clone(),
            api,
            request: inbound,
            retries: client_retries(&headers),
            headers: forwarded(api, &headers),
            trace: self.trace_of(&admitted.id, client.as_ref()),
        };
        drop(headers);
        let client = client.map(|client| client.span);
        let mut answering = self.answering(asked, front.name(), client, output);
        let longest = is_stream.then_some(self.limits.status_timeout);
        answering.until_known(longest).await;
        answering.note(&mut exchange.line);
        if let Some(failure) = answering.refusal() {
            return Err(Refusal {
                headers: answering.pipe.limits(),
                ..failure.into()
            });
        }
        Ok(respond(answering, is_stream, kind, front))
    }

    /// Returns the output format of the response, and its media type.
    fn output(
        &self,
        front: AnyFront,
        id: &str,
        headers: &HeaderMap,
        inbound: &InboundRequest,
        body: &Bytes,
    ) -> (PipeOutput, &'static str) {
        match front {
            AnyFront::Events => PipeOutput::events(accepts_sse(headers)),
            AnyFront::Ui(front) => {
                let clients = inbound.tools.iter().flat_map(|tools| tools.names());
                let options = UiOptions {
                    runner: self.runner(false, clients),
                    ..front.options(id, inbound)
                };
                PipeOutput::ui(front, options)
            }
            AnyFront::Api(front) => {
                let form = match inbound.streams {
                    true => AnswerForm::Stream,
                    false => AnswerForm::Whole,
                };
                let options = self.answer_options(front, id, inbound, body);
                PipeOutput::answer(front, form, options)
            }
        }
    }

    /// Returns who runs the calls of a response whose client has tools with these names.
    pub(super) fn runner<'n>(
        &self,
        runs_tools: bool,
        clients: impl Iterator<Item = &'n str>,
    ) -> UiRunner {
        match runs_tools || self.source.is_command() {
            true => UiRunner::Service(clients.map(str::to_owned).collect()),
            false => UiRunner::Client,
        }
    }

    /// Returns the response to a client of `front`, without storing it in a session. `client` is
    /// the span that the client named.
    fn answering(
        self: &Rc<Self>,
        asked: ClientRequest,
        front: &'static str,
        client: Option<SpanContext>,
        output: PipeOutput,
    ) -> Box<Answering> {
        let turns = self.source.turns(&asked.request);
        let pipe = self.pipe_for(&asked, turns, output);
        if let Some(traces) = &self.traces {
            pipe.set_trace(AnswerTrace::new(traces, &asked.id, front, client));
        }
        let open = self.pipe.metrics.open(front);
        let work = self.work(asked, &pipe);
        let work = async move {
            let _open = open;
            work.await;
        };
        Box::new(Answering::new(work, pipe, self.keep_alive))
    }

    /// Creates the pipe for the source's events of a request.
    pub(super) fn pipe_for(
        &self,
        asked: &ClientRequest,
        turns: Option<Turns>,
        output: PipeOutput,
    ) -> Rc<Pipe> {
        let search = match self.source.is_command() {
            true => TextSearch::Nothing,
            false => TextSearch::Text,
        };
        let mut settings = self.pipe.clone();
        if search != TextSearch::Nothing {
            let messages = &asked.request.conversation.messages;
            let calls = messages.iter().flat_map(Message::calls);
            // An id of dots cannot be part of a URL path, and users answer calls by URL.
            let dots = [".", ".."].map(str::to_owned);
            Rc::make_mut(&mut settings.accumulate).taken_ids =
                calls.map(|call| call.id.to_owned()).chain(dots).collect();
        }
        Rc::new(Pipe::new(settings, search, turns, output))
    }

    /// Waits for a slot, then pushes the events that answer the request into `pipe`. The future is
    /// large, so it is boxed before it is moved.
    pub(super) fn work(
        self: &Rc<Self>,
        asked: ClientRequest,
        pipe: &Rc<Pipe>,
    ) -> Pin<Box<dyn Future<Output = ()>>> {
        let service = Rc::clone(self);
        let feed = Rc::clone(pipe);
        Box::pin(async move {
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
        })
    }

    /// Returns what the response `id` contains apart from the model's output.
    pub(super) fn answer_options(
        &self,
        front: Front,
        id: &str,
        inbound: &InboundRequest,
        body: &Bytes,
    ) -> AnswerOptions {
        let choices = inbound.params.get("n").and_then(Value::as_u64);
        AnswerOptions {
            id: id.to_owned(),
            keeps_ids: !self.source.is_command(),
            provider_id: None,
            clock: Some(Clock::new(now)),
            model: self.source.shown(inbound.model.as_deref()).to_owned(),
            created: now(),
            choices: Some(choices.map_or(1, |n| n.clamp(1, 128) as u32)),
            include_usage: inbound.include_usage,
            extras: self.extras,
            echo: if front == Front::Responses {
                echo(body)
            } else {
                Vec::new()
            },
            carries: true,
            custom_tools: inbound.custom_tools.clone(),
            namespaced_tools: inbound.namespaced_tools.clone(),
            ..AnswerOptions::default()
        }
    }
}

/// Returns the time since 1970 in seconds.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Returns the members of a request that an OpenAI Responses object repeats, with their JSON.
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
