//! The key, what else is secret, and where it may go.

use crate::args::Args;
use crate::turn::Turn;
use anyhow::{Context, Result, anyhow, bail};
use redact::{is_secret_header, is_secret_parameter};
use reqwest::Url;
use std::env;

/// The key for a turn: from `--api-key-file`, else from `--api-key-env`, else from the API's usual variable. None is
/// needed by servers at an address of one's own.
///
/// # Errors
/// One line that names the variable or the file: no key for the provider's own address, a key that is no header's value, or
/// one that would go over http to another machine.
pub fn key(args: &Args, turn: &Turn) -> Result<Option<String>> {
    let (request, api) = (&args.request, turn.api);
    let own = request.base_url.is_some() || env::var_os("LLM_BASE_URL").is_some();
    let (key, from) = match (&request.api_key_file, &request.api_key_env) {
        (Some(file), _) => {
            let text = std::fs::read_to_string(file);
            let text = text.with_context(|| format!("{}: the key cannot be read, check the path", file.display()))?;
            (text, file.display().to_string())
        }
        (None, Some(name)) => {
            let text =
                env::var(name).map_err(|_| anyhow!("the environment has no {name}: export the key under that name"))?;
            (text, name.clone())
        }
        (None, None) => (env::var(api.key_env()).unwrap_or_default(), api.key_env().to_owned()),
    };
    let key = key.trim();
    if key.is_empty() {
        if own || turn.route.is_local || turn.headers.iter().any(|h| is_secret_header(&h.name)) {
            return Ok(None);
        }
        bail!(
            "no key for {}: export {} (or name another place with --api-key-env or --api-key-file)",
            api.name(),
            api.key_env()
        );
    }
    if !key.bytes().all(|b| b.is_ascii_graphic()) {
        bail!("the key in {from} holds spaces or control characters, put the key alone there");
    }
    Ok(Some(key.to_owned()))
}

/// Refuses to send anything secret over http to another machine.
///
/// # Errors
/// One line with the remedy; also for an invalid address.
pub fn check(args: &Args, turn: &Turn, request: &upstream::Request) -> Result<()> {
    let url = Url::parse(&request.url).map_err(|e| anyhow!("--base-url: {e}, write it as https://HOST/PATH"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        bail!("--base-url: {} is no http or https address, write it as https://HOST/PATH", url.scheme());
    }
    let secret = request.headers.iter().any(|(name, _)| turn.is_secret(name)) || !in_url(&url).is_empty();
    // The route is that of the base URL, so it holds for a request to the same host only.
    let is_local = turn.route.is_local && Url::parse(turn.url()).is_ok_and(|base| base.host() == url.host());
    if secret && url.scheme() == "http" && !is_local && !args.connection.allow_insecure {
        bail!(
            "the key would go over http to {}, where anybody on the way can read it: use https, or --allow-insecure",
            url.host_str().unwrap_or_default()
        );
    }
    Ok(())
}

/// The secrets in an address: a user's name and password, and parameters that are named like credentials.
pub fn in_url(url: &Url) -> Vec<String> {
    let mut secrets = vec![];
    if let Some(password) = url.password() {
        // The client sends both as `Authorization: Basic`.
        secrets.extend([decoded(password), password.to_owned()]);
    } else if !url.username().is_empty() {
        secrets.extend([decoded(url.username()), url.username().to_owned()]);
    }
    for (name, value) in url.query_pairs().filter(|(name, value)| is_secret_parameter(name) && !value.is_empty()) {
        let raw = url.query().into_iter().flat_map(|query| query.split('&')).filter_map(|pair| pair.split_once('='));
        secrets.extend(raw.filter(|(raw, _)| *raw == name).map(|(_, value)| value.to_owned()));
        secrets.push(value.into_owned());
    }
    secrets
}

fn decoded(text: &str) -> String {
    let pair = format!("x={}", text.replace('+', "%2B"));
    Url::parse(&format!("http://h/?{pair}"))
        .ok()
        .and_then(|url| url.query_pairs().next().map(|(_, value)| value.into_owned()))
        .unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_in_an_address() {
        let secrets = |url: &str| in_url(&Url::parse(url).unwrap());
        for (url, secret) in [
            ("http://h/v1?api_key=abc%2Fdef", "abc/def"),
            ("http://h/v1?api_key=abc%2Fdef", "abc%2Fdef"),
            ("http://h/v1?x=1&access_token=t", "t"),
            ("http://h/v1?KEY=k&sig=s", "k"),
            ("http://h/v1?api-version=1&code=c", "c"),
            ("http://me:p%40ss@h/", "p@ss"),
            ("http://sk-1@h/", "sk-1"),
        ] {
            assert!(secrets(url).iter().any(|s| s == secret), "{url}: {:?}", secrets(url));
        }
        for url in ["http://h/v1", "http://h/v1?api-version=2024-10-21&alt=sse", "http://h/?key="] {
            assert!(secrets(url).is_empty(), "{url}: {:?}", secrets(url));
        }
    }
}
