//! Secrets to redact from all output.

use super::variable;
use client::secrets_in_url;
use redact::{Redactor, is_secret_header};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use tool::mcp::{Endpoint, Program, ServerLink, Servers};
use tool::{CALL_ID, HttpRun, RunnerKind, Tools, VariableError, fill};

/// The redactor of everything that leaves this process: events, results, files and messages. It
/// knows the variables that have the name of a credential or that a tool sends in a header or a
/// query, those that the `env` or a header of a server is filled from, the passwords in URLs that
/// commands and servers are given in variables, and the credentials that the tools file itself
/// holds.
pub(crate) fn redactor(tools: &Tools, servers: &Servers) -> Redactor {
    let ours = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let programs = || {
        servers.list.iter().filter_map(|server| match &server.link {
            ServerLink::Stdio(program) => Some(program),
            ServerLink::Http(_) => None,
        })
    };
    let endpoints = servers.list.iter().filter_map(|server| match &server.link {
        ServerLink::Http(endpoint) => Some(endpoint),
        ServerLink::Stdio(_) => None,
    });
    let variables = ours.chain(programs().flat_map(of_program));
    let requests = || {
        tools
            .iter()
            .filter_map(|tool| match &tool.exec.as_ref()?.run {
                RunnerKind::Http(http) => Some(http),
                RunnerKind::Command(_) | RunnerKind::Mcp(_) => None,
            })
    };
    let named: HashSet<&str> = requests().flat_map(HttpRun::variables).collect();
    Redactor::with_named(
        variables,
        |name| named.contains(name),
        requests()
            .flat_map(in_request)
            .chain(tools.iter().flat_map(in_command))
            .chain(endpoints.flat_map(in_endpoint))
            .chain(programs().flat_map(in_program)),
    )
}

/// The secrets of a request beyond the variables that it names: what the tools file holds, and what
/// a header is made of.
fn in_request(http: &HttpRun) -> Vec<String> {
    let mut secrets = secrets_in_url(&http.fixed_url());
    secrets.extend(http.proxy.iter().flat_map(|url| secrets_in_url(url)));
    for (name, text) in &http.headers {
        let is_named = text.variables().next().is_some();
        let Ok(value) = text.fill(variable) else {
            continue;
        };
        secrets.extend(in_header(name, &value, is_named));
    }
    secrets
}

/// The secrets of a header with this value: its credential, if the header has the name of one or is
/// filled from a variable.
fn in_header(name: &str, value: &str, is_filled: bool) -> Vec<String> {
    if !is_filled && !is_secret_header(name) {
        return Vec::new();
    }
    let (scheme, credential) = value.rsplit_once(' ').unwrap_or(("", value));
    let is_basic = scheme.eq_ignore_ascii_case("basic");
    let mut secrets = vec![credential.to_owned()];
    secrets.extend(
        is_basic
            .then(|| redact::basic(credential))
            .into_iter()
            .flatten(),
    );
    secrets
}

/// The secrets in URLs among the variables that a command is given. Other values may be settings:
/// they count by their names alone.
fn in_command(tool: &Rc<tool::Tool>) -> Vec<String> {
    let Some(RunnerKind::Command(command)) = tool.exec.as_ref().map(|exec| &exec.run) else {
        return Vec::new();
    };
    command
        .env
        .iter()
        .filter_map(|name| variable(name))
        .flat_map(|value| secrets_in_url(&value))
        .collect()
}

/// An error whose text holds no secret. One without any stays as it is, because its type may matter
/// to the caller.
pub(crate) fn without(error: anyhow::Error, redactor: &Redactor) -> anyhow::Error {
    let text = format!("{error:#}");
    match redactor.text(&text) {
        Cow::Owned(clean) => anyhow::Error::msg(clean),
        Cow::Borrowed(_) => error,
    }
}

/// The variables of the environment of a server of tools.
fn of_program(program: &Program) -> Vec<(String, String)> {
    program
        .env
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), filled(value)?.0)))
        .collect()
}

/// The secrets that a server of tools is given in its environment: values that are filled from
/// variables, the variables' own, and those in URLs.
fn in_program(program: &Program) -> Vec<String> {
    let mut secrets = vec![];
    for (_, text) in &program.env {
        let sources = RefCell::new(vec![]);
        let value =
            |name: &str| variable(name).inspect(|value| sources.borrow_mut().push(value.clone()));
        let Ok((whole, is_filled)) = fill(text, value) else {
            continue;
        };
        let mut values = sources.into_inner();
        values.push(whole);
        secrets.extend(values.iter().flat_map(|value| secrets_in_url(value)));
        if is_filled {
            secrets.append(&mut values);
        }
    }
    secrets
}

/// The secrets in what an HTTP server of tools is sent.
fn in_endpoint(endpoint: &Endpoint) -> Vec<String> {
    let mut secrets = secrets_in_url(&endpoint.url);
    for (name, value) in &endpoint.headers {
        if let Some((value, is_filled)) = filled(value) {
            secrets.extend(in_header(name, &value, is_filled));
        }
    }
    secrets
}

fn filled(value: &str) -> Option<(String, bool)> {
    fill(value, variable).ok()
}

/// The tools whose requests need a variable that is not set, and the first such variable of each.
pub(crate) fn missing(tools: &Tools) -> Vec<(String, String)> {
    let value = |name: &str| variable(name).or((name == CALL_ID).then(|| name.into()));
    let missing = |tool: &tool::Tool| match &tool.exec.as_ref()?.run {
        RunnerKind::Http(http) => http
            .query
            .iter()
            .chain(&http.headers)
            .find_map(|(_, text)| match text.fill(value) {
                Err(VariableError::Missing(name)) => Some((tool.name.clone(), name)),
                _ => None,
            }),
        RunnerKind::Command(_) | RunnerKind::Mcp(_) => None,
    };
    tools.iter().filter_map(|tool| missing(tool)).collect()
}
