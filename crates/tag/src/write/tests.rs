//! Two calls in every dialect, `f` with one argument and `g` with none, as its models write them.

use super::*;

const CALLS: [PromptCall<'static>; 2] = [
    PromptCall {
        id: "x1",
        name: "f",
        arguments: r#"{"a": 1}"#,
    },
    PromptCall {
        id: "x2",
        name: "g",
        arguments: "",
    },
];

fn written(name: &str) -> String {
    Dialect::named(name)
        .expect("a dialect of the table")
        .write(&CALLS)
}

#[test]
fn json_with_the_name_inside() {
    let tag = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>";
    for name in ["hermes", "granite4", "ernie45"] {
        assert_eq!(written(name), tag, "{name}");
    }
    let array = r#"[{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]"#;
    for (name, open, close) in [
        ("mistral-v3-json-array", "[TOOL_CALLS] ", ""),
        ("granite3", "<|tool_call|>", ""),
        ("jamba", "<tool_calls>", "</tool_calls>"),
        ("hunyuan-a13b", "<tool_calls>", "</tool_calls>"),
        ("apriel", "<tool_calls>", "</tool_calls>"),
        ("nemotron-toolcall", "<TOOLCALL>", "</TOOLCALL>"),
        ("phi4-mini", "functools", ""),
        ("firefunction-v2", "functools", ""),
        ("xlam", "", ""),
    ] {
        assert_eq!(written(name), format!("{open}{array}{close}"), "{name}");
    }
    for (name, open, close, key, between) in [
        (
            "lmstudio",
            "[TOOL_REQUEST]",
            "[END_TOOL_REQUEST]",
            "arguments",
            "\n",
        ),
        (
            "longcat",
            "<longcat_tool_call>",
            "</longcat_tool_call>",
            "arguments",
            "\n",
        ),
        ("granite-20b-fc", "<function_call> ", "", "arguments", "\n"),
        (
            "internlm2",
            "<|action_start|> <|plugin|>\n",
            "<|action_end|>",
            "parameters",
            "\n",
        ),
        ("llama3-json", "", "", "parameters", "; "),
        (
            "inkling",
            "<|message_model|><|content_invoke_tool_json|>",
            "<|end_message|>",
            "args",
            "",
        ),
        (
            "gigachat3",
            "<|message_sep|>\n\nfunction call<|role_sep|>\n",
            "",
            "arguments",
            "",
        ),
        ("fenced-json", "```json\n", "\n```", "arguments", "\n"),
    ] {
        let want = [("f", "{\"a\": 1}"), ("g", "{}")]
            .map(|(f, a)| format!("{open}{{\"name\": \"{f}\", \"{key}\": {a}}}{close}"));
        assert_eq!(written(name), want.join(between), "{name}");
    }
}

#[test]
fn json_and_elements_in_lines() {
    for (name, want) in [
        (
            "minimax-m1",
            "<tool_calls>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n{\"name\": \"g\", \"arguments\": {}}\n</tool_calls>",
        ),
        (
            "longcat2",
            "<longcat_tool_call>f\n<longcat_arg_key>a</longcat_arg_key>\n<longcat_arg_value>1</longcat_arg_value>\n</longcat_tool_call>\n\
             <longcat_tool_call>g\n</longcat_tool_call>",
        ),
    ] {
        assert_eq!(written(name), want, "{name}");
    }
}

#[test]
fn other_json() {
    for (name, want) in [
        (
            "sarashina",
            "[{'name': 'f', 'arguments': {'a': 1}}, {'name': 'g', 'arguments': {}}]",
        ),
        (
            "apertus",
            r#"<|tools_prefix|>[{"f": {"a": 1}}, {"g": {}}]<|tools_suffix|>"#,
        ),
        (
            "cohere-command",
            "<|START_ACTION|>\n[{\"tool_call_id\": \"x1\", \"tool_name\": \"f\", \"parameters\": {\"a\": 1}}, \
             {\"tool_call_id\": \"x2\", \"tool_name\": \"g\", \"parameters\": {}}]\n<|END_ACTION|>",
        ),
        (
            "cohere-r-plus",
            "Action:\n```json\n[{\"tool_name\": \"f\", \"parameters\": {\"a\": 1}}, \
             {\"tool_name\": \"g\", \"parameters\": {}}]\n```",
        ),
    ] {
        assert_eq!(written(name), want, "{name}");
    }
}

#[test]
fn names_in_headers() {
    for (name, want) in [
        (
            "mistral-v11-args",
            r#"[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{}"#,
        ),
        (
            "mistral-v13-compact",
            r#"[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{}"#,
        ),
        (
            "deepseek-v3",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n\
             <｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ),
        (
            "deepseek-v31",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜>\
             <｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ),
        (
            "kimi-k2",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|>\
             <|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
        ),
        (
            "functionary-v3.1",
            r#"<function=f>{"a": 1}</function><function=g>{}</function>"#,
        ),
        ("functionary-v3.2", ">>>f\n{\"a\": 1}>>>g\n{}"),
        (
            "harmony",
            "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>\
             <|start|>assistant<|channel|>commentary to=functions.g <|constrain|>json<|message|>{}<|call|>",
        ),
        (
            "solar-open",
            "<|tool_calls|><|tool_call:begin|>x1<|tool_call:name|>f<|tool_call:args|>{\"a\": 1}<|tool_call:end|>\
             <|tool_call:begin|>x2<|tool_call:name|>g<|tool_call:args|>{}<|tool_call:end|><|calls|>",
        ),
        (
            "beam",
            " to=f<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name=\"a\">\n1\n</rfl:parameter><|end|>\
             <|start|>assistant to=g<|channel|>analysis <|constrain|>xml<|message|><|call|>",
        ),
        (
            "tool-name-tag",
            "<tool name=\"f\">{\"a\": 1}</tool>\n<tool name=\"g\">{}</tool>",
        ),
        (
            "react",
            "Action: f\nAction Input: {\"a\": 1}\nAction: g\nAction Input: {}",
        ),
        (
            "qwen-agent",
            "✿FUNCTION✿: f\n✿ARGS✿: {\"a\": 1}\n✿FUNCTION✿: g\n✿ARGS✿: {}",
        ),
        (
            "langchain-xml",
            "<tool>f</tool><tool_input>{\"a\": 1}</tool_input>\n<tool>g</tool><tool_input>{}</tool_input>",
        ),
    ] {
        assert_eq!(written(name), want, "{name}");
    }
    assert_eq!(written("deepseek-r1"), written("deepseek-v3"));
}

#[test]
fn expressions() {
    for (name, want) in [
        ("pythonic", "[f(a=1), g()]"),
        (
            "llama4-pythonic",
            "<|python_start|>[f(a=1), g()]<|python_end|>",
        ),
        ("lfm2", "<|tool_call_start|>[f(a=1), g()]<|tool_call_end|>"),
        (
            "olmo3-pythonic",
            "<function_calls>\nf(a=1)\ng()\n</function_calls>",
        ),
        ("tool-code", "```tool_code\nf(a=1)\ng()\n```"),
        (
            "functiongemma",
            "<start_function_call>call:f{a:1}<end_function_call><start_function_call>call:g{}<end_function_call>",
        ),
        (
            "gemma4",
            "<|tool_call>call:f{a:1}<tool_call|><|tool_call>call:g{}<tool_call|>",
        ),
    ] {
        assert_eq!(written(name), want, "{name}");
    }
}

#[test]
fn an_id_that_counts_already_is_kept() {
    let call = PromptCall {
        id: "functions.f:7",
        ..CALLS[0]
    };
    let text = Dialect::named("kimi-k2")
        .expect("a dialect of the table")
        .write(&[call]);
    assert!(text.contains("functions.f:7<"), "{text}");
}

#[test]
fn no_digit_is_lost() {
    let call = PromptCall {
        arguments: r#"{"a": 12345678901234567890123, "b": 1.10, "c": -0}"#,
        ..CALLS[0]
    };
    for dialect in Dialect::all() {
        let text = dialect.write(&[call]);
        for number in ["12345678901234567890123", "1.10", "-0"] {
            assert!(text.contains(number), "{}: {text}", dialect.name);
        }
    }
}
