//! The options of a command that the file and the environment may give.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;

/// Options that are about one run alone.
const NEVER: [&str; 21] = [
    "agent",
    "answer-call",
    "approve-call",
    "continue",
    "cut-at",
    "deny-call",
    "dry-run",
    "dup-at",
    "error-at",
    "help",
    "list",
    "models",
    "print-pipeline",
    "probe",
    "question",
    "replay",
    "resplit",
    "show-config",
    "stall-at",
    "tape",
    "tape-mode",
];

/// Options that say where a request goes and with which key: one thing, of which no part is of use
/// without the others.
const SERVER: [&str; 6] = [
    "api",
    "base-url",
    "api-key-env",
    "api-key-file",
    "api-key-command",
    "header",
];

/// Those of them that are secret, or name something secret.
const KEY: [&str; 4] = ["api-key-env", "api-key-file", "api-key-command", "header"];

/// Options whose values have names: each value of another place with another name counts, too.
const MERGED: [&str; 2] = ["header", "param"];

/// Whether the configuration adds its values of the option with this long name to those that were
/// typed, instead of being replaced by them.
pub fn is_merged(long: &str) -> bool {
    MERGED.contains(&long)
}

/// How many values an option has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    One,
    Many,
}

/// An option.
#[derive(Clone, Debug)]
pub(crate) struct KnownOption {
    id: String,
    /// Its long name.
    pub long: String,
    takes: Takes,
    /// Whether its value is the path of a file or a folder.
    is_path: bool,
    /// The value that it has without any.
    pub usual: String,
}

impl KnownOption {
    /// The options of a command that the file may give.
    pub(crate) fn all(command: &Command) -> impl Iterator<Item = KnownOption> {
        KnownOption::every(command).filter(|option| !NEVER.contains(&&*option.long))
    }

    /// All options of a command, also those about one run alone.
    pub(crate) fn every(command: &Command) -> impl Iterator<Item = KnownOption> {
        command.get_arguments().filter_map(KnownOption::of)
    }

    fn of(arg: &Arg) -> Option<KnownOption> {
        let long = arg.get_long()?;
        if arg.is_exclusive_set() {
            return None;
        }
        let takes = match arg.get_action() {
            ArgAction::SetTrue => Takes::Nothing,
            ArgAction::Set => Takes::One,
            ArgAction::Append => Takes::Many,
            _ => return None,
        };
        let names = arg.get_value_names().unwrap_or_default();
        let usual: Vec<_> = arg
            .get_default_values()
            .iter()
            .map(|value| value.to_string_lossy())
            .collect();
        Some(KnownOption {
            id: arg.get_id().to_string(),
            long: long.to_owned(),
            takes,
            is_path: names.iter().any(|name| {
                ["FILE", "DIR", "PATH"]
                    .iter()
                    .any(|kind| name.split('|').any(|name| name == *kind))
            }),
            usual: usual.join(" "),
        })
    }

    /// Its key in the file.
    pub(crate) fn key(&self) -> String {
        self.long.replace('-', "_")
    }

    /// Its keys in the file: a list may have the name of many.
    pub(crate) fn keys(&self) -> impl Iterator<Item = String> {
        let key = self.key();
        let many = (self.takes == Takes::Many && !key.ends_with('s')).then(|| format!("{key}s"));
        std::iter::once(key).chain(many)
    }

    pub(crate) fn is_server(&self) -> bool {
        SERVER.contains(&self.long.as_str())
    }

    pub(crate) fn is_key(&self) -> bool {
        KEY.contains(&self.long.as_str())
    }

    pub(crate) fn is_merged(&self) -> bool {
        is_merged(&self.long)
    }

    /// The values that were typed; `None` if the option was not.
    pub(crate) fn typed(&self, matches: &ArgMatches) -> Option<Values> {
        if matches.value_source(&self.id) != Some(ValueSource::CommandLine) {
            return None;
        }
        match self.takes {
            Takes::Nothing => Some(vec![None]),
            _ => Some(
                matches
                    .get_raw(&self.id)?
                    .map(|value| Some(value.to_owned()))
                    .collect(),
            ),
        }
    }

    /// The values in a variable of the environment: for an option with many, one a line.
    pub(crate) fn in_variable(&self, text: OsString) -> Option<Values> {
        match (self.takes, text.to_str()) {
            (Takes::Nothing, Some("0" | "false" | "no")) => Some(vec![]),
            (Takes::Nothing, _) => Some(vec![None]),
            (Takes::Many, Some(text)) => Some(text.lines().map(|line| Some(line.into())).collect()),
            _ => Some(vec![Some(text)]),
        }
    }

    /// The values in the file, whose folder is `folder`.
    ///
    /// # Errors
    /// What the value must be, or that it holds a key.
    pub(crate) fn in_file(&self, value: &Value, folder: &Path) -> Result<Values, String> {
        let values = self.read_in_file(value, folder)?;
        let mut texts = values.iter().flatten().filter_map(|value| value.to_str());
        texts.try_for_each(|text| self.check_for_key(text))?;
        Ok(values)
    }

    fn read_in_file(&self, value: &Value, folder: &Path) -> Result<Values, String> {
        let key = self.key();
        match (self.takes, value) {
            (Takes::Nothing, Value::Bool(is_set)) => {
                Ok(is_set.then_some(None).into_iter().collect())
            }
            (Takes::Nothing, _) => Err(format!("{key}: not true or false")),
            (Takes::Many, Value::Array(list)) => list
                .iter()
                .map(|value| self.word(value, folder).map(Some))
                .collect(),
            (Takes::Many, Value::Object(members)) if self.long == "param" => Ok(members
                .iter()
                .map(|(name, value)| Some(format!("{name}={value}").into()))
                .collect()),
            (Takes::One, Value::Object(prices)) if self.long == "price" => {
                let known = ["input", "output", "cached"];
                if let Some(other) = prices.keys().find(|key| !known.contains(&key.as_str())) {
                    return Err(format!(
                        "price: {other} is unknown, it may have input, output and cached"
                    ));
                }
                let prices: Vec<String> = known
                    .iter()
                    .filter_map(|key| Some(prices.get(*key)?.to_string()))
                    .collect();
                Ok(vec![Some(prices.join("/").into())])
            }
            _ => Ok(vec![Some(self.word(value, folder)?)]),
        }
    }

    fn word(&self, value: &Value, folder: &Path) -> Result<OsString, String> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => {
                return Err(format!(
                    "{}: not one value, such as a text or a number",
                    self.key()
                ));
            }
        };
        if !self.is_path || text.contains("://") || matches!(text.as_str(), "" | "-" | "none") {
            return Ok(text.into());
        }
        let home = text.strip_prefix("~/").zip(std::env::var_os("HOME"));
        Ok(match home {
            Some((rest, home)) => Path::new(&home).join(rest).into(),
            None => folder.join(text).into(),
        })
    }

    /// Refuses a value of the file that holds a key: other programs read configurations, and people
    /// share them.
    fn check_for_key(&self, text: &str) -> Result<(), String> {
        let redactor = redact::Redactor::default();
        let key = self.key();
        let has_key = match self.long.as_str() {
            "header" => {
                let named = text.split_once(':').filter(|(name, value)| {
                    redact::is_secret_header(name.trim()) && !value.contains('$')
                });
                if let Some((name, _)) = named {
                    return Err(format!(
                        "header {name}: name the variable that holds the key instead: \"{name}: \
                         $NAME\""
                    ));
                }
                redact::credential(text.as_bytes()).is_some()
            }
            "base-url" => redactor.url(text) != text,
            "param" => text.split_once('=').is_some_and(|(name, value)| {
                let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
                let member = Value::Object([(name.to_owned(), value)].into_iter().collect());
                redactor.json(&member) != member
            }),
            _ => redact::credential(text.as_bytes()).is_some(),
        };
        if has_key {
            return Err(format!(
                "{key}: it holds a key; write headers = [\"NAME: $VARIABLE\"] with the variable \
                 that holds it"
            ));
        }
        Ok(())
    }
}

/// The values of an option; one without any has `None`.
pub(crate) type Values = Vec<Option<OsString>>;
