//! What stands around calls and answers, by family.

use crate::dialect::{Ends, Framing, Prefilled};

/// No reasoning of its own, though a model may think all the same; nothing is dropped.
pub(super) static PLAIN: Framing = BASE;

/// ChatML models that may think.
pub(super) static THINK: Framing = Framing { prefilled: Prefilled::Perhaps, dropped: CHATML, ..BASE };

/// The same, where a call's marker ends the thinking (Qwen 3 Coder and 3.5).
pub(super) static THINK_TO_CALL: Framing =
    Framing { prefilled: Prefilled::Perhaps, call_ends_reasoning: Ends::UnlessClosed, dropped: CHATML, ..BASE };

/// Templates that open the thinking themselves, where a call's marker ends it.
pub(super) static OPENED: Framing =
    Framing { prefilled: Prefilled::Usually, call_ends_reasoning: Ends::UnlessClosed, dropped: CHATML, ..BASE };

/// ERNIE frames its answer too.
pub(super) static ERNIE: Framing =
    Framing { prefilled: Prefilled::Perhaps, dropped: &["<response>", "</response>", "</s>"], ..BASE };

/// Llama 3 and 4.
pub(super) static LLAMA: Framing = Framing { dropped: LLAMA_ENDS, ..BASE };

/// Llama models that were taught to think.
pub(super) static LLAMA_THINK: Framing = Framing { prefilled: Prefilled::Perhaps, dropped: LLAMA_ENDS, ..BASE };

/// Functionary 3.2 names what it writes for before it writes; `all` is the person.
pub(super) static FUNCTIONARY: Framing =
    Framing { dropped: &[">>>all\n", "<|eot_id|>", "<|eom_id|>"], dropped_first: &["all\n"], ..BASE };

/// Mistral before it marked its thinking.
pub(super) static MISTRAL: Framing = Framing { dropped: &["</s>"], ..BASE };

/// Mistral with thinking markers of its own.
pub(super) static MISTRAL_THINK: Framing =
    Framing { reasoning: &[("[THINK]", "[/THINK]"), ("<think>", "</think>")], dropped: &["</s>"], ..BASE };

/// IBM Granite.
pub(super) static GRANITE: Framing =
    Framing { prefilled: Prefilled::Perhaps, dropped: &["<|end_of_text|>", "<|endoftext|>"], ..BASE };

/// DeepSeek without thinking.
pub(super) static DEEPSEEK: Framing = Framing { dropped: DEEPSEEK_ENDS, ..BASE };

/// DeepSeek with thinking, which its template opens.
pub(super) static DEEPSEEK_THINK: Framing =
    Framing { prefilled: Prefilled::Usually, call_ends_reasoning: Ends::UnlessClosed, dropped: DEEPSEEK_ENDS, ..BASE };

/// DeepSeek since 3.1: its template opens the thinking, or closes it at once.
pub(super) static DEEPSEEK_MAY_THINK: Framing = Framing { prefilled: Prefilled::Perhaps, ..DEEPSEEK_THINK };

/// Cohere Command.
pub(super) static COHERE: Framing = Framing {
    reasoning: &[("<|START_THINKING|>", "<|END_THINKING|>")],
    // The prompt may end with `<|START_THINKING|>`.
    prefilled: Prefilled::Perhaps,
    dropped: &[
        "<|START_RESPONSE|>",
        "<|END_RESPONSE|>",
        "<|START_TEXT|>",
        "<|END_TEXT|>",
        "<|CHATBOT_TOKEN|>",
        "<|START_OF_TURN_TOKEN|>",
        "<|END_OF_TURN_TOKEN|>",
    ],
    ..BASE
};

/// Command R+.
pub(super) static COHERE_R: Framing =
    Framing { dropped: &["<|CHATBOT_TOKEN|>", "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>"], ..BASE };

/// Apertus.
pub(super) static APERTUS: Framing = Framing {
    reasoning: &[("<|inner_prefix|>", "<|inner_suffix|>")],
    dropped: &["<|assistant_end|>", "<|assistant_start|>"],
    ..BASE
};

/// Apriel: what comes before the final response is thinking.
pub(super) static APRIEL: Framing = Framing {
    reasoning: &[
        ("<think>", "</think>"),
        ("<thinking>", "</thinking>"),
        ("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"),
    ],
    prefilled: Prefilled::Perhaps,
    dropped: &["[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]", "<|end|>"],
    ..BASE
};

/// Hunyuan frames its answer too.
pub(super) static HUNYUAN: Framing = Framing {
    reasoning: &[("<think>", "</think>"), ("<think:opensource>", "</think:opensource>")],
    prefilled: Prefilled::Perhaps,
    call_ends_reasoning: Ends::UnlessClosed,
    dropped: &["<answer>", "</answer>", "<|eos|>", "<|endoftext|>", "<｜hy_eos｜>", "<｜hy_eos:opensource｜>"],
    ..BASE
};

/// LongCat, whose thinking has tags of its own.
pub(super) static LONGCAT: Framing = Framing {
    reasoning: &[("<longcat_think>", "</longcat_think>"), ("<think>", "</think>")],
    prefilled: Prefilled::Perhaps,
    dropped: &["</longcat_s>"],
    ..BASE
};

/// Jamba.
pub(super) static JAMBA: Framing = Framing { dropped: &["<|eom|>", "<|endoftext|>"], ..BASE };

/// InternLM.
pub(super) static INTERN: Framing = Framing { prefilled: Prefilled::Perhaps, dropped: &["<|im_end|>", "</s>"], ..BASE };

/// Inkling writes typed blocks.
pub(super) static INKLING: Framing = Framing {
    reasoning: &[("<|content_thinking|>", "<|end_message|>"), ("<think>", "</think>")],
    // What is no JSON has no name either: it is text.
    dropped: &[
        "<|message_model|>",
        "<|content_text|>",
        "<|content_invoke_tool_text|>",
        "<|content_tool_error|>",
        "<|end_message|>",
        "<|content_model_end_sampling|>",
    ],
    ..BASE
};

/// GigaChat, of which 3.5 may think.
pub(super) static GIGACHAT: Framing = Framing { prefilled: Prefilled::Perhaps, dropped: &["</s>"], ..BASE };

/// Phi.
pub(super) static PHI: Framing = Framing { dropped: &["<|end|>", "<|endoftext|>"], ..BASE };

/// Kimi K2.
///
/// It omits `</think>` before the section of its calls, which ends the thinking (github.com/vllm-project/vllm/pull/32216).
pub(super) static KIMI: Framing = Framing {
    prefilled: Prefilled::Perhaps,
    call_ends_reasoning: Ends::Always,
    dropped: &["<|im_end|>", "[EOS]"],
    ..BASE
};

/// Kimi K3 writes its answer in channels.
pub(super) static KIMI_K3: Framing = Framing {
    reasoning: &[("<|open|>think<|sep|>", "<|close|>think<|sep|>")],
    prefilled: Prefilled::Perhaps,
    dropped: &[
        "<|open|>message role=\"assistant\"<|sep|>",
        "<|close|>message<|sep|>",
        "<|open|>response<|sep|>",
        "<|close|>response<|sep|>",
        "<|end_of_msg|>",
    ],
    ..BASE
};

/// GLM 4.5, which opens its thinking itself.
pub(super) static GLM: Framing = Framing { call_ends_reasoning: Ends::UnlessClosed, dropped: GLM_ENDS, ..BASE };

/// GLM 4.7 and later, whose template opens the thinking.
pub(super) static GLM_OPENED: Framing =
    Framing { prefilled: Prefilled::Usually, call_ends_reasoning: Ends::UnlessClosed, dropped: GLM_ENDS, ..BASE };

/// Ling and Ring.
pub(super) static LING: Framing = Framing {
    prefilled: Prefilled::Perhaps,
    call_ends_reasoning: Ends::UnlessClosed,
    dropped: &["<|role_end|>", "<|endoftext|>", "<|observation|>"],
    ..BASE
};

/// MiniMax M2.
pub(super) static MINIMAX: Framing =
    Framing { prefilled: Prefilled::Usually, call_ends_reasoning: Ends::UnlessClosed, dropped: &["[e~["], ..BASE };

/// MiniMax M3.
pub(super) static MINIMAX_M3: Framing = Framing {
    reasoning: &[("<mm:think>", "</mm:think>"), ("<think>", "</think>")],
    // As with M2, whose template opens it.
    prefilled: Prefilled::Perhaps,
    call_ends_reasoning: Ends::UnlessClosed,
    dropped: &["[e~["],
    ..BASE
};

/// Seed-OSS, whose thinking is interrupted by what it says of its budget.
pub(super) static SEED: Framing = Framing {
    reasoning: &[("<seed:think>", "</seed:think>"), ("<think>", "</think>")],
    prefilled: Prefilled::Perhaps,
    dropped: &["<seed:eos>"],
    ..BASE
};

/// Gemma 4.
pub(super) static GEMMA: Framing = Framing {
    reasoning: &[("<|channel>thought", "<channel|>")],
    dropped: &["<turn|>", "<|turn>model\n", "<eos>"],
    ..BASE
};

/// Gemma 2 and 3.
pub(super) static GEMMA_OLD: Framing =
    Framing { dropped: &["<end_of_turn>", "<start_of_turn>model\n", "<eos>"], ..BASE };

/// LFM2.
pub(super) static LFM: Framing = Framing { dropped: &["<|im_end|>"], ..BASE };

/// LangChain's XML agent frames its final answer.
pub(super) static LANGCHAIN: Framing = Framing { dropped: &["<final_answer>", "</final_answer>"], ..BASE };

/// Qwen-Agent announces its answer.
pub(super) static QWEN_AGENT: Framing =
    Framing { prefilled: Prefilled::Perhaps, dropped: &["✿RETURN✿:", "✿RETURN✿", "<|im_end|>"], ..BASE };

/// Messages with headers, which are read by themselves.
pub(super) static MESSAGES: Framing = Framing { reasoning: &[], messages: true, ..BASE };

/// Muse, whose messages end so.
pub(super) static MUSE: Framing = Framing {
    reasoning: &[],
    messages: true,
    dropped: &["<|eom|>", "<|eot|>"],
    // The end of a header of which the rest stood in the prompt.
    dropped_first: &["<|message|>"],
    ..BASE
};

const BASE: Framing = Framing {
    reasoning: &[("<think>", "</think>")],
    prefilled: Prefilled::No,
    call_ends_reasoning: Ends::Never,
    dropped: &[],
    dropped_first: &[],
    messages: false,
};

const CHATML: &[&str] = &["<|im_end|>", "<|endoftext|>"];
const LLAMA_ENDS: &[&str] = &["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|eot|>", "<|eom|>"];
const DEEPSEEK_ENDS: &[&str] = &["<｜end▁of▁sentence｜>"];
const GLM_ENDS: &[&str] = &["<|user|>", "<|observation|>", "<|endoftext|>"];
