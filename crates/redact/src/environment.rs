//! Finds the secrets among environment variables.

use crate::names::is_secret_variable;

/// Minimum length of a secret in bytes; a shorter value is more likely a word or a number than a
/// key.
const LEAST: usize = 8;

/// The schemes of URLs that may be addresses of other services.
const SCHEMES: &str = "amqp amqps file ftp git http https mongodb mysql postgres postgresql \
                       redis rediss sftp socks5 socks5h ssh tcp unix ws wss";

/// Returns the values of the variables whose name is that of a credential, or whose name `named`
/// accepts, except [ordinary](not_ordinary) values. If a value is a URL, its password is a secret
/// too.
pub(crate) fn secrets(
    variables: impl IntoIterator<Item = (String, String)>,
    named: impl Fn(&str) -> bool,
) -> impl Iterator<Item = String> {
    let secret = move |(name, value): (String, String)| {
        (is_secret_variable(&name) || named(&name)).then_some(value)
    };
    let with_password = |value: String| {
        password(&value)
            .map(str::to_owned)
            .into_iter()
            .chain([value])
    };
    variables
        .into_iter()
        .filter_map(secret)
        .flat_map(with_password)
        .filter_map(not_ordinary)
}

/// Returns the value without surrounding white space, or `None` if it would match ordinary text:
/// words (`enabled`), numbers, paths (`/run/secrets/key`) and URLs of other services
/// (`https://example.com/v1`).
pub(crate) fn not_ordinary(value: String) -> Option<String> {
    let value = value.trim();
    (!is_ordinary(value)).then(|| value.to_owned())
}

/// Whether a value would match ordinary text.
pub(crate) fn is_ordinary(value: &str) -> bool {
    let is_word = value.len() < 20 && value.bytes().all(|b| b.is_ascii_alphabetic());
    let is_number = value.bytes().all(|b| b.is_ascii_digit());
    value.len() < LEAST || is_word || is_number || value.split(':').all(is_path) || is_url(value)
}

/// Whether the value is a file path rather than a key that begins like a path. A path begins with
/// `/`, or begins with `.` or `~` and contains a `/`, and all its parts are [parts of a
/// path](is_part). A path of one part, such as `/app`, has at most 12 bytes.
fn is_path(value: &str) -> bool {
    let Some((start, rest)) = value.split_once('/') else {
        return false;
    };
    let has_start = start.is_empty() || start.starts_with('.') || start == "~";
    let is_sole = start.is_empty() && !rest.contains('/');
    has_start
        && (!is_sole || value.len() <= 12)
        && value.split('/').all(|part| part == "~" || is_part(part))
}

/// Whether the value is a URL with a usual scheme, without a user, password and query, and with a
/// path of [ordinary parts](is_part).
fn is_url(value: &str) -> bool {
    let Some((scheme, rest)) = value.split_once("://") else {
        return false;
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_host = host
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b':' | b'[' | b']'));
    SCHEMES.split(' ').any(|other| other == scheme) && is_host && path.split('/').all(is_part)
}

/// Whether this part of a path consists of words that a person or a program would use in a file
/// name, separated by `-`, `_` or `.`. A word is up to 20 letters in lower case, in upper case or
/// capitalised, followed by up to 5 digits (`ed25519`), or up to 8 digits. Random text mixes cases
/// and digits.
fn is_part(part: &str) -> bool {
    part.split(['-', '_', '.']).all(|word| {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = word.len() - letters.len();
        let tail = letters.get(1..).unwrap_or_default();
        let has_one_case = letters.bytes().all(|b| b.is_ascii_uppercase())
            || tail.bytes().all(|b| b.is_ascii_lowercase());
        let has_letters = letters.len() <= 20 && letters.bytes().all(|b| b.is_ascii_alphabetic());
        has_letters && has_one_case && digits <= if letters.is_empty() { 8 } else { 5 }
    })
}

/// Returns the password in a URL, or the user if there is no password, because the user is then the
/// key.
fn password(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let (user, _) = rest.split(['/', '?', '#']).next()?.rsplit_once('@')?;
    Some(user.split_once(':').map_or(user, |(_, password)| password))
}

#[cfg(test)]
mod tests {
    use crate::Redactor;

    #[test]
    fn keys_of_the_environment_are_taken_out_and_other_values_stay() {
        let variables = [
            ("MY_API_KEY", "k3y-of-mine"),
            ("DB_PASSWORD", "correct horse"),
            ("PWD", "/work/here"),
            ("OLDPWD", "workshop-7"),
            ("PROXY_AUTH", "required"),
            ("SIGNING_KEY", "/run/secrets/key-1"),
            ("ACCOUNT_KEY", "20240101"),
            ("EDITOR", "vim-9.1.0"),
            ("SHORT_KEY", "abc123"),
        ];
        let redactor = Redactor::of_environment(
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let text = variables.map(|(_, value)| value).join(", ");
        let clean = text
            .replace("k3y-of-mine", "[redacted]")
            .replace("correct horse", "[redacted]");
        assert_eq!(redactor.text(&text), clean);
        assert_eq!(
            redactor.text("{\"k\":\"k3y\\u002dof-mine\"}"),
            "{\"k\":\"[redacted]\"}"
        );
    }
    #[test]
    fn what_is_named_a_secret_is_one_unless_it_is_an_ordinary_value() {
        let variables = [
            ("TENANT", "acme-7Q-22"),
            ("MODE", "enabled"),
            ("FLAG", "1"),
            ("EDITOR", "vim-9.1.0"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let others = [
            "tr-9x-11zz".to_owned(),
            "true".to_owned(),
            "anonymous".to_owned(),
        ];
        let redactor = Redactor::with_named(variables, |name| name != "EDITOR", others);
        assert_eq!(
            redactor.text("acme-7Q-22 enabled 1 vim-9.1.0 tr-9x-11zz true anonymous"),
            "[redacted] enabled 1 vim-9.1.0 [redacted] true anonymous"
        );
    }

    #[test]
    fn a_key_that_begins_like_a_path_or_holds_a_scheme_is_taken_out() {
        for key in [
            "/Xq3c8LkPz0Wm4+T9/aVb2Rr7NnQe1=",
            "/Xq3c8LkPz0Wm4vT9aVb2Rr7NnQe1sYd",
            "/abcdefghijklmnop",
            "/Xq/3cLk/PzW/vTa",
            ".s3cr3t-Pa55word!",
            ".s3cr3t-pass",
            "~x93kd02kdkd0",
            "ab9://kd93kdkd939dk",
            "https://me:0p3n@example.com/",
            "https://example.com/?x=0p3n-sesame",
            "https://hooks.example.com/T0/Xq3c8LkPz0Wm4vT9",
        ] {
            let redactor = Redactor::of_environment([("MY_KEY".to_owned(), key.to_owned())]);
            assert_eq!(redactor.text(&format!("say {key}!")), "say [redacted]!");
        }
        for ordinary in [
            "/run/secrets/key-1",
            "/home/me/.ssh/id_ed25519",
            "~/.ssh/id_rsa",
            "./keys/Key_2.pem",
            "../keys/server.pem",
            ".ssh/id_rsa.pub",
            "/app/keys",
            "/secrets",
            "/usr/local/bin:/usr/bin:/bin",
            "https://example.com:8443/v1/keys",
            "http://[::1]:8080",
            "unix:///run/user/1000/bus",
            "file:///etc/keys/server.pem",
        ] {
            let redactor = Redactor::of_environment([("MY_KEY".to_owned(), ordinary.to_owned())]);
            assert_eq!(redactor.text(ordinary), ordinary);
        }
    }

    #[test]
    fn the_password_of_a_url_is_a_secret_of_its_own() {
        for url in [
            "postgres://me:0p3n-sesame@h/db",
            "https://0p3n-sesame@h",
            "https://a@b:0p3n-sesame@h?x",
        ] {
            let redactor = Redactor::of_environment([("DB_AUTH".to_owned(), url.to_owned())]);
            assert_eq!(
                redactor.text(&format!("{url} 0p3n-sesame h")),
                "[redacted] [redacted] h"
            );
        }
    }
}
