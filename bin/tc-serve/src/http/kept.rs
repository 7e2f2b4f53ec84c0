//! Operations on stored responses: read, follow, cancel and delete them, and list their input.
//! Source of the formats: OpenAI's <https://platform.openai.com/docs/api-reference/responses>.

use super::body;
use super::query::Query;
use super::refusals::{Named, member};
use super::response::{Refusal, RequestRecord, ResponseBody, whole};
use super::service::{Admitted, Service};
use super::stored::{StoredResponse, with_session};
use crate::front::AnyFront;
use crate::pipe::{JSON, Pipe, PipeOutput, TextSearch};
use crate::route::{KeptPath, segment};
use crate::sessions::{PlaceError, ResponseId, ResponseOutline, Sessions, WaitingClient};
use api::{AnswerForm, AnswerOptions, Conversation, Encoder, Front, RunningStatus, response_items};
use event::payload::{ResponseEnd, ResponseStatus};
use event::{Event, Kind};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode, Uri};
use serde_json::{Map, Value, json};
use std::rc::Rc;
use store::{SessionId, StoreError};

/// A request about a stored response or conversation.
pub(super) struct AskedFor {
    /// The sessions that store them.
    pub sessions: Rc<Sessions>,
    /// The hash of the client's key; `None` if no key is required.
    pub key: Option<String>,
    /// The path segment that names a response or a conversation.
    pub id: String,
    /// The path segment that names an item.
    pub item: String,
    /// The request's URI.
    uri: Uri,
}

impl Service {
    /// Answers a request about a stored response or conversation.
    ///
    /// # Errors
    /// 404 if it does not exist or belongs to another key.
    pub(super) async fn kept(
        self: &Rc<Self>,
        request: Request<Incoming>,
        admitted: &Admitted,
        path: KeptPath,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        if matches!(
            path,
            KeptPath::Call(_) | KeptPath::Say | KeptPath::CancelSession
        ) {
            return self.person(request, admitted, path).await;
        }
        let sessions = self
            .sessions
            .as_ref()
            .ok_or_else(|| Named::Response.unknown())?;
        let path_typed = request.uri().path();
        let named = segment(path_typed, 1);
        let session = match named.split_once('_') {
            Some(("resp", id)) => ResponseId::of(id).map(|id| id.session),
            Some(("conv", id)) => SessionId::of(id),
            _ => None,
        };
        let key = self.key_hash(admitted.key);
        let read = sessions.read_ahead_of(session, key.as_deref());
        read.await.map_err(|error| Named::Response.refuse(error))?;
        let asked = AskedFor {
            sessions: Rc::clone(sessions),
            key,
            id: named.to_owned(),
            item: segment(path_typed, 3).to_owned(),
            uri: request.uri().clone(),
        };
        let method = request.method().clone();
        match (path, method) {
            (KeptPath::Response, Method::DELETE) => asked.delete_response(),
            (KeptPath::Response, _) => self.response(&asked, exchange).await,
            (KeptPath::Cancel, _) => self.cancel(&asked, admitted, exchange).await,
            (KeptPath::InputItems, _) => asked.input_items().await,
            (KeptPath::Conversations, _) => {
                let body = self.object(request).await?;
                asked.new_conversation(body)
            }
            (KeptPath::Conversation, Method::DELETE) => asked.delete_conversation(),
            (KeptPath::Conversation, Method::POST) => {
                let body = self.object(request).await?;
                asked.set_metadata(&body)
            }
            (KeptPath::Conversation, _) => asked.conversation(),
            (KeptPath::Items, Method::POST) => {
                let body = self.object(request).await?;
                asked.add_items(self, &body).await
            }
            (KeptPath::Items, _) => asked.items_page(self).await,
            (_, _) => asked.one_item(self).await,
        }
    }

    /// Reads the body of a request, which must be a JSON object.
    pub(super) async fn object(
        &self,
        request: Request<Incoming>,
    ) -> Result<Map<String, Value>, Refusal> {
        let mut share = self.pipe.budget.share();
        let (_, bytes) = body::read(request, body::ONLY_JSON, &self.limits, &mut share).await?;
        if bytes.is_empty() {
            return Ok(Map::new());
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("the body is not a JSON object: {error}");
            Refusal::new(400, "invalid_request_error", message)
        })
    }

    /// Returns a response as an object, or as a stream from its start or from the event after
    /// `starting_after`.
    async fn response(
        self: &Rc<Self>,
        asked: &AskedFor,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let (id, outline) = asked.find()?;
        let mut stored = StoredResponse::read(&asked.sessions, id)?;
        stored.front = AnyFront::Api(Front::Responses);
        let running = asked.running(id);
        let query = Query::of(&asked.uri);
        let is_stream = query.get("stream") == Some("true");
        if is_stream {
            let after = query.get("starting_after").map(str::parse).transpose();
            let after = after.map_err(|_| member("starting_after", "not a sequence number"))?;
            stored.options.starting_after = after;
        } else if outline.status.is_none() {
            let status = match (outline.is_background, outline.is_open) {
                (true, false) if outline.reason.is_none() => RunningStatus::Queued,
                _ => RunningStatus::InProgress,
            };
            let body = self
                .so_far(&asked.sessions, &stored, u64::MAX, status)
                .await?;
            return Ok(with_session(whole(StatusCode::OK, JSON, body), id));
        }
        let form = if is_stream {
            AnswerForm::Stream
        } else {
            AnswerForm::Object
        };
        let client = running.map(|running| {
            let client = WaitingClient::new(&asked.sessions, &running);
            (running, client)
        });
        let mut view = self.view(&asked.sessions, stored, form, false, client);
        view.begins_at_once = is_stream;
        self.respond_with(view, is_stream, exchange).await
    }

    /// Returns the response object for what was written before the offset `end`.
    pub(super) async fn so_far(
        &self,
        sessions: &Sessions,
        stored: &StoredResponse,
        end: u64,
        status: RunningStatus,
    ) -> Result<Vec<u8>, Refusal> {
        let options = AnswerOptions {
            keeps_items: true,
            ..stored.options.clone()
        };
        let encoder = Encoder::new(Front::Responses, AnswerForm::Stream, options);
        let turns = self.turns(stored);
        let output = PipeOutput::Answer(Box::new(encoder));
        let pipe = Pipe::new(self.pipe.clone(), TextSearch::Done, turns, output);
        let place = stored.id.offset..end;
        let read = sessions.calls(stored.id.session, &stored.calls, &pipe);
        read.map_err(|error| Named::Response.refuse(error))?;
        let read = sessions.read_events(stored.id.session, place, |event, _| {
            pipe.push(event);
            // The client gets only the object at the end, so the streamed bytes are discarded.
            drop(pipe.take());
        });
        read.await.map_err(|error| Named::Response.refuse(error))?;
        if let Some(unread) = pipe.unread() {
            return Err(unread.into());
        }
        pipe.snapshot(status)
            .ok_or_else(|| Named::Response.unknown())
    }

    /// Cancels a response, and returns its state afterwards. A response that has ended is
    /// unchanged.
    async fn cancel(
        self: &Rc<Self>,
        asked: &AskedFor,
        admitted: &Admitted,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let (id, outline) = asked.find()?;
        if let Some(running) = asked.running(id) {
            running.cancel(&self.client_name(admitted.key));
            running.ended().await;
        } else if outline.status.is_none() {
            // Another process produces the response, and cannot be told to cancel it.
            return Err(Named::Response.refuse(PlaceError::Busy(None)));
        }
        self.response(asked, exchange).await
    }
}

impl AskedFor {
    /// Returns the response that the path names. If a killed service left it unfinished, it is
    /// ended here.
    fn find(&self) -> Result<(ResponseId, ResponseOutline), Refusal> {
        let bare = self
            .id
            .strip_prefix("resp_")
            .ok_or_else(|| Named::Response.unknown())?;
        let id = ResponseId::of(bare).ok_or_else(|| Named::Response.unknown())?;
        let fail = |error: StoreError| Named::Response.refuse(error);
        let sessions = &self.sessions;
        let key = self.key.as_deref();
        let _session = sessions.open(id.session, key).map_err(fail)?;
        let mut outline = sessions.outline(id.session).map_err(fail)?;
        let is_left = |outline: &crate::sessions::Outline| {
            let known = outline.response(bare);
            known.is_some_and(|known| known.status.is_none()) && self.running(id).is_none()
        };
        if is_left(&outline) {
            match sessions.write(id.session, key) {
                // Another process produces the response.
                Err(PlaceError::Busy(_)) => {}
                written => outline = written.map_err(|error| Named::Response.refuse(error))?.1,
            }
        }
        let known = outline
            .response(bare)
            .ok_or_else(|| Named::Response.unknown())?;
        Ok((id, known.clone()))
    }

    /// Returns the response `id` if it is in progress, else `None`.
    fn running(&self, id: ResponseId) -> Option<Rc<crate::sessions::RunningResponse>> {
        let session = self.sessions.live(id.session);
        let running = session.running.borrow().clone();
        running.filter(|running| running.id == id)
    }

    /// Deletes a response by hiding it from all later requests.
    fn delete_response(&self) -> Result<Response<ResponseBody>, Refusal> {
        let (id, _) = self.find()?;
        let name = id.to_string();
        let written = self.sessions.write(id.session, self.key.as_deref());
        let (mut writer, _) = written.map_err(|error| Named::Response.refuse(error))?;
        let end = ResponseEnd {
            id: name.as_str().into(),
            status: ResponseStatus::Deleted.name().into(),
            timestamp: Some(store::now()),
            ..ResponseEnd::default()
        };
        let appended = writer.event(&end.into());
        appended.map_err(|error| Named::Response.refuse(error))?;
        Ok(object(
            &json!({"id": self.id, "object": "response", "deleted": true}),
        ))
    }

    /// Returns the messages of a response's request as items.
    async fn input_items(&self) -> Result<Response<ResponseBody>, Refusal> {
        let (id, _) = self.find()?;
        let outline = self.sessions.outline(id.session);
        let outline = outline.map_err(|error| Named::Response.refuse(error))?;
        let mut parts = outline.parts().iter();
        let part = parts.find(|part| part.is_response && part.start == id.offset);
        let place = part.map_or(id.offset..id.offset, |part| part.from..part.input);
        let mut talk = String::new();
        let read = self.sessions.read_events(id.session, place, |event, _| {
            if event.kind() == Kind::Message && !is_once(event) {
                talk.push_str(&event.raw());
                talk.push('\n');
            }
        });
        read.await.map_err(|error| Named::Response.refuse(error))?;
        let (talk, _) = Conversation::read(&talk);
        self.page(response_items(
            &talk.messages,
            [&[], &[]],
            &input_prefix(id),
            0,
        ))
    }

    /// Returns the page that the query selects with `limit`, `order` and `after`.
    ///
    /// # Errors
    /// 400 for an invalid value.
    pub(super) fn asked_page(&self) -> Result<ItemsPage<'_>, Refusal> {
        let query = Query::of(&self.uri);
        Ok(ItemsPage {
            limit: query.limit()?,
            is_up: match query.get("order") {
                Some("asc") => true,
                None | Some("desc") => false,
                Some(_) => return Err(member("order", "use asc or desc")),
            },
            after: query.get("after").filter(|after| !after.is_empty()),
        })
    }

    /// Returns one page of a list.
    ///
    /// # Errors
    /// As [`AskedFor::asked_page`]. An unknown `after` is also an error, since otherwise a client
    /// that pages through the list would start again at the first page.
    fn page(&self, mut items: Vec<Value>) -> Result<Response<ResponseBody>, Refusal> {
        let page = self.asked_page()?;
        if !page.is_up {
            items.reverse();
        }
        let id = |item: &Value| item.get("id").and_then(Value::as_str).map(str::to_owned);
        if let Some(after) = page.after {
            let place = items
                .iter()
                .position(|item| id(item).as_deref() == Some(after));
            items.drain(..=place.ok_or_else(no_such_item)?);
        }
        let has_more = items.len() > page.limit;
        items.truncate(page.limit);
        Ok(list(&items, has_more))
    }
}

/// The page of a list that a client requests.
pub(super) struct ItemsPage<'q> {
    /// The most items on the page.
    pub limit: usize,
    /// Whether the items are in ascending order, oldest first.
    pub is_up: bool,
    /// The id of the item after which the page starts; `None` for the first page.
    pub after: Option<&'q str>,
}

/// Returns the refusal for a page after an item that is not in the list.
pub(super) fn no_such_item() -> Refusal {
    member("after", "the list has no such item")
}

/// Returns a response with these items as a list.
pub(super) fn list(items: &[Value], has_more: bool) -> Response<ResponseBody> {
    let [first, last] =
        [items.first(), items.last()].map(|item| item.and_then(|item| item.get("id")));
    object(&json!({
        "object": "list", "data": items, "first_id": first, "last_id": last, "has_more": has_more
    }))
}

/// Returns the prefix of the ids of a request's items. Ids of the response's own items start with
/// the response's id alone.
pub(super) fn input_prefix(id: ResponseId) -> String {
    format!("{id}i")
}

pub(super) fn is_once(event: &Event<'_>) -> bool {
    event::payload::Message::read(event).once
}

pub(super) fn object(value: &Value) -> Response<ResponseBody> {
    whole(StatusCode::OK, JSON, value.to_string())
}
