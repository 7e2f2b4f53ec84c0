//! What a client asks for.

use super::field::{As, Describe, payload};
use super::stream::Tools;
use crate::{Json, Object, Text};

/// Members of a request's body.
#[derive(Debug)]
pub(crate) struct Parameters;

impl Describe for Parameters {
    fn schema(o: &mut Object<'_>) {
        o.str("type", "object");
    }
}

payload! {
    /// What a client of `tc-serve` asks for, besides the messages: the first line of a pipeline's
    /// standard input. A stage that asks a model goes by it where its own options leave something
    /// open.
    Request<'a> {
        /// The API that the client speaks, as `--api` names it: the one whose members `params` are.
        api: Option<Text<'a>>,
        /// The model that the client names.
        model: Option<Text<'a>>,
        /// The tools, in OpenAI's shape.
        tools: Option<Json<'a>> as As<Tools>,
        /// `auto`, `none`, `required` or a tool's name.
        tool_choice: Option<Text<'a>>,
        /// All other members of the request's body, such as `temperature`, as the client sent them.
        params: Option<Json<'a>> as As<Parameters>,
        /// Whether the client wants a stream.
        streams: Option<bool>,
    }
}
