//! A person's answers: the questions on the terminal, who answered, and the command that continues
//! a run.

mod asker;
pub mod continuation;
mod question;
mod rows;
mod terminal;
pub mod user;

pub use asker::{Answered, Asker, Question};
pub use terminal::Terminal;
