//! Conversations and their items. Source of the formats: OpenAI's
//! <https://platform.openai.com/docs/api-reference/conversations>.

use super::body;
use super::kept::{AskedFor, input_prefix, is_once, list, no_such_item, object};
use super::refusals::Named;
use super::response::{Refusal, ResponseBody};
use super::service::{Admitted, Service};
use super::stored::{StoredResponse, conversation_id};
use crate::budget::Share;
use crate::front::AnyFront;
use crate::sessions::{ItemsPart, Outline, ResponseId, ResponseOutline, Sessions, line, random_id};
use api::{Api, Conversation, Front, RunningStatus, response_items};
use event::payload::Session;
use event::{Json, Kind, Scanner};
use hyper::Response;
use hyper::body::Bytes;
use serde_json::{Map, Value, json};
use std::rc::Rc;
use store::{SessionId, StoreError};

/// The most items in a new conversation.
const ITEMS: usize = 1000;

impl AskedFor {
    /// Returns the session of the conversation that the path names.
    fn session(&self) -> Result<SessionId, Refusal> {
        let id = self.id.strip_prefix("conv_").and_then(SessionId::of);
        let id = id.ok_or_else(|| Named::Conversation.unknown())?;
        let opened = self.sessions.open(id, self.key.as_deref());
        opened.map_err(|error| Named::Conversation.refuse(error))?;
        Ok(id)
    }

    /// Creates a conversation.
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

    /// Returns the conversation object.
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

    /// Replaces the conversation's metadata.
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

    /// Appends lines to a session that no one else is writing.
    fn append<T>(
        &self,
        id: SessionId,
        lines: impl FnOnce(&Outline) -> (Vec<u8>, T),
    ) -> Result<T, Refusal> {
        let written = self.sessions.write(id, self.key.as_deref());
        let (mut writer, outline) = written.map_err(|error| Named::Response.refuse(error))?;
        let (lines, value) = lines(&outline);
        let appended = writer.append(&lines);
        appended.map_err(|error| Named::Response.refuse(error))?;
        Ok(value)
    }

    /// Deletes the conversation with all its responses.
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
        let lines = item_lines(body)?;
        let before = self.append(id, |outline| (lines.into_bytes(), outline.end))?;
        let mut items = ConversationItems::of(self, service, id)?;
        let is_added = |part: &ItemsPart| part.input > before;
        let first = items.outline.parts().iter().position(is_added);
        let mut added = Vec::new();
        for at in first.unwrap_or(usize::MAX)..items.outline.parts().len() {
            added.extend(items.part(at).await?);
        }
        let is_added = |item: &ConversationItem| item.message.is_some_and(|at| at >= before);
        added.retain(is_added);
        Ok(items_list(added, false))
    }

    /// Returns a page of the conversation's items. Reads only the parts of the session that the
    /// page needs.
    pub(super) async fn items_page(
        &self,
        service: &Service,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let page = self.asked_page()?;
        let mut items = ConversationItems::of(self, service, self.session()?)?;
        let count = items.outline.parts().len();
        let mut found = Vec::new();
        let mut after = page.after;
        let in_order = |at: usize| if page.is_up { at } else { count - 1 - at };
        let named = after.and_then(|id| items.place_of(id)).map(in_order);
        for place in named.unwrap_or_default()..count {
            let at = in_order(place);
            let mut part = items.part(at).await?;
            if !page.is_up {
                part.reverse();
            }
            if let Some(id) = after {
                match part.iter().position(|item| item.has_id(id)) {
                    Some(last) => drop(part.drain(..=last)),
                    None if named.is_some() => break,
                    None => continue,
                }
                after = None;
            }
            found.extend(part);
            if found.len() > page.limit {
                break;
            }
        }
        if after.is_some() {
            return Err(no_such_item());
        }
        let has_more = found.len() > page.limit;
        found.truncate(page.limit);
        Ok(items_list(found, has_more))
    }

    /// Returns the item that the path names.
    pub(super) async fn one_item(
        &self,
        service: &Service,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let mut items = ConversationItems::of(self, service, self.session()?)?;
        let parts = match items.place_of(&self.item) {
            Some(at) => at..at + 1,
            None => 0..items.outline.parts().len(),
        };
        for at in parts {
            let mut all = items.part(at).await?.into_iter();
            if let Some(found) = all.find(|item| item.has_id(&self.item)) {
                return Ok(object(&found.item));
            }
        }
        let unknown = "the conversation has no such item";
        Err(Refusal::new(404, "item_not_found", unknown))
    }
}

/// The items of a conversation, read one part at a time: the input and the output of each response,
/// with the ids that its client has seen.
struct ConversationItems<'a> {
    asked: &'a AskedFor,
    service: &'a Service,
    id: SessionId,
    outline: Rc<Outline>,
    /// The memory share of the items read so far.
    share: Share,
}

/// An item of a conversation.
struct ConversationItem {
    /// The item in the API's format.
    item: Value,
    /// The offset of the first message that was read with the item; `None` for an item of a
    /// response's output.
    message: Option<u64>,
}

impl ConversationItem {
    fn has_id(&self, id: &str) -> bool {
        self.item.get("id").is_some_and(|known| known == id)
    }
}

impl<'a> ConversationItems<'a> {
    fn of(
        asked: &'a AskedFor,
        service: &'a Service,
        id: SessionId,
    ) -> Result<ConversationItems<'a>, Refusal> {
        let outline = asked.sessions.outline(id);
        Ok(ConversationItems {
            asked,
            service,
            id,
            outline: outline.map_err(|error| Named::Response.refuse(error))?,
            share: service.pipe.budget.share(),
        })
    }

    /// Returns the index of the part that contains the item with this id, or `None` if the id does
    /// not name a part. The id contains the session's id, followed by the offset of the part.
    fn place_of(&self, item: &str) -> Option<usize> {
        let (_, rest) = item.split_once(&self.id.to_string())?;
        let digits = rest.find(|digit: char| !digit.is_ascii_hexdigit());
        let start = u64::from_str_radix(&rest[..digits.unwrap_or(rest.len())], 16).ok()?;
        let number = rest
            .rsplit_once('_')
            .and_then(|(_, number)| number.parse().ok());
        let parts = self.outline.parts();
        let is_before = |part: &ItemsPart| {
            part.start < start || (part.start == start && number.is_none_or(|n| part.first <= n))
        };
        let at = parts.partition_point(is_before).checked_sub(1)?;
        (parts[at].start == start).then_some(at)
    }

    /// Returns the items of the part with index `at`.
    async fn part(&mut self, at: usize) -> Result<Vec<ConversationItem>, Refusal> {
        let (sessions, id) = (&self.asked.sessions, self.id);
        let part = self.outline.parts()[at];
        let failed = |error: StoreError| Named::Response.refuse(error);
        let mut lines = Vec::new();
        let mut size = 0;
        let read = sessions.read_events(id, part.from..part.input, |event, place| {
            if event.kind() == Kind::Message && !is_once(event) {
                let line = event.raw().into_owned();
                size += api::inbound_size(line.as_bytes());
                lines.push((place.start, line));
            }
        });
        read.await.map_err(failed)?;
        let mut items = Vec::new();
        self.keep(size)?;
        let response = part.is_response.then_some(ResponseId {
            session: id,
            offset: part.start,
        });
        let prefix = response.map_or_else(|| format!("{id}{:x}", part.start), input_prefix);
        let mut messages = Vec::new();
        let before = self.outline.messages_before(part.from);
        for (offset, line) in lines {
            let known = messages.len();
            messages.extend(Conversation::read(&line).0.messages);
            let (earlier, own) = messages.split_at(known);
            let first = part.first + items.len();
            let all = response_items(own, [before, earlier], &prefix, first);
            items.extend(all.into_iter().map(|item| ConversationItem {
                item,
                message: Some(offset),
            }));
            tokio::task::yield_now().await;
        }
        if let Some(response) = response {
            let mut stored = StoredResponse::read(sessions, response)?;
            stored.front = AnyFront::Api(Front::Responses);
            let status = RunningStatus::InProgress;
            let body = self.service.so_far(sessions, &stored, part.end, status);
            let body = body.await?;
            self.keep(api::inbound_size(&body))?;
            let output = output_items(&body)?.into_iter();
            items.extend(output.map(|item| ConversationItem {
                item,
                message: None,
            }));
        }
        let deleted = &self.outline.deleted;
        items.retain(|item| !deleted.iter().any(|id| item.has_id(id)));
        Ok(items)
    }

    /// Adds bytes to the memory share, which is held until the response is complete.
    fn keep(&mut self, bytes: usize) -> Result<(), Refusal> {
        let beside = self.outline.conversation_size();
        Ok(self.share.reserve(self.share.kept() + bytes, beside)?)
    }
}

/// Returns the `output` of a response object.
///
/// # Errors
/// 500 if the object is invalid: a client must not take its items for deleted.
fn output_items(object: &[u8]) -> Result<Vec<Value>, Refusal> {
    #[derive(serde::Deserialize)]
    struct ResponseObject {
        output: Vec<Value>,
    }
    match serde_json::from_slice::<ResponseObject>(object) {
        Ok(object) => Ok(object.output),
        Err(error) => {
            let message = format!("the response object is invalid: {error}");
            Err(Refusal::new(500, "internal_error", message))
        }
    }
}

/// Returns a response with these items as a list.
fn items_list(items: Vec<ConversationItem>, has_more: bool) -> Response<ResponseBody> {
    let items: Vec<Value> = items.into_iter().map(|item| item.item).collect();
    list(&items, has_more)
}

/// Returns the `metadata` of a body as JSON.
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

/// Returns the `items` of a body as `message` events.
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

// Items that a request refers to by id.

impl Service {
    /// Returns the body of a request with references to stored items replaced by the items. The AI
    /// SDK sends earlier items only by id. A reference to an item that is not stored for this
    /// client is left unchanged.
    ///
    /// # Errors
    /// 503 if the service has no memory to read the item, and 507 if the session cannot be read.
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

    /// Returns the stored item with this id, or `None` if this client has no such item.
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
        let Some(response) = response else {
            return Ok(None);
        };
        let failed = |error: StoreError| Named::Response.refuse(error);
        match sessions.open(response.session, key) {
            Err(StoreError::Unknown) => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let Some(mut stored) = StoredResponse::find(sessions, response)? else {
            return Ok(None);
        };
        stored.front = AnyFront::Api(Front::Responses);
        let read = sessions.read_ahead_of(Some(stored.id.session), key);
        read.await.map_err(failed)?;
        let outline = sessions.outline(stored.id.session).map_err(failed)?;
        let known = outline.response(&stored.id.to_string());
        let end = known.map_or(u64::MAX, ResponseOutline::behind);
        let body = self
            .so_far(sessions, &stored, end, RunningStatus::InProgress)
            .await?;
        let mut items = output_items(&body)?.into_iter();
        Ok(items.find(|item| item.get("id").is_some_and(|known| known == id)))
    }
}

/// The type of an item that only refers to another item.
const REFERENCE: &str = "item_reference";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_response_object_is_not_one_without_items() {
        assert_eq!(output_items(br#"{"output":[]}"#).ok(), Some(Vec::new()));
        for invalid in ["", "null", "{}", r#"{"output":[]"#, r#"{"output":null}"#] {
            let refusal = output_items(invalid.as_bytes()).expect_err(invalid);
            assert_eq!(refusal.failure.status, 500, "{invalid}");
        }
    }
}
