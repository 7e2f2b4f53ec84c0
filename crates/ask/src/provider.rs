//! What is the same for every turn with one provider: its address, its key, and the options that
//! are fixed.

use super::form::{ToolsModeChoice, dialect, dialects};
use anyhow::{Context, Result, anyhow, bail};
use api::{Api, Request, RequestOptions};
use client::{AddressError, RequestHeader, Route, secrets_in_url, with_path_of};
use redact::{Redactor, is_secret_header};
use serde_json::Value;
use std::env;
use std::path::PathBuf;
use tag::{Dialect, Dialects};

/// The settings of a provider, and of every turn with it.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// The API; without one the tape's, or openai-chat.
    pub api: Option<Api>,
    /// Where the API is served, instead of the provider's own address.
    pub base_url: Option<String>,
    /// The model; without one the turn's, or the tape's.
    pub model: Option<String>,
    /// Where the key is.
    pub key: KeySource,
    /// Headers as they were typed.
    pub headers: Vec<String>,
    /// Members of the body.
    pub params: Vec<(String, Value)>,
    /// How the model is to learn of its tools.
    pub tools_mode: ToolsModeChoice,
    /// The dialect of tools in the prompt.
    pub dialect: Option<String>,
    /// The file of the user's own dialects.
    pub dialect_file: Option<PathBuf>,
    /// The end of the prompt that the model's text continues.
    pub prefill: Option<String>,
    /// The most bytes of one event of the body.
    pub max_frame: usize,
    /// Whether a secret may go over http to another machine.
    pub allows_insecure: bool,
}

/// A provider, ready to be asked. It is prepared once, and any number of turns share it.
#[derive(Clone, Debug)]
pub struct Provider {
    /// The API that is spoken.
    pub api: Api,
    /// Where requests go.
    pub route: Route,
    /// The dialects that can be named.
    pub dialects: Dialects,
    /// The dialect of tools in the prompt.
    pub dialect: &'static Dialect,
    pub(crate) settings: ProviderSettings,
    pub(crate) base_url: Option<String>,
    pub(crate) key: Option<String>,
    recorded_model: Option<String>,
    headers: Vec<RequestHeader>,
    is_key_needed: bool,
    /// Takes the key and whatever else is secret out of all that leaves.
    redactor: Redactor,
}

impl Provider {
    /// Puts the options together. `recorded` is the API and the model of a tape. `is_probe` claims
    /// that no turn follows.
    ///
    /// # Errors
    /// One line that names the option and the remedy.
    pub fn new(
        settings: &ProviderSettings,
        recorded: Option<(Api, String)>,
        is_probe: bool,
    ) -> Result<Provider> {
        let dialects = dialects(settings.dialect_file.as_deref())?;
        let dialect = dialect(
            &dialects,
            settings.dialect.as_deref(),
            settings.tools_mode,
            is_probe,
        )?;
        let (api, recorded_model) = recorded.unzip();
        let api = settings.api.or(api).unwrap_or(Api::OpenaiChat);
        let variable = |name: &str| std::env::var(name).ok();
        let headers = settings
            .headers
            .iter()
            .map(|typed| RequestHeader::read(typed, variable).map_err(refused));
        let headers: Vec<RequestHeader> = headers.collect::<Result<_>>()?;
        let base_url = settings
            .base_url
            .clone()
            .map(|url| with_path_of(url, api.base_url()));
        let route = Route::of(base_url.as_deref().unwrap_or(api.base_url()));
        // A server at an address of the user's may want no key, and a header may hold it.
        let is_provider = settings.base_url.is_none() && !route.is_local;
        let is_key_needed = is_provider && !headers.iter().any(|h| is_secret_header(&h.name));
        let mut provider = Provider {
            api,
            route,
            dialects,
            dialect,
            settings: settings.clone(),
            base_url,
            key: None,
            recorded_model,
            headers,
            is_key_needed,
            redactor: Redactor::default(),
        };
        provider.redactor = Redactor::new(provider.secrets());
        Ok(provider)
    }

    /// Reads the key from its source. Only a request that is really sent needs the key.
    ///
    /// # Errors
    /// See [`KeySource::key`].
    pub fn take_key(&mut self) -> Result<()> {
        self.key = self.settings.key.key(self.api, self.is_key_needed)?;
        self.redactor = Redactor::new(self.secrets());
        Ok(())
    }

    /// Whether the key is in a file.
    pub fn has_key_file(&self) -> bool {
        self.settings.key.file.is_some()
    }

    /// The model that the settings name, which is asked whatever a turn names.
    pub fn model(&self) -> Option<&str> {
        self.settings.model.as_deref().filter(|m| !m.is_empty())
    }

    /// The model of the tape, for a turn that names none.
    pub fn recorded_model(&self) -> Option<&str> {
        self.recorded_model.as_deref()
    }

    /// What takes the secrets of this provider out of all that leaves.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Whether the value of a header of the user's is secret.
    pub fn is_secret(&self, name: &str) -> bool {
        self.headers
            .iter()
            .any(|h| h.is_secret() && h.name.eq_ignore_ascii_case(name))
    }

    /// The headers that were typed, with their values.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (String, String)> {
        self.headers
            .iter()
            .map(|h| (h.name.clone(), h.value.clone()))
    }

    /// The options of a request that belongs to no turn, such as one for the list of models.
    pub fn request_options(&self) -> RequestOptions {
        RequestOptions {
            model: self.model().unwrap_or_default().to_owned(),
            base_url: self.base_url.clone(),
            key: self.key.clone(),
            headers: self.headers().collect(),
            ..RequestOptions::default()
        }
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

    fn secrets(&self) -> Vec<String> {
        let in_headers = self.headers.iter().flat_map(RequestHeader::secrets);
        in_headers
            .chain(secrets_in_url(&self.route.url))
            .chain(self.key.clone())
            .collect()
    }
}

fn refused(e: client::HeaderError) -> anyhow::Error {
    anyhow!("--header: {e}")
}

// Where the key comes from.

/// Where the key is; without either, in the API's usual variable.
#[derive(Clone, Debug, Default)]
pub struct KeySource {
    /// A file that holds the key alone.
    pub file: Option<PathBuf>,
    /// A variable of the environment.
    pub variable: Option<String>,
}

impl KeySource {
    /// The key; `None` if the source holds no key and `is_needed` is false.
    ///
    /// # Errors
    /// One line that names the variable or the file: a key that is missing, or that cannot be the
    /// value of a header.
    pub fn key(&self, api: Api, is_needed: bool) -> Result<Option<String>> {
        let (key, origin) = match (&self.file, &self.variable) {
            (Some(file), _) => {
                let text = std::fs::read_to_string(file);
                let text = text.with_context(|| {
                    format!("{}: the key cannot be read, check the path", file.display())
                })?;
                (text, file.display().to_string())
            }
            (None, Some(name)) => {
                let text = env::var(name).map_err(|_| {
                    anyhow!("the environment has no {name}: export the key under that name")
                })?;
                (text, name.clone())
            }
            (None, None) => (
                env::var(api.key_env()).unwrap_or_default(),
                api.key_env().to_owned(),
            ),
        };
        let key = key.trim();
        if key.is_empty() && is_needed {
            bail!(
                "no key for {}: export {} (or name another place with --api-key-env or --api-key-file)",
                api.name(),
                api.key_env()
            );
        }
        if !key.bytes().all(|b| b.is_ascii_graphic()) {
            bail!(
                "the key in {origin} holds spaces or control characters, put the key alone there"
            );
        }
        Ok(Some(key.to_owned()).filter(|key| !key.is_empty()))
    }
}
