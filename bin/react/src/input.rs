//! Text on standard input, which belongs to the question.

use crate::args::Args;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use stdio::Patience;

/// Whether standard input may hold text: it is a pipe, a file or a socket, and neither a terminal
/// nor another device, such as `/dev/null`.
pub(crate) fn may_hold_text() -> bool {
    let kind = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .and_then(|stdin| File::from(stdin).metadata())
        .map(|meta| meta.file_type());
    kind.is_ok_and(|kind| !kind.is_char_device())
}

/// Reads standard input to its end; `None` if it contains only white space.
///
/// A pipe is silent both before a slow program writes and if no program ever writes to it. Any
/// timeout would be a guess, so this waits until the end, and prints a message meanwhile.
///
/// # Errors
/// Fails if standard input cannot be read, is not UTF-8, or is longer than `--max-line`.
pub(crate) fn text(args: &Args) -> anyhow::Result<Option<String>> {
    let typed = args.of_name(&["max-line"]);
    let typed = typed.last().and_then(|value| value.to_str());
    let most = ::args::bytes(typed.unwrap_or(::args::MAX_LINE))
        .map_err(|e| anyhow::anyhow!("--max-line: {e}"))?;
    let _patience = Patience::new(
        "react",
        "still reading standard input to its end, as text of the question; add </dev/null if there \
         is none",
    );
    ::args::text(&mut io::stdin().lock(), "standard input", most)
}
