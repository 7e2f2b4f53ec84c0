//! The next turn of the conversation on standard input.

use super::opening::Opening;
use super::settings::AskSettings;
use crate::host::StdoutHost;
use crate::watch::{Watch, runtime};
use ::ask::Session;
use anyhow::Result;
use event::Json;
use event::payload::{Error, Message};
use stdio::Status;

/// Asks, and writes the events: 2 when any `error` event was written, else 0.
///
/// # Errors
/// One line for a mistake in the arguments, the files that they name and the log; failures of
/// standard output.
pub fn turn(settings: &AskSettings) -> Result<Status> {
    let mut opening = Opening::new(settings, false)?;
    let is_offline = opening.is_offline();
    let key = if is_offline {
        Ok(())
    } else {
        opening.take_key()
    };
    // Reported before standard input is read, which may take long, unless the tape may make the key
    // unnecessary. A model that is named nowhere yet may be named there; if it is not, that is
    // reported first.
    let may_wait = opening.recorder.is_some() || opening.turn.check_model().is_err();
    let key = if may_wait { key } else { Ok(key?) };
    let asked = runtime()?.block_on(async {
        let watch = Watch::new()?;
        let mut out = opening.out();
        let network = if is_offline {
            None
        } else {
            Some(opening.network()?)
        };
        let question = opening.converse(&watch, &mut out, true)?;
        let mut may_tag = false;
        if watch.signal().is_none() {
            may_tag = opening.decide(network.as_ref(), &watch, &mut out).await?;
        }
        if let Some(signal) = watch.signal() {
            return Ok(Status::Signal(signal));
        }
        let request = opening.turn.request(opening.turn.form)?;
        if !opening
            .recorder
            .as_ref()
            .is_some_and(|r| r.borrow().has_answer(opening.turn.model(), &request))
        {
            key?;
        }
        if let Some(question) = question {
            out.event(Message {
                message: Json::of(&question),
            });
        }
        if opening.is_enough() {
            let steps = opening.turn.steps();
            let message = format!(
                "the model has answered {steps} times since the last user's message (--max-steps)"
            );
            out.event(Error::new("llm-stream", "max_steps", &message));
            out.flush()?;
            return Ok(Status::Error);
        }
        let session = Session {
            turn: &opening.turn,
            host: &mut StdoutHost::new(&watch, &mut out, None),
            connection: &settings.connection,
            network: network.as_ref(),
            recorder: opening.recorder.as_ref(),
            playlist: None,
            speed: settings.speed,
            auto: &settings.auto,
            may_tag,
            recorded: vec![],
        };
        let end = session.run().await?;
        out.flush()?;
        if let Some(signal) = end.stop {
            return Ok(Status::Signal(signal));
        }
        if let Some(recorder) = &opening.recorder {
            recorder.borrow_mut().save(end.recorded, !out.has_error())?;
        }
        Ok(if out.has_error() {
            Status::Error
        } else {
            Status::Done
        })
    });
    asked.map_err(|e| opening.redacted(e))
}
