//! Markdown on a terminal: split into deltas in any way, and on any small screen.

#![expect(clippy::unwrap_used, reason = "a test")]

use event::{Scanner, View};
use proptest::prelude::*;
use testkit::Emulator;
use toolpipe_view::{Term, Terminal};

/// An escape character as Markdown can write it.
const ESCAPE: &str = "&#27;";

/// What happens beside the text: a call that is running from a piece on, and another size of the
/// terminal from a piece on.
#[derive(Clone, Copy, Debug, Default)]
struct Beside {
    call: Option<usize>,
    resize: Option<(usize, usize, usize)>,
}

/// The screen after `pieces` of text.
fn shown(
    pieces: &[&str],
    (columns, rows): (usize, usize),
    colour: bool,
    beside: Beside,
) -> Emulator {
    let mut screen = Emulator::new(columns, rows);
    let mut view = Term::new(
        Terminal {
            columns,
            rows,
            colour,
        },
        true,
    );
    let mut lines: Vec<_> = pieces
        .iter()
        .map(|p| format!(r#"{{"type":"content_delta","text":{}}}"#, event::quoted(p)))
        .collect();
    if let Some(at) = beside.call {
        let call = r#"{"type":"tool_use","tool_id":"a","tool_name":"f","status":"running","input_summary":""}"#;
        lines.insert(at.min(lines.len()), call.to_owned());
    }
    let mut scanner = Scanner::default();
    for (n, line) in lines.iter().enumerate() {
        if let Some((at, columns, rows)) = beside.resize
            && at == n
        {
            screen.resize(columns, rows);
            view.resize(columns, rows);
        }
        let mut out = Vec::new();
        view.push(&scanner.read(line).unwrap(), &mut out);
        screen.write(str::from_utf8(&out).unwrap());
    }
    let mut out = Vec::new();
    view.finish(&mut out);
    screen.write(str::from_utf8(&out).unwrap());
    screen
}

/// Markdown reads white space of Unicode as text.
#[test]
fn a_block_of_odd_spaces_ends() {
    for text in [
        "\u{3000}",
        "\u{a0}\n\nb",
        "a\n\n\u{85}\u{b}\u{c}\n\nb",
        "- \u{2003}\n- b",
        "\u{3000}\n",
    ] {
        let screen = shown(&[text, "c"], (20, 10), true, Beside::default());
        assert!(screen.text().contains('c'), "{text:?}: {}", screen.text());
    }
}

#[test]
fn a_row_of_a_table_that_is_cut_keeps_its_rest() {
    let pieces = [
        "aaaaa \naa aaaaaa aaaa \n| a | b |\n|---|--:|\na \n[1]aa aaa \u{1b}[2Jaaaa <!--",
        " c -->\naaaaaaaa **a aaaaaaa ",
    ];
    for (columns, rows) in [(8, 4), (8, 6), (12, 4), (20, 5)] {
        let screen = shown(&pieces, (columns, rows), false, Beside::default());
        assert!(
            screen.text().contains('c'),
            "{columns} {rows}: {}",
            screen.text()
        );
    }
}

#[test]
fn a_block_behind_a_table_that_is_cut_is_not_lost() {
    let text = "a\n| a | b |\n|---|--:|\naa aaaaaaa a\n- c \n";
    for (a, b) in (0..text.len()).flat_map(|a| (a..text.len()).map(move |b| (a, b))) {
        let pieces = [&text[..a], &text[a..b], &text[b..]];
        let screen = shown(&pieces, (8, 4), false, Beside::default());
        assert!(screen.text().contains('c'), "{pieces:?}: {}", screen.text());
    }
}

#[test]
fn the_words_behind_a_fence_are_drawn_as_they_were_written() {
    let text = "```\\| c &amp; d |\n\n```\n\n";
    for cut in 0..text.len() {
        let screen = shown(
            &[&text[..cut], &text[cut..]],
            (40, 40),
            true,
            Beside::default(),
        );
        assert!(
            screen.text().contains("\\| c &amp; d |"),
            "{cut}: {}",
            screen.text()
        );
    }
}

fn markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,9} ",
        1 => Just("\n".to_owned()),
        1 => Just("\n\n".to_owned()),
        4 => prop::sample::select(vec![
            "**", "*", "_", "`", "~~", "``", "\n# ", "\n- ", "\n  - ", "\n1. ", "\n2) ", "\n> ", "\n> - ", "\n```\n", "\n```sh\n",
            "\n   ```\n", "\n~~~\n", "\n| a | b |\n|---|--:|\n", "| c | d |\n", "| e | f | g |\n", "[a](b)", "![a](b)", "[a]: b\n",
            "<b>", "<!-- c -->\n", "\n---\n", "\n===\n", "\n    ", "\\", "  \n", "天気", "👩\u{200d}👧", "e\u{301}", "\r\n",
            "<http://a>", ": ", "[1]", "\u{1b}[2J", ESCAPE, "\u{202e}", "\u{1}", "\u{3000}", "\u{a0}", "\u{85}",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|p| p.concat())
}

/// How often each letter and each digit occurs.
fn letters(text: &str) -> [usize; 128] {
    let mut counts = [0; 128];
    text.bytes()
        .filter(u8::is_ascii_alphanumeric)
        .for_each(|b| counts[usize::from(b)] += 1);
    counts
}

/// `text` in pieces that end at those of `cuts` where a character ends.
fn pieces<'t>(text: &'t str, cuts: &[prop::sample::Index]) -> Vec<&'t str> {
    let mut at: Vec<_> = cuts
        .iter()
        .map(|cut| cut.index(text.len() + 1))
        .filter(|at| text.is_char_boundary(*at))
        .collect();
    at.extend([0, text.len()]);
    at.sort_unstable();
    at.windows(2).map(|w| &text[w[0]..w[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn the_cuts_between_deltas_never_show(
        text in markdown(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
        columns in 8..100_usize,
        colour: bool,
    ) {
        let whole = shown(&[&text], (columns, 4000), colour, Beside::default());
        let cut = shown(&pieces(&text, &cuts), (columns, 4000), colour, Beside::default());
        prop_assert_eq!(whole.marked(), cut.marked(), "{:?}", text);
    }

    #[test]
    fn no_word_is_lost_on_any_screen(
        text in markdown(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
        columns in 8..60_usize,
        rows in 4..20_usize,
        colour: bool,
        call in prop::option::of(0..20_usize),
        resize in prop::option::of((0..20_usize, 8..60_usize, 4..20_usize)),
    ) {
        let screen = shown(&pieces(&text, &cuts), (columns, rows), colour, Beside { call, resize });
        prop_assert_eq!(screen.lost, 0, "the cursor left the top of the screen: {:?}", text);
        let seen = letters(&screen.text());
        for (n, count) in letters(&text.replace(ESCAPE, "")).iter().enumerate() {
            prop_assert!(seen[n] >= *count, "{:?} is missing in {:?}: {}", n as u8 as char, text, screen.text());
        }
    }
}
