//! The AI SDK's chat protocol: its UI messages, and the stream that `useChat` reads. Source: the
//! package `ai`, version 7.0.173 (<https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol>).

mod inbound;
mod stream;

use crate::ui::UiRow;

/// The AI SDK's row in the table of protocols.
pub(crate) const ROW: UiRow = UiRow {
    name: "ai-sdk",
    path: "/api/chat",
    headers: &[("x-vercel-ai-ui-message-stream", "v1")],
    goes_on: true,
    writer: |options| Box::new(stream::AiSdkWriter::new(options)),
    read: inbound::read,
};
