//! What a command reads: the request, and the log.

use crate::asked::Asked;

/// The lines of a command's standard input: the `request` event, and a `message` event for each
/// message. `model` takes the place of the model that the client names.
pub fn input(asked: &Asked, model: Option<&str>) -> Vec<u8> {
    asked.request.lines(asked.api, model).into_bytes()
}
