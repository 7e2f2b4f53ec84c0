//! The policy file, and what it and the options mean together: the stricter of both, where both say
//! something.

use crate::args::{Args, Permissions};
use crate::command::folder_of;
use crate::trust;
use anyhow::Context;
use std::path::Path;
use tool::{ApprovalLevel, Policy, Settings, Tools};

/// Reads the policy for these tools; without one, an empty policy.
///
/// # Errors
/// When the file cannot be read, or holds a mistake.
pub fn read(args: &Args, tools: &Tools) -> anyhow::Result<Policy> {
    let Some(path) = &args.permissions.policy else {
        return Ok(Policy::default());
    };
    if !args.permissions.trust {
        trust::file(path)?;
    }
    let mut policy = ::args::file(path, Policy::read)?;
    let absolute =
        |path: &Path| std::path::absolute(path).map(|path| path.to_string_lossy().into_owned());
    let folders =
        absolute(&folder_of(&args.tools)).and_then(|tools| Ok((tools, absolute(Path::new("."))?)));
    let (tools_folder, folder) = folders.context("the current folder cannot be found")?;
    policy
        .fit(tools, &tools_folder, &folder)
        .with_context(|| path.display().to_string())?;
    Ok(policy)
}

/// The least class that needs a yes. What is typed and what the policy says both hold.
pub fn level(permissions: &Permissions, policy: &Policy) -> ApprovalLevel {
    permissions.approve.max(policy.approve).unwrap_or_default()
}

/// The settings under a policy, which lowers numbers and never raises them.
pub fn narrowed(settings: Settings, policy: &Policy) -> Settings {
    let lower = |here: usize, there: Option<usize>| there.map_or(here, |there| here.min(there));
    // 0 turns the guard off.
    let repeats = [settings.max_repeats, policy.max_repeats.unwrap_or(0)]
        .into_iter()
        .filter(|most| *most > 0)
        .min();
    Settings {
        max_calls: lower(settings.max_calls, policy.max_calls),
        max_questions: lower(settings.max_questions, policy.max_questions),
        max_repeats: repeats.unwrap_or(0),
        ..settings
    }
}
