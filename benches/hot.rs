//! What each event, frame and character goes through: reading and writing event lines, provider
//! bodies to events, deltas to calls, text to calls. `cargo bench` prints the time and MB/s of
//! each; `cargo bench TEXT` runs those whose name contains TEXT.

mod inputs;

use accumulate::Accumulate;
use api::{Api, End, Stream, StreamOptions};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use event::payload::{ContentDelta, ToolCallDelta};
use event::{Machine, Payload, Scanner, Sink, payload};
use inputs::Lines;
use std::rc::Rc;
use tag::Streams;

fn main() {
    divan::main();
}

/// Takes what a machine emits as a pipe would, and forgets it.
#[derive(Default)]
struct Forget(Vec<u8>);

impl Sink for Forget {
    fn pass(&mut self) {}

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        self.0.clear();
        payload::line(&mut self.0, payload, None, choice, None);
        black_box(&self.0);
    }
}

/// Reads the lines and pushes each event into a new machine.
fn filter<M: Machine>(bencher: Bencher, lines: &Lines, machine: impl Fn(&mut Scanner) -> M) {
    bencher
        .counter(BytesCount::new(lines.bytes()))
        .bench_local(|| {
            let (mut scanner, mut out) = (Scanner::default(), Forget::default());
            let mut machine = machine(&mut scanner);
            for line in &lines.0 {
                machine.push(&scanner.read(line).expect("an event"), &mut out);
            }
        });
}

mod lines {
    use super::*;

    #[divan::bench]
    fn read(bencher: Bencher) {
        let lines = inputs::prose(20_000);
        let mut scanner = Scanner::default();
        bencher
            .counter(BytesCount::new(lines.bytes()))
            .bench_local(|| {
                for line in &lines.0 {
                    black_box(scanner.read(line).expect("an event").payload());
                }
            });
    }

    #[divan::bench]
    fn write(bencher: Bencher) {
        let text = ContentDelta {
            text: "word ".into(),
            with_call: false,
        };
        let fragment = ToolCallDelta {
            index: Some(0),
            arguments: Some("{\"path\": \"a".into()),
            ..Default::default()
        };
        let payloads = [Payload::from(text), fragment.into()];
        let mut line = Vec::new();
        bencher
            .counter(divan::counter::ItemsCount::new(20_000_usize))
            .bench_local(|| {
                for _ in 0..10_000 {
                    for payload in &payloads {
                        line.clear();
                        payload::line(&mut line, black_box(payload), None, 0, Some("12.5"));
                        black_box(&line);
                    }
                }
            });
    }
}

mod bodies {
    use super::*;

    /// In pieces of a network's size.
    const READ: usize = 16 * 1024;

    fn decode(bencher: Bencher, api: Api, body: &str) {
        bencher
            .counter(BytesCount::new(body.len()))
            .bench_local(|| {
                let (mut stream, mut out) = (
                    Stream::new(api, StreamOptions::default()),
                    Forget::default(),
                );
                body.as_bytes()
                    .chunks(READ)
                    .for_each(|piece| stream.push(piece, &mut out));
                stream.finish(End::Eof, &mut out);
            });
    }

    #[divan::bench]
    fn openai(bencher: Bencher) {
        decode(bencher, Api::OpenaiChat, &inputs::openai(8_000, 40_000));
    }

    #[divan::bench]
    fn anthropic(bencher: Bencher) {
        decode(bencher, Api::Anthropic, &inputs::anthropic(8_000, 40_000));
    }

    #[divan::bench]
    fn server_sent_events(bencher: Bencher) {
        let body = inputs::openai(8_000, 40_000);
        bencher
            .counter(BytesCount::new(body.len()))
            .bench_local(|| {
                let mut decoder = api::sse::SseParser::default();
                for piece in body.as_bytes().chunks(READ) {
                    decoder.push(piece, &mut |event| {
                        black_box(event);
                    });
                }
            });
    }
}

mod calls {
    use super::*;

    fn merge(bencher: Bencher, lines: &Lines) {
        filter(bencher, lines, |_| Accumulate::new(Rc::default()));
    }

    #[divan::bench]
    fn of_one_long(bencher: Bencher) {
        merge(bencher, &inputs::one_call(1_000_000));
    }

    #[divan::bench]
    fn of_many_interleaved(bencher: Bencher) {
        merge(bencher, &inputs::interleaved(500));
    }

    #[divan::bench]
    fn none(bencher: Bencher) {
        merge(bencher, &inputs::prose(20_000));
    }
}

mod text {
    use super::*;

    fn parse(bencher: Bencher, lines: &Lines) {
        let streams = Streams::default();
        filter(bencher, lines, |scanner| {
            streams.begin(&scanner.read(&lines.0[0]).expect("an event"))
        });
    }

    #[divan::bench]
    fn without_calls(bencher: Bencher) {
        parse(bencher, &inputs::near_markers(20_000));
    }

    #[divan::bench]
    fn with_calls(bencher: Bencher) {
        parse(bencher, &inputs::tagged_calls(500));
    }
}
