//! The policy file, combined with the command-line options. Where both set a value, the stricter
//! one applies.

use super::args::{Args, Permissions};
use super::{approve, trust};
use anyhow::Context;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;
use tool::{
    ApprovalLevel, CallAnswer, CallReference, Glob, Judge, PlanSettings, Policy, Rules, Tools,
};

/// Reads the policy for these tools. Returns an empty policy if no file is given.
///
/// # Errors
/// If the file cannot be read or is invalid.
pub(crate) fn read(args: &Args, tools: &Tools) -> anyhow::Result<Policy> {
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
        absolute(&args.toolbox.folder).and_then(|tools| Ok((tools, absolute(Path::new("."))?)));
    let (tools_folder, folder) = folders.context("the current folder cannot be found")?;
    policy
        .fit(tools, &tools_folder, &folder)
        .with_context(|| path.display().to_string())?;
    Ok(policy)
}

/// Returns the lowest class that needs approval: the stricter of the option and the policy.
pub(crate) fn level(permissions: &Permissions, policy: &Policy) -> ApprovalLevel {
    permissions.ask.max(policy.approve).unwrap_or_default()
}

/// Returns the settings limited by a policy, which can lower numbers but never raise them.
pub(crate) fn narrowed(settings: PlanSettings, policy: &Policy) -> PlanSettings {
    let lower = |here: usize, there: Option<usize>| there.map_or(here, |there| here.min(there));
    // 0 turns the guard off.
    let repeats = [settings.max_repeats, policy.max_repeats.unwrap_or(0)]
        .into_iter()
        .filter(|most| *most > 0)
        .min();
    PlanSettings {
        max_calls: lower(settings.max_calls, policy.max_calls),
        max_questions: lower(settings.max_questions, policy.max_questions),
        max_repeats: repeats.unwrap_or(0),
        ..settings
    }
}

/// Returns the text that the user gave for each call.
fn texts(answers: &[CallAnswer]) -> HashMap<CallReference, String> {
    let texts = answers.iter().cloned();
    texts.map(|answer| (answer.call, answer.text)).collect()
}

// The rules about which calls may run, from the command line and the policy.

/// Returns the tools and the rules about which of them may run.
///
/// # Errors
/// If the policy is invalid.
pub(crate) fn judge(args: &Args, tools: Tools) -> anyhow::Result<Judge> {
    let policy = read(args, &tools)?;
    let globs = |patterns: &[String]| patterns.iter().map(|p| Glob::new(p)).collect();
    let rules = Rules {
        allow: globs(&args.permissions.allow),
        deny: globs(&args.permissions.deny),
        leave: globs(&args.permissions.leave),
        approve: level(&args.permissions, &policy),
        approved: args.permissions.approve_call.iter().cloned().collect(),
        denied: args.permissions.deny_call.iter().cloned().collect(),
        reasons: texts(&args.permissions.answer_reason),
        results: texts(&args.permissions.answer_call),
        always: HashSet::new(),
        continuation: approve::continuation(args),
    };
    Ok(Judge {
        tools,
        rules,
        policy: Rc::new(policy),
    })
}
