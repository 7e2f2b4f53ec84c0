//! What Anthropic wants back with the next request, out of the `provider` data of a step.

use crate::answer::details::Members;
use crate::answer::front::carried::carried;
use event::{Object, Raw, minify};

/// What Anthropic wants back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Opaque {
    /// Nothing.
    None,
    /// The signature of the reasoning before it, or the data of another provider in its place.
    Signature(String),
    /// A block of its own, such as redacted reasoning or the result of a tool that the provider
    /// ran.
    Block {
        /// The block as it starts, JSON.
        start: String,
        /// Its input, where the API sends that in deltas.
        input: Option<String>,
    },
}

impl Opaque {
    /// Reads `provider`: JSON, by the name of the API.
    pub(super) fn of(provider: &str) -> Opaque {
        let own = Raw::parse(provider)
            .ok()
            .and_then(|data| data.get("anthropic"));
        let Some(own) = own else {
            return carried(provider, "anthropic").map_or(Opaque::None, Opaque::Signature);
        };
        if let Some(signature) = own.get_str("signature") {
            return Opaque::Signature(signature.into_owned());
        }
        if let Some(data) = own.get_str("redacted") {
            let mut start = Vec::new();
            let mut o = Object::open(&mut start);
            o.str("type", "redacted_thinking").str("data", &data);
            o.close();
            return Opaque::Block {
                start: text(start),
                input: None,
            };
        }
        own.get("block")
            .filter(|b| b.is_object())
            .map_or(Opaque::None, Opaque::block)
    }

    /// A block of the provider's.
    pub(super) fn of_block(block: &Members) -> Opaque {
        let json = serde_json::Value::from(block.clone()).to_string();
        Raw::parse(&json).map_or(Opaque::None, Opaque::block)
    }

    /// The AI SDK reads the input of `mcp_tool_use` at its start, and that of `server_tool_use` in
    /// deltas, as the API sends them.
    fn block(block: Raw<'_>) -> Opaque {
        let has_deltas = block
            .get_str("type")
            .is_some_and(|t| t == "server_tool_use");
        let input = block.get("input").filter(|_| has_deltas);
        let mut start = Vec::new();
        let mut o = Object::open(&mut start);
        for (key, value) in block.entries() {
            o.minified(
                &key,
                if has_deltas && key == "input" {
                    "{}"
                } else {
                    value.text()
                },
            );
        }
        o.close();
        let input = input.map(|input| {
            let mut json = Vec::new();
            minify(&mut json, input.text());
            text(json)
        });
        Opaque::Block {
            start: text(start),
            input,
        }
    }

    /// The whole block, for an answer that is not a stream.
    pub(super) fn whole_block(provider: &str) -> Option<String> {
        let raw = Raw::parse(provider)
            .ok()?
            .at(&["anthropic", "block"])
            .filter(|b| b.is_object());
        if let Some(block) = raw {
            let mut json = Vec::new();
            minify(&mut json, block.text());
            return Some(text(json));
        }
        match Opaque::of(provider) {
            Opaque::Block { start, .. } => Some(start),
            _ => None,
        }
    }
}

/// What was written here is UTF-8.
fn text(json: Vec<u8>) -> String {
    String::from_utf8(json).unwrap_or_default()
}
