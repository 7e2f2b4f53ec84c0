//! The tests of `tc-eval` reach [`testkit::needs`] by this path.

#![allow(unused_imports, reason = "tests, each of which uses a part")]

pub use testkit::needs::*;
