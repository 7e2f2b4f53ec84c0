//! A person's statement that a call ran, with its result: `ID:HASH=TEXT`.

use crate::call_reference::{CallReference, ReferenceError};

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

#[cfg(test)]
mod tests {
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
