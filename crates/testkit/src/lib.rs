//! What the tests share. It is a dev-dependency only.
//!
//! What it is: [`Server`], a provider on loopback that does what a script or a closure says;
//! [`run`] and [`Conversation`], commands that end or hang a test no longer than [`PATIENCE`];
//! [`Scratch`], a folder that goes with its test; [`Emulator`], a terminal;
//! [`golden`], files with the expected output, which
//! `UPDATE=1` rewrites; [`trials`], a test for each fixture; [`places`], where laws are tried;
//! [`damage`], what becomes of a frame on its way;
//! [`same`], which shows the first difference; [`needs`], the programs that a machine may lack;
//! [`Turn`], what a model writes, as the API of each [`Protocol`] sends it; [`refusal`], what providers
//! refuse of a request;
//! [`start`], which makes every test binary start the same way. What it is not: it knows no event
//! and no command.

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
