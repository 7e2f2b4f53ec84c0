//! How a person names a call in an answer: `ID:HASH`.

use super::argument::Arguments;
use super::call::RequestedCall;
use super::canonical::{Hash, digest, hex};
use super::visible::{is_unclear, visible_json};
use event::payload::{Approval, Verdict};
use event::shell_word;
use std::fmt;
use std::fmt::Write;

/// A call that waits for a person, named by its id and its hash. As text it is `ID:HASH`. An id
/// that begins with `"`, is empty, or has white space or a character that a terminal does not show
/// is written as a JSON string: `"a\nb":HASH`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallReference {
    /// The id of the call.
    pub id: Box<str>,
    /// The hash of the call.
    pub hash: CallHash,
}

/// Why a text is not a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It has no hash.
    #[error(
        "write ID:HASH, as --list-pending prints it: an id alone does not identify the call that you saw"
    )]
    NoHash,
    /// The id begins with `"` and is not a JSON string.
    #[error("the id begins with \" and is not a JSON string, copy it as --list-pending prints it")]
    Quoting,
}

impl CallReference {
    /// Reads what [`fmt::Display`] writes. An id may hold `:`, since the hash is what follows the
    /// last one.
    ///
    /// # Errors
    /// A [`ReferenceError`].
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

// The hash of a call, by which a person's answer names exactly what the person saw.

/// How many hexadecimal digits of the digest are kept: 128 bits cannot be made to fit another call
/// by trying.
const DIGITS: usize = 32;

/// The hash of a call: the first 32 hexadecimal digits of a SHA-256 digest, in small letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallHash([u8; DIGITS]);

impl CallHash {
    /// The first digits of this digest.
    pub(crate) fn of(digest: &Hash) -> CallHash {
        let mut digits = [0; DIGITS];
        digits.copy_from_slice(&hex(digest).as_bytes()[..DIGITS]);
        CallHash(digits)
    }

    /// Reads what [`CallHash::as_str`] returns; capital letters are accepted too. `None` for any
    /// other text.
    pub fn read(text: &str) -> Option<CallHash> {
        let digits: [u8; DIGITS] = text.as_bytes().try_into().ok()?;
        digits
            .iter()
            .all(u8::is_ascii_hexdigit)
            .then(|| CallHash(digits.map(|digit| digit.to_ascii_lowercase())))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for CallHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// What the hash of a call is made of.

/// The hash of a call: of its stream, its id, the name and the definition of its tool, and its
/// arguments in canonical form. Two calls that differ in any of these have different hashes.
/// `definition` is [`super::Tool::hash`]. `starts`, how often calls of this id have been started
/// before, counts too if it is not 0: an approval that was typed once does not start a call a
/// second time.
pub fn call_hash(
    call: &RequestedCall,
    definition: &Hash,
    arguments: &Arguments,
    starts: u32,
) -> CallHash {
    // An unnamed stream and a stream with an empty name differ by the number of texts.
    let stream = call.stream.as_deref().map(str::as_bytes);
    let canonical = arguments.canonical();
    let rest = [
        call.id.as_bytes(),
        call.name.as_bytes(),
        definition,
        canonical.as_bytes(),
    ];
    // A stream is JSON, so it never begins as this does.
    let starts = (starts > 0).then(|| format!("#{starts}"));
    let starts = starts.as_ref().map(|starts| starts.as_bytes());
    let whole = digest(rest.into_iter().chain(stream).chain(starts));
    CallHash::of(&whole)
}

// A person's statement that a call ran, with its result: `ID:HASH=TEXT`.

/// What a person gives as the result of a call that was started, and whose result was never
/// recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallAnswer {
    /// The call.
    pub call: CallReference,
    /// Its result, which the model reads.
    pub text: String,
}

impl CallAnswer {
    /// Reads `ID:HASH=TEXT`. An id may hold `=` and what looks like a hash: the last `:HASH=`
    /// counts. So a printed command always names the call that it was printed for, and a text with
    /// such a part names a call that does not exist.
    ///
    /// # Errors
    /// A [`ReferenceError`].
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

/// An answer that a call got in an earlier run, as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastAnswer {
    /// What was answered.
    pub verdict: Verdict,
    /// Who answered: the name of a person, or `the policy`.
    pub by: String,
}

impl PastAnswer {
    /// Reads an `approval` event; `None` for one whose decision is none of [`Verdict`].
    pub(crate) fn read(approval: &Approval<'_>) -> Option<PastAnswer> {
        Some(PastAnswer {
            verdict: Verdict::of(&approval.decision.str())?,
            by: approval.answerer().into_owned(),
        })
    }
}

/// A person's answer that fits no call which waits, so it changed nothing. Its text is a sentence
/// for the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedAnswer {
    /// The call that the person named.
    pub call: CallReference,
    /// What the person answered.
    pub verdict: Verdict,
    /// The answer that the call got before, which holds.
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
        // The spelling, the choice and the place in the turn do not matter.
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
