//! `tag-parse`: text tags as tool-call events.
fn main() {}
