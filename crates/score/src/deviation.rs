//! How the streams of providers deviate from what a client expects: one table of deviations, and what finds them in the events of a
//! stream. What shows only in the bytes of a body (line ends, frames that decoders skip) is found by whoever reads them.

mod calls;
mod finder;
mod table;

pub use finder::{DeviationFinder, DeviationPlace};
pub use table::*;
