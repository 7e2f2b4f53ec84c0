//! One response of a provider, from bytes to events.

use crate::Api;
use crate::failure::StreamFailure;
use crate::framing::{Frame, Framing};
use crate::no_data::is_no_data;
use crate::recognise::{answer_id, begins, mismatch, unread};
use crate::tape::LogDecoder;
use crate::template::{FrameEffect, FrameTemplate};
use crate::turn::{Decoder, EventWriter, TurnState};
use event::payload::{FinishReason, SessionStats};
use event::{Index, Raw, Sink};
use std::time::Duration;

pub use crate::turn::{End, StreamOptions};

/// The default of [`StreamOptions::max_frame`].
const MAX_FRAME: usize = 64 << 20;

/// A response on its way from bytes to events: `stream_start`, events, `session_stats` if anything
/// is known, `stream_end`.
///
/// Feed it with [`Stream::push`] in any pieces, then call [`Stream::finish`] once; or use
/// [`Stream::error_body`] alone.
pub struct Stream {
    framing: Framing,
    reader: Reader,
    turn: TurnState,
}

struct Reader {
    api: Api,
    /// Name and text of the first frame, until the first event is written: the error of a body
    /// without events is judged from it.
    first: Option<(Option<String>, String)>,
    /// The body ended inside a frame.
    is_cut: bool,
    /// A response of the endpoint without streaming came.
    is_whole: bool,
    /// The settings of each answer, where the body may hold several.
    several: Option<StreamOptions>,
    max_frame: usize,
    decoder: Box<dyn Decoder>,
    index: Index,
    template: FrameTemplate,
}

impl Stream {
    /// A stream of `api` that has not begun.
    pub fn new(api: Api, options: StreamOptions) -> Self {
        let max_frame = options.max_frame.unwrap_or(MAX_FRAME);
        Stream {
            framing: Framing::new(max_frame),
            reader: Reader {
                api,
                first: None,
                is_cut: false,
                is_whole: false,
                several: None,
                max_frame,
                decoder: (api.provider().decoder)(),
                index: Index::default(),
                template: FrameTemplate::default(),
            },
            turn: TurnState::new(api.name(), options),
        }
    }

    /// Reads the lines of a stream of a log in place of a provider's body; see
    /// [`crate::tape::Tape::is_log`].
    pub fn read_log(&mut self) {
        self.reader.decoder = Box::new(LogDecoder::default());
    }

    /// Reads each answer of the body as a stream of its own: a recording may hold several, one behind
    /// the other. The stream is done with the body's end then.
    pub fn read_several(&mut self) {
        self.reader.several = Some(self.turn.options.clone());
    }

    /// Takes the next bytes of the body. Its form (server-sent events, JSON lines, a JSON array,
    /// one JSON value) follows from the first of them. After [`Stream::is_done`] it reads nothing.
    pub fn push(&mut self, bytes: &[u8], out: &mut dyn Sink) {
        let Stream {
            framing,
            reader,
            turn,
        } = self;
        if !turn.ended || reader.several.is_some() {
            let turn = &mut EventWriter { state: turn, out };
            framing.push(bytes, &mut |frame| reader.frame(frame, turn));
        }
    }

    /// Takes a whole response of the endpoint without streaming, and ends.
    pub fn whole(&mut self, body: &[u8], out: &mut dyn Sink) {
        self.push(body, out);
        self.finish(End::Eof, out);
    }

    /// Sets how long the provider asks to wait, as in the headers of a response whose HTTP status
    /// is an error.
    pub fn retry_after(&mut self, time: Option<Duration>) {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.turn.retry_after_ms = time.map(millis);
    }

    /// Takes the body of a response whose HTTP status is an error, and ends with an `error` event.
    /// `advice` goes behind what the provider says.
    pub fn error_body(
        &mut self,
        status: u16,
        body: &[u8],
        advice: Option<&str>,
        out: &mut dyn Sink,
    ) {
        let body = String::from_utf8_lossy(body);
        let mut failure = StreamFailure::of_body(status, &self.turn.redacted(&body));
        if let Some(server) = self.server() {
            failure.for_client(server);
        } else if let Some(advice) = advice {
            failure.message = format!("{}; {advice}", failure.message);
        }
        self.fail(&failure, out);
    }

    /// The bytes ended. Writes what is open, and `stream_end` unless it is written already.
    pub fn finish(&mut self, end: End, out: &mut dyn Sink) {
        let Stream {
            framing,
            reader,
            turn,
        } = self;
        if turn.ended && reader.several.is_none() {
            return;
        }
        let turn = &mut EventWriter { state: turn, out };
        framing.finish(&mut |frame| reader.last_frame(frame, &end, turn));
        reader.several = None;
        if !turn.ended {
            reader.end(&end, turn);
        }
    }

    /// Whether `stream_end` is written: the provider's end mark came, and nothing that follows
    /// matters.
    pub fn is_done(&self) -> bool {
        self.turn.ended && self.reader.several.is_none()
    }

    /// Whether the first event is written, so that the request must not be tried again.
    pub fn has_started(&self) -> bool {
        self.turn.started
    }

    /// How many bytes of the body it keeps: those of a frame that is not complete, and what an
    /// event that is still to come is made of.
    pub fn kept(&self) -> usize {
        self.framing.kept() + self.turn.kept()
    }

    /// Whether an `error` event was written.
    pub fn failed(&self) -> bool {
        self.turn.error.is_some()
    }

    /// The name of the API, and the id of the response, which the provider may have sent long
    /// before the first event.
    pub fn id(&self) -> Option<(&'static str, &str)> {
        Some((self.reader.api.name(), self.turn.id.as_deref()?))
    }

    /// The name of the server, where errors are for a client of a service.
    pub fn server(&self) -> Option<&str> {
        self.turn.options.server.as_deref()
    }

    /// The fields of `session_stats`. Tokens come from the provider; the caller may set the rest
    /// (times, retries, fallbacks) before each push, since any push may be the one that writes it.
    pub fn stats(&mut self) -> &mut SessionStats {
        &mut self.turn.stats
    }

    /// Sets the time of `stream_start`, in milliseconds since 1970. Has no effect after that event.
    pub fn set_timestamp(&mut self, ms: u64) {
        self.turn.options.timestamp = Some(ms);
    }

    /// Ends the stream with an error of the caller's, such as a refused connection.
    pub fn error(&mut self, code: &str, message: &str, retryable: bool, out: &mut dyn Sink) {
        self.fail(&StreamFailure::new(code, message, retryable), out);
    }

    fn fail(&mut self, failure: &StreamFailure, out: &mut dyn Sink) {
        if !self.turn.ended {
            let turn = &mut EventWriter {
                state: &mut self.turn,
                out,
            };
            self.reader.decoder.finish(turn);
            turn.flush();
            turn.error(failure);
            turn.end(Some(FinishReason::Error));
        }
    }
}

/// The mark behind the last frame.
const DONE: &str = "[DONE]";

/// Whether this is [`DONE`]. Asked of every frame, and nearly all of them are objects.
fn is_done(data: &str) -> bool {
    !data.starts_with('{') && data.trim() == DONE
}

impl Reader {
    fn frame(&mut self, frame: Frame<'_>, turn: &mut EventWriter<'_>) {
        if self.is_another(frame, turn) {
            self.next(turn);
        }
        if turn.ended {
            return;
        }
        let (name, text) = match frame {
            Frame::Event { data, .. } if is_done(data) => return self.done(turn),
            Frame::Event { name, data } => (name, data),
            Frame::Value(text) => (None, text),
            Frame::Broken(text) => return self.unreadable(None, text, "is no JSON value", turn),
            Frame::Foreign { text, html } => return self.foreign(text, html, turn),
            Frame::Damaged(why) => return self.damaged(why, turn),
            Frame::TooLong => return self.too_long(turn),
        };
        if let Some((delta, piece)) = self.template.delta(name, text) {
            return self.decoder.delta(delta, piece, turn);
        }
        self.template.clear();
        let data = match Raw::indexed(text, &mut self.index) {
            Ok(data) if data.has_members() => data,
            Ok(_) => return self.unreadable(name, text, "is not a JSON object with members", turn),
            Err(why) => {
                return self.unreadable(name, text, &format!("is no JSON ({why})"), turn);
            }
        };
        if self.first.is_none() {
            self.first = Some((name.map(str::to_owned), text.to_owned()));
        }
        turn.with_call = false;
        let error = match self.decoder.takes_errors() {
            true => None,
            false => StreamFailure::in_frame(data, name),
        };
        if let Some(error) = error {
            turn.error(&StreamFailure::of(error, None));
        } else if matches!(frame, Frame::Value(_)) && self.decoder.is_whole(data) {
            self.is_whole = true;
            self.decoder.whole(data, turn);
        } else {
            turn.effect = FrameEffect::default();
            self.decoder.frame(name, data, turn);
            if self.decoder.repeats() {
                self.template.keep(name, text, &turn.effect);
            }
        }
        if turn.marked {
            self.end(&End::Eof, turn);
        }
    }

    /// Whether another answer begins with a frame: behind the end of one, behind a whole response, or
    /// behind all finish reasons with a frame that is a beginning or has another id. What follows an
    /// error may be the rest of the same answer.
    fn is_another(&self, frame: Frame<'_>, turn: &TurnState) -> bool {
        let may_be = turn.ended || self.is_whole || turn.is_whole();
        if self.several.is_none() || !may_be || turn.error.is_some() {
            return false;
        }
        let (name, text) = match frame {
            Frame::Event { name, data } => (name, data),
            Frame::Value(text) => (None, text),
            _ => return false,
        };
        let Ok(data) = Raw::parse(text) else {
            return false;
        };
        let is_other = || {
            let id = answer_id(data);
            id.is_some() && turn.id.is_some() && id.as_deref() != turn.id.as_deref()
        };
        begins(name, data, turn.ended)
            .is_some_and(|only_here| only_here || turn.ended || self.is_whole || is_other())
    }

    /// Begins the stream of the next answer of the body.
    fn next(&mut self, turn: &mut EventWriter<'_>) {
        if !turn.ended {
            self.end(&End::Eof, turn);
        }
        let options = self.several.clone().unwrap_or_default();
        *turn.state = TurnState::new(self.api.name(), options);
        self.decoder = (self.api.provider().decoder)();
        (self.first, self.is_whole) = (None, false);
        self.template.clear();
    }

    /// The frame that the end of the body leaves.
    fn last_frame(&mut self, frame: Frame<'_>, end: &End, turn: &mut EventWriter<'_>) {
        let (name, text) = match frame {
            _ if frame.is_whole() => return self.frame(frame, turn),
            // What a lost connection cut is not an error of the provider's text.
            _ if *end != End::Eof => return,
            Frame::Event { name, data } => (name, data),
            Frame::Value(text) | Frame::Broken(text) => (None, text),
            _ => return self.frame(frame, turn),
        };
        // Of the end mark nothing is missing that matters.
        self.is_cut |= !is_no_data(name, text) && !DONE.starts_with(text.trim());
    }

    /// A frame that cannot be read. What it held is lost, and nobody knows what that was: a piece of
    /// a call's arguments, a call, the answer's end. So the answer ends here, with all that is open.
    fn unreadable(
        &mut self,
        name: Option<&str>,
        text: &str,
        what: &str,
        turn: &mut EventWriter<'_>,
    ) {
        if is_no_data(name, text) {
            return;
        }
        let said = crate::failure::sentence(&turn.redacted(text));
        // An event of this name is an error whatever its text is.
        let failure = if name == Some("error") {
            StreamFailure::new("provider_error", said, false)
        } else {
            let message = format!(
                "the provider sent a frame that {what}, so a part of the answer is lost: {said}"
            );
            StreamFailure::new("bad_json", message, true)
        };
        turn.error(&failure);
        self.end(&End::Eof, turn);
    }

    /// `data: [DONE]`, which every API that speaks in server-sent events may end with.
    fn done(&mut self, turn: &mut EventWriter<'_>) {
        if turn.has_choice() {
            turn.marked = true;
        }
        self.end(&End::Eof, turn);
    }

    fn foreign(&mut self, text: &str, html: bool, turn: &mut EventWriter<'_>) {
        let what = if html {
            "an HTML page"
        } else {
            unread(text.as_bytes()).unwrap_or("something other than an event stream or JSON")
        };
        let said = crate::failure::sentence(&turn.redacted(text));
        let message = format!("the provider answered with {what}: {said}");
        turn.error(&StreamFailure::new("not_a_stream", message, false));
        self.end(&End::Eof, turn);
    }

    fn damaged(&mut self, why: &str, turn: &mut EventWriter<'_>) {
        let message = format!("the body is compressed with gzip, and is damaged or was cut: {why}");
        turn.error(&StreamFailure::new("bad_gzip", message, false));
        self.end(&End::Eof, turn);
    }

    fn too_long(&mut self, turn: &mut EventWriter<'_>) {
        let option = turn.options.words.max_frame;
        let message = format!(
            "the provider sent more than {} bytes without the end of an event or of a JSON \
             value; raise {option} if that is right",
            self.max_frame
        );
        turn.error(&StreamFailure::new("frame_too_long", message, false));
        self.end(&End::Eof, turn);
    }

    fn end(&mut self, end: &End, turn: &mut EventWriter<'_>) {
        self.decoder.finish(turn);
        turn.flush();
        let whole = turn.marked || turn.is_whole();
        let how = match end {
            _ if turn.error.is_some() => Some(FinishReason::Error),
            End::Eof if whole && !self.is_cut => None,
            End::Eof => match self.nothing(turn) {
                Some(failure) => {
                    turn.error(&failure);
                    Some(FinishReason::Error)
                }
                None => {
                    let what = match self.first {
                        _ if self.is_cut => "the stream ended inside a frame",
                        Some(_) => "the stream ended before the provider's end mark",
                        None => "the response was empty",
                    };
                    let what = match turn.options.server.as_deref() {
                        Some(server) => format!("{server}: {what}"),
                        None => what.to_owned(),
                    };
                    turn.error(&StreamFailure::new("disconnected", what, true));
                    Some(FinishReason::Cut)
                }
            },
            End::Reset(why) => {
                turn.error(&StreamFailure::new("disconnected", why, true));
                Some(FinishReason::Cut)
            }
            End::Timeout(why) => {
                turn.error(&StreamFailure::new("timeout", why, true));
                Some(FinishReason::Cut)
            }
            End::Cancelled => Some(FinishReason::Cancelled),
        };
        turn.end(how);
    }

    /// Why a body that ended gave no event at all, if it was not cut.
    fn nothing(&self, turn: &TurnState) -> Option<StreamFailure> {
        let (name, text) = self.first.as_ref().filter(|_| !turn.started)?;
        mismatch(
            self.api,
            name.as_deref(),
            &turn.redacted(text),
            &turn.options.words,
        )
    }
}

#[cfg(test)]
impl Stream {
    /// Makes the next frame one that is read in full.
    pub(crate) fn forget_template(&mut self) {
        self.reader.template.clear();
    }

    /// Whether a frame without a name would be read by the template.
    pub(crate) fn has_template_for(&self, frame: &str) -> bool {
        self.reader.template.delta(None, frame).is_some()
    }
}
