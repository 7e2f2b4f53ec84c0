//! The targets: see `README.md`.

pub mod laws;

use laws::{Target, Turn};

/// Checks the laws of a target for what libFuzzer made up: the cheap ones and, in turn, one of the
/// others; all of them with `LAWS=full`.
pub fn run(target: &Target, bytes: &[u8]) {
    static IS_ALL: std::sync::LazyLock<bool> =
        std::sync::LazyLock::new(|| std::env::var_os("LAWS").is_some_and(|laws| laws == "full"));
    (target.check)(bytes, if *IS_ALL { Turn::All } else { Turn::of(bytes) });
}

/// Replaces the C library's source of the keys of hash tables, so that an input takes the same
/// branches in every run.
///
/// # Safety
/// As the C library's: `buffer` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::write_bytes(buffer, 7, length) };
    length as isize
}
