//! The content of a turn before it is sent: the conversation, the tools and the options.

use super::args::ToolsModeChoice;
use super::form::{RequestForm, ToolsForm};
use super::provider::ReadyProvider;
use anyhow::{Result, bail};
use api::tape::AskedOfLog;
use api::{
    Api, Conversation, InboundRequest, Request, RequestError, RequestOptions, StreamOptions,
    TargetServer, most_tokens, request,
};
use redact::Redactor;
use serde_json::{Value, json};
use std::sync::Arc;
use tag::Dialect;
use trace::{IdSeed, TraceContext};

/// One turn, ready to be turned into a request.
#[derive(Clone, Debug)]
pub struct TurnDraft {
    /// The provider that the turn is sent to.
    pub provider: Arc<ReadyProvider>,
    /// The options of the request, apart from the conversation.
    pub options: RequestOptions,
    /// The form of the first request.
    pub form: RequestForm,
    /// The dialect of the model's family, if the model's name does not reveal it. It is used to
    /// parse calls that a server leaves in the text of a native response.
    pub family: Option<&'static Dialect>,
    /// The parent span of the requests, if they are traced. The provider receives a child span.
    pub trace: Option<TraceContext>,
    /// The options of the response's stream that do not depend on the request.
    stream: StreamOptions,
    conversation: Conversation,
}

/// Conversations above this many bytes are turned into a request on another thread. Below it,
/// building the request takes at most a millisecond.
const LONG: usize = 64 << 10;

impl TurnDraft {
    /// Creates a turn without a conversation, which is set later; the model may be set later too.
    /// The provider's settings override the model in `options`, and params and headers of the same
    /// name. If `stream` has no id, a response without an id gets one derived from the request.
    pub fn new(
        provider: Arc<ReadyProvider>,
        mut options: RequestOptions,
        mut stream: StreamOptions,
    ) -> TurnDraft {
        let RequestOptions {
            model,
            base_url,
            key,
            headers,
            ..
        } = &provider.options;
        if !model.is_empty() {
            options.model.clone_from(model);
        } else if let ("", Some(model)) = (&*options.model, provider.recorded_model()) {
            model.clone_into(&mut options.model);
        }
        options.base_url.clone_from(base_url);
        options.key.clone_from(key);
        options.headers.extend(headers.iter().cloned());
        let settings = &provider.settings;
        options.params = provider.with_own(options.params);
        options.caches_prefix = !settings.provider.no_prompt_cache;
        stream.tools = options.tools.as_ref().map(|tools| tools.openai(|_| true));
        stream.system.clone_from(&options.system);
        stream.prefill.clone_from(&settings.tools.prefill);
        stream.max_frame = Some(settings.max_frame);
        stream.price = settings.provider.price;
        let is_tag = settings.tools.tools_mode == ToolsModeChoice::Tag;
        let mut turn = TurnDraft {
            family: provider.family,
            provider,
            options,
            form: RequestForm {
                is_whole: false,
                tools: ToolsForm::Native,
            },
            trace: None,
            stream,
            conversation: Conversation::default(),
        };
        if is_tag {
            turn.form.tools = turn.tag();
        }
        turn
    }

    /// Checks that a model is named.
    ///
    /// # Errors
    /// If none of the provider's settings, the options, a tape or a `request` event of the log
    /// names a model.
    pub fn check_model(&self) -> Result<()> {
        if self.options.model.is_empty() {
            bail!("no model: name one with --model, or export LLM_MODEL");
        }
        Ok(())
    }

    /// Applies a `request` event of the log, from a client that speaks `api`, where the settings
    /// leave values open: the model, the tools and the tool choice, and settings, which are renamed
    /// for the provider's API. Returns one sentence for each reason why settings were dropped.
    pub fn fill_in(&mut self, api: Api, request: &InboundRequest) -> Vec<String> {
        // A `request` event comes from a client that waits for the response.
        self.stream.details = true;
        let options = &mut self.options;
        if options.model.is_empty() || self.provider.model().is_none() {
            options.model = request
                .model
                .clone()
                .unwrap_or(std::mem::take(&mut options.model));
        }
        let typed_tools = options.tools.is_some();
        let tools = options
            .tools
            .get_or_insert_with(|| request.tools.clone().unwrap_or_default());
        // An empty list means that no name in the text is a tool.
        self.stream.tools = Some(tools.openai(|_| true));
        // Providers reject a tool choice without tools. The name of a tool that is not among the
        // tools on the command line cannot be chosen.
        let has_tools = tools.iter().next().is_some();
        let is_usable = |choice: &String| {
            !typed_tools || matches!(choice.as_str(), "auto" | "none" | "required")
        };
        if options.tool_choice.is_none() && has_tools {
            options.tool_choice = request.tool_choice.clone().filter(is_usable);
        }
        let (mut params, left_out) = request.parameters_for(api, &self.target());
        let options = &mut self.options;
        // A tool choice with a setting beside it comes from the client, and is used with the
        // client's tools.
        params.retain(|(name, _)| name != "tool_choice" || (!typed_tools && has_tools));
        options.params = self.provider.with_own(params);
        if matches!(self.form.tools, ToolsForm::Tag(_) | ToolsForm::Nothing(_)) {
            self.form.tools = self.tag();
        }
        left_out
    }

    /// Returns the form with the tools in the prompt, in the provider's dialect.
    pub fn tag(&self) -> ToolsForm {
        self.tag_in(self.provider.dialect)
    }

    /// Returns the form with the tools in the prompt, in `dialect`. With the tool choice `none`,
    /// the tools are omitted instead: a prompt cannot prevent a call, and text that looks like a
    /// call must stay text.
    pub fn tag_in(&self, dialect: &'static Dialect) -> ToolsForm {
        let is_none = self.options.tool_choice.as_deref() == Some("none");
        if is_none {
            ToolsForm::Nothing(dialect)
        } else {
            ToolsForm::Tag(dialect)
        }
    }

    /// Whether the turn has tools.
    pub fn has_tools(&self) -> bool {
        self.stream
            .tools
            .as_deref()
            .is_some_and(|tools| tools != "[]")
    }

    /// Whether calls may appear in the text of a native response from a model whose family is
    /// revealed by neither the user nor the model's name.
    pub fn needs_family(&self) -> bool {
        matches!(self.form.tools, ToolsForm::Native)
            && self.has_tools()
            && self.family.is_none()
            && self.provider.dialects.of_model(self.model()).is_none()
    }

    /// Reads the key from its source. Called only for a request that is really sent, since no other
    /// needs the key.
    ///
    /// # Errors
    /// See [`ReadyProvider::take_key`].
    pub fn take_key(&mut self) -> Result<()> {
        let provider = Arc::make_mut(&mut self.provider);
        provider.take_key()?;
        self.options.key = provider.options.key.clone();
        Ok(())
    }

    /// Sets the conversation.
    pub fn converse(&mut self, conversation: Conversation) {
        self.conversation = conversation.for_provider(self.provider.api.name());
    }

    /// Appends a question, which is a text or a list of parts, to the conversation. Returns the
    /// question as a chat message.
    pub fn ask(&mut self, question: impl Into<Value>) -> String {
        let question = question.into();
        let message = format!("{{\"role\":\"user\",\"content\":{question}}}");
        self.conversation.push_user(question);
        message
    }

    /// Requests an answer that conforms to a JSON Schema, in the member that the provider's API has
    /// for it.
    pub fn answer_by(&mut self, schema: Value) {
        let format =
            json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
        let mut request = InboundRequest::default();
        request.params.insert("response_format".to_owned(), format);
        let (mut params, _) = request.parameters_for(Api::OpenaiChat, &self.target());
        params.append(&mut self.options.params);
        self.options.params = params;
    }

    fn target(&self) -> TargetServer<'_> {
        TargetServer {
            api: self.provider.api,
            url: &self.provider.route.url,
            model: &self.options.model,
        }
    }

    /// Returns the query for a log that is replayed in place of a provider.
    pub fn asked(&self) -> AskedOfLog<'_> {
        AskedOfLog {
            system: self.options.system.as_deref(),
            tools: self.stream.tools.as_deref(),
            messages: &self.conversation.messages,
            begun: self.conversation.begun(),
        }
    }

    /// Appends a message of a recorded conversation, as JSON.
    pub fn push(&mut self, message: &str) {
        let (recorded, _) = Conversation::read(message);
        let messages = recorded.messages.into_iter();
        messages.for_each(|message| self.conversation.push(message));
    }

    /// Returns how many times the model has answered since the last user message.
    pub fn steps(&self) -> usize {
        self.conversation.steps()
    }

    /// Returns the model's name.
    pub fn model(&self) -> &str {
        &self.options.model
    }

    /// Returns the URL that requests are sent to.
    pub fn url(&self) -> &str {
        &self.provider.route.url
    }

    /// Returns the limit of the response's tokens, or `None` if the request sets none.
    pub fn most_tokens(&self) -> Option<u64> {
        most_tokens(&self.target(), &self.options.params)
    }

    /// Returns the redactor that removes this turn's secrets from output.
    pub fn redactor(&self) -> &Redactor {
        self.provider.redactor()
    }

    /// Whether building the request takes long.
    pub(crate) fn is_long(&self) -> bool {
        self.conversation.is_longer_than(LONG)
    }

    /// Builds the request in this form.
    ///
    /// # Errors
    /// If the conversation is empty or cannot be expressed in the API's format, or if a secret
    /// would be sent unencrypted.
    pub fn request(&self, form: RequestForm) -> Result<Request> {
        let stream = self.options.stream && !form.is_whole;
        let mut options = RequestOptions {
            stream,
            ..self.options.clone()
        };
        match form.tools {
            ToolsForm::Native => {}
            ToolsForm::Tag(dialect) => options.dialect = Some(dialect),
            ToolsForm::Nothing(dialect) => (options.dialect, options.tools) = (Some(dialect), None),
        }
        let request = match request(self.provider.api, &self.conversation, &options) {
            Err(error @ RequestError::Empty) => {
                bail!("{error}: give a PROMPT, or a log with \"message\" events on standard input")
            }
            request => request?,
        };
        self.provider.check(&request)?;
        Ok(request)
    }

    /// Returns the seed for the span id of `request`.
    pub(crate) fn span_seed(&self, request: &Request) -> IdSeed {
        IdSeed::of([
            &request.name(),
            self.stream.id.as_deref().unwrap_or_default(),
        ])
    }

    /// Returns the options of the stream that parses the response to `request`.
    pub fn stream_options(
        &self,
        request: &Request,
        attempt: u32,
        form: RequestForm,
    ) -> StreamOptions {
        let mut options = self.stream.clone();
        // With the tool choice `none`, text that looks like a call must stay text.
        let is_none = self.options.tool_choice.as_deref() == Some("none");
        let (tools_mode, dialect) = match (form.tools, &options.tools) {
            (ToolsForm::Tag(dialect), _) => ("tag", Some(dialect)),
            (ToolsForm::Native, Some(_)) if !is_none => ("native", self.family),
            (ToolsForm::Native, _) | (ToolsForm::Nothing(_), _) => ("none", None),
        };
        options.tools = options.tools.filter(|_| tools_mode != "none");
        StreamOptions {
            tools_mode: Some(tools_mode.to_owned()),
            dialect: dialect.map(|d| d.name.to_owned()),
            model: Some(self.options.model.clone()),
            attempt: (attempt > 1).then_some(attempt),
            fallback: form.is_whole && !self.form.is_whole,
            id: Some(options.id.unwrap_or_else(|| request.name())),
            redactor: self.redactor().clone(),
            ..options
        }
    }
}
