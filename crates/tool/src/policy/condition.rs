//! A condition of a rule on one argument.

use super::path::{PathPattern, resolved};
use event::Raw;
use regex::Regex;

/// A condition on the value of one argument.
#[derive(Clone, Debug)]
pub enum Condition {
    /// The text matches a pattern, as it is and with `.` and `..` resolved.
    Glob(PathPattern),
    /// The value is a path that matches a pattern once it is resolved.
    Path(PathPattern),
    /// The expression matches the whole text.
    Regex(Regex),
}

/// How many of the texts of a value must fit: a rule that permits needs all, a rule that holds back any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// All of them, and at least one.
    All,
    /// One of them.
    Any,
}

impl Condition {
    /// Reads the expression of [`Condition::Regex`].
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn regex(pattern: &str) -> Result<Condition, String> {
        // Apart from what is put around it: `a)|(b` is wrong by itself.
        Regex::new(pattern).map_err(|e| reason(&e))?;
        Ok(Condition::Regex(Regex::new(&format!(r"\A(?:{pattern})\z")).map_err(|e| reason(&e))?))
    }

    /// Whether the value fits. A value that is missing or `null` never does. The items of a list, and for [`Quantity::Any`] the members of an
    /// object, are texts of the value; an object never fits [`Quantity::All`]. `folder` is what paths are relative to.
    pub fn holds(&self, value: Option<Raw<'_>>, quantity: Quantity, folder: &str) -> bool {
        let Some(value) = value.filter(|value| !value.is_null()) else { return false };
        let mut found = Found::default();
        self.look(value, quantity, folder, &mut found);
        match quantity {
            Quantity::All => found.fitting > 0 && found.others == 0,
            Quantity::Any => found.fitting > 0,
        }
    }

    /// Values nest at most 128 deep ([`event::MAX_DEPTH`]), so the recursion is bounded.
    fn look(&self, value: Raw<'_>, quantity: Quantity, folder: &str, found: &mut Found) {
        if value.is_array() {
            value.items().for_each(|item| self.look(item, quantity, folder, found));
        } else if value.is_object() {
            found.others += 1;
            if quantity == Quantity::Any {
                value.entries().for_each(|(_, member)| self.look(member, quantity, folder, found));
            }
        } else {
            let text = value.str().unwrap_or_else(|| value.text().into());
            let fits = match (self, quantity) {
                (Condition::Glob(glob), Quantity::All) => glob.matches(&text) && glob.matches(&resolved(&text)),
                (Condition::Glob(glob), Quantity::Any) => glob.matches(&text) || glob.matches(&resolved(&text)),
                (Condition::Path(path), Quantity::All) => path.matches_path(&text, folder),
                (Condition::Path(path), Quantity::Any) => {
                    path.matches_path(&text, folder) || path.matches_anywhere(&text, folder)
                }
                (Condition::Regex(regex), _) => regex.is_match(&text),
            };
            *(if fits { &mut found.fitting } else { &mut found.others }) += 1;
        }
    }
}

/// How many texts of a value fit a condition, and how many do not.
#[derive(Default)]
struct Found {
    fitting: usize,
    others: usize,
}

/// The last line of an error of the expression, which names it; the lines before show where.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    format!("the expression cannot be used: {}", last.strip_prefix("error: ").unwrap_or(last))
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
        ] {
            assert_eq!(holds(&glob, value), want, "{value}");
        }
        assert!(!glob.holds(None, Quantity::All, "/") && !glob.holds(None, Quantity::Any, "/"));
    }

    #[test]
    fn an_expression_matches_the_whole_text() {
        let regex = Condition::regex("[a-z]+|x y").unwrap();
        for (value, fits) in
            [(r#""abc""#, true), (r#""abc\n""#, false), (r#""abc;rm""#, false), (r#""x y""#, true), ("7", false)]
        {
            assert_eq!(holds(&regex, value)[0], fits, "{value}");
        }
        assert!(holds(&Condition::regex("[0-9]+").unwrap(), "12")[0]);
        assert!(Condition::regex("a)|(b").unwrap_err().contains("unopened group"));
        assert!(Condition::regex("(").is_err() && Condition::regex(r"(a)\1").is_err());
    }
}
