//! Trace contexts: the trace and the span that a request belongs to, passed between programs in the
//! headers `traceparent` and `tracestate` of the W3C's [Trace
//! Context](https://www.w3.org/TR/trace-context/).
//!
//! Ids are hashes, not random numbers, so that the same events always get the same ids.

use sha2::{Digest, Sha256};
use std::fmt;

/// The ids and the flags of a span, as in a `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// The id of the trace; never 0.
    pub trace: u128,
    /// The id of the span; never 0.
    pub span: u64,
    /// The trace flags: bit 0 means that the caller records the trace, bit 1 that the trace id is
    /// random.
    pub flags: u8,
}

/// The defined flags.
const FLAGS: u8 = 3;

impl SpanContext {
    /// Returns the root span of a new trace, with ids derived from `seed`.
    pub fn root(seed: &IdSeed) -> SpanContext {
        let trace = seed.id();
        SpanContext {
            trace,
            span: 0,
            flags: 1,
        }
        .child(seed)
    }

    /// Parses a `traceparent`; returns `None` if it is invalid. Versions after 00 are read as far
    /// as the fields of version 00.
    pub fn of(text: &str) -> Option<SpanContext> {
        let hex = |from: usize, to: usize| {
            text.get(from..to)
                .filter(|part| part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
        };
        let is_separated = [2, 35, 52]
            .iter()
            .all(|at| text.as_bytes().get(*at) == Some(&b'-'));
        let version = hex(0, 2)?;
        let has_end = match version {
            "ff" => false,
            "00" => text.len() == 55,
            _ => text.len() == 55 || text.as_bytes().get(55) == Some(&b'-'),
        };
        let context = SpanContext {
            trace: u128::from_str_radix(hex(3, 35)?, 16).ok()?,
            span: u64::from_str_radix(hex(36, 52)?, 16).ok()?,
            flags: u8::from_str_radix(hex(53, 55)?, 16).ok()? & FLAGS,
        };
        (is_separated && has_end && context.trace != 0 && context.span != 0).then_some(context)
    }

    /// Returns a child of this span, with an id derived from `seed` and this span's ids.
    #[must_use]
    pub fn child(self, seed: &IdSeed) -> SpanContext {
        let mut seed = seed.clone();
        seed.add(self.trace.to_be_bytes());
        seed.add(self.span.to_be_bytes());
        SpanContext {
            span: (seed.id() as u64).max(1),
            ..self
        }
    }

    /// Returns the trace id as 32 hexadecimal digits.
    pub fn trace_id(self) -> String {
        format!("{:032x}", self.trace)
    }

    /// Returns the span id as 16 hexadecimal digits.
    pub fn span_id(self) -> String {
        format!("{:016x}", self.span)
    }
}

impl fmt::Display for SpanContext {
    /// Formats the span as a `traceparent`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace, self.span, self.flags
        )
    }
}

/// A `traceparent` with its `tracestate`, which is forwarded unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The span, from the `traceparent`.
    pub span: SpanContext,
    /// The `tracestate`, which holds data of tracing systems; `None` if it is absent or was
    /// rejected.
    pub state: Option<String>,
}

/// Maximum length in bytes of a `tracestate` that is forwarded: the length that every program must
/// support (<https://www.w3.org/TR/trace-context/#tracestate-limits>).
const STATE: usize = 512;

impl TraceContext {
    /// Parses the values of the two headers, or of the equivalent environment variables
    /// (<https://opentelemetry.io/docs/specs/otel/context/env-carriers/>). Returns `None` without a
    /// valid `traceparent`. A `tracestate` that is too long or not printable ASCII is dropped.
    pub fn of(traceparent: &str, tracestate: Option<&str>) -> Option<TraceContext> {
        let is_usable = |state: &&str| {
            (1..=STATE).contains(&state.len()) && state.bytes().all(|b| matches!(b, b' '..=b'~'))
        };
        Some(TraceContext {
            span: SpanContext::of(traceparent)?,
            state: tracestate.map(str::trim).filter(is_usable).map(Into::into),
        })
    }

    /// Returns the context of a child of this span.
    #[must_use]
    pub fn child(&self, seed: &IdSeed) -> TraceContext {
        TraceContext {
            span: self.span.child(seed),
            state: self.state.clone(),
        }
    }

    /// Returns the headers with their values.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.named([TRACEPARENT, TRACESTATE])
    }

    /// Returns the environment variables ([`VARIABLES`]) with their values.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.named(VARIABLES)
    }

    fn named(
        &self,
        [parent, state]: [&'static str; 2],
    ) -> impl Iterator<Item = (&'static str, String)> {
        let state = self.state.clone().map(|value| (state, value));
        [(parent, self.span.to_string())].into_iter().chain(state)
    }
}

/// The header that identifies the span.
pub const TRACEPARENT: &str = "traceparent";

/// The header with additional data of tracing systems.
pub const TRACESTATE: &str = "tracestate";

/// The environment variables equivalent to the two headers.
pub const VARIABLES: [&str; 2] = ["TRACEPARENT", "TRACESTATE"];

/// The seed from which trace and span ids are derived. The same parts give the same ids.
#[derive(Clone, Debug, Default)]
pub struct IdSeed(Sha256);

impl IdSeed {
    /// Creates a seed from these parts, in order.
    pub fn of<const N: usize>(parts: [&str; N]) -> IdSeed {
        let mut seed = IdSeed::default();
        parts.into_iter().for_each(|part| seed.add(part));
        seed
    }

    /// Adds a part. Its length is hashed too, so that `ab`, `c` differs from `a`, `bc`.
    pub fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
    }

    /// Returns the first 128 bits of the hash, or 1 if they are 0, which is not a valid id.
    fn id(&self) -> u128 {
        let hash = self.0.clone().finalize();
        let id = hash.iter().take(16);
        id.fold(0, |id, byte| id << 8 | u128::from(*byte)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_and_written() {
        let context = SpanContext::of(VALID).unwrap();
        assert_eq!(context.to_string(), VALID);
        assert_eq!(context.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_id(), "00f067aa0ba902b7");
        let later = format!("cc{}-later-fields", &VALID[2..]);
        assert_eq!(SpanContext::of(&later), Some(context));
    }

    #[test]
    fn an_invalid_traceparent_is_ignored() {
        let zero_trace = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
        let zero_span = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01";
        for text in [
            "",
            "é",
            zero_trace,
            zero_span,
            &VALID.to_uppercase(),
            &VALID[..54],
            &format!("{VALID}-00"),
            &format!("cc{}x", &VALID[2..]),
            &format!("ff{}", &VALID[2..]),
            &VALID.replace('-', "_"),
            &VALID.replace("4b", "+b"),
            &VALID.replace("4b", "é"),
        ] {
            assert_eq!(SpanContext::of(text), None, "{text}");
        }
    }

    #[test]
    fn a_tracestate_is_bounded() {
        for (state, kept) in [
            ("rojo=1,congo=2", true),
            ("", false),
            ("a=\u{e9}", false),
            (&*"x".repeat(513), false),
        ] {
            let context = TraceContext::of(VALID, Some(state)).unwrap();
            assert_eq!(context.state.as_deref(), kept.then_some(state));
            assert_eq!(context.headers().count(), 1 + usize::from(kept));
            assert_eq!(context.variables().count(), 1 + usize::from(kept));
        }
        assert_eq!(TraceContext::of("no", Some("rojo=1")), None);
    }

    #[test]
    fn ids_depend_on_every_part_and_on_where_it_ends() {
        let ids = [
            IdSeed::of(["ab", "c"]),
            IdSeed::of(["a", "bc"]),
            IdSeed::of(["abc"]),
            IdSeed::of(["abc", ""]),
        ]
        .map(|seed| SpanContext::root(&seed));
        for (n, id) in ids.iter().enumerate() {
            assert!(ids[..n].iter().all(|other| other.trace != id.trace));
            assert!(ids[..n].iter().all(|other| other.span != id.span));
        }
        // From `printf '\0\0\0\0\0\0\0\3abc'
        // sha256sum`.
        assert_eq!(ids[2].trace_id(), "c3494ca1a2cf8eeb8a11ded316fb55b8");
        let child = ids[0].child(&IdSeed::of(["turn"]));
        assert_eq!(child.trace, ids[0].trace);
        assert_ne!(child.span, ids[0].span);
    }
}
