//! Generates the table of dialects from the files in `dialects/`, so that it costs nothing at
//! start-up, and a mistake in a file fails the build.

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

/// Reads the dialects of the table. They are sorted by name, except that a dialect comes after the one
/// that it is read as.
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

/// Returns the letters of all names and aliases, sorted, with the indexes of their dialects. Letters
/// that several dialects share belong to the first one.
fn families(dialects: &[Dialect]) -> Vec<(String, usize)> {
    let named = dialects.iter().enumerate();
    let mut families: Vec<(String, usize)> = named
        .flat_map(|(at, dialect)| dialect.families().map(move |name| (name, at)))
        .collect();
    families.sort();
    families.dedup_by(|later, first| later.0 == first.0);
    families
}

/// The structs in a dialect that are stored as references.
const BORROWED: [&str; 7] = [
    "CallKeys",
    "ExpressionForm",
    "FreeText",
    "ParamForm",
    "Prompt",
    "StartTag",
    "TextFraming",
];

/// Converts the `Debug` text of dialects to a Rust expression by adding the `&` that `Debug` omits
/// before slices and [`BORROWED`] structs. `src/table.rs` imports the enum variants in the text.
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

/// Returns the length of the string or character literal at the beginning of `text`.
fn literal(text: &str, quote: char) -> usize {
    let mut is_escaped = true;
    let end = text.find(|c| {
        let is_end = c == quote && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 1)
}
