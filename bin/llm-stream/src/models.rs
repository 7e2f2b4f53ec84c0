//! `--models`: the names that `--model` takes, those of the configuration file and of the server.

use crate::args::Args;
use crate::ask::Opening;
use crate::host::runtime;
use ::ask::sentence;
use anyhow::{Result, anyhow, bail};
use api::{error_message, host_of, listed_models, models_request};
use client::{PieceContent, Response, TimeLimits};
use config::Configured;
use std::fmt::Write;
use stdio::Status;
use tokio::time::Instant;

/// The most bytes in a server's list of models.
const LIST: usize = 16 << 20;

/// Prints a line for each name, first those of the file. The server is the one that would be asked.
///
/// # Errors
/// Fails with one line if the options are invalid, the server gives no list or standard output
/// fails.
pub(crate) fn list(args: Args, configured: &Configured) -> Result<Status> {
    let mut opening = Opening::new(args, configured)?;
    let out = opening.out();
    let mut rows = vec![];
    for model in configured.models() {
        let what = format!("{} in the configuration file", model.asked());
        rows.push((model.name.clone(), what));
        let alias = |alias: &String| (alias.clone(), format!("another name of {}", model.name));
        rows.extend(model.aliases.iter().map(alias));
    }
    let listed = if opening.is_offline() {
        Ok(())
    } else {
        let server = opening.take_key().and_then(|()| of_server(&opening));
        server.map(|server| rows.extend(server))
    };
    // The names of the file are of use without the server.
    if !rows.is_empty() {
        out.text(&table(&rows))?;
    }
    match listed {
        Ok(()) => Ok(Status::Done),
        Err(e) => Err(opening.redacted(e)),
    }
}

/// The names that the server lists, each with the server.
fn of_server(opening: &Opening) -> Result<Vec<(String, String)>> {
    let provider = &opening.models.turn.provider;
    let request = models_request(provider.api, &provider.options);
    provider.check(&request)?;
    let connection = &opening.args.connection;
    let limits = TimeLimits {
        idle: Some(connection.idle_timeout),
        deadline: connection.timeout.map(|time| Instant::now() + time),
    };
    let server = host_of(&provider.route.url);
    let body = runtime()?.block_on(async {
        let lost = |error: &client::Error| anyhow!("--models: {}", sentence(error, None));
        let sent = opening.network()?.send(request, limits, None).await;
        let Response { head, mut body } = sent.map_err(|(error, _)| lost(&error))?;
        let mut bytes = vec![];
        loop {
            match body.next().await.what {
                PieceContent::Bytes(more) if bytes.len() + more.len() <= LIST => {
                    bytes.extend_from_slice(more);
                }
                PieceContent::Bytes(_) => bail!("--models: {server}: the list is too long"),
                PieceContent::End => break,
                PieceContent::Lost(error) => return Err(lost(&error)),
            }
        }
        if !(200..300).contains(&head.status) {
            let what = error_message(head.status, &bytes);
            bail!("--models: {server} gives no list: {what}");
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    })?;
    let models = listed_models(&body);
    if models.is_empty() {
        bail!("--models: {server}: the answer lists no model");
    }
    let row = |name: String| (name, format!("on {server}"));
    Ok(models.into_iter().map(|model| row(model.name)).collect())
}

/// The rows with their columns below each other. The names are those that a server sent.
fn table(rows: &[(String, String)]) -> String {
    let escape = |c: char, out: &mut String| write!(out, "{}", c.escape_unicode());
    let visible = |text: &str| event::escaped(text, escape).replace(['\n', '\t'], " ");
    let rows: Vec<_> = rows
        .iter()
        .map(|(name, what)| (visible(name), visible(what)))
        .collect();
    let width = rows.iter().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or(0).min(40);
    let lines: Vec<_> = rows
        .iter()
        .map(|(name, what)| format!("{name:width$}  {what}"))
        .collect();
    lines.join("\n")
}
