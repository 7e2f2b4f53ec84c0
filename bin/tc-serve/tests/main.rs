//! The tests of this package, one program: each file is a module. A new file needs a line here.

mod approvals;
mod asks;
mod chat;
mod command;
mod crash;
mod faults;
mod full_disk;
mod http;
mod r#loop;
mod mcp_real;
mod metrics;
mod models;
mod page;
mod passed;
mod references;
mod replays;
mod security;
mod service;
mod sessions;
mod stored;
mod traces;
mod whole_answers;
mod words;
