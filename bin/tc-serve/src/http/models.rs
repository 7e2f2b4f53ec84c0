//! `/v1/models`, in OpenAI's shape, or in Anthropic's for a client that sends `anthropic-version`.
//! Sources: <https://platform.openai.com/docs/api-reference/models>,
//! <https://docs.anthropic.com/en/api/models-list>.

use super::refusal::Refusal;
use super::response::{ResponseBody, whole};
use super::service::Service;
use api::ListedModel;
use event::Object;
use hyper::{HeaderMap, Response, StatusCode};

impl Service {
    /// The list of models, or one of them.
    pub(super) async fn models(
        &self,
        headers: &HeaderMap,
        name: Option<&str>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let models = self.source.models().await?;
        let shape = if headers.contains_key("anthropic-version") {
            anthropic
        } else {
            openai
        };
        let mut body = Vec::new();
        match name {
            Some(name) => {
                let Some(known) = models.iter().find(|known| known.name == name) else {
                    let message =
                        format!("{}: no such model, see /v1/models", event::cut(name, 200));
                    return Err(Refusal::new(404, "model_not_found", message));
                };
                let mut model = Object::open(&mut body);
                shape(&mut model, known);
                model.close();
            }
            None => {
                let mut list = Object::open(&mut body);
                list.str("object", "list");
                list.array("data", |data| {
                    for known in &models {
                        data.object(|model| shape(model, known));
                    }
                });
                if headers.contains_key("anthropic-version") {
                    list.bool("has_more", false);
                    list.maybe_str("first_id", models.first().map(|model| model.name.as_str()));
                    list.maybe_str("last_id", models.last().map(|model| model.name.as_str()));
                }
                list.close();
            }
        }
        Ok(whole(StatusCode::OK, "application/json", body))
    }
}

fn openai(model: &mut Object<'_>, known: &ListedModel) {
    model
        .str("id", &known.name)
        .str("object", "model")
        .int("created", known.created.unwrap_or_default());
    model.str("owned_by", known.owned_by.as_deref().unwrap_or("toolpipe"));
}

fn anthropic(model: &mut Object<'_>, known: &ListedModel) {
    let name = known.name.as_str();
    model
        .str("type", "model")
        .str("id", name)
        .str("display_name", name)
        .str("created_at", "1970-01-01T00:00:00Z");
}
