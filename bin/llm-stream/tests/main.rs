//! The tests of this package, one program: each file is a module. A new file needs a line here.

mod auto;
mod cli;
mod config;
mod cut;
mod each;
mod flood;
mod http;
mod interrupt;
mod lost;
mod request_event;
mod retry;
mod scripted;
mod secrets;
mod stdin;
mod tag;
mod tape;
mod verbose;
