//! The one crate that touches standard input and output.
//!
//! What it is: reading lines in blocks ([`Input`]), writing in blocks ([`Output`]), the rule when
//! to flush, a reader that goes away, signals ([`StopSignals`]), exit statuses ([`Status`]),
//! messages on standard error, the text of a file that a person names ([`file_text()`]), and the
//! drivers that make a command of the machines of a [`Demux`](event::Demux) ([`filter()`]) and of a
//! view ([`view()`]). What it is not: it reads no more of an event than a driver must (where a
//! stream begins and ends, whether an error passed).

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
pub use status::{Errors, Failure, FilterEnd, Status, block, message};
pub use system::{Patience, check_descriptors, terminal, thread};
pub use writer::{Emit, Filter, LineHandler, LineWriter};
