//! `--tools-mode auto`: how to present tools to this model. The allow-list decides first, then the
//! cache, then the server's own list of models. If none of these lists the model, the turn tries
//! native calls.

mod capabilities;

use super::form::{RequestForm, ToolsForm};
use super::host::{Host, Note};
use super::trouble::sentence;
use super::turn::TurnDraft;
use anyhow::{Result, anyhow, bail};
use api::{ProbeAnswer, ServerReport, capability_key, plain_url, questions};
use capabilities::{Capabilities, Capability, LearnedFrom, LearnedMode};
use client::{Network, Recorder};
use event::Glob;
use std::cell::RefCell;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;
use stdio::unreadable;
use tag::{Dialect, Dialects};
use tokio::time::Instant;

/// The time limit for all questions to a server together.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most bytes read from a response. A list of several hundred models fits.
const ANSWER: usize = 16 << 20;

/// How tools are presented to the model, and why.
#[derive(Debug)]
pub struct FormDecision {
    /// How tools are presented to the model.
    pub form: ToolsForm,
    /// Whether the decision comes from the user's allow-list. Such a decision is kept even if the
    /// server rejects tools.
    pub is_firm: bool,
    /// The source of the decision: `allow-list`, `cache`, `model-list`, `tape` or `default`.
    source: &'static str,
    detail: String,
    /// The server's report about itself; `None` if the server was not asked.
    pub server: Option<ServerReport>,
}

/// Decides how tools are presented to the turn's model.
impl TurnDraft {
    /// Decides for a turn. With a tape, no server is asked, because a replay must make the same
    /// request without a server.
    ///
    /// # Errors
    /// As [`TurnDraft::find_tools`], and if the request cannot be built.
    pub async fn decide_tools(
        &self,
        recorder: Option<&RefCell<Recorder>>,
        network: Option<&Network>,
        host: &impl Host,
    ) -> Result<FormDecision> {
        let Some(recorder) = recorder else {
            return self.find_tools(network, host, false).await;
        };
        let recorded = self.recorded(&recorder.borrow())?;
        match recorded {
            Some(decision) => Ok(decision),
            None => self.find_tools(None, host, false).await,
        }
    }

    /// Looks in the allow-list, then in the cache, then asks the server if there is a `network`.
    ///
    /// # Errors
    /// If the allow-list cannot be read, or, with `must_reach`, if the server cannot be reached.
    pub async fn find_tools(
        &self,
        network: Option<&Network>,
        host: &impl Host,
        must_reach: bool,
    ) -> Result<FormDecision> {
        if let Some(decision) = self.allowed()? {
            return Ok(decision);
        }
        let of = |found: Capability, source| FormDecision {
            form: match found.mode {
                LearnedMode::Native => ToolsForm::Native,
                LearnedMode::Tag => self.tag(),
            },
            is_firm: false,
            source,
            detail: found.detail,
            server: None,
        };
        if let Some(found) = self.capabilities().get(&self.key()) {
            return Ok(of(found, "cache"));
        }
        let mut server = None;
        let mut decision = self.default_tools();
        if let Some(network) = network {
            let listed = tokio::select! {
                biased;
                listed = self.listed(network, host, &mut server) => listed,
                // A stop ends the search. The caller finds it in `host`.
                _ = host.stop() => Ok(None),
            };
            match listed {
                Ok(Some(listed)) => decision = of(listed, "model-list"),
                Err(unreachable) if must_reach => bail!(unreachable),
                // A server that does not know the model decides nothing. A server that cannot be
                // reached fails the turn too, and the turn reports that.
                Ok(None) | Err(_) => {}
            }
        }
        decision.server = server;
        Ok(decision)
    }

    /// Returns the decision for the first possible form whose request is on the tape, or `None` if
    /// the tape has none of them.
    ///
    /// # Errors
    /// If the allow-list cannot be read, or a request cannot be built.
    fn recorded(&self, recorder: &Recorder) -> Result<Option<FormDecision>> {
        if recorder.is_log() {
            return Ok(Some(self.default_tools()));
        }
        let allowed = self.allowed()?;
        let tag = FormDecision {
            form: self.tag(),
            is_firm: false,
            source: "tape",
            detail: String::new(),
            server: None,
        };
        for decision in allowed.into_iter().chain([self.default_tools(), tag]) {
            let request = self.request(RequestForm {
                tools: decision.form,
                is_whole: false,
            })?;
            if recorder.has_answer(self.model(), &request) {
                return Ok(Some(decision));
            }
        }
        Ok(None)
    }

    /// Caches that the server rejected tools, with the server's message.
    pub fn keep_refusal(&self, words: &str) {
        self.learn(&Capability {
            mode: LearnedMode::Tag,
            source: LearnedFrom::Refused,
            detail: words.to_owned(),
        });
    }

    /// Returns the decision as JSON, for users and scripts.
    pub fn show_decision(&self, decision: &FormDecision) -> String {
        let (mode, dialect) = match decision.form {
            ToolsForm::Native => ("native", None),
            ToolsForm::Tag(dialect) => ("tag", Some(dialect.name)),
            ToolsForm::Nothing(_) => ("none", None),
        };
        event::object(|o| {
            o.str("mode", mode)
                .maybe_str("dialect", dialect)
                .str("source", decision.source);
            o.maybe_str(
                "detail",
                Some(decision.detail.as_str()).filter(|d| !d.is_empty()),
            )
            .str("model", self.model());
            o.str("api", self.provider.api.name())
                .str("base_url", &plain_url(self.url()));
        })
    }

    fn default_tools(&self) -> FormDecision {
        let detail = "no source lists this model: the first turn tries native calls, and tags if \
                      the server refuses them";
        FormDecision {
            form: ToolsForm::Native,
            is_firm: false,
            source: "default",
            detail: detail.to_owned(),
            server: None,
        }
    }

    /// Returns the decision of the allow-list, or `None` if no line matches.
    fn allowed(&self) -> Result<Option<FormDecision>> {
        let auto = &self.provider.settings.auto;
        let Some(path) = auto.list() else {
            return Ok(None);
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e)
                if auto.tools_mode_file.is_none()
                    && matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(e) => return Err(unreadable(&path, &e).into()),
        };
        let found = look_up(
            &path,
            &text,
            &format!("{}/{}", self.provider.api.name(), self.model()),
            &self.provider.dialects,
        )?;
        Ok(found.map(|(line, form)| {
            let form = match form {
                AllowedForm::Native => ToolsForm::Native,
                AllowedForm::None => ToolsForm::Nothing(self.provider.dialect),
                AllowedForm::Tag(Some(dialect))
                    if self.provider.settings.tools.dialect.is_none() =>
                {
                    self.tag_in(dialect)
                }
                AllowedForm::Tag(_) => self.tag(),
            };
            FormDecision {
                form,
                is_firm: true,
                source: "allow-list",
                detail: format!("{}, line {line}", path.display()),
                server: None,
            }
        }))
    }

    /// Returns the decision from the server's own entry for the model, or `None` if the server has
    /// no entry. `server` receives the server's report about itself, if a response contains one.
    ///
    /// # Errors
    /// A sentence, if the server cannot be reached, does not answer the first question in time, or
    /// must not receive the key.
    async fn listed(
        &self,
        network: &Network,
        host: &impl Host,
        server: &mut Option<ServerReport>,
    ) -> Result<Option<Capability>, String> {
        let connection = &self.provider.settings.connection;
        let patience = PATIENCE.min(connection.idle_timeout);
        let patience = connection.timeout.map_or(patience, |all| patience.min(all));
        let deadline = Instant::now() + patience;
        let is_near = self.provider.is_near();
        for (asked, question) in questions(self.provider.api, &self.options, is_near)
            .into_iter()
            .enumerate()
        {
            self.provider
                .check(&question.request)
                .map_err(|e| e.to_string())?;
            host.note(Note::Request(&question.request));
            let body =
                match tokio::time::timeout_at(deadline, network.ask(&question.request, ANSWER))
                    .await
                {
                    Ok(Ok(body)) => body,
                    Ok(Err(error)) if asked == 0 => return Err(sentence(&error, None)),
                    Err(_) if asked == 0 => {
                        let url = plain_url(&question.request.url);
                        return Err(format!(
                            "no answer from {url} in time; check the address in --base-url"
                        ));
                    }
                    // The server answered an earlier question, so this is not an error. After a
                    // failure or the shared deadline it will not answer the next question either.
                    Ok(Err(_)) | Err(_) => return Ok(None),
                };
            *server = server.take().or_else(|| question.server(body.as_deref()));
            let (is_native, detail) = match question.answer(body.as_deref()) {
                ProbeAnswer::Tells(is_native, detail) => (is_native, detail),
                ProbeAnswer::Nothing => continue,
                ProbeAnswer::Over => break,
            };
            let listed = Capability {
                mode: if is_native {
                    LearnedMode::Native
                } else {
                    LearnedMode::Tag
                },
                source: LearnedFrom::ModelList,
                detail,
            };
            if !self.provider.route.is_local {
                // Only a remote server's response is cached. A server on this machine is asked each
                // time, because it responds at once and its models may change.
                self.learn(&listed);
            }
            return Ok(Some(listed));
        }
        Ok(None)
    }

    fn learn(&self, capability: &Capability) {
        let url = plain_url(self.url());
        let api = self.provider.api.name();
        self.capabilities()
            .put(&self.key(), [&url, api, self.model()], capability);
    }

    fn capabilities(&self) -> Capabilities {
        let auto = &self.provider.settings.auto;
        Capabilities {
            folder: auto.cache(),
            time_to_live: auto.capability_ttl,
        }
    }

    fn key(&self) -> String {
        capability_key(self.provider.api, self.url(), self.model())
    }
}

// The user's allow-list, which maps models to the way their tools are presented.

/// How tools are presented to a model.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AllowedForm {
    /// In the request's own member for tools.
    Native,
    /// In the prompt, in the dialect that the line names; `None` if it names no dialect.
    Tag(Option<&'static Dialect>),
    /// The model gets no tools.
    None,
}

/// Returns the number and the form of the first line whose pattern matches `name` (`API/MODEL`).
/// Lines are `PATTERN native|tag|none [DIALECT]`; `#` starts a comment.
///
/// # Errors
/// The file and its first invalid line, even if an earlier line matches.
pub(crate) fn look_up(
    path: &Path,
    text: &str,
    name: &str,
    dialects: &Dialects,
) -> Result<Option<(usize, AllowedForm)>> {
    let mut found = None;
    for (number, line) in (1..).zip(text.lines()) {
        let at = |why: anyhow::Error| anyhow!("{}: line {number}: {why}", path.display());
        let Some((pattern, mode)) = entry(line, dialects).map_err(at)? else {
            continue;
        };
        if found.is_none() && Glob::new(pattern).matches(name) {
            found = Some((number, mode));
        }
    }
    Ok(found)
}

fn entry<'l>(line: &'l str, dialects: &Dialects) -> Result<Option<(&'l str, AllowedForm)>> {
    let words: Vec<&str> = line
        .split_whitespace()
        .take_while(|word| !word.starts_with('#'))
        .collect();
    Ok(Some(match words[..] {
        [] => return Ok(None),
        [pattern, "native"] => (pattern, AllowedForm::Native),
        [pattern, "none"] => (pattern, AllowedForm::None),
        [pattern, "tag"] => (pattern, AllowedForm::Tag(None)),
        [pattern, "tag", name] => (pattern, AllowedForm::Tag(Some(dialects.find(name)?))),
        _ => bail!("not PATTERN native|tag|none [DIALECT], such as: openai-chat/*deepseek-r1* tag"),
    }))
}

#[cfg(test)]
mod allow_tests {
    use super::*;

    const LIST: &str = "# mine\n\n\
        openai-chat/*r1*   tag tool-name-tag # no calls of its own\n\
        ollama/*  none\n  openai-chat/*\tnative\r\n*/gemma tag\n";

    fn of(name: &str) -> Option<(usize, &'static str)> {
        look_up(Path::new("list"), LIST, name, &Dialects::default())
            .unwrap()
            .map(|(line, mode)| {
                let word = match mode {
                    AllowedForm::Native => "native",
                    AllowedForm::Tag(Some(dialect)) => dialect.name,
                    AllowedForm::Tag(None) => "tag",
                    AllowedForm::None => "none",
                };
                (line, word)
            })
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        assert_eq!(
            of("openai-chat/deepseek/deepseek-r1:free"),
            Some((3, "tool-name-tag"))
        );
        assert_eq!(of("ollama/gemma"), Some((4, "none")));
        assert_eq!(of("openai-chat/gpt-5"), Some((5, "native")));
        assert_eq!(of("cohere/gemma"), Some((6, "tag")));
        assert_eq!(of("cohere/command"), None);
    }

    #[test]
    fn a_bad_line_is_named_also_behind_the_one_that_fits() {
        for (line, why) in [
            ("ollama/x", "not PATTERN"),
            ("ollama/x maybe", "not PATTERN"),
            ("ollama/x native hermes", "not PATTERN"),
            ("ollama/x tag hermes more", "not PATTERN"),
            ("ollama/x tag nonsense", "unknown dialect 'nonsense'"),
        ] {
            let text = format!("* native\n{line}\n");
            let error = look_up(Path::new("the/list"), &text, "a/b", &Dialects::default())
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("the/list: line 2: ") && error.contains(why),
                "{error}"
            );
        }
    }
}
