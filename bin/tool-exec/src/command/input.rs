//! The standard input of a command: a file in memory that holds all of it.

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::OwnedFd;

/// A file that holds `text` and cannot be changed, to be read from its beginning.
///
/// A pipe would have to be fed while the command runs: if `tool-exec` is killed meanwhile, the
/// command reads the end of its input too early and takes a part of the arguments for all of them.
///
/// # Errors
/// When the system refuses: no memory, or a limit of the size of files (`ulimit -f`).
pub(super) fn whole_input(text: &str) -> std::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = match memfd_create("arguments", flags | MemfdFlags::NOEXEC_SEAL) {
        // Linux before 6.3 does not know this flag.
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
