//! The places at which the risk that a call still follows falls under a limit, for one stream.

use super::origin::StreamOrigin;
use super::table::{AutoTable, EDGES, StreamCounts};
use super::words::Sign;

/// How many streams the habit of all models counts for, beside the streams of one API or of one
/// family of models: a model without streams has the habit of its API.
const HABIT_STREAMS: f64 = 150.0;

/// The same for what is known of the tools.
const TOOLS_STREAMS: f64 = 50.0;

/// How many streams the assumption counts for, beside the streams that were counted, that the risk
/// falls with the length of the text.
const ASSUMED_STREAMS: f64 = 25.0;

/// The characters over which that risk falls to 1/e, by [`Sign::ALL`]. An announcement may be
/// followed by much text before its call.
const ASSUMED_DECAY: [f64; 4] = [60.0, 60.0, 300.0, 800.0];

/// The least that a habit lowers the risk to: even models that nearly always call at once may learn
/// to speak.
const LEAST_HABIT: f64 = 0.3;

/// The shortest and the longest text before a no, in lengths of the text that half of the calls
/// have before them.
const FLOOR: (f64, f64) = (1.05, 3.0);

/// The shortest JSON or code before a no, in characters.
const DATA_FLOOR: u64 = 20;

/// The risk at which the lengths of [`FLOOR`] hold; they grow and shrink by the square root of
/// another risk.
const USUAL_RISK: f64 = 0.005;

/// The length of a run that makes a no, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    pub chars: u64,
    /// The risk then, from 0 to 1.
    pub risk: f64,
    /// The streams that this is known from.
    pub streams: u64,
}

/// The limits of one stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AutoLimits {
    /// The shortest text before a no.
    pub floor: u64,
    /// The same for JSON and code.
    pub data_floor: u64,
    /// The shortest run after each sign, by [`Sign::ALL`]; `None` where the risk never falls so
    /// far.
    pub runs: [Option<Limit>; 4],
}

impl AutoLimits {
    /// The limits of a stream of this origin. `risk` is the largest risk of a no that turns out to
    /// be wrong, from 0 to 1.
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

/// The share of calls, if `prior` counts for so many streams.
fn share(counts: StreamCounts, streams: f64, prior: f64) -> f64 {
    (counts.calls as f64 + streams * prior) / (counts.streams() as f64 + streams)
}

/// The first length at which the risk is under the limit.
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
