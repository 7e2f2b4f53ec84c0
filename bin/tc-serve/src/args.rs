//! What was typed.

mod keys;
mod settings;

pub use keys::{Keys, random};
pub use settings::{Limits, Listen, Settings};

use crate::command::CommandArgs;
use crate::http::PassedPaths;
use crate::log::LogTarget;
use crate::upstream::UpstreamArgs;
use anyhow::{Result, bail};
use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  A local server that speaks OpenAI's API, made correct for every client:
    tc-serve --base-url http://localhost:8080
  Another provider, for clients that speak OpenAI's or Anthropic's API:
    tc-serve --api anthropic --model claude-sonnet-4-5
  Any pipeline as a service:
    tc-serve -- 'llm-stream -m gpt-5-mini | tag-parse | tc-accumulate'
  The agent loop as a service, with tools that it runs itself:
    tc-serve -- 'react -t tools.json -m gpt-5-mini'
  For other machines, with a key that clients have to send:
    tc-serve --listen 0.0.0.0:8790 --key-file keys.txt --allow-host box.lan

Standard output gets one line: the address. Everything else goes to standard error.

Exit status: 2 an error (one line on standard error); 130 and 143 after SIGINT and SIGTERM.";

/// What `--retries` does here: without it, who sends a failed request again is one layer.
const RETRIES: &str = "How often a request is sent again, as long as nothing of its answer was sent. Without it: never for a client that \
    sends its requests again itself (the SDKs of OpenAI and Anthropic, Codex, Claude Code, opencode and others); for any other once, if the connection \
    was lost";

/// Serves any model to any client, with correct tool calls
#[derive(Debug, Parser)]
#[command(name = "tc-serve", version, max_term_width = 100, after_help = EXAMPLES, mut_arg("retries", |arg| arg.help(RETRIES)))]
pub struct Args {
    #[command(flatten)]
    pub service: ServiceArgs,
    #[command(flatten)]
    pub access: AccessArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub upstream: UpstreamArgs,
    #[command(flatten)]
    pub command: CommandArgs,
    #[command(flatten)]
    pub common: ::args::Common,
}

/// Where to serve, and how.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Service")]
pub struct ServiceArgs {
    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8790")]
    pub listen: String,
    /// Listen on a socket in the file system, which only this user can open, in place of a port
    #[arg(long, value_name = "PATH", conflicts_with = "listen")]
    pub unix: Option<PathBuf>,
    /// How often a stream in which nothing happens gets a sign of life
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "15s")]
    pub keep_alive: Duration,
    /// How long open answers may go on after SIGTERM or SIGINT, before they end with an error
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "2s")]
    pub grace: Duration,
    /// Send warnings and repairs along, under the key `toolpipe` in chunks that clients pass over
    #[arg(long)]
    pub extras: bool,
    /// Pass this path to the provider as it is, beside /v1/embeddings and the others that are
    /// passed; /* at the end is all below it. May be given many times
    #[arg(long = "pass", value_name = "PATH")]
    pub passed: Vec<String>,
    /// Append an event of type access for each request to FILE: its path, status, time and counts,
    /// without content. Without FILE, or with -, it is written to standard error, of which then
    /// every line is an event
    #[arg(short, long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", value_parser = log_target)]
    pub log: Option<LogTarget>,
}

/// Who may ask.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Access")]
pub struct AccessArgs {
    /// A file of the keys that clients may send, one a line, which SIGHUP reads again; needed for
    /// any address but this machine's own
    #[arg(long, value_name = "FILE", conflicts_with = "no_key")]
    pub key_file: Option<PathBuf>,
    /// Ask for no key, where one would be made at the start because a COMMAND answers
    #[arg(long)]
    pub no_key: bool,
    /// Another name of this server that a request's Host may have; may be given many times
    #[arg(long = "allow-host", value_name = "HOST")]
    pub allow_hosts: Vec<String>,
    /// An origin whose pages may ask from a browser, such as https://chat.example.com; may be given
    /// many times
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub allow_origins: Vec<String>,
}

/// Limits on what clients may take.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// The longest body of a request (K, M and G are understood)
    #[arg(long, value_name = "BYTES", value_parser = ::args::bytes, default_value = "32M")]
    pub max_body: usize,
    /// How many bytes of one answer may be kept until it can be sent: a whole answer, a call that
    /// is not complete, one event of the provider
    #[arg(long, value_name = "BYTES", value_parser = ::args::bytes, default_value = "64M")]
    pub max_answer: usize,
    /// How many bytes all requests and answers may keep together; what finds no room gets the
    /// status 503
    #[arg(long, value_name = "BYTES", value_parser = ::args::bytes, default_value = "1G")]
    pub max_memory: usize,
    /// How many connections may be open
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub max_connections: usize,
    /// How many answers may be open at once for each key
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..1_000_000))]
    pub max_streams: u32,
    /// How many requests of each key may wait for a place; more get the status 429
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub queue: usize,
    /// How long the head of a request may take
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "10s", hide = true)]
    pub header_timeout: Duration,
    /// How long the body of a request may take
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "60s", hide = true)]
    pub body_timeout: Duration,
    /// How long a connection may stay open between two requests
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "60s", hide = true)]
    pub connection_timeout: Duration,
    /// How long a client may take nothing of what it is sent
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "60s", hide = true)]
    pub reader_timeout: Duration,
    /// How long the status of a stream waits for the first piece of the answer
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "10s", hide = true)]
    pub status_timeout: Duration,
}

fn log_target(typed: &str) -> Result<LogTarget, String> {
    if typed.is_empty() {
        Err("the file has no name".to_owned())
    } else {
        Ok(typed.into())
    }
}

impl Args {
    /// The settings.
    ///
    /// # Errors
    /// One line for options that contradict each other or that would let strangers in, and for
    /// files that cannot be read.
    pub fn settings(self) -> Result<Settings> {
        let Args {
            service,
            access,
            limits,
            upstream,
            command,
            ..
        } = self;
        let has_command = !command.command.is_empty();
        if has_command && command.command.iter().all(|word| word.trim().is_empty()) {
            bail!(
                "the COMMAND behind -- is empty; write one, such as 'llm-stream -m NAME | tag-parse | tc-accumulate'"
            );
        }
        let origins_of_answers = [
            ("COMMAND", has_command),
            ("--replay", !upstream.replay.files.is_empty()),
            ("--base-url", upstream.provider.base_url.is_some()),
        ];
        let mut named = origins_of_answers
            .iter()
            .filter(|(_, is_named)| *is_named)
            .map(|(name, _)| name);
        if let (Some(first), Some(second)) = (named.next(), named.next()) {
            bail!("{first} and {second} would both answer requests; give one of them");
        }
        let listen = match service.unix {
            Some(path) => Listen::Unix(path),
            None => Listen::Tcp(settings::addresses(&service.listen)?),
        };
        let is_local = match &listen {
            Listen::Unix(_) => true,
            Listen::Tcp(all) => all
                .iter()
                .all(|address| address.ip().to_canonical().is_loopback()),
        };
        if !is_local && access.key_file.is_none() {
            bail!(
                "--listen {}: other machines could ask without a key; write the keys of your clients into a file and name it with --key-file",
                service.listen
            );
        }
        let keys = match &access.key_file {
            Some(path) => Keys::read(path)?,
            None if !has_command || access.no_key => Keys::default(),
            None => Keys::make()?,
        };
        let origins = access
            .allow_origins
            .iter()
            .map(|text| settings::origin(text))
            .collect::<Result<_>>()?;
        let limits = Limits {
            body: limits.max_body,
            answer: limits.max_answer,
            memory: limits.max_memory,
            connections: limits.max_connections.max(1),
            streams: usize::try_from(limits.max_streams)?,
            queue: limits.queue,
            header_time: limits.header_timeout,
            body_time: limits.body_timeout,
            connection_time: limits.connection_timeout,
            reader_time: limits.reader_timeout,
            status_time: limits.status_timeout,
        };
        Ok(Settings {
            listen,
            keys,
            hosts: access
                .allow_hosts
                .iter()
                .map(|host| host.to_ascii_lowercase())
                .collect(),
            origins,
            limits,
            keep_alive: service.keep_alive,
            grace: service.grace,
            passed: PassedPaths::new(&service.passed)?,
            extras: service.extras,
            log: service.log,
            upstream,
            command,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
