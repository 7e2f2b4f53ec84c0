//! Sessions of `tc-serve`: a session is a file of event lines, in which these are the lines that
//! no pipe writes.

use super::field::*;
use super::stream::ProtocolVersion;

payload! {
    /// The first line of a session file. A later line of this type in the same file replaces the
    /// metadata.
    Session<'a> {
        /// The version of the protocol.
        v: ProtocolVersion,
        /// The id of the session: 32 hex digits.
        id: Text<'a>,
        /// A hash of the key of the client that began the session; absent where the service asks
        /// for no key.
        key: Option<Text<'a>>,
        /// When the session began, in milliseconds since 1970.
        created: u64,
        /// The session that this one continues, and the byte offset up to which the messages of
        /// that session are copied here.
        fork: Option<Json<'a>> = r#""type":"object","properties":{"id":{"type":"string"},"offset":{"type":"integer","minimum":0}},
            "required":["id","offset"]"#,
        /// The metadata of a conversation, as its client set it.
        metadata: Option<Json<'a>> = r#""type":"object""#,
    }
}

payload! {
    /// A response begins. Written before the upstream is asked, so that a crash leaves a trace of
    /// it. What follows belongs to the response: its request, its new messages, and the events of
    /// the answer.
    Response<'a> {
        /// The id of the response.
        id: Text<'a>,
        /// The name of the API that the client speaks, or `events` for a client that reads the
        /// events.
        front: Text<'a>,
        /// The API of the provider that is asked.
        api: Option<Text<'a>>,
        /// The model that is asked.
        model: Option<Text<'a>>,
        /// The response goes on when its client leaves.
        background: bool as Flag,
        /// The `Idempotency-Key` of the request: a second request with it gets this response.
        idempotency: Option<Text<'a>>,
        /// A hash of the body of the request, by which a request that is sent again is recognised.
        body_hash: Option<Text<'a>>,
        /// What writing the answer again needs besides the events: the settings of the encoder.
        answer: Option<Json<'a>> = r#""type":"object""#,
        /// Milliseconds since 1970.
        timestamp: Option<u64>,
        /// The client's `traceparent`: names the parent span of the response.
        traceparent: Option<Text<'a>>,
        /// The client's `tracestate`, which goes on with the span.
        tracestate: Option<Text<'a>>,
    }
}

words! {
    /// How a response ended.
    ResponseStatus {
        /// The answer is whole.
        Completed = "completed",
        /// A limit or a filter cut the answer.
        Incomplete = "incomplete",
        /// The provider, a tool or the connection failed.
        Failed = "failed",
        /// A client cancelled the response.
        Cancelled = "cancelled",
        /// The service ended before the answer did.
        Interrupted = "interrupted",
        /// A client deleted the response: no request finds it any more.
        Deleted = "deleted",
    }
}

payload! {
    /// A response has ended; with the status `deleted`, a response that ended earlier is deleted, or
    /// an item of the conversation.
    ResponseEnd<'a> {
        /// The id of the response, or of the item.
        id: Text<'a>,
        /// `completed`, `incomplete`, `failed`, `cancelled`, `interrupted` or `deleted`.
        status: Text<'a> = ResponseStatus::SCHEMA,
        /// Milliseconds since 1970.
        timestamp: Option<u64>,
        /// The offset in the session of the message that a deleted item was made of. The model does
        /// not get it any more.
        message: Option<u64>,
        /// What of that message is deleted, if not all of it: `content`, `reasoning` or the id of a
        /// call.
        part: Option<Text<'a>>,
    }
}

payload! {
    /// Somebody cancelled a response or one call. A record for people: it stops nothing when a file
    /// is read.
    Cancel<'a> {
        /// The id of the response.
        id: Option<Text<'a>>,
        /// The id of the call, where a single call is cancelled.
        tool_id: Option<Text<'a>>,
        /// Who cancelled.
        by: Text<'a>,
    }
}

payload! {
    /// Who may write to the session from this line on. Only a store that several services share
    /// writes it.
    Lease<'a> {
        /// Grows with each holder: lines of a holder with a lower epoch do not count.
        epoch: u64,
        /// The service that may write.
        holder: Text<'a>,
    }
}
