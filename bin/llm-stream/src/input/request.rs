//! What a client of `tc-serve` asks for, as the log has it.

use api::{Api, InboundRequest, request_event};

/// The last `request` event of a log: the API that the client speaks, and what it asks for. An
/// earlier one belongs to an earlier turn.
pub fn last(log: &str) -> Option<(Api, InboundRequest)> {
    // A line that does not hold the word is not parsed: a log may be long.
    log.lines()
        .rev()
        .filter(|line| line.contains("\"request\""))
        .find_map(request_event)
}
