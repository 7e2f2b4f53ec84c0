//! The next turn of the conversation on standard input, from a provider or a tape.

use crate::args::{Args, ToolsMode};
use crate::http::Network;
use crate::interrupt::{Watch, runtime};
use crate::log;
use crate::mode::Auto;
use crate::out::Out;
use crate::recorder::Recorder;
use crate::session::Session;
use crate::turn::Turn;
use anyhow::{Result, bail};
use event::payload::{Error, Message};
use stdio::Status;

/// Asks, and writes what comes: 2 when any `error` event was written, else 0.
///
/// # Errors
/// One line for each mistake in the arguments, the files they name and the log; failures of standard output.
pub fn ask(args: &Args) -> Result<Status> {
    if args.replay.faults().any() {
        bail!("faults are put into recorded bodies only, name one with --replay");
    }
    let mut recorder = args.replay.tape()?.map(|(path, mode)| Recorder::open(path, mode)).transpose()?;
    let mut turn = Turn::new(args, recorder.as_ref().and_then(Recorder::first))?;
    let offline = args.request.dry_run || recorder.as_ref().is_some_and(Recorder::is_offline);
    let mut key = if offline { Ok(()) } else { turn.take_key(args) };
    if recorder.is_none() && !args.auto.probe {
        // Before standard input is read, which may take long. A tape may make the key unnecessary.
        std::mem::replace(&mut key, Ok(()))?;
    }
    if let Some(recorder) = &mut recorder {
        recorder.hide(turn.redactor());
    }
    runtime()?.block_on(async {
        let watch = Watch::new()?;
        let mut out = Out::new(args);
        let network = || Network::new(args.connection.connect_timeout, turn.url(), &turn.route);
        if args.auto.probe {
            let network = if recorder.is_some() { None } else { Some(network()?) };
            let auto = Auto::new(args, &turn);
            let verdict = auto.find(network.as_ref(), &watch).await?;
            return match watch.signal() {
                Some(signal) => Ok(Status::Signal(signal)),
                None => out.text(&auto.show(&verdict)).map(|()| Status::Done).map_err(Into::into),
            };
        }
        let network = if offline { None } else { Some(network()?) };
        let given = log::read(args, watch.signals(), &mut out)?;
        if let Some(signal) = watch.signal() {
            return Ok(Status::Signal(signal));
        }
        given.report(out.verbose());
        let question = turn.converse(given.talk, log::question(args.prompt.as_deref(), given.text).as_deref());
        let enough = args.request.max_steps.is_some_and(|most| turn.steps() >= most);
        let mut auto = args.request.tools_mode == ToolsMode::Auto && turn.has_tools() && !enough;
        if auto {
            let verdict = Auto::new(args, &turn).decide(recorder.as_ref(), network.as_ref(), &watch).await?;
            if let Some(signal) = watch.signal() {
                return Ok(Status::Signal(signal));
            }
            out.verbose().say(format_args!("tools mode auto: {}", Auto::new(args, &turn).show(&verdict)));
            auto = !verdict.is_firm();
            turn.way.told = verdict.told;
        }
        if args.request.dry_run {
            return turn.show(args, &mut out);
        }
        let request = turn.request(args, turn.way)?;
        if !recorder.as_ref().is_some_and(|r| r.knows(turn.model(), &request)) {
            key?;
        }
        if let Some(question) = question {
            out.event(&Message { message: &question });
        }
        if enough {
            too_many(turn.steps(), &mut out);
            return out.flush().map(|()| Status::Error).map_err(Into::into);
        }
        let auto = auto.then(|| Auto::new(args, &turn));
        let recorder_too = recorder.as_mut();
        let session =
            Session { args, turn: &turn, auto, network, recorder: recorder_too, watch: &watch, out: &mut out };
        let signal = session.run().await?;
        out.flush()?;
        if let Some(recorder) = recorder.as_mut().filter(|_| signal.is_none()) {
            recorder.save(!out.has_error())?;
        }
        Ok(match signal {
            Some(signal) => Status::Signal(signal),
            None if out.has_error() => Status::Error,
            None => Status::Done,
        })
    })
}

fn too_many(steps: usize, out: &mut Out) {
    let message = format!("the model has answered {steps} times since the last user's message (--max-steps)");
    out.event(&Error { source: "llm-stream", code: "max_steps", message: &message, ..Error::default() });
}
