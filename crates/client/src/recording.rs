//! An answer as it was recorded, ready to be played or to be given faults.

use crate::Error;
use api::tape::{Ending, Exchange};
use std::time::Duration;

/// An answer as it was recorded.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The reads of the body, in order.
    pub reads: Vec<TimedRead>,
    /// When it ended, since the request was sent; `None` in a raw body, which has no times.
    pub ended: Option<Duration>,
    /// What ended it before its own end.
    pub error: Option<Error>,
}

/// One read of a recorded body.
#[derive(Clone, Debug, Default)]
pub struct TimedRead {
    /// When it came, since the request was sent; `None` in a raw body.
    pub at: Option<Duration>,
    /// A silence to keep before it, at any speed.
    pub stall: Duration,
    /// What came.
    pub bytes: Vec<u8>,
}

/// How fast recorded time passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// All at once.
    Max,
    /// So many times as fast as real time; more than 0.
    Times(f64),
}

impl Recording {
    /// The answer of an exchange on a tape. An exchange without an end was cut there, and ends as
    /// if the server had closed it.
    pub fn of(exchange: &Exchange) -> Recording {
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
                stall: Duration::ZERO,
                bytes: read.bytes.clone(),
            });
        }
        let (after, ending) = exchange.end.unwrap_or((Duration::ZERO, Ending::Eof));
        let error = match ending {
            Ending::Eof => None,
            Ending::Reset => Some(Error::recorded_loss()),
            Ending::Timeout => Some(Error::recorded_silence()),
        };
        Recording {
            reads,
            ended: Some(at + after),
            error,
        }
    }

    /// A raw body without times.
    pub fn of_bytes(bytes: Vec<u8>) -> Recording {
        Recording {
            reads: vec![TimedRead {
                bytes,
                ..TimedRead::default()
            }],
            ..Recording::default()
        }
    }
}
