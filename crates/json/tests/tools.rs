//! Lists of tools in every shape.

use toolpipe_json::{ToolList, Unfit};

const SCHEMA: &str = r#"{"type": "object","required":["a"]}"#;

#[test]
fn every_shape_is_the_same_list() {
    let openai = r#"[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","required":["a"]}}}]"#;
    for entry in [
        format!(
            r#"{{"type":"function","function":{{"name":"f","description":"d","parameters":{SCHEMA}}}}}"#
        ),
        format!(r#"{{"type":"function","name":"f","description":"d","parameters":{SCHEMA}}}"#),
        format!(r#"{{"name":"f","description":"d","input_schema":{SCHEMA}}}"#),
        format!(r#"{{"type":"custom","name":"f","description":"d","input_schema":{SCHEMA}}}"#),
        format!(r#"{{"name":"f","description":"d","inputSchema":{SCHEMA},"annotations":{{}}}}"#),
        format!(
            r#"{{"functionDeclarations":[{{"name":"f","description":"d","parameters":{SCHEMA}}}]}}"#
        ),
        format!(
            r#"{{"function_declarations":[{{"name":"f","description":"d","parametersJsonSchema":{SCHEMA}}}]}}"#
        ),
        format!(
            r#"{{"toolSpec":{{"name":"f","description":"d","inputSchema":{{"json":{SCHEMA}}}}}}}"#
        ),
        format!(
            r#"{{"type":"bash_1","name":"f","description":"d","parameters":{SCHEMA},"exec":{{}}}}"#
        ),
    ] {
        for list in [
            format!("[{entry}]"),
            format!("\u{feff}{{\"tools\":[{entry}]}}"),
            format!("{{\"toolConfig\":{{\"tools\":[{entry}]}}}}"),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"tools\":[{entry}]}}}}"),
        ] {
            let t = ToolList::read_and_compile(&list).unwrap();
            assert_eq!(
                (t.names().collect::<Vec<_>>(), &*t.openai(|_| true)),
                (vec!["f"], openai),
                "{list}"
            );
            assert_eq!(
                t.iter().next().unwrap().parameters.as_deref(),
                Some(SCHEMA),
                "{list}"
            );
            assert_eq!(
                t.check("f", "{}").unwrap_err().to_string(),
                "/a: is required",
                "{list}"
            );
            assert!(t.parameters("f").is_known() && !t.parameters("g").is_known());
            assert!(
                t.check("f", r#"{"a":1}"#).is_ok() && t.check("g", "{}").is_ok() && !t.knows("F")
            );
        }
    }
}

#[test]
fn definitions_of_parameters_are_a_schema() {
    let list = |kind: &str| {
        format!(
            r#"[{{"name":"f","parameter_definitions":{{"a":{{"description":"d","type":"{kind}","required":true}},"b":{{"type":"bool"}}}}}}]"#
        )
    };
    for (kind, schema) in [
        ("str", r#""type":"string""#),
        ("int", r#""type":"integer""#),
        ("float", r#""type":"number""#),
        ("List[str]", r#""type":"array","items":{"type":"string"}"#),
        ("Dict[str, int]", r#""type":"object""#),
    ] {
        let tools = ToolList::read_and_compile(&list(kind)).unwrap();
        let want = format!(
            r#"{{"type":"object","properties":{{"a":{{{schema},"description":"d"}},"b":{{"type":"boolean"}}}},"required":["a"]}}"#
        );
        let got = tools.iter().next().unwrap().parameters.as_deref().unwrap();
        assert_eq!(got, want);
    }
    for kind in ["", "tuple", "List[", "int[str]", "List[date]"] {
        let why = ToolList::read(&list(kind)).unwrap_err().to_string();
        assert!(
            why.contains("parameter_definitions: the type") && why.contains("\"a\""),
            "{why}"
        );
    }
    let both = r#"[{"name":"f","parameters":{},"parameter_definitions":{}}]"#;
    let why = ToolList::read(both).unwrap_err().to_string();
    assert!(why.contains("two schemas"), "{why}");
}

#[test]
fn type_names_in_capitals_are_geminis() {
    let t = ToolList::read(
        r#"[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","required":["a"]}}]}]"#,
    );
    assert_eq!(
        t.unwrap().check("f", "{}").unwrap_err().to_string(),
        "/a: is required"
    );
}

#[test]
fn the_providers_own_tools_stay_as_they_are() {
    let list = r#"[{"type":"web_search"},{"name":"a","parameters":{},"strict":true},{"googleSearch": {},"codeExecution":{}},
        {"type":"custom","name":"sql"},{"type":"custom","custom":{"name":"p"}},{"urlContext":{},"functionDeclarations":[{"name":"b"}]}]"#;
    let t = ToolList::read(list).unwrap();
    assert_eq!(
        t.openai(|tool| tool.name != "b"),
        concat!(
            r#"[{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{}},"strict":true}},"#,
            r#"{"type":"web_search"},{"googleSearch":{},"codeExecution":{}},{"type":"custom","name":"sql"},"#,
            r#"{"type":"custom","custom":{"name":"p"}},{"urlContext":{}}]"#
        )
    );
    assert_eq!(t.names().collect::<Vec<_>>(), ["a", "b", "sql"]);
    assert!(t.knows("sql") && t.check("sql", "x").is_ok());
}

#[test]
fn mistakes_name_the_tool_and_the_remedy() {
    for (text, want) in [
        (
            "",
            "not JSON: EOF while parsing a value at line 1 column 0, fix it there",
        ),
        (
            r#"[{"name":"a","name":"b"}]"#,
            "the key \"name\" appears twice in one object, again at byte 13, fix it there",
        ),
        (
            "7",
            "neither an array of tools nor an object with one, write an array of tools: [{\"type\":\"function\",…}]",
        ),
        (
            "{}",
            "an object without an array of tools, write {\"tools\":[…]} or write an array of tools alone",
        ),
        (
            r#"{"mcpServers":{"git":{}}}"#,
            "mcpServers (\"git\") is for tool-exec alone, which prints the tools of the servers too: tool-exec --tools FILE --list >LIST; give LIST here",
        ),
        (
            "[1]",
            "tool 1: not an object, write {\"name\":…,\"parameters\":…}",
        ),
        (
            r#"[{"type":"web_search"},{"function":1}]"#,
            "tool 2: function is not an object",
        ),
        (
            r#"[{"functionDeclarations":{}}]"#,
            "tool 1: functionDeclarations is not an array",
        ),
        (
            r#"[{"functionDeclarations":[{"name":"a"},{}]}]"#,
            "tool 2: it has no name, add \"name\"",
        ),
        (
            r#"[{"type":"function","function":{}}]"#,
            "tool 1: it has no name, add \"name\"",
        ),
        (
            r#"[{"name":"../x"}]"#,
            "tool 1 (\"../x\"): the name must be 1 to 128 of A-Z a-z 0-9 _ . -, rename it",
        ),
        (
            r#"[{"name":"a"},{"name":"a"}]"#,
            "tool 2 (\"a\"): another tool has this name, rename one of them",
        ),
        (
            r#"[{"name":"a","parameters":[]}]"#,
            "tool 1 (\"a\"): parameters is not an object, write a JSON Schema there",
        ),
        (
            r#"[{"name":"a","parameters":{},"input_schema":{}}]"#,
            "tool 1 (\"a\"): it has two schemas, keep one of parameters and input_schema",
        ),
        (
            r#"[{"name":"a"},{"name":"b","parameters":{"$ref":"http://x/"}}]"#,
            "tool 2 (\"b\"): parameters: the schema refers to http://x/, only references inside the schema (#/…) are followed",
        ),
    ] {
        assert_eq!(
            ToolList::read_and_compile(text).unwrap_err().to_string(),
            want,
            "{text}"
        );
    }
    let t = ToolList::read(r#"[{"name":"f","parameters":{"$ref":"http://evil/"}},{"name":"g"}]"#)
        .unwrap();
    assert!(matches!(t.check("f", "{}"), Err(Unfit::Schema(_))) && t.check("g", "[]").is_ok());
}

#[test]
fn a_tool_that_cannot_be_read_does_not_take_the_others_with_it() {
    let list = r#"[{"name":"a"},{"name":"echo&log"},{"name":"a","parameters":{"required":["x"]}},7,
        {"functionDeclarations":[{"name":"b"},{}]},{"name":"c","parameters":[]},{"name":"d"}]"#;
    let t = ToolList::read_valid(list).unwrap();
    assert_eq!(t.names().collect::<Vec<_>>(), ["a", "b", "d"]);
    assert!(t.check("a", "{}").is_ok() && !t.knows("echo&log"));
    let wrong: Vec<String> = t
        .left_out()
        .iter()
        .map(|e| e.to_string().chars().take(25).collect())
        .collect();
    assert_eq!(
        wrong,
        [
            "tool 2 (\"echo&log\"): the ",
            "tool 3 (\"a\"): another too",
            "tool 4: not an object, wr",
            "tool 6: it has no name, a",
            "tool 7 (\"c\"): parameters "
        ]
    );
    assert_eq!(
        ToolList::read(list).unwrap_err().to_string(),
        t.left_out()[0].to_string()
    );
    assert!(ToolList::read_valid("7").is_err());
}

#[test]
fn a_type_that_json_schema_does_not_have_is_not_validated() {
    let list = r#"[{"name":"f","parameters":{"type":"object","required":["a"],"properties":
        {"a":{"type":"str"},"b":{"type":["int","null"]},"c":{"type":"STRING"},"type":{"type":"integer"},"d":{"enum":[{"type":"str"}]}}}}]"#;
    let t = ToolList::read_and_compile(list).unwrap();
    let schema = t.schema("f").unwrap().unwrap();
    assert_eq!(schema.unknown_types(), ["str", "int"]);
    assert!(
        t.check(
            "f",
            r#"{"a":1,"b":"x","c":"y","type":1,"d":{"type":"str"}}"#
        )
        .is_ok()
    );
    for wrong in [
        "{}",
        r#"{"a":"","c":1}"#,
        r#"{"a":"","type":"x"}"#,
        r#"{"a":"","d":{}}"#,
    ] {
        assert!(
            matches!(t.check("f", wrong), Err(Unfit::Arguments(_))),
            "{wrong}"
        );
    }
}
