//! The tests of this package, one program: each file is a module. A new file needs a line here.

mod against_serde;
mod literal;
mod schema;
mod tools;
mod typed;
