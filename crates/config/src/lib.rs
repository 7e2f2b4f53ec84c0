//! The configuration file, `$XDG_CONFIG_HOME/toolpipe/config.toml`: defaults of the options of
//! `llm-stream`, `react` and `tc-serve`, and models and agents by name.
//!
//! What it is: [`ConfigFile`], the file as it is read and checked; [`run()`], which runs a command
//! whose options have defaults in that file and in the environment; [`Configured`], by which the
//! command finds the other models of the file. What it is not: it knows no option by name but those
//! that say where a request goes. The options, their values and their help are those of each
//! command: a key of the file is the long name of an option.

mod file;
mod options;
mod resolve;
mod run;
mod show;

pub use file::{ConfigFile, Model, is_agent_name};
pub use options::is_merged;
pub use resolve::{Configured, Spec};
pub use run::{ShowArgs, run};
