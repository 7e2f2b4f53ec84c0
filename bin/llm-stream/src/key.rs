//! The key, and where it may go.

use crate::args::Args;
use anyhow::{Context, Result, anyhow, bail};
use reqwest::Url;
use std::env;
use upstream::Api;

/// The key for `api` at `url`: from `--api-key-file`, else from `--api-key-env`, else from the API's usual variable. None is
/// needed by servers at an address of one's own.
///
/// # Errors
/// One line that names the variable or the file: no key for the provider's own address, a key that is no header's value, or
/// one that would go over http to another machine.
pub fn key(args: &Args, api: Api, url: &str) -> Result<Option<String>> {
    let request = &args.request;
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
        if own || is_loopback(url) || has_own_header(args) {
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
/// One line with the remedy; also for an address that is none.
pub fn check(args: &Args, request: &upstream::Request) -> Result<()> {
    let url = Url::parse(&request.url).map_err(|e| anyhow!("--base-url: {e}, write it as https://HOST/PATH"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        bail!("--base-url: {} is no http or https address, write it as https://HOST/PATH", url.scheme());
    }
    let secret = request.headers.iter().any(|(name, _)| is_secret(name)) || url.password().is_some();
    if secret && url.scheme() == "http" && !is_loopback(&request.url) && !args.connection.allow_insecure {
        bail!(
            "the key would go over http to {}, where anybody on the way can read it: use https, or --allow-insecure",
            url.host_str().unwrap_or_default()
        );
    }
    Ok(())
}

/// Headers whose values are credentials.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"]
        .contains(&name.as_str())
}

/// Whether `url` leads to this machine.
pub fn is_loopback(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

fn has_own_header(args: &Args) -> bool {
    args.request.headers.iter().any(|(name, _)| is_secret(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine() {
        for url in [
            "http://localhost:8080/v1",
            "http://127.0.0.1",
            "http://127.1",
            "http://[::1]:1/",
            "http://a.localhost",
            "http://0x7f000001",
            "http://[::ffff:127.0.0.1]",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "http://localhost.example.com",
            "http://10.0.0.1",
            "http://127.0.0.1.example.com",
            "http://[::ffff:10.0.0.1]",
            "nonsense",
        ] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
