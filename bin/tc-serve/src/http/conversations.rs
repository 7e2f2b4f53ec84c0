//! Conversations and their items. Source of the shapes: OpenAI's
//! <https://platform.openai.com/docs/api-reference/conversations>.

use super::body;
use super::kept::{AskedFor, input_prefix, is_once, object};
use super::refusals::Named;
use super::response::{Refusal, ResponseBody};
use super::service::{Admitted, Service};
use super::stored::{StoredResponse, conversation_id};
use crate::front::AnyFront;
use crate::sessions::{CONTENT, REASONING, ResponseId, ResponseOutline, Sessions, line, random_id};
use api::{Api, Conversation, Front, Message, RunningStatus, response_items};
use event::payload::{ResponseEnd, ResponseStatus, Session};
use event::{Json, Kind, Scanner};
use hyper::Response;
use hyper::body::Bytes;
use serde_json::{Map, Value, json};
use std::ops::Range;
use std::rc::Rc;
use store::{SessionId, StoreError};

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

    /// Begins a conversation.
    pub(super) fn new_conversation(
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

    /// The conversation.
    pub(super) fn conversation(&self) -> Result<Response<ResponseBody>, Refusal> {
        let id = self.session()?;
        let outline = self.sessions.outline(id);
        let head = outline
            .map_err(|error| Named::Response.refuse(error))?
            .head
            .clone();
        Ok(shown_conversation(
            id,
            head.created,
            head.metadata.as_deref(),
        ))
    }

    /// Gives the conversation other metadata.
    pub(super) fn set_metadata(
        &self,
        body: &Map<String, Value>,
    ) -> Result<Response<ResponseBody>, Refusal> {
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

    /// Removes the conversation with all its responses.
    pub(super) fn delete_conversation(&self) -> Result<Response<ResponseBody>, Refusal> {
        let id = self.session()?;
        let removed = self.sessions.remove(id, self.key.as_deref());
        let live = self.sessions.live(id);
        removed.map_err(|error| Named::Conversation.refuse(self.sessions.busy(&live, error)))?;
        Ok(object(
            &json!({"id": self.id, "object": "conversation.deleted", "deleted": true}),
        ))
    }

    /// Appends items to the conversation.
    pub(super) async fn add_items(
        &self,
        service: &Service,
        body: &Map<String, Value>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let id = self.session()?;
        let before = self.items(service).await?.len();
        let lines = item_lines(body)?;
        self.append(id, |_| (lines.into_bytes(), ()))?;
        let added = self.items(service).await?.split_off(before);
        let added: Vec<Value> = added.into_iter().map(|item| item.item).collect();
        let ends = (added.first().cloned(), added.last().cloned());
        let [first, last] =
            [ends.0, ends.1].map(|item| item.and_then(|item| item.get("id").cloned()));
        Ok(object(&json!({
            "object": "list", "data": added, "first_id": first, "last_id": last, "has_more": false
        })))
    }

    /// One item of the conversation.
    pub(super) async fn one_item(
        &self,
        service: &Service,
    ) -> Result<Response<ResponseBody>, Refusal> {
        Ok(object(&self.item(service).await?.item))
    }

    /// The item that the path names.
    async fn item(&self, service: &Service) -> Result<ConversationItem, Refusal> {
        let mut items = self.items(service).await?.into_iter();
        let found = items.find(|item| item.item.get("id").is_some_and(|id| *id == self.item));
        let unknown = "the conversation has no such item";
        found.ok_or_else(|| Refusal::new(404, "item_not_found", unknown))
    }

    /// Takes an item out of its conversation: no list has it any more, and no model gets it.
    pub(super) async fn delete_item(
        &self,
        service: &Service,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let id = self.session()?;
        let item = self.item(service).await?;
        let Some((offset, part)) = self.origin(id, &item).await? else {
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
    async fn origin(
        &self,
        id: SessionId,
        item: &ConversationItem,
    ) -> Result<Option<(u64, Option<String>)>, Refusal> {
        let mut deleted = Vec::new();
        let mut found = Vec::new();
        let read = self
            .sessions
            .read_events(id, 0..u64::MAX, |event, place| match event.kind() {
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
        read.await.map_err(|error| Named::Response.refuse(error))?;
        // Of two messages with the same text one is as good as the other.
        let mut found = found.into_iter();
        Ok(found.find(|origin| !deleted.contains(origin)))
    }

    /// All items of a conversation: what went into each response, and what came out of it, under the
    /// ids that its client has seen.
    pub(super) async fn items(&self, service: &Service) -> Result<Vec<ConversationItem>, Refusal> {
        let id = self.session()?;
        let (parts, deleted) = self.parts(id).await?;
        let mut items = Vec::new();
        for part in parts {
            let prefix = part
                .response
                .map_or_else(|| format!("{id}{:x}", part.place.start), input_prefix);
            let (talk, _) = Conversation::read(&part.talk);
            let mut all = response_items(&talk.messages, &prefix);
            if let Some(response) = part.response {
                let mut stored = StoredResponse::read(&self.sessions, response)?;
                stored.front = AnyFront::Api(Front::Responses);
                let (end, status) = (part.place.end, RunningStatus::InProgress);
                let body = service.so_far(&self.sessions, &stored, end, status).await?;
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
    async fn parts(&self, id: SessionId) -> Result<(Vec<ItemsPart>, Vec<String>), Refusal> {
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
            .read_events(id, 0..u64::MAX, |event, place| match event.kind() {
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
        read.await.map_err(|error| Named::Response.refuse(error))?;
        Ok((parts, deleted))
    }
}

/// An item of a conversation, and the part of the session that it comes from.
pub(super) struct ConversationItem {
    /// The item, as the API has it.
    pub item: Value,
    place: Range<u64>,
}

/// A part of a conversation: a response, or messages that were put in between.
struct ItemsPart {
    response: Option<ResponseId>,
    /// Its place in the session. The ids of its items are made of the start.
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

/// Which part of a message an item is: `Some(None)` for the whole message, and `None` for an item of
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
    ///
    /// # Errors
    /// 503 where the service has no memory to read the item.
    pub(super) async fn with_items(
        &self,
        body: Bytes,
        admitted: &Admitted,
    ) -> Result<Bytes, Refusal> {
        let is_asked = body
            .windows(REFERENCE.len())
            .any(|word| word == REFERENCE.as_bytes());
        let (true, Some(sessions)) = (is_asked, &self.sessions) else {
            return Ok(body);
        };
        let Ok(Value::Object(mut members)) = serde_json::from_slice(&body) else {
            return Ok(body);
        };
        let key = self.key_hash(admitted.key);
        let input = members.get_mut("input").and_then(Value::as_array_mut);
        for item in input.into_iter().flatten() {
            let text = |name: &str| item.get(name).and_then(Value::as_str);
            if text("type") == Some(REFERENCE)
                && let Some(id) = text("id")
                && let Some(found) = self.item(sessions, id, key.as_deref()).await?
            {
                *item = found;
            }
        }
        Ok(Value::Object(members).to_string().into())
    }

    /// The item of a stored answer that has this id; `None` where this client has no such item.
    async fn item(
        &self,
        sessions: &Rc<Sessions>,
        id: &str,
        key: Option<&str>,
    ) -> Result<Option<Value>, Refusal> {
        let response = id.split_once('_').and_then(|(_, rest)| {
            let (response, _) = rest.rsplit_once('_')?;
            ResponseId::of(response)
        });
        let known = response.filter(|response| sessions.open(response.session, key).is_ok());
        let Some(mut stored) = known.and_then(|id| StoredResponse::read(sessions, id).ok()) else {
            return Ok(None);
        };
        stored.front = AnyFront::Api(Front::Responses);
        sessions.read_ahead_of(Some(stored.id.session), key).await;
        let outline = sessions.outline(stored.id.session);
        let outline = outline.map_err(|error| Named::Response.refuse(error))?;
        let known = outline.response(&stored.id.to_string());
        let end = known.map_or(u64::MAX, ResponseOutline::behind);
        let body = self
            .so_far(sessions, &stored, end, RunningStatus::InProgress)
            .await?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let items = body.get("output").and_then(Value::as_array);
        let mut items = items.into_iter().flatten();
        let found = items.find(|item| item.get("id").is_some_and(|known| known == id));
        Ok(found.cloned())
    }
}

/// The type of an item that is only named.
const REFERENCE: &str = "item_reference";
