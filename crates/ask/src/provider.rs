//! What all turns with a provider share: its address, its key and fixed options.

use super::args::ProviderArgs;
use super::form::{dialects, named_dialect};
use super::settings::Settings;
use anyhow::{Context, Result, anyhow, bail};
use api::{
    Api, KnownServer, Request, RequestOptions, TargetServer, settings_for, with_at_most,
    with_fitted_budget,
};
use client::{AddressError, RequestHeader, Route, secrets_in_url, with_path_of};
use redact::{Redactor, is_secret_header};
use serde_json::Value;
use std::env;
use std::process::{Command, Stdio};
use tag::{DEFAULT, Dialect, Dialects};

/// A provider that is ready for requests. It is prepared once and shared by any number of turns.
#[derive(Clone, Debug)]
pub struct ReadyProvider {
    /// The provider's API.
    pub api: Api,
    /// The server that was chosen by the model's name, because nothing else selects one.
    pub known_server: Option<&'static KnownServer>,
    /// The route that requests take.
    pub route: Route,
    /// The dialects that can be selected.
    pub dialects: Dialects,
    /// The dialect that the user selected for the model's family; `None` if it is detected.
    pub family: Option<&'static Dialect>,
    /// The dialect for tools in the prompt.
    pub dialect: &'static Dialect,
    /// The settings of the provider. Their params are those of the request, in the terms of the
    /// provider's API.
    pub settings: Settings,
    /// The settings that the provider's API does not support, one sentence each.
    pub left_out: Vec<String>,
    /// The options of a request outside any turn, such as one for the list of models.
    pub options: RequestOptions,
    recorded_model: Option<String>,
    headers: Vec<RequestHeader>,
    is_key_needed: bool,
    /// Removes the key and all other secrets from output.
    redactor: Redactor,
}

impl ReadyProvider {
    /// Prepares a provider from its settings. `recorded` contains the API and the model of a tape.
    ///
    /// # Errors
    /// A one-line error that names the option and the remedy.
    pub fn new(mut settings: Settings, recorded: Option<(Api, String)>) -> Result<ReadyProvider> {
        let dialects = dialects(settings.tools.dialect_file.as_deref())?;
        let family = named_dialect(&dialects, &settings.tools)?;
        let dialect = match family {
            Some(dialect) => dialect,
            None => dialects.find(DEFAULT)?,
        };
        let args = &settings.provider;
        let known_server = match &args.model {
            Some(model) if recorded.is_none() && !args.selects_server() => {
                KnownServer::of_model(model)
            }
            _ => None,
        };
        let (api, recorded_model) = recorded.unzip();
        let by_name = known_server.map(|server| server.api);
        let api = args.api.or(api).or(by_name).unwrap_or(Api::OpenaiChat);
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
        let base_url = base_url.or_else(|| Some(known_server?.base_url.to_owned()));
        let route = Route::of(base_url.as_deref().unwrap_or(api.base_url()));
        // A server at a user's address may not need a key, and a header may contain the key.
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
            known_server,
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

    /// Reads the key from its source. Called only for a request that is really sent, since no other
    /// needs the key.
    ///
    /// # Errors
    /// If the key is missing, or cannot be the value of a header.
    pub fn take_key(&mut self) -> Result<()> {
        let server = match self.known_server {
            Some(known) => (known.provider, known.key_env),
            None => (self.api.name(), self.api.key_env()),
        };
        self.options.key = key(&self.settings.provider, server, self.is_key_needed)?;
        self.redactor = Redactor::new(self.secrets());
        Ok(())
    }

    /// Whether the key comes from a file.
    pub fn has_key_file(&self) -> bool {
        self.settings.provider.api_key_file.is_some()
    }

    /// Returns the model in the settings, which overrides the model of a turn; `None` if there is
    /// none.
    pub fn model(&self) -> Option<&str> {
        Some(self.options.model.as_str()).filter(|m| !m.is_empty())
    }

    /// Returns the tape's model, used for a turn that names none.
    pub fn recorded_model(&self) -> Option<&str> {
        self.recorded_model.as_deref()
    }

    /// Merges the client's params with those of the settings, which override params of the same
    /// name. A client may request fewer tokens than `--max-tokens`.
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

    /// Returns the redactor that removes this provider's secrets from output.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Whether the value of the user's header `name` is secret.
    pub fn is_secret(&self, name: &str) -> bool {
        self.headers
            .iter()
            .any(|h| h.is_secret() && h.name.eq_ignore_ascii_case(name))
    }

    /// Checks that a request may be sent to its address.
    ///
    /// # Errors
    /// A one-line error with the remedy.
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

/// The members in which some APIs nest settings.
const CONTAINERS: [&str; 2] = ["generationConfig", "options"];

/// Merges `params` with `own`, which overrides params of the same name.
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

/// Returns the key from a file, a command or an environment variable, or from the usual variable of
/// the server, given by its name and that variable. Returns `None` if that source has no key and `is_needed` is false.
///
/// # Errors
/// A one-line error that names the variable or the file, if the key is missing or cannot be the
/// value of a header.
fn key(
    args: &ProviderArgs,
    (name, usual): (&str, &str),
    is_needed: bool,
) -> Result<Option<String>> {
    if let Some(command) = &args.api_key_command {
        return printed_key(command).map(Some);
    }
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
        (None, None) => (variable(usual)?.unwrap_or_default(), usual.to_owned()),
    };
    let key = key.trim();
    if key.is_empty() && is_needed {
        bail!(
            "no key for {name}: export {usual} (or name another place with --api-key-env, \
             --api-key-file or --api-key-command)"
        );
    }
    check_characters(key, &origin)?;
    Ok(Some(key.to_owned()).filter(|key| !key.is_empty()))
}

/// Returns the first line that a shell command prints. The command may ask the user for a
/// passphrase, so it has no time limit.
///
/// # Errors
/// A one-line error if the command fails, or prints no key.
fn printed_key(command: &str) -> Result<String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null());
    let output = shell.stderr(Stdio::inherit()).output();
    let output = output.context("--api-key-command: sh cannot be started")?;
    if !output.status.success() {
        bail!("--api-key-command: {command:?} failed, {}", output.status);
    }
    let printed = String::from_utf8(output.stdout);
    let printed = printed.with_context(|| format!("--api-key-command: {command:?}"))?;
    let key = printed.lines().next().unwrap_or_default().trim();
    if key.is_empty() {
        bail!("--api-key-command: {command:?} prints no key on its first line");
    }
    check_characters(key, "the output of --api-key-command")?;
    Ok(key.to_owned())
}

/// Checks that a key from `origin` can be the value of a header.
fn check_characters(key: &str, origin: &str) -> Result<()> {
    if !key.bytes().all(|b| b.is_ascii_graphic()) {
        bail!("the key in {origin} holds spaces or control characters, put the key alone there");
    }
    Ok(())
}

/// Returns the value of an environment variable, or `None` if it is not set.
///
/// # Errors
/// If the value is not UTF-8, so that it is not mistaken for a missing one.
fn variable(name: &str) -> Result<Option<String>> {
    match env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => {
            bail!("the key in {name} is not UTF-8, export it again")
        }
    }
}
