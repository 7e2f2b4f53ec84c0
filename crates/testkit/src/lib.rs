//! Test support shared by all crates; a dev-dependency only.
//!
//! - [`Server`]: a provider on loopback that follows a script or a closure.
//! - [`Turn`]: a model's output, as the API of each [`Protocol`] sends it.
//! - [`refusal`]: the requests that providers reject.
//! - [`run`] and [`Conversation`]: run commands; a command that hangs fails its test (see
//!   [`PATIENCE`]).
//! - [`Scratch`]: a folder that is removed when its test ends.
//! - [`Emulator`]: a terminal.
//! - [`golden`]: files with the expected output, which `UPDATE=1` rewrites.
//! - [`trials`]: a test for each fixture.
//! - [`places`]: the positions at which laws are tested.
//! - [`damage`]: damage to a frame on its way.
//! - [`same`]: a comparison that shows the first difference.
//! - [`needs`]: the programs that a machine may lack.
//! - [`start`]: the same start for every test binary.
//!
//! This crate does not depend on the event crate or on any command.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod connection;
pub mod damage;
mod emulator;
mod fixtures;
pub mod golden;
mod http;
pub mod logs;
pub mod needs;
pub mod places;
mod process;
mod refusals;
mod request;
mod same;
mod scratch;
pub mod start;
pub mod trials;
mod turn;

pub use connection::Connection;
pub use emulator::Emulator;
pub use fixtures::{Body, Random, bodies, bodies_are_ours, cut, folders};
pub use http::{QUESTIONS, Server, Step, answer, gzip, gzip_run, sse_head};
pub use process::{
    COMMANDS, Conversation, PATIENCE, Ran, bash, code, events, finish, kill, program, root, run,
    run_with, runs, terminal, until, wait_until,
};
pub use refusals::refusal;
pub use request::{JSON, Request, SSE};
pub use same::{Lines, same, short};
pub use scratch::{File, Scratch};
pub use turn::{Protocol, Turn, chat_chunk, chat_end};
