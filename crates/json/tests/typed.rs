//! Bare text as JSON by the type that a schema gives it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use serde_json::Value;
use toolpipe_json::{Conversion, JsonType, ValueType};

fn json(schema: &str, text: &str) -> String {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let mut out = String::new();
    match ValueType::new(&schema).convert(text, &mut out) {
        Conversion::Fits => out,
        Conversion::Misfit => format!("misfit {out}"),
    }
}

#[test]
fn what_a_text_becomes() {
    for (schema, text, expected) in [
        // Strings keep their bytes.
        (r#"{"type":"string"}"#, "02134", r#""02134""#),
        (r#"{"type":"string"}"#, " true\n", r#"" true\n""#),
        (r#"{"type":"STRING"}"#, "null", r#""null""#),
        (r#"{"enum":["1","2"]}"#, "1", r#""1""#),
        (r#"{}"#, "5", r#""5""#),
        ("true", "5", r#""5""#),
        (r#"{"type":"whatever"}"#, "5", r#""5""#),
        // Null.
        (r#"{"type":["string","null"]}"#, " None ", "null"),
        (r#"{"type":"string","nullable":true}"#, "null", "null"),
        (r#"{"type":["string","null"]}"#, " nil ", r#"" nil ""#),
        (r#"{"type":"integer"}"#, "null", "null"),
        (r#"{"type":["string","integer"]}"#, "null", r#""null""#),
        (r#"{"enum":[null,"a"]}"#, "null", "null"),
        // Booleans.
        (r#"{"type":"boolean"}"#, "True", "true"),
        (r#"{"type":"BOOLEAN"}"#, "\nfalse\n", "false"),
        (r#"{"type":"boolean"}"#, "yes", r#"misfit "yes""#),
        (r#"{"type":"boolean"}"#, "1", r#"misfit "1""#),
        // Numbers, digit for digit.
        (r#"{"type":"integer"}"#, " 42\n", "42"),
        (r#"{"type":"integer"}"#, "5.0", "5.0"),
        (r#"{"type":"integer"}"#, "5.5", r#"misfit "5.5""#),
        (r#"{"type":"integer"}"#, "5e2", "5e2"),
        (
            r#"{"type":"number"}"#,
            "12345678901234567890.10",
            "12345678901234567890.10",
        ),
        (r#"{"type":"number"}"#, "-1e-400", "-1e-400"),
        (r#"{"type":"number"}"#, "+5", r#"misfit "+5""#),
        (r#"{"type":"integer"}"#, "05", r#"misfit "05""#),
        (r#"{"type":"integer"}"#, "0x1", r#"misfit "0x1""#),
        (r#"{"type":"number"}"#, "NaN", r#"misfit "NaN""#),
        (r#"{"type":"number"}"#, "", r#"misfit """#),
        (r#"{"const":3}"#, "3", "3"),
        (r#"{"enum":["auto",1,2.5]}"#, "2.5", "2.5"),
        (r#"{"enum":["auto",1]}"#, "auto", r#""auto""#),
        // A string is what no other type fits, whatever the order.
        (r#"{"type":["integer","string"]}"#, "5", "5"),
        (r#"{"type":["integer","string"]}"#, "05", r#""05""#),
        (r#"{"type":["string","integer"]}"#, "5", "5"),
        (r#"{"type":["string","integer"]}"#, "05", r#""05""#),
        (r#"{"type":["string","integer"]}"#, "5.5", r#""5.5""#),
        (
            r#"{"type":["string","integer"]}"#,
            " five\n",
            r#"" five\n""#,
        ),
        (r#"{"type":["string","number","null"]}"#, "5.50", "5.50"),
        (r#"{"type":["string","boolean"]}"#, "false", "false"),
        (
            r#"{"type":["string","object"]}"#,
            r#"{"a":1}"#,
            r#"{"a":1}"#,
        ),
        (r#"{"type":["string","object"]}"#, "{nope", r#""{nope""#),
        (r#"{"type":["string","array"]}"#, "[1, 'a']", r#"[1,"a"]"#),
        (
            r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#,
            "5",
            "5",
        ),
        (
            r#"{"oneOf":[{"type":"string"},{"type":"object"},{"type":"null"}]}"#,
            "{}",
            "{}",
        ),
        (
            r#"{"oneOf":[{"type":"string"},{"type":"object"},{"type":"null"}]}"#,
            "null",
            "null",
        ),
        (
            r#"{"anyOf":[{"type":"string"},{"type":["string","integer"]}]}"#,
            "7",
            "7",
        ),
        (
            r##"{"anyOf":[{"type":"string"},{"$ref":"#/$defs/n"}],"$defs":{"n":{"type":"integer"}}}"##,
            "7",
            "7",
        ),
        (
            r#"{"type":["string","integer"],"enum":["1","2"]}"#,
            "1",
            r#""1""#,
        ),
        (
            r#"{"type":"string","anyOf":[{"type":"integer"},{"minLength":1}]}"#,
            "7",
            r#""7""#,
        ),
        // Anything, or null.
        (r#"{"anyOf":[{},{"type":"null"}]}"#, "null", "null"),
        (r#"{"anyOf":[{},{"type":"null"}]}"#, " 5", r#"" 5""#),
        (
            r#"{"anyOf":[{"type":"integer"},{"type":"null"}]}"#,
            "null",
            "null",
        ),
        (
            r#"{"anyOf":[{"type":"integer"},{"type":"null"}]}"#,
            "7",
            "7",
        ),
        (
            r#"{"oneOf":[{"type":"boolean"},{"type":"string"}]}"#,
            "False",
            "false",
        ),
        (r#"{"anyOf":[{"type":"integer"},{}]}"#, "7", "7"),
        (
            r#"{"allOf":[{"type":["string","number"]},{"type":"integer"}]}"#,
            "7",
            "7",
        ),
        (r#"{"type":"number","enum":[1,2]}"#, "2", "2"),
        // References.
        (
            r##"{"$ref":"#/$defs/n","$defs":{"n":{"type":"integer"}}}"##,
            "7",
            "7",
        ),
        (
            r##"{"$ref":"#/$defs/n","$defs":{"n":{"$ref":"#/$defs/n"}}}"##,
            "7",
            r#""7""#,
        ),
        (r##"{"$ref":"#"}"##, "7", r#""7""#),
        (r##"{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}"##, "7", r#""7""#),
        (r#"{"$ref":"http://x/"}"#, "7", r#""7""#),
        // Objects and arrays.
        (
            r#"{"type":"object"}"#,
            " {\"a\": 1.50,\n \"b\":[]} ",
            "{\"a\": 1.50,\n \"b\":[]}",
        ),
        (r#"{"properties":{"a":{}}}"#, r#"{"a":1}"#, r#"{"a":1}"#),
        (r#"{"items":{"type":"integer"}}"#, "[1, 2]", "[1, 2]"),
        (r#"{"type":"array"}"#, "a, b", r#"misfit "a, b""#),
        (r#"{"type":"array"}"#, r#"{"a":1}"#, r#"misfit "{\"a\":1}""#),
        (
            r#"{"type":"object"}"#,
            "{'a': True, 'b': None, 'c': (1, 2)}",
            r#"{"a":true,"b":null,"c":[1,2]}"#,
        ),
        (
            r#"{"type":"object"}"#,
            "{\"a\": \"1\n2\t3\"}",
            r#"{"a": "1\n2\t3"}"#,
        ),
        (
            r#"{"type":"array"}"#,
            r#"['it\'s', "a\x41", 'say "x"']"#,
            r#"["it's","aA","say \"x\""]"#,
        ),
        (
            r#"{"type":"object"}"#,
            r#"{"a": 1"#,
            r#"misfit "{\"a\": 1""#,
        ),
        (
            r#"{"type":"object"}"#,
            "{'a': f(1)}",
            r#"misfit "{'a': f(1)}""#,
        ),
        (r#"{"type":["object","string"]}"#, "{nope", r#""{nope""#),
    ] {
        assert_eq!(json(schema, text), expected, "{schema} {text:?}");
    }
}

#[test]
fn parts_of_a_schema() {
    let schema = serde_json::json!({
        "$defs": {"p": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        "properties": {
            "b": {"type": "string"},
            "a": {"anyOf": [{"$ref": "#/$defs/p"}, {"type": "null"}]},
            "l": {"type": "array", "items": {"$ref": "#/$defs/p"}},
            "m": {"type": "object", "additionalProperties": {"type": "number"}},
        },
        "allOf": [{"properties": {"c": {"type": "boolean"}, "b": {"minLength": 1}}}],
    });
    let t = ValueType::new(&schema);
    assert_eq!(t.keys().collect::<Vec<_>>(), ["b", "a", "l", "m", "c"]);
    assert!(t.declares("c") && !t.declares("x"));
    assert!(
        t.property("b").only_string()
            && t.property("zz").only_string()
            && !t.property("zz").is_known()
    );
    assert!(!t.property("a").property("x").only_string());
    assert!(t.property("a").allows(JsonType::Object) && !t.property("a").allows(JsonType::String));
    assert!(
        t.property("l")
            .items()
            .property("x")
            .allows(JsonType::Integer)
    );
    assert!(
        !t.property("l")
            .items()
            .property("x")
            .allows(JsonType::Number)
    );
    assert!(t.property("m").property("any").allows(JsonType::Integer));
    assert!(ValueType::default().allows(JsonType::Null) && ValueType::default().only_string());
}
