//! The names of fields that hold credentials: headers, URL parameters, members of a body,
//! environment variables.

/// Names of members and of response headers whose values are credentials, in lower case and without
/// `-`, `_` and `.`.
const SECRET_NAMES: &str = "accesstoken apikey authorization authorizationtoken clientsecret \
                            cookie key password proxyauthorization refreshtoken secret \
                            setcookie sig signature token xamzsignature xapikey \
                            xgoogapikey xgoogsignature";

/// Names in `SECRET_NAMES` that a conversation also uses for other values. (Anthropic calls the
/// proof of a reasoning block `signature`, and the proof must be sent back unchanged:
/// <https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking>.)
const PLAIN_IN_BODIES: &str = "key sig signature token";

/// Endings of the names of credentials in request headers, in URLs and in the environment.
const ENDINGS: &str = "auth authorization cookie credential credentials jwt key passwd password \
    pwd secret sig signature token";

/// Names that end in `key` but are not credentials.
const OTHER_KEYS: &str = "cachekey idempotencykey partitionkey routingkey";

/// Whether a JSON body's member with this name holds a credential.
pub(crate) fn is_secret_member(name: &str) -> bool {
    let name = plain(name);
    has(SECRET_NAMES, &name) && !has(PLAIN_IN_BODIES, &name)
}

/// Whether a response header with this name holds a credential.
pub fn is_secret_answer(name: &str) -> bool {
    has(SECRET_NAMES, &plain(name))
}

/// Whether a request header with this name, in any case, holds a credential.
pub fn is_secret_header(name: &str) -> bool {
    let name = plain(name);
    ENDINGS.split(' ').any(|end| name.ends_with(end))
        && !OTHER_KEYS.split(' ').any(|end| name.ends_with(end))
}

/// Whether a URL parameter with this name holds a credential. `code` is the key of a function on
/// Azure (<https://learn.microsoft.com/en-us/azure/azure-functions/function-keys-how-to>).
pub fn is_secret_parameter(name: &str) -> bool {
    is_secret_header(name) || plain(name) == "code"
}

/// Whether an environment variable with this name holds a credential. `PWD` and `OLDPWD` hold
/// folders.
pub(crate) fn is_secret_variable(name: &str) -> bool {
    is_secret_header(name) && !matches!(name, "PWD" | "OLDPWD")
}

fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|other| other == name)
}

/// Returns a name in lower case and without `-`, `_`, `.` and their URL escapes.
fn plain(name: &str) -> String {
    let name = name
        .replace("%5F", "_")
        .replace("%5f", "_")
        .replace("%2D", "-")
        .replace("%2d", "-");
    name.chars()
        .filter(|c| !matches!(c, '-' | '_' | '.'))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_credentials_and_others() {
        for name in [
            "Authorization",
            "X-Api-Key",
            "api-key",
            "Ocp-Apim-Subscription-Key",
            "X-Auth-Token",
            "Helicone-Auth",
            "Cookie",
        ] {
            assert!(is_secret_header(name), "{name}");
        }
        for name in [
            "api_key",
            "apikey",
            "api%5Fkey",
            "key",
            "token",
            "access_token",
            "sig",
            "X-Amz-Signature",
            "code",
            "subscription-key",
        ] {
            assert!(is_secret_parameter(name), "{name}");
        }
        for name in [
            "Idempotency-Key",
            "X-Title",
            "HTTP-Referer",
            "anthropic-version",
            "x-max-tokens",
            "alt",
            "api-version",
            "model",
        ] {
            assert!(
                !is_secret_header(name) && !is_secret_parameter(name),
                "{name}"
            );
        }
        assert!(
            is_secret_member("apiKey")
                && !is_secret_member("token")
                && !is_secret_member("max_tokens")
        );
    }
}
