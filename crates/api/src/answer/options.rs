//! What an answer says besides what the model wrote.

/// What an answer says besides what the model wrote. But for `clock` the same events and options
/// give the same bytes.
#[derive(Clone, Debug, Default)]
pub struct AnswerOptions {
    /// The id of the answer, without the prefix of a front such as `chatcmpl-`.
    pub id: String,
    /// Whether the ids of a provider of the front's own API stay: a later request of the client may
    /// refer to them.
    pub keeps_ids: bool,
    /// The id that the provider gave to the answer, which takes the place of one made of `id`. An
    /// [`crate::answer::Encoder`] sets it by the events.
    pub provider_id: Option<String>,
    /// The seconds since 1970 now, for `completed_at` of OpenAI Responses; `null` without it.
    pub clock: Option<fn() -> u64>,
    /// The model that the client asked for; the upstream's name of it counts where this is empty.
    pub model: String,
    /// When the request came: seconds since 1970.
    pub created: u64,
    /// How many choices the client asked for; the others of the upstream are dropped. `None` keeps
    /// all of them.
    pub choices: Option<u32>,
    /// Whether a chat stream ends with a chunk of usage (`stream_options.include_usage`).
    pub include_usage: bool,
    /// Whether warnings and repairs go along under the key `toolpipe`, in chunks without choices.
    pub extras: bool,
    /// Members of the request that the answer of OpenAI Responses repeats, such as `tools` and
    /// `instructions`: pairs of a name and JSON.
    pub echo: Vec<(String, String)>,
    /// The names of the tools of the request that have one free text in place of arguments
    /// (`custom` tools of OpenAI Responses).
    pub custom_tools: Vec<String>,
    /// The tools of the request that the client has in a namespace (OpenAI Responses): an answer
    /// names the two apart.
    pub namespaced_tools: Vec<NamespacedName>,
}

/// The name of a tool in a namespace, as Codex has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespacedName {
    /// The name that the model knows.
    pub full_name: String,
    /// The namespace.
    pub namespace: String,
    /// The name within the namespace.
    pub name: String,
}
