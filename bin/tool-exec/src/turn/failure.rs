//! The message for a turn that failed.

use tool::Tally;

/// Why a turn failed, if it did. `is_known`: an `error` event or a signal is the reason and is
/// reported already.
pub fn why(tally: &Tally, is_known: bool) -> Option<String> {
    let Tally {
        unconfirmed,
        unmerged,
        failed,
        started,
        ..
    } = *tally;
    if tally.lost && tally.is_failure() {
        return Some(
            "a line of the turn is not an event (see the warning) and may have held a call, so the turn failed; \
             raise --max-line in every stage if the line is too long, else run the turn again"
                .to_owned(),
        );
    }
    if unconfirmed > 0 {
        let early = if started > 0 {
            format!("; {started} calls that only read had started early")
        } else {
            String::new()
        };
        return Some(format!(
            "no assistant message confirmed {unconfirmed} calls, so they were not run{early}; put tc-accumulate before tool-exec"
        ));
    }
    if unmerged > 0 {
        return Some(
            "the stream has deltas, but no tool_call and no assistant message; put tc-accumulate before tool-exec"
                .to_owned(),
        );
    }
    let ran = match started {
        0 => "none of its calls ran; run the turn again".to_owned(),
        1 => "after a call had started; see its result before you run the turn again".to_owned(),
        _ => format!(
            "after {started} calls had started; see their results before you run the turn again"
        ),
    };
    (failed > 0 && !is_known).then(|| format!("the stream was cut before its end, {ran}"))
}
