//! The rules about what may run, made of what was typed and of the policy.

use crate::approve::continuation;
use crate::args::Args;
use crate::policy;
use std::collections::HashSet;
use std::rc::Rc;
use tool::{Glob, Judge, Rules, Tools};

/// The tools, and the rules about which of them may run.
///
/// # Errors
/// A mistake in the policy.
pub fn judge(args: &Args, tools: Tools) -> anyhow::Result<Judge> {
    let policy = policy::read(args, &tools)?;
    let globs = |patterns: &[String]| patterns.iter().map(|p| Glob::new(p)).collect();
    let rules = Rules {
        allow: globs(&args.permissions.allow),
        deny: globs(&args.permissions.deny),
        approve: policy::level(&args.permissions, &policy),
        approved: args.permissions.approve_call.iter().cloned().collect(),
        denied: args.permissions.deny_call.iter().cloned().collect(),
        results: args
            .permissions
            .answer_call
            .iter()
            .map(|answer| (answer.call.clone(), answer.text.clone()))
            .collect(),
        always: HashSet::new(),
        continuation: continuation::continuation(args),
    };
    Ok(Judge {
        tools,
        rules,
        policy: Rc::new(policy),
    })
}
