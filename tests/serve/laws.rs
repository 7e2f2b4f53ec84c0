//! The laws over every recorded body.

use super::pipe::{Answered, Asked, accumulated, answer, answer_events, events, so_far};
use super::read::{content, differences, read};
use super::reading::{Choice, Ending, Reading};
use super::recorded::{Recorded, nothing, recorded};
use super::truth::truth;
use api::{AnswerForm, Api, End, Front};
use testkit::{cut, same};

fn whole(body: &Recorded, asked: &Asked) -> Answered {
    answer(body.api, [&body.bytes[..]], End::Eof, asked)
}

fn wanted(body: &Recorded, asked: &Asked) -> Reading {
    truth(&accumulated(
        &events(body.api, [&body.bytes[..]], End::Eof, None),
        asked,
    ))
}

#[test]
fn every_body_keeps_the_rules_of_every_front_and_says_what_the_upstream_said() {
    let mut wrong = Vec::new();
    for body in recorded() {
        for asked in Asked::all() {
            let got = read(&asked, &whole(&body, &asked));
            let want = wanted(&body, &asked);
            let name = format!("{} {:?} {:?}", body.name, asked.front, asked.form);
            wrong.extend(
                differences(&asked, &got, &want)
                    .into_iter()
                    .map(|why| format!("{name}: {why}")),
            );
        }
    }
    nothing(&wrong);
}

#[test]
fn a_stream_and_the_whole_answer_say_the_same() {
    let mut wrong = Vec::new();
    for body in recorded() {
        for front in Front::ALL {
            let [mut stream, mut whole] = [AnswerForm::Stream, AnswerForm::Whole].map(|form| {
                let asked = Asked::new(front, form);
                read(&asked, &whole(&body, &asked))
            });
            if matches!(&stream.ending, Ending::Failed(why) if why.contains("withdrew")) {
                // A whole answer leaves the call out, of which a stream has sent a part.
                continue;
            }
            if matches!(stream.ending, Ending::Failed(_)) {
                // What was sent before the failure stays sent.
                stream.choices.clear();
                whole.choices.clear();
                stream.id.clear();
                stream.model.clear();
            }
            let said = [&stream, &whole].map(|r| {
                (
                    content(front, r),
                    r.usage,
                    r.ending.clone(),
                    r.id.clone(),
                    r.model.clone(),
                )
            });
            // A whole answer of Messages has no place for a call that was cut, whose input is an
            // object.
            let order = [&stream, &whole].map(|r| {
                let ordered = |c: &Choice| {
                    c.order[..c.order.len() - usize::from(c.is_cut() && !c.order.is_empty())]
                        .to_vec()
                };
                r.choices.iter().map(ordered).collect::<Vec<_>>()
            });
            if said[0] != said[1] || order[0] != order[1] {
                wrong.push(format!("{} {front:?}: {stream:?}\n{whole:?}", body.name));
            }
        }
    }
    nothing(&wrong);
}

#[test]
fn no_split_of_the_upstreams_bytes_shows() {
    for body in recorded() {
        for asked in Asked::all() {
            let want = whole(&body, &asked);
            let pieces = |pieces: Vec<&[u8]>, how: &str| {
                let got = answer(body.api, pieces, End::Eof, &asked);
                let name = || format!("{} {:?} {how}", body.name, asked.front);
                same(&got.text(), &want.text(), name);
                assert!(got == want, "{}: the same text, another answer", name());
            };
            pieces(body.bytes.chunks(1).collect(), "byte by byte");
            for seed in 0..2 {
                pieces(cut(&body.bytes, seed), "at random places");
            }
        }
    }
}

#[test]
fn what_a_front_writes_is_read_back_as_the_events_that_went_in() {
    let mut wrong = Vec::new();
    let mut read_back = 0;
    for body in recorded() {
        for asked in Asked::all() {
            let answered = whole(&body, &asked);
            let want = wanted(&body, &asked);
            let api =
                Api::from_name(asked.front.name()).expect("each front is an API of upstreams");
            let back = if answered.refused.is_some() {
                continue;
            } else {
                &answered.body
            };
            let lines = events(api, [&back[..]], End::Eof, None);
            // No request with tools: text stays text.
            let mut got = truth(&accumulated(&lines, &asked));
            if want
                .choices
                .iter()
                .all(|c| c.calls.iter().all(|call| call.is_finished))
            {
                got.usage = got.usage.map(|usage| super::reading::Usage {
                    cached: want.usage.unwrap_or_default().cached,
                    ..usage
                });
                let name = format!("{} {:?} {:?}", body.name, asked.front, asked.form);
                wrong.extend(
                    differences(&asked, &got, &want)
                        .into_iter()
                        .map(|why| format!("{name}: {why}")),
                );
                read_back += 1;
            }
        }
    }
    assert!(read_back > 600, "only {read_back}");
    nothing(&wrong);
}

#[test]
fn events_through_a_pipe_give_the_same_bytes_as_the_machines_without_lines() {
    for body in recorded() {
        for asked in Asked::all() {
            let lines = events(body.api, [&body.bytes[..]], End::Eof, None);
            let got = answer_events(&lines, &asked);
            let want = whole(&body, &asked);
            assert!(
                got == want,
                "{} {:?}:\n{}\nnot:\n{}",
                body.name,
                asked.front,
                got.text(),
                want.text()
            );
        }
    }
}

#[test]
fn every_piece_of_text_and_of_arguments_goes_out_as_it_comes() {
    let chunk = |delta: &str| {
        let choice = format!("{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}");
        format!(
            "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{choice}]}}\n\n"
        )
    };
    let call = |arguments: &str| {
        let arguments = event::quoted(arguments);
        chunk(&format!(
            "{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":{arguments}}}}}]}}"
        ))
    };
    for front in Front::ALL {
        let asked = Asked::new(front, AnswerForm::Stream);
        let mut body = chunk("{\"role\":\"assistant\",\"content\":\"\"}");
        let mut text = String::new();
        for piece in ["I ", "write ", "it."] {
            body += &chunk(&format!("{{\"content\":{}}}", event::quoted(piece)));
            text += piece;
            assert_eq!(sent(&body, &asked).text, text, "{front:?}");
        }
        let begin = "{\"index\":0,\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"write\",\"arguments\":\"\"}}";
        body += &chunk(&format!("{{\"tool_calls\":[{begin}]}}"));
        let mut arguments = String::new();
        for piece in [
            "{\"path\":\"a.txt\",\"text\":\"One",
            " two",
            " three\\n",
            "four\",\"mode\":",
            "420",
            ",\"force\":true",
        ] {
            body += &call(piece);
            arguments += piece;
            let came = sent(&body, &asked).calls[0].arguments.clone();
            // The last word or digits may go on.
            assert!(
                arguments.starts_with(&came) && arguments.len() - came.len() < 5,
                "{front:?}: {came} of {arguments}"
            );
        }
    }
}

/// What a client has read of a stream that goes on.
fn sent(body: &str, asked: &Asked) -> Choice {
    let answered = Answered {
        body: so_far(Api::OpenaiChat, body.as_bytes(), asked),
        ..Answered::default()
    };
    read(asked, &answered)
        .choices
        .first()
        .cloned()
        .unwrap_or_default()
}
