//! What a client may do with answers that are kept: read them again, follow them, cancel and delete
//! them, and list what went into them. Source of the shapes: OpenAI's
//! <https://platform.openai.com/docs/api-reference/responses> and
//! <https://platform.openai.com/docs/api-reference/conversations>.

use super::body;
use super::calls::CallVerb;
use super::query::Query;
use super::refusals::{Named, member};
use super::response::{Refusal, RequestRecord, ResponseBody, whole};
use super::service::{Admitted, Service};
use super::stored::{JSON, StoredResponse, conversation_id, with_session};
use crate::pipe::{Pipe, PipeOutput, TextSearch};
use crate::route::segment;
use crate::sessions::{
    CONTENT, PlaceError, REASONING, ResponseId, ResponseOutline, Sessions, WaitingClient, line,
    random_id,
};
use api::{AnswerForm, Api, Conversation, Front, Message, RunningStatus, response_items};
use event::payload::{ResponseEnd, ResponseStatus, Session};
use event::{Event, Json, Kind, Scanner};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode, Uri};
use serde_json::{Map, Value, json};
use std::ops::Range;
use std::rc::Rc;
use store::{SessionId, StoreError};

/// A path of what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptPath {
    /// `/v1/responses/ID`
    Response,
    /// `/v1/responses/ID/cancel`
    Cancel,
    /// `/v1/responses/ID/input_items`
    InputItems,
    /// `/v1/conversations`
    Conversations,
    /// `/v1/conversations/ID`
    Conversation,
    /// `/v1/conversations/ID/items`
    Items,
    /// `/v1/conversations/ID/items/ITEM`
    Item,
    /// `/v1/sessions/ID/calls/CALL/VERB`
    Call(CallVerb),
    /// `/v1/sessions/ID/messages`
    Say,
    /// `/v1/sessions/ID/cancel`
    CancelSession,
}

impl KeptPath {
    /// What the path of these segments, without a version, is for.
    pub(crate) fn of(segments: &[&str]) -> Option<KeptPath> {
        Some(match *segments {
            // Of these the service has none of its own.
            ["responses", "compact" | "input_tokens"] => return None,
            ["responses", _] => KeptPath::Response,
            ["responses", _, "cancel"] => KeptPath::Cancel,
            ["responses", _, "input_items"] => KeptPath::InputItems,
            ["conversations"] => KeptPath::Conversations,
            ["conversations", _] => KeptPath::Conversation,
            ["conversations", _, "items"] => KeptPath::Items,
            ["conversations", _, "items", _] => KeptPath::Item,
            ["sessions", _, "calls", _, verb] => KeptPath::Call(CallVerb::of(verb)?),
            ["sessions", _, "messages"] => KeptPath::Say,
            ["sessions", _, "cancel"] => KeptPath::CancelSession,
            _ => return None,
        })
    }

    /// The methods that it has.
    pub(crate) fn methods(self) -> &'static [Method] {
        match self {
            KeptPath::Response => &[Method::GET, Method::DELETE],
            KeptPath::Cancel
            | KeptPath::Conversations
            | KeptPath::Call(_)
            | KeptPath::Say
            | KeptPath::CancelSession => &[Method::POST],
            KeptPath::InputItems => &[Method::GET],
            KeptPath::Item => &[Method::GET, Method::DELETE],
            KeptPath::Items => &[Method::GET, Method::POST],
            KeptPath::Conversation => &[Method::GET, Method::POST, Method::DELETE],
        }
    }
}

/// A request about what is kept.
struct AskedFor {
    sessions: Rc<Sessions>,
    /// The hash of the client's key.
    key: Option<String>,
    /// The segment that names a response or a conversation.
    id: String,
    /// The segment that names an item.
    item: String,
    /// The address.
    uri: Uri,
}

impl Service {
    /// Answers a request about what is kept.
    ///
    /// # Errors
    /// 404 for what is not there, and likewise for what is another key's.
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
        let asked = AskedFor {
            sessions: Rc::clone(sessions),
            key: self.key_hash(admitted.key),
            id: segment(path_typed, 1).to_owned(),
            item: segment(path_typed, 3).to_owned(),
            uri: request.uri().clone(),
        };
        let method = request.method().clone();
        match (path, method) {
            (KeptPath::Response, Method::DELETE) => asked.delete_response(),
            (KeptPath::Response, _) => self.response(&asked, exchange).await,
            (KeptPath::Cancel, _) => self.cancel(&asked, admitted, exchange).await,
            (KeptPath::InputItems, _) => asked.input_items(),
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
                asked.add_items(self, &body)
            }
            (KeptPath::Items, _) => {
                let items = asked.items(self)?;
                asked.page(items.into_iter().map(|item| item.item).collect())
            }
            (KeptPath::Item, Method::DELETE) => asked.delete_item(self),
            (_, _) => asked.one_item(self),
        }
    }

    /// The body of a request, which is a JSON object.
    pub(super) async fn object(
        &self,
        request: Request<Incoming>,
    ) -> Result<Map<String, Value>, Refusal> {
        let mut share = self.pipe.budget.share();
        let (_, bytes) = body::read(request, body::JSON, &self.limits, &mut share).await?;
        if bytes.is_empty() {
            return Ok(Map::new());
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("the body is not a JSON object: {error}");
            Refusal::new(400, "invalid_request_error", message)
        })
    }

    /// A response as an object, or as a stream from its beginning or behind `starting_after`.
    async fn response(
        self: &Rc<Self>,
        asked: &AskedFor,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let (id, outline) = asked.find()?;
        let mut stored = StoredResponse::read(&asked.sessions, id)?;
        stored.front = Some(Front::Responses);
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
            let body = self.so_far(&asked.sessions, &stored, u64::MAX, status)?;
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
        let mut view = self.view(&asked.sessions, stored, form, false, client)?;
        view.begins_at_once = is_stream;
        self.respond_with(view, is_stream, exchange).await
    }

    /// The response object as far as its answer is written before the offset `end`.
    fn so_far(
        &self,
        sessions: &Sessions,
        stored: &StoredResponse,
        end: u64,
        status: RunningStatus,
    ) -> Result<Vec<u8>, Refusal> {
        let encoder = self.encoder(stored, AnswerForm::Stream)?;
        let turns = self.turns(stored);
        let output = PipeOutput::Answer(Box::new(encoder));
        let pipe = Pipe::new(self.pipe.clone(), TextSearch::Done, turns, output);
        let place = stored.id.offset..end;
        let read = sessions.each_event(stored.id.session, place, |event, _| {
            pipe.push(event);
            // What the client gets is the object at the end.
            drop(pipe.take());
        });
        read.map_err(|error| Named::Response.refuse(error))?;
        pipe.snapshot(status)
            .ok_or_else(|| Named::Response.unknown())
    }

    /// Cancels a response, and returns it as it is then. One that has ended stays as it is.
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
            // Another process makes it, and cannot be asked.
            return Err(Named::Response.refuse(PlaceError::Busy(None)));
        }
        self.response(asked, exchange).await
    }
}

impl AskedFor {
    /// The response that the path names. One that a service which was killed has left without its
    /// end is ended here.
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
        let mut outline = sessions.outline(id.session, u64::MAX).map_err(fail)?;
        let is_left = |outline: &crate::sessions::Outline| {
            let known = outline.response(bare);
            known.is_some_and(|known| known.status.is_none()) && self.running(id).is_none()
        };
        if is_left(&outline) {
            match sessions.write(id.session, key) {
                // Another process makes it.
                Err(PlaceError::Busy(_)) => {}
                written => outline = written.map_err(|error| Named::Response.refuse(error))?.1,
            }
        }
        let known = outline
            .response(bare)
            .ok_or_else(|| Named::Response.unknown())?;
        Ok((id, known.clone()))
    }

    /// The response `id`, if it is made now.
    fn running(&self, id: ResponseId) -> Option<Rc<crate::sessions::RunningResponse>> {
        let session = self.sessions.live(id.session);
        let running = session.running.borrow().clone();
        running.filter(|running| running.id == id)
    }

    /// Hides a response from all further requests.
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

    /// The messages of a response's request, as items.
    fn input_items(&self) -> Result<Response<ResponseBody>, Refusal> {
        let (id, _) = self.find()?;
        let mut talk = String::new();
        let mut is_input = true;
        let mut seen = 0;
        let read = self
            .sessions
            .each_event(id.session, id.offset..u64::MAX, |event, _| {
                seen += u32::from(event.kind() == Kind::Response);
                is_input &= seen < 2 && is_of_request(event);
                if is_input && event.kind() == Kind::Message && !is_once(event) {
                    talk.push_str(&event.raw());
                    talk.push('\n');
                }
            });
        read.map_err(|error| Named::Response.refuse(error))?;
        let (talk, _) = Conversation::read(&talk);
        self.page(response_items(&talk.messages, &input_prefix(id)))
    }

    /// One page of a list: `limit`, `order` and `after` of the query say which.
    ///
    /// # Errors
    /// 400 for a value that has no meaning. An unknown `after` is one: a client that goes from page to
    /// page would begin again at the first.
    fn page(&self, mut items: Vec<Value>) -> Result<Response<ResponseBody>, Refusal> {
        let query = Query::of(&self.uri);
        let limit = query.limit()?;
        match query.get("order") {
            Some("asc") => {}
            None | Some("desc") => items.reverse(),
            Some(_) => return Err(member("order", "use asc or desc")),
        }
        let id = |item: &Value| item.get("id").and_then(Value::as_str).map(str::to_owned);
        if let Some(after) = query.get("after").filter(|after| !after.is_empty()) {
            let place = items
                .iter()
                .position(|item| id(item).as_deref() == Some(after));
            let place = place.ok_or_else(|| member("after", "the list has no such item"))?;
            items.drain(..=place);
        }
        let has_more = items.len() > limit;
        items.truncate(limit);
        let first = items.first().and_then(id);
        let last = items.last().and_then(id);
        Ok(object(&json!({
            "object": "list", "data": items, "first_id": first, "last_id": last, "has_more": has_more
        })))
    }
}

/// What the ids of a request's items are made of. Those of the answer's have the id of the response
/// alone.
fn input_prefix(id: ResponseId) -> String {
    format!("{id}i")
}

/// Whether an event is one of those that a request becomes, at the beginning of a response.
fn is_of_request(event: &Event<'_>) -> bool {
    match event.kind() {
        Kind::Response | Kind::Request => true,
        Kind::Message => !event::payload::Message::read(event).is_of("assistant"),
        _ => false,
    }
}

fn is_once(event: &Event<'_>) -> bool {
    event::payload::Message::read(event).once
}

fn object(value: &Value) -> Response<ResponseBody> {
    whole(StatusCode::OK, JSON, value.to_string())
}

// Conversations.

/// The most items that a conversation may begin with.
const ITEMS: usize = 1000;

impl AskedFor {
    /// The session that the path names as a conversation.
    fn session(&self) -> Result<SessionId, Refusal> {
        let id = self.id.strip_prefix("conv_").and_then(SessionId::of);
        let id = id.ok_or_else(|| Named::Conversation.unknown())?;
        let opened = self.sessions.open(id, self.key.as_deref());
        opened.map_err(|error| Named::Conversation.refuse(error))?;
        Ok(id)
    }

    fn new_conversation(
        &self,
        body: Map<String, Value>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let failed = |error: StoreError| Named::Conversation.refuse(error);
        let id = random_id().map_err(failed)?;
        let created = store::now();
        let metadata = metadata(&body)?;
        let name = id.to_string();
        let begin = Session {
            id: name.as_str().into(),
            key: self.key.as_deref().map(Into::into),
            created,
            metadata: metadata.as_deref().map(Json::of),
            ..Session::default()
        };
        let mut lines = line(&begin.into());
        lines.extend(item_lines(&body)?.into_bytes());
        let created_now = self.sessions.create(id, self.key.as_deref(), &lines);
        created_now.map_err(|error| Named::Response.refuse(error))?;
        Ok(shown_conversation(id, created, metadata.as_deref()))
    }

    fn conversation(&self) -> Result<Response<ResponseBody>, Refusal> {
        let id = self.session()?;
        let outline = self.sessions.outline(id, u64::MAX);
        let head = outline.map_err(|error| Named::Response.refuse(error))?.head;
        Ok(shown_conversation(
            id,
            head.created,
            head.metadata.as_deref(),
        ))
    }

    fn set_metadata(&self, body: &Map<String, Value>) -> Result<Response<ResponseBody>, Refusal> {
        let id = self.session()?;
        let metadata = metadata(body)?;
        let name = id.to_string();
        let created = self.append(id, |outline| {
            let session = Session {
                id: name.as_str().into(),
                key: self.key.as_deref().map(Into::into),
                created: outline.head.created,
                metadata: metadata.as_deref().map(Json::of),
                ..Session::default()
            };
            (line(&session.into()), outline.head.created)
        })?;
        Ok(shown_conversation(id, created, metadata.as_deref()))
    }

    /// Appends lines to a session that nobody else writes.
    fn append<T>(
        &self,
        id: SessionId,
        lines: impl FnOnce(&crate::sessions::Outline) -> (Vec<u8>, T),
    ) -> Result<T, Refusal> {
        let written = self.sessions.write(id, self.key.as_deref());
        let (mut writer, outline) = written.map_err(|error| Named::Response.refuse(error))?;
        let (lines, value) = lines(&outline);
        let appended = writer.append(&lines);
        appended.map_err(|error| Named::Response.refuse(error))?;
        Ok(value)
    }

    fn delete_conversation(&self) -> Result<Response<ResponseBody>, Refusal> {
        let id = self.session()?;
        let removed = self.sessions.remove(id, self.key.as_deref());
        let live = self.sessions.live(id);
        removed.map_err(|error| Named::Conversation.refuse(self.sessions.busy(&live, error)))?;
        Ok(object(
            &json!({"id": self.id, "object": "conversation.deleted", "deleted": true}),
        ))
    }

    fn add_items(
        &self,
        service: &Service,
        body: &Map<String, Value>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let id = self.session()?;
        let before = self.items(service)?.len();
        let lines = item_lines(body)?;
        self.append(id, |_| (lines.into_bytes(), ()))?;
        let added = self.items(service)?.split_off(before);
        let added: Vec<Value> = added.into_iter().map(|item| item.item).collect();
        let ends = (added.first().cloned(), added.last().cloned());
        let [first, last] =
            [ends.0, ends.1].map(|item| item.and_then(|item| item.get("id").cloned()));
        Ok(object(&json!({
            "object": "list", "data": added, "first_id": first, "last_id": last, "has_more": false
        })))
    }

    fn one_item(&self, service: &Service) -> Result<Response<ResponseBody>, Refusal> {
        Ok(object(&self.item(service)?.item))
    }

    /// The item that the path names.
    fn item(&self, service: &Service) -> Result<ConversationItem, Refusal> {
        let mut items = self.items(service)?.into_iter();
        let found = items.find(|item| item.item.get("id").is_some_and(|id| *id == self.item));
        let unknown = "the conversation has no such item";
        found.ok_or_else(|| Refusal::new(404, "item_not_found", unknown))
    }

    /// Takes an item out of its conversation: no list has it any more, and no model gets it.
    fn delete_item(&self, service: &Service) -> Result<Response<ResponseBody>, Refusal> {
        let id = self.session()?;
        let item = self.item(service)?;
        let Some((offset, part)) = self.origin(id, &item)? else {
            let why = "an item of this kind cannot be deleted alone";
            return Err(Refusal::new(400, "invalid_request_error", why));
        };
        let end = ResponseEnd {
            id: self.item.as_str().into(),
            status: ResponseStatus::Deleted.name().into(),
            timestamp: Some(store::now()),
            message: Some(offset),
            part: part.as_deref().map(Into::into),
        };
        self.append(id, |_| (line(&end.into()), ()))?;
        self.conversation()
    }

    /// The message that an item was made of, by its offset, and which part of it; `None` for an item
    /// that is of no message.
    fn origin(
        &self,
        id: SessionId,
        item: &ConversationItem,
    ) -> Result<Option<(u64, Option<String>)>, Refusal> {
        let mut deleted = Vec::new();
        let mut found = Vec::new();
        let read = self
            .sessions
            .each_event(id, 0..u64::MAX, |event, place| match event.kind() {
                Kind::ResponseEnd => {
                    let end = ResponseEnd::read(event);
                    let part = end.part.map(|part| part.str().into_owned());
                    deleted.extend(end.message.map(|offset| (offset, part)));
                }
                Kind::Message if item.place.contains(&place.start) && !is_once(event) => {
                    let (talk, _) = Conversation::read(&event.raw());
                    let message = talk.messages.first();
                    let part = message.and_then(|message| part_of(message, &item.item));
                    found.extend(part.map(|part| (place.start, part)));
                }
                _ => {}
            });
        read.map_err(|error| Named::Response.refuse(error))?;
        // Of two messages with the same text one is as good as the other.
        let mut found = found.into_iter();
        Ok(found.find(|origin| !deleted.contains(origin)))
    }

    /// All items of a conversation: what went into each response, and what came out of it, under the
    /// ids that its client has seen.
    fn items(&self, service: &Service) -> Result<Vec<ConversationItem>, Refusal> {
        let id = self.session()?;
        let (parts, deleted) = self.parts(id)?;
        let mut items = Vec::new();
        for part in parts {
            let prefix = part
                .response
                .map_or_else(|| format!("{id}{:x}", part.place.start), input_prefix);
            let (talk, _) = Conversation::read(&part.talk);
            let mut all = response_items(&talk.messages, &prefix);
            if let Some(response) = part.response {
                let mut stored = StoredResponse::read(&self.sessions, response)?;
                stored.front = Some(Front::Responses);
                let (end, status) = (part.place.end, RunningStatus::InProgress);
                let body = service.so_far(&self.sessions, &stored, end, status)?;
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                let output = body.get("output").and_then(Value::as_array);
                all.extend(output.cloned().unwrap_or_default());
            }
            items.extend(all.into_iter().map(|item| ConversationItem {
                item,
                place: part.place.clone(),
            }));
        }
        let is_left = |item: &ConversationItem| {
            let id = item.item.get("id").and_then(Value::as_str);
            !deleted.iter().any(|deleted| Some(deleted.as_str()) == id)
        };
        items.retain(is_left);
        Ok(items)
    }

    /// The parts of a conversation, and the ids of what was deleted.
    fn parts(&self, id: SessionId) -> Result<(Vec<ItemsPart>, Vec<String>), Refusal> {
        let mut parts = vec![ItemsPart::new(0, None)];
        let mut deleted = Vec::new();
        let begin = |parts: &mut Vec<ItemsPart>, at: u64, part: ItemsPart| {
            if let Some(last) = parts.last_mut() {
                last.place.end = at;
            }
            parts.push(part);
        };
        let read = self
            .sessions
            .each_event(id, 0..u64::MAX, |event, place| match event.kind() {
                Kind::Response => {
                    let response = ResponseId {
                        session: id,
                        offset: place.start,
                    };
                    let part = ItemsPart::new(place.start, Some(response));
                    begin(&mut parts, place.start, part);
                }
                Kind::ResponseEnd => {
                    let end = ResponseEnd::read(event);
                    if end.status == ResponseStatus::Deleted.name() {
                        deleted.push(end.id.str().into_owned());
                    }
                    let part = ItemsPart::new(place.start, None);
                    begin(&mut parts, place.end, part);
                }
                Kind::Message if !is_once(event) => {
                    if let Some(part) = parts.last_mut()
                        && (part.response.is_none() || !part.has_output)
                    {
                        part.talk.push_str(&event.raw());
                        part.talk.push('\n');
                    }
                }
                kind if kind.begins_stream() => {
                    if let Some(part) = parts.last_mut() {
                        part.has_output = true;
                    }
                }
                _ => {}
            });
        read.map_err(|error| Named::Response.refuse(error))?;
        Ok((parts, deleted))
    }
}

/// An item of a conversation, and the part of the session that it comes from.
struct ConversationItem {
    item: Value,
    place: Range<u64>,
}

/// A part of a conversation: a response, or messages that were put in between.
struct ItemsPart {
    response: Option<ResponseId>,
    /// Of the offset of its first line the ids of its items are made.
    place: Range<u64>,
    talk: String,
    /// Whether the answer has begun.
    has_output: bool,
}

impl ItemsPart {
    fn new(start: u64, response: Option<ResponseId>) -> ItemsPart {
        ItemsPart {
            response,
            place: start..u64::MAX,
            talk: String::new(),
            has_output: false,
        }
    }
}

/// Which part of a message an item is; `Some(None)` for all of it, and `None` where the item is of
/// another message.
fn part_of(message: &Message, item: &Value) -> Option<Option<String>> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let texts = |name: &str| {
        let parts = item.get(name).and_then(Value::as_array);
        let parts = parts.into_iter().flatten();
        let texts = parts.filter_map(|part| part.get("text")?.as_str());
        texts.collect::<String>()
    };
    let call = text("call_id");
    match text("type") {
        "message" => {
            let is_same = message.role() == text("role") && message.text() == texts("content");
            let is_whole = message.calls().is_empty() && message.reasoning().is_empty();
            is_same.then(|| (!is_whole).then(|| CONTENT.to_owned()))
        }
        "reasoning" => {
            let reasoning = message.reasoning();
            let is_same = reasoning == texts("summary") || reasoning == texts("content");
            (is_same && !reasoning.is_empty()).then(|| Some(REASONING.to_owned()))
        }
        "function_call" | "custom_tool_call" => {
            let has_call = message.calls().iter().any(|known| known.id == call);
            has_call.then(|| Some(call.to_owned()))
        }
        "function_call_output" | "custom_tool_call_output" => {
            (message.tool_call_id() == call).then_some(None)
        }
        _ => None,
    }
}

/// The `metadata` of a body, as JSON.
fn metadata(body: &Map<String, Value>) -> Result<Option<String>, Refusal> {
    match body.get("metadata") {
        None | Some(Value::Null) => Ok(None),
        Some(object @ Value::Object(_)) => Ok(Some(object.to_string())),
        Some(_) => Err(Refusal::new(
            400,
            "invalid_request_error",
            "metadata: not an object",
        )),
    }
}

/// The `items` of a body, as `message` events.
fn item_lines(body: &Map<String, Value>) -> Result<String, Refusal> {
    let Some(items) = body.get("items").and_then(Value::as_array) else {
        return Ok(String::new());
    };
    if items.len() > ITEMS {
        let message = format!("items: more than {ITEMS}");
        return Err(Refusal::new(400, "invalid_request_error", message));
    }
    if items.is_empty() {
        return Ok(String::new());
    }
    let request = json!({ "input": items }).to_string();
    let request = api::inbound(Api::OpenaiResponses, request.as_bytes()).map_err(body::refused)?;
    let lines = request.session_lines(Api::OpenaiResponses, None, 0);
    let mut scanner = Scanner::default();
    let mut is_message = |line: &&str| {
        scanner
            .read(line)
            .is_ok_and(|event| event.kind() == Kind::Message)
    };
    Ok(lines
        .split_inclusive('\n')
        .filter(|line| is_message(line))
        .collect())
}

fn shown_conversation(
    id: SessionId,
    created: u64,
    metadata: Option<&str>,
) -> Response<ResponseBody> {
    let metadata: Value = metadata
        .and_then(|json| serde_json::from_str(json).ok())
        .unwrap_or_else(|| json!({}));
    object(&json!({
        "id": conversation_id(id), "object": "conversation", "created_at": created / 1000,
        "metadata": metadata
    }))
}

// Items that a request names and does not hold.

impl Service {
    /// The body of a request with the stored items in place of the references to them: the AI SDK
    /// sends earlier items by their ids alone. A reference to an item that is not stored here for
    /// this client stays.
    pub(super) fn with_items(&self, body: Bytes, admitted: &Admitted) -> Bytes {
        let is_asked = body
            .windows(REFERENCE.len())
            .any(|word| word == REFERENCE.as_bytes());
        let (true, Some(sessions)) = (is_asked, &self.sessions) else {
            return body;
        };
        let Ok(Value::Object(mut members)) = serde_json::from_slice(&body) else {
            return body;
        };
        let key = self.key_hash(admitted.key);
        let input = members.get_mut("input").and_then(Value::as_array_mut);
        for item in input.into_iter().flatten() {
            let text = |name: &str| item.get(name).and_then(Value::as_str);
            if text("type") == Some(REFERENCE)
                && let Some(found) =
                    text("id").and_then(|id| self.item(sessions, id, key.as_deref()))
            {
                *item = found;
            }
        }
        Value::Object(members).to_string().into()
    }

    /// The item of a stored answer that has this id.
    fn item(&self, sessions: &Rc<Sessions>, id: &str, key: Option<&str>) -> Option<Value> {
        let (_, rest) = id.split_once('_')?;
        let (response, _) = rest.rsplit_once('_')?;
        let response = ResponseId::of(response)?;
        let _session = sessions.open(response.session, key).ok()?;
        let mut stored = StoredResponse::read(sessions, response).ok()?;
        stored.front = Some(Front::Responses);
        let body = self
            .so_far(sessions, &stored, u64::MAX, RunningStatus::InProgress)
            .ok()?;
        let body: Value = serde_json::from_slice(&body).ok()?;
        let items = body.get("output")?.as_array()?;
        items
            .iter()
            .find(|item| item.get("id").is_some_and(|known| known == id))
            .cloned()
    }
}

/// The type of an item that is only named.
const REFERENCE: &str = "item_reference";
