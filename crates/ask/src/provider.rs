//! What is the same for every turn with one provider: its address, its key, and the options that
//! are fixed.

use super::args::ProviderArgs;
use super::form::{dialects, named_dialect};
use super::settings::Settings;
use anyhow::{Context, Result, anyhow, bail};
use api::{
    Api, Request, RequestOptions, TargetServer, settings_for, with_at_most, with_fitted_budget,
};
use client::{AddressError, RequestHeader, Route, secrets_in_url, with_path_of};
use redact::{Redactor, is_secret_header};
use serde_json::Value;
use std::env;
use tag::{DEFAULT, Dialect, Dialects};

/// A provider, ready to be asked. It is prepared once, and any number of turns share it.
#[derive(Clone, Debug)]
pub struct ReadyProvider {
    /// The API that is spoken.
    pub api: Api,
    /// Where requests go.
    pub route: Route,
    /// The dialects that can be named.
    pub dialects: Dialects,
    /// The dialect that the user names: that of the model's family.
    pub family: Option<&'static Dialect>,
    /// The dialect of tools in the prompt.
    pub dialect: &'static Dialect,
    /// What the provider goes by. Its params are those of the request, in the words of its API.
    pub settings: Settings,
    /// What the provider's API cannot have of the settings, a sentence for each.
    pub left_out: Vec<String>,
    /// The options of a request that belongs to no turn, such as one for the list of models.
    pub options: RequestOptions,
    recorded_model: Option<String>,
    headers: Vec<RequestHeader>,
    is_key_needed: bool,
    /// Takes the key and whatever else is secret out of all that leaves.
    redactor: Redactor,
}

impl ReadyProvider {
    /// Puts the options together. `recorded` is the API and the model of a tape.
    ///
    /// # Errors
    /// One line that names the option and the remedy.
    pub fn new(mut settings: Settings, recorded: Option<(Api, String)>) -> Result<ReadyProvider> {
        let dialects = dialects(settings.tools.dialect_file.as_deref())?;
        let family = named_dialect(&dialects, &settings.tools)?;
        let dialect = match family {
            Some(dialect) => dialect,
            None => dialects.find(DEFAULT)?,
        };
        let args = &settings.provider;
        let (api, recorded_model) = recorded.unzip();
        let api = args.api.or(api).unwrap_or(Api::OpenaiChat);
        let variable = |name: &str| std::env::var(name).ok();
        let headers = args
            .headers
            .iter()
            .map(|typed| RequestHeader::read(typed, variable).map_err(refused));
        let headers: Vec<RequestHeader> = headers.collect::<Result<_>>()?;
        let base_url = args
            .base_url
            .clone()
            .map(|url| with_path_of(url, api.base_url()));
        let route = Route::of(base_url.as_deref().unwrap_or(api.base_url()));
        // A server at an address of the user's may want no key, and a header may hold it.
        let is_provider = args.base_url.is_none() && !route.is_local;
        let is_key_needed = is_provider && !headers.iter().any(|h| is_secret_header(&h.name));
        let options = RequestOptions {
            model: args.model.clone().unwrap_or_default(),
            base_url,
            headers: headers
                .iter()
                .map(|h| (h.name.clone(), h.value.clone()))
                .collect(),
            ..RequestOptions::default()
        };
        let target = TargetServer {
            api,
            url: &route.url,
            model: &options.model,
        };
        let (params, left_out) = settings_for(&settings.provider.settings(), &target);
        let typed = std::mem::take(&mut settings.provider.params);
        settings.provider.params = merged(params, &typed);
        let mut provider = ReadyProvider {
            api,
            left_out,
            route,
            dialects,
            family,
            dialect,
            settings,
            options,
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
    /// A key that is missing, or that cannot be the value of a header.
    pub fn take_key(&mut self) -> Result<()> {
        self.options.key = key(&self.settings.provider, self.api, self.is_key_needed)?;
        self.redactor = Redactor::new(self.secrets());
        Ok(())
    }

    /// Whether the key is in a file.
    pub fn has_key_file(&self) -> bool {
        self.settings.provider.api_key_file.is_some()
    }

    /// The model that the settings name, which is asked whatever a turn names.
    pub fn model(&self) -> Option<&str> {
        Some(self.options.model.as_str()).filter(|m| !m.is_empty())
    }

    /// The model of the tape, for a turn that names none.
    pub fn recorded_model(&self) -> Option<&str> {
        self.recorded_model.as_deref()
    }

    /// The params of a client with those of the settings, which take the place of others of the
    /// same name. A client may ask for fewer tokens than `--max-tokens`.
    pub(crate) fn with_own(&self, params: Vec<(String, Value)>) -> Vec<(String, Value)> {
        let ProviderArgs {
            max_tokens,
            params: own,
            ..
        } = &self.settings.provider;
        let Some(most) = *max_tokens else {
            return merged(params, own);
        };
        let (params, is_fewer) = with_at_most(self.api, params, most);
        let params = match is_fewer {
            true => merged(params, &with_at_most(self.api, own.clone(), 0).0),
            false => merged(params, own),
        };
        with_fitted_budget(self.api, params)
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

    /// Checks that a request may be sent to its address.
    ///
    /// # Errors
    /// One line with the remedy.
    pub fn check(&self, request: &Request) -> Result<()> {
        match self.route.check(request, |name| self.is_secret(name)) {
            Ok(()) => Ok(()),
            Err(AddressError::Exposed(_)) if self.settings.connection.allow_insecure => Ok(()),
            Err(e @ AddressError::Exposed(_)) => bail!("{e}, or --allow-insecure"),
            Err(e) => bail!("--base-url: {e}"),
        }
    }

    fn secrets(&self) -> Vec<String> {
        let in_headers = self.headers.iter().flat_map(RequestHeader::secrets);
        in_headers
            .chain(secrets_in_url(&self.route.url))
            .chain(self.options.key.clone())
            .collect()
    }
}

/// The members in which APIs have settings beside each other.
const CONTAINERS: [&str; 2] = ["generationConfig", "options"];

/// `params` with those of `own`, which take the place of others of the same name.
pub(crate) fn merged(
    mut params: Vec<(String, Value)>,
    own: &[(String, Value)],
) -> Vec<(String, Value)> {
    for (name, value) in own {
        match (params.iter_mut().find(|(other, _)| other == name), value) {
            (Some((_, Value::Object(old))), Value::Object(new))
                if CONTAINERS.contains(&name.as_str()) =>
            {
                old.extend(new.clone());
            }
            (Some((_, old)), new) => *old = new.clone(),
            (None, new) => params.push((name.clone(), new.clone())),
        }
    }
    params
}

fn refused(e: client::HeaderError) -> anyhow::Error {
    anyhow!("--header: {e}")
}

/// The key: in a file, in a variable of the environment, or in the API's usual variable. `None` if
/// that place holds no key and `is_needed` is false.
///
/// # Errors
/// One line that names the variable or the file: a key that is missing, or that cannot be the value
/// of a header.
fn key(args: &ProviderArgs, api: Api, is_needed: bool) -> Result<Option<String>> {
    let (key, origin) = match (&args.api_key_file, &args.api_key_env) {
        (Some(file), _) => {
            let text = stdio::file_text(file);
            let text =
                text.with_context(|| format!("{}: the key cannot be read", file.display()))?;
            (text, file.display().to_string())
        }
        (None, Some(name)) => {
            let text = variable(name)?.ok_or_else(|| {
                anyhow!("the environment has no {name}: export the key under that name")
            })?;
            (text, name.clone())
        }
        (None, None) => (
            variable(api.key_env())?.unwrap_or_default(),
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
        bail!("the key in {origin} holds spaces or control characters, put the key alone there");
    }
    Ok(Some(key.to_owned()).filter(|key| !key.is_empty()))
}

/// The value of an environment variable, if it is set.
///
/// # Errors
/// When it is not UTF-8: it must not look like a missing one.
fn variable(name: &str) -> Result<Option<String>> {
    match env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => {
            bail!("the key in {name} is not UTF-8, export it again")
        }
    }
}
