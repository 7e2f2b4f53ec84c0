//! The page at `/`: one document, which loads nothing and runs nothing but its own script.
//!
//! `page/` has its parts, which the compiler puts into the program: `state.js` makes a session of its events,
//! `draw.js` draws it, `page.js` asks the service. The style of cards is [`view::CARDS`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Bytes;
use sha2::{Digest, Sha256};

const FRAME: &str = include_str!("page/page.html");
const STYLES: [&str; 2] = [view::CARDS, include_str!("page/page.css")];
const SCRIPTS: [&str; 3] = [
    include_str!("page/state.js"),
    include_str!("page/draw.js"),
    include_str!("page/page.js"),
];

/// The document, and the headers that depend on its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// The document.
    pub html: Bytes,
    /// The value of `content-security-policy`.
    pub policy: String,
    /// The value of `etag`.
    pub tag: String,
}

impl Page {
    /// Puts the document together.
    pub(crate) fn new() -> Page {
        let style: String = STYLES.map(compact).concat();
        let script: String = SCRIPTS.map(compact).concat();
        // The script comes last: its text may have the words of the other place.
        let html = compact(FRAME)
            .replacen("{style}", &style, 1)
            .replacen("{script}", &script, 1);
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
            hash(&script),
            hash(&style),
        );
        Page {
            tag: format!("\"{}\"", hash(&html)),
            html: html.into(),
            policy,
        }
    }
}

/// A SHA-256 as policies name it.
fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// A source without its indentation, and without the lines that are comments alone: a third of it, of
/// which a browser has no use.
fn compact(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut is_comment = false;
    for line in source.lines().map(str::trim) {
        is_comment |= line.starts_with("/*");
        if !is_comment && !line.is_empty() && !line.starts_with("//") {
            out.extend([line, "\n"]);
        }
        is_comment &= !line.ends_with("*/");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_served_without_comments_and_indentation() {
        let source =
            "/* a\n   b */\nlet a = 1; // stays\n\n  // goes\n  /** goes */\n  b(\"//\");\n";
        assert_eq!(compact(source), "let a = 1; // stays\nb(\"//\");\n");
    }

    #[test]
    fn nothing_of_the_sources_ends_the_script_or_the_style_early() {
        for source in STYLES.iter().chain(&SCRIPTS) {
            assert!(!source.contains("</") && !source.contains("<!--"));
        }
    }
}
