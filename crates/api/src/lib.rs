//! Conversions between provider APIs and toolpipe's events, in both directions: response streams
//! into events and conversations into requests, and, for clients that speak a provider's API,
//! requests into conversations and events into responses.
//!
//! The main types are [`Api`], the table of APIs; [`Stream`], which converts the bytes of a
//! response into events; [`Conversation`], the messages in a log; and [`request`], which builds the
//! request for the next turn. This crate opens no connections, reads no clock, and does not merge
//! tool calls.

mod ag_ui;
mod ai_sdk;
mod answer;
mod anthropic;
mod api;
mod attachment;
mod capability;
mod carried;
mod cohere;
mod common;
mod conversation;
mod failure;
mod framing;
mod gemini;
mod inbound;
mod known_server;
mod members;
mod mistral;
mod models;
mod no_data;
mod ollama;
mod openai_chat;
mod openai_responses;
mod overflow;
mod passed;
mod price;
mod provider;
mod question;
mod recognise;
mod refusal;
mod request;
pub mod sse;
mod stream;
pub mod tape;
mod template;
mod turn;
mod ui;
mod verbatim;

pub use crate::answer::details::REPEATED;
pub use crate::answer::encoder::{AnswerForm, Encoder, Front};
pub use crate::answer::failure::FailedAnswer;
pub use crate::answer::response::WholeResponse;
pub use crate::answer::step::{AnswerOptions, Clock, Dropped, RunningStatus};
pub use crate::api::Api;
pub use crate::attachment::{AttachmentError, attachment};
pub use crate::capability::{
    ProbeAnswer, ProbeQuestion, ServerKind, ServerReport, capability_key, host_of, plain_url,
    questions, server_questions,
};
pub use crate::conversation::{
    Conversation, LogReader, Message, MessagePart, PastBlock, PastCall, Problem,
};
pub use crate::failure::{Words, error_message, is_context_overflow};
pub use crate::inbound::{
    ClientApproval, InboundError, InboundRequest, Instructions, NamespacedTool, Reference,
    ReferenceKind, TargetServer, forwarded_headers, inbound, inbound_size, message_lines,
    most_tokens, request_event, settings_for, ui_inbound, with_at_most, with_fitted_budget,
};
pub use crate::known_server::KnownServer;
pub use crate::models::{ListedModel, listed_models, models_request};
pub use crate::openai_responses::listing::response_items;
pub use crate::passed::passed_request;
pub use crate::price::Price;
pub use crate::question::{InputLine, QuestionTemplate};
pub use crate::recognise::{LOOKED_AT, RecordingForm, recognise, unrecognised};
pub use crate::refusal::refuses_tools;
pub use crate::request::{Request, RequestError, RequestOptions, request};
pub use crate::stream::{End, Stream, StreamOptions};
pub use crate::ui::{Chat, ChatMessage, ChatTrigger, UiFront, UiOptions, UiRunner, UiStream};

#[cfg(test)]
#[path = "tests/support.rs"]
mod support;
#[cfg(test)]
#[path = "tests/templates.rs"]
mod templates;
