//! `--probe`: how `--tools-mode auto` decides for a model. The model gets no request.

use super::opening::Opening;
use super::settings::AskSettings;
use crate::host::StdoutHost;
use crate::watch::{Watch, runtime};
use anyhow::Result;
use stdio::Status;

/// Prints the decision as JSON.
///
/// # Errors
/// One line for a mistake in the arguments or in a file that they name, or for a server that cannot
/// be reached; failures of standard output.
pub fn probe(settings: &AskSettings) -> Result<Status> {
    let mut opening = Opening::new(settings, true)?;
    opening.turn.check_model()?;
    // Without a key the server may answer nevertheless.
    let _ = opening.take_key();
    let found = runtime()?.block_on(async {
        let watch = Watch::new()?;
        let mut out = opening.out();
        let network = if opening.recorder.is_some() {
            None
        } else {
            Some(opening.network()?)
        };
        let auto = opening.auto();
        let decision = auto
            .find(
                network.as_ref(),
                &StdoutHost::new(&watch, &mut out, None),
                true,
            )
            .await?;
        if let Some(signal) = watch.signal() {
            return Ok(Status::Signal(signal));
        }
        out.text(&auto.show(&decision))?;
        Ok(Status::Done)
    });
    found.map_err(|e| opening.redacted(e))
}
