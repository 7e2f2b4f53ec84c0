//! Requests to a provider or a tape: a probe of the tools mode, a dry run, or the next turn.

use crate::args::Args;
use crate::host::{StdoutHost, StopWatch, runtime};
use crate::input::{self, QuestionFiles};
use crate::output::{Messages, Out};
use ::ask::{
    AskTurn, COMMAND, Host, ModelReader, Note, Pace, ReadyProvider, SessionEnd, Settings,
    ToolsModeChoice, TurnDraft, open_tape,
};
use anyhow::{Result, anyhow, bail};
use api::tape::NextOfLog;
use api::{Api, Conversation, Request, RequestOptions, ServerReport, StreamOptions};
use client::{Network, Recorder};
use config::Configured;
use event::Json;
use event::payload::{Error, Message, Warning};
use json::ToolList;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::Arc;
use stdio::{Failure, Filter, Status};

/// Asks for the next turn of the conversation on standard input, and writes its events. Returns
/// status 2 if any `error` event was written, otherwise 0.
///
/// # Errors
/// Fails with one line for invalid arguments, files or logs, and if standard output fails.
pub(crate) fn turn(args: Args, configured: &Configured) -> Result<Status> {
    let mut opening = Opening::new(args, configured)?;
    let is_offline = opening.is_offline();
    let key = if is_offline {
        Ok(())
    } else {
        opening.take_key()
    };
    // A missing key is reported before standard input is read, which may take long, unless the tape
    // may make the key unnecessary. If no model is named yet, standard input may name it; if it
    // does not, the missing model is reported first.
    let may_wait = opening.recorder.is_some() || opening.models.turn.check_model().is_err();
    let key = if may_wait { key } else { Ok(key?) };
    let asked = runtime()?.block_on(async {
        let watch = StopWatch::new()?;
        let out = opening.out();
        let question = opening.converse(&watch, &out, true)?;
        let network = if is_offline {
            None
        } else {
            Some(opening.network()?)
        };
        let next = opening.of_log(question.is_some());
        for message in next.iter().flatten() {
            opening.models.turn.push(message);
            out.event(Message {
                message: Json::of(message),
                ..Message::default()
            });
        }
        if next.is_none() {
            out.flush()?;
            return Ok(Status::No);
        }
        let mut may_tag = false;
        if watch.signal().is_none() {
            may_tag = opening.decide(network.as_ref(), &watch, &out).await?;
        }
        if let Some(signal) = watch.signal() {
            return Ok(Status::Signal(signal));
        }
        let request = opening.models.turn.request(opening.models.turn.form)?;
        let recorder = opening.recorder.as_ref().map(RefCell::borrow);
        if !recorder.is_some_and(|r| r.has_answer(opening.models.turn.model(), &request)) {
            key?;
        }
        if let Some(question) = question {
            out.event(Message {
                message: Json::of(&question),
                ..Message::default()
            });
        }
        opening.ask(network.as_ref(), may_tag, &watch, &out).await
    });
    asked.map_err(|e| opening.redacted(e))
}

/// `--dry-run`: prints the request. No request is sent, and no key is needed.
///
/// # Errors
/// Fails with one line for invalid arguments, files or logs, and if standard output fails.
pub(crate) fn dry_run(args: Args, configured: &Configured) -> Result<Status> {
    let mut opening = Opening::new(args, configured)?;
    let shown = runtime()?.block_on(async {
        let watch = StopWatch::new()?;
        let out = opening.out();
        opening.converse(&watch, &out, false)?;
        if watch.signal().is_none() {
            opening.decide(None, &watch, &out).await?;
        }
        if let Some(signal) = watch.signal() {
            return Ok(Status::Signal(signal));
        }
        show(&opening.models.turn, &out)
    });
    shown.map_err(|e| opening.redacted(e))
}

/// Prints the body of the request on one line, or indented on a terminal; the URL goes to standard
/// error.
fn show(turn: &TurnDraft, out: &Out) -> Result<Status> {
    let request = turn.request(turn.form)?;
    let mut body = request.body.clone();
    if stdio::stdout().is_terminal() {
        body = serde_json::to_string_pretty(&serde_json::from_str::<Value>(&body)?)?;
        body = event::safe_json(&body).into_owned();
    }
    out.text(&body)?;
    out.messages().always(out.messages().line(&request));
    Ok(Status::Done)
}

/// `--probe`: prints as JSON how `--tools-mode auto` decides for a model, without sending the model
/// a request.
///
/// # Errors
/// Fails with one line for invalid arguments or files, or for an unreachable server, and if
/// standard output fails.
pub(crate) fn probe(args: Args, configured: &Configured) -> Result<Status> {
    let mut opening = Opening::new(args, configured)?;
    opening.models.turn.check_model()?;
    // The server may answer even without a key.
    let _ = opening.take_key();
    let found = runtime()?.block_on(async {
        let watch = StopWatch::new()?;
        let out = opening.out();
        let network = if opening.recorder.is_some() {
            None
        } else {
            Some(opening.network()?)
        };
        let turn = &opening.models.turn;
        let decision = turn
            .find_tools(network.as_ref(), &StdoutHost::new(&watch, &out, None), true)
            .await?;
        if let Some(signal) = watch.signal() {
            return Ok(Status::Signal(signal));
        }
        out.text(&turn.show_decision(&decision))?;
        Ok(Status::Done)
    });
    found.map_err(|e| opening.redacted(e))
}

/// The turn, and the same turn with other models.
#[derive(Clone)]
pub(crate) struct Models {
    /// The turn.
    pub turn: TurnDraft,
    /// The models to try if the server fails, by name.
    fallbacks: Vec<(String, TurnDraft)>,
}

impl Models {
    /// Iterates over the turn and those of the fallbacks.
    fn turns(&mut self) -> impl Iterator<Item = &mut TurnDraft> {
        let fallbacks = self.fallbacks.iter_mut().map(|(_, turn)| turn);
        std::iter::once(&mut self.turn).chain(fallbacks)
    }

    /// Sets the conversation and the question with its files; returns the question as a chat
    /// message. `most` is the longest message, in bytes.
    pub(crate) fn converse(
        &mut self,
        conversation: &Conversation,
        question: Option<&str>,
        files: &QuestionFiles,
        most: usize,
    ) -> Result<Option<String>> {
        let mut asked = None;
        for turn in self.turns() {
            turn.converse(conversation.clone());
            if let Some(schema) = &files.schema {
                turn.answer_by(schema.clone());
            }
            let parts = files.attachments(turn.provider.api, most)?;
            let message = if parts.is_empty() {
                question.map(|question| turn.ask(question))
            } else {
                let text = question.map(|question| json!({"type": "text", "text": question}));
                let content: Vec<Value> = text.into_iter().chain(parts).collect();
                Some(turn.ask(content))
            };
            // The written message is the one in the form for the named model, not for a fallback.
            asked = asked.or(message);
        }
        Ok(asked)
    }
}

/// The common setup of a turn, a dry run and a probe: the tape, the turn, standard input, and the
/// form in which tools are offered.
pub(crate) struct Opening {
    /// What was typed.
    pub args: Args,
    /// The common options.
    pub filter: Filter,
    recorder: Option<RefCell<Recorder>>,
    /// The turn with its models.
    pub models: Models,
    /// The files that belong to the question.
    pub files: QuestionFiles,
}

impl Opening {
    /// Opens the tape and builds the turn.
    pub(crate) fn new(args: Args, configured: &Configured) -> Result<Opening> {
        let tape = args.replay.tape()?;
        let filter = args.common.filter("llm-stream", vec![]);
        let request = &args.request;
        let settings = Settings {
            provider: request.provider.clone(),
            tools: request.tools_mode.clone(),
            auto: args.auto.settings.clone(),
            connection: args.connection,
            max_frame: filter.max_line,
        };
        let settings = settings.of_model(configured.model());
        let mut recorder = tape.map(open_tape).transpose()?;
        if let Some(recorder) = &mut recorder {
            recorder.set_faults(args.faults.faults(&args.connection));
        }
        let first = recorder.as_ref().and_then(Recorder::first);
        if first.is_none() {
            settings.provider.check_name(configured)?;
        }
        let provider = ReadyProvider::new(settings, first)?;
        if let [lacking, ..] = &*provider.left_out {
            bail!("{lacking}, leave it out");
        }
        let tools = input::tools(&request.tools)?;
        let tools = tools.as_deref().map(ToolList::read).transpose()?;
        let options = RequestOptions {
            system: request.system.clone(),
            tools: tools.map(Arc::new),
            tool_choice: request.tool_choice.clone(),
            stream: !request.no_stream,
            ..RequestOptions::default()
        };
        let stream = StreamOptions {
            words: COMMAND,
            ..StreamOptions::default()
        };
        let mut fallbacks = vec![];
        let mut reader = ModelReader::new(configured, filter.max_line);
        let asked = configured.model();
        for model in asked.map_or(vec![], |model| configured.fallbacks(model)) {
            let settings = reader.settings(model)?;
            let provider = Arc::new(ReadyProvider::new(settings, None)?);
            let turn = TurnDraft::new(provider, options.clone(), stream.clone());
            fallbacks.push((model.name.clone(), turn));
        }
        let turn = TurnDraft::new(Arc::new(provider), options, stream);
        let files = QuestionFiles::read(&args, filter.max_line)?;
        let mut opening = Opening {
            files,
            filter,
            recorder: recorder.map(RefCell::new),
            models: Models { turn, fallbacks },
            args,
        };
        for turn in opening.models.turns() {
            turn.trace = ::args::trace();
        }
        opening.hide_secrets();
        Ok(opening)
    }

    /// Reads the key of the turn, and hides it in all output.
    pub(crate) fn take_key(&mut self) -> Result<()> {
        self.models.turn.take_key()?;
        self.hide_secrets();
        Ok(())
    }

    fn hide_secrets(&mut self) {
        if let Some(recorder) = &self.recorder {
            recorder
                .borrow_mut()
                .set_redactor(self.models.turn.redactor());
        }
    }

    /// Returns the writer for standard output and standard error.
    pub(crate) fn out(&self) -> Out {
        let no_time = self.filter.no_time;
        Out::new(
            no_time,
            Messages::new(
                self.args.verbose,
                no_time,
                self.models.turn.redactor().clone(),
            ),
        )
    }

    /// Whether a tape answers every request.
    pub(crate) fn is_offline(&self) -> bool {
        let recorder = self.recorder.as_ref();
        recorder.is_some_and(|recorder| recorder.borrow().is_offline())
    }

    /// Whether there is a tape.
    pub(crate) fn has_tape(&self) -> bool {
        self.recorder.is_some()
    }

    /// Returns the network through which the turn reaches the provider.
    pub(crate) fn network(&self) -> Result<Network> {
        Ok(Network::new(
            &self.models.turn.provider.route,
            self.args.connection.connect_timeout,
        )?)
    }

    /// Prints which server the name of the model selects, except for the default.
    pub(crate) fn report_server(&self, messages: &Messages) {
        let turn = &self.models.turn;
        let selected = turn.provider.known_server;
        if let Some(server) = selected.filter(|s| s.base_url != Api::OpenaiChat.base_url()) {
            messages.always(format_args!(
                "asking {} ({}) for {}; choose another server with --api or --base-url",
                server.provider,
                server.base_url,
                turn.model()
            ));
        }
    }

    /// Reads standard input, and applies its `request` event; returns the question as a chat
    /// message. A signal may have ended the reading. If `warns` is true, lines of a log that are
    /// not events become warnings.
    fn converse(&mut self, watch: &StopWatch, out: &Out, warns: bool) -> Result<Option<String>> {
        let mut warn = |warning: &Warning| {
            if warns {
                out.event(*warning);
            }
        };
        let content = input::read(&self.filter, watch.signals(), &mut warn)?;
        if watch.signal().is_none() {
            content.report(out.messages());
        }
        let mut messages = content.conversation.messages.iter();
        if !messages.any(|message| message.role() == "assistant") {
            self.report_server(out.messages());
        }
        let mut files = std::mem::take(&mut self.files);
        let texts = [content.text, files.text.take()];
        let question = input::question(self.args.prompt.as_deref(), texts);
        if let Some((api, request)) = &content.request {
            let mut left_out = self.models.turn.fill_in(*api, request);
            for (_, turn) in &mut self.models.fallbacks {
                left_out.append(&mut turn.fill_in(*api, request));
            }
            for note in request.notes.iter().chain(&left_out) {
                out.messages()
                    .verbose(format_args!("request event: {note}"));
            }
        }
        if watch.signal().is_none() {
            self.models.turn.check_model()?;
        }
        let most = self.filter.max_line;
        self.models
            .converse(&content.conversation, question.as_deref(), &files, most)
    }

    /// Returns the messages, as JSON, with which the log that serves as tape continues; the list is
    /// empty if there is a question or the tape is not a log. Returns `None` at the end of the log.
    fn of_log(&self, has_question: bool) -> Option<Vec<String>> {
        let recorder = self.recorder.as_ref().map(RefCell::borrow);
        let Some(recorder) = recorder.filter(|recorder| recorder.is_log() && !has_question) else {
            return Some(vec![]);
        };
        match recorder.next_of_log(&self.models.turn.asked()) {
            NextOfLog::Answer => Some(vec![]),
            NextOfLog::Messages(messages) => Some(messages.iter().map(Value::to_string).collect()),
            NextOfLog::End => None,
        }
    }

    /// Calls [`decide`], unless the limit of steps is reached. A signal may have ended the search.
    pub(crate) async fn decide(
        &mut self,
        network: Option<&Network>,
        watch: &StopWatch,
        out: &Out,
    ) -> Result<bool> {
        if is_enough(&self.models.turn, &self.args) {
            return Ok(false);
        }
        let recorder = self.recorder.as_ref();
        decide(&mut self.models.turn, recorder, network, watch, out).await
    }

    /// Sends the request of the turn, writes the events of the answer, and returns the status.
    async fn ask(
        &self,
        network: Option<&Network>,
        may_tag: bool,
        watch: &StopWatch,
        out: &Out,
    ) -> Result<Status> {
        let way = Way {
            network,
            pace: None,
            may_tag,
        };
        let end = self.answer(&self.models, None, way, watch, out).await?;
        out.flush()?;
        if let Some(signal) = end.stop {
            return Ok(Status::Signal(signal));
        }
        if let Some(recorder) = &self.recorder {
            recorder.borrow_mut().save(end.recorded, !out.has_error())?;
        }
        Ok(if out.has_error() {
            Status::Error
        } else {
            Status::Done
        })
    }

    /// Sends the request of a turn, and writes the events of the answer. `name` (as JSON) is the
    /// name of its stream.
    pub(crate) async fn answer(
        &self,
        models: &Models,
        name: Option<&str>,
        way: Way<'_>,
        watch: &StopWatch,
        out: &Out,
    ) -> Result<SessionEnd<i32>> {
        if is_enough(&models.turn, &self.args) {
            let steps = models.turn.steps();
            let message = format!(
                "the model has answered {steps} times since the last user's message (--max-steps)"
            );
            out.write(
                name,
                0,
                None,
                &Error::new("llm-stream", "max_steps", &message).into(),
            );
            return Ok(SessionEnd {
                stop: None,
                recorded: vec![],
                fell_back: false,
                needs_stream: false,
                refusal: None,
            });
        }
        let first = models.fallbacks.first().map(|(name, _)| name.as_str());
        let host = || StdoutHost::new(watch, out, name);
        let mut end = self.attempt(&models.turn, first, way, host()).await?;
        for (at, (_, turn)) in models.fallbacks.iter().enumerate() {
            if !end.fell_back {
                break;
            }
            let mut turn = turn.clone();
            let mut other = None;
            for lacking in &turn.provider.left_out {
                let warning = Warning::new("llm-stream", "parameter_left_out", lacking);
                out.write(name, 0, None, &warning.into());
            }
            if way.network.is_some() {
                turn.take_key()?;
                if let Some(recorder) = &self.recorder {
                    recorder.borrow_mut().set_redactor(turn.redactor());
                }
                let connect = turn.provider.settings.connection.connect_timeout;
                other = Some(Network::new(&turn.provider.route, connect)?);
            }
            let recorder = self.recorder.as_ref();
            let may_tag = decide(&mut turn, recorder, other.as_ref(), watch, out).await?;
            let next = models.fallbacks.get(at + 1).map(|(name, _)| name.as_str());
            let recorded = end.recorded;
            let way = Way {
                network: other.as_ref(),
                pace: None,
                may_tag,
            };
            end = self.attempt(&turn, next, way, host()).await?;
            end.recorded.splice(..0, recorded);
        }
        Ok(end)
    }

    /// Asks the model of one turn. If that fails, `next` is the model to report as the next one to
    /// try.
    async fn attempt(
        &self,
        turn: &TurnDraft,
        next: Option<&str>,
        way: Way<'_>,
        mut host: StdoutHost<'_>,
    ) -> Result<SessionEnd<i32>> {
        let session = AskTurn {
            turn,
            host: &mut host,
            connection: turn.provider.settings.connection,
            network: way.network,
            pace: way.pace,
            recorder: self.recorder.as_ref(),
            playlist: None,
            speed: self.args.replay.speed,
            may_tag: way.may_tag,
            next,
            recorded: vec![],
        };
        session.run().await
    }

    /// Returns `error` without the secrets of the turn. A [`Failure`] is returned unchanged,
    /// because redaction would turn it into plain text.
    pub(crate) fn redacted(&self, error: anyhow::Error) -> anyhow::Error {
        if error.is::<Failure>() {
            error
        } else {
            anyhow!(
                "{}",
                self.models.turn.redactor().text(&format!("{error:#}"))
            )
        }
    }
}

/// How a turn reaches its server.
#[derive(Clone, Copy)]
pub(crate) struct Way<'w> {
    /// `None` if a tape answers.
    pub network: Option<&'w Network>,
    /// The pace that turns share; `None` for a turn alone.
    pub pace: Option<&'w Pace>,
    /// Whether a rejection of the tools may change how they are offered.
    pub may_tag: bool,
}

/// Whether the model has given `--max-steps` answers since the user's last message. Always false
/// without that limit.
fn is_enough(turn: &TurnDraft, args: &Args) -> bool {
    let most = args.request.max_steps;
    most.is_some_and(|most| turn.steps() >= most)
}

/// Makes the decisions that depend on the server. In `--tools-mode auto`, decides whether the
/// request names the tools or the prompt describes them; in any mode, decides in which dialect
/// calls in the text of a native answer are parsed. Without tools there is nothing to decide;
/// without a `network` no server is asked. Returns whether a rejection by the provider may change
/// the first decision.
async fn decide(
    turn: &mut TurnDraft,
    recorder: Option<&RefCell<Recorder>>,
    network: Option<&Network>,
    watch: &StopWatch,
    out: &Out,
) -> Result<bool> {
    let (mut may_tag, mut server) = (false, None);
    if turn.provider.settings.tools.tools_mode == ToolsModeChoice::Auto && turn.has_tools() {
        let host = StdoutHost::new(watch, out, None);
        let decision = turn.decide_tools(recorder, network, &host).await?;
        if watch.signal().is_none() {
            out.messages().verbose(format_args!(
                "tools mode auto: {}",
                turn.show_decision(&decision)
            ));
        }
        turn.form.tools = decision.form;
        may_tag = !decision.is_firm;
        server = decision.server;
    }
    // A replay has no server to ask, so a turn that records a tape does not ask a server either.
    if let (Some(network), None) = (network, recorder)
        && turn.needs_family()
        && watch.signal().is_none()
    {
        let host = StdoutHost::new(watch, out, None);
        let note = |request: &Request| host.note(Note::Request(request));
        let provider = &turn.provider;
        let server = match server {
            Some(known) => known,
            None => tokio::select! {
                biased;
                server = provider.ask_server(network, turn.model(), note) => server,
                _ = host.stop() => ServerReport::default(),
            },
        };
        turn.family = turn.provider.family_of(&server);
        if let Some(family) = turn.family {
            out.messages().verbose(format_args!(
                "calls in the text are read as {}, by the server's chat template",
                family.name
            ));
        }
    }
    Ok(may_tag)
}
