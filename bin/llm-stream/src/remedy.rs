//! Suggestions for options that other programs have.

/// The other options, each with its suggestion.
const OTHERS: [(&str, &str); 5] = [
    (
        "api-key key token",
        "others could see the key: export it (see --api-key-env) or put it into a file (see \
         --api-key-file)",
    ),
    ("url host endpoint api-base server", "write --base-url URL"),
    (
        "prompt question message input",
        "write the prompt by itself: llm-stream 'PROMPT'",
    ),
    ("stream", "answers are streamed unless --no-stream is given"),
    (
        "frequency-penalty presence-penalty logprobs reasoning-effort response-format min-p \
         logit-bias",
        "write --param KEY=JSON with the name that the API has for it",
    ),
];

/// Returns the suggestion for the unknown argument `unknown`; `None` if no suggestion fits.
pub(crate) fn remedy(unknown: &str) -> Option<String> {
    let typed: Vec<String> = stdio::arguments()
        .iter()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    instead(unknown, &typed)
}

fn instead(unknown: &str, typed: &[String]) -> Option<String> {
    if !unknown.starts_with('-') {
        return Some("put quotes around the whole prompt: llm-stream 'PROMPT'".to_owned());
    }
    let Some(name) = unknown.strip_prefix("--") else {
        // A quoted prompt that starts with a dash.
        let prompt = typed
            .iter()
            .any(|word| word.starts_with(unknown) && word.contains(char::is_whitespace));
        return prompt.then(|| "write -- before a prompt that begins with a dash".to_owned());
    };
    let name = name.to_lowercase().replace('_', "-");
    let (_, remedy) = OTHERS.iter().find(|(options, _)| has(options, &name))?;
    Some((*remedy).to_owned())
}

/// Whether `word` is one of the space-separated `words`.
fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|other| other == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(line: &[&str]) -> String {
        let typed: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        let unknown = line[0].split('=').next().unwrap_or_default();
        instead(unknown, &typed).unwrap_or_default()
    }

    #[test]
    fn other_mistakes_have_their_remedies() {
        assert!(
            after(&["--api-key", "sk-1234567"]).contains("--api-key-file")
                && !after(&["--key=sk-1"]).contains("sk-1")
        );
        assert!(after(&["--url", "http://x"]).contains("--base-url"));
        assert!(after(&["is", "the", "sky"]).contains("quotes"));
        assert_eq!(
            instead("-5", &["-5 degrees: is that cold?".into()]).unwrap(),
            "write -- before a prompt that begins with a dash"
        );
        assert_eq!(
            (after(&["-x"]), after(&["--nonsense"])),
            (String::new(), String::new())
        );
    }
}
