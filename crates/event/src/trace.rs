//! Which span of which trace a request belongs to, as it goes from program to program: the headers
//! `traceparent` and `tracestate` of the W3C's [Trace Context](https://www.w3.org/TR/trace-context/).

use std::fmt;

/// A span: the meaning of a `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// The id of the trace; never 0.
    pub trace: u128,
    /// The id of the span; never 0.
    pub span: u64,
    /// The flags of the trace: 1 claims that the caller records it, 2 that the id of the trace is
    /// random.
    pub flags: u8,
}

/// The flags that have a meaning.
const FLAGS: u8 = 3;

impl SpanContext {
    /// The first span of a trace of our own, whose ids are made of `hash`.
    pub fn root(hash: TraceHash) -> SpanContext {
        let trace = hash.id();
        SpanContext {
            trace,
            span: 0,
            flags: 1,
        }
        .child(hash)
    }

    /// Reads a `traceparent`; `None` for one that is not valid. Of a later version than 00 only what
    /// version 00 has counts.
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

    /// A span below this one, whose id is made of `hash` and of this span.
    #[must_use]
    pub fn child(self, mut hash: TraceHash) -> SpanContext {
        hash.add(&self.trace.to_be_bytes());
        hash.add(&self.span.to_be_bytes());
        SpanContext {
            span: (hash.id() as u64).max(1),
            ..self
        }
    }

    /// The id of the trace: 32 hexadecimal digits.
    pub fn trace_id(self) -> String {
        format!("{:032x}", self.trace)
    }

    /// The id of the span: 16 hexadecimal digits.
    pub fn span_id(self) -> String {
        format!("{:016x}", self.span)
    }
}

impl fmt::Display for SpanContext {
    /// Writes a `traceparent`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace, self.span, self.flags
        )
    }
}

/// A `traceparent` with the `tracestate` that came beside it, which goes on as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The span.
    pub span: SpanContext,
    /// What tracing systems have added.
    pub state: Option<String>,
}

/// The most bytes of a `tracestate` that are handed on: as many as each program has to, section 3.3.1.5
/// of the recommendation.
const STATE: usize = 512;

impl TraceContext {
    /// The context of these headers, or of variables of the environment with the same meaning
    /// (<https://opentelemetry.io/docs/specs/otel/context/env-carriers/>). `None` without a valid
    /// `traceparent`; a `tracestate` that is too long or has other signs than ASCII's is left out.
    pub fn of(traceparent: &str, tracestate: Option<&str>) -> Option<TraceContext> {
        let is_usable = |state: &&str| {
            (1..=STATE).contains(&state.len()) && state.bytes().all(|b| matches!(b, b' '..=b'~'))
        };
        Some(TraceContext {
            span: SpanContext::of(traceparent)?,
            state: tracestate.map(str::trim).filter(is_usable).map(Into::into),
        })
    }

    /// The context of a span below this one.
    #[must_use]
    pub fn child(&self, hash: TraceHash) -> TraceContext {
        TraceContext {
            span: self.span.child(hash),
            state: self.state.clone(),
        }
    }

    /// The headers with their values.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, String)> {
        let state = self.state.clone().map(|state| (TRACESTATE, state));
        [(TRACEPARENT, self.span.to_string())]
            .into_iter()
            .chain(state)
    }
}

/// The name of the header that names a span.
pub const TRACEPARENT: &str = "traceparent";

/// The name of the header that tracing systems add to.
pub const TRACESTATE: &str = "tracestate";

/// A hash of which ids of traces and spans are made, so that the same events have the same ids:
/// FNV-1a of 128 bits. Nothing depends on how hard it is to guess.
#[derive(Clone, Copy, Debug)]
pub struct TraceHash(u128);

impl Default for TraceHash {
    fn default() -> Self {
        // http://www.isthe.com/chongo/tech/comp/fnv/
        TraceHash(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl TraceHash {
    /// The hash of one text.
    pub fn of(text: &str) -> TraceHash {
        let mut hash = TraceHash::default();
        hash.add(text.as_bytes());
        hash
    }

    /// The same with a further text.
    #[must_use]
    pub fn and(mut self, text: &str) -> TraceHash {
        self.add(text.as_bytes());
        self
    }

    /// Adds bytes, and where they end.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes
            .iter()
            .copied()
            .chain((bytes.len() as u64).to_be_bytes())
        {
            self.0 =
                (self.0 ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    /// An id that is not 0. The last bytes have not reached all bits of the hash, and samplers look at
    /// any of them, so they are mixed (the end of MurmurHash3).
    fn id(self) -> u128 {
        let mix = |half: u64| {
            let half = (half ^ half >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
            let half = (half ^ half >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            half ^ half >> 33
        };
        let (high, low) = ((self.0 >> 64) as u64, self.0 as u64);
        let high = mix(high ^ low);
        let low = mix(low ^ high);
        (u128::from(high) << 64 | u128::from(low)).max(1)
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
        let later = format!("cc{}-what-comes", &VALID[2..]);
        assert_eq!(SpanContext::of(&later), Some(context));
    }

    #[test]
    fn what_is_not_a_traceparent_is_ignored() {
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
        }
        assert_eq!(TraceContext::of("no", Some("rojo=1")), None);
    }

    #[test]
    fn ids_of_texts_that_are_alike_differ_in_all_their_parts() {
        let (a, b) = (TraceHash::of("resp_1").id(), TraceHash::of("resp_2").id());
        assert!((16..112).contains(&(a ^ b).count_ones()), "{a:x} {b:x}");
        assert_ne!(
            TraceHash::of("ab").and("c").id(),
            TraceHash::of("a").and("bc").id()
        );
        let root = SpanContext::root(TraceHash::of("resp_1"));
        let child = root.child(TraceHash::of("turn"));
        assert_eq!(child.trace, root.trace);
        assert_ne!(child.span, root.span);
    }
}
