//! The controlling terminal of this process, independent of the standard streams.

use super::question::QuestionStyle;
use rustix::fs::{Mode, OFlags};
use rustix::process::getpgrp;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp, tcgetwinsize};
use std::fs::File;
use std::io;
use tokio::net::unix::pipe::{Receiver, Sender};

/// The maximum length of an answer, in bytes.
const LONGEST: usize = 4096;

/// Turns bracketed paste on, and off.
const MARK_PASTES: [&str; 2] = ["\x1b[?2004h", "\x1b[?2004l"];

/// The controlling terminal.
#[derive(Debug)]
pub(crate) struct QuestionTerminal {
    // tokio's pipe types can wait for a terminal too.
    input: Receiver,
    output: Sender,
}

impl QuestionTerminal {
    /// Opens the terminal. Must be called inside the tokio runtime. Returns `None` if this process
    /// has no terminal, or if it is in the background, where reading would stop it.
    pub(crate) fn open() -> Option<QuestionTerminal> {
        let [input, output] = [open_in_foreground()?, open_in_foreground()?];
        let input = Receiver::from_file_unchecked(input).ok()?;
        Some(QuestionTerminal {
            input,
            output: Sender::from_file_unchecked(output).ok()?,
        })
    }

    /// Whether [`QuestionTerminal::open`] would find a terminal now.
    pub(crate) fn is_there() -> bool {
        open_in_foreground().is_some()
    }

    /// Returns the style for questions on this terminal.
    pub(crate) fn style(&self) -> QuestionStyle {
        let columns = tcgetwinsize(&self.output).map_or(0, |size| usize::from(size.ws_col));
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        QuestionStyle {
            columns: if columns == 0 { 80 } else { columns },
            is_coloured: !is_set("NO_COLOR") && !is_dumb,
        }
    }

    /// Writes all of `text`.
    ///
    /// # Errors
    /// If the terminal has closed.
    pub(crate) async fn write(&self, text: &str) -> io::Result<()> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            self.output.writable().await?;
            match self.output.try_write(rest) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                written => rest = &rest[written?..],
            }
        }
        Ok(())
    }

    /// Discards all unread input.
    ///
    /// # Errors
    /// If the terminal has closed.
    pub(crate) fn drop_input(&self) -> io::Result<()> {
        Ok(tcflush(&self.input, QueueSelector::IFlush)?)
    }

    /// Reads the next line, without its line end. Returns `None` at the end of the input (Ctrl-D).
    ///
    /// # Errors
    /// If the terminal has closed.
    pub(crate) async fn line(&self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        loop {
            self.input.readable().await?;
            let mut bytes = [0; 256];
            match self.input.try_read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(n) => line.extend_from_slice(&bytes[..n]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => continue,
                Err(e) => return Err(e),
            }
            if line.last() == Some(&b'\n') || line.len() > LONGEST {
                return Ok(Some(line.trim_ascii_end().to_vec()));
            }
        }
    }

    /// Turns bracketed paste on until the guard is dropped.
    pub(crate) fn mark_pastes(&self) -> MarkedPastes<'_> {
        // Has no effect if the terminal cannot accept output now.
        let _ = self.output.try_write(MARK_PASTES[0].as_bytes());
        MarkedPastes(self)
    }
}

/// Keeps bracketed paste on until dropped. Pasted text then starts with an escape sequence, so it
/// is never taken for an answer.
pub(crate) struct MarkedPastes<'t>(&'t QuestionTerminal);

impl Drop for MarkedPastes<'_> {
    fn drop(&mut self) {
        let _ = self.0.output.try_write(MARK_PASTES[1].as_bytes());
    }
}

fn open_in_foreground() -> Option<File> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = rustix::fs::open("/dev/tty", flags, Mode::empty()).ok()?;
    (tcgetpgrp(&file).ok()? == getpgrp()).then(|| file.into())
}
