//! Streams and requests of user interfaces: the table of supported protocols.

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

/// A protocol for user interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UiFront {
    /// The AI SDK's UI message stream.
    AiSdk,
    /// The AG-UI protocol.
    AgUi,
}

/// One protocol in the table.
pub(crate) struct UiRow {
    /// The protocol's name, as used in a session's `response` event.
    pub name: &'static str,
    /// The path for requests.
    pub path: &'static str,
    /// Response headers specific to this protocol.
    pub headers: &'static [(&'static str, &'static str)],
    /// Whether a response can continue the message of an earlier response. If not, each response
    /// creates new messages.
    pub goes_on: bool,
    /// Creates the writer for a stream.
    pub writer: fn(&UiOptions) -> Box<dyn UiWriter>,
    /// Parses a request body.
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

    /// Returns the protocol's name, as used in a session's `response` event.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the path for requests.
    pub fn path(self) -> &'static str {
        self.row().path
    }

    /// Returns the options for the stream that answers `request`. `id` is the response's id.
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

    /// Returns the response headers specific to this protocol.
    pub fn headers(self) -> &'static [(&'static str, &'static str)] {
        self.row().headers
    }
}

/// The settings of a stream that are not in the events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UiOptions {
    /// The client's id of the chat.
    #[serde(default)]
    pub chat: String,
    /// The client's id of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The id of the message that the response writes, or the prefix of its messages' ids.
    #[serde(default)]
    pub message: String,
    /// The id of the response.
    #[serde(default)]
    pub response: String,
    /// Whether the client already has the start of the message from an earlier response.
    #[serde(default)]
    pub continues: bool,
    /// Who runs the calls. Not serialized, since no event contains it.
    #[serde(skip)]
    pub runner: UiRunner,
}

/// Who runs the calls in a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UiRunner {
    /// The client.
    #[default]
    Client,
    /// The service runs all calls except those to the listed tools, which the client runs.
    Service(Vec<String>),
}

impl UiOptions {
    /// Whether the service runs calls to `tool`.
    pub(crate) fn is_own(&self, tool: &str) -> bool {
        match &self.runner {
            UiRunner::Client => false,
            UiRunner::Service(clients) => clients.iter().all(|name| name != tool),
        }
    }
}
