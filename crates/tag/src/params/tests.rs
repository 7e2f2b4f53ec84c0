use super::*;
use crate::calls::{Context, FoundCalls, Op, Step};
use crate::dialect::params::{ParamForm, Style, Trim, Typing};
use json::ToolList;
use serde_json::{Value, json};

const EQUALS: Style = Style::Equals {
    open: "<parameter=",
    end: ">",
    close: "</parameter>",
};

const BASE: ParamForm = ParamForm {
    style: EQUALS,
    call_closers: &["</function>", "</tool_call>"],
    trim: Trim::None,
    cdata: false,
    entities: false,
    typing: Typing::Schema,
    before: "\n",
    round: "",
};

static QWEN: ParamForm = ParamForm {
    trim: Trim::OneNewline,
    round: "\n",
    ..BASE
};
static MIMO: ParamForm = BASE;
static INVOKE: ParamForm = ParamForm {
    style: Style::Attribute {
        open: &["<parameter", "<atem:parameter"],
        end: ">",
        close: &["</parameter>", "</atem:parameter>"],
        name: "name",
    },
    call_closers: &["</invoke>", "</atem:invoke>"],
    ..BASE
};
static ENTITIES: ParamForm = ParamForm {
    entities: true,
    cdata: true,
    ..INVOKE
};
static MINICPM: ParamForm = ParamForm {
    style: Style::Attribute {
        open: &["<param"],
        end: ">",
        close: &["</param>"],
        name: "name",
    },
    cdata: true,
    before: "",
    ..BASE
};
static DSML: ParamForm = ParamForm {
    style: Style::Attribute {
        open: &["<｜DSML｜ parameter"],
        end: ">",
        close: &["</｜DSML｜ parameter>"],
        name: "name",
    },
    call_closers: &["</｜DSML｜ invoke>"],
    typing: Typing::Flag("string"),
    ..BASE
};
static XTML: ParamForm = ParamForm {
    style: Style::Attribute {
        open: &["<|open|>argument"],
        end: "<|sep|>",
        close: &["<|close|>argument<|sep|>"],
        name: "key",
    },
    call_closers: &["<|close|>call<|sep|>"],
    typing: Typing::Named("type"),
    before: "",
    ..BASE
};
static GLM: ParamForm = ParamForm {
    style: Style::Pair {
        key: ("<arg_key>", "</arg_key>"),
        kind: None,
        value: ("<arg_value>", "</arg_value>"),
        gap: "\n",
    },
    call_closers: &["</tool_call>"],
    ..BASE
};
static IFM: ParamForm = ParamForm {
    style: Style::Pair {
        key: ("<ifm|arg_key>", "</ifm|arg_key>"),
        kind: Some(("<ifm|arg_type>", "</ifm|arg_type>")),
        value: ("<ifm|arg_value>", "</ifm|arg_value>"),
        gap: "",
    },
    call_closers: &["</ifm|tool_call>"],
    before: "",
    ..BASE
};
static ELEMENTS: ParamForm = ParamForm {
    style: Style::Element { prefix: "" },
    call_closers: &["</parameters>"],
    ..BASE
};
static MINIMAX: ParamForm = ParamForm {
    style: Style::Element {
        prefix: "]<]minimax[>[",
    },
    call_closers: &["]<]minimax[>[</invoke>"],
    before: "",
    ..BASE
};

/// Parameters alone: only the closers of their form follow them.
const OUTSIDE: Outside = Outside {
    before: &[],
    behind: &[],
    section: None,
    headers: &[],
};

const FORMS: [&ParamForm; 11] = [
    &QWEN, &MIMO, &INVOKE, &ENTITIES, &MINICPM, &DSML, &XTML, &GLM, &IFM, &ELEMENTS, &MINIMAX,
];

/// The tool of the tests: `s` is a string, `n` a number, and so on.
fn tools() -> ToolList {
    let point = json!({"type": "object", "properties": {"x": {"type": "integer"}, "t": {"type": "string"}}});
    let properties = json!({
        "s": {"type": "string"}, "s2": {"type": "string"}, "n": {"type": "number"}, "i": {"type": "integer"},
        "b": {"type": "boolean"}, "u": {"type": ["string", "null"]}, "o": point, "nil": {"type": "null"},
        "l": {"type": "array", "items": {"type": "integer"}}, "lo": {"type": "array", "items": point},
    });
    let schema = json!([{"name": "f", "parameters": {"type": "object", "properties": properties}}]);
    ToolList::read(&schema.to_string()).unwrap()
}

/// Gives a text to a reader as the parser does, in pieces that end at these offsets.
fn read(
    form: &'static ParamForm,
    tools: Option<&ToolList>,
    text: &str,
    cuts: impl Iterator<Item = usize>,
) -> String {
    let context = Context {
        tools,
        strict: false,
    };
    let (mut params, mut calls) = (Params::new(form, OUTSIDE, "f"), FoundCalls::default());
    let (mut from, mut step) = (0, Step::More(0));
    for end in cuts.chain([text.len()]) {
        step = params.push(&text[from..end], &context, &mut calls);
        match step {
            Step::More(taken) => from += taken,
            Step::Done(taken) => {
                from += taken;
                break;
            }
            _ => break,
        }
    }
    if let Step::More(_) = step {
        step = params.finish(&text[from..], &context, &mut calls);
        if let Step::Done(taken) = step {
            from += taken;
        }
    }
    if let Step::Back(taken) = step {
        (from, step) = (from - taken, Step::Done(0));
    }
    let mut said = String::new();
    let mut at = 0;
    for op in &calls.ops {
        match op {
            Op::Arguments(end, _) => {
                said.push_str(&calls.text[at..*end]);
                at = *end;
            }
            Op::Note(note) => said.push_str(&format!("<{}>", note.split_once(' ').unwrap().1)),
            _ => panic!("{op:?}"),
        }
    }
    match step {
        Step::Done(_) => {
            assert!(
                said.contains('<') || serde_json::from_str::<Value>(&said).is_ok(),
                "{said}"
            );
            format!("{said} | {}", &text[from..])
        }
        Step::Fail(_, why) => format!("{said} fails: {why}"),
        _ => format!("{said} …"),
    }
}

/// The outcome, which must be the same for every split.
fn outcome(form: &'static ParamForm, tools: Option<&ToolList>, text: &str) -> String {
    let whole = read(form, tools, text, std::iter::empty());
    let inner = || text.char_indices().map(|(at, _)| at).skip(1);
    for cut in inner() {
        assert_eq!(
            read(form, tools, text, [cut].into_iter()),
            whole,
            "{text} cut at {cut}"
        );
    }
    assert_eq!(
        read(form, tools, text, inner()),
        whole,
        "{text} char by char"
    );
    whole
}

#[test]
fn what_is_read() {
    let tools = tools();
    let not = "fails: neither a parameter nor the end of the call follows";
    for (form, text, expected) in [
        // Values and their types.
        (&QWEN, "\n<parameter=s>\n1\n</parameter>\n</function>x", r#"{"s":"1"} | </function>x"#.to_owned()),
        (&QWEN, "\n</function>", "{} | </function>".into()),
        (&QWEN, "</function>", "{} | </function>".into()),
        (
            &QWEN,
            "<parameter=s>\n\n a \n\n</parameter>\n<parameter=n>\n1.50\n</parameter></tool_call>",
            r#"{"s":"\n a \n","n":1.50} | </tool_call>"#.into(),
        ),
        (&QWEN, "<parameter=s>\r\na\r\n</parameter></function>", r#"{"s":"a"} | </function>"#.into()),
        (&QWEN, "<parameter=s>\ra\r</parameter></function>", r#"{"s":"\ra\r"} | </function>"#.into()),
        (&QWEN, "<parameter=s>\n</parameter></function>", r#"{"s":""} | </function>"#.into()),
        (&QWEN, "<parameter=s>\n\n</parameter></function>", r#"{"s":""} | </function>"#.into()),
        (&QWEN, "<parameter = \"s\" >a</parameter></function>", r#"{"s":"a"} | </function>"#.into()),
        (&MIMO, "<parameter=s>\na\n</parameter></function>", r#"{"s":"\na\n"} | </function>"#.into()),
        (&MIMO, "<parameter=u>null</parameter></function>", r#"{"u":null} | </function>"#.into()),
        (&MIMO, "<parameter=b> True </parameter></function>", r#"{"b":true} | </function>"#.into()),
        (
            &MIMO,
            "<parameter=i>ten</parameter><parameter=s>a</parameter></function>",
            r#"{"i":"ten"<value is not of the type that its parameter asks for and stays a string>,"s":"a"} | </function>"#
                .into(),
        ),
        (&MIMO, "<parameter=l>[1, 2]</parameter></function>", r#"{"l":[1, 2]} | </function>"#.into()),
        (&MIMO, "<parameter=o>{'t': None}</parameter></function>", r#"{"o":{"t":null}} | </function>"#.into()),
        (
            &MIMO,
            "<parameter=s>\u{1b}[0m\u{7f}\u{9b}\"\\\t日本😀é</parameter></function>",
            r#"{"s":"\u001b[0m\u007f\u009b\"\\\t日本😀é"} | </function>"#.into(),
        ),
        (
            &MIMO,
            "<parameter=zz>1</parameter><parameter=zz>2</parameter></function>",
            r#"{"zz":"1"<parameter is given twice>,"zz":"2"} | </function>"#.into(),
        ),
        // Closers in values.
        (&QWEN, "<parameter=s>\nUse </parameter> to close\n</parameter>\n</function>", {
            r#"{"s":"Use </parameter> to close"} | </function>"#.into()
        }),
        (&MIMO, "<parameter=s>a</parameter> </param</parameter></function>", {
            r#"{"s":"a</parameter> </param"} | </function>"#.into()
        }),
        (&MIMO, "<parameter=s>a </function> b<parameter=n>1</tool_call></parameter></function>", {
            r#"{"s":"a </function> b<parameter=n>1</tool_call>"} | </function>"#.into()
        }),
        (&MIMO, "<parameter=s><<</parameter></parameter></parameter>\n</function>", {
            r#"{"s":"<<</parameter></parameter>"} | </function>"#.into()
        }),
        (&MIMO, "<parameter=s>a</parameter> x <y>\n<parameter=s>\n</parameter></function>", {
            r#"{"s":"a</parameter> x <y>\n<parameter=s>\n"} | </function>"#.into()
        }),
        // Closers that are missing.
        (&QWEN, "<parameter=s>\na\n<parameter=n>\n1\n</parameter>\n</function>", {
            r#"{"s":"a","n":1} | </function>"#.into()
        }),
        (&QWEN, "<parameter=s>\na\n<parameter=zz>\n1\n</parameter>\n</function>", {
            r#"{"s":"a\n<parameter=zz>\n1"} | </function>"#.into()
        }),
        (&QWEN, "<parameter=n>\n1\n</function>", r#"{"n":1} | </function>"#.into()),
        (&QWEN, "<parameter=s>\na", r#"{"s":"a …"#.into()),
        (&QWEN, "text", format!(" {not}")),
        (&QWEN, "<parameter=>1</parameter></function>", format!(" {not}")),
        (&QWEN, "<parameter=s>1</parameter></function", r#"{"s":"1 …"#.into()),
        // Attributes.
        (&INVOKE, "<parameter name='s' x=\"1>2\">a</parameter>\n<parameter name=n>1</parameter></invoke>", {
            r#"{"s":"a","n":1} | </invoke>"#.into()
        }),
        (&INVOKE, "<atem:parameter name=\"s\">a</parameter></atem:parameter>\n</atem:invoke>", {
            r#"{"s":"a</parameter>"} | </atem:invoke>"#.into()
        }),
        (&INVOKE, "<parameter name=\"a&lt;b\">&lt;</parameter></invoke>", r#"{"a<b":"&lt;"} | </invoke>"#.into()),
        (&INVOKE, "<parameter name=\"s\"/>\n<parameter name=\"s2\"></parameter></invoke>", {
            r#"{"s":"","s2":""} | </invoke>"#.into()
        }),
        (&INVOKE, "<parameters name=\"s\">a</parameter></invoke>", format!(" {not}")),
        (&ENTITIES, "<parameter name=\"s\">a &lt;&amp;&#x1F600; &no &; & <![CDATA[&lt;]]></parameter></invoke>", {
            "{\"s\":\"a <&\u{1f600} &no &; & &lt;\"} | </invoke>".into()
        }),
        (&ENTITIES, "<parameter name=\"o\">{\"t\":<![CDATA[\"&lt;\"]]>, &quot;x&quot;:1}</parameter></invoke>", {
            r#"{"o":{"t":"&lt;", "x":1}} | </invoke>"#.into()
        }),
        (&MINICPM, "<param name=\"s\"><![CDATA[a</param></function>]]]></param></function>", {
            r#"{"s":"a</param></function>]"} | </function>"#.into()
        }),
        (&MINICPM, "<param name=\"n\"><![CDATA[1]]></param></function>", r#"{"n":1} | </function>"#.into()),
        // Types in the tag.
        (&DSML, "\n<｜DSML｜ parameter name=\"n\" string=\"true\">1</｜DSML｜ parameter>\n</｜DSML｜ invoke>", {
            r#"{"n":"1"} | </｜DSML｜ invoke>"#.into()
        }),
        (&DSML, "<｜DSML｜ parameter name=\"s\" string=\"false\">[1, {}]</｜DSML｜ parameter></｜DSML｜ invoke>", {
            r#"{"s":[1, {}]} | </｜DSML｜ invoke>"#.into()
        }),
        (&DSML, "<｜DSML｜ parameter name=\"l\">[1]</｜DSML｜ parameter></｜DSML｜ invoke>", {
            r#"{"l":[1]} | </｜DSML｜ invoke>"#.into()
        }),
        (
            &XTML,
            "<|open|>argument key=\"q\" type=\"number\"<|sep|>1.0<|close|>argument<|sep|><|open|>argument \
             key=\"a&amp;&quot;\" type=\"string\"<|sep|>1<|close|>argument<|sep|><|close|>call<|sep|>",
            r#"{"q":1.0,"a&\"":"1"} | <|close|>call<|sep|>"#.into(),
        ),
        (
            &XTML,
            "<|open|>argument key=\"q\" type=\"object\"<|sep|>{<|close|>argument<|sep|><|close|>call<|sep|>",
            r#"{"q":"{"<value is not of the type that its parameter asks for and stays a string>} | <|close|>call<|sep|>"#
                .into(),
        ),
        // Pairs.
        (&GLM, "\n<arg_key>s</arg_key>\n<arg_value>1\n</arg_value>\n<arg_key>n</arg_key><arg_value>1</arg_value></tool_call>", {
            r#"{"s":"1\n","n":1} | </tool_call>"#.into()
        }),
        (&GLM, "<arg_key>s</arg_key><arg_value>a</arg_value><arg_key>x</arg_value></tool_call>", {
            "{\"s\":\"a</arg_value><arg_key>x\"} | </tool_call>".into()
        }),
        (
            &IFM,
            "<ifm|arg_key>q</ifm|arg_key><ifm|arg_type>integer</ifm|arg_type><ifm|arg_value>1</ifm|arg_value>\
             <ifm|arg_key>n</ifm|arg_key><ifm|arg_value>2</ifm|arg_value></ifm|tool_call>",
            r#"{"q":1,"n":2} | </ifm|tool_call>"#.into(),
        ),
        // Elements.
        (&ELEMENTS, "\n<s>a<b>1</b></s>\n<n>1</n>\n</parameters>", r#"{"s":"a<b>1</b>","n":1} | </parameters>"#.into()),
        (&ELEMENTS, "<s><p>x</s><p>y</p></s><n>1</n></parameters>", {
            r#"{"s":"<p>x</s><p>y</p>","n":1} | </parameters>"#.into()
        }),
        (&ELEMENTS, "<o>\n<x>1</x>\n<t> <x>2</x></t>\n</o>\n<l><item>1</item><item>2</item></l></parameters>", {
            r#"{"o":{"x":1,"t":" <x>2</x>"},"l":[1,2]} | </parameters>"#.into()
        }),
        (&ELEMENTS, "<o>{\"x\": 1}</o><l></l></parameters>", r#"{"o":{"x": 1},"l":[]} | </parameters>"#.into()),
        (&ELEMENTS, "<s>a\n<n>1</n></parameters>", r#"{"s":"a\n","n":1} | </parameters>"#.into()),
        (
            &MINIMAX,
            "]<]minimax[>[<lo>]<]minimax[>[<item>]<]minimax[>[<x>1]<]minimax[>[</x>]<]minimax[>[</item>\
             ]<]minimax[>[</lo>]<]minimax[>[<s>]<]</s>]<]minimax[>[</s>]<]minimax[>[</invoke>",
            r#"{"lo":[{"x":1}],"s":"]<]</s>"} | ]<]minimax[>[</invoke>"#.into(),
        ),
    ] {
        assert_eq!(outcome(form, Some(&tools), text), expected, "{text}");
    }
}

#[test]
fn nothing_is_known_of_the_tool() {
    for (form, text, expected) in [
        (
            &QWEN,
            "<parameter=a>\n1\n<parameter=b>\nnull\n</function>",
            r#"{"a":"1","b":"null"} | </function>"#,
        ),
        (
            &DSML,
            "<｜DSML｜ parameter name=\"a\" string=\"false\">1</｜DSML｜ parameter></｜DSML｜ invoke>",
            { r#"{"a":1} | </｜DSML｜ invoke>"# },
        ),
        (
            &ELEMENTS,
            "<a>\n<b>1</b>\n</a><c>2</c></parameters>",
            r#"{"a":"\n<b>1</b>\n","c":"2"} | </parameters>"#,
        ),
    ] {
        assert_eq!(outcome(form, None, text), expected, "{text}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    let tools = tools();
    for arguments in [
        json!({}),
        json!({"s": "", "s2": "a\nb  "}),
        json!({"s": "\n\n", "u": "x", "n": 1.5}),
        json!({"n": 1, "b": false, "nil": null, "l": [1, 2], "lo": [{"x": 1, "t": "<x>"}], "o": {"x": 3, "t": ""}}),
        json!({"s": "日本 <b>&amp;</b> \"q\" \u{1b}", "o": {"a b": 1}, "l": []}),
    ] {
        for form in FORMS {
            let mut text = String::new();
            form.write(arguments.as_object().unwrap(), &mut text);
            let closer = form.call_closers[0];
            text.push_str(closer);
            let said = outcome(form, Some(&tools), &text);
            let json = said
                .strip_suffix(&format!(" | {closer}"))
                .unwrap_or_else(|| panic!("{text}: {said}"));
            let value: Value = serde_json::from_str(json).unwrap_or_else(|e| panic!("{said}: {e}"));
            assert_eq!(value, arguments, "{text}");
        }
    }
}

#[test]
fn a_head_that_never_ends_is_text() {
    let long = "x".repeat(5000);
    let text = format!(
        "<parameter=s>a</parameter><parameter name=\"{long}\n<parameter={long}</parameter></function>"
    );
    let expected = format!(
        "{{\"s\":\"a</parameter><parameter name=\\\"{long}\\n<parameter={long}\"}} | </function>"
    );
    let tools = tools();
    for pieces in [text.len(), 4096, 997, 64] {
        let cuts = (1..text.len() / pieces).map(|n| n * pieces);
        assert_eq!(read(&MIMO, Some(&tools), &text, cuts), expected);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    /// No text makes it panic, and splits do not show.
    #[test]
    fn any_mixture_of_markers(form in 0..FORMS.len(), known: bool, words in proptest::collection::vec(0usize..40, 0..24)) {
        let form = FORMS[form];
        let mut parts = vec![
            "a", "1", "\n", "\r", "\r\n", " ", "<", ">", "</", "]", "]]>", "<![CDATA[", "&lt;", "&", "\"", "'", "{", "é", "😀", "/>",
            "\u{85}", "=", "s", "n", "<s>", "<o>",
        ];
        parts.extend(form.call_closers);
        let mut written = String::new();
        form.write(json!({"s": "x", "n": 1}).as_object().unwrap(), &mut written);
        parts.push(&written);
        match form.style {
            Style::Equals { open, end, close } => parts.extend([open, end, close, "<parameter=s>"]),
            Style::Attribute { open, end, close, name } => parts.extend([open[0], end, close[0], name]),
            Style::Pair { key, value, .. } => parts.extend([key.0, key.1, value.0, value.1]),
            Style::Element { prefix } => parts.extend([prefix, "</s>", "</o>"]),
        }
        let start = written.find('x').unwrap_or_default();
        let text: String = std::iter::once(&written[..start]).chain(words.iter().map(|n| parts[n % parts.len()])).collect();
        let tools = tools();
        outcome(form, known.then_some(&tools), &text);
    }
}
