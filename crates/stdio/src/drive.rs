//! The driver: hands each line of the input to a handler, and decides when to flush and when to
//! end.

use crate::{Failure, Filter, Input, LineHandler, LineReader, Outcome, Output, Signals};

/// Reads all input into `handler`, until it ends, the handler knows its answer, or a signal comes.
/// Output is flushed when the next read would block.
///
/// # Errors
/// See [`Failure`].
pub fn drive(options: &Filter, handler: &mut impl LineHandler) -> Result<Outcome, Failure> {
    let mut input = Input::open(&options.files, options.max_line)?;
    let signals = if options.ignore_interrupts {
        Signals::without_interrupt()?
    } else {
        Signals::new()?
    };
    let mut stdout = Output::new();
    let mut reader = LineReader::new(options);
    let mut is_settled = false;
    // After a signal: whether the handler needs the rest. Another signal ends the process wherever
    // it is.
    let mut needs_rest = None;
    loop {
        while !is_settled {
            let file = input.now();
            let heeded = Some(&signals).filter(|_| needs_rest != Some(true));
            let block = input.block(heeded, &mut || stdout.flush())?;
            if needs_rest.is_none() && signals.seen().is_some() {
                needs_rest = Some(reader.between(&mut stdout, |out| handler.interrupt(out))?);
                if block.is_none() && needs_rest == Some(true) {
                    continue;
                }
            }
            if signals.interrupted() {
                reader.between(&mut stdout, |out| handler.interrupt(out))?;
            }
            let Some(block) = block else { break };
            is_settled = reader.block(block, &file, handler, &mut stdout)?;
        }
        if is_settled || signals.seen().is_some() || !input.advance() {
            break;
        }
        reader.next_input();
    }
    reader.between(&mut stdout, |out| handler.finish(out))?;
    stdout.flush()?;
    Ok(Outcome {
        error: reader.has_failed(),
        signal: signals.seen(),
    })
}
