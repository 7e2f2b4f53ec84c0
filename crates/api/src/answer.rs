//! Events into the answer that a client of a provider's API expects: its stream, or the whole
//! answer at once. The mirror of `upstream`.
//!
//! What it is: the table of the APIs that clients speak ([`Front`]), and [`Encoder`], which takes
//! the events of one stream and writes the bytes of the answer. The events are those that
//! `accumulate` emits with live deltas. What it is not: it opens no connection, has no clock, and
//! merges no deltas.

mod details;
mod draft;
mod dropped;
mod encoder;
mod failure;
mod front;
mod options;
mod step;
mod turn;
mod writer;

pub use details::{Members, Place, REPEATED};
pub use draft::{Block, ChoiceDraft, Draft};
pub use dropped::Dropped;
pub use encoder::{Encoder, Form};
pub use failure::{Failure, ProviderError};
pub use front::Front;
pub use options::{AnswerOptions, NamespacedName};
pub use step::{Step, Usage};
