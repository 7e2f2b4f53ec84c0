//! The command that continues a run, as a person types it.

use crate::call_reference::CallReference;
use std::borrow::Cow;
use std::fmt::Write;

/// The command that continues a run after a person's answer. The options that give the answer go
/// between its two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// The program and its options.
    pub command: String,
    /// Redirections; empty, or with a space before them.
    pub redirections: String,
}

impl Default for Continuation {
    fn default() -> Self {
        Continuation {
            command: "tool-exec --resume LOG".to_owned(),
            redirections: " </dev/null >>LOG".to_owned(),
        }
    }
}

impl Continuation {
    /// The whole command, with an `option` (`--approve-call` or `--deny-call`) for each of the
    /// calls.
    pub fn with<'a>(
        &self,
        option: &str,
        calls: impl IntoIterator<Item = &'a CallReference>,
    ) -> String {
        let mut out = self.command.clone();
        for call in calls {
            // Writing to a string cannot fail.
            let _ = write!(out, " {option} {}", shell_word(&call.to_string()));
        }
        out + &self.redirections
    }

    /// The whole command that gives the result of a call, with `RESULT` in the place of the result.
    pub fn with_result(&self, call: &CallReference) -> String {
        let answer = format!("{call}=RESULT");
        format!(
            "{} --answer-call {}{}",
            self.command,
            shell_word(&answer),
            self.redirections
        )
    }
}

/// `word` as a shell reads it: in single quotes where it holds anything but letters, digits and a
/// few marks without a meaning.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_./:=,@%+-".contains(&b);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_hash::CallHash;

    #[test]
    fn the_command_is_ready_to_type() {
        let hash = CallHash::read("0123456789abcdef0123456789abcdef").unwrap();
        let call = |id: &str| CallReference {
            id: id.into(),
            hash,
        };
        assert_eq!(
            Continuation::default().with("--deny-call", &[call("a"), call("it's $(x)\n")]),
            "tool-exec --resume LOG --deny-call a:0123456789abcdef0123456789abcdef \
             --deny-call '\"it'\\''s $(x)\\n\":0123456789abcdef0123456789abcdef' </dev/null >>LOG"
        );
        assert_eq!(
            (shell_word(""), shell_word("a b")),
            ("''".into(), "'a b'".into())
        );
    }
}
