//! The options that the user typed, and the settings that the service makes of them at the start.

use crate::keys::Keys;
use crate::log::LogTarget;
use crate::route::PassedPaths;
use crate::sessions::{Retain, SessionLimits};
use crate::tools::ToolArgs;
use anyhow::{Result, bail};
use ask::{AutoArgs, ConnectionArgs, ProviderArgs, ReplayArgs, ToolsModeArgs};
use clap::Parser;
use config::Configured;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  A local server that speaks OpenAI's API, made correct for every client:
    tc-serve --base-url http://localhost:8080
  Another provider, for clients that speak OpenAI's or Anthropic's API:
    tc-serve --model claude-sonnet-4-5
  Any pipeline as a service:
    tc-serve -- 'llm-stream -m gpt-5-mini | tag-parse | tc-accumulate'
  The agent loop as a service, with tools that it runs itself:
    tc-serve --model gpt-5-mini --sessions DIR --tools tools.json --mode auto
  For other machines, with a key that clients have to send:
    tc-serve --listen 0.0.0.0:8790 --key-file keys.txt --allow-host box.lan

Standard output gets one line: the address. Everything else goes to standard error.

Exit status: 2 an error (one line on standard error); 130 and 143 after SIGINT and SIGTERM.";

/// The help of `--retries` here: by default only one of client and service repeats a failed
/// request.
const RETRIES: &str = "Number of retries of a request, as long as nothing of its answer was \
    sent. Default: none for a client that retries by itself (the SDKs of OpenAI and Anthropic, \
    Codex, Claude Code, opencode and others); one for any other, if the connection was lost";

/// Serves any model to any client, with correct tool calls
#[derive(Debug, Parser)]
#[command(name = "tc-serve", version, max_term_width = 100, after_help = EXAMPLES, mut_arg("retries", |arg| arg.help(RETRIES)))]
pub(crate) struct Args {
    #[command(flatten)]
    pub service: ServiceArgs,
    #[command(flatten)]
    pub access: AccessArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub sessions: SessionArgs,
    #[command(flatten)]
    pub tools: ToolArgs,
    #[command(flatten)]
    pub upstream: UpstreamArgs,
    #[command(flatten)]
    pub command: CommandArgs,
    #[command(flatten)]
    show: config::ShowArgs,
    #[command(flatten)]
    pub common: ::args::Common,
}

/// Where to serve, and how.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Service")]
pub(crate) struct ServiceArgs {
    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8790")]
    pub listen: String,
    /// Listen on a socket in the file system, which only this user can open, in place of a port
    #[arg(
        long,
        value_name = "PATH",
        conflicts_with = "listen",
        hide_short_help = true
    )]
    pub unix: Option<PathBuf>,
    /// How often an idle stream gets a keep-alive
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "15s", hide_short_help = true)]
    pub keep_alive: Duration,
    /// How long open answers may continue after SIGTERM or SIGINT, before they end with an error
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "2s", hide_short_help = true)]
    pub grace: Duration,
    /// Also send warnings and repairs, under the key `toolpipe` in chunks that clients ignore
    #[arg(long, hide_short_help = true)]
    pub extras: bool,
    /// Pass this path to the provider as it is, beside /v1/embeddings and the others that are
    /// passed; /* at the end is all below it. May be given many times
    #[arg(long = "pass", value_name = "PATH")]
    pub passed: Vec<String>,
    /// Append an event of type access for each request to FILE
    ///
    /// It has the path, status, time and counts of the request, without content. Without FILE, or
    /// with -, it is written to standard error, of which then every line is an event
    // `--log` was the name until 0.1; elsewhere it is the log of a conversation.
    #[arg(long, alias = "log", short_alias = 'l', value_name = "FILE", num_args = 0..=1, default_missing_value = "-", value_parser = log_target)]
    pub access_log: Option<LogTarget>,
    /// When an answer ends, append its trace to FILE: a line of OTLP's JSON, for the tools of
    /// OpenTelemetry
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub otlp_file: Option<PathBuf>,
}

/// Who may ask.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Access")]
pub(crate) struct AccessArgs {
    /// A file of the keys that clients may send, one a line, which SIGHUP reads again; needed for
    /// any address but this machine's own
    #[arg(long, value_name = "FILE", conflicts_with = "no_key")]
    pub key_file: Option<PathBuf>,
    /// Require no key with a COMMAND, for which one is made at the start
    #[arg(long)]
    pub no_key: bool,
    /// Another name of this server that a request's Host may have; may be given many times
    #[arg(long = "allow-host", value_name = "HOST")]
    pub allow_hosts: Vec<String>,
    /// An origin whose pages may send requests from a browser, such as https://chat.example.com;
    /// may be given many times
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub allow_origins: Vec<String>,
}

/// Limits on what clients may take.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// The longest body of a request (K, M and G are understood)
    #[arg(long, value_name = "BYTES", value_parser = ::args::bytes, default_value = "32M")]
    pub max_body: usize,
    /// How many bytes of one answer may be held until it can be sent: a whole answer, an incomplete
    /// call, one event of the provider
    #[arg(long, value_name = "BYTES", value_parser = ::args::bytes, default_value = "64M")]
    pub max_answer: usize,
    /// How many bytes all requests and answers may hold together; a request without room gets the
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
    /// How long a client may read nothing of what it is sent
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "60s", hide = true)]
    pub reader_timeout: Duration,
    /// How long the status of a stream waits for the first piece of the answer
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "10s", hide = true)]
    pub status_timeout: Duration,
    /// How long a client that polls waits for lines; a stream of Durable Streams lasts three times
    /// that
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "20s", hide = true)]
    pub poll_time: Duration,
}

/// Answers that are kept.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Sessions")]
pub(crate) struct SessionArgs {
    /// Store answers in this folder, each session a file of events, so that they can be continued,
    /// read again and followed
    #[arg(long, value_name = "DIR")]
    pub sessions: Option<PathBuf>,
    /// Remove sessions: those that were not written for a time (12h, 30d, 4w), and the oldest where
    /// all are more than so many bytes (500M, 10G, 1T), or more than a number (1000). May be given
    /// many times
    #[arg(long, value_name = "AGE|BYTES|COUNT", requires = "sessions", value_parser = Retain::of)]
    pub retain: Vec<Retain>,
    /// Do not serve the page of the sessions at /
    #[arg(long)]
    pub no_page: bool,
    /// How many sessions each key may have
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub max_sessions: usize,
    /// How long a session may become (K, M and G are understood)
    #[arg(long, value_name = "BYTES", value_parser = ::args::bytes, default_value = "256M")]
    pub max_session: usize,
    /// How many clients of each key may follow sessions at once
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub max_followers: usize,
}

impl SessionArgs {
    /// The limits of each key.
    pub(crate) fn limits(&self) -> SessionLimits {
        SessionLimits {
            sessions: self.max_sessions,
            bytes: u64::try_from(self.max_session).unwrap_or(u64::MAX),
            followers: self.max_followers,
        }
    }
}

/// The provider that is asked.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct UpstreamArgs {
    #[command(flatten)]
    pub provider: ProviderArgs,
    #[command(flatten)]
    pub tools: ToolsModeArgs,
    #[command(flatten)]
    pub auto: AutoArgs,
    #[command(flatten)]
    pub connection: ConnectionArgs,
    #[command(flatten)]
    pub replay: ReplayArgs,
}

/// A command that answers requests.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Command")]
pub(crate) struct CommandArgs {
    /// How many commands may run at once; further requests wait, as many of each key as --queue
    /// says, and the keys take turns
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub processes: u32,
    /// How much a command may write for one answer (K, M and G are understood)
    #[arg(long, value_name = "BYTES", value_parser = ::args::bytes, default_value = "64M")]
    pub max_output: usize,
    /// A command that answers each request: one word is a command line for sh, several are a
    /// program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

fn log_target(typed: &str) -> Result<LogTarget, String> {
    if typed.is_empty() {
        Err("the file has no name".to_owned())
    } else {
        Ok(typed.into())
    }
}

/// The settings of the service.
#[derive(Debug)]
pub(crate) struct ServeSettings {
    /// The options that the user typed.
    pub args: Args,
    /// Where to listen.
    pub listen: Listen,
    /// The keys that clients may send.
    pub keys: Keys,
    /// Origins whose pages may ask, in lower case.
    pub origins: Vec<String>,
    /// The paths that are passed to the provider as they are.
    pub passed: PassedPaths,
}

impl ServeSettings {
    /// Whether the page is served at `/`. Without sessions the page would be empty.
    pub(crate) fn has_page(&self) -> bool {
        let sessions = &self.args.sessions;
        sessions.sessions.is_some() && !sessions.no_page
    }
}

/// Where to listen.
#[derive(Clone, Debug)]
pub(crate) enum Listen {
    /// The addresses of one name; the first address that works is used.
    Tcp(Vec<SocketAddr>),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl Args {
    /// The settings.
    ///
    /// # Errors
    /// One line for options that contradict each other or that would let strangers in, and for
    /// files that cannot be read.
    pub(crate) fn settings(self, configured: &Configured) -> Result<ServeSettings> {
        let words = &self.command.command;
        let has_command = !words.is_empty();
        if has_command && words.iter().all(|word| word.trim().is_empty()) {
            bail!(
                "the COMMAND behind -- is empty; write one, such as 'llm-stream -m NAME | tag-parse | tc-accumulate'"
            );
        }
        let origins_of_answers = [
            ("COMMAND", has_command),
            ("--replay", !self.upstream.replay.files.is_empty()),
            ("--base-url", configured.is_typed("base-url")),
        ];
        let mut named = origins_of_answers
            .iter()
            .filter(|(_, is_named)| *is_named)
            .map(|(name, _)| name);
        if let (Some(first), Some(second)) = (named.next(), named.next()) {
            bail!("{first} and {second} would both answer requests; give one of them");
        }
        let access = &self.access;
        let listen = match &self.service.unix {
            Some(path) => Listen::Unix(path.clone()),
            None => Listen::Tcp(addresses(&self.service.listen)?),
        };
        if listen.is_remote() && access.key_file.is_none() {
            bail!(
                "--listen {}: other machines could ask without a key; write the keys of your \
                 clients into a file and name it with --key-file",
                self.service.listen
            );
        }
        Ok(ServeSettings {
            listen,
            keys: match &access.key_file {
                Some(path) => Keys::read(path)?,
                None if !has_command || access.no_key => Keys::default(),
                None => Keys::make()?,
            },
            origins: (access.allow_origins.iter())
                .map(|text| origin(text))
                .collect::<Result<_>>()?,
            passed: PassedPaths::new(&self.service.passed)?,
            args: self,
        })
    }
}

impl Listen {
    /// Whether other machines can reach the service.
    fn is_remote(&self) -> bool {
        let is_remote = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
        matches!(self, Listen::Tcp(all) if all.iter().any(is_remote))
    }
}

/// The addresses of `HOST:PORT`.
///
/// # Errors
/// One line for a text that is not an address, and for a name that is not known.
fn addresses(text: &str) -> Result<Vec<SocketAddr>> {
    let found = text.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    match found {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => bail!("--listen {text}: not an address, write it as 127.0.0.1:8790"),
    }
}

/// An origin as browsers write it, in lower case.
///
/// # Errors
/// One line for a text that is not a scheme and a host.
fn origin(text: &str) -> Result<String> {
    let lower = text.to_ascii_lowercase();
    let host = lower
        .strip_prefix("http://")
        .or_else(|| lower.strip_prefix("https://"));
    match host {
        Some(host) if !host.is_empty() && !host.contains(['/', '*', '?', '#', '@', ' ']) => {
            Ok(lower)
        }
        _ => bail!(
            "--allow-origin {text}: not an origin, write it as https://chat.example.com, without a path"
        ),
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

#[cfg(test)]
mod settings_tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        assert_eq!(
            origin("https://Chat.example.com:8443").unwrap(),
            "https://chat.example.com:8443"
        );
        for wrong in [
            "*",
            "null",
            "chat.example.com",
            "https://",
            "https://*",
            "https://a/b",
            "ftp://a",
        ] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }
}
