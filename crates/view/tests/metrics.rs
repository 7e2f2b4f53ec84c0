//! Metrics of events: what they count, and that no event can break their text or their bounds.

#![expect(clippy::unwrap_used, reason = "a test")]

use event::Scanner;
use proptest::prelude::*;
use std::collections::BTreeMap;
use testkit::short;
use toolpipe_view::{Metrics, OpenStreams, ServiceState, micros_of};

/// The metrics, as text, after these lines.
fn page(mut metrics: Metrics, lines: &[impl AsRef<str>]) -> String {
    let mut open = OpenStreams::default();
    push(&mut metrics, &mut open, lines);
    metrics.finish(&mut open);
    rendered(&metrics, open.waiting(), None)
}

fn push(metrics: &mut Metrics, open: &mut OpenStreams, lines: &[impl AsRef<str>]) {
    let mut scanner = Scanner::default();
    for line in lines {
        let event = scanner.read(line.as_ref()).unwrap();
        metrics.push(open, &event, micros_of(&event));
    }
}

fn rendered(metrics: &Metrics, waiting: u64, state: Option<&ServiceState>) -> String {
    let mut out = Vec::new();
    metrics.render(waiting, state, &mut out);
    String::from_utf8(out).unwrap()
}

/// The samples that are not 0.
fn counted(page: &str) -> Vec<&str> {
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples.filter(|line| !line.ends_with(" 0")).collect()
}

fn samples(page: &str) -> BTreeMap<&str, f64> {
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    let samples = samples.map(|line| line.rsplit_once(' ').unwrap());
    samples
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect()
}

#[test]
fn ten_thousand_names_of_everything_make_no_more_series() {
    let mut lines = Vec::new();
    for n in 0..10_000 {
        lines.extend([
            format!(r#"{{"type":"stream_start","stream":"s{n}","v":1,"model":"m{n}","id":"i{n}"}}"#),
            format!(r#"{{"type":"tool_call","stream":"s{n}","tool_id":"i{n}","tool_name":"t{n}","error":{{"code":"e{n}"}},"repairs":[{{"kind":"k{n}"}}]}}"#),
            format!(r#"{{"type":"retract","stream":"s{n}","tool_id":"i{n}","reason":"r{n}"}}"#),
            format!(r#"{{"type":"tool_use","tool_id":"i{n}","tool_name":"t{n}"}}"#),
            format!(r#"{{"type":"tool_result","tool_id":"i{n}","tool_name":"t{n}","status":"s{n}","duration_ms":{n}}}"#),
            format!(r#"{{"type":"tool_result","tool_id":"i{n}","tool_name":"t{n}","status":"success","duration_ms":{n}}}"#),
            format!(r#"{{"type":"error","code":"e{n}"}}"#),
            format!(r#"{{"type":"warning","code":"w{n}"}}"#),
            format!(r#"{{"type":"approval","tool_id":"i{n}","decision":"d{n}"}}"#),
        ]);
    }
    for metrics in [Metrics::exact(true), Metrics::histograms()] {
        let page = page(metrics, &lines);
        let tools: Vec<&str> = page
            .lines()
            .filter_map(|line| line.split_once("_count{tool=\""))
            .map(|(_, labels)| labels.split_once('"').unwrap().0)
            .collect();
        // A hundred names and `other`, with two statuses each.
        assert_eq!(tools.len(), 202);
        assert!(tools.contains(&"other"));
        assert!(page.lines().count() < 5_000);
        for code in ["e1\"", "w1\"", "r1\"", "k1\"", "d1\"", "m1", "i1", "s1\""] {
            assert!(!page.contains(&format!("\"{code}")), "{code}");
        }
    }
}

#[test]
fn a_tool_of_the_tools_file_has_its_name_whatever_came_before() {
    let mut metrics = Metrics::histograms();
    metrics.know_tool("forecast");
    let mut lines: Vec<String> = (0..200)
        .map(|n| format!(r#"{{"type":"tool_use","tool_id":"i","tool_name":"t{n}"}}"#))
        .collect();
    let result = |name: &str| {
        format!(
            r#"{{"type":"tool_result","tool_id":"i","tool_name":"{name}","status":"success","duration_ms":1}}"#
        )
    };
    lines.extend([result("forecast"), result("made_up")]);
    let page = page(metrics, &lines);
    for name in ["forecast", "other"] {
        let count = format!("_count{{tool=\"{name}\",status=\"success\"}} 1");
        assert!(page.contains(&count), "{}", short(&page));
    }
    assert!(!page.contains("made_up"));
}

#[test]
fn a_call_counts_once_by_what_became_of_it() {
    let start = r#"{"type":"stream_start","v":1}"#;
    let call = r#"{"type":"tool_call","index":0,"tool_id":"a","tool_name":"t","arguments":{}}"#;
    let end = r#"{"type":"stream_end","finish_reason":"stop"}"#;
    let by_id = r#"{"type":"retract","tool_id":"a","reason":"unparsed"}"#;
    let by_index = r#"{"type":"retract","index":0,"reason":"unparsed"}"#;
    let whole = "toolpipe_calls_total{outcome=\"whole\"} 1";
    let retracted = "toolpipe_calls_total{outcome=\"retracted\"} 1";
    let one = "toolpipe_retracts_total{reason=\"unparsed\"} 1";
    let stop = "toolpipe_streams_total{reason=\"stop\"} 1";
    for (lines, want) in [
        (&[start, call, end][..], &[whole, stop][..]),
        // The input ends, or another stream begins.
        (&[start, call], &[whole]),
        (&[start, call, start], &[whole]),
        (&[call], &[whole]),
        (&[start, call, by_id, end], &[retracted, one, stop]),
        (&[start, call, by_index, end], &[retracted, one, stop]),
        // `tc-accumulate` writes the id before it passes what came.
        (
            &[start, call, by_id, by_index, end],
            &[retracted, one, stop],
        ),
        // Only begun.
        (&[start, by_index, end], &[retracted, one, stop]),
        // After the end the call was whole, and somebody takes it back.
        (&[start, call, end, by_id], &[whole, one, stop]),
    ] {
        assert_eq!(
            counted(&page(Metrics::exact(false), lines)),
            want,
            "{lines:?}"
        );
    }
}

#[test]
fn detection_is_the_first_event_that_names_a_call() {
    let log = [
        r#"{"type":"stream_start","v":1,"t":0}"#,
        r#"{"type":"tool_call_delta","t":1,"index":0,"arguments":"{"}"#,
        r#"{"type":"tool_call_delta","t":20.5,"index":0,"tool_name":"a"}"#,
        r#"{"type":"tool_call","t":20.5,"tool_id":"a","tool_name":"a","arguments":{}}"#,
        r#"{"type":"tool_call","t":90,"tool_id":"b","tool_name":"b","arguments":{}}"#,
    ];
    let page = page(Metrics::exact(true), &log);
    let samples = samples(&page);
    assert_eq!(samples["toolpipe_detection_seconds_count"], 1.0);
    assert_eq!(
        samples["toolpipe_detection_seconds{quantile=\"0.5\"}"],
        0.0205
    );
    assert_eq!(samples["toolpipe_event_gap_seconds_count"], 3.0);
    assert_eq!(samples["toolpipe_event_gap_seconds_sum"], 0.09);
}

#[test]
fn without_times_there_is_no_metric_of_time() {
    let log = [
        r#"{"type":"tool_use","tool_id":"a","tool_name":"t"}"#,
        r#"{"type":"tool_result","tool_id":"a","tool_name":"t","status":"success","duration_ms":5}"#,
        r#"{"type":"session_stats","prompt_tokens":3,"first_event_ms":7,"duration_ms":9}"#,
    ];
    let page = page(Metrics::exact(false), &log);
    assert!(!page.contains("seconds"), "{}", short(&page));
    assert_eq!(
        counted(&page),
        [
            "toolpipe_tool_results_total{status=\"success\"} 1",
            "toolpipe_input_tokens_total 3"
        ]
    );
}

#[test]
fn calls_that_wait_are_counted_until_they_have_a_result() {
    let pending = |id: &str| {
        format!(r#"{{"type":"tool_result","tool_id":"{id}","tool_name":"t","status":"pending"}}"#)
    };
    let log = [
        pending("a"),
        pending("b"),
        pending("b"),
        r#"{"type":"tool_use","tool_id":"a","tool_name":"t"}"#.to_owned(),
    ];
    assert!(page(Metrics::exact(true), &log).contains("\ntoolpipe_approvals_waiting 1\n"));
}

#[test]
fn an_answer_of_a_service_is_no_part_of_another() {
    let mut metrics = Metrics::histograms();
    let (mut one, mut other) = (OpenStreams::default(), OpenStreams::default());
    let at = |t: u32| format!(r#"{{"type":"content_delta","t":{t},"text":"x"}}"#);
    push(&mut metrics, &mut one, &[at(0)]);
    push(&mut metrics, &mut other, &[at(0)]);
    push(&mut metrics, &mut one, &[at(500)]);
    push(&mut metrics, &mut other, &[at(40)]);
    let page = rendered(&metrics, 0, Some(&ServiceState::default()));
    let samples = samples(&page);
    assert_eq!(
        samples["toolpipe_event_gap_seconds_bucket{le=\"0.1\"}"],
        1.0
    );
    assert_eq!(
        samples["toolpipe_event_gap_seconds_bucket{le=\"+Inf\"}"],
        2.0
    );
    assert_eq!(samples["toolpipe_event_gap_seconds_sum"], 0.54);
}

/// Lines of a log, of which each is an event.
fn log() -> impl Strategy<Value = Vec<String>> {
    let number = prop_oneof![
        (0..100_000u32).prop_map(|n| n.to_string()),
        (0.0..5e5f64).prop_map(|n| n.to_string()),
        Just("-3".to_owned()),
        Just("1e999".to_owned()),
        Just("99999999999999999999999999".to_owned()),
        Just("null".to_owned()),
        Just("\"1\"".to_owned()),
        Just("[{}]".to_owned()),
    ];
    let kind = prop_oneof![
        Just("stream_start"),
        Just("content_delta"),
        Just("tool_call_delta"),
        Just("tool_call"),
        Just("retract"),
        Just("tool_use"),
        Just("tool_result"),
        Just("session_stats"),
        Just("stream_end"),
    ];
    let line = (kind, number.clone(), number, "[a-c]", "[a-b\\{\u{e9}]").prop_map(
        |(kind, t, n, id, word)| {
            format!(
                r#"{{"type":"{kind}","t":{t},"index":{n},"tool_id":"{id}","tool_name":"{word}","reason":"{word}","status":"success","duration_ms":{n},"first_event_ms":{n},"prompt_tokens":{n}}}"#
            )
        },
    );
    proptest::collection::vec(line, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The histograms of two services add up to those of one service with all events. Names of tools
    /// are left out, since each service has only those that it has run.
    #[test]
    fn histograms_of_two_services_add_up(first in log(), second in log()) {
        let both = {
            let mut metrics = Metrics::histograms();
            for lines in [&first, &second] {
                let mut open = OpenStreams::default();
                push(&mut metrics, &mut open, lines);
                metrics.finish(&mut open);
            }
            rendered(&metrics, 0, None)
        };
        let pages = [&first, &second].map(|lines| page(Metrics::histograms(), lines));
        let parts = pages.each_ref().map(|page| samples(page));
        for (name, value) in samples(&both) {
            let sum: f64 = parts.iter().filter_map(|part| part.get(name)).sum();
            let is_equal = (sum - value).abs() <= 1e-9 * value.abs().max(1.0);
            let is_of_each = name.contains("tool=") || name.contains("waiting");
            prop_assert!(is_equal || is_of_each, "{name}: {sum} {value}");
        }
    }

    #[test]
    fn buckets_grow_and_no_number_is_negative_or_not_a_number(lines in log()) {
        for metrics in [Metrics::histograms(), Metrics::exact(true)] {
            let page = page(metrics, &lines);
            for (name, value) in samples(&page) {
                prop_assert!(value.is_finite() && value >= 0.0, "{name} {value}");
            }
            let buckets = page.lines().filter(|line| line.contains("_bucket{"));
            let mut before = ("", 0);
            for line in buckets {
                let (series, rest) = line.split_once("le=").unwrap();
                let count: u64 = rest.rsplit_once(' ').unwrap().1.parse().unwrap();
                prop_assert!(series != before.0 || count >= before.1, "{line}");
                before = (series, count);
            }
        }
    }
}
