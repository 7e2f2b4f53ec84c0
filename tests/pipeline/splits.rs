//! Splits of a body's bytes, as networks deliver them.

/// Cuts `all` into pieces of lengths that `seed` decides: many short ones, some long.
pub fn cut(all: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let (mut at, mut out) = (0, Vec::new());
    while at < all.len() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let longest = [1, 3, 17, 64, 4096][(state >> 40) as usize % 5];
        let end = (at + (state >> 20) as usize % (longest + 1)).min(all.len());
        out.push(&all[at..end]);
        at = end;
    }
    out
}
