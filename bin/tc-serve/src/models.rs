//! Selects the provider of a request by the model that the request names.

use crate::args::Args;
use crate::client_request::ClientRequest;
use crate::log::Notices;
use crate::pipe::Pipe;
use crate::upstream::Upstream;
use anyhow::Result;
use api::{Api, FailedAnswer, InboundError, InboundRequest, ListedModel};
use ask::{ModelReader, Settings};
use client::Networks;
use config::{Configured, Model};
use tag::Dialects;

/// The providers of a service.
#[derive(Debug)]
pub(crate) struct Providers {
    /// The provider of models that the configuration does not name.
    usual: Option<Upstream>,
    /// The model that answers all requests, set with `--model`.
    only: Option<String>,
    named: Vec<NamedProvider>,
    /// The model used for a request that names none.
    default: Option<String>,
}

/// The provider of a model of the configuration.
#[derive(Debug)]
struct NamedProvider {
    model: Model,
    upstream: Upstream,
    /// The names of the models to try if this model's server fails.
    fallbacks: Vec<String>,
}

impl Providers {
    /// Creates the providers from the options and the configuration. A configured model whose key
    /// is missing is skipped with a notice, since the others still work.
    ///
    /// # Errors
    /// A one-line error for an invalid option or a mistake in a file that it names, and for a
    /// missing key if there is no other provider.
    pub(crate) fn new(
        args: &Args,
        configured: &Configured,
        notices: &Notices,
    ) -> Result<Providers> {
        let asked = &args.upstream;
        let max_frame = args.limits.max_answer;
        let settings = Settings {
            provider: asked.provider.clone(),
            tools: asked.tools.clone(),
            auto: asked.auto.clone(),
            connection: asked.connection,
            max_frame,
        };
        let only = asked.provider.model.clone();
        let is_recorded = !asked.replay.files.is_empty() || asked.replay.tape()?.is_some();
        let routes = !is_recorded && only.is_none() && !configured.models().is_empty();
        let has_server = asked.provider.api.is_some() || asked.provider.base_url.is_some();
        let mut networks = Networks::default();
        let mut providers = Providers {
            usual: None,
            named: vec![],
            default: configured.default_model(),
            only: only.clone(),
        };
        let named = match configured.model().filter(|_| !is_recorded) {
            // Only this model and its fallbacks, even if the options name a server.
            Some(model) => configured.fallbacks(model),
            None if routes => configured.models().iter().collect(),
            None => vec![],
        };
        if !routes || has_server {
            let settings = settings.of_model(configured.model());
            let replay = Some(&asked.replay);
            if !is_recorded {
                settings.provider.check_name(configured)?;
            }
            providers.usual = Some(Upstream::new(settings, replay, &mut networks, notices)?);
        }
        let mut missing = None;
        let mut reader = ModelReader::new(configured, max_frame);
        for model in named {
            let settings = reader.settings(model)?;
            match Upstream::new(settings, None, &mut networks, notices) {
                Ok(upstream) => providers.named.push(NamedProvider {
                    model: model.clone(),
                    upstream,
                    fallbacks: names(&configured.fallbacks(model)),
                }),
                Err(error) => {
                    let message = format!("{}: {error:#}; requests for it are refused", model.name);
                    notices.warn("model_left_out", &message);
                    missing.get_or_insert(error);
                }
            }
        }
        if let (None, [], Some(error)) = (&providers.usual, &*providers.named, missing) {
            return Err(error);
        }
        Ok(providers)
    }

    /// Returns the provider of `model`, or `None` if no model has that name.
    pub(crate) fn of_model(&self, model: Option<&str>) -> Option<&Upstream> {
        if self.only.is_some() {
            return self.usual.as_ref();
        }
        let name = self.name(model);
        let named = self.named(name.unwrap_or_default());
        named.map(|named| &named.upstream).or(self.usual.as_ref())
    }

    /// Returns the name of the model for a request that names `model`.
    fn name<'n>(&'n self, model: Option<&'n str>) -> Option<&'n str> {
        let model = model.filter(|model| !model.is_empty());
        let single = match &*self.named {
            [single] if self.usual.is_none() => Some(single.model.name.as_str()),
            _ => None,
        };
        model.or(self.default.as_deref()).or(single)
    }

    /// Returns the model name that a response reports for a request that names `model`: the name
    /// set with `--model`, else the one the client requested.
    pub(crate) fn shown<'n>(&'n self, model: Option<&'n str>) -> &'n str {
        self.only
            .as_deref()
            .or(self.name(model))
            .unwrap_or_default()
    }

    /// Returns the server's own name for a configured model.
    pub(crate) fn asked(&self, model: &str) -> Option<&str> {
        let named = self.named(model).filter(|_| self.only.is_none());
        named.map(|named| named.model.asked())
    }

    fn named(&self, name: &str) -> Option<&NamedProvider> {
        self.named.iter().find(|named| named.model.is_named(name))
    }

    /// Returns all providers.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Upstream> {
        let named = self.named.iter().map(|named| &named.upstream);
        self.usual.iter().chain(named)
    }

    /// Returns the providers to try for `model` in order, each with the name of the next one, which
    /// is tried if the server fails.
    fn chain(&self, model: Option<&str>) -> Vec<(&Upstream, Option<&str>)> {
        let Some(first) = self.of_model(model) else {
            return vec![];
        };
        let others: Vec<&NamedProvider> = match self.only {
            Some(_) => self.named.iter().collect(),
            None => {
                let named = self.name(model).and_then(|name| self.named(name));
                let fallbacks = named.map_or(&[][..], |named| &*named.fallbacks);
                fallbacks
                    .iter()
                    .filter_map(|name| self.named(name))
                    .collect()
            }
        };
        let next = |at: usize| Some(others.get(at)?.model.name.as_str());
        let rest = others.iter().enumerate();
        let rest = rest.map(|(at, named)| (&named.upstream, next(at + 1)));
        std::iter::once((first, next(0))).chain(rest).collect()
    }

    /// See [`crate::source::Source::run`].
    pub(crate) async fn run(&self, asked: ClientRequest, pipe: &Pipe) {
        let model = asked.request.model.clone();
        let chain = self.chain(model.as_deref());
        let mut asked = asked;
        for (upstream, next) in chain {
            if !upstream.run(&mut asked, next, pipe).await {
                return;
            }
        }
    }

    /// Checks that a model with the requested name exists, and that its provider would receive the
    /// whole conversation.
    ///
    /// # Errors
    /// The unknown name, or the part of the conversation that the provider would not receive.
    pub(crate) fn check(&self, api: Api, request: &InboundRequest) -> Result<(), InboundError> {
        match self.of_model(request.model.as_deref()) {
            Some(upstream) => request.check(api, Some(upstream.address())),
            None => Err(InboundError::NotFound {
                member: "model".to_owned(),
                code: "model_not_found",
                why: match self.name(request.model.as_deref()) {
                    Some(name) => {
                        format!(
                            "no model has the name {}, see /v1/models",
                            event::cut(name, 200)
                        )
                    }
                    None => "the request names none; name one of /v1/models".to_owned(),
                },
            }),
        }
    }

    /// Returns the models that a client may request.
    ///
    /// # Errors
    /// Why the provider does not return its list, if there is no other provider.
    pub(crate) async fn models(&self) -> Result<Vec<ListedModel>, FailedAnswer> {
        if let Some(name) = &self.only {
            return Ok(vec![name.as_str().into()]);
        }
        let names = self
            .named
            .iter()
            .flat_map(|named| std::iter::once(&named.model.name).chain(&named.model.aliases));
        let mut models: Vec<ListedModel> = names.map(|name| name.as_str().into()).collect();
        match &self.usual {
            None => {}
            Some(usual) => match usual.models().await {
                Ok(others) => models.extend(
                    others
                        .into_iter()
                        .filter(|other| self.named(&other.name).is_none()),
                ),
                Err(failure) if models.is_empty() => return Err(failure),
                Err(_) => {}
            },
        }
        Ok(models)
    }

    /// Returns the dialects that a response may use: the built-in ones, and the user's own.
    pub(crate) fn dialects(&self) -> Dialects {
        let mut all = Dialects::default();
        for upstream in self.all() {
            all.merge(upstream.dialects());
        }
        all
    }
}

fn names(models: &[&Model]) -> Vec<String> {
    models.iter().map(|model| model.name.clone()).collect()
}
