//! Everything that walks JSON, against serde_json: on texts that are nearly JSON, in any pieces.

use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;
use toolpipe_json::{JsonScanner, check, check_scanned};

/// What a scanner finds out about a text in pieces.
fn scan<'t>(pieces: impl IntoIterator<Item = &'t str>) -> (usize, [bool; 5]) {
    let mut scanner = JsonScanner::default();
    let mut taken = 0;
    for piece in pieces {
        let more = scanner.push(piece);
        taken += more;
        if more < piece.len() {
            break;
        }
    }
    let facts = [
        scanner.is_valid(),
        scanner.is_whole(),
        scanner.is_balanced(),
        scanner.is_closed(),
        scanner.is_in_text(),
    ];
    (taken, facts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn all_agree_on_what_is_json(text in r#"([{}\[\],:]|"[ab\\ué\n]{0,3}"|"\\(u[0-9a-d]{4}|.)"|true|nul|-?[01]{1,3}(\.5)?(e9{0,3})?| ){0,9}"#) {
        let oracle = serde_json::from_str::<&RawValue>(&text);
        let (taken, [is_valid, is_whole, ..]) = scan([&*text]);
        prop_assert_eq!(is_whole && taken == text.len(), oracle.is_ok(), "scanner: {}", text);
        prop_assert_eq!(event::Raw::parse(&text).is_ok(), oracle.is_ok(), "Raw: {}", text);
        if let Err(e) = &oracle {
            // serde_json reads four bytes after `\u` before it looks at them.
            prop_assert!(!e.is_eof() || is_valid || text.contains("\\u"), "a beginning: {}", text);
        }
        // What the strict check accepts is one value for serde_json, which refuses lone surrogates
        // and numbers out of range likewise.
        if check(&text).is_ok() {
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "check: {}", text);
        } else if oracle.is_ok() {
            let code = check(&text).map_err(|e| e.code());
            prop_assert!(code.is_err_and(|code| code != "invalid_json"), "check: {}", text);
        }
    }

    #[test]
    fn no_split_shows(text in r#"[{}\[\],:"\\u1d8tre. \né-]{0,24}"#, at in any::<prop::sample::Index>()) {
        let at = text.floor_char_boundary(at.index(text.len() + 1));
        let whole = scan([&*text]);
        prop_assert_eq!(scan([&text[..at], &text[at..]]), whole);
        prop_assert_eq!(scan(text.split_inclusive(|_| true)), whole, "in characters: {}", text);
    }
}

proptest! {
    // More than sixteen keys are compared in another way, so that the texts are long.
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_check_of_scanned_text_is_the_check(
        text in r#" ?\{( ?"([ab\x7f\u{85}\u{a0}]|\\"|\\u0061|\\ud83[d0]|\\ude00){0,3}" ?: ?("\\ud83d\\ude00"|"x ?y"|true|null|-?[01](\.5)?(e[0-9]{1,3})?|\[ ?\]|\{ ?\}|1[01]{320}|\[1 ?, ?\{"a" ?:2\}\]) ?,){0,20} ?"z":1 ?\} ?"#
    ) {
        let mut scanner = JsonScanner::default();
        scanner.push(&text);
        prop_assert!(scanner.is_balanced(), "{}", text);
        let minified = check(&text).map(|_| {
            let mut out = Vec::new();
            event::minify(&mut out, &text);
            String::from_utf8(out).unwrap_or_default()
        });
        prop_assert_eq!(check_scanned(&text), minified, "{}", text);
    }
}
