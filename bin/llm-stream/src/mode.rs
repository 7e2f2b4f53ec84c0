//! `--tools-mode auto`: how this model learns of its tools. The allow-list is asked first, then what was learned before, then the
//! server; and where nobody knows, native calls are tried.

use crate::allow::{self, Mode};
use crate::args::Args;
use crate::capabilities::{Capabilities, Known, under};
use crate::http::Network;
use crate::interrupt::Watch;
use crate::key;
use crate::recorder::Recorder;
use crate::turn::{Told, Turn, Way};
use crate::verbose::Verbose;
use anyhow::{Result, anyhow, bail};
use event::Object;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;
use upstream::{Answer, End, capability_key, plain_url, questions};

/// The longest time for all questions to a server together.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer that is read: a list of some hundred models.
const ANSWER: usize = 16 << 20;

/// What was found.
#[derive(Debug)]
pub struct Verdict {
    pub told: Told,
    source: &'static str,
    detail: String,
}

impl Verdict {
    /// Whether the user said so, which no server's refusal changes.
    pub fn is_firm(&self) -> bool {
        self.source == "allow-list"
    }
}

/// Where it is looked for.
pub struct Auto<'a> {
    pub args: &'a Args,
    pub turn: &'a Turn,
    /// What was learned before, and what will be.
    pub capabilities: Capabilities,
}

impl<'a> Auto<'a> {
    pub fn new(args: &'a Args, turn: &'a Turn) -> Auto<'a> {
        Auto { args, turn, capabilities: Capabilities::new(&args.auto) }
    }

    /// Decides for a turn. One with a tape asks no server: the tape must say all there is to know, so that it plays the same again.
    ///
    /// # Errors
    /// As [`Auto::find`] and [`Auto::recorded`].
    pub async fn decide(
        &self,
        recorder: Option<&Recorder>,
        network: Option<&Network>,
        watch: &Watch,
    ) -> Result<Verdict> {
        let Some(recorder) = recorder else { return self.find(network, watch).await };
        match self.recorded(recorder)? {
            Some(verdict) => Ok(verdict),
            None => self.find(None, watch).await,
        }
    }

    /// Looks everywhere, in order. Without a `network` no server is asked.
    ///
    /// # Errors
    /// An allow-list that cannot be read; for `--probe`, which asks nothing else, a server that cannot be reached.
    pub async fn find(&self, network: Option<&Network>, watch: &Watch) -> Result<Verdict> {
        if let Some(verdict) = self.allowed()? {
            return Ok(verdict);
        }
        let known = |known: Known, source| Verdict {
            told: if known.native { Told::Native } else { self.turn.tag() },
            source,
            detail: known.detail,
        };
        if let Some(before) = self.capabilities.get(&self.key()) {
            return Ok(known(before, "cache"));
        }
        if let Some(network) = network {
            let listed = tokio::select! {
                biased;
                listed = self.listed(network) => listed,
                // Whoever comes next sees why.
                _ = watch.stop() => Ok(None),
            };
            match listed {
                Ok(Some(listed)) => return Ok(known(listed, "model-list")),
                Err(End::Reset(why) | End::Timeout(why)) if self.args.auto.probe => bail!("{why}"),
                // A turn meets the same trouble, and reports it.
                Ok(None) | Err(_) => {}
            }
        }
        Ok(self.default())
    }

    /// What a tape knows, which must be found on it again: the first of the ways whose request is there.
    ///
    /// # Errors
    /// An allow-list that cannot be read, a request that cannot be made.
    fn recorded(&self, recorder: &Recorder) -> Result<Option<Verdict>> {
        let allowed = self.allowed()?;
        let tag = Verdict { told: self.turn.tag(), source: "tape", detail: String::new() };
        for verdict in allowed.into_iter().chain([self.default(), tag]) {
            let request = self.turn.request(self.args, Way { told: verdict.told, whole: false })?;
            if recorder.knows(self.turn.model(), &request) {
                return Ok(Some(verdict));
            }
        }
        Ok(None)
    }

    /// Remembers that the server refused tools, and how.
    pub fn refused(&self, said: &str) {
        self.learn(&Known { native: false, source: "refused".to_owned(), detail: said.to_owned() });
    }

    /// The verdict as JSON, for people and scripts.
    pub fn show(&self, verdict: &Verdict) -> String {
        let (mode, dialect) = match verdict.told {
            Told::Native => ("native", None),
            Told::Tag(dialect) => ("tag", Some(dialect.name)),
            Told::Nothing(_) => ("none", None),
        };
        let mut text = Vec::new();
        let mut o = Object::open(&mut text);
        o.str("mode", mode).maybe_str("dialect", dialect).str("source", verdict.source);
        o.maybe_str("detail", Some(verdict.detail.as_str()).filter(|d| !d.is_empty())).str("model", self.turn.model());
        o.str("api", self.turn.api.name()).str("base_url", &plain_url(self.turn.url()));
        o.close();
        String::from_utf8_lossy(&text).into_owned()
    }

    fn default(&self) -> Verdict {
        let detail = "nothing is known of it: native calls are tried at the first turn, and tags if they are refused";
        Verdict { told: Told::Native, source: "default", detail: detail.to_owned() }
    }

    /// What the allow-list says.
    fn allowed(&self) -> Result<Option<Verdict>> {
        let usual = || under("XDG_CONFIG_HOME", ".config").map(|config| config.join("toolpipe").join("tools-mode"));
        let named = &self.args.auto.tools_mode_file;
        let Some(path): Option<PathBuf> = named.clone().or_else(usual) else { return Ok(None) };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if named.is_none() && matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(e) => return Err(anyhow!("{}: {e}, check the path and its permissions", path.display())),
        };
        let found = allow::look_up(&path, &text, &format!("{}/{}", self.turn.api.name(), self.turn.model()))?;
        Ok(found.map(|(line, mode)| {
            let told = match mode {
                Mode::Native => Told::Native,
                Mode::None => Told::Nothing(self.turn.dialect),
                // What was typed now goes before what was written down once.
                Mode::Tag(Some(dialect)) if self.args.request.dialect.is_none() => self.turn.tag_in(dialect),
                Mode::Tag(_) => self.turn.tag(),
            };
            Verdict { told, source: "allow-list", detail: format!("{}, line {line}", path.display()) }
        }))
    }

    /// What the server says, if it says anything in time.
    ///
    /// # Errors
    /// When it cannot be reached at all, or must not be sent the key.
    async fn listed(&self, network: &Network) -> Result<Option<Known>, End> {
        let typed = &self.args.connection;
        let deadline = Instant::now() + PATIENCE.min(typed.idle_timeout).min(typed.timeout.unwrap_or(PATIENCE));
        let local = self.turn.route.is_local || self.turn.url().starts_with("http:");
        for (asked, question) in questions(self.turn.api, &self.turn.options, local).into_iter().enumerate() {
            if let Err(e) = key::check(self.args, self.turn, &question.request) {
                return Err(End::Reset(e.to_string()));
            }
            Verbose::new(self.args).request(&question.request, self.turn.redactor());
            // A server that cannot be reached will not answer the next one either.
            let body = match tokio::time::timeout_at(deadline, network.ask(&question.request, ANSWER)).await {
                Ok(Ok(body)) => body,
                Ok(Err(end)) if asked == 0 => return Err(end),
                Err(_) if asked == 0 => {
                    let url = plain_url(&question.request.url);
                    return Err(End::Timeout(format!("no answer from {url} in time; check the address in --base-url")));
                }
                Ok(Err(_)) | Err(_) => return Ok(None),
            };
            let (native, detail) = match question.answer(body.as_deref()) {
                Answer::Tells(native, detail) => (native, detail),
                Answer::Nothing => continue,
                Answer::Over => break,
            };
            let known = Known { native, source: "model-list".to_owned(), detail };
            if !self.turn.route.is_local {
                // A server on this machine answers at once, and may have another model tomorrow.
                self.learn(&known);
            }
            return Ok(Some(known));
        }
        Ok(None)
    }

    fn learn(&self, known: &Known) {
        let (url, api) = (plain_url(self.turn.url()), self.turn.api.name());
        self.capabilities.put(&self.key(), [&url, api, self.turn.model()], known);
    }

    fn key(&self) -> String {
        capability_key(self.turn.api, self.turn.url(), self.turn.model())
    }
}
