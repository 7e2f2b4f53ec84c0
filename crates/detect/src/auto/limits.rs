//! The text lengths at which the risk that a call still follows falls below a limit, for one
//! stream.

use super::origin::StreamOrigin;
use super::table::{AutoTable, EDGES, StreamCounts};
use super::words::Sign;

/// The weight, in streams, of the prior from all models against the streams of one API or one model
/// family. A model without streams gets the call rate of its API.
const HABIT_STREAMS: f64 = 150.0;

/// The same weight for the counts by tools.
const TOOLS_STREAMS: f64 = 50.0;

/// The weight, in streams, of the assumption that the risk falls with the length of the text.
const ASSUMED_STREAMS: f64 = 25.0;

/// The number of characters over which the assumed risk falls to 1/e, indexed like [`Sign::ALL`].
/// Much text may follow an announcement before its call.
const ASSUMED_DECAY: [f64; 4] = [60.0, 60.0, 300.0, 800.0];

/// The lowest factor by which a call rate reduces the risk: even models that nearly always call
/// immediately may learn to write text first.
const LEAST_HABIT: f64 = 0.3;

/// The minimum and maximum text length before a no, as multiples of the median text length before a
/// call.
const FLOOR: (f64, f64) = (1.05, 3.0);

/// The minimum length of JSON or code before a no, in characters.
const DATA_FLOOR: u64 = 20;

/// The risk for which the lengths of [`FLOOR`] apply. For another risk they are scaled by the
/// square root of the ratio.
const USUAL_RISK: f64 = 0.005;

/// The run length after which the verdict is no, and the reason.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    pub chars: u64,
    /// The risk at that length, from 0 to 1.
    pub risk: f64,
    /// The number of streams behind that risk.
    pub streams: u64,
}

/// The limits of one stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AutoLimits {
    /// The minimum text length before a no, in characters.
    pub floor: u64,
    /// The minimum length of JSON or code before a no, in characters.
    pub data_floor: u64,
    /// The minimum run after each sign, indexed like [`Sign::ALL`]; `None` if the risk never falls
    /// below the limit.
    pub runs: [Option<Limit>; 4],
}

impl AutoLimits {
    /// Computes the limits for a stream of this origin. `risk` is the largest acceptable
    /// probability, from 0 to 1, that a no is wrong.
    pub(crate) fn new(table: &AutoTable, origin: &StreamOrigin, risk: f64) -> Self {
        let all = share(table.text, 1.0, 0.05);
        let counts = |rows: Option<&StreamCounts>| rows.copied().unwrap_or_default();
        let api = share(counts(table.api.get(&origin.api)), HABIT_STREAMS, all);
        let family = share(counts(table.model.get(&origin.family)), HABIT_STREAMS, api);
        let tools = origin.offered.name().map_or(all, |name| {
            share(counts(table.tools.get(name)), TOOLS_STREAMS, all)
        }) / all;
        let habit = (family / all).max(LEAST_HABIT);
        let floor =
            (habit * tools).clamp(FLOOR.0 * tools.min(1.0), FLOOR.1) * table.median_before() as f64;
        let patience = (USUAL_RISK / risk).sqrt();
        AutoLimits {
            floor: ((floor * patience).round() as u64).max(1),
            data_floor: ((DATA_FLOOR as f64 * patience).round() as u64).max(1),
            runs: Sign::ALL.map(|sign| limit(table, sign, habit * tools, risk)),
        }
    }
}

/// Returns the fraction of streams with a call, where `prior` weighs as much as `streams` streams.
fn share(counts: StreamCounts, streams: f64, prior: f64) -> f64 {
    (counts.calls as f64 + streams * prior) / (counts.streams() as f64 + streams)
}

/// Returns the first run length at which the risk is below the limit.
fn limit(table: &AutoTable, sign: Sign, factor: f64, limit: f64) -> Option<Limit> {
    let row = &table.runs[sign as usize];
    let first = share(row[0], 2.0, 0.5);
    EDGES.iter().zip(row).find_map(|(edge, counts)| {
        let assumed = first * (-(*edge as f64) / ASSUMED_DECAY[sign as usize]).exp();
        let risk = factor * share(*counts, ASSUMED_STREAMS, assumed);
        (risk < limit).then_some(Limit {
            chars: *edge,
            risk,
            streams: counts.streams(),
        })
    })
}
