//! A span, and its OTLP JSON format
//! (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>: ids are hexadecimal, 64-bit
//! integers are strings, enum values are numbers).

use crate::semconv;
use event::{Array, Object, Text};
use trace::SpanContext;

/// A span. Times are in nanoseconds since 1970.
#[derive(Debug)]
pub(super) struct Span {
    pub name: String,
    pub kind: SpanKind,
    /// The span id that the log has for it, since a request has sent that id; `None` if the id is
    /// derived.
    pub known: Option<SpanContext>,
    pub start: u64,
    /// The end time; `None` until the span has ended.
    pub end: Option<u64>,
    pub attributes: Attributes,
    pub events: Vec<SpanEvent>,
    /// The `error.type`, if the operation failed.
    pub error: Option<String>,
    /// The error message.
    pub message: Option<String>,
}

/// The kind of a span: whether it calls another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanKind {
    Internal,
    Client,
}

/// An event that happened while a span was open.
#[derive(Debug)]
pub(super) struct SpanEvent {
    pub name: &'static str,
    pub time: u64,
    pub attributes: Attributes,
}

/// Attributes in order.
#[derive(Debug, Default)]
pub(super) struct Attributes(Vec<(&'static str, AttributeValue)>);

#[derive(Debug)]
enum AttributeValue {
    Text(String),
    Integer(i128),
    Double(f64),
    Flag(bool),
    Texts(Vec<String>),
}

impl Attributes {
    pub(super) fn text(&mut self, key: &'static str, text: impl Into<String>) -> &mut Self {
        self.set(key, AttributeValue::Text(text.into()))
    }

    /// Adds a text attribute unless the text is absent or empty.
    pub(super) fn some(&mut self, key: &'static str, text: Option<Text<'_>>) -> &mut Self {
        match text.filter(|text| !text.is_empty()) {
            Some(text) => self.text(key, text.str()),
            None => self,
        }
    }

    pub(super) fn integer(&mut self, key: &'static str, n: Option<impl Into<i128>>) -> &mut Self {
        match n {
            Some(n) => self.set(key, AttributeValue::Integer(n.into())),
            None => self,
        }
    }

    pub(super) fn double(&mut self, key: &'static str, n: f64) -> &mut Self {
        self.set(key, AttributeValue::Double(n))
    }

    pub(super) fn flag(&mut self, key: &'static str, value: bool) -> &mut Self {
        self.set(key, AttributeValue::Flag(value))
    }

    pub(super) fn texts(&mut self, key: &'static str, texts: Vec<String>) -> &mut Self {
        self.set(key, AttributeValue::Texts(texts))
    }

    fn set(&mut self, key: &'static str, value: AttributeValue) -> &mut Self {
        self.0.push((key, value));
        self
    }

    /// Writes the `attributes` member.
    pub(super) fn write(&self, o: &mut Object<'_>) {
        o.array("attributes", |all| {
            for (key, value) in &self.0 {
                all.object(|o| {
                    o.str("key", key).object("value", |o| value.write(o));
                });
            }
        });
    }
}

impl AttributeValue {
    fn write(&self, o: &mut Object<'_>) {
        match self {
            AttributeValue::Text(text) => o.str("stringValue", text),
            AttributeValue::Integer(n) => o.str("intValue", &n.to_string()),
            AttributeValue::Double(n) => o.raw("doubleValue", &n.to_string()),
            AttributeValue::Flag(value) => o.bool("boolValue", *value),
            AttributeValue::Texts(texts) => o.object("arrayValue", |o| {
                o.array("values", |all| {
                    for text in texts {
                        all.object(|o| {
                            o.str("stringValue", text);
                        });
                    }
                });
            }),
        };
    }
}

impl Span {
    pub(super) fn new(name: String, kind: SpanKind, start: u64) -> Span {
        Span {
            name,
            kind,
            known: None,
            start,
            end: None,
            attributes: Attributes::default(),
            events: Vec::new(),
            error: None,
            message: None,
        }
    }

    /// Moves all times by this many nanoseconds.
    pub(super) fn shift(&mut self, by: i128) {
        let events = self.events.iter_mut().map(|event| &mut event.time);
        for time in events.chain([&mut self.start]).chain(&mut self.end) {
            *time = u64::try_from(i128::from(*time) + by).unwrap_or(0);
        }
    }

    /// Writes the span with the id `id` and the parent `parent`; `is_remote` is whether the parent
    /// belongs to another program.
    pub(super) fn write(
        &self,
        id: SpanContext,
        parent: Option<u64>,
        is_remote: bool,
        all: &mut Array<'_>,
    ) {
        all.object(|o| {
            o.str("traceId", &id.trace_id())
                .str("spanId", &id.span_id());
            if let Some(parent) = parent {
                o.str("parentSpanId", &format!("{parent:016x}"));
            }
            // Bit 8: whether the parent is remote is known. Bit 9: whether it is remote.
            let remote = if is_remote { 0x300 } else { 0x100 };
            o.int("flags", remote | u32::from(id.flags))
                .str("name", &self.name)
                .int("kind", self.kind.number());
            let end = self.end.unwrap_or(self.start).max(self.start);
            o.str("startTimeUnixNano", &self.start.to_string())
                .str("endTimeUnixNano", &end.to_string());
            self.attributes.write(o);
            if !self.events.is_empty() {
                o.array("events", |all| {
                    for event in &self.events {
                        all.object(|o| {
                            o.str("timeUnixNano", &event.time.to_string())
                                .str("name", event.name);
                            event.attributes.write(o);
                        });
                    }
                });
            }
            // A span that has not failed has no status, which means `Unset` in the conventions.
            if self.error.is_some() {
                o.object("status", |o| {
                    o.maybe_str("message", self.message.as_deref())
                        .int("code", ERROR);
                });
            }
        });
    }

    /// Marks the span as failed, keeping the first reason.
    pub(super) fn fail(&mut self, error: &str) {
        if self.error.is_none() {
            self.attributes.text(semconv::ERROR_TYPE, error);
            self.error = Some(error.to_owned());
        }
    }
}

/// `STATUS_CODE_ERROR`.
const ERROR: u32 = 2;

impl SpanKind {
    fn number(self) -> u32 {
        match self {
            SpanKind::Internal => 1,
            SpanKind::Client => 3,
        }
    }
}
