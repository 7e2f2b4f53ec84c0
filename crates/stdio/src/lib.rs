//! The one crate that touches standard input and output.
//!
//! The crate reads lines in blocks ([`Input`]), writes in blocks ([`Output`]), decides when to
//! flush, and handles a reader that exits early, signals ([`StopSignals`]), exit statuses
//! ([`Status`]) and messages on standard error. It reads files that a person has named
//! ([`file_text()`]), and has the drivers that turn the machines of a [`Demux`](event::Demux)
//! ([`filter()`]) or a view ([`view()`]) into a command. It interprets events only as far as a
//! driver must: where a stream starts and ends, and whether an error occurred.

mod drive;
mod file;
mod input;
mod output;
mod own;
mod reader;
mod signals;
mod status;
mod system;
mod writer;

pub use drive::{RawLines, drive, filter, filter_with_lines, view, view_input};
pub use file::{file_text, unreadable};
pub use input::{Input, InputBlock};
pub use output::{Output, reader_gone};
pub use own::{StandardFile, ThreadCommand, arguments, stdin, stdout};
pub use reader::{BadLine, BadLines, InputPiece, LineReader, read_in_thread};
pub use signals::{StopSignals, each_signal, hangups, heeded};
pub(crate) use status::Notices;
pub use status::{Errors, Failure, FilterEnd, Status, block, message};
pub use system::{Patience, check_descriptors, terminal, thread};
pub use writer::{Emit, Filter, LineHandler, LineWriter};
