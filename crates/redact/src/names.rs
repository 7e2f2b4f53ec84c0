//! Names of fields that hold credentials: of headers, of a URL's parameters, of members of a body,
//! of variables.

/// Names of members and of response headers (without `-`, `_`, `.` and case) whose values are
/// credentials.
const SECRET_NAMES: &str = "accesstoken apikey authorization authorizationtoken clientsecret \
                            cookie key password proxyauthorization \
                            refreshtoken secret setcookie sig signature token xamzsignature \
                            xapikey xgoogapikey xgoogsignature";

/// Those of them that a conversation uses for other things. (`signature` is what Anthropic calls
/// the proof of a reasoning block, which must go back unchanged:
/// <https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking>.)
const PLAIN_IN_BODIES: &str = "key sig signature token";

/// Ends of the names of credentials in a request's headers, in a URL and in the environment.
const ENDINGS: &str = "auth authorization cookie credential credentials jwt key passwd password \
    pwd secret sig signature token";

/// Keys that open nothing.
const OTHER_KEYS: &str = "cachekey idempotencykey partitionkey routingkey";

/// Whether a member of a JSON body with this name is a credential.
pub(crate) fn is_secret_member(name: &str) -> bool {
    let name = plain(name);
    has(SECRET_NAMES, &name) && !has(PLAIN_IN_BODIES, &name)
}

/// Whether a header of an answer with this name is a credential.
pub fn is_secret_answer(name: &str) -> bool {
    has(SECRET_NAMES, &plain(name))
}

/// Whether a header of a request with this name, in any case, is a credential.
pub fn is_secret_header(name: &str) -> bool {
    let name = plain(name);
    ENDINGS.split(' ').any(|end| name.ends_with(end))
        && !OTHER_KEYS.split(' ').any(|end| name.ends_with(end))
}

/// Whether a parameter of a URL with this name is a credential. `code` is the key of a function on
/// Azure (<https://learn.microsoft.com/en-us/azure/azure-functions/function-keys-how-to>).
pub fn is_secret_parameter(name: &str) -> bool {
    is_secret_header(name) || plain(name) == "code"
}

/// Whether a variable of the environment with this name holds a credential. `PWD` and `OLDPWD` are
/// folders.
pub(crate) fn is_secret_variable(name: &str) -> bool {
    is_secret_header(name) && !matches!(name, "PWD" | "OLDPWD")
}

fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|other| other == name)
}

/// A name without `-`, `_`, `.`, their escapes in a URL, and case.
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
