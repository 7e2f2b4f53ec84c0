//! The tokens of a request, as its provider counts them.

use super::direct::{Direct, QUESTION_TIME};
use super::servers::Servers;
use crate::asked::Asked;
use ::upstream::{Api, ServerKind};
use ask::{TurnDraft, TurnOptions};
use hyper::body::Bytes;
use serde_json::{Value, json};

/// The most bytes of an answer: `/tokenize` lists each token.
const TOKENS: usize = 64 << 20;

/// The tokens of a request of Anthropic's API, which `body` is: the count of a provider of the same API, or that of a llama.cpp server. `None` where
/// nobody counts, or not in time.
pub async fn count_tokens(direct: &Direct, servers: &Servers, asked: Asked, body: &Bytes) -> Option<u64> {
    tokio::time::timeout(QUESTION_TIME, counted(direct, servers, asked, body)).await.ok().flatten()
}

async fn counted(direct: &Direct, servers: &Servers, mut asked: Asked, body: &Bytes) -> Option<u64> {
    direct.network.as_ref().filter(|_| !direct.is_taped)?;
    let provider = &direct.provider;
    let model = provider.model().map(str::to_owned).or_else(|| asked.request.model.clone()).unwrap_or_default();
    if provider.api == Api::Anthropic {
        let mut body: Value = serde_json::from_slice(body).ok()?;
        body["model"] = model.into();
        let answer = direct.post("/v1/messages/count_tokens", &asked.headers, &body, TOKENS).await?;
        return answer["input_tokens"].as_u64();
    }
    if servers.of(direct, &model).await.kind != ServerKind::LlamaCpp {
        return None;
    }
    // The prompt that the server would make of the request, and its tokens.
    let media = asked.request.estimated_media_tokens();
    let options = TurnOptions {
        model: Some(model),
        system: None,
        tools: asked.request.tools.clone(),
        tool_choice: None,
        params: vec![],
        headers: vec![],
        streams: false,
        id: None,
        item_ids: false,
        is_for_client: true,
    };
    let mut turn = TurnDraft::new(direct.current(), options);
    turn.converse(std::mem::take(&mut asked.request.conversation));
    let request = turn.request(turn.form).ok()?;
    let request: Value = serde_json::from_str(&request.body).ok()?;
    let prompt = direct.post("/apply-template", &[], &request, TOKENS).await?;
    let text = json!({"content": prompt.get("prompt")?, "add_special": true, "parse_special": true});
    let tokens = direct.post("/tokenize", &[], &text, TOKENS).await?;
    Some(tokens["tokens"].as_array()?.len() as u64 + media as u64)
}
