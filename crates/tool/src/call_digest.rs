//! What the hash of a call is made of.

use crate::argument::Arguments;
use crate::call::RequestedCall;
use crate::call_hash::CallHash;
use crate::canonical::{Hash, digest};

/// The hash of a call: of its stream, its id, the name and the definition of its tool, and its
/// arguments in canonical form. Two calls that differ in any of these have different hashes.
/// `definition` is [`crate::Tool::hash`]. `starts`, how often calls of this id have been started
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

#[cfg(test)]
mod tests {
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
