//! Requirements: what is read, what is refused with which words, and what the verdict is.

use toolpipe_score::{Answer, CallCounts, Measured, Outcome, Place, Report, Requirement, Tally};

/// A report with 310 of 356 calls found by `first:chunk`, none of them in recordings with times,
/// and nothing answered by `silent`.
fn report() -> Report {
    let mut tally = Tally::new(&["first:chunk".to_owned(), "silent".to_owned()]);
    for index in 0..356 {
        let place = Place {
            events: 1,
            chars: 10,
            bytes: 10,
            ms: None,
        };
        let answer = if index < 310 { Answer::Yes } else { Answer::No };
        let outcome = |answer, at| Outcome {
            answer,
            last: answer,
            at,
            reason: String::new(),
            depends_on_split: false,
        };
        tally.add(&Measured {
            id: format!("{index}").into(),
            corpus: "c".into(),
            source: format!("{index}").into(),
            api: if index % 4 == 0 {
                "gemini"
            } else {
                "anthropic"
            }
            .into(),
            provider: "".into(),
            model: "a>=b}{api=x".into(),
            tags: [].into(),
            has_tool_call: true,
            end: place,
            first_call: Some(place),
            calls: CallCounts {
                expected: 1,
                read: 1,
                exact: u64::from(index > 0),
                ..CallCounts::default()
            },
            saved_ms: None,
            outcomes: vec![
                outcome(answer, Some(place)),
                outcome(Answer::Undecided, None),
            ],
        });
    }
    Report::of(&tally)
}

#[test]
fn verdicts_name_the_value_and_the_counts() {
    let report = report();
    for (text, messages) in [
        (
            "recall>=0.99",
            &[
                "first:chunk: recall is 0.871 (310 of 356), required >= 0.99",
                "silent: recall is 0.000 (0 of 356), required >= 0.99",
            ][..],
        ),
        (
            "first:chunk:recall >= 87.1%",
            &["first:chunk: recall is 0.8708 (310 of 356), required >= 0.871"],
        ),
        (
            "first:chunk:recall>=87%",
            &["+first:chunk: recall is 0.871 (310 of 356), required >= 0.87"],
        ),
        (
            "silent:precision<2",
            &["silent: precision is not defined (no answer is yes), required < 2"],
        ),
        (
            "silent:decision.chars.p90<=1",
            &[
                "silent: decision.chars.p90 is not defined (no decision has a known place), required <= 1",
            ],
        ),
        (
            "first:chunk:decision.ms.p50<=1",
            &[
                "first:chunk: decision.ms.p50 is not defined (no recording with such a decision has times), required <= 1",
            ],
        ),
        (
            "first:chunk:decision.chars.p90<=10",
            &["+first:chunk: decision.chars.p90 is 10, required <= 10"],
        ),
        (
            "calls.exact == 1",
            &["calls.exact is 0.997 (355 of 356), required == 1"],
        ),
        (
            "first:chunk:calls.exact != 1",
            &["+first:chunk: calls.exact is 0.997 (355 of 356), required != 1"],
        ),
        (
            "first:chunk:recall{api=gemini}>0.9",
            &["first:chunk: recall{api=gemini} is 0.876 (78 of 89), required > 0.9"],
        ),
        (
            "first:chunk:recall{model=a>=b}{api=x}>=.5",
            &["+first:chunk: recall{model=a>=b}{api=x} is 0.871 (310 of 356), required >= 0.5"],
        ),
        (
            "recall{api=cohere}>=.5",
            &["recall{api=cohere} is not defined (no stream is in this group), required >= 0.5"],
        ),
        (
            "silent:undecided{provider=(unknown)}<=0",
            &["silent: undecided{provider=(unknown)} is 356, required <= 0"],
        ),
        (
            "first:chunk:baseline.broken<=0",
            &[
                "first:chunk: baseline.broken is not defined (the run has no --baseline), required <= 0",
            ],
        ),
        (
            "other:recall>=0",
            &["other: recall is not defined (the report has no such checker), required >= 0"],
        ),
        ("streams>=1e2", &["+streams is 356, required >= 100"]),
    ] {
        let verdicts = Requirement::parse(text)
            .unwrap_or_else(|error| panic!("{text}: {error}"))
            .check(&report);
        let shown: Vec<_> = verdicts
            .iter()
            .map(|verdict| {
                format!(
                    "{}{}",
                    if verdict.is_met { "+" } else { "" },
                    verdict.message()
                )
            })
            .collect();
        assert_eq!(shown, messages, "{text}");
    }
}

#[test]
fn a_percentage_is_the_nearest_number_to_its_share() {
    let met = |text: &str, value: &str| {
        let both = [format!("streams>={text}"), format!("streams>={value}")];
        let bounds = both.map(|text| {
            Requirement::parse(&text).unwrap().check(&report())[0]
                .required
                .clone()
        });
        assert_eq!(bounds[0], bounds[1]);
    };
    for (text, value) in [
        ("99.9%", "0.999"),
        ("28.999999 %", "0.28999999"),
        ("7%", "0.07"),
        ("100%", "1"),
    ] {
        met(text, value);
    }
}

#[test]
fn what_is_not_a_requirement_is_refused_with_what_to_write() {
    for (text, words) in [
        ("recall", "not a comparison"),
        ("", "not a comparison"),
        ("recall=0.9", "not a comparison"),
        (
            "recal>=0.9",
            "unknown metric \"recal\", did you mean \"recall\"? The metrics are streams,",
        ),
        ("decision.chars.p95<=9", "did you mean \"decision.chars.p9"),
        (
            "recall>=high",
            "\"high\" is not a number; write 0.99 or 99%",
        ),
        ("recall>=NaN", "not a number"),
        ("recall>=inf", "not a number"),
        ("recall>=", "not a number"),
        ("recall>=1e400", "not a number"),
        ("recall>=1e2%", "not a number"),
        (
            "recall{region=eu}>=1",
            "unknown metric \"recall{region=eu}\", did you mean \"recall\"?",
        ),
        ("decision.ms.p90{api=gemini}<=1", "not counted by group"),
        ("auto:>=1", "unknown metric \"\""),
    ] {
        let error = Requirement::parse(text).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
        assert!(!error.contains('\n'));
    }
    let error = Requirement::parse("autoo:recall>=1")
        .unwrap()
        .check_name(&["auto".to_owned()])
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no checker \"autoo\" in this run; it has auto"
    );
}

#[test]
fn each_metric_that_is_listed_is_counted() {
    for name in toolpipe_score::metric_names(false) {
        Requirement::parse(&format!("{name}>=0")).unwrap();
    }
    assert!(toolpipe_score::metric_names(true).len() < toolpipe_score::metric_names(false).len());
}

#[test]
fn the_page_explains_each_metric() {
    let page = include_str!("../../../docs/evaluation.md");
    for name in toolpipe_score::metric_names(false) {
        let parts: Vec<_> = name.split('.').collect();
        let is_explained = match parts[..] {
            [kind @ ("decision" | "late"), _, _] => {
                page.contains(&format!("`{kind}.UNIT.QUANTILE`"))
            }
            ["saved", "ms", _] => page.contains("`saved.ms.QUANTILE`"),
            _ => page.contains(&format!("`{name}`")),
        };
        assert!(is_explained, "{name}");
    }
}
