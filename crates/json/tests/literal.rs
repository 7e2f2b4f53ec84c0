//! Literals of Python and Gemma in any pieces, turned into JSON.

use event::MAX_DEPTH;
use proptest::prelude::*;
use serde_json::Value;
use toolpipe_json::{Literal, LiteralProgress, Notation};

const TOO_LONG: &str = "a word is too long";
const SHORT: &str = "the value is incomplete";

const GEMMA4: Notation = Notation::Gemma { quote: "<|\"|>" };
const FUNCTION_GEMMA: Notation = Notation::Gemma { quote: "<escape>" };

/// Reads `pieces`, gives what was written and how many bytes belong to the literal; or why not.
fn feed(mut literal: Literal, pieces: &[&str]) -> Result<(String, usize), &'static str> {
    let mut out = String::new();
    let mut rest = String::new();
    let mut taken = 0;
    for piece in pieces {
        rest.push_str(piece);
        match literal.push(&rest, &mut out) {
            LiteralProgress::More(n) => {
                assert!(rest.len() - n <= 12, "{rest:?} is held");
                taken += n;
                rest.drain(..n);
            }
            LiteralProgress::End(n) => return Ok((out, taken + n)),
            LiteralProgress::Invalid(_, why) => return Err(why),
        }
    }
    // A comma ends every scalar.
    match literal.push(&(rest.clone() + ","), &mut out) {
        LiteralProgress::End(n) => Ok((out, taken + n)),
        LiteralProgress::Invalid(_, why) => Err(why),
        _ => Err(SHORT),
    }
}

/// The same for the text whole, cut once at every place, and in single characters.
fn read(new: &dyn Fn() -> Literal, text: &str) -> Result<(String, usize), &'static str> {
    let whole = feed(new(), &[text]);
    for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
        assert_eq!(
            feed(new(), &[&text[..at], &text[at..]]),
            whole,
            "{text:?} cut at {at}"
        );
    }
    let mut buffer = [0; 4];
    let single: Vec<String> = text
        .chars()
        .map(|c| c.encode_utf8(&mut buffer).to_owned())
        .collect();
    assert_eq!(
        feed(
            new(),
            &single.iter().map(String::as_str).collect::<Vec<_>>()
        ),
        whole,
        "{text:?} in characters"
    );
    whole
}

fn value(notation: Notation, text: &str) -> Result<String, &'static str> {
    read(&|| Literal::value(notation), text).map(|(out, end)| {
        assert!(
            serde_json::from_str::<&serde_json::value::RawValue>(&out).is_ok(),
            "{text:?} gave {out:?}"
        );
        format!("{out}{}", if end == text.len() { "" } else { " …" })
    })
}

fn arguments(notation: Notation, names: &[&str], text: &str) -> Result<String, &'static str> {
    let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    read(&|| Literal::arguments(notation, names.clone()), text).map(|(out, end)| {
        assert!(
            serde_json::from_str::<&serde_json::value::RawValue>(&out).is_ok(),
            "{text:?} gave {out:?}"
        );
        format!("{out}{}", &text[end..])
    })
}

fn table(read: impl Fn(&str) -> Result<String, &'static str>, rows: &[(&str, &str)]) {
    for (text, wanted) in rows {
        let found = read(text).unwrap_or_else(|why| format!("! {why}"));
        assert_eq!(found, *wanted, "{text:?}");
    }
}

#[test]
fn strings_of_python() {
    table(
        |text| value(Notation::Python, text),
        &[
            (r#""a""#, r#""a""#),
            (r#"'it is "so"'"#, r#""it is \"so\"""#),
            (r#""it's""#, r#""it's""#),
            ("''", r#""""#),
            ("'' ''", r#""""#),
            ("'''a''b'''", r#""a''b""#),
            (r#""""say "x" ""now"""#, "! the value is incomplete"),
            (r#""""say "x" now""""#, r#""say \"x\" now""#),
            ("'''two\r\nlines'''", r#""two\r\nlines""#),
            ("'raw\nnewline'", r#""raw\nnewline""#),
            (
                r"'\n\t\r\a\b\f\v\\\'\x41\u00e9\U0001F600\101\0'",
                "\"\\n\\t\\r\\u0007\\u0008\\u000c\\u000b\\\\'Aé😀A\\u0000\"",
            ),
            (
                r"'\q \d \/ \N{DASH} \u12G \xZ \U00110000 \8'",
                r#""\\q \\d \\/ \\N{DASH} \\u12G \\xZ \\U00110000 \\8""#,
            ),
            (r"'\1012\78'", r#""A2\u00078""#),
            ("'one\\\ntwo\\\r\nthree\\\rfour'", r#""onetwothreefour""#),
            (r"'\ud83d\ude00'", r#""\ud83d\ude00""#),
            (r#"r'\d\'\\'"#, r#""\\d\\'\\\\""#),
            (r#"Rb"C:\new""#, r#""C:\\new""#),
            (r#"u'a' b"\x41" f'{x}' rf'\{y}'"#, r#""aA{x}\\{y}""#),
            ("'a'\n  \"b\" '''c'''", r#""abc""#),
            ("('a'\n 'b')", r#""ab""#),
            ("'a' q", r#""a" …"#),
            ("'a''b'", r#""ab""#),
            (r#""A "b" c""#, r#""A " …"#),
            ("'a' rx'b'", r#""a" …"#),
            ("x'a'", "! unexpected text where a value should begin"),
            (
                "'日本語 😀\u{7f}\u{9b}\u{a0}\u{1b}'",
                "\"日本語 😀\\u007f\\u009b\u{a0}\\u001b\"",
            ),
            ("'open", "! the value is incomplete"),
            ("'open\\", "! the value is incomplete"),
        ],
    );
}

#[test]
fn numbers_of_python() {
    table(
        |text| value(Notation::Python, text),
        &[
            ("0", "0"),
            ("-0", "-0"),
            ("-12.50", "-12.50"),
            ("1E+05", "1E+05"),
            ("0.1e-7", "0.1e-7"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            ("1_000_000", "1000000"),
            ("1_0.2_5e1_0", "10.25e10"),
            ("1__0", "! a number is not valid JSON"),
            ("1_", "! a number is not valid JSON"),
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("1.", "1.0"),
            ("1.e3", "1.0e3"),
            ("0.", "0.0"),
            ("0e0", "0e0"),
            ("+1", "1"),
            ("000", "0"),
            ("007", "! a number is not valid JSON"),
            ("0xFF", "255"),
            ("-0x_ff", "-255"),
            ("0o17", "15"),
            ("0b1010", "10"),
            ("0x0", "0"),
            (
                "0xde0b6b3a7640000_0000000000000001",
                "18446744073709551616000000000000000001",
            ),
            ("0x", "! a number is not valid JSON"),
            ("0b12", "! a number is not valid JSON"),
            ("1j", "! a number is not valid JSON"),
            ("1.2.3", "! a number is not valid JSON"),
            ("1e", "! a number is not valid JSON"),
            (".", "! a number is not valid JSON"),
            ("-", "! a number is not valid JSON"),
            ("-inf", "! a number is not valid JSON"),
            ("--1", "! a number is not valid JSON"),
            ("inf", "! unexpected text where a value should begin"),
            ("nan", "! unexpected text where a value should begin"),
            ("12]", "12 …"),
        ],
    );
}

#[test]
fn values_of_python() {
    table(
        |text| value(Notation::Python, text),
        &[
            (" True", "true"),
            (
                "[True, False, None, true, false, null]",
                "[true,false,null,true,false,null]",
            ),
            ("[]", "[]"),
            ("[ ]x", "[] …"),
            ("[1, 2, ]", "[1,2]"),
            ("[,]", "! unexpected text where a value should begin"),
            (
                "[1 2]",
                "! a value is followed by neither a comma nor the closing bracket",
            ),
            ("()", "[]"),
            ("(1)", "1"),
            ("(1,)", "[1]"),
            ("((1), ((2, 3),), {'a': (4)})", r#"[1,[[2,3]],{"a":4}]"#),
            ("((1, 2))", "[1,2]"),
            ("((1, 2), 3)", "[[1,2],3]"),
            ("({'a': [(), ('x')]})", r#"{"a":[[],"x"]}"#),
            ("{}", "{}"),
            (
                r#"{'a': 1, "b": {'c': [None]},}"#,
                r#"{"a":1,"b":{"c":[null]}}"#,
            ),
            (
                "{1: 2, 1.5: 3, True: 4, None: 5, 'a' 'b': 6}",
                r#"{"1":2,"1.5":3,"true":4,"null":5,"ab":6}"#,
            ),
            ("{'a'}", "! a key has no colon after it"),
            ("{1, 2}", "! a key has no colon after it"),
            ("{a: 1}", "! unexpected text where a value should begin"),
            ("{(1, 2): 3}", "! a key is not a string"),
            ("{'a': }", "! unexpected text where a value should begin"),
            (
                "[1, # one\n 2]",
                "! unexpected text where a value should begin",
            ),
            ("[f(1)]", "! unexpected text where a value should begin"),
            ("[1", "! the value is incomplete"),
            ("", "! unexpected text where a value should begin"),
            (
                "[1)",
                "! a value is followed by neither a comma nor the closing bracket",
            ),
        ],
    );
}

#[test]
fn arguments_of_python() {
    table(
        |text| arguments(Notation::Python, &["first", "second"], text),
        &[
            (") rest", "{} rest"),
            ("a=1, b='x')", r#"{"a":1,"b":"x"}"#),
            ("a = [1, 2] , b=(3,),)", r#"{"a":[1,2],"b":[3]}"#),
            ("'x', 2)", r#"{"first":"x","second":2}"#),
            ("True, f'x')", r#"{"first":true,"second":"x"}"#),
            ("r'\\d', b=None)", r#"{"first":"\\d","b":null}"#),
            ("-1, (2))", r#"{"first":-1,"second":2}"#),
            ("1, 2, 3)", "! an argument has no name"),
            (
                "a=1, 2)",
                "! an argument without a name comes after one with a name",
            ),
            (
                "a=1, None)",
                "! an argument without a name comes after one with a name",
            ),
            ("x)", "! unexpected text where a value should begin"),
            (
                "None=1, r='q', user-id=2, 名前='日本')",
                r#"{"None":1,"r":"q","user-id":2,"名前":"日本"}"#,
            ),
            (
                "**{'a b': 1, 'c': [2]}, d=3, **{}, **{'': 4})",
                r#"{"a b":1,"c":[2],"d":3,"":4}"#,
            ),
            ("**{})", "{}"),
            ("1, **{'x': 2})", r#"{"first":1,"x":2}"#),
            ("*[1])", "! the call unpacks a list"),
            ("**[1])", "! the value after ** is not a dict"),
            ("a==1)", "! unexpected text where a value should begin"),
            (
                "a=1]",
                "! a value is followed by neither a comma nor the closing bracket",
            ),
            (
                "a=')', b=\"<tool_call>\")",
                r#"{"a":")","b":"<tool_call>"}"#,
            ),
            ("a=1", "! the value is incomplete"),
            (
                "a=1,,b=2)",
                "! an argument without a name comes after one with a name",
            ),
        ],
    );
}

#[test]
fn values_and_arguments_of_gemma() {
    table(
        |text| arguments(GEMMA4, &[], text),
        &[
            ("}<tool_call|>", "{}<tool_call|>"),
            ("city:<|\"|>Paris<|\"|>,n:42}", r#"{"city":"Paris","n":42}"#),
            (
                "t:<|\"|>a <|x| \"b\" \\n }<|\"<|\"|>}",
                r#"{"t":"a <|x| \"b\" \\n }<|\""}"#,
            ),
            (
                "a:{b:[1, 2, {c:<|\"|>v<|\"|>}]},}",
                r#"{"a":{"b":[1,2,{"c":"v"}]}}"#,
            ),
            (
                "a:null,b:true,c:false,d:-1.5e10,e:3.14}",
                r#"{"a":null,"b":true,"c":false,"d":-1.5e10,"e":3.14}"#,
            ),
            (
                "a: New York , b:12 Main St,c:true north}",
                r#"{"a":"New York","b":"12 Main St","c":"true north"}"#,
            ),
            (
                "a:inf,b:007,c:+1,d:1.,e:nul,f:trues,g:-,h:1e5 }",
                r#"{"a":"inf","b":"007","c":"+1","d":"1.","e":"nul","f":"trues","g":"-","h":1e5}"#,
            ),
            (
                "a:<b>x,d:http://h:80/[}",
                r#"{"a":"<b>x","d":"http://h:80/["}"#,
            ),
            ("a:x<|\"|>y}", "! a string lacks one of its quotes"),
            ("a:\"q,\\\"}\\/\\u00e9\\n\"}", r#"{"a":"q,\"}/é\n"}"#),
            (
                " a b : 1 ,<|\"|>c:<|\"|>:2,\"d\":3}",
                r#"{"a b":1,"c:":2,"d":3}"#,
            ),
            ("日本:東京 😀,b:x}", r#"{"日本":"東京 😀","b":"x"}"#),
            ("a:\u{1b}[2J\u{9b}}", r#"{"a":"\u001b[2J\u009b"}"#),
            ("a:}", "! a value is missing"),
            ("a:,b:1}", "! a value is missing"),
            (":1}", "! a key is missing"),
            ("a}", "! a key has no colon after it"),
            (
                "a:<|\"|>x<|\"|>y}",
                "! a value is followed by neither a comma nor the closing bracket",
            ),
            (
                "a:[1,2}",
                "! a value is followed by neither a comma nor the closing bracket",
            ),
            ("a:<|\"|>open", "! the value is incomplete"),
            ("a:1", "! the value is incomplete"),
        ],
    );
    table(
        |text| arguments(FUNCTION_GEMMA, &[], text),
        &[(
            "a:<escape>x<esc</escape><escape>,n:3}",
            r#"{"a":"x<esc</escape>","n":3}"#,
        )],
    );
    table(
        |text| value(GEMMA4, text),
        &[
            ("[a,1]", r#"["a",1]"#),
            ("12 ", "12"),
            ("a b ", r#""a b""#),
            ("<|\"|>x<|\"|>,", r#""x" …"#),
            ("{}", "{}"),
        ],
    );
}

#[test]
fn what_is_certain_comes_at_once() {
    let mut literal = Literal::arguments(Notation::Python, Vec::new());
    let mut seen = Vec::new();
    for piece in ["text='He", "llo, wor", "ld', n=1", "23, b", "=[1", ", 'x"] {
        let mut out = String::new();
        assert_eq!(
            literal.push(piece, &mut out),
            LiteralProgress::More(piece.len())
        );
        seen.push(out);
    }
    assert_eq!(
        seen,
        [
            r#"{"text":"He"#,
            "llo, wor",
            r#"ld","n":1"#,
            "23",
            r#","b":[1"#,
            r#","x"#
        ]
    );
}

#[test]
fn nesting_and_length_are_bounded() {
    let most = MAX_DEPTH as usize;
    for (open, close, notation) in [
        ("[", "]", Notation::Python),
        ("(", ",)", Notation::Python),
        ("[", "]", GEMMA4),
    ] {
        let text = |n: usize| format!("{}{}", open.repeat(n), close.repeat(n));
        if close == "]" {
            assert!(feed(Literal::value(notation), &[&text(most)]).is_ok());
        }
        assert_eq!(
            feed(Literal::value(notation), &[&text(most + 1)]),
            Err("the brackets nest too deeply")
        );
    }
    let most = format!("0x{}", "f".repeat(4097));
    assert!(
        feed(Literal::value(Notation::Python), &[&most[..4098]])
            .is_ok_and(|(out, _)| out.len() == 4933)
    );
    let long = [
        format!("('{}')", "x".repeat(70_000)),
        most,
        format!("[{}]", "x".repeat(9)),
        format!("({})", " ".repeat(9)),
    ];
    let found: Vec<_> = long
        .iter()
        .map(|text| value_once(Notation::Python, text).is_err())
        .collect();
    assert_eq!(found, [true, true, true, false]);
    let wide = format!("{{a:x{}y}}", " ".repeat(5000));
    assert_eq!(value_once(GEMMA4, &wide), Err(TOO_LONG));
    assert_eq!(
        value_once(GEMMA4, &format!("[{}]", "1".repeat(5000))),
        Err(TOO_LONG)
    );
}

/// Whole and in pieces of seven bytes, since every cut of a long text takes too long.
fn value_once(notation: Notation, text: &str) -> Result<String, &'static str> {
    let whole = feed(Literal::value(notation), &[text]);
    let pieces: Vec<&str> = text
        .as_bytes()
        .chunks(7)
        .map(|c| std::str::from_utf8(c).expect("ASCII"))
        .collect();
    assert_eq!(feed(Literal::value(notation), &pieces), whole);
    whole.map(|(out, _)| out)
}

/// Text made of what the notations are made of.
fn soup() -> impl Strategy<Value = String> {
    let tokens = [
        "{", "}", "[", "]", "(", ")", ",", ":", "=", "'", "\"", "'''", "\"\"\"", "\\", "\\u",
        "\\x4", "\\ud83d", "\\12", "**{", "a", "true", "None", "r'", "12", "0x1f", "1_", ".5", "-",
        "e5", " ", "\n", "\r\n", "<|\"|>", "<|\"", "<escape>", "<", "é", "日", "😀", "\u{1b}",
        "\u{9b}", "name=", "k:",
    ];
    prop::collection::vec(prop::sample::select(tokens.to_vec()), 0..24).prop_map(|v| v.concat())
}

proptest! {
    #[test]
    fn no_text_panics_and_no_cut_shows(text in prop_oneof![soup(), any::<String>()]) {
        for notation in [Notation::Python, GEMMA4, FUNCTION_GEMMA] {
            if let Ok(out) = value(notation, &text) {
                let out = out.trim_end_matches(" …");
                prop_assert!(serde_json::from_str::<Value>(out).is_ok() || event::Raw::parse(out).is_ok(), "{out}");
            }
            if let Ok((out, _)) = read(&|| Literal::arguments(notation, vec!["p".to_owned()]), &text) {
                prop_assert!(event::Raw::parse(&out).is_ok_and(|r| r.is_object()), "{out}");
                prop_assert!(event::quoted(&out).len() >= out.len() && !out.chars().any(char::is_control), "{out}");
            }
        }
    }
}
