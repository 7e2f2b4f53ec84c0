//! The one crate that touches standard input and output.
//!
//! What it is: reading lines in blocks ([`Input`]), writing in blocks ([`Output`]), the rule when
//! to flush, a reader that goes away, signals ([`Signals`]), exit statuses ([`Status`]), messages
//! on standard error, the demultiplexer of streams ([`Demux`]) and the drivers that make a command
//! of a machine ([`filter()`]) and of a view ([`view()`]). What it is not: it reads no more of an
//! event than a driver must (where a stream begins and ends, whether an error passed).

mod background;
mod bad;
mod closed;
mod drive;
mod errors;
mod filter;
mod handler;
mod input;
mod limits;
mod long;
mod options;
mod output;
mod reader;
mod signals;
mod status;
mod terminal;
mod view;
mod writer;

pub use background::{Piece, read_in_thread};
pub use bad::{BadLine, BadLines};
pub use closed::{check_input, check_output};
pub use drive::drive;
pub use errors::Errors;
pub use event::Demux;
pub use filter::filter;
pub use handler::LineHandler;
pub use input::{Block, Input};
pub use limits::{check_descriptors, thread};
pub use options::{Emit, Filter};
pub use output::{Output, reader_gone};
pub use reader::LineReader;
pub use signals::{Signals, each_signal, hangups};
pub use status::{Failure, Outcome, Status, message};
pub use terminal::terminal;
pub use view::view;
pub use writer::LineWriter;
