//! What a turn asks: the conversation, the options, the tools and the key, before anything is sent.

use crate::args::{Args, ToolsMode};
use crate::header::Header;
use crate::key;
use crate::out::Out;
use crate::route::Route;
use crate::tools;
use crate::verbose;
use anyhow::{Result, anyhow, bail};
use json::ToolList;
use redact::{Redactor, is_secret_header};
use reqwest::Url;
use std::env;
use std::io::IsTerminal;
use std::sync::Arc;
use stdio::Status;
use tag::Dialect;
use upstream::{Api, Conversation, Request, RequestOptions, StreamOptions, request};

/// One turn, ready to be asked.
#[derive(Debug)]
pub struct Turn {
    pub api: Api,
    pub options: RequestOptions,
    /// The user's headers.
    pub headers: Vec<Header>,
    /// Where requests go.
    pub route: Route,
    /// Takes the key and whatever else is secret out of all that leaves.
    redactor: Redactor,
    talk: Conversation,
    /// The tools in OpenAI's shape, as JSON on one line.
    tools: Option<String>,
    prefill: Option<String>,
    /// The dialect of the prompt, if the tools stand there.
    pub dialect: &'static Dialect,
    /// How it is asked first.
    pub way: Way,
}

/// How a request is made.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The answer is asked for at once, not as a stream.
    pub whole: bool,
    pub told: Told,
}

/// How the model learns of its tools.
#[derive(Clone, Copy, Debug)]
pub enum Told {
    /// In the request, if there are any.
    Native,
    /// In the prompt, in this dialect.
    Tag(&'static Dialect),
    /// Not at all; earlier calls are text of this dialect.
    Nothing(&'static Dialect),
}

impl Turn {
    /// Puts the options together. The conversation comes later, so that a mistake here is told before standard input is read.
    ///
    /// # Errors
    /// One line that names the option and the remedy.
    pub fn new(args: &Args, recorded: Option<(Api, String)>) -> Result<Turn> {
        let typed = &args.request;
        let dialect = tools::dialect(args)?;
        let (api, model) = recorded.unzip();
        let api = match (typed.api, env::var("LLM_API")) {
            (Some(api), _) => api,
            (None, Ok(name)) => {
                Api::from_name(&name).ok_or_else(|| anyhow!("LLM_API: unknown API {name:?}, see --api in '--help'"))?
            }
            (None, Err(_)) => api.unwrap_or(Api::OpenaiChat),
        };
        let model = typed.model.clone().or_else(|| env::var("LLM_MODEL").ok()).or(model).filter(|m| !m.is_empty());
        let Some(model) = model else { bail!("no model: name one with --model, or export LLM_MODEL") };
        let tools = tools::tools(typed)?;
        let headers = typed.headers.iter().map(|typed| Header::read(typed)).collect::<Result<Vec<_>>>()?;
        let options = RequestOptions {
            model,
            base_url: typed
                .base_url
                .clone()
                .or_else(|| env::var("LLM_BASE_URL").ok())
                .filter(|url| !url.is_empty())
                .map(|url| with_version(url, api)),
            key: None,
            system: typed.system.clone(),
            tools: tools.as_deref().map(ToolList::read).transpose()?.map(Arc::new),
            tool_choice: typed.tool_choice.clone(),
            dialect: None,
            params: typed.params.clone(),
            headers: headers.iter().map(|h| (h.name.clone(), h.value.clone())).collect(),
            stream: !typed.no_stream,
        };
        let way = Way { whole: false, told: Told::Native };
        let route = Route::of(options.base_url.as_deref().unwrap_or(api.base_url()));
        let mut turn = Turn {
            api,
            options,
            headers,
            route,
            redactor: Redactor::default(),
            talk: Conversation::default(),
            tools,
            prefill: typed.prefill.clone(),
            dialect,
            way,
        };
        turn.redactor = Redactor::new(turn.secrets());
        if typed.tools_mode == ToolsMode::Tag {
            turn.way.told = turn.tag();
        }
        Ok(turn)
    }

    /// The tools in the prompt, in the dialect of this turn.
    pub fn tag(&self) -> Told {
        self.tag_in(self.dialect)
    }

    /// The tools in the prompt, in `dialect`. Nothing there enforces that none is called: what looks like a call must stay text then.
    pub fn tag_in(&self, dialect: &'static Dialect) -> Told {
        if self.options.tool_choice.as_deref() == Some("none") { Told::Nothing(dialect) } else { Told::Tag(dialect) }
    }

    /// Whether there are tools to learn of.
    pub fn has_tools(&self) -> bool {
        self.tools.as_deref().is_some_and(|tools| tools != "[]")
    }

    /// Takes the key, which only a request that is really sent needs.
    ///
    /// # Errors
    /// See [`key::key`].
    pub fn take_key(&mut self, args: &Args) -> Result<()> {
        self.options.key = key::key(args, self)?;
        self.redactor = Redactor::new(self.secrets());
        Ok(())
    }

    /// Takes the conversation and the question after it; gives the question as an event.
    pub fn converse(&mut self, talk: Conversation, prompt: Option<&str>) -> Option<String> {
        self.talk = talk;
        let prompt = prompt?;
        self.talk.push_user(prompt);
        Some(format!("{{\"role\":\"user\",\"content\":{}}}", event::quoted(prompt)))
    }

    /// How often the model has answered since the last user's message.
    pub fn steps(&self) -> usize {
        self.talk.steps()
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        &self.options.model
    }

    /// What takes the secrets of this turn out of all that leaves.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Whether the value of a request's header is secret.
    pub fn is_secret(&self, name: &str) -> bool {
        is_secret_header(name) || self.headers.iter().any(|h| h.is_secret && h.name.eq_ignore_ascii_case(name))
    }

    /// Everything secret that goes into a request.
    fn secrets(&self) -> Vec<String> {
        let in_url = Url::parse(self.url()).map(|url| key::in_url(&url)).unwrap_or_default();
        self.headers.iter().flat_map(Header::secrets).chain(in_url).chain(self.options.key.clone()).collect()
    }

    /// Where requests go.
    pub fn url(&self) -> &str {
        self.options.base_url.as_deref().unwrap_or(self.api.base_url())
    }

    /// Prints the request's body, on one line, or over several for a person at a terminal; its address goes to standard error.
    ///
    /// # Errors
    /// See [`Turn::request`]; failures of standard output.
    pub fn show(&self, args: &Args, out: &mut Out) -> Result<Status> {
        let request = self.request(args, self.way)?;
        let address = verbose::line(&request, self.redactor());
        let mut body = request.body;
        if std::io::stdout().is_terminal() {
            body = serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(&body)?)?;
            body = event::safe_json(&body).into_owned();
        }
        out.text(&body)?;
        stdio::message("llm-stream", &address);
        Ok(Status::Done)
    }

    /// Whether the answer is asked for as a stream.
    pub fn streams(&self) -> bool {
        self.options.stream
    }

    /// The request.
    ///
    /// # Errors
    /// When the conversation is empty or cannot be put into the API's shape, or the key would be sent unprotected.
    pub fn request(&self, args: &Args, way: Way) -> Result<Request> {
        let stream = self.options.stream && !way.whole;
        let mut options = RequestOptions { stream, ..self.options.clone() };
        match way.told {
            Told::Native => {}
            Told::Tag(dialect) => options.dialect = Some(dialect),
            Told::Nothing(dialect) => (options.dialect, options.tools) = (Some(dialect), None),
        }
        let request = request(self.api, &self.talk, &options)?;
        key::check(args, self, &request)?;
        Ok(request)
    }

    /// What `stream_start` says of this turn.
    pub fn stream_options(&self, args: &Args, request: &Request, attempt: u32, way: Way) -> StreamOptions {
        let (tools_mode, dialect) = match (way.told, &self.tools) {
            (Told::Tag(dialect), _) => ("tag", Some(dialect)),
            (Told::Native, Some(_)) => ("native", None),
            (Told::Native, None) | (Told::Nothing(_), _) => ("none", None),
        };
        StreamOptions {
            tools: self.tools.clone().filter(|_| tools_mode != "none"),
            tools_mode: Some(tools_mode.to_owned()),
            dialect: dialect.map(|d| d.name.to_owned()),
            prefill: self.prefill.clone(),
            model: Some(self.options.model.clone()),
            attempt: (attempt > 1).then_some(attempt),
            fallback: way.whole,
            id: Some(request.name()),
            redactor: self.redactor.clone(),
            max_frame: Some(args.common.max_line),
        }
    }
}

/// A server's bare address gets the path that the provider's own has (`/v1`), since most servers copy that; any other stays.
fn with_version(url: String, api: Api) -> String {
    let (Ok(mut typed), Ok(own)) = (Url::parse(&url), Url::parse(api.base_url())) else { return url };
    if !matches!(typed.path(), "" | "/") {
        return url;
    }
    typed.set_path(own.path());
    typed.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_address_gets_the_usual_path() {
        for (api, typed, full) in [
            (Api::OpenaiChat, "http://h:1", "http://h:1/v1"),
            (Api::OpenaiChat, "http://h/?v=2", "http://h/v1?v=2"),
            (Api::OpenaiChat, "http://h/api", "http://h/api"),
            (Api::Gemini, "https://h", "https://h/v1beta"),
            (Api::Ollama, "http://h:2", "http://h:2/"),
            (Api::OpenaiChat, "not a url", "not a url"),
        ] {
            assert_eq!(with_version(typed.to_owned(), api), full);
        }
    }
}
