//! Handles client requests, from the request's head to the last byte of the response.

mod body;
mod calls;
mod chat;
mod conversations;
mod gate;
mod headers;
mod kept;
mod kept_request;
mod kept_turn;
mod page;
mod pass;
mod query;
mod questions;
mod refusals;
mod response;
mod sent_before;
mod service;
mod sessions;
mod stored;
mod tool_loop;
mod turn;

pub(crate) use response::ResponseBody;
pub(crate) use service::{Reports, Service};

use crate::front::AnyFront;
use crate::keys::KeyHash;
use crate::life::ConnectionPhase;
use crate::log::AccessLine;
use crate::panics::{Panicked, caught};
use crate::route::Endpoint;
use crate::upstream::Upstream;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use query::Query;
use response::{Refusal, RequestRecord, text};
use service::Admitted;
use std::convert::Infallible;
use std::net::IpAddr;
use std::rc::Rc;

impl Service {
    /// Answers one request. `local` is the address that the client connected to. Dropping the
    /// future or the response's body ends everything started for the request.
    ///
    /// # Errors
    /// Never: each failure becomes a response with a status.
    pub(crate) async fn answer(
        self: Rc<Self>,
        request: Request<Incoming>,
        phase: Rc<ConnectionPhase>,
        local: Option<IpAddr>,
    ) -> Result<Response<ResponseBody>, Infallible> {
        let id = self.new_id();
        let (route, passed) = self.route(request.uri());
        let mut line = AccessLine {
            id: id.clone(),
            method: request.method().as_str().to_owned(),
            path: request.uri().path().to_owned(),
            front: route.front().map(AnyFront::name),
            status: 499,
            ..AccessLine::default()
        };
        let pass = self.gate.check(&request, local, route);
        let sent_key = key_of(request.headers());
        let key = sent_key.and_then(|key| self.keys.find(key));
        line.key = key.map(KeyHash::name);
        if key.is_some() {
            phase.know();
        }
        let mut exchange = RequestRecord::new(phase, self.log.clone(), line);
        let front = Endpoint::front_of_errors(request.uri().path(), request.headers());
        let origin = pass.as_ref().ok().and_then(|pass| pass.origin.clone());
        let answered = match pass {
            Err(refusal) => Err(refusal),
            Ok(_) if self.ending.has_begun() && !route.is_about_service() => Err(Refusal::ending()),
            Ok(pass) if pass.is_preflight => Ok(gate::preflight(request.headers())),
            Ok(_) if key.is_none() && route.needs_key() && self.keys.are_needed() => {
                Err(Refusal::unauthorized(sent_key.is_some()))
            }
            Ok(_) => {
                let admitted = Admitted {
                    id: id.clone(),
                    route,
                    key,
                    passed,
                };
                let served = caught(self.serve(request, &admitted, &mut exchange));
                tokio::select! {
                    biased;
                    () = self.keys.removed(key) => Err(Refusal::unauthorized(true)),
                    served = served => served.unwrap_or_else(|Panicked| Err(Refusal::panicked())),
                }
            }
        };
        let mut response = answered.unwrap_or_else(|refusal| {
            exchange.line.error = Some(refusal.failure.code.clone());
            refusal.response(front)
        });
        exchange.line.status = response.status().as_u16();
        if let Some(notes) = exchange.line.notes_header() {
            response.headers_mut().insert(NOTES, notes);
        }
        add_headers(response.headers_mut(), &id, origin);
        let body = response.body_mut();
        body.carry(exchange);
        if key.is_some() {
            body.end_with(self.keys.removed(key));
        }
        Ok(response)
    }

    /// Returns the endpoint of the request, and the provider's path if the request is forwarded.
    fn route(&self, uri: &Uri) -> (Endpoint, Option<String>) {
        let own = match Endpoint::of(uri.path()) {
            Endpoint::Health if Query::of(uri).has("upstream") => Endpoint::UpstreamHealth,
            Endpoint::Kept(_) if self.sessions.is_none() => Endpoint::Unknown,
            own => own,
        };
        let may_pass = own.gives_way() && self.source.upstreams().any(Upstream::passes);
        match may_pass.then(|| self.passed.find(uri.path())).flatten() {
            Some((path, forms)) => (Endpoint::Pass(forms), Some(path)),
            None => (own, None),
        }
    }

    async fn serve(
        self: &Rc<Self>,
        request: Request<Incoming>,
        admitted: &Admitted,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let allowed = admitted.route.methods();
        let method = request.method();
        if !allowed.contains(method) {
            let allowed: Vec<&str> = allowed.iter().map(Method::as_str).collect();
            return Err(match admitted.route {
                Endpoint::Unknown => Refusal::not_found(request.uri().path()),
                _ => Refusal::method(method, &allowed.join(", ")),
            });
        }
        match admitted.route {
            Endpoint::Root => Ok(self.root(request.headers())),
            Endpoint::Health => Ok(text(StatusCode::OK, "ok\n")),
            Endpoint::Ready => Ok(self.ready()),
            Endpoint::Metrics => Ok(self.metrics()),
            Endpoint::Models => self.models(request.headers(), None).await,
            Endpoint::Model => {
                let path = request.uri().path();
                let name = path
                    .rsplit_once("/models/")
                    .map_or("", |(_, name)| name)
                    .to_owned();
                self.models(request.headers(), Some(&name)).await
            }
            Endpoint::Answer(front) => self.turn(request, admitted, front, exchange).await,
            Endpoint::Chat(path) => self.chat(request, admitted, path, exchange).await,
            Endpoint::CountTokens => self.count_tokens(request, admitted).await,
            Endpoint::Sessions => self.list_sessions(request, admitted, exchange).await,
            Endpoint::AllEvents => self.all_events(request, admitted, exchange).await,
            Endpoint::SessionEvents => self.session_events(request, admitted, exchange).await,
            Endpoint::Session if request.method() == Method::DELETE => {
                self.remove_session(request.uri().path(), admitted)
            }
            Endpoint::Session => self.read_session(request, admitted, exchange).await,
            Endpoint::UpstreamHealth => Ok(self.health().await),
            Endpoint::Pass(_) => {
                let path = admitted.passed.as_deref().unwrap_or_default();
                self.pass(request, admitted, path, exchange).await
            }
            Endpoint::Kept(path) => self.kept(request, admitted, path, exchange).await,
            Endpoint::Unknown => Err(Refusal::not_found(request.uri().path())),
        }
    }
}

/// The response header that lists which parts of the request do not reach the model, and which
/// parts of the response the client does not receive.
const NOTES: &str = "x-toolpipe-notes";

/// Adds the headers that all responses have.
fn add_headers(headers: &mut HeaderMap, id: &str, origin: Option<HeaderValue>) {
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert("request-id", id.clone());
        headers.insert("x-request-id", id);
    }
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    if let Some(origin) = origin {
        gate::allow(headers, origin);
    }
}

/// Returns the key that a client sends as `Authorization: Bearer KEY` or `x-api-key: KEY`, or
/// `None` if it sends none.
fn key_of(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok())
        .and_then(|value| {
            let (scheme, key) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
        });
    bearer.or_else(|| headers.get("x-api-key")?.to_str().ok())
}
