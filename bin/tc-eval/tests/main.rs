//! The tests of this package, one program: each file is a module. A new file needs a line here.

mod baseline;
mod command;
mod diff;
mod evaluate;
mod explain;
mod fit;
mod independent;
mod label;
mod memory;
mod merge;
mod output;
mod run;
mod shell;
