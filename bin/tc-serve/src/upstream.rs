//! A provider as the source of events.

mod args;

pub use args::UpstreamArgs;

use crate::asked::Asked;
use crate::pipe::Pipe;
use ::upstream::{Api, End, Request, RequestOptions, Stream, StreamOptions};
use client::{Network, PieceContent, Route, TimeLimits};
use std::time::Duration;

/// How a provider is asked.
#[derive(Debug)]
pub struct Upstream {
    api: Api,
    base_url: Option<String>,
    model: Option<String>,
    key: Option<String>,
    network: Network,
}

impl Upstream {
    /// Prepares requests to a provider.
    ///
    /// # Errors
    /// One line for a mistake in the arguments.
    pub fn new(args: &UpstreamArgs) -> anyhow::Result<Upstream> {
        let api = args.api.unwrap_or(Api::OpenaiChat);
        let base_url = args.base_url.clone().map(|url| client::with_path_of(url, api.base_url()));
        let route = Route::of(base_url.as_deref().unwrap_or(api.base_url()));
        let network = Network::new(&route, Duration::from_secs(10))?;
        let key = std::env::var(api.key_env()).ok().filter(|key| !key.is_empty());
        Ok(Upstream { api, base_url, model: args.model.clone(), key, network })
    }

    /// See [`crate::source::Source::run`].
    pub async fn run(&self, asked: &Asked, pipe: &Pipe) {
        let inbound = &asked.request;
        let model = self.model.clone().or_else(|| inbound.model.clone()).unwrap_or_default();
        let (params, _) = ::upstream::parameters_for(asked.api, self.api, &inbound.params);
        let options = RequestOptions {
            model: model.clone(),
            base_url: self.base_url.clone(),
            key: self.key.clone(),
            tools: inbound.tools.clone(),
            tool_choice: inbound.tool_choice.clone(),
            params,
            headers: if asked.api == self.api { asked.headers.clone() } else { Vec::new() },
            ..RequestOptions::default()
        };
        let request = match ::upstream::request(self.api, &inbound.conversation, &options) {
            Ok(request) => request,
            Err(e) => return pipe.fail("invalid_request", &e.to_string(), 400, None),
        };
        let tools = inbound.tools.as_ref().map_or_else(|| "[]".to_owned(), |tools| tools.openai(|_| true));
        let mut stream = Stream::new(
            self.api,
            StreamOptions {
                // An empty list says that no name in the text is a tool.
                tools: Some(tools),
                tools_mode: Some("native".to_owned()),
                model: Some(model),
                id: Some(asked.id.clone()),
                ..StreamOptions::default()
            },
        );
        let limits = TimeLimits { idle: Some(Duration::from_secs(300)), deadline: None };
        let mut answer = match self.network.send(&request, limits, None).await {
            Ok(answer) => answer,
            Err((error, _)) => return stream.finish(End::Reset(error.to_string()), &mut pipe.sink()),
        };
        let status = answer.head.status;
        let mut refusal = Vec::new();
        loop {
            pipe.room().await;
            match answer.body.next().await.what {
                PieceContent::Bytes(bytes) if (200..300).contains(&status) => stream.push(bytes, &mut pipe.sink()),
                PieceContent::Bytes(bytes) => refusal.extend_from_slice(bytes),
                PieceContent::End if (200..300).contains(&status) => stream.finish(End::Eof, &mut pipe.sink()),
                PieceContent::End => stream.error_body(status, &refusal, None, &mut pipe.sink()),
                PieceContent::Lost(error) => stream.finish(End::Reset(error.to_string()), &mut pipe.sink()),
            }
            if stream.is_done() || pipe.is_done() {
                return;
            }
        }
    }

    /// The names of the models that may be asked for.
    pub async fn models(&self) -> Vec<String> {
        if let Some(model) = &self.model {
            return vec![model.clone()];
        }
        let base = self.base_url.as_deref().unwrap_or(self.api.base_url());
        let headers = self.key.iter().map(|key| ("authorization".to_owned(), format!("Bearer {key}"))).collect();
        let url = format!("{}/models", base.trim_end_matches('/'));
        let request = Request { method: "GET", url, headers, body: String::new() };
        let Ok(Ok(Some(body))) =
            tokio::time::timeout(Duration::from_secs(3), self.network.ask(&request, 8 << 20)).await
        else {
            return Vec::new();
        };
        let body: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        let ids = body["data"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str());
        ids.map(str::to_owned).collect()
    }
}
