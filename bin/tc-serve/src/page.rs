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

/// Where the part of the style of cards begins that is for paper, which is its end.
const PAPER: &str = "@media print";

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
        let screen = |style: &'static str| style.split(PAPER).next().unwrap_or(style);
        let style: String = STYLES.map(screen).map(tight).concat();
        let script: String = SCRIPTS.map(tight).concat();
        // The script comes last: its text may have the words of the other place.
        let html = compact(FRAME, |line, out| out.extend([line, "\n"]))
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
/// which a browser has no use. `write` writes each line that is left.
fn compact(source: &str, write: impl Fn(&str, &mut String)) -> String {
    let mut out = String::with_capacity(source.len());
    let mut is_comment = false;
    for line in source.lines().map(str::trim) {
        is_comment |= line.starts_with("/*");
        if !is_comment && !line.is_empty() && !line.starts_with("//") {
            write(line, &mut out);
        }
        is_comment &= !line.ends_with("*/");
    }
    out
}

/// Signs around which spaces mean nothing, in a script and in a style.
const SIGNS: [&str; 16] = [
    ", ", " {", "{ ", " }", "; ", " : ", ": ", " = ", " => ", " === ", " !== ", " && ", " || ",
    " ?? ", " ? ", " < ",
];

/// A script or a style, compact and without white space that means nothing: spaces around signs, and
/// line feeds behind signs. A line with anything besides plain strings
/// in which spaces could mean something (a template, an expression, a comment) stays as it is.
fn tight(source: &str) -> String {
    compact(source, |line, out| {
        let mut parts: Vec<String> = line.split('"').map(str::to_owned).collect();
        let is_string = |part: &String| part.contains(['\'', '`', '/']);
        if line.contains('\\') || parts.iter().step_by(2).any(is_string) {
            return out.extend([line, "\n"]);
        }
        for code in parts.iter_mut().step_by(2) {
            let spaced = std::mem::take(code);
            let dense = SIGNS
                .iter()
                .fold(spaced, |code, sign| code.replace(sign, sign.trim()));
            *code = dense.replace(";}", "}");
        }
        out.push_str(&parts.join("\""));
        // Each statement of the scripts that needs one has its semicolon.
        if !line.ends_with([';', ',', '{', '(', '}']) {
            out.push('\n');
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_served_without_comments_and_spaces_that_mean_nothing() {
        let source = "/* a\n   b */\nlet a = 1; // stays\n\n  // goes\n  /** goes */\n  b(\"// = \", a === 1 ? 2 : 3);\n  c(`a = ${b}`);\n  d(/ : /);\n";
        assert_eq!(
            tight(source),
            "let a = 1; // stays\nb(\"// = \",a===1?2:3);c(`a = ${b}`);\nd(/ : /);\n"
        );
    }

    #[test]
    fn behind_the_style_for_paper_nothing_is_lost() {
        let (_, paper) = view::CARDS.split_once(PAPER).expect("a style for paper");
        assert_eq!(
            paper.matches("\n}").count(),
            1,
            "another rule follows: {paper}"
        );
    }

    #[test]
    fn nothing_of_the_sources_ends_the_script_or_the_style_early() {
        for source in STYLES.iter().chain(&SCRIPTS) {
            let served = tight(source);
            assert!(!served.contains("</") && !served.contains("<!--"));
        }
    }
}
