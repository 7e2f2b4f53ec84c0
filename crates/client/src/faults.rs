//! A recorded response, ready to be replayed, and faults to inject into it to test clients.
//!
//! Offsets are in bytes of the body as it was recorded.

use crate::{Error, ErrorKind};
use api::tape::{TapeEnding, TapeExchange};
use std::ops::Range;
use std::time::Duration;

/// A recorded response.
#[derive(Clone, Debug, Default)]
pub struct RecordedAnswer {
    /// The reads of the body, in order.
    pub reads: Vec<TimedRead>,
    /// When the body ended, since the request was sent; `None` in a raw body, which has no times.
    pub ended: Option<Duration>,
    /// The error that cut the body off, or `None` if it was complete.
    pub error: Option<Error>,
}

/// One read of a recorded body.
#[derive(Clone, Debug, Default)]
pub struct TimedRead {
    /// The time of arrival since the request was sent; `None` in a raw body.
    pub at: Option<Duration>,
    /// How long to stall before this read, at any replay speed.
    pub stall: Duration,
    /// The bytes of the read.
    pub bytes: Vec<u8>,
}

/// The speed of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// Without any waits.
    Max,
    /// This many times real time; greater than 0.
    Times(f64),
}

impl RecordedAnswer {
    /// Creates the recorded response of an exchange on a tape. An exchange without a recorded end
    /// finishes as if the server had closed the connection there.
    pub fn of(exchange: &TapeExchange) -> RecordedAnswer {
        let mut at = exchange
            .head
            .as_ref()
            .map(|head| head.after)
            .unwrap_or_default();
        let mut reads = vec![];
        for read in &exchange.reads {
            at += read.after;
            reads.push(TimedRead {
                at: Some(at),
                bytes: read.bytes.clone(),
                ..TimedRead::default()
            });
        }
        let (after, ending) = exchange.end.unwrap_or((Duration::ZERO, TapeEnding::Eof));
        let error = match ending {
            TapeEnding::Eof => None,
            TapeEnding::Reset => Some(Error::new(
                ErrorKind::RecordedLoss,
                "the connection was lost when this was recorded",
            )),
            TapeEnding::Timeout => Some(Error::new(
                ErrorKind::RecordedSilence,
                "the answer stopped for too long when this was recorded",
            )),
        };
        RecordedAnswer {
            reads,
            ended: Some(at + after),
            error,
        }
    }

    /// Creates a response from a raw body without times.
    pub fn of_bytes(bytes: Vec<u8>) -> RecordedAnswer {
        RecordedAnswer {
            reads: vec![TimedRead {
                bytes,
                ..TimedRead::default()
            }],
            ..RecordedAnswer::default()
        }
    }
}

/// How a body is split into reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySplit {
    /// Reads of this many bytes.
    Every(usize),
    /// Reads of 1 to 64 bytes, chosen by a random number generator with this seed.
    Random(u64),
}

/// A pause in the middle of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The offset of the byte that is delayed.
    pub at: usize,
    /// The length of the pause, at any replay speed.
    pub time: Duration,
}

/// The faults to inject into a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayFaults {
    /// How to split the same bytes into different reads.
    pub resplit: Option<BodySplit>,
    /// Ends the body before this byte, as if the server had closed the connection.
    pub cut_at: Option<usize>,
    /// A pause to insert.
    pub stall_at: Option<Stall>,
    /// Breaks the connection before this byte.
    pub error_at: Option<usize>,
    /// Repeats the event or line that contains this byte.
    pub dup_at: Option<usize>,
    /// The longest allowed stall. A longer one ends the response at once with a timeout.
    pub idle: Option<Duration>,
}

impl ReplayFaults {
    /// Whether any fault is set. If so, the whole body must be in memory.
    pub fn any(&self) -> bool {
        let faults = ReplayFaults {
            idle: None,
            ..*self
        };
        faults != ReplayFaults::default()
    }

    /// Applies the faults to a recording.
    pub fn apply(&self, recording: &mut RecordedAnswer) {
        let reads = &mut recording.reads;
        // The body as it was recorded, which only `dup_at` needs.
        let recorded: Vec<&[u8]> = reads.iter().map(|read| &read.bytes[..]).collect();
        let body = self.dup_at.map(|_| recorded.concat()).unwrap_or_default();
        let last = self.cut_at.into_iter().chain(self.error_at).min();
        if let Some(last) = last {
            recording.error = (self.error_at == Some(last))
                .then(|| Error::new(ErrorKind::Injected, "the connection was broken"));
            let at = boundary(reads, last);
            reads.truncate(at);
        }
        if let Some(stall) = self.stall_at {
            let at = boundary(reads, stall.at);
            let too_long = self.idle.filter(|idle| stall.time >= *idle);
            match (reads.get_mut(at), too_long) {
                (Some(_), Some(idle)) => {
                    recording.error = Some(Error::idle(idle));
                    reads.truncate(at);
                }
                (Some(read), None) => read.stall = stall.time,
                (None, _) => {}
            }
        }
        if let Some(at) = self
            .dup_at
            .filter(|at| *at < last.unwrap_or(body.len()).min(body.len()))
        {
            let unit = unit(&body, at);
            let after = boundary(reads, unit.end);
            let copy = TimedRead {
                at: reads[after - 1].at,
                stall: Duration::ZERO,
                bytes: body[unit].to_vec(),
            };
            reads.insert(after, copy);
        }
        if let Some(resplit) = self.resplit {
            *reads = cut(reads, resplit);
        }
    }
}

/// Returns the index of the read that starts at byte `at`, splitting a read there if needed.
/// Returns the number of reads if there is no byte `at`.
fn boundary(reads: &mut Vec<TimedRead>, at: usize) -> usize {
    let mut start = 0;
    for index in 0..reads.len() {
        let length = reads[index].bytes.len();
        if at == start {
            return index;
        }
        if at < start + length {
            let bytes = reads[index].bytes.split_off(at - start);
            let read = TimedRead {
                at: reads[index].at,
                stall: Duration::ZERO,
                bytes,
            };
            reads.insert(index + 1, read);
            return index + 1;
        }
        start += length;
    }
    reads.len()
}

/// Returns the range of the event that contains byte `at`, including the blank line after the
/// event. If the body has no blank lines, returns the range of the line, including its line feed.
fn unit(body: &[u8], at: usize) -> Range<usize> {
    let blank = [&b"\r\n\r\n"[..], b"\n\n", b"\r\r"]
        .into_iter()
        .find(|b| body.windows(b.len()).any(|w| w == *b));
    let mark = blank.unwrap_or(b"\n");
    let ends = || {
        body.windows(mark.len())
            .enumerate()
            .filter(|(_, w)| *w == mark)
            .map(|(i, _)| i + mark.len())
    };
    let start = ends().take_while(|end| *end <= at).last().unwrap_or(0);
    start..ends().find(|end| *end > at).unwrap_or(body.len())
}

/// Splits the same bytes into different reads. The time of each read is that of its last byte;
/// stalls keep their positions.
fn cut(reads: &[TimedRead], resplit: BodySplit) -> Vec<TimedRead> {
    let mut state = match resplit {
        BodySplit::Random(seed) => seed,
        BodySplit::Every(_) => 0,
    };
    let mut length = || match resplit {
        BodySplit::Every(n) => n,
        BodySplit::Random(_) => (splitmix(&mut state) % 64) as usize + 1,
    };
    let mut out: Vec<TimedRead> = vec![];
    let mut room = 0;
    for read in reads {
        let mut stall = read.stall;
        let mut rest = &read.bytes[..];
        while !rest.is_empty() {
            if room == 0 || !stall.is_zero() {
                room = length();
                out.push(TimedRead {
                    at: read.at,
                    stall: std::mem::take(&mut stall),
                    bytes: vec![],
                });
            }
            let (now, later) = rest.split_at(room.min(rest.len()));
            if let Some(last) = out.last_mut() {
                last.bytes.extend_from_slice(now);
                last.at = read.at;
            }
            room -= now.len();
            rest = later;
        }
    }
    out
}

/// Returns the next number of SplitMix64 (<https://prng.di.unimi.it/splitmix64.c>), a small
/// generator with the same results on every machine.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(texts: &[&str]) -> Vec<TimedRead> {
        let ms = |n: usize| Some(Duration::from_millis(n as u64));
        texts
            .iter()
            .enumerate()
            .map(|(n, t)| TimedRead {
                at: ms(n),
                stall: Duration::ZERO,
                bytes: t.as_bytes().to_vec(),
            })
            .collect()
    }

    fn after(faults: ReplayFaults, texts: &[&str]) -> (Vec<(String, u128, u128)>, Option<Error>) {
        let mut recording = RecordedAnswer {
            reads: reads(texts),
            ..RecordedAnswer::default()
        };
        faults.apply(&mut recording);
        let show = |r: &TimedRead| {
            (
                String::from_utf8(r.bytes.clone()).unwrap(),
                r.at.unwrap().as_millis(),
                r.stall.as_millis(),
            )
        };
        (recording.reads.iter().map(show).collect(), recording.error)
    }

    fn texts(faults: ReplayFaults, of: &[&str]) -> Vec<String> {
        after(faults, of)
            .0
            .into_iter()
            .map(|(text, ..)| text)
            .collect()
    }

    #[test]
    fn reads_are_cut_anew_and_keep_their_times() {
        let every = |n| ReplayFaults {
            resplit: Some(BodySplit::Every(n)),
            ..ReplayFaults::default()
        };
        assert_eq!(texts(every(1), &["ab", "c"]), ["a", "b", "c"]);
        assert_eq!(
            after(every(2), &["a", "bc", "d"]).0,
            [("ab".into(), 1, 0), ("cd".into(), 2, 0)]
        );
        let random = |seed| ReplayFaults {
            resplit: Some(BodySplit::Random(seed)),
            ..ReplayFaults::default()
        };
        let body = "x".repeat(1000);
        let first = texts(random(1), &[&body]);
        assert_eq!(first, texts(random(1), &[&body]));
        assert_ne!(first, texts(random(2), &[&body]));
        assert_eq!(first.concat(), body);
    }

    #[test]
    fn the_body_ends_or_breaks_or_halts_at_a_byte() {
        let faults = ReplayFaults {
            cut_at: Some(3),
            ..ReplayFaults::default()
        };
        assert_eq!(texts(faults, &["ab", "cd", "e"]), ["ab", "c"]);
        let faults = ReplayFaults {
            error_at: Some(2),
            cut_at: Some(4),
            ..ReplayFaults::default()
        };
        let (reads, end) = after(faults, &["ab", "cd"]);
        assert_eq!(reads.len(), 1);
        assert_eq!(
            end,
            Some(Error::new(ErrorKind::Injected, "the connection was broken"))
        );
        let stall = Some(Stall {
            at: 1,
            time: Duration::from_millis(9),
        });
        let faults = ReplayFaults {
            stall_at: stall,
            ..ReplayFaults::default()
        };
        assert_eq!(
            after(faults, &["abc"]).0,
            [("a".into(), 0, 0), ("bc".into(), 0, 9)]
        );
        let faults = ReplayFaults {
            stall_at: stall,
            resplit: Some(BodySplit::Every(2)),
            ..ReplayFaults::default()
        };
        assert_eq!(
            after(faults, &["abc", "d"]).0,
            [("a".into(), 0, 0), ("bc".into(), 0, 9), ("d".into(), 1, 0)]
        );
    }

    #[test]
    fn an_event_or_a_line_comes_twice() {
        let dup = |at| ReplayFaults {
            dup_at: Some(at),
            ..ReplayFaults::default()
        };
        assert_eq!(texts(dup(4), &["a\n\nb\n\nc"]).concat(), "a\n\nb\n\nb\n\nc");
        assert_eq!(
            texts(dup(0), &["a\r\n\r\nb"]).concat(),
            "a\r\n\r\na\r\n\r\nb"
        );
        assert_eq!(texts(dup(3), &["a\nb\nc"]).concat(), "a\nb\nb\nc");
        assert_eq!(texts(dup(99), &["a\n"]).concat(), "a\n");
        let faults = ReplayFaults {
            cut_at: Some(2),
            ..dup(1)
        };
        assert_eq!(texts(faults, &["ab\ncd"]).concat(), "abab\n");
    }
}
