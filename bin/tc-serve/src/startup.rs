//! What is printed at the start.

use crate::args::{Listen, Settings};
use crate::log::{Notice, Notices};
use anyhow::Result;
use std::fmt::Write as _;

/// Prints the address on standard output, and notes on standard error how clients are set up.
///
/// # Errors
/// Failures of standard output.
pub fn print(settings: &Settings, address: &str, notices: &Notices) -> Result<()> {
    let (key, text) = (settings.keys.made.as_deref(), text(settings, address));
    notices.write(Notice::Start {
        address,
        key,
        text: &text,
    });
    // Who reads the address finds the rest there.
    notices.flush();
    let mut out = stdio::Output::new();
    out.put(format!("{address}\n").as_bytes())?;
    out.flush()?;
    Ok(())
}

fn text(settings: &Settings, address: &str) -> String {
    let made = settings.keys.made.as_deref();
    let key = made.unwrap_or(if settings.keys.hashes.is_empty() {
        "none"
    } else {
        "YOUR-KEY"
    });
    let mut text = format!("tc-serve: listening on {address}\n");
    if let Some(made) = made {
        let _ = writeln!(text, "tc-serve: the key of this run is {made}");
    }
    if let Listen::Unix(path) = &settings.listen {
        let _ = writeln!(
            text,
            "  curl            curl --unix-socket {} http://localhost/v1/models",
            path.display()
        );
        return text;
    }
    let header = if settings.keys.hashes.is_empty() {
        String::new()
    } else {
        format!(" -H 'authorization: Bearer {key}'")
    };
    // In the environment, since all users of the machine can read the arguments of a process.
    let (variable, name) = if settings.keys.hashes.is_empty() {
        (String::new(), "")
    } else {
        (format!("TC_SERVE_KEY={key} "), ",env_key=\"TC_SERVE_KEY\"")
    };
    let _ = write!(
        text,
        "  curl            curl{header} {address}/v1/models
  OpenAI Python   OpenAI(base_url=\"{address}/v1\", api_key=\"{key}\")
  Claude Code     ANTHROPIC_BASE_URL={address} ANTHROPIC_AUTH_TOKEN={key} claude
  Codex           {variable}codex -c 'model_providers.tc={{name=\"tc\",base_url=\"{address}/v1\",wire_api=\"responses\"{name}}}' -c model_provider=tc
  Open WebUI      OPENAI_API_BASE_URL={address}/v1 OPENAI_API_KEY={key} open-webui serve
"
    );
    text
}
