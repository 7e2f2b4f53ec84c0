//! What a user says of a recording that does not show it, and the forms in which commands write
//! what they find in it.

use super::label::api;
use super::settings::ReadSettings;
use api::Api;

/// The options of commands that read single recordings, which have no label.
#[derive(Clone, Debug, clap::Args)]
pub struct RecordingArgs {
    /// The API of a body that does not show it
    #[arg(short, long, value_name = "NAME", value_parser = api)]
    pub api: Option<Api>,
    /// `tag` if the calls of a recording are text
    #[arg(long, value_name = "MODE", value_parser = ["native", "tag", "none"])]
    pub tools_mode: Option<String>,
    /// The dialect of that text
    #[arg(short, long, value_name = "NAME")]
    pub dialect: Option<String>,
}

impl RecordingArgs {
    /// How such a recording is read.
    pub fn settings(&self) -> ReadSettings {
        ReadSettings {
            api: self.api,
            tools_mode: self.tools_mode.clone(),
            dialect: self.dialect.clone(),
            ..ReadSettings::default()
        }
    }
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Lines of words
    Text,
    /// JSON objects, one a line
    Json,
}
