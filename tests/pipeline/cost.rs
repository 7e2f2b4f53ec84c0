//! The cost of work, and whether it grows faster than the input.
//!
//! Processor time is what every machine can measure; the benches count instructions where valgrind
//! is installed.

use event::{Payload, Sink, payload};
use rustix::time::{ClockId, clock_gettime};
use testkit::places::is_named_tried;

/// How often a piece of the input is repeated in the smaller of two runs; the larger has [`TIMES`]
/// as many.
pub(crate) const REPEATED: usize = 5_000;
pub(crate) const TIMES: usize = 4;

/// How much more [`TIMES`] the input may cost. Linear work costs 4 times as much, work that grows
/// with the square 16 times; the bound lies as far from one as from the other, so that caches and a
/// busy machine do not decide.
const MOST: f64 = 8.0;

/// A run that costs less is not compared: most of its time does not depend on the input.
const FLOOR_MICROS: u64 = 100_000;
const FLOOR_BYTES: usize = 8 << 20;

/// How often a pair of runs is repeated; the best times count. Linear work passes with the first
/// pair.
const TRIES: usize = 6;

/// The processor time of a run, and the length of its output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// User time in microseconds, which a busy machine changes little.
    pub micros: u64,
    /// In bytes.
    pub written: usize,
}

/// Compares the cost of an input with that of [`TIMES`] the input; adds a line to `wrong` where it
/// grows faster.
pub(crate) fn compare(what: &str, wrong: &mut Vec<String>, mut run: impl FnMut(usize) -> Cost) {
    let mut large = run(TIMES * REPEATED);
    let slow = large.micros > FLOOR_MICROS;
    if !slow && large.written <= FLOOR_BYTES {
        return;
    }
    let mut small = run(REPEATED);
    if large.written as f64 > MOST * small.written as f64 && large.written > FLOOR_BYTES {
        wrong.push(format!(
            "{what}: writes {} bytes and {} for {TIMES} times the input",
            small.written, large.written
        ));
        return;
    }
    for _ in 1..TRIES {
        if !slow || large.micros as f64 <= MOST * small.micros as f64 {
            return;
        }
        large.micros = large.micros.min(run(TIMES * REPEATED).micros);
        small.micros = small.micros.min(run(REPEATED).micros);
    }
    wrong.push(format!(
        "{what}: takes {} ms and {} ms for {TIMES} times the input",
        small.micros / 1000,
        large.micros / 1000
    ));
}

/// The sizes at which every input runs first. One whose cost grows as it may is not compared at the
/// larger sizes.
const GLANCE: [usize; 2] = [1_000, 4_000];
const GLANCE_MOST: f64 = 5.5;
const GLANCE_MICROS: u64 = 4_000;

/// The processor time of this thread, in microseconds.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}

/// One in so many inputs is tried; all with `LAWS=full`, which takes minutes.
const SAMPLE: usize = 32;

/// Runs an input at two small sizes, and compares its cost at the larger ones where it grows too
/// fast.
pub(crate) fn judge(
    what: impl Fn() -> String,
    wrong: &mut Vec<String>,
    mut run: impl FnMut(usize) -> Cost,
) {
    if !is_named_tried(&what(), SAMPLE) {
        return;
    }
    let [few, more] = GLANCE.map(&mut run);
    let grows = |few: f64, more: f64| more > GLANCE_MOST * few;
    let slow = more.micros > GLANCE_MICROS && grows(few.micros as f64, more.micros as f64);
    if slow || grows(few.written as f64 + 1000.0, more.written as f64) {
        compare(&what(), wrong, run);
    }
}

/// Counts what is written.
#[derive(Default)]
pub(crate) struct Count {
    /// The length of the line that passes.
    pub passing: usize,
    pub written: usize,
    line: Vec<u8>,
}

impl Sink for Count {
    fn pass(&mut self) {
        self.written += self.passing;
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        self.line.clear();
        payload::line(&mut self.line, payload, None, choice, None);
        self.written += self.line.len();
    }
}

/// Fails with what [`judge`] and [`compare`] found.
pub(crate) fn none_is_wrong(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{} inputs cost too much:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
