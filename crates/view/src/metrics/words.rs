//! The words that labels may have. Any other word of an event becomes `other`, so that no input makes
//! a series of its own.

use event::Kind;

/// What stands for a word that no table has.
pub(super) const OTHER: &str = "other";

/// What became of a call that was taken back.
pub(super) const RETRACTED: &str = "retracted";

/// What became of a call. `invalid` has an error in its arguments or no name, `incomplete` was cut,
/// `retracted` was taken back before its stream ended.
pub(super) const OUTCOMES: &[&str] = &["whole", "incomplete", "invalid", RETRACTED, OTHER];

/// The codes of the `error` of a `tool_call`.
pub(super) const CALL_ERRORS: &[&str] = &["incomplete", "invalid_json", "schema", "no_name", OTHER];

/// The reasons of a `retract`.
pub(super) const RETRACTS: &[&str] = &[
    "stream_failed",
    "unparsed",
    "reasoning",
    "native_call",
    OTHER,
];

/// The kinds of edits of `json::repair`.
pub(super) const REPAIRS: &[&str] = &[
    "comment",
    "double_encoded",
    "end_tag",
    "escape",
    "extra_bracket",
    "fence",
    "literal",
    "missing_bracket",
    "missing_colon",
    "missing_comma",
    "number",
    "quotes",
    "single_quotes",
    "text_added",
    "text_removed",
    "text_replaced",
    "trailing_comma",
    "unquoted_key",
    "unquoted_string",
    "white_space",
    OTHER,
];

/// The finish reasons of streams.
pub(super) const FINISH_REASONS: &[&str] = &[
    "stop",
    "tool_calls",
    "length",
    "content_filter",
    "error",
    "cancelled",
    "cut",
    OTHER,
];

/// The statuses of results.
pub(super) const STATUSES: &[&str] = &[
    "success",
    "error",
    "timeout",
    "denied",
    "cancelled",
    "invalid",
    "unknown_tool",
    "pending",
    OTHER,
];

/// The answers to calls that ask for one.
pub(super) const VERDICTS: &[&str] = &["approved", "denied", "answered", OTHER];

/// The codes of errors: those of the commands, and those of providers that tell an operator what to
/// do. `http_4xx` and `http_5xx` stand for all statuses of their hundred.
pub(super) const ERRORS: &[&str] = &[
    "answer_too_long",
    "authentication_error",
    "command_failed",
    "command_not_started",
    "context_overflow",
    "disconnected",
    "http_4xx",
    "http_5xx",
    "insufficient_quota",
    "internal_error",
    "interrupted",
    "invalid_api_key",
    "invalid_request_error",
    "line_too_long",
    "max_steps",
    "memory_full",
    "no_answer",
    "not_a_stream",
    "output_too_long",
    "overloaded_error",
    "permission_error",
    "provider_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "redirected",
    "server_error",
    "session_not_read",
    "shutting_down",
    "tape_miss",
    "timeout",
    "too_many_requests",
    "tool_use_failed",
    "tools_failed",
    "tools_not_run",
    "upstream_cut",
    "upstream_failed",
    "upstream_key_refused",
    "upstream_timeout",
    "upstream_unreachable",
    OTHER,
];

/// The codes of warnings of the commands.
pub(super) const WARNINGS: &[&str] = &[
    "abnormal_finish",
    "arguments_replaced",
    "bad_json",
    "extra_arguments",
    "extra_text",
    "id_changed",
    "id_twice",
    "index_inferred",
    "late_reasoning",
    "message_restarted",
    "name_changed",
    "not_an_event",
    "parameter_left_out",
    "prompt_blocked",
    "tag_dropped",
    "tag_note",
    "tag_unparsed",
    "tools_refused",
    "tools_unread",
    "unknown_dialect",
    "unknown_type",
    OTHER,
];

/// Whether [`super::Metrics`] counts events of this kind: all but the many pieces of an answer.
pub(super) fn is_counted(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::ToolCall
            | Kind::Retract
            | Kind::StreamEnd
            | Kind::Error
            | Kind::Warning
            | Kind::Approval
            | Kind::ToolResult
            | Kind::ToolUse
            | Kind::SessionStats
    )
}

/// The code that a code is counted under: `http_404` is one of `http_4xx`.
pub(super) fn code(code: &str) -> &str {
    match code.strip_prefix("http_").map(str::as_bytes) {
        Some([b'4', b'0'..=b'9', b'0'..=b'9']) => "http_4xx",
        Some([b'5', b'0'..=b'9', b'0'..=b'9']) => "http_5xx",
        _ => code,
    }
}

/// The outcome of a call with this error code.
pub(super) fn outcome(error: Option<&str>) -> &'static str {
    match error {
        None => "whole",
        Some("incomplete") => "incomplete",
        Some("invalid_json" | "schema" | "no_name") => "invalid",
        Some(_) => OTHER,
    }
}

/// A count for each word of a table, whose last one is [`OTHER`].
#[derive(Debug)]
pub(super) struct Counts {
    words: &'static [&'static str],
    counts: Vec<u64>,
}

impl Counts {
    pub(super) fn of(words: &'static [&'static str]) -> Counts {
        Counts {
            words,
            counts: vec![0; words.len()],
        }
    }

    pub(super) fn add(&mut self, word: &str) {
        if let Some(count) = self.counts.get_mut(place(self.words, word)) {
            *count += 1;
        }
    }

    /// The words with their counts.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.words.iter().copied().zip(self.counts.iter().copied())
    }
}

/// The place of a word in its table: that of [`OTHER`], the last, for a word that it does not have.
pub(super) fn place(words: &[&str], word: &str) -> usize {
    let last = words.len().saturating_sub(1);
    words
        .iter()
        .position(|known| *known == word)
        .unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::payload::{FinishReason, Status, Verdict};

    #[test]
    fn the_tables_have_the_words_of_the_protocol() {
        let all_but_other = |words: &[&'static str]| words[..words.len() - 1].to_vec();
        for word in all_but_other(FINISH_REASONS) {
            assert!(FinishReason::of(word).is_some(), "{word}");
        }
        for word in all_but_other(STATUSES) {
            assert!(Status::of(word).is_some(), "{word}");
        }
        for word in all_but_other(VERDICTS) {
            assert!(Verdict::of(word).is_some(), "{word}");
        }
        for code in all_but_other(CALL_ERRORS) {
            assert_ne!(outcome(Some(code)), OTHER, "{code}");
        }
        for table in [
            OUTCOMES,
            CALL_ERRORS,
            RETRACTS,
            REPAIRS,
            FINISH_REASONS,
            STATUSES,
            VERDICTS,
            ERRORS,
            WARNINGS,
        ] {
            assert_eq!(table.last(), Some(&OTHER));
        }
    }

    #[test]
    fn a_word_that_no_table_has_is_other() {
        let mut counts = Counts::of(OUTCOMES);
        for word in ["whole", "", "WHOLE", "\"} 1\nx 2", "other"] {
            counts.add(word);
        }
        assert_eq!(
            counts.each().filter(|(_, n)| *n > 0).collect::<Vec<_>>(),
            [("whole", 1), ("other", 4)]
        );
        for (sent, counted) in [
            ("http_404", "http_4xx"),
            ("http_503", "http_5xx"),
            ("http_40", "http_40"),
            ("http_4040", "http_4040"),
            ("http_200", "http_200"),
        ] {
            assert_eq!(code(sent), counted);
        }
    }
}
