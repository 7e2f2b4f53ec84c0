//! The laws of the crates, each group as a function of any bytes: it panics where a law does not
//! hold.
//!
//! `fuzz/src/bin` hands it what libFuzzer makes up, `tests/fuzz.rs` what fuzzing has found.

mod input;
mod line;

pub mod answer;
pub mod body;
pub mod files;
pub mod json;
pub mod merge;
pub mod plan;
pub mod redact;
pub mod request;
pub mod shown;
pub mod sse;
pub mod text;
pub mod values;

/// Which of the laws of an input are checked. Those that hold for a cheap reading are always
/// checked; the others in turn, so that most inputs cost little. An input always has the same turn.
#[derive(Clone, Copy, Debug)]
pub enum Turn {
    /// All laws.
    All,
    /// One of [`TURNS`].
    One(u8),
}

/// How many inputs one expensive law is checked for once.
const TURNS: u8 = 8;

impl Turn {
    /// The turn of an input, by its bytes.
    #[allow(dead_code, reason = "tests check all laws")]
    pub fn of(bytes: &[u8]) -> Turn {
        let hash = bytes.iter().fold(0xcbf2_9ce4_u32, |hash, b| {
            (hash ^ u32::from(*b)).wrapping_mul(0x0100_0193)
        });
        Turn::One((hash >> 24) as u8 % TURNS)
    }

    /// Whether it is the turn of the law of this number.
    pub fn takes(self, law: u8) -> bool {
        match self {
            Turn::All => true,
            Turn::One(now) => now == law,
        }
    }
}

/// A group of laws.
#[derive(Debug)]
pub struct Target {
    /// The name of its binary, its corpus and its findings.
    #[allow(dead_code, reason = "a binary is one target")]
    pub name: &'static str,
    /// Checks them.
    pub check: fn(&[u8], Turn),
}

/// All of them.
#[allow(dead_code, reason = "a binary is one target")]
pub const TARGETS: &[Target] = &[
    answer::TARGET,
    body::TARGET,
    files::TARGET,
    json::TARGET,
    merge::TARGET,
    plan::TARGET,
    redact::TARGET,
    request::TARGET,
    shown::TARGET,
    sse::TARGET,
    text::TARGET,
    values::TARGET,
];
