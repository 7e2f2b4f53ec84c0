//! How the streams of providers deviate from what a client expects: one table of deviations, and
//! what finds them in the events of a stream. What shows only in the bytes of a body (line ends,
//! frames that decoders skip) is found by whoever reads them.

mod calls;
mod card;
mod card_changes;
pub mod card_forms;
mod finder;
mod table;

pub use card::{Card, CardLine, Example, GroupKey};
pub use card_changes::card_changes;
pub use finder::{DeviationFinder, DeviationPlace};
pub use table::*;
