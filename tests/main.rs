//! The tests of this package, one program: each file is a module. A new file needs a line here.

// So do the tests of that crate name it, which are included here.
extern crate tag as toolpipe_tag;

mod approval;
mod attachments;
mod chain;
mod chat;
mod checkers;
mod conversations;
mod false_calls;
mod follow;
mod formats;
mod fuzz;
mod growth;
mod growth_bodies;
mod growth_commands;
mod growth_plan;
mod growth_views;
mod help;
mod install;
mod interrupted;
mod laws;
mod limits;
mod messages;
mod metrics;
mod new_dialect;
mod options;
mod packages;
mod picture;
mod pipes;
mod react;
mod readme;
mod release;
mod replay;
mod schema;
mod serve;
mod sessions_react;
mod signals;
mod streams_index;
mod tagged_values;
mod text_calls;
mod toolbox;
mod tools;
mod traces;
mod workflow;

/// How the cases of `fixtures/dialects` are read.
#[allow(dead_code, reason = "the tests of the crate `tag` use the rest")]
#[path = "../crates/tag/tests/cases"]
mod dialect_cases {
    pub(crate) mod file;
    pub(crate) mod outcome;
}

mod pipeline {
    pub(crate) mod cost;
    pub(crate) mod schema;
    pub(crate) mod scratch;
    pub(crate) mod units;
}

#[allow(
    dead_code,
    unused_imports,
    reason = "the tests of `tc-serve` use the rest"
)]
#[path = "../bin/tc-serve/tests/service/mod.rs"]
mod service;
