//! Counts of parts add up to the counts of the whole, bit for bit, however the streams are cut into
//! parts and merged.

use proptest::prelude::*;
use std::collections::BTreeSet;
use toolpipe_score::{Answer, CallCounts, Measured, Outcome, Place, Report, Tally};

const CHECKERS: usize = 2;

fn tally() -> Tally {
    Tally::showing(&["first".to_owned(), "second".to_owned()], 3)
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![Just(Answer::No), Just(Answer::Yes), Just(Answer::Undecided)]
}

fn place() -> impl Strategy<Value = Place> {
    let ms = prop::option::of(prop_oneof![
        0f64..1e6,
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(-1.0)
    ]);
    (0u64..300, 0u64..100_000, ms).prop_map(|(events, chars, ms)| Place {
        events,
        chars,
        bytes: chars * 2,
        ms,
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    (answer(), answer(), prop::option::of(place()), any::<bool>()).prop_map(
        |(answer, last, at, depends_on_split)| Outcome {
            answer,
            last,
            at,
            reason: "because".to_owned(),
            depends_on_split,
        },
    )
}

/// A stream. Names are few, so that groups and sources are shared, or one of many, so that there
/// are more than a tally keeps.
fn measured() -> impl Strategy<Value = Measured> {
    let names = (
        0u32..9,
        0u32..40,
        prop_oneof![0u32..4, 0u32..100_000],
        "[a-c]{0,2}",
    );
    let truth = (
        any::<bool>(),
        place(),
        prop::option::of(place()),
        prop::option::of(0f64..1e5),
    );
    (names, truth, prop::collection::vec(outcome(), CHECKERS)).prop_map(
        |((id, source, model, tags), (has_tool_call, end, first_call, saved_ms), outcomes)| {
            Measured {
                id: format!("stream-{id}").into(),
                corpus: "corpus".into(),
                source: format!("source-{source}").into(),
                api: "api".into(),
                provider: "".into(),
                model: format!("model-{model}").into(),
                tags: tags
                    .chars()
                    .map(|tag| tag.to_string().into())
                    .collect::<BTreeSet<_>>(),
                has_tool_call,
                end,
                first_call,
                calls: CallCounts {
                    expected: 2,
                    read: 1,
                    exact: 1,
                    is_in_order: false,
                    repaired: 1,
                    incomplete: 0,
                },
                saved_ms,
                outcomes,
            }
        },
    )
}

fn count(streams: &[Measured]) -> Tally {
    let mut tally = tally();
    streams.iter().for_each(|stream| tally.add(stream));
    tally
}

fn json(tally: &Tally) -> String {
    serde_json::to_string(tally).expect("counts are JSON")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn any_parts_in_any_order_are_the_whole(
        streams in prop::collection::vec(measured(), 0..60),
        parts in prop::collection::vec(0usize..4, 60),
        order in Just([0usize, 1, 2, 3]).prop_shuffle(),
        pair in 0usize..3,
    ) {
        let whole = count(&streams);
        let mut tallies: Vec<Tally> = order
            .iter()
            .map(|part| {
                let of_part = streams.iter().zip(&parts).filter(|(_, of)| *of == part);
                count(&of_part.map(|(stream, _)| stream.clone()).collect::<Vec<_>>())
            })
            // Parts travel as JSON between processes.
            .map(|tally| serde_json::from_str(&json(&tally)).unwrap())
            .collect();
        // Two neighbours first, then the rest: any order of merging.
        let second = tallies.remove(pair + 1);
        tallies[pair].merge(second).unwrap();
        let mut merged = tally();
        for part in tallies {
            merged.merge(part).unwrap();
        }
        prop_assert_eq!(json(&merged), json(&whole));
        prop_assert_eq!(serde_json::to_string(&Report::of(&merged)).unwrap(), serde_json::to_string(&Report::of(&whole)).unwrap());
    }

    #[test]
    fn a_report_is_read_back_from_its_json(streams in prop::collection::vec(measured(), 0..20)) {
        let written = Report::of(&count(&streams));
        let read: Report = serde_json::from_str(&serde_json::to_string(&written).unwrap()).unwrap();
        prop_assert_eq!(&read.streams, &written.streams);
        for (read, written) in read.checkers.iter().zip(&written.checkers) {
            prop_assert_eq!(&read.metrics, &written.metrics);
            prop_assert_eq!(&read.missed, &written.missed);
        }
        prop_assert_eq!(read.groups.len(), written.groups.len());
    }
}

/// A stream of a group and a source of its own, with a long name.
fn distinct(index: u32) -> Measured {
    let name = format!("{index}{}", "x".repeat(300));
    let at = Some(Place {
        events: 1,
        chars: u64::from(index),
        bytes: 1,
        ms: Some(f64::from(index)),
    });
    let outcome = Outcome {
        answer: Answer::Yes,
        last: Answer::No,
        at,
        reason: name.clone(),
        depends_on_split: true,
    };
    Measured {
        id: name.as_str().into(),
        corpus: "corpus".into(),
        source: name.as_str().into(),
        api: name.as_str().into(),
        provider: name.as_str().into(),
        model: name.as_str().into(),
        tags: BTreeSet::from([name.as_str().into()]),
        has_tool_call: index.is_multiple_of(2),
        end: Place {
            events: 2,
            chars: 1 << 20,
            bytes: 1,
            ms: None,
        },
        first_call: at,
        calls: CallCounts::default(),
        saved_ms: Some(f64::from(index)),
        outcomes: vec![outcome; CHECKERS],
    }
}

#[test]
fn counts_of_many_streams_are_no_larger_than_those_of_few() {
    let mut tally = tally();
    let mut sizes = Vec::new();
    for index in 0..16_000 {
        tally.add(&distinct(index));
        if index == 7_999 || index == 15_999 {
            sizes.push(json(&tally).len());
        }
    }
    assert!(sizes[1] < sizes[0] * 5 / 4, "{sizes:?}");
}

#[test]
fn groups_keep_the_first_names_in_any_order() {
    let streams: Vec<Measured> = (0..1_200).map(distinct).collect();
    let forward = count(&streams);
    let backward = count(&streams.into_iter().rev().collect::<Vec<_>>());
    assert_eq!(json(&forward), json(&backward));
    let report = Report::of(&forward);
    let models: Vec<_> = report.groups_by(toolpipe_score::Dimension::Model).collect();
    assert_eq!(models.len(), 301);
    assert_eq!(models[300].name, "(other)");
    let streams: f64 = models
        .iter()
        .filter_map(|group| group.streams.get("streams")?.number())
        .sum();
    assert_eq!(streams, 1_200.0);
}

#[test]
fn counts_that_do_not_belong_together_are_refused() {
    let mut one = tally();
    assert!(one.merge(Tally::new(&["first".to_owned()])).is_err());
    assert!(
        one.merge(Tally::new(&["first".to_owned(), "second".to_owned()]))
            .is_err(),
        "another --show"
    );
    let damaged = json(&tally()).replacen(
        r#""wrong":["#,
        r#""wrong":[{"limit":3,"missed":[],"false_yes":[]},"#,
        1,
    );
    assert!(one.merge(serde_json::from_str(&damaged).unwrap()).is_err());
}
