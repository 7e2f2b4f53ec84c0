//! The program of a command, which is looked for before the first request.

use anyhow::{Result, bail};
use std::path::Path;

/// Checks that the program of `words` exists. A command line for `sh` is not looked into.
///
/// # Errors
/// One line.
pub fn check(words: &[String]) -> Result<()> {
    let [program, _, ..] = words else {
        return Ok(());
    };
    let exists = if program.contains('/') {
        Path::new(program).is_file()
    } else {
        std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
    };
    if !exists {
        bail!(
            "{program}: no such command, give its path, or a whole command line as one word in quotes"
        );
    }
    Ok(())
}
