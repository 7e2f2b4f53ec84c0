//! The secrets among the variables of an environment.

use crate::names::is_secret_variable;

/// A shorter value is more likely a word or a number than a key.
const LEAST: usize = 8;

/// The values of the variables that have the name of a credential, apart from values that would be found in ordinary text: words
/// (`enabled`), numbers, paths (`/run/secrets/key`) and names of other places (`http://…`).
pub(crate) fn secrets(variables: impl IntoIterator<Item = (String, String)>) -> impl Iterator<Item = String> {
    let secret = |(name, value): (String, String)| {
        let value = value.trim();
        (is_secret_variable(&name) && !is_ordinary(value)).then(|| value.to_owned())
    };
    variables.into_iter().filter_map(secret)
}

fn is_ordinary(value: &str) -> bool {
    let is_word = value.len() < 20 && value.bytes().all(|b| b.is_ascii_alphabetic());
    let is_number = value.bytes().all(|b| b.is_ascii_digit());
    value.len() < LEAST || is_word || is_number || value.starts_with(['/', '.', '~']) || value.contains("://")
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
        let redactor = Redactor::of_environment(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let text = variables.map(|(_, value)| value).join(", ");
        let clean = text.replace("k3y-of-mine", "[redacted]").replace("correct horse", "[redacted]");
        assert_eq!(redactor.text(&text), clean);
        assert_eq!(redactor.text("{\"k\":\"k3y\\u002dof-mine\"}"), "{\"k\":\"[redacted]\"}");
    }
}
