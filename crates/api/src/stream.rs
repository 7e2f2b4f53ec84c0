//! Converts one provider response from bytes into events.

use crate::Api;
use crate::failure::StreamFailure;
use crate::framing::{Frame, Framing};
use crate::no_data::is_no_data;
use crate::recognise::{answer_id, begins, mismatch, unread};
use crate::tape::LogDecoder;
use crate::template::{FrameEffect, FrameTemplate, RepeatedFrame};
use crate::turn::{Decoder, EventWriter, TurnState};
use event::payload::{FinishReason, SessionStats};
use event::{Index, Raw, Sink};
use std::time::Duration;

pub use crate::turn::{End, StreamOptions};

/// The default of [`StreamOptions::max_frame`].
const MAX_FRAME: usize = 64 << 20;

/// Converts a response into events: `stream_start`, the content events, `session_stats` if any
/// statistics are known, then `stream_end`.
///
/// Pass the body to [`Stream::push`] in chunks of any size, then call [`Stream::finish`] once. For
/// an HTTP error response, call only [`Stream::error_body`].
pub struct Stream {
    framing: Framing,
    reader: Reader,
    turn: TurnState,
}

struct Reader {
    api: Api,
    /// The name and data of the first frame, kept to explain a body that produced no events.
    first: Option<(Option<String>, String)>,
    /// Whether the body ended in the middle of a frame.
    is_cut: bool,
    /// Whether the body was a complete non-streaming response.
    is_whole: bool,
    /// The options for each answer if the body may contain several, else `None`.
    several: Option<StreamOptions>,
    max_frame: usize,
    decoder: Box<dyn Decoder>,
    index: Index,
    template: FrameTemplate,
}

impl Stream {
    /// Creates a stream for a response of `api`.
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

    /// Switches from decoding a provider's body to decoding the lines of a log; see
    /// [`crate::tape::Tape::is_log`].
    pub fn read_log(&mut self) {
        self.reader.decoder = Box::new(LogDecoder::default());
    }

    /// Decodes each answer in the body as a separate stream, because a recording may contain
    /// several in a row. [`Stream::is_done`] is then false until the body ends.
    pub fn read_several(&mut self) {
        self.reader.several = Some(self.turn.options.clone());
    }

    /// Decodes the next bytes of the body. The first bytes determine its format: server-sent
    /// events, JSON lines, a JSON array, or a single JSON value. Ignores all bytes once
    /// [`Stream::is_done`] returns true.
    pub fn push(&mut self, bytes: &[u8], out: &mut dyn Sink) {
        let Stream {
            framing,
            reader,
            turn,
        } = self;
        if !turn.ended || reader.several.is_some() {
            let turn = &mut EventWriter { state: turn, out };
            let mut rest = bytes;
            while !rest.is_empty() {
                let room = framing.room_between();
                let mut length = room.map_or(0, |room| reader.repeated(rest, room, turn));
                if length > 0 {
                    framing.skip_frame();
                } else {
                    let mut frames = 0;
                    length = framing.push_frame(rest, &mut |frame| {
                        frames += 1;
                        reader.frame(frame, turn);
                    });
                    if room.is_some() && frames == 1 && framing.room_between().is_some() {
                        reader.template.keep_block(&rest[..length]);
                    }
                }
                rest = &rest[length..];
            }
        }
    }

    /// Decodes a complete non-streaming response and ends the stream.
    pub fn whole(&mut self, body: &[u8], out: &mut dyn Sink) {
        self.push(body, out);
        self.finish(End::Eof, out);
    }

    /// Sets how long the provider asked the client to wait, from the headers of an HTTP error
    /// response.
    pub fn retry_after(&mut self, time: Option<Duration>) {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.turn.retry_after_ms = time.map(millis);
    }

    /// Decodes the body of an HTTP error response and ends the stream with an `error` event.
    /// `advice` is appended to the provider's message, unless the stream's errors are for a client
    /// of a service.
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

    /// Ends the stream after the last byte. Flushes open content, and writes `stream_end` unless it
    /// has already been written.
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

    /// Whether `stream_end` has been written. The rest of the body can then be ignored.
    pub fn is_done(&self) -> bool {
        self.turn.ended && self.reader.several.is_none()
    }

    /// Whether an event has been written. After that the request must not be retried.
    pub fn has_started(&self) -> bool {
        self.turn.started
    }

    /// Returns the number of buffered bytes of the body: those of an incomplete frame, plus those
    /// that the decoder keeps for later events.
    pub fn kept(&self) -> usize {
        self.framing.kept() + self.turn.kept()
    }

    /// Whether an `error` event has been written.
    pub fn failed(&self) -> bool {
        self.turn.error.is_some()
    }

    /// Returns the API's name and the response's id, or `None` if no id has arrived. Providers may
    /// send the id long before any content.
    pub fn id(&self) -> Option<(&'static str, &str)> {
        Some((self.reader.api.name(), self.turn.id.as_deref()?))
    }

    /// Returns the server name to use in errors; `None` unless errors are reported to a client of a
    /// service.
    pub fn server(&self) -> Option<&str> {
        self.turn.options.server.as_deref()
    }

    /// Returns the fields of `session_stats`. The provider supplies the token counts. The caller
    /// may set the other fields (times, retries, fallbacks) before each push, because any push may
    /// write the event.
    pub fn stats(&mut self) -> &mut SessionStats {
        &mut self.turn.stats
    }

    /// Sets the timestamp of `stream_start`, in milliseconds since 1970. Has no effect once that
    /// event has been written.
    pub fn set_timestamp(&mut self, ms: u64) {
        self.turn.options.timestamp = Some(ms);
    }

    /// Ends the stream with an error that the caller detected, such as a refused connection.
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

/// The data of the end marker, after the last frame.
const DONE: &str = "[DONE]";

/// Whether `data` is [`DONE`]. Checks the first byte first, because this runs for every frame and
/// nearly every frame is an object.
fn is_done(data: &str) -> bool {
    !data.starts_with('{') && data.trim() == DONE
}

impl Reader {
    /// Reads the frame at the start of `bytes` if it repeats the last one and has at most `room`
    /// bytes. Returns the number of bytes read.
    #[inline]
    fn repeated(&mut self, bytes: &[u8], room: usize, turn: &mut EventWriter<'_>) -> usize {
        if turn.ended || self.may_be_another(turn) {
            return 0;
        }
        match self.template.block(bytes) {
            Some((frame, length)) if length <= room => {
                self.repeat(frame, turn);
                length
            }
            _ => 0,
        }
    }

    /// Decodes a frame that repeats the last one.
    #[inline]
    fn repeat(&mut self, frame: RepeatedFrame<'_>, turn: &mut EventWriter<'_>) {
        self.decoder.delta(frame.delta, frame.piece, turn);
        if let Some(counts) = frame.counts {
            self.decoder.counts(counts, turn);
        }
    }

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
        if let Some(frame) = self.template.frame(name, text) {
            return self.repeat(frame, turn);
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
                let varying = self.decoder.varying();
                self.template
                    .keep(name, (text, data), &turn.effect, varying);
            }
        }
        if turn.marked {
            self.end(&End::Eof, turn);
        }
    }

    /// Whether `frame` starts another answer. An answer can start after the end of the previous
    /// one, after a complete non-streaming response, or, once every choice has a finish reason,
    /// with a frame that only occurs at the start or has a different id. Frames after an error may
    /// belong to the same answer, so they never start another one.
    fn is_another(&self, frame: Frame<'_>, turn: &TurnState) -> bool {
        if !self.may_be_another(turn) || turn.error.is_some() {
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

    /// Whether the current answer may be complete, so that the next frame may start another one.
    #[inline]
    fn may_be_another(&self, turn: &TurnState) -> bool {
        self.several.is_some() && (turn.ended || self.is_whole || turn.is_whole())
    }

    /// Ends the current answer, if it is still open, and resets the state for the next one.
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

    /// Handles the frame left in the buffer when the body ends.
    fn last_frame(&mut self, frame: Frame<'_>, end: &End, turn: &mut EventWriter<'_>) {
        let (name, text) = match frame {
            _ if frame.is_whole() => return self.frame(frame, turn),
            // A frame truncated by a lost connection must not be reported as invalid JSON.
            _ if *end != End::Eof => return,
            Frame::Event { name, data } => (name, data),
            Frame::Value(text) | Frame::Broken(text) => (None, text),
            _ => return self.frame(frame, turn),
        };
        // A truncated `[DONE]` loses no content.
        self.is_cut |= !is_no_data(name, text) && !DONE.starts_with(text.trim());
    }

    /// Handles an unreadable frame. Its contents are lost, and they may have been a piece of a
    /// call's arguments, a whole call, or the end of the answer. So the answer ends here with an
    /// error.
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
        // `event: error` is an error regardless of its data.
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

    /// Handles `data: [DONE]`, which may end a stream of server-sent events in any API.
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

    /// Returns the reason why a complete body produced no events, or `None` if it was truncated.
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
    /// Forces the next frame to be parsed in full.
    pub(crate) fn forget_template(&mut self) {
        self.reader.template.clear();
    }

    /// Whether the template would match a frame without a name.
    pub(crate) fn has_template_for(&self, frame: &str) -> bool {
        self.reader.template.frame(None, frame).is_some()
    }

    /// Whether the template would match the start of these bytes of a body.
    pub(crate) fn has_template_for_body(&self, body: &[u8]) -> bool {
        self.framing.room_between().is_some() && self.reader.template.block(body).is_some()
    }
}
