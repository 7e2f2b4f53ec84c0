//! The tests of `tag` reach [`testkit::trials`] by this path.

pub use testkit::trials::*;
