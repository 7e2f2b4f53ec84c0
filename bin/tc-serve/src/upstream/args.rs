//! The options of a provider.

use ::upstream::Api;

/// The provider that is asked.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Provider")]
pub struct UpstreamArgs {
    /// The API of the server: openai-chat (or openai; the default, and what most servers have), openai-responses (responses), anthropic (claude),
    /// gemini (google), ollama, mistral, cohere
    #[arg(short, long, value_name = "NAME", value_parser = api)]
    pub api: Option<Api>,
    /// The address of the API, if it is not the provider's own
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// The model to ask, whatever a client names
    #[arg(short, long, value_name = "NAME")]
    pub model: Option<String>,
}

fn api(name: &str) -> Result<Api, String> {
    Api::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Api::ALL.iter().map(|api| api.name()).collect();
        format!("unknown API, use one of {}", names.join(", "))
    })
}
