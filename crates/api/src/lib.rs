//! What is known of provider APIs: their streams into events, conversations into their requests.
//!
//! What it is: the table of APIs ([`Api`]), [`Stream`], which is fed the bytes of a response in any
//! pieces and writes events, [`Conversation`], which is what a log holds, and [`request`], which
//! makes the request of the next turn. What it is not: it opens no connection, has no clock, and
//! merges no tool calls.

mod answer;
mod api;
mod capability;
mod carried;
mod conversation;
mod decoder;
mod failure;
mod framing;
mod inbound;
mod models;
mod overflow;
mod passed;
mod provider;
mod recognise;
mod recording;
mod refusal;
mod request;
pub mod sse;
mod stream;
pub mod tape;
mod turn;
mod usage;
mod verbatim;

pub use answer::{
    AnswerOptions, Block, ChoiceDraft, Draft, Dropped, Encoder, Failure, Form, Front, Members,
    NamespacedName, Place, ProviderError, REPEATED, Step, Usage,
};
pub use api::Api;
pub use capability::{
    Answer, Question, Server, ServerKind, capability_key, host_of, plain_url, questions,
    server_questions,
};
pub use conversation::{Conversation, Message, PastBlock, PastCall, Problem};
pub use failure::{error_message, is_context_overflow};
pub use inbound::{
    InboundError, InboundRequest, NamespacedTool, Reference, ReferenceKind, Target,
    forwarded_headers, inbound, inbound_size, request_event,
};
pub use models::{ListedModel, listed_models, models_request};
pub use passed::passed_request;
pub use recognise::recognise;
pub use recording::{LOOKED_AT, RecordingForm};
pub use refusal::refuses_tools;
pub use request::{Request, RequestError, RequestOptions, request};
pub use stream::{End, Stream, StreamOptions};
