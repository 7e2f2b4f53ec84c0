//! What a turn, a dry run and a probe begin with: the tape, the turn, standard input, and the form
//! of the tools.

use super::settings::AskSettings;
use crate::host::StdoutHost;
use crate::output::{Messages, Out};
use crate::watch::Watch;
use crate::{input, tools};
use ::ask::{AutoMode, Provider, ToolsModeChoice, TurnDraft, TurnOptions, open_tape};
use anyhow::{Result, anyhow};
use client::{Network, Recorder};
use event::payload::Warning;
use json::ToolList;
use std::cell::RefCell;
use std::sync::Arc;
use stdio::Failure;

/// The tape and the turn.
pub struct Opening<'s> {
    pub settings: &'s AskSettings,
    pub recorder: Option<RefCell<Recorder>>,
    pub turn: TurnDraft,
}

impl<'s> Opening<'s> {
    /// Reads the tape and puts the turn together. `is_probe` says that no turn follows.
    ///
    /// # Errors
    /// One line for a mistake in the arguments or in a file that they name.
    pub fn new(settings: &'s AskSettings, is_probe: bool) -> Result<Opening<'s>> {
        let recorder = settings.tape.clone().map(open_tape).transpose()?;
        let provider = Provider::new(
            &settings.provider,
            recorder.as_ref().and_then(Recorder::first),
            is_probe,
        )?;
        let tools = settings.tools.as_deref().map(tools::read).transpose()?;
        let turn = TurnOptions {
            model: None,
            system: settings.system.clone(),
            tools: tools
                .as_deref()
                .map(ToolList::read)
                .transpose()?
                .map(Arc::new),
            tool_choice: settings.tool_choice.clone(),
            params: vec![],
            headers: vec![],
            streams: settings.streams,
            id: None,
            item_ids: false,
            is_for_client: false,
        };
        let turn = TurnDraft::new(Arc::new(provider), turn);
        let mut opening = Opening {
            settings,
            recorder: recorder.map(RefCell::new),
            turn,
        };
        opening.hide_secrets();
        Ok(opening)
    }

    /// Whether every answer comes from the tape.
    pub fn is_offline(&self) -> bool {
        self.recorder
            .as_ref()
            .is_some_and(|r| r.borrow().is_offline())
    }

    /// Takes the key of the turn.
    ///
    /// # Errors
    /// See [`::ask::KeySource::key`].
    pub fn take_key(&mut self) -> Result<()> {
        self.turn.take_key()?;
        self.hide_secrets();
        Ok(())
    }

    fn hide_secrets(&mut self) {
        if let Some(recorder) = &self.recorder {
            recorder.borrow_mut().set_redactor(self.turn.redactor());
        }
    }

    /// Standard output and standard error.
    pub fn out(&self) -> Out {
        let no_time = self.settings.filter.no_time;
        Out::new(
            no_time,
            Messages::new(
                self.settings.is_verbose,
                no_time,
                self.turn.redactor().clone(),
            ),
        )
    }

    /// The network by which the turn reaches the provider.
    ///
    /// # Errors
    /// When the system's certificates cannot be read.
    pub fn network(&self) -> Result<Network> {
        Ok(Network::new(
            &self.turn.provider.route,
            self.settings.connection.connect_timeout,
        )?)
    }

    /// Returns the [`AutoMode`] of this turn, which can decide how the model learns of its tools.
    pub fn auto(&self) -> AutoMode<'_> {
        AutoMode {
            settings: &self.settings.auto,
            turn: &self.turn,
        }
    }

    /// Reads standard input, and takes what its `request` event asks for; returns the question as a
    /// chat message. A signal may have ended the reading. Lines of a log that are not events become
    /// warnings if `warns`.
    ///
    /// # Errors
    /// As [`input::read`], and when no model is named.
    pub fn converse(
        &mut self,
        watch: &Watch,
        out: &mut Out,
        warns: bool,
    ) -> Result<Option<String>> {
        let mut warn = |warning: &Warning| {
            if warns {
                out.event(*warning);
            }
        };
        let content = input::read(&self.settings.filter, watch.signals(), &mut warn)?;
        if watch.signal().is_none() {
            content.report(out.messages());
        }
        let question = input::question(self.settings.prompt.as_deref(), content.text);
        if let Some((api, request)) = &content.request {
            let left_out = self.turn.fill_in(*api, request);
            for note in request.notes.iter().chain(&left_out) {
                out.messages()
                    .verbose(format_args!("request event: {note}"));
            }
        }
        if watch.signal().is_none() {
            self.turn.check_model()?;
        }
        self.turn.converse(content.conversation);
        Ok(question.map(|question| self.turn.ask(&question)))
    }

    /// Whether the model has used up its `max_steps` answers since the last message of the user.
    /// Without that limit it never has.
    pub fn is_enough(&self) -> bool {
        self.settings
            .max_steps
            .is_some_and(|most| self.turn.steps() >= most)
    }

    /// In `--tools-mode auto`, decides whether the request names the tools or the prompt describes
    /// them. Without tools, or at the limit of steps, it decides nothing. Returns whether a refusal
    /// by the provider may change the decision. A signal may have ended the search.
    ///
    /// # Errors
    /// As [`AutoMode::decide`].
    pub async fn decide(
        &mut self,
        network: Option<&Network>,
        watch: &Watch,
        out: &mut Out,
    ) -> Result<bool> {
        if self.settings.provider.tools_mode != ToolsModeChoice::Auto
            || !self.turn.has_tools()
            || self.is_enough()
        {
            return Ok(false);
        }
        let auto = self.auto();
        let decision = auto
            .decide(
                self.recorder.as_ref(),
                network,
                &StdoutHost::new(watch, out, None),
            )
            .await?;
        if watch.signal().is_none() {
            out.messages()
                .verbose(format_args!("tools mode auto: {}", auto.show(&decision)));
        }
        self.turn.form.tools = decision.form;
        Ok(!decision.is_firm())
    }

    /// `error` without the secrets of the turn. A [`Failure`] stays as it is, because redaction
    /// would turn it into plain text.
    pub fn redacted(&self, error: anyhow::Error) -> anyhow::Error {
        if error.is::<Failure>() {
            error
        } else {
            anyhow!("{}", self.turn.redactor().text(&format!("{error:#}")))
        }
    }
}
