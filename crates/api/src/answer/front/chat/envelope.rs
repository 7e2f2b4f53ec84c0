//! The members that every chunk of an answer repeats.

use crate::answer::details::{self, Members};
use crate::answer::options::AnswerOptions;
use event::Object;

/// The members that every chunk has: the last one counts for openai-python
/// (`lib/streaming/chat/_completions.py`).
const REPEATED: [&str; 3] = ["system_fingerprint", "service_tier", "provider"];

/// The id, the kind, the time and the model.
pub(super) struct Envelope {
    id: String,
    object: &'static str,
    created: u64,
    model: String,
    /// Members of the provider's answer for the next object.
    pub members: Members,
}

impl Envelope {
    pub fn new(options: &AnswerOptions, object: &'static str) -> Envelope {
        let id = options
            .provider_id
            .clone()
            .unwrap_or_else(|| format!("chatcmpl-{}", options.id));
        Envelope {
            id,
            object,
            created: options.created,
            model: options.model.clone(),
            members: Members::new(),
        }
    }

    /// Sets the id.
    pub fn set_id(&mut self, id: &str) {
        id.clone_into(&mut self.id);
    }

    /// Appends one event of the stream; `fill` adds the members that differ.
    pub fn chunk(&mut self, model: &str, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        out.extend_from_slice(b"data: ");
        self.object(model, out, fill);
        out.extend_from_slice(b"\n\n");
        self.members
            .retain(|name, _| REPEATED.contains(&name.as_str()));
    }

    /// Appends one object.
    pub fn object(&self, model: &str, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        let model = if model.is_empty() { &self.model } else { model };
        let mut o = Object::open(out);
        o.str("id", &self.id)
            .str("object", self.object)
            .int("created", self.created)
            .str("model", model);
        fill(&mut o);
        details::write(&mut o, &self.members);
        o.close();
    }
}
