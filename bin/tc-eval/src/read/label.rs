//! How the recording of a label is read.

use super::settings::ReadSettings;
use anyhow::{Result, bail};
use api::Api;
use score::Label;
use tag::Dialect;

impl ReadSettings {
    /// How the recording of `label` is read.
    ///
    /// # Errors
    /// When the label names an unknown API, mode or dialect, or contradicts itself.
    pub fn of_label(label: &Label) -> Result<Self> {
        check(label)?;
        Ok(ReadSettings {
            api: label
                .api
                .as_deref()
                .map(api)
                .transpose()
                .map_err(|e| anyhow::anyhow!(e))?,
            part: label.part,
            model: label.model.clone(),
            tools: label.tools.as_ref().map(|tools| tools.get().to_owned()),
            tools_mode: label
                .tools_mode
                .clone()
                .or_else(|| label.dialect.as_ref().map(|_| "tag".to_owned())),
            dialect: label.dialect.clone(),
            ..ReadSettings::default()
        })
    }
}

/// The API of this name.
///
/// # Errors
/// A line that lists all names.
pub fn api(name: &str) -> Result<Api, String> {
    let names = || Api::ALL.map(Api::name).join(", ");
    Api::from_name(name)
        .ok_or_else(|| format!("the API \"{name}\" is unknown; use one of: {}", names()))
}

/// Refuses a label whose fields would be ignored or read as something else.
fn check(label: &Label) -> Result<()> {
    let is_known = |name: &str| name == "auto" || Dialect::named(name).is_some();
    if let Some(mode) = label
        .tools_mode
        .as_deref()
        .filter(|mode| !["native", "tag", "none"].contains(mode))
    {
        bail!("the tools_mode \"{mode}\" of the label is unknown; use one of: native, tag, none");
    }
    if let Some(name) = label
        .dialect
        .as_deref()
        .filter(|names| !names.split(',').map(str::trim).all(is_known))
    {
        bail!("the dialect \"{name}\" of the label is unknown; see tag-parse --list-dialects");
    }
    // Requests may list tools that the provider runs, without a name, so the items are not looked
    // at.
    if label
        .tools
        .as_ref()
        .is_some_and(|tools| !tools.get().trim_start().starts_with(['[', '{']))
    {
        bail!("the tools of the label are not a list of tools; correct them or leave them out");
    }
    if label.has_tool_call == Some(false) && !label.calls.is_empty() {
        bail!("the label has calls, and its has_tool_call is false; correct one of them");
    }
    Ok(())
}
