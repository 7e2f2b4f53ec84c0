//! The reference by which a person's answer names a call: `ID:HASH`.

use super::argument::Arguments;
use super::call::RequestedCall;
use super::canonical::{Hash, digest, hex};
use super::visible::{is_unclear, visible_json};
use event::payload::{Approval, Verdict};
use event::shell_word;
use std::fmt;
use std::fmt::Write;

/// The id and the hash of a call that waits for a person, written as `ID:HASH`. The id is written
/// as a JSON string (`"a\nb":HASH`) if it is empty, begins with `"`, or contains white space or a
/// character that a terminal does not show.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallReference {
    /// The id of the call.
    pub id: Box<str>,
    /// The hash of the call.
    pub hash: CallHash,
}

/// Why a text is not a valid reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The text has no hash.
    #[error(
        "write ID:HASH, as --list-pending prints it: an id alone does not identify the call that you saw"
    )]
    NoHash,
    /// The id begins with `"` but is not a JSON string.
    #[error("the id begins with \" and is not a JSON string, copy it as --list-pending prints it")]
    Quoting,
}

impl CallReference {
    /// Parses the text that [`fmt::Display`] writes. The id may contain `:`, since the hash follows
    /// the last one.
    ///
    /// # Errors
    /// Returns a [`ReferenceError`].
    pub fn read(text: &str) -> Result<Self, ReferenceError> {
        let (id, hash) = text.rsplit_once(':').ok_or(ReferenceError::NoHash)?;
        let hash = CallHash::read(hash).ok_or(ReferenceError::NoHash)?;
        let id = if id.starts_with('"') {
            serde_json::from_str::<String>(id)
                .map_err(|_| ReferenceError::Quoting)?
                .into()
        } else {
            id.into()
        };
        Ok(CallReference { id, hash })
    }
}

impl fmt::Display for CallReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_odd = |c: char| c == ' ' || is_unclear(c);
        if self.id.is_empty() || self.id.starts_with('"') || self.id.contains(is_odd) {
            write!(
                f,
                "{}:{}",
                visible_json(&event::quoted(&self.id)),
                self.hash
            )
        } else {
            write!(f, "{}:{}", self.id, self.hash)
        }
    }
}

// The hash of a call, with which a person's answer refers to exactly the call that the person saw.

/// The number of hexadecimal digits kept from the digest. With 128 bits, no one can find another
/// call with the same hash by trying.
const DIGITS: usize = 32;

/// The hash of a call: the first 32 hexadecimal digits of a SHA-256 digest, in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallHash([u8; DIGITS]);

impl CallHash {
    /// Returns the first digits of `digest`.
    pub(crate) fn of(digest: &Hash) -> CallHash {
        let mut digits = [0; DIGITS];
        digits.copy_from_slice(&hex(digest).as_bytes()[..DIGITS]);
        CallHash(digits)
    }

    /// Parses the text that [`CallHash::as_str`] returns, also in upper case. Returns `None` for
    /// any other text.
    pub fn read(text: &str) -> Option<CallHash> {
        let digits: [u8; DIGITS] = text.as_bytes().try_into().ok()?;
        digits
            .iter()
            .all(u8::is_ascii_hexdigit)
            .then(|| CallHash(digits.map(|digit| digit.to_ascii_lowercase())))
    }

    /// Returns the hexadecimal digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for CallHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// The input of a call's hash.

/// Returns the hash of a call: a digest of its stream, its id, its tool's name and definition, and
/// its canonical arguments. Calls that differ in any of these have different hashes. `definition`
/// is [`super::Tool::hash`]. `starts`, the number of times calls with this id were already started,
/// is included if it is not 0, so that one approval cannot start a call a second time.
pub fn call_hash(
    call: &RequestedCall,
    definition: &Hash,
    arguments: &Arguments,
    starts: u32,
) -> CallHash {
    // An unnamed stream adds no text to the digest, so it differs from a stream with an empty name.
    let stream = call.stream.as_deref().map(str::as_bytes);
    let canonical = arguments.canonical();
    let rest = [
        call.id.as_bytes(),
        call.name.as_bytes(),
        definition,
        canonical.as_bytes(),
    ];
    // A stream's name is JSON, so it never begins with `#`.
    let starts = (starts > 0).then(|| format!("#{starts}"));
    let starts = starts.as_ref().map(|starts| starts.as_bytes());
    let whole = digest(rest.into_iter().chain(stream).chain(starts));
    CallHash::of(&whole)
}

// A person's statement that a call ran, with its result: `ID:HASH=TEXT`.

/// The result that a person gives for a call that was started but whose result was never recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallAnswer {
    /// The call.
    pub call: CallReference,
    /// The result text for the model.
    pub text: String,
}

impl CallAnswer {
    /// Parses `ID:HASH=TEXT`. If the text contains several `:HASH=` parts, the last one counts,
    /// since an id may contain `=` and something like a hash. A printed command thus always names
    /// the call that it was printed for, and a result text with such a part names a call that does
    /// not exist.
    ///
    /// # Errors
    /// Returns a [`ReferenceError`].
    pub fn read(argument: &str) -> Result<Self, ReferenceError> {
        let mut error = ReferenceError::NoHash;
        for (at, _) in argument.rmatch_indices('=') {
            match CallReference::read(&argument[..at]) {
                Ok(call) => {
                    return Ok(CallAnswer {
                        call,
                        text: argument[at + 1..].to_owned(),
                    });
                }
                Err(ReferenceError::NoHash) => {}
                Err(e) => error = e,
            }
        }
        Err(error)
    }
}

/// A decision about a call in an earlier run, as the log records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastAnswer {
    /// The decision.
    pub verdict: Verdict,
    /// The name of the person who decided, or `the policy`.
    pub by: String,
}

impl PastAnswer {
    /// Reads an `approval` event. Returns `None` if its decision is not a known [`Verdict`].
    pub(crate) fn read(approval: &Approval<'_>) -> Option<PastAnswer> {
        Some(PastAnswer {
            verdict: Verdict::of(&approval.decision.str())?,
            by: approval.answerer().into_owned(),
        })
    }
}

/// A person's answer that matched no waiting call and so had no effect. Its text is a sentence for
/// the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedAnswer {
    /// The call that the person named.
    pub call: CallReference,
    /// The person's decision.
    pub verdict: Verdict,
    /// The earlier decision about the call, which stays valid, or `None` if there is none.
    pub first: Option<PastAnswer>,
}

impl fmt::Display for UnusedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnusedAnswer { call, first, .. } = self;
        match first {
            Some(PastAnswer { verdict, by }) => {
                write!(f, "{call} was {} before, by {by}", verdict.name())?;
            }
            None => write!(f, "no call that waits is {call}")?,
        }
        write!(
            f,
            ", so nothing was {}; --list-pending prints the pending calls",
            self.verdict.name()
        )
    }
}

/// The command that continues a run after a person's answer. The options with the answer are
/// inserted between its two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// The program and its options.
    pub command: String,
    /// The redirections with a space before them, or an empty text.
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
    /// Returns the whole command with an `option` (`--approve-call` or `--deny-call`) for each
    /// call.
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

    /// Returns the whole command that gives a call's result, with `RESULT` in place of the result.
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

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn every_id_reads_back_from_one_printable_line() {
        for id in [
            "call_1",
            "",
            "a:b",
            "a b",
            "a\nb",
            "\"",
            "\"a\":x",
            "é中",
            "a\u{202e}b",
            "a\u{200d}b",
            "--x",
            "\u{1b}[2J",
            "\\u202e",
            ":",
        ] {
            let hash = CallHash::read(HASH).unwrap();
            let reference = CallReference {
                id: id.into(),
                hash,
            };
            let text = reference.to_string();
            assert!(
                !text.contains(|c: char| is_unclear(c) || c == '\n'),
                "{text:?}"
            );
            assert_eq!(CallReference::read(&text), Ok(reference), "{text}");
        }
        assert_eq!(
            CallReference::read(&format!("a:{HASH}"))
                .unwrap()
                .to_string(),
            format!("a:{HASH}")
        );
    }

    #[test]
    fn an_id_alone_is_refused_with_the_remedy() {
        for text in [
            "call_1",
            "",
            "a:b",
            &format!("a:{}", &HASH[1..]),
            HASH,
            &format!("{HASH}:a"),
        ] {
            assert_eq!(
                CallReference::read(text),
                Err(ReferenceError::NoHash),
                "{text}"
            );
        }
        assert_eq!(
            CallReference::read(&format!("\"a:{HASH}")),
            Err(ReferenceError::Quoting)
        );
        assert!(
            ReferenceError::NoHash
                .to_string()
                .contains("--list-pending")
        );
    }
}

#[cfg(test)]
mod call_hash_tests {
    use super::*;

    #[test]
    fn a_hash_reads_back() {
        let base = CallHash::of(&[0xa7; 32]);
        let text = base.to_string();
        assert_eq!((text.len(), CallHash::read(&text)), (32, Some(base)));
        assert_eq!(CallHash::read(&text.to_uppercase()), Some(base));
        for bad in [
            "",
            "0",
            &text[1..],
            &format!("{text}0"),
            &format!("+{}", &text[1..]),
            &"é".repeat(16),
        ] {
            assert_eq!(CallHash::read(bad), None, "{bad}");
        }
    }
}

#[cfg(test)]
mod call_digest_tests {
    use super::*;
    use event::Scanner;

    fn hash(line: &str, definition: u8) -> CallHash {
        let call = RequestedCall::of_event(&Scanner::default().read(line).unwrap());
        call_hash(
            &call,
            &[definition; 32],
            call.arguments.as_ref().unwrap(),
            0,
        )
    }

    const CALL: &str =
        r#"{"type":"tool_call","tool_id":"i","tool_name":"w","arguments":{"a":1,"b":2}}"#;

    #[test]
    fn whatever_a_person_saw_changes_the_hash() {
        let base = hash(CALL, 1);
        for (from, to) in [
            ("\"i\"", "\"j\""),
            ("\"w\"", "\"v\""),
            ("\"b\":2", "\"b\":3"),
            ("\"b\":2", "\"b\":2.0"),
            ("{\"type\"", "{\"stream\":\"s\",\"type\""),
        ] {
            assert!(CALL.contains(from));
            assert_ne!(base, hash(&CALL.replacen(from, to, 1), 1), "{to}");
        }
        assert_ne!(base, hash(CALL, 2));
        let call = RequestedCall::of_event(&Scanner::default().read(CALL).unwrap());
        assert_ne!(
            base,
            call_hash(&call, &[1; 32], call.arguments.as_ref().unwrap(), 1),
            "a second start"
        );
        // The spelling of the arguments, the choice and the position in the turn do not change the
        // hash.
        let same = CALL
            .replace(r#"{"a":1,"b":2}"#, r#"{ "b":2, "\u0061":1 }"#)
            .replacen('{', r#"{"index":3,"#, 1);
        assert_eq!(base, hash(&same, 1));
    }
}

#[cfg(test)]
mod call_answer_tests {
    use super::*;

    const HASH: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn the_last_hash_is_that_of_the_call() {
        for (id, text) in [
            ("a", "done"),
            ("a", ""),
            ("a", "x=y: z"),
            ("a=b", "c"),
            (&*format!("a:{HASH}=b"), "c=d"),
        ] {
            let answer = CallAnswer::read(&format!("{id}:{HASH}={text}")).unwrap();
            assert_eq!((&*answer.call.id, &*answer.text), (id, text));
        }
        let quoted = CallAnswer::read(&format!("\"a\\n=\":{HASH}=b")).unwrap();
        assert_eq!((&*quoted.call.id, &*quoted.text), ("a\n=", "b"));
        for bad in [
            "",
            "a",
            "a=b",
            &format!("a:{HASH}"),
            &format!("a:{HASH}:b=c"),
        ] {
            assert_eq!(CallAnswer::read(bad), Err(ReferenceError::NoHash), "{bad}");
        }
    }
}

#[cfg(test)]
mod continuation_tests {
    use super::CallHash;
    use super::*;

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
