//! The tests of this package, one program: each file is a module. A new file needs a line here.

mod config;
mod each;
