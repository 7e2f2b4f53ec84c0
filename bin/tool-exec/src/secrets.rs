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

/// Returns the redactor for everything that leaves this process: events, results, files and
/// messages. It redacts:
///
/// - variables that have the name of a credential, or that a tool sends in a header or a query;
/// - variables that the `env` or a header of a server is filled from;
/// - passwords in URLs in the variables that commands and servers get;
/// - credentials in the tools file itself.
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

/// Returns the secrets of a request other than the variables it names: those in the tools file, and
/// the filled values of its headers.
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

/// Returns the secrets of a header with this value: its credential, if the header has the name of a
/// credential or is filled from a variable.
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

/// Returns the secrets in URLs among the variables that a command gets. Other values may be
/// settings; they count as secrets only by their names.
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

/// Returns the error with all secrets redacted. An error without secrets is returned unchanged,
/// because its type may matter to the caller.
pub(crate) fn without(error: anyhow::Error, redactor: &Redactor) -> anyhow::Error {
    let text = format!("{error:#}");
    match redactor.text(&text) {
        Cow::Owned(clean) => anyhow::Error::msg(clean),
        Cow::Borrowed(_) => error,
    }
}

/// Returns the environment variables that an MCP server program gets.
fn of_program(program: &Program) -> Vec<(String, String)> {
    program
        .env
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), filled(value)?.0)))
        .collect()
}

/// Returns the secrets in the environment of an MCP server program: values filled from variables,
/// the values of those variables, and secrets in URLs.
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

/// Returns the secrets sent to an MCP server over HTTP.
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

/// Returns the tools whose requests need an unset variable, each with its first such variable.
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
