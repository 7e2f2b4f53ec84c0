//! `/v1/models`, in OpenAI's shape, or in Anthropic's for a client that sends `anthropic-version`.
//! Sources: <https://platform.openai.com/docs/api-reference/models>, <https://docs.anthropic.com/en/api/models-list>.

use super::refusal::Refusal;
use super::response::{ResponseBody, whole};
use super::service::Service;
use event::Object;
use hyper::{HeaderMap, Response, StatusCode};

impl Service {
    /// The list of models, or one of them.
    pub(super) async fn models(
        &self,
        headers: &HeaderMap,
        name: Option<&str>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let names = self.source.models().await;
        let shape = if headers.contains_key("anthropic-version") { anthropic } else { openai };
        let mut body = Vec::new();
        match name {
            Some(name) if names.iter().any(|known| known == name) => {
                let mut model = Object::open(&mut body);
                shape(&mut model, name);
                model.close();
            }
            Some(name) => {
                let message = format!("{}: no such model, see /v1/models", event::cut(name, 200));
                return Err(Refusal::new(404, "model_not_found", message));
            }
            None => {
                let mut list = Object::open(&mut body);
                list.str("object", "list");
                list.array("data", |data| {
                    for name in &names {
                        data.object(|model| shape(model, name));
                    }
                });
                if headers.contains_key("anthropic-version") {
                    list.bool("has_more", false);
                    list.maybe_str("first_id", names.first().map(String::as_str));
                    list.maybe_str("last_id", names.last().map(String::as_str));
                }
                list.close();
            }
        }
        Ok(whole(StatusCode::OK, "application/json", body))
    }
}

fn openai(model: &mut Object<'_>, name: &str) {
    model.str("id", name).str("object", "model").int("created", 0).str("owned_by", "toolpipe");
}

fn anthropic(model: &mut Object<'_>, name: &str) {
    model.str("type", "model").str("id", name).str("display_name", name).str("created_at", "1970-01-01T00:00:00Z");
}
