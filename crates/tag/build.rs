//! Makes the table of dialects of the files in `dialects/`: start-up then costs nothing, and a
//! mistake in one stops the build.

#![allow(
    unreachable_pub,
    reason = "these files are modules of the crate, where others use them"
)]

#[allow(dead_code, reason = "the crate's own code uses the rest")]
#[path = "src"]
mod shared {
    pub(crate) mod dialect;
    pub(crate) mod notation;
}

use shared::dialect::Dialect;
use shared::{dialect, notation};
use std::path::Path;

fn main() {
    for path in [
        "dialects",
        "src/dialect.rs",
        "src/notation.rs",
        "src/notation",
    ] {
        println!("cargo::rerun-if-changed={path}");
    }
    match table(Path::new("dialects")) {
        Ok(dialects) => {
            let folder = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
            let write = |file: &str, rust: String| {
                std::fs::write(Path::new(&folder).join(file), rust)
                    .expect("a file in OUT_DIR can be written");
            };
            write("dialects.rs", with_borrows(&format!("{dialects:?}")));
            write("families.rs", format!("&{:?}", families(&dialects)));
        }
        Err(why) => {
            println!("cargo::error={why}");
            std::process::exit(1);
        }
    }
}

/// The dialects of the table, in the order of the names; but of two that look alike the more usual one
/// comes first.
fn table(folder: &Path) -> Result<Vec<Dialect>, String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))? {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let text =
                std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            files.push((path.display().to_string(), text));
        }
    }
    files.sort();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(file, text)| (&file[..], &text[..]))
        .collect();
    let mut dialects = notation::read(&files, &[]).map_err(|e| e.to_string())?;
    dialects.sort_by_key(|dialect| {
        (
            dialect.read_as.unwrap_or(dialect.name),
            dialect.read_as.is_some(),
        )
    });
    Ok(dialects)
}

/// The letters of all names with the place of their dialect in the table, in order. Of two dialects
/// with the same letters the first counts.
fn families(dialects: &[Dialect]) -> Vec<(String, usize)> {
    let named = dialects.iter().enumerate();
    let mut families: Vec<(String, usize)> = named
        .flat_map(|(at, dialect)| dialect.families().map(move |name| (name, at)))
        .collect();
    families.sort();
    families.dedup_by(|later, first| later.0 == first.0);
    families
}

/// The structs of a dialect that are behind a reference.
const BORROWED: [&str; 7] = [
    "CallKeys",
    "ExpressionForm",
    "FreeText",
    "ParamForm",
    "Prompt",
    "StartTag",
    "TextFraming",
];

/// The `Debug` text of a dialect as a Rust expression: `Debug` leaves out the borrows, of slices
/// and of [`BORROWED`] structs. `src/table.rs` imports the variants of the enums in it.
fn with_borrows(debug: &str) -> String {
    let mut rust = String::new();
    let mut rest = debug;
    while let Some(c) = rest.chars().next() {
        let is_struct = BORROWED.iter().any(|name| {
            let after = rest.strip_prefix(name);
            after.is_some_and(|after| after.starts_with(" {"))
        });
        if c == '[' || is_struct {
            rust.push('&');
        }
        let length = match c {
            '"' | '\'' => literal(rest, c),
            c if c.is_alphanumeric() => rest.find([' ', '(', ')', ',', ':']).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        rust.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    rust
}

/// The length of the literal of a string or a character that `text` begins with.
fn literal(text: &str, quote: char) -> usize {
    let mut is_escaped = true;
    let end = text.find(|c| {
        let is_end = c == quote && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 1)
}
