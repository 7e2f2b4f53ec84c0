//! The forms of a report whose names are hostile, of one without numbers, and of one with many
//! checkers.

use toolpipe_score::forms::{Layout, json, junit, markdown, table};
use toolpipe_score::{
    Answer, CallCounts, Dimension, Measured, Outcome, Place, Report, Requirement, Tally,
};

/// What a file may hold in the place of a name.
const HOSTILE: &str = "<script>alert(1)</script>|`*_[x](http://e.example)\n\u{1b}[31m\u{202e}</details>&amp;\"']]>\u{0}#@x";

/// A report of `checkers`, each wrong on both kinds of streams; all names hold `name`.
fn report(checkers: usize, streams: usize, name: &str) -> Report {
    let names: Vec<String> = (0..checkers)
        .map(|index| format!("{index}{name}"))
        .collect();
    let mut tally = Tally::new(&names);
    let place = Place {
        events: 7,
        chars: 1_234_567,
        bytes: 9_999_999,
        ms: Some(12_345.6),
    };
    for stream in 0..streams {
        let outcome = |checker: usize| {
            let answer = [Answer::Yes, Answer::No, Answer::Undecided][(stream + checker) % 3];
            Outcome {
                answer,
                last: answer,
                at: Some(place),
                reason: name.to_owned(),
                depends_on_split: false,
            }
        };
        tally.add(&Measured {
            id: format!("{stream}{name}").into(),
            corpus: name.into(),
            source: format!("{stream}").into(),
            api: format!("{}{name}", stream % 2).into(),
            provider: name.into(),
            model: name.into(),
            tags: [name.into()].into(),
            has_tool_call: stream % 2 == 0,
            end: place,
            first_call: Some(place),
            calls: CallCounts {
                expected: 1,
                ..CallCounts::default()
            },
            saved_ms: Some(1.5),
            outcomes: (0..checkers).map(outcome).collect(),
        });
    }
    let mut report = Report::of(&tally);
    for text in ["recall>=0.99", "streams>0"] {
        let verdicts = Requirement::parse(text)
            .expect("a requirement")
            .check(&report);
        report.verdicts.extend(verdicts);
    }
    report
}

fn layout(width: usize) -> Layout {
    Layout {
        by: Dimension::ALL.to_vec(),
        is_summary: false,
        width,
        has_colour: false,
    }
}

#[test]
fn no_form_shows_a_control_character_of_a_name() {
    let report = report(2, 12, HOSTILE);
    let forms = [
        table(&report, &layout(80)),
        junit(&report),
        markdown(&report, &Dimension::ALL, false),
        json(&report).expect("JSON"),
    ];
    for form in forms {
        let raw: Vec<char> = form
            .chars()
            .filter(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}')
            .collect();
        // JSON escapes C0; of what is left it is data, which no terminal is shown.
        assert!(
            raw.is_empty() || form.starts_with('{') && raw.iter().all(|c| *c == '\u{202e}'),
            "{raw:?}\n{form}"
        );
    }
}

#[test]
fn markdown_reads_no_name_as_markup() {
    let text = markdown(&report(2, 12, HOSTILE), &Dimension::ALL, false);
    for line in text.lines().filter(|line| !line.starts_with("    ")) {
        assert!(
            !line.contains("<script")
                && !line.contains("](")
                && !line.contains('`')
                && !line.contains("://"),
            "{line}"
        );
    }
    // An indented line is a block of code, in which nothing has a meaning.
    let markup: String = text
        .lines()
        .filter(|line| !line.starts_with("    "))
        .collect();
    assert_eq!(
        markup.matches("<details>").count(),
        markup.matches("</details>").count(),
        "{text}"
    );
    // Each row of a table has as many cells as the rule below its head.
    let mut columns = 0;
    for line in text.lines() {
        let cells = line.matches(" | ").count();
        if line.starts_with("| ---") {
            columns = cells;
        } else if line.starts_with("| ") && columns > 0 {
            assert_eq!(cells, columns, "{line}");
        } else {
            columns = 0;
        }
    }
    // A command is a block of its own: it is indented, and an empty line precedes it.
    let lines: Vec<_> = text.lines().collect();
    let commands: Vec<_> = (0..lines.len())
        .filter(|at| lines[*at].starts_with("    tc-eval explain "))
        .collect();
    assert!(
        commands.len() >= 4 && commands.iter().all(|at| lines[at - 1].is_empty()),
        "{text}"
    );
}

#[test]
fn an_id_that_looks_like_an_item_of_a_list_is_text() {
    for name in ["- x", "+ x", "1. x"] {
        let text = markdown(&report(1, 6, name), &[], false);
        assert!(
            !text.contains("- - ") && !text.contains("- + ") && !text.contains("- 0"),
            "{text}"
        );
    }
}

#[test]
fn junit_has_a_test_for_each_requirement_and_each_wrong_stream_that_is_shown() {
    let report = report(2, 12, HOSTILE);
    let text = junit(&report);
    let wrong: usize = report
        .checkers
        .iter()
        .map(|checker| checker.missed.len() + checker.false_yes.len())
        .sum();
    assert_eq!(text.matches("<testcase ").count(), wrong + 3, "{text}");
    assert_eq!(text.matches("<failure ").count(), 2);
    assert_eq!(text.matches("<skipped ").count(), wrong);
    // The sum of all suites, which CI systems show: a reader that finds none counts a skipped test
    // as passed or as disabled.
    let all = format!("errors=\"0\" skipped=\"{wrong}\">");
    assert_eq!(text.matches(&all).count(), 1, "{text}");
    let of_suites: usize = text
        .split("<testsuite ")
        .skip(1)
        .filter_map(|suite| suite.split("skipped=\"").nth(1)?.split('"').next())
        .filter_map(|count| count.parse::<usize>().ok())
        .sum();
    assert_eq!(of_suites, wrong, "{text}");
    assert!(
        text.contains("failures=\"2\"") && !text.contains("<script"),
        "{text}"
    );
    // Without requirements nothing fails: the exit status is 0.
    let silent = junit(&Report {
        verdicts: Vec::new(),
        ..report
    });
    assert!(silent.contains("failures=\"0\" errors=\"0\""), "{silent}");
}

#[test]
fn a_table_fits_the_terminal() {
    for (checkers, width) in [(1, 80), (5, 80), (12, 80), (12, 200), (3, 10)] {
        for name in ["", "lookahead:200", HOSTILE, &"wide".repeat(500)] {
            let text = table(&report(checkers, 8, name), &layout(width));
            for line in text
                .lines()
                .filter(|line| !line.contains("tc-eval explain ") && !line.starts_with("  m"))
            {
                assert!(
                    line.chars().count() <= width.max(80),
                    "{checkers} checkers: {line}"
                );
            }
        }
    }
}

#[test]
fn a_summary_has_a_row_for_each_checker_and_the_requirements_alone() {
    let report = report(5, 30, "x");
    let summary = table(
        &report,
        &Layout {
            is_summary: true,
            ..layout(80)
        },
    );
    // The whole report begins with the same lines.
    assert!(table(&report, &layout(80)).starts_with(summary.trim_end()));
    for name in 0..5 {
        let rows = summary
            .lines()
            .filter(|line| line.starts_with(&format!("  {name}x ")));
        assert_eq!(rows.count(), 1, "{summary}");
    }
    assert!(summary.lines().count() <= 24, "{summary}");
    assert!(
        summary.contains("missed  ") && !summary.contains("tc-eval explain"),
        "{summary}"
    );
    let summary = markdown(&report, &Dimension::ALL, true);
    assert!(
        summary.contains("## Requirements") && !summary.contains("<details>"),
        "{summary}"
    );
}

#[test]
fn a_command_names_a_checker_as_the_user_did() {
    let mut report = report(1, 6, "x");
    let option = ["--checker", "0x=cmd:./mine"].map(str::to_owned);
    report.named_by.insert("0x".to_owned(), option);
    let command = "--checker 0x=cmd:./mine";
    let forms = [
        table(&report, &layout(80)),
        junit(&report).replace("&apos;", "'").replace("&#39;", "'"),
        markdown(&report, &[], false),
    ];
    for form in forms {
        assert!(
            form.contains(command) && !form.contains("--checker 0x\n"),
            "{form}"
        );
    }
}

#[test]
fn what_is_not_defined_is_a_dash_and_never_nan() {
    for report in [report(0, 0, ""), report(1, 0, "x"), report(0, 5, "x")] {
        for form in [
            table(&report, &layout(80)),
            junit(&report),
            markdown(&report, &Dimension::ALL, false),
            json(&report).expect("JSON"),
        ] {
            assert!(!form.contains("NaN") && !form.contains("inf"), "{form}");
        }
    }
    assert!(table(&report(1, 0, "x"), &layout(80)).contains('–'));
}

#[test]
fn colour_marks_what_is_missed_and_is_left_out_where_it_is_not_shown() {
    let report = report(1, 6, "x");
    let plain = table(&report, &layout(80));
    let coloured = table(
        &report,
        &Layout {
            has_colour: true,
            ..layout(80)
        },
    );
    assert!(
        !plain.contains('\x1b') && coloured.contains("\x1b[31mmissed\x1b[0m")
            || coloured.contains("\x1b[1m\x1b[31m")
    );
    let stripped: String = coloured
        .split('\x1b')
        .map(|part| {
            part.split_once('m')
                .filter(|(code, _)| code.starts_with('['))
                .map_or(part, |(_, rest)| rest)
        })
        .collect();
    assert_eq!(stripped, plain);
}
