//! One server-sent event with a name, as OpenAI Responses and Anthropic Messages write them.

use event::Object;

/// Appends the event `name`, whose data is an object with the member `type` of the same value
/// first. Anthropic's clients drop events without a name, and those of both APIs read `type`.
pub(super) fn frame(out: &mut Vec<u8>, name: &str, fill: impl FnOnce(&mut Object<'_>)) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    let mut data = Object::open(out);
    data.str("type", name);
    fill(&mut data);
    data.close();
    out.extend_from_slice(b"\n\n");
}
