//! The drivers of a filter (one machine for each stream of the input) and of a view. They hand each
//! line of the input to a handler, and decide when to flush and when to stop.

use crate::{
    Emit, Failure, Filter, FilterEnd, Input, LineHandler, LineReader, LineWriter, Notices, Output,
    StopSignals,
};
use event::payload::{Message, Warning};
use event::{Demux, Event, Kind, Machine, Payload, Raw, Sink, View};
use std::cell::RefCell;
use std::rc::Rc;

/// Reads all input into `handler`, until the input ends, the handler has its answer, or a signal
/// arrives. Flushes the output when the next read would block.
///
/// # Errors
/// See [`Failure`].
pub fn drive(options: &Filter, handler: &mut impl LineHandler) -> Result<FilterEnd, Failure> {
    let input = Input::open(&options.files, options.max_line)?;
    drive_input(input, LineReader::new(options), handler)
}

/// Like [`drive`], but reads `input` with `reader` instead of the operands.
fn drive_input(
    mut input: Input,
    mut reader: LineReader<'_>,
    handler: &mut impl LineHandler,
) -> Result<FilterEnd, Failure> {
    let signals = StopSignals::of(reader.options())?;
    let mut stdout = Output::new();
    let mut is_settled = false;
    // Whether the handler needs the rest of the input after a signal; `None` before a signal. A
    // second signal ends the process at any point.
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
    Ok(FilterEnd {
        error: reader.has_failed(),
        signal: signals.seen(),
    })
}

/// Runs a machine for each stream of the input, until the input ends, the answer is known, or a
/// signal arrives.
///
/// # Errors
/// See [`Failure`]. After [`Failure::Gone`] the command exits silently with status 0.
pub fn filter<M: Machine>(options: &Filter, machines: &mut Demux<M>) -> Result<FilterEnd, Failure> {
    drive(options, machines)
}

impl<M: Machine> LineHandler for Demux<M> {
    // Called for each line, and in a second place for lost lines. Without the attribute the second
    // call would prevent inlining of the first.
    #[inline(always)]
    fn event(&mut self, event: &Event<'_>, at: (usize, usize), out: &mut LineWriter<'_>) -> bool {
        let mut sink = MachineSink {
            out,
            at,
            stream: event.stream().map(|s| s.text()),
            event: Some(event),
            lost: false,
        };
        self.push(event, &mut sink)
    }

    fn blank(&mut self, at: (usize, usize), out: &mut LineWriter<'_>) {
        out.pass(at.0, at.1);
    }

    fn bad_line(&mut self, warning: &Warning<'_>, out: &mut LineWriter<'_>) {
        out.write(*warning, None, 0, None);
    }

    fn finish(&mut self, out: &mut LineWriter<'_>) {
        for (stream, mut machine) in self.drain() {
            machine.finish(&mut MachineSink {
                out,
                at: (0, 0),
                stream: stream.as_deref(),
                event: None,
                lost: false,
            });
        }
    }
}

/// Lines that machines write in addition to events, for answers in another format.
#[derive(Clone, Debug, Default)]
pub struct RawLines(Rc<RefCell<Vec<String>>>);

impl RawLines {
    /// Adds a line. `line` has no line feed.
    pub fn push(&self, line: impl Into<String>) {
        self.0.borrow_mut().push(line.into());
    }

    fn write(&self, out: &mut LineWriter<'_>) {
        for line in self.0.take() {
            if out.options.emit != Emit::Nothing {
                out.line(&line);
            }
        }
    }
}

/// Like [`filter`], but after the output for each event, the lines that the machines pushed to
/// `lines` are written.
///
/// # Errors
/// See [`filter`].
pub fn filter_with_lines<M: Machine>(
    options: &Filter,
    machines: &mut Demux<M>,
    lines: &RawLines,
) -> Result<FilterEnd, Failure> {
    drive(options, &mut WithLines { machines, lines })
}

struct WithLines<'l, M> {
    machines: &'l mut Demux<M>,
    lines: &'l RawLines,
}

impl<M: Machine> LineHandler for WithLines<'_, M> {
    fn event(&mut self, event: &Event<'_>, at: (usize, usize), out: &mut LineWriter<'_>) -> bool {
        let is_settled = self.machines.event(event, at, out);
        self.lines.write(out);
        is_settled
    }

    fn blank(&mut self, at: (usize, usize), out: &mut LineWriter<'_>) {
        self.machines.blank(at, out);
    }

    fn bad_line(&mut self, warning: &Warning<'_>, out: &mut LineWriter<'_>) {
        self.machines.bad_line(warning, out);
    }

    fn finish(&mut self, out: &mut LineWriter<'_>) {
        LineHandler::finish(self.machines, out);
        self.lines.write(out);
    }
}

/// The sink of a machine: the current line, and the writer for the output.
struct MachineSink<'h, 'b> {
    out: &'h mut LineWriter<'b>,
    at: (usize, usize),
    stream: Option<&'h str>,
    /// The event of the current line; `None` at the end of the input.
    event: Option<&'h Event<'h>>,
    lost: bool,
}

impl<'h> MachineSink<'h, '_> {
    /// Returns the time of the current line. It is read only for new events.
    fn t(&self) -> Option<&'h str> {
        self.event?.t().map(Raw::text)
    }
}

impl Sink for MachineSink<'_, '_> {
    #[inline]
    fn pass(&mut self) {
        self.out.pass(self.at.0, self.at.1);
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        self.lost |= self.out.put_event(payload, self.stream, choice, self.t());
    }

    fn lost(&self) -> bool {
        self.lost
    }

    fn too_long(&mut self, kind: Kind, length: usize) {
        self.out
            .put_too_long(kind, length, self.stream, 0, self.t());
        self.lost = true;
    }
}

/// Hands the input to `view` until the input ends or a signal arrives, and writes the output of the
/// view. A line that is not an event becomes a `warning` event, as in a filter. A bare chat message
/// (`{"role":…}`), which logs may contain, is read as a `message` event. After a signal, the rest
/// of the input is read if the view needs it, until a second signal.
///
/// # Errors
/// See [`Failure`]. After [`Failure::Gone`] the command exits silently with status 0.
pub fn view(options: &Filter, view: &mut dyn View) -> Result<FilterEnd, Failure> {
    let input = Input::open(&options.files, options.max_line)?;
    view_input(options, input, view)
}

/// Like [`view()`], but reads `input` instead of the operands.
///
/// # Errors
/// See [`view()`].
pub fn view_input(
    options: &Filter,
    input: Input,
    view: &mut dyn View,
) -> Result<FilterEnd, Failure> {
    let (reader, notices) = match view.shows_notices() {
        true => (LineReader::new(options), None),
        false => (
            LineReader::reporting(options),
            Some(Notices::new(options.command)),
        ),
    };
    drive_input(input, reader, &mut ViewHandler { view, notices })
}

struct ViewHandler<'v> {
    view: &'v mut dyn View,
    /// The reports of what the view does not show; `None` if it shows everything.
    notices: Option<Notices>,
}

impl ViewHandler<'_> {
    /// Hands the view an event that replaces a line.
    fn show(&mut self, payload: &Payload<'_>, out: &mut LineWriter<'_>) {
        out.text(|out| self.view.push(&Event::of(payload, None, 0, None), out));
    }
}

impl LineHandler for ViewHandler<'_> {
    fn event(&mut self, event: &Event<'_>, _: (usize, usize), out: &mut LineWriter<'_>) -> bool {
        out.text(|out| self.view.push(event, out));
        if let Some(notices) = &mut self.notices {
            notices.report(event);
        }
        false
    }

    fn blank(&mut self, _: (usize, usize), _: &mut LineWriter<'_>) {}

    fn other_line(&mut self, line: &str, out: &mut LineWriter<'_>) -> bool {
        let Ok(message) = Raw::parse(line) else {
            return false;
        };
        if !message.is_object()
            || message.get("type").is_some()
            || !message.get("role").is_some_and(Raw::is_str)
        {
            return false;
        }
        self.show(
            &Message {
                message: message.into(),
                ..Message::default()
            }
            .into(),
            out,
        );
        true
    }

    fn bad_line(&mut self, warning: &Warning<'_>, out: &mut LineWriter<'_>) {
        self.show(&(*warning).into(), out);
    }

    fn interrupt(&mut self, out: &mut LineWriter<'_>) -> bool {
        let mut runs = false;
        out.text(|out| runs = self.view.interrupt(out));
        runs
    }

    fn finish(&mut self, out: &mut LineWriter<'_>) {
        out.text(|out| self.view.finish(out));
    }
}
