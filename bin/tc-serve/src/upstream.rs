//! A provider as the source of events, and requests to it other than those for responses: its
//! models, token counts, reachability, the kind of server, and forwarded paths.

mod by_model;
mod host;

use crate::client_request::ClientRequest;
use crate::log::Notices;
use crate::pipe::Pipe;
use anyhow::{Result, bail};
use api::FailedAnswer;
use api::{
    Api, ListedModel, Request, RequestOptions, ServerKind, ServerReport, StreamOptions,
    TargetServer, error_message, host_of, listed_models, models_request, passed_request, plain_url,
};
use ask::{
    AskTurn, ConnectionArgs, Host, Playlist, ReadyProvider, ReplayArgs, SERVICE, Settings,
    ToolsForm, ToolsModeChoice, TurnDraft, open_tape, sentence,
};
use by_model::ByModel;
use client::{
    Body, Error, Head, Network, Networks, PieceContent, Recorder, Response, Speed, TimeLimits,
    retry_after,
};
use event::payload::Warning;
use event::{Object, Raw};
use host::PipeHost;
use hyper::body::Bytes;
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tag::{Dialect, Dialects};
use tokio::time::Instant;

/// The model name of recorded responses that name no model.
const REPLAY: &str = "replay";

/// The most tokens of a response that is requested whole. At ten tokens a second the connection is
/// then silent for less than a minute, the time after which some load balancers close it
/// (<https://docs.aws.amazon.com/elasticloadbalancing/latest/application/application-load-balancers.html>,
/// "Connection idle timeout").
const FEW_TOKENS: u64 = 512;

/// A provider and the state for requests to it.
#[derive(Debug)]
pub(crate) struct Upstream {
    provider: Arc<ReadyProvider>,
    /// The provider with the key last read from its file; `None` if the file was not read again.
    renewed: RefCell<Option<Arc<ReadyProvider>>>,
    /// The client of the provider; `None` if every response is recorded.
    network: Option<Network>,
    /// The tape in use, if there is one. With a tape, the provider is not asked questions that only
    /// affect the response's form, because a replay must give the same response without a network.
    recorder: Option<RefCell<Recorder>>,
    playlist: Option<Playlist>,
    speed: Speed,
    /// How tools are presented to models, as found so far, and whether that is kept even if the
    /// provider rejects tools.
    modes: ByModel<(ToolsForm, bool)>,
    servers: ByModel<KnownServer>,
    /// The models whose whole responses the provider refuses.
    streamed: ByModel<()>,
    notices: Notices,
}

impl Upstream {
    /// Prepares requests to a provider over a client from `networks`, or opens the recordings that
    /// replace it. `notices` receives messages for users.
    ///
    /// # Errors
    /// A one-line error for a mistake in the arguments or in a file that they name, and for a
    /// missing key.
    pub(crate) fn new(
        mut settings: Settings,
        replay: Option<&ReplayArgs>,
        networks: &mut Networks,
        notices: &Notices,
    ) -> Result<Upstream> {
        // Set in tag mode too: if text could start inside reasoning, the first 256 bytes would be
        // held back, and calls until the end.
        settings.tools.prefill.get_or_insert_default();
        let connect_timeout = settings.connection.connect_timeout;
        let played = replay.filter(|replay| !replay.files.is_empty());
        let is_replay = played.is_some();
        let open = |replay: &ReplayArgs| Playlist::open(&replay.files, settings.provider.api);
        let playlist = played.map(open).transpose()?;
        let tape = match replay {
            Some(replay) if !is_replay => replay.tape()?,
            _ => None,
        };
        let recorder = tape.map(open_tape).transpose()?;
        let mut provider =
            ReadyProvider::new(settings, recorder.as_ref().and_then(Recorder::first))?;
        let is_offline = is_replay || recorder.as_ref().is_some_and(Recorder::is_offline);
        let mut network = None;
        if !is_offline {
            provider.take_key()?;
            // All requests use the same address and key, so a mistake in them is reported at
            // startup.
            provider.check(&models_request(provider.api, &provider.options))?;
            network = Some(networks.along(&provider.route, connect_timeout)?);
        }
        let recorder = recorder.map(|mut recorder| {
            recorder.set_redactor(provider.redactor());
            RefCell::new(recorder)
        });
        Ok(Upstream {
            provider: Arc::new(provider),
            renewed: RefCell::default(),
            network,
            recorder,
            playlist,
            speed: replay.map_or(Speed::Max, |replay| replay.speed),
            modes: ByModel::default(),
            servers: ByModel::default(),
            streamed: ByModel::default(),
            notices: notices.clone(),
        })
    }

    /// Whether the provider's key comes from a file.
    pub(crate) fn has_key_file(&self) -> bool {
        self.network.is_some() && self.provider.has_key_file()
    }

    /// Reads the provider's key again, if it comes from a file.
    ///
    /// # Errors
    /// A one-line error if the file has no valid key.
    pub(crate) fn read_key_again(&self) -> Result<()> {
        if !self.has_key_file() {
            return Ok(());
        }
        let mut provider = ReadyProvider::clone(&self.provider);
        provider.take_key()?;
        if let Some(recorder) = &self.recorder {
            recorder.borrow_mut().set_redactor(provider.redactor());
        }
        *self.renewed.borrow_mut() = Some(Arc::new(provider));
        Ok(())
    }

    /// Returns the provider's API and its address.
    pub(crate) fn address(&self) -> (Api, &str) {
        (self.provider.api, &self.provider.route.url)
    }

    /// Runs a request; see [`crate::source::Source::run`]. Returns whether the server failed, so
    /// that the model `next` should be tried.
    pub(crate) async fn run(
        &self,
        asked: &mut ClientRequest,
        next: Option<&str>,
        pipe: &Pipe,
    ) -> bool {
        match self.ask(asked, next, pipe).await {
            Ok(fell_back) => fell_back,
            Err(error) => {
                // A wrong address was reported at startup, so this error concerns what the client
                // sent.
                let message = self.redacted(&format!("{error:#}"));
                pipe.fail("invalid_request", &message, 400, None);
                false
            }
        }
    }

    async fn ask(
        &self,
        asked: &mut ClientRequest,
        next: Option<&str>,
        pipe: &Pipe,
    ) -> Result<bool> {
        let host = &mut PipeHost(pipe);
        let connection = self.connection(asked.retries);
        let (mut turn, may_tag) = self.turn(asked, next.is_some(), host)?;
        let may_tag = may_tag && self.decide(&mut turn, host).await?;
        if turn.needs_family() {
            turn.family = self.server_of(turn.model()).await.family;
        }
        turn.form.is_whole = pipe.is_sent_whole() && self.may_ask_whole(asked.api, &turn);
        let session = AskTurn {
            turn: &turn,
            host,
            connection,
            network: self.network.as_ref(),
            pace: None,
            recorder: self.recorder.as_ref(),
            playlist: self.playlist.as_ref(),
            speed: self.speed,
            may_tag,
            next,
            recorded: vec![],
        };
        let end = session.run().await?;
        let is_lost = |failure: FailedAnswer| matches!(&*failure.code, "disconnected" | "timeout");
        if end.fell_back || pipe.failure().is_some_and(is_lost) {
            self.servers.forget();
        }
        if end.refusal.is_some() {
            self.modes.keep(turn.model(), (turn.tag(), false));
        }
        if end.needs_stream {
            self.streamed.keep(turn.model(), ());
        }
        if let Some(recorder) = &self.recorder
            && let Err(error) = recorder
                .borrow_mut()
                .save(end.recorded, pipe.failure().is_none())
        {
            self.notices.warn("tape_not_saved", &error.to_string());
        }
        Ok(end.fell_back)
    }

    /// Whether the whole response to a client of `api` may be requested at once, which costs less
    /// than a stream: it needs no conversion and has few tokens. Without a network a response
    /// depends on the recorded request, which is for a stream.
    fn may_ask_whole(&self, api: Api, turn: &TurnDraft) -> bool {
        api == self.provider.api
            && matches!(turn.form.tools, ToolsForm::Native)
            && self.network.is_some()
            && self.recorder.is_none()
            && turn.most_tokens().is_some_and(|most| most <= FEW_TOKENS)
            && self.streamed.get(turn.model()).is_none()
    }

    /// Returns the connection options for a client. Only one layer retries: the client if it
    /// `retries`, else this process, which retries once and only after a lost connection. The
    /// user's `--retries` overrides this.
    fn connection(&self, retries: bool) -> ConnectionArgs {
        let connection = self.provider.settings.connection;
        if connection.retries.is_some() {
            return connection;
        }
        ConnectionArgs {
            retries: Some(u32::from(!retries)),
            only_lost: true,
            ..connection
        }
    }

    /// Returns the turn for a request, and whether its tools mode must still be decided. Moves the
    /// conversation, which may be large, out of the request, unless `keeps` is set because another
    /// model may be tried.
    fn turn(
        &self,
        asked: &mut ClientRequest,
        keeps: bool,
        host: &mut PipeHost<'_>,
    ) -> Result<(TurnDraft, bool)> {
        let inbound = &mut asked.request;
        let is_same_api = asked.api == self.provider.api;
        let mut model = inbound.model.clone().filter(|model| !model.is_empty());
        if self.playlist.is_some() {
            model = model.or_else(|| Some(REPLAY.to_owned()));
        } else if model.is_none() && self.provider.model().is_none() && self.recorder.is_none() {
            bail!("model: the request names none; name one, or start tc-serve with --model");
        }
        let target = TargetServer {
            api: self.provider.api,
            url: &self.provider.route.url,
            model: self
                .provider
                .model()
                .or(model.as_deref())
                .unwrap_or_default(),
        };
        let (params, mut notes) = inbound.parameters_for(asked.api, &target);
        notes.extend(inbound.conversation.notes_for(self.provider.api.name()));
        notes.extend(self.provider.left_out.iter().cloned());
        warn_of_left_out(notes, host);
        let options = RequestOptions {
            model: model.unwrap_or_default(),
            // An empty list means that no name in the text is a tool.
            tools: Some(inbound.tools.clone().unwrap_or_default()),
            // Providers reject a tool choice without tools.
            tool_choice: inbound
                .tool_choice
                .clone()
                .filter(|_| inbound.tools.is_some()),
            params,
            headers: if is_same_api {
                asked.headers.clone()
            } else {
                vec![]
            },
            ..RequestOptions::default()
        };
        let stream = StreamOptions {
            id: Some(asked.id.clone()),
            item_ids: asked.api == Api::OpenaiResponses,
            details: true,
            server: Some(host_of(&self.provider.route.url)),
            words: SERVICE,
            ..StreamOptions::default()
        };
        let mut turn = TurnDraft::new(self.current(), options, stream);
        turn.check_model()?;
        turn.trace.clone_from(&asked.trace);
        turn.converse(match keeps {
            true => inbound.conversation.clone(),
            false => std::mem::take(&mut inbound.conversation),
        });
        let may_tag =
            self.provider.settings.tools.tools_mode == ToolsModeChoice::Auto && turn.has_tools();
        Ok((turn, may_tag))
    }

    /// In the mode `auto`, decides how tools are presented to the model of `turn`. Returns whether
    /// the decision may change if the provider rejects tools. A decision is cached for a while, so
    /// that not every request reads files and asks the server.
    async fn decide(&self, turn: &mut TurnDraft, host: &PipeHost<'_>) -> Result<bool> {
        if let Some((form, is_firm)) = self.modes.get(turn.model()) {
            turn.form.tools = match form {
                ToolsForm::Tag(dialect) => turn.tag_in(dialect),
                form => form,
            };
            return Ok(!is_firm);
        }
        let decision = turn
            .decide_tools(self.recorder.as_ref(), self.network.as_ref(), host)
            .await?;
        let is_firm = decision.is_firm;
        if let Some(server) = decision.server {
            self.keep_server(turn.model(), &server);
        }
        turn.form.tools = decision.form;
        if self.recorder.is_none() {
            self.modes.keep(turn.model(), (decision.form, is_firm));
        }
        Ok(!is_firm)
    }

    /// Returns the provider's API.
    pub(crate) fn api(&self) -> Api {
        self.provider.api
    }

    /// Returns the dialects that a response may use: the built-in ones and the user's own.
    pub(crate) fn dialects(&self) -> &Dialects {
        &self.provider.dialects
    }

    /// Returns the models that may be requested. The list is empty if the provider has no list of
    /// models.
    ///
    /// # Errors
    /// Why the provider does not return its list.
    pub(crate) async fn models(&self) -> Result<Vec<ListedModel>, FailedAnswer> {
        if let Some(model) = self.provider.model() {
            return Ok(vec![model.into()]);
        }
        if let Some(playlist) = &self.playlist {
            let models = playlist.models();
            if models.is_empty() {
                return Ok(vec![REPLAY.into()]);
            }
            return Ok(models.into_iter().map(ListedModel::from).collect());
        }
        if self.network.is_none() {
            let model = self.provider.recorded_model();
            return Ok(model.map(ListedModel::from).into_iter().collect());
        }
        match self.list().await {
            Ok(body) => Ok(listed_models(&body)),
            Err(failure) if lacks(&failure) => Ok(vec![]),
            Err(failure) => Err(failure),
        }
    }
}

/// Warns about the parts of a request that the provider does not receive.
fn warn_of_left_out(notes: Vec<String>, host: &mut PipeHost<'_>) {
    for mut note in notes {
        if note.contains("previous_response_id") {
            note = format!("answers are not stored, the history has to be in the request; {note}");
        }
        let warning = Warning::new(host.command(), "parameter_left_out", &note);
        host.sink().write(0, &warning.into());
    }
}

/// The time limit for a small question to a provider, such as its list of models. Claude Code waits
/// three seconds for the whole response.
const QUESTION_TIME: Duration = Duration::from_millis(2500);

/// The most bytes in a provider's list of models.
const MODELS: usize = 16 << 20;

/// The most bytes in a provider's error.
const ERROR: usize = 1 << 20;

impl Upstream {
    /// Returns the provider with its current key.
    fn current(&self) -> Arc<ReadyProvider> {
        Arc::clone(self.renewed.borrow().as_ref().unwrap_or(&self.provider))
    }

    /// Returns the provider's list of models unparsed. This is the smallest request that tests the
    /// address, the key and the response.
    ///
    /// # Errors
    /// Why the list was not returned. A status of [`lacks`] means that the provider responded but
    /// has no such list.
    async fn list(&self) -> Result<String, FailedAnswer> {
        let request = models_request(self.provider.api, &self.current().options);
        self.fetch(request, Bytes::new(), MODELS).await
    }

    /// Checks that the provider responds.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) async fn check(&self) -> Result<(), FailedAnswer> {
        if self.network.is_none() {
            return Ok(());
        }
        match self.list().await {
            Err(failure) if !lacks(&failure) => Err(failure),
            _ => Ok(()),
        }
    }

    /// Warns if the provider cannot be reached. A server on this machine is tested with a
    /// connection without a request, so that the server does not count a request.
    pub(crate) async fn warn_unreachable(&self) {
        if self.network.is_none() {
            return;
        }
        let route = &self.provider.route;
        let reached = if route.is_local {
            route
                .connect(QUESTION_TIME)
                .await
                .map_err(|error| self.failed(&error, None))
        } else {
            self.list().await.map(drop)
        };
        if let Err(failure) = reached
            && matches!(&*failure.code, UNREACHABLE | TIMEOUT | KEY_REFUSED)
        {
            self.notices.warn(
                &failure.code,
                &format!("{}; until then requests get an error", failure.message),
            );
        }
    }

    /// Posts JSON to a path of the server. Returns the body of a success, or `None` for any other
    /// response and for a body of more than `most` bytes.
    async fn post(
        &self,
        path: &str,
        headers: &[(String, String)],
        json: Bytes,
        most: usize,
    ) -> Option<String> {
        let kind = ("content-type".to_owned(), "application/json".to_owned());
        let headers = [&[kind], headers].concat();
        let provider = self.current();
        let request = passed_request(
            provider.api,
            &provider.options,
            "POST",
            path,
            None,
            &headers,
        );
        self.fetch(request, json, most).await.ok()
    }

    /// Sends a request with these bytes as its body, and returns the body of a success.
    async fn fetch(
        &self,
        request: Request,
        bytes: Bytes,
        most: usize,
    ) -> Result<String, FailedAnswer> {
        let fetched = async {
            let Response { head, mut body } =
                self.send(request, bytes, TimeLimits::default()).await?;
            let bytes = whole(&mut body, most)
                .await
                .map_err(|error| self.lost(&error))?;
            let text = String::from_utf8_lossy(&bytes);
            if (200..300).contains(&head.status) {
                Ok(text.into_owned())
            } else {
                Err(self.refused(&head, &text))
            }
        };
        tokio::time::timeout(QUESTION_TIME, fetched).await.unwrap_or_else(|_| {
            let server = plain_url(&self.provider.route.url);
            let message = format!("no answer from {server} within {QUESTION_TIME:?}; check the address in --base-url");
            Err(self.failure(504, TIMEOUT, &message))
        })
    }

    async fn send(
        &self,
        request: Request,
        bytes: Bytes,
        limits: TimeLimits,
    ) -> Result<Response, FailedAnswer> {
        let Some(network) = &self.network else {
            return Err(self.failure(502, "no_provider", "every answer is recorded"));
        };
        self.provider
            .check(&request)
            .map_err(|error| self.failure(502, "invalid_request", &format!("{error:#}")))?;
        network
            .send_bytes(request, bytes, limits)
            .await
            .map_err(|error| self.lost(&error))
    }

    /// Forwards a client's request: `path` is the server's path with the query, and the headers are
    /// the client's. Returns the head of the response with its body, which is already read if the
    /// provider rejects the request.
    ///
    /// # Errors
    /// Why there is no response.
    pub(crate) async fn pass(
        &self,
        method: &'static str,
        path: &str,
        query: Option<&str>,
        headers: &[(String, String)],
        bytes: Bytes,
    ) -> Result<(Head, Passed), FailedAnswer> {
        let provider = self.current();
        let request = passed_request(
            provider.api,
            &provider.options,
            method,
            path,
            query,
            headers,
        );
        let deadline = self
            .provider
            .settings
            .connection
            .timeout
            .map(|time| Instant::now() + time);
        let limits = TimeLimits {
            idle: Some(self.provider.settings.connection.idle_timeout),
            deadline,
        };
        let Response { head, mut body } = self.send(request, bytes, limits).await?;
        match head.status {
            200..300 => Ok((head, Passed::Stream(body))),
            // Following a redirect would take the client past this service.
            100..400 => Err(self.refused(
                &head,
                "a redirect, which is not followed; correct --base-url",
            )),
            _ => {
                let bytes = whole(&mut body, ERROR)
                    .await
                    .map_err(|error| self.lost(&error))?;
                // A server may echo the key that it received.
                let text = self.redacted(&String::from_utf8_lossy(&bytes));
                Ok((head, Passed::Refusal(text.into())))
            }
        }
    }

    /// Whether requests to other paths can be forwarded. True if there is a provider; false if
    /// there are only recorded responses.
    pub(crate) fn passes(&self) -> bool {
        self.network.is_some()
    }

    /// Returns the failure of a request without a response, worded for a client.
    pub(crate) fn lost(&self, error: &Error) -> FailedAnswer {
        self.failed(error, Some(&host_of(&self.provider.route.url)))
    }

    /// Returns the same failure, worded for the user who started the service, or, with `server`,
    /// for a client who reads the name of that server.
    fn failed(&self, error: &Error, server: Option<&str>) -> FailedAnswer {
        let (status, code) = if error.is_timeout() {
            (504, TIMEOUT)
        } else {
            (502, UNREACHABLE)
        };
        self.failure(status, code, &sentence(error, server))
    }

    /// Returns a failure with the provider's secrets removed from its message.
    fn failure(&self, status: u16, code: &str, message: &str) -> FailedAnswer {
        FailedAnswer {
            status,
            code: code.to_owned(),
            message: self.redacted(message),
            ..FailedAnswer::default()
        }
    }

    /// Returns `text` with the provider's secrets removed.
    fn redacted(&self, text: &str) -> String {
        self.current().redactor().text(text).into_owned()
    }

    fn refused(&self, head: &Head, body: &str) -> FailedAnswer {
        let (status, code) = match head.status {
            status @ (401 | 403) => (status, KEY_REFUSED),
            status @ 400.. => (status, "upstream_failed"),
            _ => (502, "upstream_failed"),
        };
        let wait = retry_after(head, SystemTime::now());
        FailedAnswer {
            retry_after_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            ..self.failure(status, code, &error_message(head.status, body.as_bytes()))
        }
    }
}

/// The body of the response to a forwarded request.
#[derive(Debug)]
pub(crate) enum Passed {
    /// A streamed body.
    Stream(Body),
    /// The message of a provider that rejected the request.
    Refusal(Bytes),
}

/// The code for a provider that cannot be reached, or whose connection was lost.
const UNREACHABLE: &str = "upstream_unreachable";

/// The code for a provider that rejects the key.
const KEY_REFUSED: &str = "upstream_key_refused";

/// The code for a provider that did not respond in time.
const TIMEOUT: &str = "upstream_timeout";

/// Whether the failure means that the provider has no such path.
fn lacks(failure: &FailedAnswer) -> bool {
    matches!(failure.status, 404 | 405 | 501)
}

/// Reads a body to its end, but at most `most` bytes.
async fn whole(body: &mut Body, most: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    loop {
        match body.next().await.what {
            PieceContent::Bytes(more) if bytes.len() + more.len() <= most => {
                bytes.extend_from_slice(more)
            }
            PieceContent::Bytes(_) | PieceContent::End => return Ok(bytes),
            PieceContent::Lost(error) => return Err(error),
        }
    }
}

/// The most bytes of a prompt, or of a list of its tokens, in a server's response. If a response is
/// longer, the tokens are estimated instead, which takes no memory.
const ANSWER: usize = 8 << 20;

/// The known facts about a model's server.
#[derive(Clone, Copy, Debug, Default)]
struct KnownServer {
    /// The kind of server.
    kind: ServerKind,
    /// The dialect of the model's family, found from the chat template.
    family: Option<&'static Dialect>,
}

impl Upstream {
    /// Counts the tokens of `body`, which is a request of Anthropic's API. Uses the count of a
    /// provider with the same API, or of a llama.cpp server. Returns `None` if neither can count,
    /// or not in time.
    pub(crate) async fn count_tokens(&self, asked: ClientRequest, body: &Bytes) -> Option<u64> {
        let counted = self.counted(asked, body);
        tokio::time::timeout(QUESTION_TIME, counted).await.ok()?
    }

    async fn counted(&self, mut asked: ClientRequest, body: &Bytes) -> Option<u64> {
        self.network.as_ref().filter(|_| self.recorder.is_none())?;
        let provider = &self.provider;
        let model = provider
            .model()
            .map(str::to_owned)
            .or_else(|| asked.request.model.clone())
            .unwrap_or_default();
        if provider.api == Api::Anthropic {
            let body = match provider.model() {
                Some(model) => with_model(body, model)?,
                None => body.clone(),
            };
            let answer = self
                .post("/v1/messages/count_tokens", &asked.headers, body, ANSWER)
                .await?;
            return u64::try_from(Raw::parse(&answer).ok()?.get("input_tokens")?.i64()?).ok();
        }
        if self.server_of(&model).await.kind != ServerKind::LlamaCpp {
            return None;
        }
        // Gets the prompt that the server would build from the request, and its tokens.
        let media = asked.request.estimated_media_tokens();
        let options = RequestOptions {
            model,
            tools: asked.request.tools.clone(),
            stream: false,
            ..RequestOptions::default()
        };
        let mut turn = TurnDraft::new(self.current(), options, StreamOptions::default());
        turn.converse(std::mem::take(&mut asked.request.conversation));
        let request = turn.request(turn.form).ok()?;
        let prompt = self
            .post("/apply-template", &[], request.body.into(), ANSWER)
            .await?;
        let prompt = Raw::parse(&prompt).ok()?.get_str("prompt")?.into_owned();
        let text = format!(
            "{{\"content\":{},\"add_special\":true,\"parse_special\":true}}",
            event::quoted(&prompt)
        );
        let tokens = self.post("/tokenize", &[], text.into(), ANSWER).await?;
        let tokens = Raw::parse(&tokens)
            .ok()?
            .get("tokens")
            .filter(|tokens| tokens.is_array())?
            .items()
            .count();
        Some((tokens + media) as u64)
    }

    /// Returns the server of `model`. A server on this machine or its network is asked once, and
    /// again after a while or after the findings were cleared. A hosted provider is not asked.
    async fn server_of(&self, model: &str) -> KnownServer {
        if let Some(known) = self.servers.get(model) {
            return known;
        }
        let server = match (&self.network, &self.recorder) {
            (Some(network), None) => self.current().ask_server(network, model, |_| {}).await,
            _ => ServerReport::default(),
        };
        self.keep_server(model, &server)
    }

    fn keep_server(&self, model: &str, server: &ServerReport) -> KnownServer {
        let known = KnownServer {
            family: self.provider.family_of(server),
            kind: server.kind,
        };
        self.servers.keep(model, known);
        known
    }
}

/// Returns the model that the JSON object `body` names.
pub(crate) fn model_of(body: &[u8]) -> Option<String> {
    let model = Raw::parse(std::str::from_utf8(body).ok()?).ok()?;
    model.get_str("model").map(|model| model.into_owned())
}

/// Returns the JSON object `body` with its model replaced.
pub(crate) fn with_model(body: &[u8], model: &str) -> Option<Bytes> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(body).ok()?;
    let mut out = Vec::with_capacity(body.len());
    let mut object = Object::open(&mut out);
    for (name, value) in members.iter().filter(|(name, _)| *name != "model") {
        object.raw(name, value.get());
    }
    object.str("model", model);
    object.close();
    Some(out.into())
}
