//! The page at `/`: one document, which loads nothing and runs no script but its own.
//!
//! `page/` has its parts, which the compiler puts into the program: `state.js` makes a session from
//! its events, `draw.js` draws the session, `page.js` asks the service. The style of cards is
//! [`view::CARDS`].

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
        let sources = [FRAME.to_owned(), STYLES.concat(), SCRIPTS.concat()];
        let [frame, style, script] = sources.map(|source| served(&source));
        // The script comes last, since its text may contain `{style}`.
        let html = frame
            .replacen("{style}", &style, 1)
            .replacen("{script}", &script, 1);
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src \
             'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'",
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

/// A source without its indentation and without the lines that are comments alone: they
/// are for people who read the sources, and an eighth of the bytes.
fn served(source: &str) -> String {
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
    fn a_source_is_served_without_indentation_and_comments() {
        let source =
            "/* a\n   b */\nlet a = 1; // stays\n\n  // goes\n  /** goes */\n  b(\"// = \");\n";
        assert_eq!(served(source), "let a = 1; // stays\nb(\"// = \");\n");
    }

    #[test]
    fn no_source_ends_its_element_early() {
        for source in STYLES.iter().chain(&SCRIPTS) {
            let source = served(source);
            assert!(!source.contains("</") && !source.contains("<!--"));
        }
    }
}
