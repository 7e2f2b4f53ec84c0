//! The options that name a provider, and how it is asked.

use anyhow::{Result, bail};
use api::{Api, KnownServer, Price};
use clap::ValueEnum;
use client::{BodySplit, Speed, Stall};
use config::Configured;
use serde_json::{Map, Number, Value};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Whom to ask.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Request")]
pub struct ProviderArgs {
    /// The API of the server: openai-chat (or openai; the default, and what most servers have),
    /// openai-responses (responses), anthropic (claude), gemini (google), ollama, mistral, cohere
    /// (env LLM_API)
    #[arg(short, long, value_name = "NAME", value_parser = api)]
    pub api: Option<Api>,
    /// The address of the API, if it is not the provider's own (env LLM_BASE_URL)
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// A model of the configuration file, or the provider's name of one (env LLM_MODEL). A name such
    /// as claude-sonnet-4-5 selects the provider's server if no option does (see docs/config.md)
    #[arg(short, long, value_name = "NAME")]
    pub model: Option<String>,
    /// The environment variable that holds the key, if it is not the API's usual one
    #[arg(long, value_name = "NAME", conflicts_with_all = ["api_key_file", "api_key_command"])]
    pub api_key_env: Option<String>,
    /// A file that holds the key
    #[arg(long, value_name = "FILE")]
    pub api_key_file: Option<PathBuf>,
    /// A shell command that prints the key on its first line, such as 'pass show openai'
    #[arg(long, value_name = "COMMAND", conflicts_with = "api_key_file")]
    pub api_key_command: Option<String>,
    /// A header of the request; $NAME in the value is a variable of the environment
    #[arg(long = "header", value_name = "K: V")]
    pub headers: Vec<String>,
    /// How random the answer is; 0 takes the likeliest tokens only
    #[arg(long, value_name = "NUMBER", value_parser = number, alias = "temp")]
    pub temperature: Option<Number>,
    /// The largest number of tokens in the answer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), aliases = ["max-output-tokens", "max-completion-tokens", "num-predict", "n-predict"])]
    pub max_tokens: Option<u64>,
    /// Only the likeliest tokens, until their probabilities reach this sum
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub top_p: Option<Number>,
    /// Only the N likeliest tokens
    #[arg(long, value_name = "N")]
    pub top_k: Option<u64>,
    /// Seed for sampling: the same number gives the same answer, if the server supports it
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Text that ends the answer; may be given many times
    #[arg(long, value_name = "TEXT", aliases = ["stop-sequence", "stop-sequences"])]
    pub stop: Vec<String>,
    /// What the model costs, in dollars for a million tokens: INPUT/OUTPUT or INPUT/OUTPUT/CACHED.
    /// The counts of a turn then have its cost
    #[arg(long, value_name = "PRICE", value_parser = Price::from_str)]
    pub price: Option<Price>,
    /// Do not mark requests for Anthropic's prompt cache. By default they are marked with tools or
    /// from the second turn on, unless a client has marked something itself
    #[arg(long, hide_short_help = true)]
    pub no_prompt_cache: bool,
    /// Additional member of the request body, such as reasoning_effort='"low"'
    #[arg(long = "param", value_name = "KEY=JSON", value_parser = param)]
    pub params: Vec<(String, Value)>,
}

impl ProviderArgs {
    /// Whether an option says where requests go or which key they carry. Then the name of the model
    /// does not: a key must not reach a server that it was not named for.
    pub(crate) fn selects_server(&self) -> bool {
        self.api.is_some()
            || self.base_url.is_some()
            || self.api_key_env.is_some()
            || self.api_key_file.is_some()
            || self.api_key_command.is_some()
            || !self.headers.is_empty()
    }

    /// Checks that the model's name is not a slip for a name in the configuration file. A request
    /// for that name would go to OpenAI, which has no such model.
    ///
    /// # Errors
    /// A one-line error with the similar name.
    pub fn check_name(&self, configured: &Configured) -> Result<()> {
        let name = self.model.as_deref().filter(|_| !self.selects_server());
        let unknown = name.filter(|name| KnownServer::of_model(name).is_none());
        match unknown.and_then(|name| Some((name, configured.similar_model(name)?))) {
            Some((name, similar)) => bail!(
                "--model {name}: the configuration file has no such model, did you mean \
                 {similar:?}? Name the server of another model with --api or --base-url"
            ),
            None => Ok(()),
        }
    }

    /// The settings that each API has under a name of its own, by the names of chat completions.
    pub(crate) fn settings(&self) -> Map<String, Value> {
        let count = |number: Option<u64>| number.map(Value::from);
        let number = |number: &Option<Number>| number.clone().map(Value::Number);
        let stop = (!self.stop.is_empty()).then(|| self.stop.clone().into());
        let settings = [
            ("temperature", number(&self.temperature)),
            ("max_tokens", count(self.max_tokens)),
            ("top_p", number(&self.top_p)),
            ("top_k", count(self.top_k)),
            ("seed", count(self.seed)),
            ("stop", stop),
        ];
        settings
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }
}

/// What the user asks for. The comments are those of `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ToolsModeChoice {
    /// In the request's own field
    Native,
    /// In the system prompt, in a dialect's form
    Tag,
    /// Whichever the model takes: see 'Tools mode auto'
    Auto,
}

/// How the model learns of its tools.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Request")]
pub struct ToolsModeArgs {
    /// How the model learns of the tools
    #[arg(long, value_name = "MODE", value_enum, default_value_t = ToolsModeChoice::Native)]
    pub tools_mode: ToolsModeChoice,
    /// The form in which the model writes calls as text, or auto: prompts of tag mode are in
    /// tool-name-tag, and calls in a native answer are read in that of the model's family (default
    /// auto; 'tag-parse --list-dialects' lists all)
    #[arg(short, long, value_name = "NAME")]
    pub dialect: Option<String>,
    /// A file of dialects of your own for --dialect, or the tokenizer_config.json of a checkpoint
    /// that describes what it writes (see docs/new-dialect.md); a single one is the default
    #[arg(long, value_name = "FILE")]
    pub dialect_file: Option<PathBuf>,
    /// The end of the prompt, which the model's text continues, such as $'<think>\n' where the
    /// server's template opens the reasoning
    #[arg(long, value_name = "TEXT")]
    pub prefill: Option<String>,
}

/// How `--tools-mode auto` decides.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Tools mode auto")]
#[allow(rustdoc::broken_intra_doc_links, reason = "texts of --help")]
pub struct AutoArgs {
    /// The allow-list: lines of PATTERN native|tag|none [DIALECT], where PATTERN matches API/MODEL
    /// (default ~/.config/toolpipe/tools-mode)
    #[arg(long, value_name = "FILE")]
    pub tools_mode_file: Option<PathBuf>,
    /// The folder with what was learned about models, or none (default
    /// ~/.cache/toolpipe/capabilities)
    #[arg(long, value_name = "DIR")]
    pub capability_cache: Option<PathBuf>,
    /// How long an entry of that folder is valid
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "7d")]
    pub capability_ttl: Duration,
}

/// How to reach the provider.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArgs {
    /// How often a request is retried, as long as no event of its answer was written (default 2)
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,

    /// Whether that is done after a lost connection alone: see
    /// [`client::AttemptPolicy::only_lost`]. It cannot be typed.
    #[arg(skip)]
    pub only_lost: bool,
    /// Longest time for everything, retries included
    #[arg(long, value_name = "TIME", value_parser = event::unit::time)]
    pub timeout: Option<Duration>,
    /// Longest time to connect
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "10s")]
    pub connect_timeout: Duration,
    /// Longest wait for the answer, and for each further piece of it
    #[arg(long, value_name = "TIME", value_parser = event::unit::time, default_value = "5m")]
    pub idle_timeout: Duration,
    /// What to do when streaming is refused: request the whole answer at once, or fail
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Fallback::Sync)]
    pub fallback: Fallback,
    /// Send secrets over http to another machine; anybody on the way can read them
    #[arg(long)]
    pub allow_insecure: bool,
}

impl ConnectionArgs {
    /// Number of retries of a request. Nobody else asks again for a command that says nothing
    /// of it.
    pub(crate) fn retries(&self) -> u32 {
        self.retries.unwrap_or(2)
    }
}

/// What to do when streaming is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fallback {
    /// The endpoint without streaming
    Sync,
    /// An `error` event
    None,
}

/// Recorded bodies and tapes.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Replay and tapes")]
pub struct ReplayArgs {
    /// Replay a recorded body or a tape, and send nothing; may be given many times (- is standard
    /// input)
    #[arg(short = 'r', long = "replay", value_name = "FILE", conflicts_with_all = ["tape", "tape_mode"])]
    pub files: Vec<PathBuf>,
    /// real: as fast as it was recorded, max: at once, N: N times as fast as it was recorded
    #[arg(long, value_name = "SPEED", default_value = "max", value_parser = speed)]
    pub speed: Speed,
    /// A tape to answer from, or to record on (env LLM_TAPE)
    #[arg(long, value_name = "FILE")]
    pub tape: Option<PathBuf>,
    /// How the tape is used (env LLM_TAPE_MODE; default replay)
    #[arg(long, value_name = "MODE", value_enum)]
    pub tape_mode: Option<TapeModeArg>,
}

/// Faults in the answers of a replay.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = "Replay and tapes")]
pub struct FaultArgs {
    /// Split the body into reads of N bytes, or of random lengths
    #[arg(long, value_name = "N|random:SEED", value_parser = resplit)]
    pub resplit: Option<BodySplit>,
    /// End the body before this byte, as if the server had closed it
    #[arg(long, value_name = "BYTE")]
    pub cut_at: Option<usize>,
    /// Stop for MS milliseconds before this byte
    #[arg(long, value_name = "BYTE:MS", value_parser = stall)]
    pub stall_at: Option<Stall>,
    /// Break the connection before this byte
    #[arg(long, value_name = "BYTE")]
    pub error_at: Option<usize>,
    /// Send the event (or the line) that holds this byte twice
    #[arg(long, value_name = "BYTE")]
    pub dup_at: Option<usize>,
}

/// How to use a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TapeModeArg {
    /// Answer from the tape; a request that is not on it is an error
    Replay,
    /// Ask the provider, and append the answers to the tape
    Record,
    /// Answer from the tape if the request is on it, else record; a failed turn is not recorded
    Auto,
}

fn api(name: &str) -> Result<Api, String> {
    Api::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Api::ALL.iter().map(|api| api.name()).collect();
        format!("unknown API, use one of {}", names.join(", "))
    })
}

fn speed(text: &str) -> Result<Speed, String> {
    match text {
        "max" => Ok(Speed::Max),
        "real" => Ok(Speed::Times(1.0)),
        n => match n.parse() {
            Ok(n) if (0.001..=1e9).contains(&n) => Ok(Speed::Times(n)),
            _ => Err("not real, max or a number of at least 0.001".to_owned()),
        },
    }
}

fn resplit(text: &str) -> Result<BodySplit, String> {
    match text.strip_prefix("random:") {
        Some(seed) => seed
            .parse()
            .map(BodySplit::Random)
            .map_err(|_| "the seed is not a whole number".to_owned()),
        None => match text.parse() {
            Ok(n) if n > 0 => Ok(BodySplit::Every(n)),
            _ => Err("not a number of bytes or random:SEED".to_owned()),
        },
    }
}

fn stall(text: &str) -> Result<Stall, String> {
    let stall = text.split_once(':').and_then(|(at, ms)| {
        Some(Stall {
            at: at.parse().ok()?,
            time: Duration::from_millis(ms.parse::<u32>().ok()?.into()),
        })
    });
    stall.ok_or_else(|| "not BYTE:MS, such as 500:2000".to_owned())
}

fn number(text: &str) -> Result<Number, String> {
    serde_json::from_str(text).map_err(|_| "not a number, such as 0.7".to_owned())
}

fn param(text: &str) -> Result<(String, Value), String> {
    let Some((key, json)) = text.split_once('=').filter(|(key, _)| !key.is_empty()) else {
        return Err("not KEY=JSON, such as temperature=0".to_owned());
    };
    let value = serde_json::from_str(json)
        .map_err(|_| format!("a text needs quotes, '{key}=\"…\"': the value is not JSON"))?;
    Ok((key.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_or_refused_with_a_remedy() {
        assert_eq!(speed("2.5"), Ok(Speed::Times(2.5)));
        assert!(speed("0").is_err() && speed("nan").is_err() && speed("inf").is_err());
        assert_eq!(resplit("random:7"), Ok(BodySplit::Random(7)));
        assert!(resplit("0").is_err());
        assert_eq!(
            stall("5:20"),
            Ok(Stall {
                at: 5,
                time: Duration::from_millis(20)
            })
        );
        assert!(stall("5").is_err() && stall("5:-1").is_err());
        assert_eq!(param("a=[1]").unwrap().1, serde_json::json!([1]));
        assert!(param("a=b").unwrap_err().contains("quotes") && param("=1").is_err());
    }
}
