//! What holds for every dialect of the table, in texts that its own writer writes: a new row is
//! tested by being there.

#[path = "cases/bugs.rs"]
mod bugs;
#[path = "cases/closers.rs"]
mod closers;
#[path = "cases/outcome.rs"]
mod outcome;
#[path = "cases/quoted.rs"]
mod quoted;
#[path = "cases/reader.rs"]
mod reader;
#[path = "cases/rehearsed.rs"]
mod rehearsed;
#[path = "cases/generated.rs"]
mod texts;
