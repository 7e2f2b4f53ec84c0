//! `--list-dialects`: the dialects, one a line.

use stdio::{Failure, Output};
use tag::Dialects;

/// Writes the list: a heading, and between tabs a dialect's name, its other names, the models that
/// write it, a call, and where the dialect is defined.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(dialects: &Dialects) -> Result<(), Failure> {
    let mut out = Output::new();
    out.put(b"name\taliases\tmodels\texample\tsource\n")?;
    for dialect in dialects.all() {
        let (name, aliases, example) = (dialect.name, dialect.aliases.join(","), dialect.example());
        let columns = [name, &aliases, dialect.models, &example, dialect.source].map(escaped);
        out.put(format!("{}\n", columns.join("\t")).as_bytes())?;
    }
    out.flush()
}

/// A column's text on one line.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('\t', "\\t")
}
