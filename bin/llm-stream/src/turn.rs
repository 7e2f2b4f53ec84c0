//! What a turn asks: the conversation, the options, the tools and the key, before anything is sent.

mod form;
mod key;
mod tools;

pub use form::{RequestForm, ToolsForm, ToolsModeChoice};
pub use key::KeySource;
pub use tools::{dialect, dialect_named, dialects, read as read_tools};

use anyhow::{Result, anyhow, bail};
use client::{AddressError, RequestHeader, Route, secrets_in_url, with_path_of};
use json::ToolList;
use redact::{Redactor, is_secret_header};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use tag::{Dialect, Dialects};
use upstream::{Api, Conversation, Request, RequestOptions, StreamOptions, request};

/// What the user asks for.
#[derive(Clone, Debug)]
pub struct TurnSettings {
    /// The API; without one the tape's, or openai-chat.
    pub api: Option<Api>,
    /// Where the API is served, instead of the provider's own address.
    pub base_url: Option<String>,
    /// The model; without one the tape's.
    pub model: Option<String>,
    /// Where the key is.
    pub key: KeySource,
    /// Headers as they were typed.
    pub headers: Vec<String>,
    /// Members of the body.
    pub params: Vec<(String, Value)>,
    /// The system prompt.
    pub system: Option<String>,
    /// The file of the tools.
    pub tools: Option<PathBuf>,
    /// `auto`, `none`, `required` or a tool's name.
    pub tool_choice: Option<String>,
    /// How the model is to learn of its tools.
    pub tools_mode: ToolsModeChoice,
    /// The dialect of tools in the prompt.
    pub dialect: Option<String>,
    /// The file of the user's own dialects.
    pub dialect_file: Option<PathBuf>,
    /// The end of the prompt that the model's text continues.
    pub prefill: Option<String>,
    /// Whether to ask for a stream.
    pub streams: bool,
    /// The most bytes of one event of the body.
    pub max_frame: usize,
    /// Whether a secret may go over http to another machine.
    pub allows_insecure: bool,
}

/// One turn, ready to become a request.
#[derive(Debug)]
pub struct TurnDraft {
    /// The API that is spoken.
    pub api: Api,
    /// What the user asks for beside the conversation.
    pub options: RequestOptions,
    /// Where requests go.
    pub route: Route,
    /// The dialects that can be named.
    pub dialects: Dialects,
    /// The dialect of tools in the prompt.
    pub dialect: &'static Dialect,
    /// The form of the first request.
    pub form: RequestForm,
    settings: TurnSettings,
    headers: Vec<RequestHeader>,
    is_key_needed: bool,
    /// Takes the key and whatever else is secret out of all that leaves.
    redactor: Redactor,
    conversation: Conversation,
    /// The tools in OpenAI's shape, as JSON on one line.
    tools: Option<String>,
}

impl TurnDraft {
    /// Puts the options together. The conversation comes later, so that a mistake here is reported before standard input is read.
    /// `recorded` is the API and the model of a tape. `is_probe` claims that no turn follows.
    ///
    /// # Errors
    /// One line that names the option and the remedy.
    pub fn new(settings: &TurnSettings, recorded: Option<(Api, String)>, is_probe: bool) -> Result<TurnDraft> {
        let dialects = dialects(settings.dialect_file.as_deref())?;
        let dialect = dialect(&dialects, settings.dialect.as_deref(), settings.tools_mode, is_probe)?;
        let (api, model) = recorded.unzip();
        let api = settings.api.or(api).unwrap_or(Api::OpenaiChat);
        let model = settings.model.clone().or(model).filter(|m| !m.is_empty());
        let Some(model) = model else { bail!("no model: name one with --model, or export LLM_MODEL") };
        let tools = settings.tools.as_deref().map(read_tools).transpose()?;
        let variable = |name: &str| std::env::var(name).ok();
        let headers = settings.headers.iter().map(|typed| RequestHeader::read(typed, variable).map_err(refused));
        let headers: Vec<RequestHeader> = headers.collect::<Result<_>>()?;
        let options = RequestOptions {
            model,
            base_url: settings.base_url.clone().map(|url| with_path_of(url, api.base_url())),
            key: None,
            system: settings.system.clone(),
            tools: tools.as_deref().map(ToolList::read).transpose()?.map(Arc::new),
            tool_choice: settings.tool_choice.clone(),
            dialect: None,
            params: settings.params.clone(),
            headers: headers.iter().map(|h| (h.name.clone(), h.value.clone())).collect(),
            stream: settings.streams,
        };
        let route = Route::of(options.base_url.as_deref().unwrap_or(api.base_url()));
        // A server at an address of the user's may want no key, and a header may hold it.
        let is_provider = settings.base_url.is_none() && !route.is_local;
        let is_key_needed = is_provider && !headers.iter().any(|h| is_secret_header(&h.name));
        let mut turn = TurnDraft {
            api,
            options,
            route,
            dialects,
            dialect,
            form: RequestForm { is_whole: false, tools: ToolsForm::Native },
            settings: settings.clone(),
            headers,
            is_key_needed,
            redactor: Redactor::default(),
            conversation: Conversation::default(),
            tools,
        };
        turn.redactor = Redactor::new(turn.secrets());
        if settings.tools_mode == ToolsModeChoice::Tag {
            turn.form.tools = turn.tag();
        }
        Ok(turn)
    }

    /// The tools in the prompt, in the dialect of this turn.
    pub fn tag(&self) -> ToolsForm {
        self.tag_in(self.dialect)
    }

    /// The tools in the prompt, in `dialect`. With `--tool-choice none` the tools are left out instead: nothing in a prompt prevents a
    /// call, and whatever looks like a call must stay text.
    pub fn tag_in(&self, dialect: &'static Dialect) -> ToolsForm {
        let is_none = self.options.tool_choice.as_deref() == Some("none");
        if is_none { ToolsForm::Nothing(dialect) } else { ToolsForm::Tag(dialect) }
    }

    /// Whether there are tools to learn of.
    pub fn has_tools(&self) -> bool {
        self.tools.as_deref().is_some_and(|tools| tools != "[]")
    }

    /// Takes the key, which only a request that is really sent needs.
    ///
    /// # Errors
    /// See [`KeySource::key`].
    pub fn take_key(&mut self) -> Result<()> {
        self.options.key = self.settings.key.key(self.api, self.is_key_needed)?;
        self.redactor = Redactor::new(self.secrets());
        Ok(())
    }

    /// Takes the conversation and the question after it; returns the question as a chat message.
    pub fn converse(&mut self, conversation: Conversation, question: Option<&str>) -> Option<String> {
        self.conversation = conversation;
        let question = question?;
        self.conversation.push_user(question);
        Some(format!("{{\"role\":\"user\",\"content\":{}}}", event::quoted(question)))
    }

    /// How often the model has answered since the last user's message.
    pub fn steps(&self) -> usize {
        self.conversation.steps()
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        &self.options.model
    }

    /// Where requests go.
    pub fn url(&self) -> &str {
        &self.route.url
    }

    /// What takes the secrets of this turn out of all that leaves.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Whether the value of a header of the user's is secret.
    pub fn is_secret(&self, name: &str) -> bool {
        self.headers.iter().any(|h| h.is_secret() && h.name.eq_ignore_ascii_case(name))
    }

    fn secrets(&self) -> Vec<String> {
        let in_headers = self.headers.iter().flat_map(RequestHeader::secrets);
        in_headers.chain(secrets_in_url(self.url())).chain(self.options.key.clone()).collect()
    }

    /// The request in this form.
    ///
    /// # Errors
    /// When the conversation is empty or cannot be put into the API's shape, or a secret would be sent unprotected.
    pub fn request(&self, form: RequestForm) -> Result<Request> {
        let stream = self.options.stream && !form.is_whole;
        let mut options = RequestOptions { stream, ..self.options.clone() };
        match form.tools {
            ToolsForm::Native => {}
            ToolsForm::Tag(dialect) => options.dialect = Some(dialect),
            ToolsForm::Nothing(dialect) => (options.dialect, options.tools) = (Some(dialect), None),
        }
        let request = request(self.api, &self.conversation, &options)?;
        self.check(&request)?;
        Ok(request)
    }

    /// Checks that a request may be sent to its address.
    ///
    /// # Errors
    /// One line with the remedy.
    pub fn check(&self, request: &Request) -> Result<()> {
        match self.route.check(request, |name| self.is_secret(name)) {
            Ok(()) => Ok(()),
            Err(AddressError::Exposed(_)) if self.settings.allows_insecure => Ok(()),
            Err(e @ AddressError::Exposed(_)) => bail!("{e}, or --allow-insecure"),
            Err(e) => bail!("--base-url: {e}"),
        }
    }

    /// The options of the stream that answers `request`.
    pub fn stream_options(&self, request: &Request, attempt: u32, form: RequestForm) -> StreamOptions {
        let (tools_mode, dialect) = match (form.tools, &self.tools) {
            (ToolsForm::Tag(dialect), _) => ("tag", Some(dialect)),
            (ToolsForm::Native, Some(_)) => ("native", None),
            (ToolsForm::Native, None) | (ToolsForm::Nothing(_), _) => ("none", None),
        };
        StreamOptions {
            tools: self.tools.clone().filter(|_| tools_mode != "none"),
            tools_mode: Some(tools_mode.to_owned()),
            dialect: dialect.map(|d| d.name.to_owned()),
            prefill: self.settings.prefill.clone(),
            model: Some(self.options.model.clone()),
            attempt: (attempt > 1).then_some(attempt),
            fallback: form.is_whole,
            id: Some(request.name()),
            redactor: self.redactor.clone(),
            max_frame: Some(self.settings.max_frame),
        }
    }
}

fn refused(e: client::HeaderError) -> anyhow::Error {
    anyhow!("--header: {e}")
}
