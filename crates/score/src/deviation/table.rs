//! The table of deviations.

/// A way in which a stream deviates.
#[derive(Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Its name in report cards.
    pub code: &'static str,
    /// Its number in docs/deviations.md; `None` for one that is described there under "How often"
    /// alone.
    pub row: Option<u8>,
    /// What the stream shows, in words.
    pub meaning: &'static str,
}

/// The table of deviations.
macro_rules! deviations {
    ($($name:ident $code:literal $row:expr, $meaning:literal;)*) => {
        $(#[doc = concat!("`", $code, "`")] pub const $name: &Deviation = &Deviation { code: $code, row: $row, meaning: $meaning };)*

        /// All deviations, in the order of reports.
        pub const DEVIATIONS: &[&Deviation] = &[$($name,)*];
    };
}

deviations! {
    INDEX_MISSING "index_missing" Some(1), "a delta of a call has no index";
    INDEX_REUSED "index_reused" Some(2), "a second call comes under the index of an earlier one";
    INDEX_ODD "index_odd" Some(3), "the indexes of the calls are not 0, 1, 2 …";
    INDEX_TWICE_IN_CHUNK "index_twice_in_chunk" Some(47), "one chunk has two entries for one index";
    ID_REPEATED "id_repeated" Some(5), "the id of a call comes again with later deltas";
    ID_CHANGED "id_changed" Some(6), "the id of a call changes, or becomes a placeholder";
    ID_MISSING "id_missing" Some(9), "a call has no id";
    ID_TWICE "id_twice" Some(6), "a second call comes under the id of one that had ended";
    NAME_REPEATED "name_repeated" Some(7), "the name of a call comes again with later deltas";
    NAME_IN_PIECES "name_in_pieces" Some(7), "the name of a call comes in pieces, or longer each time";
    NAME_LATE "name_late" Some(8), "the name of a call comes after its arguments";
    NAME_MISSING "name_missing" Some(8), "a call has no name";
    NAME_FRAMED "name_framed" None, "the name of a call has a token, a namespace or a counter around it";
    EMPTY_DELTA "empty_delta" Some(10), "a delta of a call holds nothing, or a choice has no delta";
    ARGUMENTS_OBJECT "arguments_object" Some(11), "the arguments are an object in place of a string of JSON";
    DOUBLE_ENCODED "double_encoded" Some(12), "the arguments are a string of JSON inside the string of JSON";
    EMPTY_ARGUMENTS "empty_arguments" Some(13), "a call has no arguments, not even {}";
    BRACES_FIRST "braces_first" Some(14), "{} comes before the arguments";
    CUMULATIVE_ARGUMENTS "cumulative_arguments" Some(15), "each delta has all arguments so far";
    ARGUMENTS_AGAIN "arguments_again" Some(16), "the whole arguments come once more at the end";
    EXTRA_ARGUMENTS "extra_arguments" Some(17), "two objects come as the arguments of one call";
    EXTRA_TEXT "extra_text" Some(17), "text follows the arguments of a call";
    FINISH_LIES "finish_lies" Some(18), "the finish reason names no call though there is one, or a call though there is none";
    FINISH_TWICE "finish_twice" Some(18), "a choice has two finish reasons";
    FINISH_HIDES_CUT "finish_hides_cut" Some(19), "the finish reason names a call whose arguments were cut";
    CALLS_NULL "calls_null" Some(20), "deltas of text have a null or empty list of calls";
    TEXT_BEFORE_CALL "text_before_call" Some(21), "text comes before the first call";
    WHITE_SPACE_BEFORE_CALL "white_space_before_call" Some(21), "only white space comes before the first call";
    REASONING_BEFORE_CALL "reasoning_before_call" Some(22), "reasoning comes before the first call";
    REASONING_IN_TEXT "reasoning_in_text" Some(22), "tags of reasoning are in the text of the answer";
    TEXT_AFTER_CALL "text_after_call" Some(23), "text comes after a call";
    LEAKED_MARKUP "leaked_markup" Some(24), "markup of a call is in the text of a stream with native calls";
    WHOLE_CALL_IN_ONE_CHUNK "whole_call_in_one_chunk" Some(25), "a call comes whole, with its name and arguments in one delta";
    INVALID_ARGUMENTS "invalid_arguments" Some(30), "the arguments of a call that was not cut are not JSON";
    MESSAGE_RESTARTED "message_restarted" Some(31), "the message begins a second time";
    OPENAI_DONE "openai_done" Some(29), "[DONE] ends a stream whose API has another end mark";
    TOOL_USE_FAILED "tool_use_failed" Some(35), "the server could not parse the call of the model";
    EMPTY_CHOICES "empty_choices" Some(36), "a chunk has no choices and no usage";
    USAGE_AFTER_FINISH "usage_after_finish" Some(37), "the usage comes after the finish reason";
    USAGE_IN_EVERY_CHUNK "usage_in_every_chunk" Some(37), "several chunks have the usage";
    ERROR_IN_STREAM "error_in_stream" Some(38), "an error comes as an event of the stream";
    NO_END_MARK "no_end_mark" Some(39), "the end mark of the API is missing";
    NO_FINISH "no_finish" Some(39), "there is no finish reason";
    CONNECTION_CUT "connection_cut" Some(39), "the stream ends before its end mark and without a finish reason";
    ARGUMENTS_REPLACED "arguments_replaced" Some(41), "the end of an item contradicts its deltas";
    EMPTY_OUTPUT "empty_output" Some(41), "the output of response.completed is empty though there were items";
    SEVERAL_CHOICES "several_choices" Some(42), "there are several choices";
    SERVER_ITEMS "server_items" None, "the provider ran a tool itself";
    CRLF "crlf" None, "lines end with CRLF";
    COMMENTS "comments" None, "there are comment lines, which keep the connection open";
    BYTE_ORDER_MARK "byte_order_mark" None, "the body begins with a byte order mark";
    NO_BLANK_LINES "no_blank_lines" Some(49), "the blank line between two events is missing";
    NO_LAST_BLANK "no_last_blank" None, "the blank line after the last event is missing";
    BAD_FRAME "bad_frame" Some(51), "a frame cannot be read, so a part of the answer is lost";
    OTHER_WARNING "other_warning" None, "a warning of another kind";
}

/// The deviation of this code.
pub fn deviation(code: &str) -> Option<&'static Deviation> {
    DEVIATIONS.iter().find(|d| d.code == code).copied()
}

/// The deviation that a `warning` with this code reports. `None` for warnings about lines that are
/// not events, and about requests.
pub(super) fn of_warning(code: &str) -> Option<&'static Deviation> {
    Some(match code {
        "index_inferred" => INDEX_MISSING,
        "id_changed" => ID_CHANGED,
        "id_twice" => ID_TWICE,
        "name_changed" => NAME_IN_PIECES,
        "name_repaired" => NAME_FRAMED,
        "extra_arguments" => EXTRA_ARGUMENTS,
        "extra_text" => EXTRA_TEXT,
        "message_restarted" => MESSAGE_RESTARTED,
        "arguments_replaced" => ARGUMENTS_REPLACED,
        "bad_json_path" | "prompt_blocked" | "abnormal_finish" => OTHER_WARNING,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_are_unique_and_rows_exist() {
        let codes: BTreeSet<&str> = DEVIATIONS.iter().map(|d| d.code).collect();
        assert_eq!(codes.len(), DEVIATIONS.len());
        let page = include_str!("../../../../docs/deviations.md");
        for row in DEVIATIONS.iter().filter_map(|d| d.row) {
            assert!(page.contains(&format!("### row-{row:02}:")), "no row {row}");
        }
    }
}
