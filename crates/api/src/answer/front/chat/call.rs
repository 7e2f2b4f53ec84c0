//! A call in a chunk and in a whole answer.

use event::{Object, Raw};

/// The place of a call among those of its choice: dense from 0, since openai-python reads it as an
/// index into a list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallPlace(u32);

impl CallPlace {
    /// The next call follows.
    pub fn advance(&mut self) {
        self.0 += 1;
    }

    /// The first delta has the id, the type and the name, and no other delta has them:
    /// openai-python joins strings that are repeated, and openai-node refuses a changed identity.
    /// `arguments` must not be missing (open-webui#13125).
    pub fn begin(self, o: &mut Object<'_>, id: &str, name: &str) {
        self.item(o, |o| {
            o.str("id", id)
                .str("type", "function")
                .object("function", |o| {
                    o.str("name", name).str("arguments", "");
                });
        });
    }

    /// The next bytes of the arguments.
    pub fn arguments(self, o: &mut Object<'_>, more: &str) {
        self.item(o, |o| {
            o.object("function", |o| {
                o.str("arguments", more);
            });
        });
    }

    /// What must go back with the call. The AI SDK requires `function` in every item.
    pub fn extra(self, o: &mut Object<'_>, extra: &str) {
        self.item(o, |o| {
            o.object("function", |o| {
                o.str("arguments", "");
            });
            o.raw("extra_content", extra);
        });
    }

    fn item(self, o: &mut Object<'_>, fill: impl FnOnce(&mut Object<'_>)) {
        o.array("tool_calls", |list| {
            list.object(|o| {
                o.int("index", self.0);
                fill(o);
            });
        });
    }
}

/// The call in a whole answer.
pub(super) fn whole(
    o: &mut Object<'_>,
    id: &str,
    name: &str,
    arguments: &str,
    provider: Option<&str>,
) {
    o.str("id", id)
        .str("type", "function")
        .object("function", |o| {
            o.str("name", name).str("arguments", arguments);
        });
    if let Some(extra) = provider.and_then(extra_content) {
        o.raw("extra_content", &extra);
    }
}

/// The value of `extra_content`, in which a client sends back what the provider wants back with the
/// call: as it came from an upstream of this API, Gemini's signature as Google's own OpenAI
/// endpoint has it (<https://ai.google.dev/gemini-api/docs/thought-signatures>), and anything else
/// under the key `toolpipe`.
pub(super) fn extra_content(provider: &str) -> Option<String> {
    let data = Raw::parse(provider).ok().filter(|data| data.is_object())?;
    if let Some(extra) = data
        .at(&["openai-chat", "extra_content"])
        .filter(|extra| extra.is_object())
    {
        return Some(extra.text().to_owned());
    }
    if let Some(signature) = data
        .at(&["gemini", "thoughtSignature"])
        .filter(|signature| signature.is_str())
    {
        return Some(format!(
            "{{\"google\":{{\"thought_signature\":{}}}}}",
            signature.text()
        ));
    }
    Some(format!("{{\"toolpipe\":{}}}", data.text()))
}
