//! The page of a report is whole, safe and bounded, whatever the report holds.

use crate::page::{measured, read};
use std::collections::BTreeMap;
use toolpipe_score::forms::html;
use toolpipe_score::{
    Answer, BaselineName, BaselineStream, Comparison, Interval, Measured, MetricValue, Report,
    Requirement, RequirementVerdict, Tally, visible,
};

const CHECKERS: [&str; 7] = [
    "first-chunk",
    "lookahead:200",
    "lookahead:1000",
    "lookahead:3000",
    "full",
    "auto",
    "cmd:./first.py",
];

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The report of the first `streams` made-up streams, each of which `change` may change.
fn report(checkers: &[&str], streams: u64, change: impl Fn(u64, &mut Measured)) -> Report {
    let mut tally = Tally::new(&names(checkers));
    for n in 0..streams {
        let mut measured = measured(n, checkers.len());
        change(n, &mut measured);
        tally.add(&measured);
    }
    Report::of(&tally)
}

#[test]
fn a_page_has_all_its_parts() {
    let mut report = report(&CHECKERS, 2_000, |_, _| ());
    report.verdicts = ["recall>=0.99", "auto:precision>=1", "calls.exact>=0.5"]
        .iter()
        .flat_map(|text| Requirement::parse(text).unwrap().check(&report))
        .collect();
    let page = read(&html(&report));
    let count = |name: &str| {
        page.elements
            .iter()
            .filter(|element| *element == name)
            .count()
    };
    assert_eq!(
        count("svg"),
        2 * 2 + 2 * CHECKERS.len(),
        "the curve and its top, each for wide and narrow windows, and two histograms for each checker"
    );
    for heading in [
        "Requirements",
        "Recall against earliness",
        "Wrong answers",
        "By model",
        "By tag",
        "auto",
    ] {
        assert!(page.texts.iter().any(|text| text == heading), "{heading}");
    }
    let text = page.texts.concat();
    for part in [
        "7 checkers on 2,000 streams",
        "4 of 9 missed",
        "tc-eval explain recordings --stream stream-",
        "--checker lookahead:200",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

/// The largest `min-width` that the style gives to a plot, in pixels at 16 to the `rem`.
fn widest_plot(style: &str) -> f64 {
    let of_plots = style.split('}').filter(|rule| {
        let selector = rule.split('{').rev().nth(1).unwrap_or_default();
        selector
            .split(',')
            .any(|one| one.ends_with("svg") || one.contains("svg."))
    });
    let widths = of_plots.filter_map(|rule| rule.split("min-width:").nth(1)?.split("rem").next());
    let widths = widths.filter_map(|rem| rem.parse::<f64>().ok());
    widths.fold(0.0, f64::max) * 16.0
}

#[test]
fn a_window_of_400_pixels_shows_whole_plots() {
    let page = html(&report(&CHECKERS, 2_000, |_, _| ()));
    let style = page
        .split("<style>")
        .nth(1)
        .unwrap()
        .split("</style>")
        .next()
        .unwrap();
    // What the body has in such a window between its paddings of a rem each.
    let room = 400.0 - 2.0 * 16.0;
    assert!(widest_plot(style) <= room, "a plot is cut off: {style}");
    assert!(
        style.contains(
            "@media screen and (max-width:44rem){svg.narrow{display:block}svg.broad{display:none}}"
        ),
        "{style}"
    );
    let plots: Vec<&str> = page
        .split("<svg ")
        .skip(1)
        .map(|svg| svg.split("</svg>").next().unwrap())
        .collect();
    let narrow: Vec<&&str> = plots
        .iter()
        .filter(|plot| plot.contains("class=\"narrow\""))
        .collect();
    assert_eq!(narrow.len(), 2, "the curve and its top");
    for plot in narrow {
        let width = plot
            .split(" width=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let width: f64 = width.parse().unwrap();
        assert!(width <= room, "{width}");
        let points: Vec<f64> = plot
            .split("cx=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
            .collect();
        assert!(
            points.len() > 1 && points.iter().all(|x| *x < width),
            "{points:?}"
        );
    }
}

#[test]
fn names_and_reasons_of_any_text_stay_text() {
    let long = "a".repeat(10_000);
    let hostile = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "'><svg/onload=alert(1)>",
        "]]></style><!--",
        "&lt;b&gt;&#0;",
        "a\u{202e}txt.exe\u{2066}",
        "line\nfeed\r\ttab\u{0}\u{1b}[31m\u{9b}1m",
        "--checker",
        "",
        "zalgo\u{301}\u{301}\u{301}\u{301}",
        "javascript:alert(1)",
        long.as_str(),
    ];
    let mut report = report(&hostile, 400, |n, measured| {
        let name = |salt: u64| hostile[((n * 7 + salt) % hostile.len() as u64) as usize];
        measured.id = format!("{}{n}", name(0)).into();
        (measured.corpus, measured.api, measured.provider) =
            (name(1).into(), name(2).into(), name(3).into());
        (measured.model, measured.tags) =
            (name(4).into(), [name(5), name(6)].map(Into::into).into());
        for outcome in &mut measured.outcomes {
            outcome.reason = name(8).to_owned();
        }
    });
    let mut comparison = Comparison::new(
        &serde_json::from_value(
            serde_json::json!({"tc_eval_baseline": 1, "version": "", "checkers": hostile, "corpora": []}),
        )
        .unwrap(),
        &names(&hostile),
        20,
    );
    for n in 0..60 {
        let mut is = BaselineStream::of(&measured(n, hostile.len()));
        (is.id, is.corpus) = (
            format!("{}{n}", hostile[n as usize % hostile.len()]),
            hostile[3].to_owned(),
        );
        let mut was = is.clone();
        was.outcomes
            .iter_mut()
            .for_each(|outcome| outcome.answer = Answer::Undecided);
        comparison.pair(&was, &is);
        comparison.new_stream(&is);
    }
    report.baseline = Some(comparison.finish());
    report.verdicts = hostile
        .iter()
        .map(|name| RequirementVerdict {
            requirement: (*name).to_owned(),
            checker: Some((*name).to_owned()),
            metric: format!("recall{{model={name}}}"),
            value: MetricValue::Undefined,
            part: None,
            required: ">= 0.5".to_owned(),
            is_met: false,
            reason: Some((*name).to_owned()),
        })
        .collect();
    let page = read(&html(&report));
    let text = page.texts.concat();
    for name in hostile.iter().filter(|name| !name.is_empty()) {
        assert!(
            text.contains(&visible(name, 80)),
            "{} is not shown",
            visible(name, 80)
        );
    }
}

#[test]
fn nothing_to_show_is_a_page() {
    for (checkers, streams) in [
        (&[][..], 0),
        (&CHECKERS[..1], 0),
        (&CHECKERS[..1], 1),
        (&CHECKERS[..], 2),
    ] {
        let page = read(&html(&report(checkers, streams, |_, _| ())));
        assert!(page.elements.iter().any(|element| element == "table"));
    }
    read(&html(&Report::default()));
}

#[test]
fn many_checkers_each_have_a_point_and_a_section() {
    let many: Vec<String> = (0..12).map(|n| format!("lookahead:{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let page = read(&html(&report(&many, 300, |_, _| ())));
    for name in many {
        assert!(
            page.texts.iter().filter(|text| *text == name).count() >= 2,
            "{name} has no row or no section"
        );
    }
}

#[test]
fn numbers_that_are_not_finite_are_not_drawn() {
    let mut report = report(&CHECKERS, 100, |_, _| ());
    let broken = serde_json::to_string(&report)
        .unwrap()
        .replace("\"recall\":0.", "\"recall\":1e308,\"x\":0.");
    let huge: Report = serde_json::from_str(&broken).unwrap();
    assert!(
        !read(&html(&huge)).texts.concat().contains("recall inf"),
        "a share above 1 is not drawn"
    );
    for checker in &mut report.checkers {
        let nothing = Interval {
            low: f64::NAN,
            high: f64::INFINITY,
            effective: f64::NAN,
        };
        checker.intervals = BTreeMap::from([
            ("recall".to_owned(), nothing),
            ("precision".to_owned(), nothing),
        ]);
    }
    let page = read(&html(&report));
    assert!(!page.texts.concat().contains("NaN") && !page.texts.concat().contains("inf"));
}

#[test]
fn thousands_of_groups_and_errors_are_a_page_of_bounded_size() {
    let page = |streams| {
        let report = report(&CHECKERS, streams, |n, measured| {
            (measured.model, measured.provider) =
                (format!("model {n}").into(), format!("provider {n}").into());
            measured.tags = [format!("tag {n}").into()].into();
        });
        html(&report).len()
    };
    let some = page(600);
    let many = page(3_000);
    assert!(many < some + some / 4, "{some} bytes became {many}");
    assert!(many < 400_000, "{many}");
}

#[test]
fn the_same_report_is_the_same_page() {
    let report = report(&CHECKERS, 50, |_, _| ());
    let again: Report = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
    assert_eq!(
        html(&report),
        html(&again),
        "a report that was written as JSON and read again"
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    #[test]
    fn no_text_breaks_a_page(texts in proptest::collection::vec(".{0,60}|[<>&\"'/=!a-z -]{0,60}", 4)) {
        let of = |n: u64| texts[(n % 4) as usize].as_str();
        let mut report = report(&[of(0), of(1), of(2)], 12, |n, measured| {
            (measured.id, measured.corpus, measured.model) = (of(n).into(), of(n + 1).into(), of(n + 2).into());
            measured.outcomes.iter_mut().for_each(|outcome| outcome.reason = of(n + 3).to_owned());
        });
        report.verdicts = Requirement::parse("recall>=1").unwrap().check(&report);
        read(&html(&report));
    }
}

#[test]
fn a_stream_that_vanished_is_named() {
    let mut report = report(&CHECKERS, 3, |_, _| ());
    let gone = BaselineName {
        corpus: "c".to_owned(),
        id: "gone".to_owned(),
    };
    report.baseline = Some(toolpipe_score::BaselineReport {
        vanished: 7,
        vanished_streams: vec![gone],
        ..toolpipe_score::BaselineReport::default()
    });
    let text = read(&html(&report)).texts.concat();
    assert!(
        text.contains("gone") && text.contains("7 vanished (1 of them are listed)"),
        "{text}"
    );
}
