//! The standard input of a command: an in-memory file with the complete input.

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::OwnedFd;

/// Returns a sealed in-memory file that contains `text`, positioned at its start.
///
/// A pipe would have to be written while the command runs. If `tool-exec` were killed in the
/// meantime, the command would read a premature end of input and take part of the arguments for all
/// of them.
///
/// # Errors
/// If the system refuses: no memory, or a limit on file sizes (`ulimit -f`).
pub(super) fn whole_input(text: &str) -> std::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = match memfd_create("arguments", flags | MemfdFlags::NOEXEC_SEAL) {
        // Linux before 6.3 does not support this flag.
        Err(Errno::INVAL) => memfd_create("arguments", flags),
        made => made,
    };
    let mut file = File::from(made?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn the_whole_text_is_read_and_nothing_is_written() {
        for length in [1, 1 << 16, (1 << 20) + 1] {
            let text = "x".repeat(length);
            let mut file = File::from(whole_input(&text).unwrap());
            let mut read = String::new();
            file.read_to_string(&mut read).unwrap();
            assert_eq!(read.len(), length);
            assert!(file.write_all(b"y").is_err() && file.set_len(0).is_err());
        }
    }
}
