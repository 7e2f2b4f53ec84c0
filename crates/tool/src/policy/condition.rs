//! A condition of a rule on one argument.

use crate::canonical;
use event::Raw;
use regex::Regex;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;

/// A condition on the value of one argument.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// The text matches a pattern, compared both as written and with `.` and `..` resolved.
    Glob(PathPattern),
    /// The value is a path that matches a pattern after it is resolved.
    Path(PathPattern),
    /// The regular expression matches the whole text.
    #[serde(deserialize_with = "regex")]
    Regex(Regex),
}

/// How many texts of a value must match: all of them for a rule that allows, any of them for a rule
/// that restricts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// All texts match, and there is at least one.
    All,
    /// At least one text matches.
    Any,
}

impl Condition {
    /// Whether the value matches. A missing or `null` value never does. A list has the texts of its
    /// items. An object has the texts of its names and members under [`Quantity::Any`], and never
    /// matches under [`Quantity::All`]. A number has one text for each way in which a program may
    /// read it. Relative paths start from `folder`.
    pub fn holds(&self, value: Option<Raw<'_>>, quantity: Quantity, folder: &str) -> bool {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return false;
        };
        let mut found = FitCounts::default();
        self.look(value, quantity, folder, &mut found);
        match quantity {
            Quantity::All => found.fitting > 0 && found.others == 0,
            Quantity::Any => found.fitting > 0,
        }
    }

    /// Compares all texts of a value. Values nest at most 128 deep ([`event::MAX_DEPTH`]), so the
    /// recursion is bounded.
    fn look(&self, value: Raw<'_>, quantity: Quantity, folder: &str, found: &mut FitCounts) {
        if value.is_array() {
            value
                .items()
                .for_each(|item| self.look(item, quantity, folder, found));
        } else if value.is_object() {
            found.others += 1;
            if quantity == Quantity::Any {
                for (name, member) in value.entries() {
                    found.take(self.fits(&name, quantity, folder));
                    self.look(member, quantity, folder, found);
                }
            }
        } else if canonical::is_number(value) {
            let text = value.text();
            found.take(self.fits(text, quantity, folder));
            found.take(self.fits(&canonical::number_text(text), quantity, folder));
            canonical::as_double(text)
                .iter()
                .for_each(|double| found.take(self.fits(double, quantity, folder)));
        } else {
            found.take(self.fits(
                &value.str().unwrap_or_else(|| value.text().into()),
                quantity,
                folder,
            ));
        }
    }

    /// Whether one text matches.
    fn fits(&self, text: &str, quantity: Quantity, folder: &str) -> bool {
        match (self, quantity) {
            (Condition::Glob(glob), Quantity::All) => {
                glob.matches(text) && glob.matches(&resolved(text))
            }
            (Condition::Glob(glob), Quantity::Any) => {
                glob.matches(text) || glob.matches(&resolved(text))
            }
            (Condition::Path(path), Quantity::All) => path.matches_path(text, folder),
            (Condition::Path(path), Quantity::Any) => {
                path.matches_path(text, folder) || path.matches_anywhere(text, folder)
            }
            (Condition::Regex(regex), _) => regex.is_match(text),
        }
    }
}

/// The number of texts of a value that match a condition, and of those that do not.
#[derive(Default)]
struct FitCounts {
    fitting: usize,
    others: usize,
}

impl FitCounts {
    fn take(&mut self, fits: bool) {
        *(if fits {
            &mut self.fitting
        } else {
            &mut self.others
        }) += 1;
    }
}

fn regex<'d, D: Deserializer<'d>>(pattern: D) -> Result<Regex, D::Error> {
    whole_regex(&String::deserialize(pattern)?).map_err(D::Error::custom)
}

/// Compiles a regular expression that must match a whole text.
fn whole_regex(pattern: &str) -> Result<Regex, String> {
    // Compile the expression on its own first: the wrapped form of `a)|(b` is valid, but the
    // expression itself is not.
    let whole = Regex::new(pattern).and_then(|_| Regex::new(&format!(r"\A(?:{pattern})\z")));
    whole.map_err(|e| reason(&e))
}

/// Returns the last line of a regular expression's error, which names the mistake. The lines before
/// only show its position.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    format!(
        "the expression cannot be used: {}",
        last.strip_prefix("error: ").unwrap_or(last)
    )
}

// Patterns for paths and for other texts with slashes.

/// A pattern: `*` matches any run of characters except `/`, `**` any run, and `?` one character
/// except `/`. `X/**` also matches `X`, and `**/X` matches `X` at any depth. Matching takes time
/// linear in the length of the text.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct PathPattern {
    regex: Regex,
    /// Whether the pattern begins with `/`.
    is_absolute: bool,
    /// Whether the pattern begins with `**/`.
    is_at_any_depth: bool,
}

impl TryFrom<String> for PathPattern {
    type Error = String;

    fn try_from(pattern: String) -> Result<Self, String> {
        PathPattern::read(&pattern)
    }
}

impl PathPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// Returns why no path could match the pattern, or that it is too long.
    pub fn read(pattern: &str) -> Result<Self, String> {
        let mut rest = pattern.strip_prefix("./").unwrap_or(pattern);
        if rest.len() > 1 {
            rest = rest.strip_suffix('/').unwrap_or(rest);
        }
        let mut segments = rest.strip_prefix('/').unwrap_or(rest).split('/');
        if rest.is_empty()
            || (rest != "/" && segments.any(|segment| matches!(segment, "" | "." | "..")))
        {
            return Err(
                "the pattern has an empty part, `.` or `..`, which no path has after it was resolved".to_owned()
            );
        }
        let is_absolute = rest.starts_with('/');
        let is_at_any_depth = rest.starts_with("**/");
        let mut out = String::from(r"\A(?s:");
        if let Some(tail) = rest.strip_prefix("**/") {
            out.push_str("(?:.*/)?");
            rest = tail;
        }
        let below = rest.strip_suffix("/**");
        let mut chars = below.unwrap_or(rest).chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '*' if chars.next_if_eq(&'*').is_some() => out.push_str(".*"),
                '*' => out.push_str("[^/]*"),
                '?' => out.push_str("[^/]"),
                c => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            }
        }
        out.push_str(if below.is_some() {
            r"(?:/.*)?)\z"
        } else {
            r")\z"
        });
        let regex = Regex::new(&out).map_err(|_| "the pattern is too long".to_owned())?;
        Ok(PathPattern {
            regex,
            is_absolute,
            is_at_any_depth,
        })
    }

    /// Whether the pattern matches a text as written.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Whether the pattern matches the path `text`. A path or a pattern that does not begin with
    /// `/` is relative to the absolute path `folder`.
    pub fn matches_path(&self, text: &str, folder: &str) -> bool {
        let joined = joined(text, folder);
        let whole = resolved(&joined);
        if self.is_absolute {
            return self.matches(&whole);
        }
        let folder = resolved(folder);
        let below = match whole.strip_prefix(folder.trim_end_matches('/')) {
            Some("") => Some(""),
            Some(rest) => rest.strip_prefix('/'),
            None => None,
        };
        below.is_some_and(|below| self.matches(below))
    }

    /// Whether a pattern that begins with `**/` matches the path `text` anywhere, even outside
    /// `folder`: a rule that keeps a tool away from `**/.env` also keeps it away from `../.env`.
    pub fn matches_anywhere(&self, text: &str, folder: &str) -> bool {
        self.is_at_any_depth
            && self.matches(resolved(&joined(text, folder)).trim_start_matches('/'))
    }
}

/// Returns the path `text`, joined to `folder` unless it begins with `/`.
fn joined<'a>(text: &'a str, folder: &str) -> Cow<'a, str> {
    if text.starts_with('/') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{folder}/{text}"))
    }
}

/// Returns `path` without `.`, `..` and empty parts. Only the text is resolved: symbolic links are
/// not followed. `..` above `/` becomes `/`, and `..` at the start of a relative path stays.
pub(super) fn resolved(path: &str) -> Cow<'_, str> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    if path
        .strip_prefix('/')
        .unwrap_or(path)
        .split('/')
        .all(is_plain)
    {
        return Cow::Borrowed(path);
    }
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&"..") | None if !is_absolute => parts.push(".."),
                _ => {
                    parts.pop();
                }
            },
            part => parts.push(part),
        }
    }
    Cow::Owned(format!(
        "{}{}",
        if is_absolute { "/" } else { "" },
        parts.join("/")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: &Condition, value: &str) -> [bool; 2] {
        let value = Raw::parse(value).unwrap();
        [Quantity::All, Quantity::Any].map(|quantity| condition.holds(Some(value), quantity, "/w"))
    }

    #[test]
    fn a_permission_needs_all_texts_and_a_refusal_any() {
        let glob = Condition::Glob(PathPattern::read("/srv/**").unwrap());
        for (value, want) in [
            (r#""/srv/a""#, [true, true]),
            (r#""/srv/../etc/passwd""#, [false, true]),
            (r#""/etc/../srv/a""#, [false, true]),
            (r#"["/srv/a","/srv/b"]"#, [true, true]),
            (r#"["/srv/a","/etc"]"#, [false, true]),
            (r#"["/etc"]"#, [false, false]),
            ("[]", [false, false]),
            ("null", [false, false]),
            (r#"{"x":"/srv/a"}"#, [false, true]),
            (r#"[["/srv/a"]]"#, [true, true]),
            (r#"["/srv/a",null]"#, [false, true]),
            (r#"{"/srv/a":"x"}"#, [false, true]),
            (r#"{"x":[{"/srv/a":null}]}"#, [false, true]),
            (r#"{"x":{"/tmp/../srv/a":{}}}"#, [false, true]),
            (r#"{"/etc":"x"}"#, [false, false]),
        ] {
            assert_eq!(holds(&glob, value), want, "{value}");
        }
        assert!(!glob.holds(None, Quantity::All, "/") && !glob.holds(None, Quantity::Any, "/"));
    }

    #[test]
    fn an_expression_matches_the_whole_text() {
        let regex = whole_regex("[a-z]+|x y").map(Condition::Regex).unwrap();
        for (value, fits) in [
            (r#""abc""#, true),
            (r#""abc\n""#, false),
            (r#""abc;rm""#, false),
            (r#""x y""#, true),
            ("7", false),
        ] {
            assert_eq!(holds(&regex, value)[0], fits, "{value}");
        }
        assert!(holds(&whole_regex("[0-9]+").map(Condition::Regex).unwrap(), "12")[0]);
        // A number matches a restricting rule by its value, but an allowing rule only if all of its
        // spellings match.
        for (pattern, value, want) in [
            ("1000", "1000", [true, true]),
            ("1000", "1000.0", [false, true]),
            ("1000", "1e3", [false, true]),
            ("1000", "[2,{\"a\":0.1e4}]", [false, true]),
            ("-?0", "-0.0", [false, true]),
            ("0", "-0", [false, true]),
            ("9007199254740992", "9007199254740993", [false, true]),
            (
                "23456789012345678901234",
                "2.3456789012345678901234e22",
                [false, true],
            ),
            ("[0-9.]+", "1000.0", [true, true]),
            ("1000", "\"1e3\"", [false, false]),
            ("1000", "1000.5", [false, false]),
        ] {
            assert_eq!(
                holds(&whole_regex(pattern).map(Condition::Regex).unwrap(), value),
                want,
                "{pattern} {value}"
            );
        }
        assert!(whole_regex("a)|(b").unwrap_err().contains("unopened group"));
        assert!(whole_regex("(").is_err() && whole_regex(r"(a)\1").is_err());
    }
}

#[cfg(test)]
mod path_tests {
    use super::*;

    #[test]
    fn dots_are_resolved_by_the_text_alone() {
        for (path, want) in [
            ("/srv/../etc/passwd", "/etc/passwd"),
            ("/../../x", "/x"),
            ("a/./b//c/", "a/b/c"),
            ("a/../../b", "../b"),
            ("../../b", "../../b"),
            ("/", "/"),
            ("", ""),
            ("/a/b", "/a/b"),
            ("..", ".."),
            ("/..", "/"),
        ] {
            assert_eq!(resolved(path), want, "{path}");
        }
    }

    #[test]
    fn stars_stay_between_slashes() {
        for (pattern, text, fits) in [
            ("/srv/**", "/srv/a/b", true),
            ("/srv/**", "/srv", true),
            ("/srv/**", "/srvx", false),
            ("/srv/*", "/srv/a", true),
            ("/srv/*", "/srv/a/b", false),
            ("**/.env", ".env", true),
            ("**/.env", "a/b/.env", true),
            ("**/.env", "a/b.env", false),
            ("*.t?t", "a\n.txt", true),
            ("a.b", "axb", false),
            ("(a|b)", "a", false),
            ("**", "", true),
        ] {
            assert_eq!(
                PathPattern::read(pattern).unwrap().matches(text),
                fits,
                "{pattern} {text}"
            );
        }
        for bad in ["", "a//b", "../a", "/a/./b", "a/.."] {
            assert!(PathPattern::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_path_is_where_it_leads_from_its_folder() {
        for (pattern, text, fits) in [
            ("data/**", "data/x", true),
            ("data/**", "./data/../data/x", true),
            ("data/**", "data/../secret", false),
            ("data/**", "/w/data/x", true),
            ("data/**", "/data/x", false),
            ("data/**", "../w/data/x", true),
            ("**", "../x", false),
            ("**", ".", true),
            ("/etc/**", "../etc/passwd", true),
            ("/etc/**", "/w/../etc", true),
            ("/w/data/**", "data", true),
        ] {
            assert_eq!(
                PathPattern::read(pattern).unwrap().matches_path(text, "/w"),
                fits,
                "{pattern} {text}"
            );
        }
        assert!(
            PathPattern::read("etc/**")
                .unwrap()
                .matches_path("etc/x", "/")
        );
    }
}
