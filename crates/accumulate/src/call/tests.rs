//! Fragments and names of every kind, one call each.

use super::*;

fn feed(fragments: &[&str]) -> (OpenCall, Vec<String>) {
    let mut call = OpenCall::new(0, "a".into(), false);
    let mut extra = Vec::new();
    for f in fragments {
        match call.take((*f).into()) {
            FragmentUse::Kept => {}
            FragmentUse::Dropped => extra.push("dropped".to_owned()),
            FragmentUse::Extra(text) => extra.push(text),
        }
    }
    call.settle();
    (call, extra)
}

#[test]
fn fragments_of_every_kind() {
    for (fragments, text, extra) in [
        (&["{\"a\"", ":1}"][..], "{\"a\":1}", &[][..]),
        (&["{", "{\"a\"", "{\"a\":1", "{\"a\":1}"], "{\"a\":1}", &[]), // the text so far each time
        (&["{\"a\":", "{\"a\":1}"], "{\"a\":1}", &[]), // appending would leave it open
        (&["{\"a\":", "{\"a\":1}", "}"], "{\"a\":{\"a\":1}}", &[]), // appending wins a tie
        (&["{}", "{\"a\":1}"], "{\"a\":1}", &[]),      // a placeholder
        (&["{}", "{", "\"a\":1}"], "{\"a\":1}", &[]),
        (&["{}", "{}"], "{}", &[]),
        (&["{}{\"a\":1}"], "{\"a\":1}", &[]),
        (&["{\"a\":1}", "{\"a\":1}"], "{\"a\":1}", &[]), // sent again at the end
        (&["{\"a\":1}", "{\"a\"", ":1}", " "], "{\"a\":1}", &[]),
        (
            &["{\"a\":1}", "\n{\"a\":", "2}"],
            "{\"a\":1}",
            &["{\"a\":2}"],
        ), // another call
        (&["{\"a\":1}{\"b\":2}"], "{\"a\":1}", &["{\"b\":2}"]),
        (
            &["{\"a\":1}", "{\"a\":1}{\"b\":2}"],
            "{\"a\":1}",
            &["{\"b\":2}"],
        ),
        (
            &["{\"a\": 1}", "{\"a\":", " ", "1}", "\n"],
            "{\"a\": 1}",
            &[],
        ),
        // Text that does not begin an object, and all that follows it.
        (&["{\"a\":1}}"], "{\"a\":1}", &["dropped"]),
        (
            &["{\"a\":1}", "\n```", "{\"a\":2}"],
            "{\"a\":1}",
            &["dropped"],
        ),
        (
            &["{\"a\":1} {\"a\":1},{\"a\":2}"],
            "{\"a\":1}",
            &["dropped"],
        ),
        (&["{}", "}", "{\"a\":1}"], "{}", &["dropped"]),
    ] {
        let (call, got) = feed(fragments);
        assert_eq!(
            (
                call.text().trim(),
                got.iter().map(String::as_str).collect::<Vec<_>>()
            ),
            (text, extra.to_vec()),
            "{fragments:?}"
        );
    }
}

#[test]
fn names_by_the_rule() {
    let known = |n: &str| n == "read_file";
    let mut call = OpenCall::new(0, "a".into(), false);
    for (name, result, now) in [
        ("read_", NameUse::Kept, "read_"),
        ("file", NameUse::Kept, "read_file"),
        ("read_file", NameUse::Kept, "read_file"),
        ("write", NameUse::Ignored, "read_file"),
        ("read_file2", NameUse::Kept, "read_file2"),
    ] {
        assert_eq!(
            (call.take_name(name, known), call.name.as_str()),
            (result, now)
        );
    }
}
