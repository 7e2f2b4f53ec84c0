//! What `tc-serve` does between the upstream's bytes and the client's, with the same machines and
//! without sockets.

use accumulate::Accumulate;
use api::{
    AnswerForm, AnswerOptions, Api, Encoder, End, FailedAnswer, Front, Stream, StreamOptions, Words,
};
use event::{Chain, Collect, Event, Machine, Payload, Scanner, Sink};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use tag::{Streams, Tag};

/// A dialect, tools, and the end of the prompt.
type StreamsKey = (String, Option<String>, Option<String>);

thread_local! {
    /// What was built for the answers before, which takes longer than most answers.
    static LOOKS: RefCell<HashMap<String, Rc<tag::Look>>> = RefCell::default();
    static STREAMS: RefCell<HashMap<StreamsKey, Rc<Streams>>> = RefCell::default();
}

/// What a client asks for, as far as the answer depends on it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub front: Front,
    pub form: AnswerForm,
    /// The tools, in OpenAI's shape.
    pub tools: Option<String>,
    /// A dialect, or `auto`.
    pub dialect: String,
    /// The end of the prompt, which the text continues.
    pub prefill: Option<String>,
    pub options: AnswerOptions,
}

impl Asked {
    pub(crate) fn new(front: Front, form: AnswerForm) -> Asked {
        let options = AnswerOptions {
            id: "1f2e3d".to_owned(),
            model: "asked-model".to_owned(),
            created: 1_760_000_000,
            include_usage: true,
            ..AnswerOptions::default()
        };
        Asked {
            front,
            form,
            tools: None,
            dialect: "auto".to_owned(),
            prefill: Some(String::new()),
            options,
        }
    }

    /// How the text is read. A request without tools has a list without tools: no text becomes a
    /// call.
    fn streams(&self) -> Rc<Streams> {
        let key = (
            self.dialect.clone(),
            self.tools.clone(),
            self.prefill.clone(),
        );
        let make = || {
            let tools = json::ToolList::read(self.tools.as_deref().unwrap_or("[]"))
                .expect("a list of tools");
            let look = LOOKS.with_borrow_mut(|looks| {
                let new = || Rc::new(tag::Look::new(&self.dialect).expect("dialects of the table"));
                Rc::clone(looks.entry(self.dialect.clone()).or_insert_with(new))
            });
            Rc::new(Streams::new(tag::TagOptions {
                look: Some(look),
                always: true,
                tools: Some(Rc::new(tools)),
                prefill: self.prefill.clone(),
                ..tag::TagOptions::default()
            }))
        };
        STREAMS.with_borrow_mut(|streams| Rc::clone(streams.entry(key).or_insert_with(make)))
    }

    /// Every front in both forms.
    pub(crate) fn all() -> impl Iterator<Item = Asked> {
        Front::ALL.into_iter().flat_map(|front| {
            [AnswerForm::Stream, AnswerForm::Whole].map(|form| Asked::new(front, form))
        })
    }
}

/// What the client gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answered {
    /// The bytes of the answer.
    pub body: Vec<u8>,
    /// The status, where the answer is an error before anything of the model was sent.
    pub refused: Option<u16>,
    /// Why it failed.
    pub failure: Option<FailedAnswer>,
}

impl Answered {
    /// The bytes as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The machines of one answer.
struct Pipe {
    chain: Chain<Tag, Accumulate, fn(&Event<'_>) -> Accumulate>,
    encoder: Encoder,
    body: Vec<u8>,
}

fn accumulate(_: &Event<'_>) -> Accumulate {
    Accumulate::new(Rc::new(accumulate::AccumulateOptions {
        live: true,
        emit_on: accumulate::EmitOn::Sealed,
        ..accumulate::AccumulateOptions::default()
    }))
}

impl Pipe {
    fn new(asked: &Asked, first: &Event<'_>) -> Pipe {
        Pipe {
            chain: Chain::new(asked.streams().begin(first), accumulate),
            encoder: Encoder::new(asked.front, asked.form, asked.options.clone()),
            body: Vec::new(),
        }
    }

    fn push(&mut self, event: &Event<'_>) {
        let Pipe {
            chain,
            encoder,
            body,
        } = self;
        chain.push(
            event,
            &mut Written {
                event: Some(event),
                encoder,
                body,
            },
        );
    }

    fn finish(mut self, front: Front, form: AnswerForm) -> Answered {
        let Pipe {
            chain,
            encoder,
            body,
        } = &mut self;
        chain.finish(&mut Written {
            event: None,
            encoder,
            body,
        });
        self.encoder.finish(&mut self.body);
        let failure = self.encoder.failure().cloned();
        let refused = failure
            .as_ref()
            .filter(|_| form == AnswerForm::Whole || !self.encoder.has_begun());
        match refused {
            Some(why) => Answered {
                body: front.failure(why),
                refused: Some(why.status),
                failure,
            },
            None => Answered {
                body: self.body,
                refused: None,
                failure,
            },
        }
    }
}

/// Gives what the chain passes and emits to the encoder.
struct Written<'w> {
    event: Option<&'w Event<'w>>,
    encoder: &'w mut Encoder,
    body: &'w mut Vec<u8>,
}

impl Sink for Written<'_> {
    fn pass(&mut self) {
        if let Some(event) = self.event {
            self.encoder.push(event, self.body);
        }
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        self.encoder
            .push(&Event::of(payload, None, choice, None), self.body);
    }
}

/// Gives the decoder's events to the machines, which begin with the first of them.
struct Decoded<'d> {
    asked: &'d Asked,
    pipe: &'d mut Option<Pipe>,
}

impl Sink for Decoded<'_> {
    fn pass(&mut self) {}

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        let event = Event::of(payload, None, choice, None);
        self.pipe
            .get_or_insert_with(|| Pipe::new(self.asked, &event))
            .push(&event);
    }
}

/// The upstream's answer in these pieces, which ends so, to the client.
pub(crate) fn answer<'a>(
    api: Api,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    end: End,
    asked: &Asked,
) -> Answered {
    let mut pipe = None;
    let mut stream = Stream::new(api, options(asked.tools.clone()));
    for piece in pieces {
        stream.push(
            piece,
            &mut Decoded {
                asked,
                pipe: &mut pipe,
            },
        );
    }
    stream.finish(
        end,
        &mut Decoded {
            asked,
            pipe: &mut pipe,
        },
    );
    pipe.expect("a stream has events")
        .finish(asked.front, asked.form)
}

/// What the client has after these bytes of an upstream that goes on.
pub(crate) fn so_far(api: Api, bytes: &[u8], asked: &Asked) -> Vec<u8> {
    let mut pipe = None;
    Stream::new(api, options(asked.tools.clone())).push(
        bytes,
        &mut Decoded {
            asked,
            pipe: &mut pipe,
        },
    );
    pipe.map_or_else(Vec::new, |pipe| pipe.body)
}

/// The events of an upstream's stream, as lines, to the client.
pub(crate) fn answer_events<S: AsRef<str>>(lines: &[S], asked: &Asked) -> Answered {
    let mut scanner = Scanner::default();
    let mut pipe = None;
    for line in lines {
        let event = scanner
            .read(line.as_ref())
            .unwrap_or_else(|e| panic!("{e}: {}", line.as_ref()));
        pipe.get_or_insert_with(|| Pipe::new(asked, &event))
            .push(&event);
    }
    pipe.expect("a stream has events")
        .finish(asked.front, asked.form)
}

/// The events that the decoder makes of an upstream's answer.
pub(crate) fn events<'a>(
    api: Api,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    end: End,
    tools: Option<String>,
) -> Vec<String> {
    let mut stream = Stream::new(api, options(tools));
    let mut out = Collect::default();
    for piece in pieces {
        stream.push(piece, &mut out);
    }
    stream.finish(end, &mut out);
    out.lines
}

/// The decoder's settings; what names a response without an id is the same each time.
fn options(tools: Option<String>) -> StreamOptions {
    StreamOptions {
        tools,
        id: Some("resp".to_owned()),
        words: Words {
            source: "llm-stream",
            ..Words::default()
        },
        ..StreamOptions::default()
    }
}

/// The calls, the text and the end that the events mean: through the same machines, but as lines of
/// a pipe, and without live deltas.
pub(crate) fn accumulated<S: AsRef<str>>(lines: &[S], asked: &Asked) -> Vec<String> {
    let mut scanner = Scanner::default();
    let first = scanner.read(lines[0].as_ref()).expect("an event");
    let tagged = Collect::run(&mut asked.streams().begin(&first), lines);
    Collect::run(
        &mut Accumulate::new(Rc::new(accumulate::AccumulateOptions::default())),
        &tagged,
    )
}
