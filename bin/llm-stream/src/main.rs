//! `llm-stream`: a model's stream as events.

mod args;
mod faults;
mod http;
mod interrupt;
mod key;
mod log;
mod out;
mod pour;
mod recorder;
mod replay;
mod retry;
mod session;
mod source;
mod turn;

use anyhow::{Result, bail};
use args::Args;
use event::payload::{Error, Message};
use http::Network;
use interrupt::{Watch, runtime};
use out::Out;
use recorder::Recorder;
use session::Session;
use std::process::ExitCode;
use stdio::Status;
use turn::Turn;

fn main() -> ExitCode {
    ::args::run(|args: Args| if args.replay.files.is_empty() { ask(&args) } else { replay::replay(&args) })
}

/// Asks the provider, or a tape, for the next turn of the conversation on standard input.
fn ask(args: &Args) -> Result<Status> {
    if args.replay.faults().any() {
        bail!("faults are put into recorded bodies only, name one with --replay");
    }
    let mut recorder = args.replay.tape()?.map(|(path, mode)| Recorder::open(path, mode)).transpose()?;
    let mut turn = Turn::new(args, recorder.as_ref().and_then(Recorder::first))?;
    let offline = args.request.dry_run || recorder.as_ref().is_some_and(Recorder::is_offline);
    if !offline {
        turn.take_key(args)?;
    }
    if let Some(recorder) = &mut recorder {
        recorder.hide(turn.secrets());
    }
    runtime()?.block_on(async {
        let watch = Watch::new()?;
        let mut out = Out::new(args.common.no_time);
        let talk = log::read(args, watch.signals(), &mut out)?;
        if let Some(signal) = watch.signal() {
            return Ok(Status::Signal(signal));
        }
        let question = turn.converse(talk, args.prompt.as_deref());
        if args.request.dry_run {
            return turn.show(args, &mut out);
        }
        turn.request(args, false)?; // so that a mistake is told before anything is written
        if let Some(question) = question {
            out.event(&Message { message: &question });
        }
        if args.request.max_steps.is_some_and(|most| turn.steps() >= most) {
            let message =
                format!("the model has answered {} times since the last user's message (--max-steps)", turn.steps());
            out.event(&Error {
                source: "llm-stream",
                code: "max_steps",
                message: &message,
                retryable: false,
                provider: None,
            });
            return out.flush().map(|()| Status::Error).map_err(Into::into);
        }
        let network = (!offline).then(|| Network::new(args.connection.connect_timeout, turn.url())).transpose()?;
        let mut session =
            Session { args, turn: &turn, network, recorder: recorder.as_mut(), watch: &watch, out: &mut out };
        let signal = session.run().await?;
        out.flush()?;
        if let Some(recorder) = &mut recorder {
            recorder.save(signal.is_none() && !out.has_error())?;
        }
        Ok(match signal {
            Some(signal) => Status::Signal(signal),
            None if out.has_error() => Status::Error,
            None => Status::Done,
        })
    })
}
