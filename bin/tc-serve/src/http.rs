//! Requests of clients, from their head to the last byte of the response.

mod answering;
mod body;
mod gate;
mod models;
mod refusal;
mod response;
mod route;

pub use response::ResponseBody;

use crate::access_log::{AccessLine, AccessLog};
use crate::args::{Keys, Limits, Settings};
use crate::pipe::PipeSettings;
use crate::places::Places;
use crate::server::{ConnectionPhase, Ending};
use crate::source::Source;
use anyhow::Result;
use gate::Gate;
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};

use refusal::Refusal;
use response::Exchange;
use route::Route;
use sha2::{Digest, Sha256};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

/// What all requests share.
pub struct Service {
    source: Source,
    pipe: PipeSettings,
    gate: Gate,
    keys: Keys,
    limits: Limits,
    keep_alive: Duration,
    extras: bool,
    log: Option<AccessLog>,
    ending: Ending,
    /// Of which the ids of requests are made.
    seed: [u8; 16],
    requests: Cell<u64>,
    /// The places for answers, by the place of the key in the list.
    places: RefCell<HashMap<Option<usize>, Rc<Places>>>,
}

/// What is known of a request once its head has passed the gate.
struct Admitted {
    id: String,
    route: Route,
    /// The place of the client's key in the list.
    key: Option<usize>,
}

impl Service {
    /// A service that gets its events from `source`.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn new(settings: &Settings, source: Source, log: Option<AccessLog>, ending: Ending) -> Result<Service> {
        let streams = tag::Streams::new(tag::Options {
            always: true,
            needs_tools: true,
            dialects: source.dialects(),
            ..tag::Options::default()
        });
        let accumulate = Rc::new(accumulate::Options { live: true, ..accumulate::Options::default() });
        Ok(Service {
            source,
            pipe: PipeSettings { streams: Rc::new(streams), accumulate },
            gate: Gate::new(&settings.hosts, &settings.origins),
            keys: settings.keys.clone(),
            limits: settings.limits,
            keep_alive: settings.keep_alive,
            extras: settings.extras,
            log,
            ending,
            seed: crate::args::random()?,
            requests: Cell::new(0),
            places: RefCell::default(),
        })
    }

    /// Waits until nothing is left of what was started for requests that have ended.
    pub async fn ended(&self) {
        self.source.ended().await;
    }

    /// Answers one request. `local` is the address that the client connected to. Dropping the future or the response's body ends all
    /// that was begun for it.
    ///
    /// # Errors
    /// Never: each trouble has a status.
    pub async fn answer(
        self: Rc<Self>,
        request: Request<Incoming>,
        phase: Rc<ConnectionPhase>,
        local: Option<IpAddr>,
    ) -> Result<Response<ResponseBody>, Infallible> {
        let id = self.new_id();
        let route = Route::of(request.uri().path());
        let mut line = AccessLine {
            id: id.clone(),
            method: request.method().as_str().to_owned(),
            path: request.uri().path().to_owned(),
            front: route.front().map(answer::Front::name),
            status: 499,
            ..AccessLine::default()
        };
        let pass = self.gate.check(&request, local, route);
        let sent_key = key_of(request.headers());
        let key = sent_key.and_then(|key| self.keys.find(key));
        line.key = key.map(|key| self.keys.name(key));
        let mut exchange = Exchange::new(phase, self.log.clone(), line);
        let origin = pass.as_ref().ok().and_then(|pass| pass.origin.clone());
        let answered = match pass {
            Err(refusal) => Err(refusal),
            Ok(pass) if pass.is_preflight => Ok(gate::preflight(request.headers())),
            Ok(_) if key.is_none() && route.needs_key() && !self.keys.hashes.is_empty() => {
                Err(Refusal::unauthorized(sent_key.is_some()))
            }
            Ok(_) => self.serve(request, &Admitted { id: id.clone(), route, key }, &mut exchange).await,
        };
        let front = route.front();
        let mut response = answered.unwrap_or_else(|refusal| {
            exchange.line().error = Some(refusal.failure.code.clone());
            refusal.response(front)
        });
        exchange.line().status = response.status().as_u16();
        let headers = response.headers_mut();
        if let Ok(id) = HeaderValue::from_str(&id) {
            headers.insert("request-id", id.clone());
            headers.insert("x-request-id", id);
        }
        headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
        if let Some(origin) = origin {
            gate::allow(headers, origin);
        }
        response.body_mut().carry(exchange);
        Ok(response)
    }

    async fn serve(
        self: &Rc<Self>,
        request: Request<Incoming>,
        admitted: &Admitted,
        exchange: &mut Exchange,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let (allowed, method) = (admitted.route.methods(), request.method());
        if !allowed.contains(method) {
            let allowed: Vec<&str> = allowed.iter().map(Method::as_str).collect();
            return Err(match admitted.route {
                Route::Unknown => Refusal::not_found(request.uri().path()),
                _ => Refusal::method(method, &allowed.join(", ")),
            });
        }
        match admitted.route {
            Route::Root => Ok(text("tc-serve: POST /v1/chat/completions, /v1/responses or /v1/messages\n")),
            Route::Health => Ok(text("ok\n")),
            Route::Models => self.models(request.headers(), None).await,
            Route::Model => {
                let path = request.uri().path();
                let name = path.rsplit_once("/models/").map_or("", |(_, name)| name).to_owned();
                self.models(request.headers(), Some(&name)).await
            }
            Route::Answer(_) | Route::Events => self.turn(request, admitted, exchange).await,
            Route::CountTokens => self.count_tokens(request).await,
            Route::Unknown => Err(Refusal::not_found(request.uri().path())),
        }
    }

    /// An id that no other request has, which cannot be guessed.
    fn new_id(&self) -> String {
        let number = self.requests.get();
        self.requests.set(number + 1);
        let hash = Sha256::new().chain_update(self.seed).chain_update(number.to_le_bytes()).finalize();
        hash.iter().take(16).fold(String::with_capacity(32), |id, byte| id + &format!("{byte:02x}"))
    }

    /// The places for answers of one key.
    fn places(&self, key: Option<usize>) -> Rc<Places> {
        let mut all = self.places.borrow_mut();
        let new = || Rc::new(Places::new(self.limits.streams, self.limits.queue));
        Rc::clone(all.entry(key).or_insert_with(new))
    }
}

/// The key that a client sends: `Authorization: Bearer KEY` or `x-api-key: KEY`.
fn key_of(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get("authorization").and_then(|value| value.to_str().ok()).and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    bearer.or_else(|| headers.get("x-api-key")?.to_str().ok())
}

fn text(text: &'static str) -> Response<ResponseBody> {
    whole(StatusCode::OK, "text/plain; charset=utf-8", text.as_bytes().to_vec())
}

/// A response whose body is at hand.
fn whole(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("content-type"), HeaderValue::from_static(kind));
    headers.insert(HeaderName::from_static("cache-control"), HeaderValue::from_static("no-store"));
    response
}
