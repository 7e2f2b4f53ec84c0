//! How tools and results are told, by family.

use crate::dialect::prompt::{List, Prompt};

/// Tools in JSON lines, results named by an attribute.
pub(super) static PLAIN: Prompt = BASE;

/// Tools in JSON lines, a tag round each result.
pub(super) static HERMES: Prompt = Prompt { result: "<tool_response>\n{result}\n</tool_response>", ..BASE };

/// One array, and results in an array too.
pub(super) static MISTRAL: Prompt = Prompt {
    open: "[AVAILABLE_TOOLS]",
    close: "[/AVAILABLE_TOOLS]",
    list: List::Array,
    result: "[TOOL_RESULTS]{result}[/TOOL_RESULTS]",
    between: "",
    ..BASE
};

/// A declaration in the manner of TypeScript, as gpt-oss and Functionary know it.
pub(super) static TYPESCRIPT: Prompt = TYPESCRIPT_BASE;

const TYPESCRIPT_BASE: Prompt =
    Prompt { open: "namespace functions {\n\n", close: "\n\n} // namespace functions", list: List::TypeScript, ..BASE };

/// gpt-oss, whose results come in messages of their own.
pub(super) static HARMONY: Prompt = Prompt {
    result: "<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>{result}<|end|>",
    between: "",
    ..TYPESCRIPT_BASE
};

/// Muse, likewise.
pub(super) static MUSE: Prompt = Prompt {
    open: "<functions>\n",
    close: "\n</functions>",
    result: "<atem:result name=\"{name}\">{result}</atem:result>",
    ..BASE
};

/// A tag round the array.
pub(super) static ARRAY: Prompt = Prompt { list: List::Array, ..BASE };

/// As Hermes, with the array that Jamba, Hunyuan and Apriel know.
pub(super) static AVAILABLE: Prompt = Prompt {
    open: "<available_tools>",
    close: "</available_tools>",
    list: List::Array,
    result: "<tool_result>{result}</tool_result>",
    ..BASE
};

/// Nemotron's capital tags.
pub(super) static NEMOTRON: Prompt = Prompt {
    open: "<AVAILABLE_TOOLS>",
    close: "</AVAILABLE_TOOLS>",
    list: List::Array,
    result: "<TOOL_RESPONSE>{result}</TOOL_RESPONSE>",
    ..BASE
};

/// DeepSeek before its DSML.
pub(super) static DEEPSEEK: Prompt = Prompt {
    result: "<｜tool▁output▁begin｜>{result}<｜tool▁output▁end｜>",
    results: ("<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"),
    ..BASE
};

/// DeepSeek with DSML, and models that do as it does.
pub(super) static DSML: Prompt = Prompt {
    result: "<result name=\"{name}\">{result}</result>",
    results: ("<function_results>\n", "\n</function_results>"),
    ..BASE
};

/// Cohere.
pub(super) static COHERE: Prompt = Prompt {
    open: "```json\n",
    close: "\n```",
    list: List::Array,
    result: "{\"tool_call_id\": \"{id}\", \"tool_name\": \"{name}\", \"results\": {result}}",
    results: ("<|START_TOOL_RESULT|>[\n", "\n]<|END_TOOL_RESULT|>"),
    between: ",\n",
};

/// Cohere before its markers.
pub(super) static COHERE_R: Prompt = Prompt {
    open: "```json\n",
    close: "\n```",
    list: List::Array,
    result: "<results>\n{name}: {result}\n</results>",
    ..BASE
};

/// LM Studio.
pub(super) static LMSTUDIO: Prompt = Prompt {
    open: "[AVAILABLE_TOOLS]",
    close: "[END_AVAILABLE_TOOLS]",
    list: List::Array,
    result: "[TOOL_RESULT]{result}[END_TOOL_RESULT]",
    ..BASE
};

/// IBM Granite.
pub(super) static GRANITE: Prompt =
    Prompt { list: List::Array, result: "<tool_response>{result}</tool_response>", ..BASE };

/// Tools in a plain list, results as observations: agents in prose.
pub(super) static OBSERVATION: Prompt = Prompt { open: "", close: "", result: "Observation: {result}", ..BASE };

/// Qwen-Agent.
pub(super) static QWEN_AGENT: Prompt = Prompt { open: "", close: "", result: "✿RESULT✿: {result}", ..BASE };

/// LangChain's XML agent.
pub(super) static LANGCHAIN: Prompt =
    Prompt { open: "", close: "", result: "<observation>{result}</observation>", ..BASE };

/// Results in a fence of their own.
pub(super) static FENCE: Prompt =
    Prompt { open: "```json\n", close: "\n```", list: List::Array, result: "```tool_result\n{result}\n```", ..BASE };

/// Gemma's Python.
pub(super) static TOOL_CODE: Prompt =
    Prompt { open: "```json\n", close: "\n```", list: List::Array, result: "```tool_output\n{result}\n```", ..BASE };

/// Gemma 4.
pub(super) static GEMMA: Prompt = Prompt {
    open: "",
    close: "",
    result: "<|tool_response>response:{name}{{result}}<tool_response|>",
    between: "",
    ..BASE
};

/// FunctionGemma.
pub(super) static FUNCTION_GEMMA: Prompt = Prompt {
    open: "",
    close: "",
    result: "<start_function_response>response:{name}{{result}}<end_function_response>",
    between: "",
    ..BASE
};

/// LFM2.
pub(super) static LFM: Prompt = Prompt {
    open: "<|tool_list_start|>",
    close: "<|tool_list_end|>",
    list: List::Array,
    result: "<|tool_response_start|>{result}<|tool_response_end|>",
    between: "",
    ..BASE
};

/// Claude, and models that were taught as it was.
pub(super) static ANTHROPIC: Prompt = Prompt {
    open: "<functions>\n",
    close: "\n</functions>",
    result: "<result>\n<name>{name}</name>\n<output>{result}</output>\n</result>",
    results: ("<function_results>\n", "\n</function_results>"),
    ..BASE
};

/// MiniMax, and models that write as it does.
pub(super) static MINIMAX: Prompt = Prompt { result: "<response>{result}</response>", ..BASE };

/// Kimi K2, whose results name the call's id.
pub(super) static KIMI: Prompt = Prompt { list: List::Array, result: "## Return of {id}\n{result}", ..BASE };

/// Kimi K3.
pub(super) static KIMI_K3: Prompt = Prompt {
    list: List::Array,
    result: "<|open|>result tool=\"{name}\"<|sep|>{result}<|close|>result<|sep|>",
    between: "",
    ..BASE
};

/// Llama with JSON calls.
pub(super) static LLAMA: Prompt =
    Prompt { open: "", close: "", result: "{\"name\": \"{name}\", \"output\": {result}}", ..BASE };

/// A result and the tool's name, without a tag.
pub(super) static NAMED: Prompt = Prompt { open: "", close: "", result: "{name} returned: {result}", ..BASE };

const BASE: Prompt = Prompt {
    open: "<tools>\n",
    close: "\n</tools>",
    list: List::Lines,
    result: "<tool_result name=\"{name}\">{result}</tool_result>",
    results: ("", ""),
    between: "\n",
};
