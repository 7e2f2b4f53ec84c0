//! Schemas, and what does not fit them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use event::Raw;
use serde_json::{Value, json};
use toolpipe_json::Schema;

fn schema(v: Value) -> Schema {
    Schema::new(&v.to_string()).unwrap()
}

fn says(s: &Schema, arguments: &str) -> String {
    s.check(arguments)
        .map_or_else(|e| e.to_string(), |()| String::new())
}

#[test]
fn messages_say_what_to_do() {
    let s = schema(
        json!({"type":"object","properties":{"city":{"type":"string","minLength":1},"days":{"type":"integer","maximum":14},
        "unit":{"enum":["C","F"]},"at":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["city"],"additionalProperties":false}),
    );
    for (arguments, want) in [
        (r#"{"city":"Paris","days":3}"#, ""),
        ("{}", "/city: is required"),
        (r#"{"city":7}"#, "/city: must be string, not 7"),
        (
            r#"{"city":"P","days":"three"}"#,
            "/days: must be integer, not \"three\"",
        ),
        (
            r#"{"city":"P","days":12345678901234567890123}"#,
            "/days: value is greater than the maximum of 14, given 12345678901234567890123",
        ),
        (
            r#"{"city":"P","unit":"K"}"#,
            "/unit: must be one of [\"C\",\"F\"], not \"K\"",
        ),
        (
            r#"{"city":"P","at":1}"#,
            "/at: fits none of the allowed forms (must be string, not 1; or must be null, not 1)",
        ),
        (
            r#"{"city; echo X; :":"x","city":"P"}"#,
            "/city; echo X; :: is not a parameter, known are city, days, unit, at",
        ),
        (
            r#"{"city":"P","city":"Q"}"#,
            "the key \"city\" appears twice in one object, again at byte 12",
        ),
        ("[]", "must be object, not []"),
        (r#"{"city":"P","days":null,"unit":null,"at":null}"#, ""),
        (r#"{"city":null,"unit":null}"#, "/city: is required"),
        (
            r#"{"city":"P","other":null}"#,
            "/other: is not a parameter, known are city, days, unit, at",
        ),
        (
            r#"{"city":""}"#,
            "/city: value is shorter than 1 character, given \"\"",
        ),
        ("{", "not valid JSON: no key in quotes at byte 1"),
    ] {
        assert_eq!(says(&s, arguments), want, "{arguments}");
    }
    let long = says(&s, &format!("{{\"city\":[\"{}\"]}}", "é".repeat(100_000)));
    assert!(long.len() < 300 && long.ends_with("…"), "{long}");
}

#[test]
fn integers_keep_their_digits() {
    let s = schema(json!({"properties":{"n":{"type":"integer"}}}));
    for ok in ["9007199254740993", "12345678901234567890123", "-0", "1.0"] {
        assert_eq!(says(&s, &format!("{{\"n\":{ok}}}")), "", "{ok}");
    }
    assert_ne!(says(&s, "{\"n\":1.5}"), "");
    assert_eq!(says(&s, "{\"n\":1e400}"), "a number out of range at byte 5");
    let s = schema(json!({"properties":{"n":{"const": 9007199254740993_i64}}}));
    assert_eq!(says(&s, "{\"n\":9007199254740993}"), "");
    assert_ne!(says(&s, "{\"n\":9007199254740992}"), "");
}

#[test]
fn hostile_schemas_are_bounded() {
    let refused = |v: Value| Schema::new(&v.to_string()).unwrap_err().to_string();
    assert!(refused(json!({"$ref":"http://evil/x"})).contains("http://evil/x"));
    assert!(
        refused(json!({"properties":{"a":{"$ref":"file:///etc/passwd"}}}))
            .contains("only references inside")
    );
    assert!(refused(json!({"anyOf": vec![json!({"type":"string"}); 1 << 16]})).contains("10,000"));
    assert!(Schema::new(&"{\"not\":".repeat(10_000)).is_err());
    assert!(
        Schema::new(&("{\"not\":".repeat(100) + "{}" + &"}".repeat(100)))
            .unwrap_err()
            .to_string()
            .contains("64")
    );
    let s = schema(json!({"properties":{"a":{"pattern":"^(a+)+$"}}}));
    assert_ne!(says(&s, &format!("{{\"a\":\"{}!\"}}", "a".repeat(50))), "");
    // A property of that name is not a reference.
    assert_eq!(
        says(
            &schema(json!({"properties":{"$ref":{"type":"string"}}})),
            r#"{"$ref":"http://x"}"#
        ),
        ""
    );
}

#[test]
fn what_refers_to_itself_ends() {
    let n = json!({"anyOf":[{"items":{"$ref":"#/$defs/n"},"minItems":1},{"items":{"$ref":"#/$defs/n"},"minItems":1}]});
    let s = schema(json!({"$defs":{"n":n},"properties":{"a":{"$ref":"#/$defs/n"}}}));
    let deep = "{\"a\":".to_owned() + &"[".repeat(100) + &"]".repeat(100) + "}";
    assert!(says(&s, &deep).contains("too involved"));
    // A schema in a row takes stack at each level of a deep value: few fit, and many are refused.
    let rows = |n: usize| {
        let next = |i| {
            let target = format!("#/$defs/d{}", i + 1);
            (format!("d{i}"), json!({"allOf":[{"$ref":target}]}))
        };
        let mut defs: serde_json::Map<_, _> = (0..n).map(next).collect();
        let last = json!({"type":"array","items":{"$ref":"#/$defs/d0"}});
        defs.insert(format!("d{n}"), last);
        schema(json!({"$defs":defs,"properties":{"a":{"$ref":"#/$defs/d0"}}}))
    };
    let deep = |leaf: &str| format!("{{\"a\":{}{leaf}{}}}", "[".repeat(110), "]".repeat(110));
    assert_eq!(says(&rows(3), &deep("")), "");
    let path = "/a".to_owned() + &"/0".repeat(110);
    let fault = says(&rows(3), &deep("7"));
    assert_eq!(fault, format!("{path}: must be array, not 7"));
    assert!(says(&rows(22), &deep("")).contains("too complex"));
}

/// `n` schemas, each of which `make` builds from two references to the next; the last is `leaf`.
fn pairs(n: usize, leaf: Value, make: impl Fn(Value) -> Value) -> Schema {
    let mut defs = serde_json::Map::new();
    for i in 0..n {
        let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
        defs.insert(format!("d{i}"), make(next));
    }
    defs.insert(format!("d{n}"), leaf);
    schema(json!({"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":defs}))
}

#[test]
fn pairs_of_references_do_not_multiply() {
    let items =
        |n: usize, leaf: &str| format!("{{\"a\":{}{leaf}{}}}", "[".repeat(n), "]".repeat(n));
    let text = || json!({"type":"string"});
    let alternatives = |next: Value| json!({"anyOf":[{"items":next},{"items":next}]});
    let s = pairs(30, text(), alternatives);
    assert_eq!(says(&s, &items(30, "\"x\"")), "");
    assert!(says(&s, &items(30, "7")).contains("too involved"));
    // In a row they do, and the steps are limited.
    let s = pairs(22, text(), |next| json!({"anyOf":[next,next]}));
    let long = format!("{{\"a\":{}}}", "7".repeat(10));
    assert!(says(&s, &long).contains("too "), "{}", says(&s, &long));
    // Many parts, each with many alternatives.
    let mut many = vec![json!({"type":"null"}); 1_000];
    many.push(text());
    let wide = schema(json!({"items":{"anyOf":many}}));
    let list = |n: usize| json!(vec!["x"; n]).to_string();
    assert_eq!(says(&wide, &list(300)), "");
    assert!(says(&wide, &list(10_000)).contains("too complex for so many values"));
    let plain =
        schema(json!({"items":{"type":"string","minLength":1,"maxLength":9,"enum":["y","x"]}}));
    assert_eq!(says(&plain, &list(300_000)), "");
    // A long text with a long pattern.
    let s = schema(json!({"items":{"pattern":"^(?:a|b|c){1,500}$"}}));
    assert!(says(&s, &json!(["d".repeat(500)]).to_string()).contains("does not match"));
    let long = json!(["d".repeat(200_000)]).to_string();
    assert!(says(&s, &long).contains("too complex for so many values"));
}

#[test]
fn what_multiplies_is_bounded() {
    let list = || json!({"uniqueItems":true});
    let items =
        |n: usize, leaf: &str| format!("{{\"a\":{}{leaf}{}}}", "[".repeat(n), "]".repeat(n));
    let alternatives = |next: Value| json!({"anyOf":[{"items":next},{"items":next}]});
    let s = pairs(30, list(), alternatives);
    assert_eq!(says(&s, "{\"a\":[[[]]]}"), "");
    assert!(says(&s, &items(30, "[1,1]")).contains("too involved"));
    // Each pair of a part and a value is looked at once.
    for (make, want) in [
        (
            (|next| json!({"if":next,"then":next,"else":next})) as fn(Value) -> Value,
            "",
        ),
        (
            |next| json!({"not":{"anyOf":[next,next,next]}}),
            "/a: value fits what is not allowed: {",
        ),
        (
            |next| json!({"dependentSchemas":{"a":next,"b":next,"c":next}}),
            "",
        ),
        (
            |next| json!({"allOf":[next],"unevaluatedProperties":false}),
            "/a/a: is not a parameter",
        ),
    ] {
        let said = says(&pairs(15, list(), make), r#"{"a":{"a":1}}"#);
        let fits = want.is_empty() && said.is_empty();
        assert!(fits || !want.is_empty() && said.starts_with(want), "{said}");
    }
    // Below a list or an object.
    for make in [
        (|next| json!({"patternProperties":{"^x":next,"x$":next}})) as fn(Value) -> Value,
        |next| json!({"additionalProperties":next,"unevaluatedProperties":next,"properties":{"y":{}}}),
    ] {
        let s = pairs(30, list(), make);
        let deep = "{\"x\":".repeat(30) + "1" + &"}".repeat(30);
        assert_eq!(says(&s, &format!("{{\"a\":{deep}}}")), "");
    }
    // What is evaluated takes stack, too.
    let s = schema(
        json!({"$defs":{"n":{"allOf":[{"allOf":[{"allOf":[{"items":{"$ref":"#/$defs/n"}}]}]}],
        "unevaluatedItems":false}},"properties":{"a":{"$ref":"#/$defs/n"}}}),
    );
    let said = says(&s, &items(110, ""));
    assert!(said.is_empty() || said.contains("too "), "{said}");
}

#[test]
fn a_schema_that_is_not_valid_is_refused() {
    let refused = |v: Value| Schema::new(&v.to_string()).unwrap_err().to_string();
    assert_eq!(
        refused(json!({"properties":{"a":{"pattern":"(?:a{1000}){1000}"}}})),
        "the schema is not valid: /properties/a/pattern: \"(?:a{1000}){1000}\" is too large, is not valid in ECMA-262, \
         or has look-around, a back-reference or a surrogate escape (\\ud83d)"
    );
    for wrong in [
        json!({"pattern":"^(?=a)b"}),
        json!({"pattern":r"\ud83d\ude00"}),
        json!({"pattern":"a{1000}{1000}"}),
        json!({"type":7}),
        json!({"type":[]}),
        json!({"type":["string","string"]}),
        json!({"required":"a"}),
        json!({"required":["a","a"]}),
        json!({"enum":"a"}),
        json!({"properties":[]}),
        json!({"properties":{"a":"string"}}),
        json!({"items":7}),
        json!({"anyOf":[]}),
        json!({"minLength":-1}),
        json!({"minimum":"1"}),
        json!({"multipleOf":0}),
        json!({"description":7}),
        json!({"$ref":"#/nope"}),
        json!({"not":7}),
        json!({"uniqueItems":1}),
        json!({"dependentRequired":{"a":"b"}}),
        json!({"exclusiveMinimum":true}),
        json!({"$schema":"https://example.org/other"}),
        json!({"$defs":7}),
        json!(7),
    ] {
        let why = refused(wrong.clone());
        assert!(
            why.starts_with("the schema is not valid: "),
            "{wrong}: {why}"
        );
    }
    assert_eq!(
        refused(json!({"properties":{"a":{"type":"string","minLength":"x"}}})),
        "the schema is not valid: /properties/a/minLength: cannot be \"x\""
    );
    assert_eq!(
        refused(json!({"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"items":7}}})),
        "the schema is not valid: /$defs/b/items: cannot be 7"
    );
    assert_eq!(
        refused(
            json!({"properties":{"a":{"$ref":"#x"}},"$defs":{"b":{"$anchor":"x"},"c":{"$anchor":"x"}}})
        ),
        "the schema is not valid: /properties/a/$ref: \"#x\" leads to 2 parts of the schema, not to one"
    );
}

#[test]
fn rare_keywords_say_what_does_not_fit() {
    let s = schema(
        json!({"properties":{"tags":{"uniqueItems":true,"contains":{"const":1},"maxContains":2},
        "x-1":{},"n":{"not":{"const":0}}},"patternProperties":{"^x-":{"type":"integer"}},"additionalProperties":false,
        "if":{"required":["n"]},"then":{"required":["tags"]},"dependentRequired":{"x-2":["x-1"]}}),
    );
    for (arguments, want) in [
        (r#"{"tags":[1,{"a":1.0}],"x-1":2,"x-2":3,"n":1}"#, ""),
        (
            r#"{"tags":[1,{"a":1.0},{"a":1}]}"#,
            "/tags: value has an item twice, given [1,{\"a\":1.0},{\"a\":1}]",
        ),
        (
            r#"{"tags":[2]}"#,
            "/tags: value has 0 items of a kind of which it needs at least 1 and at most 2, given [2]",
        ),
        (r#"{"n":1}"#, "/tags: is required"),
        (r#"{"x-2":3}"#, "/x-1: is required"),
        (r#"{"x-1":"a"}"#, "/x-1: must be integer, not \"a\""),
        (
            r#"{"y":1}"#,
            "/y: is not a parameter, known are tags, x-1, n",
        ),
        (
            r#"{"tags":[1],"n":0}"#,
            "/n: value fits what is not allowed: {\"const\":0}, given 0",
        ),
    ] {
        assert_eq!(says(&s, arguments), want, "{arguments}");
    }
}

#[test]
fn the_drafts_differ_beside_a_reference() {
    let of = |draft: &str| {
        json!({"$schema":draft,"properties":{"a":{"$ref":"#/definitions/t","maxLength":1}},
            "definitions":{"t":{"type":"string"}}})
    };
    let seven = schema(of("http://json-schema.org/draft-07/schema#"));
    let latest = schema(of("https://json-schema.org/draft/2020-12/schema"));
    assert_eq!(says(&seven, r#"{"a":"xyz"}"#), "");
    assert_eq!(
        says(&latest, r#"{"a":"xyz"}"#),
        "/a: value is longer than 1 character, given \"xyz\""
    );
}

#[test]
fn other_spellings() {
    let s = schema(
        json!({"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true,"enum":["x"]}}}),
    );
    assert_eq!(says(&s, r#"{"a":"x"}"#) + &says(&s, r#"{"a":null}"#), "");
}

#[test]
fn undeclared_keys() {
    let find = |s: Value, a: &str| schema(s).undeclared(Raw::parse(a).unwrap());
    let p = json!({"properties":{"a":{}}});
    assert_eq!(
        find(p.clone(), r#"{"a":1,"city; echo X; :":2}"#).as_deref(),
        Some("city; echo X; :")
    );
    assert_eq!(find(p, r#"{"a":1}"#), None);
    assert_eq!(
        find(
            json!({"properties":{"a":{}},"additionalProperties":true}),
            r#"{"b":1}"#
        ),
        None
    );
    assert_eq!(find(json!({"type":"object"}), r#"{"b":1}"#), None);
}

#[test]
fn a_member_is_always_there_if_it_is_required_and_may_not_be_null() {
    let text = json!({"type":"string"});
    let of = |more: Value| {
        let mut all =
            json!({"type":"object","properties":{"a":text,"b":text},"required":["b","a"]});
        all.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        schema(all).always_has("a")
    };
    assert!(of(json!({})));
    assert!(!of(json!({"required":["b"]})));
    for a in [
        json!({}),
        json!({"type":["string","null"]}),
        json!({"type":"STRING","nullable":true}),
        json!({"enum":["x",null]}),
        json!(true),
    ] {
        assert!(!of(json!({"properties":{"a":a}})), "{a}");
    }
    for a in [
        json!({"enum":["x"]}),
        json!({"type":"INTEGER"}),
        json!({"$ref":"#/properties/b"}),
        json!({"const":1}),
    ] {
        assert!(of(json!({"properties":{"a":a,"b":text}})), "{a}");
    }
    // A condition may not hold.
    let other = json!({"properties":{"a":text}});
    let condition = json!({"required":["c"]});
    assert!(!of(json!({"properties":{},"if":condition,"else":other})));
    assert!(!of(json!({"properties":{},"dependentSchemas":{"a":other}})));
    assert!(!of(
        json!({"properties":{},"anyOf":[other, {"required":["c"]}]})
    ));
    assert!(of(json!({"properties":{},"allOf":[other]})));
    let inner = json!({"type":"object","properties":{"a":text},"required":["a"]});
    assert!(schema(json!({"$ref":"#/$defs/inner","$defs":{"inner":inner}})).always_has("a"));
}

#[test]
fn what_was_encoded_twice_is_unwrapped_where_the_schema_says_so() {
    let s = schema(
        json!({"$defs":{"tags":{"type":"array","items":{"type":"object"}}},
        "properties":{"tags":{"$ref":"#/$defs/tags"},"text":{"type":"string"},"any":{},"o":{"type":["object","null"]}},"required":["tags"]}),
    );
    let r = s.coerce(r#"{"text":"[1]","tags":"[\"{}\"]","any":"{}","o":"{\"x\":\"[1]\"}"}"#);
    assert_eq!(r, None, "what fits only halfway is left alone");
    let r = s
        .coerce(r#"{"text":"[1]","tags":"[{}]","any":"{}","o":"{\"x\":\"[1]\"}"}"#)
        .unwrap();
    assert_eq!(
        r.text,
        r#"{"text":"[1]","tags":[{}],"any":"{}","o":{"x":"[1]"}}"#
    );
    assert_eq!(
        r.repairs
            .iter()
            .map(|r| (r.offset, r.kind.name()))
            .collect::<Vec<_>>(),
        [(21, "double_encoded"), (43, "double_encoded")]
    );
    assert_eq!(
        s.coerce(r#"{"tags":["{}"]}"#).unwrap().text,
        r#"{"tags":[{}]}"#
    );
    assert_eq!(s.coerce(r#"{"tags":[]}"#), None);
}

#[test]
fn the_keys_whose_strings_may_be_unpacked() {
    let s = schema(json!({
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "name": {"type": "string"}}}},
        "properties": {
            "list": {"type": "array", "items": {"type": "string"}},
            "rows": {"items": {"type": "array"}},
            "either": {"type": ["object", "string"]},
            "maybe": {"anyOf": [{"type": "object"}, {"type": "null"}]},
            "open": {},
            "tree": {"$ref": "#/$defs/node"}}}));
    let mut keys: Vec<_> = s.unpacked().iter().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["list", "maybe", "next", "rows", "tree"]);
}
