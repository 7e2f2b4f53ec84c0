//! Streams for user interfaces, and the requests of their clients: the table of the protocols.

pub(crate) mod chat;
pub(crate) mod step;
pub(crate) mod stream;

use crate::inbound::draft::InboundNotes;
use crate::inbound::request::{InboundError, InboundRequest};
use crate::ui::step::UiWriter;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::ui::chat::{Chat, ChatMessage, ChatTrigger};
pub use crate::ui::stream::UiStream;

/// A protocol of user interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UiFront {
    /// The UI message stream of the AI SDK.
    AiSdk,
    /// The runs of AG-UI.
    AgUi,
}

/// A row of the table.
pub(crate) struct UiRow {
    /// Its name, in the `response` event of a session.
    pub name: &'static str,
    /// The path of its requests.
    pub path: &'static str,
    /// The headers of its streams, beside those of all streams.
    pub headers: &'static [(&'static str, &'static str)],
    /// Whether an answer can continue the message of an earlier one. If not, each answer consists of
    /// messages of its own.
    pub goes_on: bool,
    /// Makes the writer of a stream.
    pub writer: fn(&UiOptions) -> Box<dyn UiWriter>,
    /// Reads the body of a request.
    pub read: fn(Map<String, Value>, InboundNotes) -> Result<InboundRequest, InboundError>,
}

impl UiFront {
    /// Every protocol.
    pub const ALL: [UiFront; 2] = [UiFront::AiSdk, UiFront::AgUi];

    pub(crate) fn row(self) -> &'static UiRow {
        match self {
            UiFront::AiSdk => &crate::ai_sdk::ROW,
            UiFront::AgUi => &crate::ag_ui::ROW,
        }
    }

    /// The name, in the `response` event of a session.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The path of the requests.
    pub fn path(self) -> &'static str {
        self.row().path
    }

    /// The options of the stream that answers a request; `id` is the id of the response.
    pub fn options(self, id: &str, request: &InboundRequest) -> UiOptions {
        let chat = request.chat.as_deref();
        let continued = chat.and_then(Chat::continued);
        let message = continued.filter(|message| self.row().goes_on && !message.id.is_empty());
        UiOptions {
            chat: chat.map(|chat| chat.id.clone()).unwrap_or_default(),
            run: chat.and_then(|chat| chat.run.clone()),
            message: message.map_or_else(|| format!("msg_{id}"), |message| message.id.clone()),
            response: format!("resp_{id}"),
            continues: continued.is_some(),
            ..UiOptions::default()
        }
    }

    /// The headers of the stream, beside those of all streams.
    pub fn headers(self) -> &'static [(&'static str, &'static str)] {
        self.row().headers
    }
}

/// What a stream needs beside the events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UiOptions {
    /// The client's id of the chat.
    #[serde(default)]
    pub chat: String,
    /// The client's id of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The id of the message that the answer writes, or the prefix of the ids of its messages.
    #[serde(default)]
    pub message: String,
    /// The id of the response.
    #[serde(default)]
    pub response: String,
    /// Whether the client has the beginning of the message, which an earlier response wrote.
    #[serde(default)]
    pub continues: bool,
    /// Who runs the calls: no event holds that.
    #[serde(skip)]
    pub runner: UiRunner,
}

/// Who runs the calls of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UiRunner {
    /// The client.
    #[default]
    Client,
    /// The service runs all calls but those of these tools, which the client runs.
    Service(Vec<String>),
}

impl UiOptions {
    /// Whether the service runs the calls of this tool.
    pub(crate) fn is_own(&self, tool: &str) -> bool {
        match &self.runner {
            UiRunner::Client => false,
            UiRunner::Service(clients) => clients.iter().all(|name| name != tool),
        }
    }
}
