//! What to write instead of options that other programs have.

use api::Api;
use std::env;

/// A parameter of the request.
struct Parameter {
    /// What people type for it.
    options: &'static str,
    /// Its path in the body of each API in the order of [`Api::ALL`]; `-` where an API has none.
    paths: &'static str,
    /// A value to show where none was typed.
    example: &'static str,
    /// Whether it is a text that ends the answer, and not a number. Members named like a sequence
    /// take an array of texts.
    is_stop: bool,
}

const fn number(options: &'static str, paths: &'static str, example: &'static str) -> Parameter {
    Parameter {
        options,
        paths,
        example,
        is_stop: false,
    }
}

/// From the references of the APIs (2026-11): <https://platform.openai.com/docs/api-reference>,
/// <https://docs.anthropic.com/en/api/messages>, <https://ai.google.dev/api/generate-content>,
/// <https://github.com/ollama/ollama/blob/main/docs/api.md>, <https://docs.mistral.ai/api>,
/// <https://docs.cohere.com/reference/chat>.
const PARAMETERS: [Parameter; 6] = [
    number(
        "temperature temp",
        "temperature temperature temperature generationConfig.temperature options.temperature temperature temperature",
        "0",
    ),
    number(
        "max-tokens max-output-tokens max-completion-tokens num-predict n-predict",
        "max_tokens max_output_tokens max_tokens generationConfig.maxOutputTokens options.num_predict max_tokens max_tokens",
        "1000",
    ),
    number(
        "top-p",
        "top_p top_p top_p generationConfig.topP options.top_p top_p p",
        "0.9",
    ),
    number(
        "top-k",
        "top_k - top_k generationConfig.topK options.top_k - k",
        "40",
    ),
    number(
        "seed",
        "seed - - generationConfig.seed options.seed random_seed seed",
        "1",
    ),
    Parameter {
        options: "stop stop-sequence stop-sequences",
        paths: "stop - stop_sequences generationConfig.stopSequences options.stop stop stop_sequences",
        example: "END",
        is_stop: true,
    },
];

/// Other options, and the remedy.
const OTHERS: [(&str, &str); 5] = [
    (
        "api-key key token",
        "others could see the key: export it (see --api-key-env) or put it into a file (see --api-key-file)",
    ),
    ("url host endpoint api-base server", "write --base-url URL"),
    (
        "prompt question message input",
        "write the prompt by itself: llm-stream 'PROMPT'",
    ),
    ("stream", "answers are streamed unless --no-stream is given"),
    (
        "frequency-penalty presence-penalty logprobs reasoning-effort response-format min-p logit-bias",
        "write --param KEY=JSON with the name that the API has for it",
    ),
];

/// What to write instead of the argument `unknown` of the command line.
pub(crate) fn remedy(unknown: &str) -> Option<String> {
    let typed: Vec<String> = env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    instead(unknown, &typed, env::var("LLM_API").ok().as_deref())
}

fn instead(unknown: &str, typed: &[String], usual_api: Option<&str>) -> Option<String> {
    if !unknown.starts_with('-') {
        return Some("put quotes around the whole prompt: llm-stream 'PROMPT'".to_owned());
    }
    let Some(name) = unknown.strip_prefix("--") else {
        // A prompt in quotes that begins with a dash.
        let prompt = typed
            .iter()
            .any(|word| word.starts_with(unknown) && word.contains(char::is_whitespace));
        return prompt.then(|| "write -- before a prompt that begins with a dash".to_owned());
    };
    let name = name.to_lowercase().replace('_', "-");
    if let Some((_, remedy)) = OTHERS.iter().find(|(options, _)| has(options, &name)) {
        return Some((*remedy).to_owned());
    }
    let parameter = PARAMETERS
        .iter()
        .find(|parameter| has(parameter.options, &name))?;
    let api = api(typed)
        .or_else(|| Api::from_name(usual_api?))
        .unwrap_or(Api::OpenaiChat);
    let path = parameter
        .paths()
        .find(|(known, _)| *known == api)
        .map_or("-", |(_, path)| path);
    if path == "-" {
        return Some(format!("and {} has no such parameter", api.name()));
    }
    let value = parameter.json(value(unknown, typed).as_deref(), path);
    let word = match path.split_once('.') {
        Some((outer, inner)) => format!("{outer}={{{}:{value}}}", event::quoted(inner)),
        None => format!("{path}={value}"),
    };
    Some(format!("write --param {}", in_shell(&word)))
}

/// Whether `word` is one of `words`, which are separated by spaces.
fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|other| other == word)
}

impl Parameter {
    /// Its path in the body of each API.
    fn paths(&self) -> impl Iterator<Item = (Api, &'static str)> {
        Api::ALL.into_iter().zip(self.paths.split(' '))
    }

    /// The value that was typed, as JSON.
    fn json(&self, typed: Option<&str>, path: &str) -> String {
        let typed = typed.unwrap_or(self.example);
        let json = event::Raw::parse(typed).ok();
        if !self.is_stop {
            // A number may be left out; then the prompt follows.
            return if json.is_some() { typed } else { self.example }.to_owned();
        }
        if json.is_some_and(|json| json.is_array()) {
            return typed.to_owned();
        }
        let text = if json.is_some_and(|json| json.is_str()) {
            typed.to_owned()
        } else {
            event::quoted(typed)
        };
        if path.to_lowercase().contains("seq") {
            format!("[{text}]")
        } else {
            text
        }
    }
}

/// The value of an option, in the same word or the next.
fn value(option: &str, typed: &[String]) -> Option<String> {
    let at = typed
        .iter()
        .position(|word| word == option || word.starts_with(&format!("{option}=")))?;
    match typed[at].split_once('=') {
        Some((_, value)) => Some(value.to_owned()),
        None => typed
            .get(at + 1)
            .filter(|next| !next.starts_with("--"))
            .cloned(),
    }
}

fn api(typed: &[String]) -> Option<Api> {
    let name = value("--api", typed).or_else(|| value("-a", typed));
    let glued = || {
        typed.iter().find_map(|word| {
            word.strip_prefix("-a")
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
        })
    };
    Api::from_name(&name.or_else(glued)?)
}

/// A word as it is typed in a shell.
fn in_shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "=._-,:/+@".contains(c);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(line: &[&str]) -> String {
        let typed: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        let unknown = line[0].split('=').next().unwrap_or_default();
        instead(unknown, &typed, None).unwrap_or_default()
    }

    #[test]
    fn parameters_are_written_as_the_api_has_them() {
        for (line, remedy) in [
            (
                &["--temperature", "0", "Hi"][..],
                "write --param temperature=0",
            ),
            (&["--temperature=0.50"], "write --param temperature=0.50"),
            (&["--temperature"], "write --param temperature=0"),
            (&["--temperature", "Hi"], "write --param temperature=0"),
            (&["--max-tokens", "100"], "write --param max_tokens=100"),
            (
                &["--max_tokens", "100", "--api", "openai-responses"],
                "write --param max_output_tokens=100",
            ),
            (
                &["--max-tokens", "9", "-a", "gemini"],
                "write --param 'generationConfig={\"maxOutputTokens\":9}'",
            ),
            (
                &["--max-tokens", "9", "-aollama"],
                "write --param 'options={\"num_predict\":9}'",
            ),
            (&["--top-p", "0.1", "--api=cohere"], "write --param p=0.1"),
            (&["--top-k", "--seed"], "write --param top_k=40"),
            (
                &["--seed", "7", "--api", "mistral"],
                "write --param random_seed=7",
            ),
            (
                &["--seed", "7", "--api", "anthropic"],
                "and anthropic has no such parameter",
            ),
            (&["--stop", "END"], "write --param 'stop=\"END\"'"),
            (&["--stop", "5"], "write --param 'stop=\"5\"'"),
            (&["--stop", "it's"], "write --param 'stop=\"it'\\''s\"'"),
            (
                &["--stop", "[\"a\",\"b\"]"],
                "write --param 'stop=[\"a\",\"b\"]'",
            ),
            (
                &["--stop", "END", "--api", "anthropic"],
                "write --param 'stop_sequences=[\"END\"]'",
            ),
            (
                &["--stop", "\"END\"", "--api", "gemini"],
                "write --param 'generationConfig={\"stopSequences\":[\"END\"]}'",
            ),
        ] {
            assert_eq!(after(line), remedy, "{line:?}");
        }
        assert!(after(&["--seed", "1", "-a", "nonsense"]).contains("seed=1"));
        assert_eq!(
            instead("--top-p", &["--top-p=1".into()], Some("cohere")).unwrap(),
            "write --param p=1"
        );
    }

    #[test]
    fn every_parameter_that_is_proposed_is_one_that_can_be_typed() {
        for parameter in &PARAMETERS {
            assert_eq!(
                parameter.paths.split(' ').count(),
                Api::ALL.len(),
                "{}",
                parameter.paths
            );
            for (api, path) in parameter.paths().filter(|(_, path)| *path != "-") {
                let json = parameter.json(None, path);
                assert!(event::Raw::parse(&json).is_ok(), "{api:?} {json}");
            }
        }
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
            instead("-5", &["-5 degrees: is that cold?".into()], None).unwrap(),
            "write -- before a prompt that begins with a dash"
        );
        assert_eq!(
            (after(&["-x"]), after(&["--nonsense"])),
            (String::new(), String::new())
        );
    }
}
