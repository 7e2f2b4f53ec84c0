//! `--list-dialects`: the table, one dialect a line.

use stdio::{Failure, Output};
use tag::Dialect;

/// Writes the list: a heading, and between tabs a dialect's name, its other names, the models that write it, and a call.
///
/// # Errors
/// Standard output cannot be written.
pub fn print() -> Result<(), Failure> {
    let mut out = Output::new();
    out.put(b"name\taliases\tmodels\texample\n")?;
    for dialect in Dialect::all() {
        let example = dialect.example().replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t");
        let line = format!("{}\t{}\t{}\t{example}\n", dialect.name, dialect.aliases.join(","), dialect.models);
        out.put(line.as_bytes())?;
    }
    out.flush()
}
