//! The tokens of a request, as its provider counts them.

use super::direct::{Direct, QUESTION_TIME};
use super::servers::Servers;
use crate::asked::Asked;
use api::{Api, ServerKind};
use ask::{TurnDraft, TurnOptions};
use event::{Object, Raw};
use hyper::body::Bytes;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The most bytes of an answer: a prompt, or a list of its tokens. A longer one has an estimate,
/// which takes no memory.
const ANSWER: usize = 8 << 20;

/// The tokens of a request of Anthropic's API, which `body` is: the count of a provider of the same
/// API, or that of a llama.cpp server. `None` where nobody counts, or not in time.
pub async fn count_tokens(
    direct: &Direct,
    servers: &Servers,
    asked: Asked,
    body: &Bytes,
) -> Option<u64> {
    tokio::time::timeout(QUESTION_TIME, counted(direct, servers, asked, body))
        .await
        .ok()
        .flatten()
}

async fn counted(
    direct: &Direct,
    servers: &Servers,
    mut asked: Asked,
    body: &Bytes,
) -> Option<u64> {
    direct.network.as_ref().filter(|_| !direct.is_taped)?;
    let provider = &direct.provider;
    let model = provider
        .model()
        .map(str::to_owned)
        .or_else(|| asked.request.model.clone())
        .unwrap_or_default();
    if provider.api == Api::Anthropic {
        let body = match provider.model() {
            Some(model) => with_model(body, model)?,
            None => body.clone(),
        };
        let answer = direct
            .post("/v1/messages/count_tokens", &asked.headers, body, ANSWER)
            .await?;
        return u64::try_from(Raw::parse(&answer).ok()?.get("input_tokens")?.i64()?).ok();
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
    let prompt = direct
        .post("/apply-template", &[], request.body.into(), ANSWER)
        .await?;
    let prompt = Raw::parse(&prompt).ok()?.get_str("prompt")?.into_owned();
    let text = format!(
        "{{\"content\":{},\"add_special\":true,\"parse_special\":true}}",
        event::quoted(&prompt)
    );
    let tokens = direct.post("/tokenize", &[], text.into(), ANSWER).await?;
    let tokens = Raw::parse(&tokens)
        .ok()?
        .get("tokens")
        .filter(|tokens| tokens.is_array())?
        .items()
        .count();
    Some((tokens + media) as u64)
}

/// The JSON object `body` with this model.
fn with_model(body: &[u8], model: &str) -> Option<Bytes> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(body).ok()?;
    let mut out = Vec::with_capacity(body.len());
    let mut object = Object::open(&mut out);
    for (name, value) in members.iter().filter(|(name, _)| *name != "model") {
        object.raw(name, value.get());
    }
    object.str("model", model);
    object.close();
    Some(out.into())
}
