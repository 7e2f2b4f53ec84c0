//! The error and the repairs of a `tool_call` event.

use event::{Array, Object, WriteJson};
use json::Repair;

/// Why a call must not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallError {
    /// `incomplete`, `invalid_json`, `schema` or `no_name`.
    pub code: &'static str,
    /// A sentence that a model or a person can act on.
    pub message: String,
}

/// The edits of a repair, as `repairs` lists them.
#[derive(Debug)]
pub(crate) struct Repairs<'a>(pub &'a [Repair]);

impl WriteJson for Repairs<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut list = Array::open(out);
        for repair in self.0 {
            list.object(|o: &mut Object<'_>| {
                o.int("offset", repair.offset as u64)
                    .str("kind", repair.kind);
                o.str("before", &repair.before).str("after", &repair.after);
            });
        }
        list.close();
    }
}
