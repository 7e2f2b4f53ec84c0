//! A provider as the source of events.

mod args;
mod by_model;
mod count;
mod direct;
mod host;
mod servers;

pub use args::UpstreamArgs;
pub use direct::{Direct, Passed};

use crate::asked::Asked;
use crate::log::Notices;
use crate::pipe::Pipe;
use anyhow::{Result, bail};
use api::{Api, Failure, ListedModel, Target, listed_models, models_request};
use ask::{
    AutoMode, AutoSettings, ConnectionSettings, Host, Playlist, Provider, Session, ToolsForm,
    ToolsModeChoice, TurnDraft, TurnOptions, open_tape,
};
use by_model::ByModel;
use client::{Network, Recorder, Speed};
use count::count_tokens;
use direct::lacks;
use event::payload::Warning;
use host::PipeHost;
use hyper::body::Bytes;
use servers::Servers;
use std::cell::RefCell;
use std::sync::Arc;
use tag::Dialects;

/// The model of recorded answers that name none.
const REPLAY: &str = "replay";

/// How a provider is asked.
#[derive(Debug)]
pub struct Upstream {
    provider: Arc<Provider>,
    tools_mode: ToolsModeChoice,
    auto: AutoSettings,
    connection: ConnectionSettings,
    /// Whether the user typed how often a request is sent again.
    is_retries_named: bool,
    /// `None` if every answer is recorded.
    network: Option<Network>,
    recorder: Option<RefCell<Recorder>>,
    playlist: Option<Playlist>,
    speed: Speed,
    /// How models learn of their tools, as far as this process has found out, and whether a refusal
    /// changes nothing about that.
    modes: ByModel<(ToolsForm, bool)>,
    servers: Servers,
    direct: Direct,
    notices: Notices,
}

impl Upstream {
    /// Prepares requests to a provider, or reads what answers in its place. `max_frame` is the most
    /// bytes of one event of an answer, and `notices` takes what people should read.
    ///
    /// # Errors
    /// One line for a mistake in the arguments or in a file that they name, and for a key that is
    /// missing.
    pub fn new(args: &UpstreamArgs, max_frame: usize, notices: &Notices) -> Result<Upstream> {
        let UpstreamArgs {
            provider,
            tools,
            auto,
            connection,
            replay,
        } = args.clone();
        let mut settings = provider.settings(&tools, &connection, max_frame)?;
        // If text could begin inside reasoning, its first 256 bytes would be held back, and calls
        // until the end.
        settings.prefill.get_or_insert_default();
        let faults = replay.faults();
        let is_replay = !replay.files.is_empty();
        if faults.any() && !is_replay {
            bail!("faults are put into recorded bodies only, name one with --replay");
        }
        let playlist = is_replay
            .then(|| Playlist::open(&replay.files, settings.api, &faults))
            .transpose()?;
        let tape = if is_replay { None } else { replay.tape()? };
        let recorder = tape.map(open_tape).transpose()?;
        let mut provider = Provider::new(
            &settings,
            recorder.as_ref().and_then(Recorder::first),
            false,
        )?;
        let is_offline = is_replay || recorder.as_ref().is_some_and(Recorder::is_offline);
        let mut network = None;
        if !is_offline {
            provider.take_key()?;
            // The address and the key are the same for every request, so a mistake in them is one
            // of the start.
            provider.check(&models_request(provider.api, &provider.request_options()))?;
            network = Some(Network::new(&provider.route, connection.connect_timeout)?);
        }
        let recorder = recorder.map(|mut recorder| {
            recorder.set_redactor(provider.redactor());
            RefCell::new(recorder)
        });
        let provider = Arc::new(provider);
        let direct = Direct {
            provider: Arc::clone(&provider),
            renewed: RefCell::default(),
            network: network.clone(),
            is_taped: recorder.is_some(),
            connection: connection.settings(),
            notices: notices.clone(),
        };
        Ok(Upstream {
            provider,
            direct,
            tools_mode: tools.tools_mode,
            auto: auto.settings(&tools, &connection),
            connection: connection.settings(),
            is_retries_named: connection.retries.is_some(),
            network,
            recorder,
            playlist,
            speed: replay.speed,
            modes: ByModel::default(),
            servers: Servers::default(),
            notices: notices.clone(),
        })
    }

    /// Whether the key of the provider is in a file.
    pub fn has_key_file(&self) -> bool {
        self.network.is_some() && self.provider.has_key_file()
    }

    /// Reads the key of the provider again, if it is in a file.
    ///
    /// # Errors
    /// One line for a file without a usable key.
    pub fn read_key_again(&self) -> Result<()> {
        if !self.has_key_file() {
            return Ok(());
        }
        let mut provider = Provider::clone(&self.provider);
        provider.take_key()?;
        if let Some(recorder) = &self.recorder {
            recorder.borrow_mut().set_redactor(provider.redactor());
        }
        *self.direct.renewed.borrow_mut() = Some(Arc::new(provider));
        Ok(())
    }

    /// The API of the provider, and its address.
    pub fn address(&self) -> (Api, &str) {
        (self.provider.api, &self.provider.route.url)
    }

    /// See [`crate::source::Source::run`].
    pub async fn run(&self, asked: Asked, pipe: &Pipe) {
        if let Err(error) = self.ask(asked, pipe).await {
            // What is wrong with the address was found at the start, so this is about what the
            // client sent.
            let message = self
                .direct
                .current()
                .redactor()
                .text(&format!("{error:#}"))
                .into_owned();
            pipe.fail("invalid_request", &message, 400, None);
        }
    }

    async fn ask(&self, mut asked: Asked, pipe: &Pipe) -> Result<()> {
        let host = &mut PipeHost::new(pipe);
        let connection = self.connection(asked.retries);
        let (mut turn, may_tag) = self.turn(&mut asked, host)?;
        let may_tag = may_tag && self.decide(&mut turn, host).await?;
        if turn.has_tools() && self.provider.dialects.of_model(turn.model()).is_none() {
            pipe.set_family(self.servers.of(&self.direct, turn.model()).await.family);
        }
        let session = Session {
            turn: &turn,
            host,
            connection: &connection,
            network: self.network.as_ref(),
            recorder: self.recorder.as_ref(),
            playlist: self.playlist.as_ref(),
            speed: self.speed,
            auto: &self.auto,
            may_tag,
            recorded: vec![],
        };
        let end = session.run().await?;
        if pipe
            .failure()
            .is_some_and(|failure| matches!(&*failure.code, "disconnected" | "timeout"))
        {
            self.servers.forget();
        }
        if end.refusal.is_some() {
            self.modes.keep(turn.model(), (turn.tag(), false));
        }
        if let Some(recorder) = &self.recorder
            && let Err(error) = recorder
                .borrow_mut()
                .save(end.recorded, pipe.failure().is_none())
        {
            self.notices.warn("tape_not_saved", &error.to_string());
        }
        Ok(())
    }

    /// How the provider is reached for a client. Who sends a failed request again is one layer: the
    /// client if it `retries`, else this process, once and after a lost connection alone. The
    /// user's `--retries` goes before.
    fn connection(&self, retries: bool) -> ConnectionSettings {
        if self.is_retries_named {
            return self.connection;
        }
        ConnectionSettings {
            retries: u32::from(!retries),
            only_lost: true,
            ..self.connection
        }
    }

    /// The turn that a request asks for, and whether its tools mode is still to be decided. It
    /// takes the conversation, which may be large.
    fn turn(&self, asked: &mut Asked, host: &mut PipeHost<'_>) -> Result<(TurnDraft, bool)> {
        let inbound = &mut asked.request;
        let is_same_api = asked.api == self.provider.api;
        let mut model = inbound.model.clone().filter(|model| !model.is_empty());
        if self.playlist.is_some() {
            model = model.or_else(|| Some(REPLAY.to_owned()));
        } else if model.is_none() && self.provider.model().is_none() && self.recorder.is_none() {
            bail!("model: the request names none; name one, or start tc-serve with --model");
        }
        let target = Target {
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
        for mut note in notes {
            if note.contains("previous_response_id") {
                note =
                    format!("answers are not stored, the history has to be in the request; {note}");
            }
            let warning = Warning::new(host.command(), "parameter_left_out", &note);
            host.sink().write(0, &warning.into());
        }
        let options = TurnOptions {
            model,
            system: None,
            // An empty list reports that no name in the text is a tool.
            tools: Some(inbound.tools.clone().unwrap_or_default()),
            // Providers refuse a choice without tools.
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
            streams: true,
            id: Some(asked.id.clone()),
            item_ids: asked.api == Api::OpenaiResponses,
            is_for_client: true,
        };
        let mut turn = TurnDraft::new(self.direct.current(), options);
        turn.details = true;
        turn.check_model()?;
        turn.converse(std::mem::take(&mut inbound.conversation));
        let may_tag = self.tools_mode == ToolsModeChoice::Auto && turn.has_tools();
        Ok((turn, may_tag))
    }

    /// In the mode `auto`, decides how the model of `turn` learns of its tools. Returns whether a
    /// refusal by the provider may change that. A decision is kept for a while, so that not each
    /// request reads files and asks the server.
    async fn decide(&self, turn: &mut TurnDraft, host: &PipeHost<'_>) -> Result<bool> {
        if let Some((form, is_firm)) = self.modes.get(turn.model()) {
            turn.form.tools = match form {
                ToolsForm::Tag(dialect) => turn.tag_in(dialect),
                form => form,
            };
            return Ok(!is_firm);
        }
        let auto = AutoMode {
            settings: &self.auto,
            turn,
        };
        let decision = auto
            .decide(self.recorder.as_ref(), self.network.as_ref(), host)
            .await?;
        let is_firm = decision.is_firm();
        turn.form.tools = decision.form;
        if self.recorder.is_none() {
            self.modes.keep(turn.model(), (decision.form, is_firm));
        }
        Ok(!is_firm)
    }

    /// The API of the provider.
    pub fn api(&self) -> api::Api {
        self.provider.api
    }

    /// The dialects that an answer may be in: those of the table and the user's own.
    pub fn dialects(&self) -> Dialects {
        self.provider.dialects.clone()
    }

    /// The way to the provider for requests that are not for answers.
    pub fn direct(&self) -> &Direct {
        &self.direct
    }

    /// The tokens of a request of Anthropic's API, which `body` is; `None` where nobody counts
    /// them.
    pub async fn count_tokens(&self, asked: Asked, body: &Bytes) -> Option<u64> {
        count_tokens(&self.direct, &self.servers, asked, body).await
    }

    /// The models that may be asked for.
    ///
    /// # Errors
    /// Why the provider does not give its list. A provider that has none gives an empty one.
    pub async fn models(&self) -> Result<Vec<ListedModel>, Failure> {
        if let Some(model) = self.provider.model() {
            return Ok(vec![model.into()]);
        }
        if let Some(playlist) = &self.playlist {
            let models = playlist.models();
            return Ok(if models.is_empty() {
                vec![REPLAY.into()]
            } else {
                models.into_iter().map(ListedModel::from).collect()
            });
        }
        if self.direct.network.is_none() {
            return Ok(self
                .provider
                .recorded_model()
                .map(ListedModel::from)
                .into_iter()
                .collect());
        }
        match self.direct.list().await {
            Ok(body) => Ok(listed_models(&body)),
            Err(failure) if lacks(&failure) => Ok(vec![]),
            Err(failure) => Err(failure),
        }
    }
}
