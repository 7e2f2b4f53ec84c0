//! How tagged parameters are spelled, by family.

use crate::dialect::params::{ParamForm, Style, Trim, Typing};

/// `<parameter=a>⏎1⏎</parameter>`.
pub(super) static QWEN: ParamForm = ParamForm {
    style: EQUALS,
    call_closers: &["</function>", "</tool_call>"],
    trim: Trim::OneNewline,
    round: "\n",
    ..LINES
};

/// `<parameter=a>1</parameter>`, with the value as it is.
pub(super) static MIMO: ParamForm =
    ParamForm { style: EQUALS, call_closers: &["</function>", "</tool_call>"], ..LINES };

/// As MiMo.
pub(super) static SEED: ParamForm =
    ParamForm { style: EQUALS, call_closers: &["</function>", "</seed:tool_call>"], ..LINES };

/// `<parameter name="a">1</parameter>`.
pub(super) static INVOKE: ParamForm = ParamForm {
    style: Style::Attribute { open: &["<parameter"], end: ">", close: &["</parameter>"], name: "name" },
    call_closers: &["</invoke>"],
    ..LINES
};

/// The same, also with Claude's own prefix.
pub(super) static ANTHROPIC: ParamForm = ParamForm {
    style: Style::Attribute {
        open: &["<parameter", "<antml:parameter"],
        end: ">",
        close: &["</parameter>", "</antml:parameter>"],
        name: "name",
    },
    call_closers: &["</invoke>", "</antml:invoke>"],
    ..LINES
};

/// `<atem:parameter name="a">1</atem:parameter>`.
pub(super) static ATEM: ParamForm = ParamForm {
    style: Style::Attribute { open: &["<atem:parameter"], end: ">", close: &["</atem:parameter>"], name: "name" },
    call_closers: &["</atem:invoke>"],
    ..LINES
};

/// `<steptml:parameter name="a">1</steptml:parameter>`.
pub(super) static STEP: ParamForm = ParamForm {
    style: Style::Attribute { open: &["<steptml:parameter"], end: ">", close: &["</steptml:parameter>"], name: "name" },
    call_closers: &["</steptml:invoke>"],
    ..COMPACT
};

/// `<param name="a">1</param>`.
pub(super) static MINICPM: ParamForm = ParamForm {
    style: Style::Attribute { open: &["<param"], end: ">", close: &["</param>"], name: "name" },
    call_closers: &["</function>"],
    cdata: true,
    entities: true,
    ..COMPACT
};

/// `<｜DSML｜parameter name="a" string="true">x</｜DSML｜parameter>`.
pub(super) static DSML: ParamForm = ParamForm {
    style: Style::Attribute {
        open: &["<｜DSML｜parameter"], end: ">", close: &["</｜DSML｜parameter>"], name: "name"
    },
    call_closers: &["</｜DSML｜invoke>"],
    typing: Typing::Flag("string"),
    ..LINES
};

/// The same with a space in each tag.
pub(super) static DSML_SPACED: ParamForm = ParamForm {
    style: Style::Attribute {
        open: &["<｜DSML｜ parameter"],
        end: ">",
        close: &["</｜DSML｜ parameter>"],
        name: "name",
    },
    call_closers: &["</｜DSML｜ invoke>"],
    typing: Typing::Flag("string"),
    ..LINES
};

/// The same with GigaChat's letters.
pub(super) static GCML: ParamForm = ParamForm {
    style: Style::Attribute {
        open: &["<｜GCML｜parameter"], end: ">", close: &["</｜GCML｜parameter>"], name: "name"
    },
    call_closers: &["</｜GCML｜invoke>"],
    typing: Typing::Flag("string"),
    ..LINES
};

/// `<|open|>argument key="a" type="number"<|sep|>1<|close|>argument<|sep|>`.
pub(super) static XTML: ParamForm = ParamForm {
    style: Style::Attribute {
        open: &["<|open|>argument"],
        end: "<|sep|>",
        close: &["<|close|>argument<|sep|>"],
        name: "key",
    },
    call_closers: &["<|close|>call<|sep|>"],
    typing: Typing::Named("type"),
    ..COMPACT
};

/// `<arg_key>a</arg_key><arg_value>1</arg_value>`.
pub(super) static ARG_KEYS: ParamForm = ParamForm {
    style: Style::Pair {
        key: ("<arg_key>", "</arg_key>"),
        kind: None,
        value: ("<arg_value>", "</arg_value>"),
        gap: "",
    },
    call_closers: &["</tool_call>", "</iquest_tool_call>"],
    ..COMPACT
};

/// The same in lines.
pub(super) static ARG_KEYS_IN_LINES: ParamForm = ParamForm {
    style: Style::Pair {
        key: ("<arg_key>", "</arg_key>"),
        kind: None,
        value: ("<arg_value>", "</arg_value>"),
        gap: "\n",
    },
    call_closers: &["</tool_call>"],
    ..LINES
};

/// The same with HY's suffix in each tag.
pub(super) static ARG_KEYS_SUFFIXED: ParamForm = ParamForm {
    style: Style::Pair {
        key: ("<arg_key:opensource>", "</arg_key:opensource>"),
        kind: None,
        value: ("<arg_value:opensource>", "</arg_value:opensource>"),
        gap: "\n",
    },
    call_closers: &["</tool_call:opensource>"],
    ..LINES
};

/// The same with a type between the two.
pub(super) static IFM: ParamForm = ParamForm {
    style: Style::Pair {
        key: ("<ifm|arg_key>", "</ifm|arg_key>"),
        kind: Some(("<ifm|arg_type>", "</ifm|arg_type>")),
        value: ("<ifm|arg_value>", "</ifm|arg_value>"),
        gap: "",
    },
    call_closers: &["</ifm|tool_call>"],
    ..COMPACT
};

/// `<a>1</a>`.
pub(super) static ELEMENTS: ParamForm =
    ParamForm { style: Style::Element { prefix: "" }, call_closers: &["</parameters>"], ..LINES };

/// The same with MiniMax's sign before each tag.
pub(super) static MINIMAX_ELEMENTS: ParamForm = ParamForm {
    style: Style::Element { prefix: "]<]minimax[>[" },
    call_closers: &["]<]minimax[>[</invoke>"],
    ..COMPACT
};

/// `<parameter=a>`.
const EQUALS: Style = Style::Equals { open: "<parameter=", end: ">", close: "</parameter>" };

/// Parameters in lines, their values as they are and typed by the schema; the tags are each form's own.
const LINES: ParamForm = ParamForm { before: "\n", ..COMPACT };

/// The same without white space.
const COMPACT: ParamForm = ParamForm {
    style: EQUALS,
    call_closers: &[],
    trim: Trim::None,
    cdata: false,
    entities: false,
    typing: Typing::Schema,
    before: "",
    round: "",
};
