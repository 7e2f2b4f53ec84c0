//! The words used as label values. Any other word of an event becomes [`OTHER`], so that input
//! cannot create series.
//!
//! Most labels take their words from a table of the protocol, such as [`event::payload::Status`].
//! The codes of errors and warnings have no such table: a test compares the lists below with the
//! sources of all crates and commands.

use event::payload::CallErrorCode;

/// The label value for a word that is not in its table.
pub(super) const OTHER: &str = "other";

/// The outcome of a call that was retracted before its stream ended.
pub(super) const RETRACTED: &str = "retracted";

/// The outcomes of calls. `invalid` calls have faulty arguments or no name; `incomplete` calls were
/// truncated.
pub(super) const OUTCOMES: &[&str] = &["whole", "incomplete", "invalid", RETRACTED];

/// The codes of errors.
pub(super) const ERRORS: &[&str] = &[
    // From the commands. `http_4xx` and `http_5xx` stand for all statuses of their hundred.
    "answer_too_long",
    "bad_gzip",
    "bad_json",
    "call_lost",
    "command_failed",
    "command_not_started",
    "context_overflow",
    "disconnected",
    "frame_too_long",
    "http_4xx",
    "http_5xx",
    "interrupted",
    "invalid_request",
    "line_too_long",
    "max_steps",
    "memory_exceeded",
    "memory_full",
    "no_answer",
    "no_provider",
    "not_a_stream",
    "output_too_long",
    "provider_error",
    "redirected",
    "response_cancelled",
    "response_failed",
    "session_not_read",
    "shutting_down",
    "stream_cut",
    "tape_miss",
    "timeout",
    "too_many_requests",
    "tools_failed",
    "tools_not_run",
    "upstream_cut",
    "upstream_error",
    "upstream_failed",
    "upstream_key_refused",
    "upstream_timeout",
    "upstream_unreachable",
    "wrong_api",
    // From providers: the codes that a person can act on.
    "DEADLINE_EXCEEDED",
    "INTERNAL",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "UNAUTHENTICATED",
    "UNAVAILABLE",
    "api_error",
    "authentication_error",
    "billing_error",
    "insufficient_quota",
    "invalid_api_key",
    "invalid_request_error",
    "malformed_function_call",
    "malformed_response",
    "missing_thought_signature",
    "not_found_error",
    "overloaded_error",
    "permission_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "request_too_large",
    "server_error",
    "timeout_error",
    "tool_use_failed",
];

/// The codes of warnings.
pub(super) const WARNINGS: &[&str] = &[
    "abnormal_finish",
    "arguments_replaced",
    "bad_json_path",
    "extra_arguments",
    "extra_text",
    "fallback",
    "file_replaced",
    "file_truncated",
    "id_changed",
    "id_twice",
    "index_inferred",
    "late_reasoning",
    "message_restarted",
    "name_changed",
    "name_repaired",
    "not_an_event",
    "parameter_left_out",
    "prompt_blocked",
    "retry_wait",
    "session_truncated",
    "tag_dropped",
    "tag_note",
    "tag_unparsed",
    "tools_refused",
    "tools_unread",
    "unknown_dialect",
    "unknown_type",
];

/// Returns the code under which a code is counted: `http_404` is counted as `http_4xx`.
pub(super) fn code(code: &str) -> &str {
    match code.strip_prefix("http_").map(str::as_bytes) {
        Some([b'4', b'0'..=b'9', b'0'..=b'9']) => "http_4xx",
        Some([b'5', b'0'..=b'9', b'0'..=b'9']) => "http_5xx",
        _ => code,
    }
}

/// Returns the outcome of a call with this error code; `None` means that the call has no error.
pub(super) fn outcome(error: Option<&str>) -> &'static str {
    match error.map(CallErrorCode::of) {
        None => "whole",
        Some(Some(CallErrorCode::Incomplete)) => "incomplete",
        Some(Some(_)) => "invalid",
        Some(None) => OTHER,
    }
}

/// A counter for each word of a table, and one for all other words.
#[derive(Debug)]
pub(super) struct Counts {
    words: &'static [&'static str],
    counts: Vec<u64>,
}

impl Counts {
    pub(super) fn of(words: &'static [&'static str]) -> Counts {
        Counts {
            words,
            counts: vec![0; words.len() + 1],
        }
    }

    pub(super) fn add(&mut self, word: &str) {
        if let Some(count) = self.counts.get_mut(place(self.words, word)) {
            *count += 1;
        }
    }

    /// Returns the labels with their counts.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        labels(self.words).zip(self.counts.iter().copied())
    }
}

/// Returns the label values for the words of a table.
pub(super) fn labels(words: &[&'static str]) -> impl Iterator<Item = &'static str> {
    words.iter().copied().chain([OTHER])
}

/// Returns the index in [`labels`] of the label value of a word.
pub(super) fn place(words: &[&str], word: &str) -> usize {
    let found = words.iter().position(|known| *known == word);
    found.unwrap_or(words.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Returns the sources of all crates and commands except this one, with their paths, without
    /// comments and tests.
    fn sources() -> Vec<(String, String)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut folders = vec![root.join("crates"), root.join("bin")];
        let mut sources = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.display().to_string();
                if path.is_dir() {
                    let is_left_out = ["/tests", "crates/view", "crates/testkit"];
                    if !is_left_out.iter().any(|end| name.ends_with(end)) {
                        folders.push(path);
                    }
                } else if name.ends_with(".rs") {
                    let text = std::fs::read_to_string(path).unwrap();
                    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
                    let lines = code.lines();
                    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
                    sources.push((name, code.collect::<Vec<_>>().join("\n")));
                }
            }
        }
        sources
    }

    /// The places where sources write the code of a warning or an error: the first string literal
    /// after each.
    const WRITERS: [(&[&str], &[&str]); 2] = [
        (
            WARNINGS,
            &[
                "Warning::new(",
                "turn.warning(",
                "out.warning(",
                "emitter.warn(",
                "self.warn(",
                "Oddity {",
                "Piece::Restart(",
                "const DROPPED",
            ],
        ),
        (
            ERRORS,
            &[
                "Error::new(",
                "StreamFailure::new(",
                "stream.error(",
                "pipe.fail(",
                "writer.fail(",
                "feed.fail(",
                "self.fail(",
                "self.overrun(",
                "self.failure(502, ",
                // The table of the providers' codes.
                "FailureNames { openai: ",
                "\", anthropic: ",
                "\", gemini: (",
            ],
        ),
    ];

    /// Returns the code at the beginning of `rest`, if it is a string literal.
    fn first_code(rest: &str) -> Option<&str> {
        let statement = rest.split([';', '}']).next()?.split("=>").next()?;
        // The text in `starts_with("…")` is not a code.
        let parts: Vec<&str> = statement.split('"').collect();
        let mut codes = parts.chunks_exact(2).filter(|pair| !pair[0].ends_with('('));
        let is_code = |b: u8| b == b'_' || b.is_ascii_alphanumeric();
        let code = codes.find(|pair| pair[1].len() > 2 && pair[1].bytes().all(is_code));
        code.map(|pair| pair[1])
    }

    #[test]
    fn the_lists_have_every_code_that_the_sources_write() {
        let sources = sources();
        for (list, writers) in WRITERS {
            for writer in writers {
                let all = sources.iter();
                let codes = all.flat_map(|(path, source)| {
                    let writes = source.split(writer).skip(1);
                    writes.filter_map(move |rest| Some((path, first_code(rest)?)))
                });
                let codes: Vec<_> = codes.collect();
                assert!(!codes.is_empty(), "nothing writes {writer}");
                for (path, code) in codes {
                    assert!(list.contains(&code), "{path} writes {code}");
                }
            }
        }
    }

    #[test]
    fn the_lists_have_no_code_that_nothing_writes() {
        let sources = sources();
        let deviations = testkit::root().join("docs/deviations.md");
        let deviations = std::fs::read_to_string(deviations).unwrap();
        let codes = [WARNINGS, ERRORS].concat().into_iter();
        for code in codes.filter(|code| !code.ends_with("xx")) {
            // Gemini's codes are lower-cased.
            let literals =
                [code.to_owned(), code.to_ascii_uppercase()].map(|code| format!("\"{code}\""));
            let is_written =
                |(_, source): &(_, String)| literals.iter().any(|code| source.contains(code));
            // Codes of providers are passed on unchanged.
            let is_passed = deviations.contains(&format!("An `error` `{code}`"));
            assert!(is_passed || sources.iter().any(is_written), "{code}");
        }
    }

    #[test]
    fn a_word_that_its_table_does_not_have_is_other() {
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

    #[test]
    fn every_error_of_a_call_has_an_outcome() {
        for code in CallErrorCode::WORDS {
            assert!(OUTCOMES.contains(&outcome(Some(code))), "{code}");
        }
        assert_eq!(outcome(Some("novel")), OTHER);
    }
}
