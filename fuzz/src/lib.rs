//! The targets: see `README.md`.

pub mod laws;

use laws::{Target, Turn};

/// Checks the laws of a target for what libFuzzer made up: the cheap ones and, in turn, one of the others; all of them with `LAWS=all`.
pub fn run(target: &Target, bytes: &[u8]) {
    static IS_ALL: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| std::env::var_os("LAWS").is_some());
    (target.check)(bytes, if *IS_ALL { Turn::All } else { Turn::of(bytes) });
}
