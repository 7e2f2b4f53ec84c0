//! The facts of a session that the service needs: who created it, its responses, and the calls that
//! wait for approval.

use super::lines;
use api::{Conversation, LogReader, Message, MessagePart, response_items};
use event::payload::{
    self, Approval, Cancel, FinishReason, Response, ResponseEnd, ResponseStatus, Retract, Status,
    StreamEnd, ToolCall, ToolResult, ToolUse,
};
use event::{Event, Kind, Scanner, Text};
use serde_json::Value;
use std::fmt;
use std::ops::Range;
use std::slice;
use store::SessionId;

/// The name under which a response is cancelled when its last client leaves.
pub(crate) const LEFT: &str = "disconnect";

/// The id of a response: its session, and the offset of its `response` line. The id locates the
/// response without an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ResponseId {
    /// The session.
    pub session: SessionId,
    /// The offset of the `response` line.
    pub offset: u64,
}

impl ResponseId {
    /// Parses an id with or without a protocol's prefix (`resp_`, `chatcmpl-`, `msg_`). Returns
    /// `None` if `text` is not an id.
    pub(crate) fn of(text: &str) -> Option<ResponseId> {
        let bare = text.rsplit(['_', '-']).next()?;
        let (session, offset) = bare.split_at_checked(32)?;
        let id = ResponseId {
            session: SessionId::of(session)?,
            offset: u64::from_str_radix(offset, 16).ok()?,
        };
        // Each id has exactly one spelling: no sign, no leading zero, no capital letter.
        (id.to_string() == bare).then_some(id)
    }
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:x}", self.session, self.offset)
    }
}

/// The first line of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionHead {
    /// The hash of the key of the client that created the session; `None` if no key was required.
    pub key: Option<String>,
    /// The time of creation, in milliseconds since 1970.
    pub created: u64,
    /// The session and the offset that this session was forked from, as JSON.
    pub fork: Option<String>,
    /// A conversation's metadata, as JSON.
    pub metadata: Option<String>,
}

impl SessionHead {
    fn read(event: &Event<'_>) -> SessionHead {
        let session = payload::Session::read(event);
        let json = |json: Option<event::Json<'_>>| json.map(|json| json.text().into_owned());
        SessionHead {
            key: session.key.map(|key| key.str().into_owned()),
            created: session.created,
            fork: json(session.fork),
            metadata: json(session.metadata),
        }
    }

    /// Whether `other` is the first line of the same file.
    pub(super) fn is_of_file(&self, other: &SessionHead) -> bool {
        (self.created, &self.key) == (other.created, &other.key)
    }

    /// Whether the client whose key has this hash created the session. Takes the same time for any
    /// hash.
    pub(crate) fn is_of(&self, key: Option<&str>) -> bool {
        let known = self.key.as_deref().unwrap_or_default().as_bytes();
        let asked = key.unwrap_or_default().as_bytes();
        let pairs = known.iter().zip(asked);
        known.len() == asked.len() && pairs.fold(0, |all, (a, b)| all | (a ^ b)) == 0
    }
}

/// Parses the head of the session that starts with these bytes. Returns `None` if they do not start
/// a session.
pub(crate) fn head(bytes: &[u8]) -> Option<SessionHead> {
    let mut head = None;
    lines::first(bytes, |event| {
        head = (event.kind() == Kind::Session).then(|| SessionHead::read(event));
    });
    head
}

/// A response of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponseOutline {
    /// The id, without a protocol's prefix.
    pub id: String,
    /// The offset of the `response` line.
    pub offset: u64,
    /// The offset after the `response_end` line; 0 while the response is in progress.
    pub end: u64,
    /// How the response ended; `None` while it is in progress.
    pub status: Option<ResponseStatus>,
    /// Whether the response continues when its client leaves.
    pub is_background: bool,
    /// The name of the client's protocol.
    pub front: String,
    /// The `Idempotency-Key` of its request.
    pub idempotency: Option<String>,
    /// The hash of its request's body.
    pub body_hash: Option<String>,
    /// The start time, in milliseconds since 1970.
    pub timestamp: u64,
    /// The id of the chat message that the response writes to.
    pub message: Option<String>,
    /// Who cancelled the response first.
    pub cancelled_by: Option<String>,
    /// Whether one of its streams is open.
    pub is_open: bool,
    /// Why its last stream ended.
    pub reason: Option<FinishReason>,
    /// How many of its turns have begun.
    pub turns: u32,
    /// Whether it has output that a client may have seen, or a call that may have run.
    pub has_content: bool,
}

impl ResponseOutline {
    /// The offset behind all that it has written, if it has ended.
    pub(crate) fn behind(&self) -> u64 {
        match self.end {
            0 => u64::MAX,
            end => end,
        }
    }

    /// Whether the response was cancelled because its client left.
    pub(crate) fn was_left(&self) -> bool {
        self.cancelled_by.as_deref() == Some(LEFT)
    }

    /// Whether the response failed, or was cut off, before it had any output.
    pub(crate) fn has_failed_first(&self) -> bool {
        let failed = [ResponseStatus::Failed, ResponseStatus::Interrupted].map(Some);
        failed.contains(&self.status) && !self.has_content
    }
}

/// A part of a session whose messages a conversation lists as items: what went into a response and
/// came out of it, or some of the messages that were added between responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ItemsPart {
    /// The offset of which the ids of its items are made. Parts of messages that follow each other
    /// share it.
    pub start: u64,
    /// How many items of this `start` earlier parts have.
    pub first: usize,
    /// Whether it is a response.
    pub is_response: bool,
    /// The offset of its first line.
    pub from: u64,
    /// The offset behind the messages that a client sent; `u64::MAX` while more may come.
    pub input: u64,
    /// The offset behind its last line; `u64::MAX` while more may come.
    pub end: u64,
    /// How many messages a part that is not a response has, and how many items they are.
    messages: usize,
    items: usize,
}

/// The most messages of a part that is not a response, so that a page reads few.
const PART: usize = 16;

impl ItemsPart {
    /// A part whose lines begin at `from`.
    fn new(start: u64, from: u64, is_response: bool) -> ItemsPart {
        ItemsPart {
            start,
            is_response,
            from,
            input: u64::MAX,
            end: u64::MAX,
            ..ItemsPart::default()
        }
    }
}

/// A running call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StartedCall {
    /// Its id.
    pub tool_id: String,
    /// The name of its stream, as JSON.
    stream: Option<String>,
    choice: u32,
}

impl StartedCall {
    /// Returns the line that cancels the call.
    pub(crate) fn retract(&self) -> Vec<u8> {
        let retract = Retract {
            tool_id: Some((&self.tool_id).into()),
            reason: "the user cancelled the call".into(),
            ..Retract::default()
        };
        let mut line = Vec::new();
        let stream = self.stream.as_deref();
        payload::line(&mut line, &retract.into(), stream, self.choice, None);
        line.push(b'\n');
        line
    }
}

/// A call that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingCall {
    /// Its id.
    pub tool_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// The hash by which an answer refers to the call.
    pub hash: String,
    /// The line of the call's `tool_result` event.
    pub line: String,
    /// The offset of the call's `tool_call` event.
    pub offset: Option<u64>,
}

/// The facts of a session. Its lines are added in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outline {
    /// The first line, with the metadata of the last `session` line.
    pub head: SessionHead,
    /// The first line of the first user message.
    pub title: Option<String>,
    /// The responses in order.
    pub responses: Vec<ResponseOutline>,
    /// The calls that wait for approval.
    pub pending: Vec<PendingCall>,
    /// The calls without a result: each id, and the offset of its `tool_call` event.
    called: Vec<(String, u64)>,
    /// The calls that have started but have no result.
    pub started: Vec<StartedCall>,
    /// The users' answers to calls that have not become pending again since: the id and the hash of
    /// each call, and the `approval` event.
    pub answered: Vec<(String, String, String)>,
    /// Whether a result since the model's last message is the final answer.
    pub is_final: bool,
    /// The ids of deleted items and responses.
    pub deleted: Vec<String>,
    /// The offset after the last line.
    pub end: u64,
    /// The messages, and which calls have run.
    talk: LogReader,
    /// Whether messages are discarded.
    is_brief: bool,
    /// The offset in the session of each message of `talk`.
    messages: Vec<u64>,
    /// The parts of the conversation's list of items, in order.
    parts: Vec<ItemsPart>,
}

impl Outline {
    /// An outline without the messages, and without what only the pieces of answers say: whether a
    /// response has content.
    pub(super) fn brief() -> Outline {
        Outline {
            is_brief: true,
            ..Outline::default()
        }
    }

    /// Returns the conversation without messages that applied to a single response. It shares its
    /// messages with the outline, so it is cheap even if they are long.
    pub(crate) fn conversation(&self) -> Conversation {
        self.talk.lasting()
    }

    /// Returns the approximate size in bytes of the messages, and so of a request built from them.
    pub(crate) fn conversation_size(&self) -> usize {
        self.talk.kept()
    }

    /// Returns the conversation as seen by the open response.
    pub(crate) fn open_conversation(&self) -> Conversation {
        self.talk.conversation()
    }

    /// Returns the approximate number of bytes held in memory.
    pub(super) fn kept(&self) -> usize {
        let [answered, pending] = [
            self.answered
                .iter()
                .map(|(.., line)| line.len() + 200)
                .sum::<usize>(),
            self.pending.iter().map(|call| call.line.len() + 200).sum(),
        ];
        let ids = self.called.len() + self.started.len() + self.deleted.len() + self.parts.len();
        let rest = self.responses.len() * 500 + self.messages.len() * 8 + ids * 100;
        self.talk.kept() + answered + pending + rest + size_of::<Outline>()
    }

    /// Returns the conversation as of the offset `end`, which follows the end of a response,
    /// without messages deleted since.
    pub(crate) fn conversation_before(&self, end: u64) -> Conversation {
        let mut talk = self.conversation();
        let count = self.messages.partition_point(|offset| *offset < end);
        talk.messages.truncate(count);
        talk
    }

    /// Takes the next line, which is at `place` of the session. `also` sees its event, too.
    pub(super) fn line(
        &mut self,
        scanner: &mut Scanner,
        line: &[u8],
        place: Range<u64>,
        also: impl FnOnce(&Event<'_>),
    ) {
        self.end = place.end;
        if (!self.is_brief || !is_piece(line))
            && let Some(event) = lines::event(scanner, line)
        {
            self.push(&event, place);
            also(&event);
        }
    }

    fn push(&mut self, event: &Event<'_>, place: Range<u64>) {
        let offset = place.start;
        let is_of_talk = matches!(
            event.kind(),
            Kind::Message | Kind::StreamStart | Kind::ToolUse | Kind::ToolResult | Kind::Response
        );
        if is_of_talk && !self.is_brief {
            // Unreadable messages are skipped, as `api::Conversation` does.
            let _ = self.talk.push(&event.raw());
            let count = self.talk.messages().len();
            if count > self.messages.len() {
                self.messages.push(offset);
                self.list_message(&place);
            }
        }
        match event.kind() {
            Kind::Session if offset == 0 => self.head = SessionHead::read(event),
            Kind::Session => self.head.metadata = SessionHead::read(event).metadata,
            Kind::Response => {
                self.responses.push(response(event, offset));
                self.begin_part(offset, ItemsPart::new(offset, offset, true));
            }
            Kind::ResponseEnd => self.response_end(&ResponseEnd::read(event), offset),
            Kind::Cancel => {
                let cancel = Cancel::read(event);
                if let (Some(id), None) = (cancel.id, cancel.tool_id)
                    && let Some(response) = self.response_mut(&id.str())
                {
                    let by = cancel.by.str().into_owned();
                    response.cancelled_by.get_or_insert(by);
                }
            }
            Kind::StreamEnd => {
                if let Some(last) = self.responses.last_mut() {
                    last.is_open = false;
                    last.reason = Some(StreamEnd::read(event).finish_reason);
                }
            }
            Kind::ToolCall => {
                let id = ToolCall::read(event).tool_id.str().into_owned();
                self.called.push((id, offset));
            }
            Kind::ToolUse => self.started.push(StartedCall {
                tool_id: ToolUse::read(event).tool_id.str().into_owned(),
                stream: event.stream().map(|stream| stream.text().to_owned()),
                choice: event.choice(),
            }),
            Kind::ToolResult => self.tool_result(event),
            Kind::Approval => {
                let approval = Approval::read(event);
                let [id, hash] =
                    [approval.tool_id, approval.hash].map(|text| text.str().into_owned());
                self.answered.push((id, hash, event.raw().into_owned()));
            }
            Kind::Message => {
                let message = payload::Message::read(event);
                self.is_final &= !message.is_of("assistant");
                if self.title.is_none() && !message.once && message.is_of("user") {
                    self.title = Some(title(&message));
                }
            }
            kind if kind.begins_stream() => {
                if let Some(last) = self.responses.last_mut() {
                    last.is_open = true;
                    last.turns += u32::from(kind == Kind::StreamStart);
                    last.has_content |= !matches!(kind, Kind::StreamStart | Kind::Error);
                }
                if let Some(part) = self.parts.last_mut().filter(|part| part.is_response) {
                    part.input = part.input.min(offset);
                }
            }
            _ => {}
        }
    }

    /// Returns the parts of the conversation's list of items, in order.
    pub(crate) fn parts(&self) -> &[ItemsPart] {
        &self.parts
    }

    /// Returns the messages before the offset `end`.
    pub(crate) fn messages_before(&self, end: u64) -> &[Message] {
        let count = self.messages.partition_point(|offset| *offset < end);
        &self.talk.messages()[..count]
    }

    /// Starts a part of the list of items at the offset `at`.
    fn begin_part(&mut self, at: u64, part: ItemsPart) {
        if self
            .parts
            .pop_if(|last| !last.is_response && last.messages == 0)
            .is_none()
            && let Some(last) = self.parts.last_mut()
        {
            last.end = at;
            last.input = last.input.min(at);
        }
        self.parts.push(part);
    }

    /// Adds the last message of `talk` to the list of items.
    fn list_message(&mut self, place: &Range<u64>) {
        if self.parts.is_empty() {
            self.parts.push(ItemsPart::new(0, 0, false));
        }
        let (Some(part), Some(message)) = (self.parts.last_mut(), self.talk.messages().last())
        else {
            return;
        };
        if part.is_response {
            return;
        }
        part.messages += 1;
        part.items += response_items(slice::from_ref(message), [&[], &[]], "", 0).len();
        if part.messages == PART {
            let next = ItemsPart {
                first: part.first + part.items,
                ..ItemsPart::new(part.start, place.end, false)
            };
            self.begin_part(place.end, next);
        }
    }

    fn response_end(&mut self, end: &ResponseEnd<'_>, offset: u64) {
        let id = end.id.str();
        let behind = self.end;
        self.begin_part(behind, ItemsPart::new(offset, behind, false));
        let status = ResponseStatus::of(&end.status.str());
        if status == Some(ResponseStatus::Deleted) {
            self.deleted.push(id.into_owned());
            if let Some(offset) = end.message {
                self.hide(offset, end.part.map(Text::str).as_deref());
            }
        } else if let Some(response) = self.response_mut(&id)
            && response.status.is_none()
        {
            response.status = status;
            response.end = behind;
        }
    }

    /// The offset of each message of [`Outline::conversation`], and whether the model wrote it.
    pub(super) fn places(&self) -> Vec<(u64, bool)> {
        let is_answer = |message: &Message| message.role() == "assistant";
        let all = self.messages.iter().zip(self.talk.messages());
        all.map(|(offset, message)| (*offset, is_answer(message)))
            .collect()
    }

    /// Removes a message, or a part of it, from the conversation.
    pub(super) fn hide(&mut self, offset: u64, part: Option<&str>) {
        let Ok(at) = self.messages.binary_search(&offset) else {
            return;
        };
        let is_left = part.is_some_and(|part| {
            let part = match part {
                CONTENT | REASONING => MessagePart::Member(part),
                id => MessagePart::Call(id),
            };
            self.talk.remove_part(at, part)
        });
        if !is_left {
            self.messages.remove(at);
            self.talk.remove(at);
        }
    }

    fn response_mut(&mut self, id: &str) -> Option<&mut ResponseOutline> {
        self.responses
            .iter_mut()
            .rev()
            .find(|response| response.id == id)
    }

    fn tool_result(&mut self, event: &Event<'_>) {
        let result = ToolResult::read(event);
        let id = result.tool_id.str();
        self.pending.retain(|call| call.tool_id != id);
        self.started.retain(|started| started.tool_id != id);
        self.is_final |= result.return_directly && result.status == Status::Success.name();
        let offset = self.called.iter().rev().find(|(called, _)| *called == id);
        let offset = offset.map(|(_, offset)| *offset);
        if result.status != Status::Pending.name() {
            self.called.retain(|(called, _)| *called != id);
        } else {
            // Providers may reuse ids, and a call that was cut off becomes pending again. An
            // earlier answer does not apply to the new question.
            self.answered.retain(|(answered, ..)| *answered != id);
            let text = |text: Option<Text<'_>>| text.map(|text| text.str().into_owned());
            self.pending.push(PendingCall {
                tool_id: id.into_owned(),
                tool_name: result.tool_name.str().into_owned(),
                hash: text(result.hash).unwrap_or_default(),
                line: event.raw().into_owned(),
                offset,
            });
        }
    }

    /// Whether a person has answered a call that still waits: its answer is being carried out, or that
    /// has failed.
    pub(crate) fn has_answered_call(&self) -> bool {
        self.pending.iter().any(|call| {
            let mut answers = self.answered.iter();
            answers.any(|(id, hash, _)| (id, hash) == (&call.tool_id, &call.hash))
        })
    }

    /// Returns the response in progress, if there is one.
    pub(crate) fn active(&self) -> Option<&ResponseOutline> {
        self.responses
            .last()
            .filter(|response| response.status.is_none())
    }

    /// Returns the response with this id, or `None` if it does not exist or was deleted.
    pub(crate) fn response(&self, id: &str) -> Option<&ResponseOutline> {
        let found = self.responses.iter().find(|response| response.id == id)?;
        (!self.deleted.iter().any(|deleted| deleted == id)).then_some(found)
    }
}

/// Whether a line as the service writes it is a piece of an answer. Most lines are.
fn is_piece(line: &[u8]) -> bool {
    const PIECES: [&[u8]; 3] = [
        b"{\"type\":\"content_delta\"",
        b"{\"type\":\"tool_call_delta\"",
        b"{\"type\":\"thinking\"",
    ];
    PIECES.iter().any(|piece| line.starts_with(piece))
}

/// The maximum length of a session's title in bytes.
const TITLE: usize = 200;

/// The first line of what a message says.
fn title(message: &payload::Message<'_>) -> String {
    let message: Value = serde_json::from_str(&message.message.text()).unwrap_or_default();
    let content = &message["content"];
    let parts = content.as_array().into_iter().flatten();
    let text = content
        .as_str()
        .or_else(|| parts.filter_map(|part| part["text"].as_str()).next());
    let line = text.unwrap_or_default().trim().lines().next();
    event::cut(line.unwrap_or_default(), TITLE).to_owned()
}

/// The parts of a message that can be deleted, in addition to its calls.
const CONTENT: &str = "content";
const REASONING: &str = "reasoning";

fn response(event: &Event<'_>, offset: u64) -> ResponseOutline {
    let response = Response::read(event);
    let text = |text: Option<Text<'_>>| text.map(|text| text.str().into_owned());
    ResponseOutline {
        id: response.id.str().into_owned(),
        offset,
        is_background: response.background,
        front: response.front.str().into_owned(),
        idempotency: text(response.idempotency),
        body_hash: text(response.body_hash),
        timestamp: response.timestamp.unwrap_or_default(),
        message: response.answer.and_then(|answer| {
            answer.with(|answer| {
                let message = answer.get("ui")?.get_str("message")?;
                Some(message.into_owned())
            })
        }),
        ..ResponseOutline::default()
    }
}

/// Returns the status of a response whose last stream ended for this reason.
pub(crate) fn status_of(reason: Option<FinishReason>) -> ResponseStatus {
    match reason {
        Some(FinishReason::Stop | FinishReason::ToolCalls) => ResponseStatus::Completed,
        Some(FinishReason::Length | FinishReason::ContentFilter) => ResponseStatus::Incomplete,
        Some(FinishReason::Cancelled) => ResponseStatus::Cancelled,
        Some(FinishReason::Error | FinishReason::Cut) | None => ResponseStatus::Failed,
    }
}
