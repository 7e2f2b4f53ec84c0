//! The members that every chunk of an answer repeats.

use crate::options::AnswerOptions;
use event::Object;

/// The id, the kind, the time and the model.
pub(super) struct Envelope {
    id: String,
    object: &'static str,
    created: u64,
    model: String,
}

impl Envelope {
    pub fn new(options: &AnswerOptions, object: &'static str) -> Envelope {
        let id = options.provider_id.clone().unwrap_or_else(|| format!("chatcmpl-{}", options.id));
        Envelope { id, object, created: options.created, model: options.model.clone() }
    }

    /// Sets the id.
    pub fn set_id(&mut self, id: &str) {
        id.clone_into(&mut self.id);
    }

    /// Appends one event of the stream; `fill` adds the members that differ.
    pub fn chunk(&self, model: &str, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        out.extend_from_slice(b"data: ");
        self.object(model, out, fill);
        out.extend_from_slice(b"\n\n");
    }

    /// Appends one object. Clients compare the model with the one that they asked for, so the upstream's name counts only where the request
    /// has none.
    pub fn object(&self, model: &str, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        let model = if self.model.is_empty() { model } else { &self.model };
        let mut o = Object::open(out);
        o.str("id", &self.id).str("object", self.object).int("created", self.created).str("model", model);
        fill(&mut o);
        o.close();
    }
}
