//! `--dry-run`: what would be sent, and where to.

use super::opening::Opening;
use super::settings::AskSettings;
use crate::output::Out;
use crate::watch::{Watch, runtime};
use ::ask::TurnDraft;
use anyhow::Result;
use serde_json::Value;
use std::io::IsTerminal;
use stdio::Status;

/// Prints the request. Nothing is sent, and no key is needed.
///
/// # Errors
/// One line for a mistake in the arguments, the files that they name and the log; failures of
/// standard output.
pub fn dry_run(settings: &AskSettings) -> Result<Status> {
    let mut opening = Opening::new(settings, false)?;
    let shown = runtime()?.block_on(async {
        let watch = Watch::new()?;
        let mut out = opening.out();
        opening.converse(&watch, &mut out, false)?;
        if watch.signal().is_none() {
            opening.decide(None, &watch, &mut out).await?;
        }
        if let Some(signal) = watch.signal() {
            return Ok(Status::Signal(signal));
        }
        show(&opening.turn, &mut out)
    });
    shown.map_err(|e| opening.redacted(e))
}

/// Prints the body of the request on one line, or indented at a terminal; its address goes to
/// standard error.
fn show(turn: &TurnDraft, out: &mut Out) -> Result<Status> {
    let request = turn.request(turn.form)?;
    let mut body = request.body.clone();
    if std::io::stdout().is_terminal() {
        body = serde_json::to_string_pretty(&serde_json::from_str::<Value>(&body)?)?;
        body = event::safe_json(&body).into_owned();
    }
    out.text(&body)?;
    out.messages().always(out.messages().line(&request));
    Ok(Status::Done)
}
