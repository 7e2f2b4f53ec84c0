//! The message for a turn that failed.

use tool::Tally;

/// Why a turn failed, if it did. `is_known`: an `error` event or a signal is the reason and is reported already.
pub fn why(tally: &Tally, is_known: bool) -> Option<String> {
    let Tally { unconfirmed, unmerged, failed, .. } = *tally;
    if tally.lost && tally.is_failure() {
        return Some(
            "a line of the turn is not an event (see the warning) and may have held a call, so the turn failed; \
             raise --max-line in every stage if the line is too long, else run the turn again"
                .to_owned(),
        );
    }
    if unconfirmed > 0 {
        return Some(format!(
            "no assistant message confirmed {unconfirmed} calls, which did not run; put tc-accumulate before tool-exec"
        ));
    }
    if unmerged > 0 {
        return Some(
            "the stream has deltas, but no tool_call and no assistant message; put tc-accumulate before tool-exec"
                .to_owned(),
        );
    }
    (failed > 0 && !is_known)
        .then(|| "the stream was cut before its end, none of its calls ran; run the turn again".to_owned())
}
