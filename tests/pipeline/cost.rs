//! What work costs, and whether that grows faster than its input.

/// How often a piece of the input is repeated in the smaller of two runs; the larger has twice as many.
pub const REPEATED: usize = 10_000;

/// How much more twice the input may cost. Linear work costs twice as much.
const MOST: f64 = 2.5;

/// A run that costs less is not compared: its time is mostly what does not grow.
const FLOOR_MICROS: u64 = 100_000;
const FLOOR_BYTES: usize = 8 << 20;

/// How often a pair of runs is repeated before its best times count. Work that is linear passes at the first.
const TRIES: usize = 6;

/// What a run took of a processor's time, and what it wrote.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// User time, so that a busy machine changes little.
    pub micros: u64,
    /// Bytes.
    pub written: usize,
}

/// Compares the cost of an input with that of twice the input; notes in `wrong` what grows faster.
pub fn compare(what: &str, wrong: &mut Vec<String>, mut run: impl FnMut(usize) -> Cost) {
    let mut large = run(2 * REPEATED);
    let slow = large.micros > FLOOR_MICROS;
    if !slow && large.written <= FLOOR_BYTES {
        return;
    }
    let mut small = run(REPEATED);
    if large.written as f64 > MOST * small.written as f64 && large.written > FLOOR_BYTES {
        wrong.push(format!("{what}: writes {} bytes and {} for twice the input", small.written, large.written));
        return;
    }
    for _ in 1..TRIES {
        if !slow || large.micros as f64 <= MOST * small.micros as f64 {
            return;
        }
        large.micros = large.micros.min(run(2 * REPEATED).micros);
        small.micros = small.micros.min(run(REPEATED).micros);
    }
    wrong.push(format!("{what}: takes {} ms and {} ms for twice the input", small.micros / 1000, large.micros / 1000));
}
