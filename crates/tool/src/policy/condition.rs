//! A condition of a rule on one argument.

use super::path::{PathPattern, resolved};
use crate::number;
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

/// How many of the texts of a value must fit: a rule that permits needs all, a rule that holds back
/// any.
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
        Ok(Condition::Regex(
            Regex::new(&format!(r"\A(?:{pattern})\z")).map_err(|e| reason(&e))?,
        ))
    }

    /// Whether the value fits. A value that is missing or `null` never does. The items of a list,
    /// and for [`Quantity::Any`] the members of an object with their names, are texts of the value;
    /// an object never fits [`Quantity::All`]. A number has a text for each way in which a program
    /// may read it. `folder` is what paths are relative to.
    pub fn holds(&self, value: Option<Raw<'_>>, quantity: Quantity, folder: &str) -> bool {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return false;
        };
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
        } else if number::is_number(value) {
            let text = value.text();
            found.take(self.fits(text, quantity, folder));
            found.take(self.fits(&number::by_value(text), quantity, folder));
            number::as_double(text)
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

    /// Whether one text fits.
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

/// How many texts of a value fit a condition, and how many do not.
#[derive(Default)]
struct Found {
    fitting: usize,
    others: usize,
}

impl Found {
    fn take(&mut self, fits: bool) {
        *(if fits {
            &mut self.fitting
        } else {
            &mut self.others
        }) += 1;
    }
}

/// The last line of an error of the expression, which names it; the lines before show where.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    format!(
        "the expression cannot be used: {}",
        last.strip_prefix("error: ").unwrap_or(last)
    )
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
        let regex = Condition::regex("[a-z]+|x y").unwrap();
        for (value, fits) in [
            (r#""abc""#, true),
            (r#""abc\n""#, false),
            (r#""abc;rm""#, false),
            (r#""x y""#, true),
            ("7", false),
        ] {
            assert_eq!(holds(&regex, value)[0], fits, "{value}");
        }
        assert!(holds(&Condition::regex("[0-9]+").unwrap(), "12")[0]);
        // A number fits a refusal by its value, and a permission only in each of its spellings.
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
                holds(&Condition::regex(pattern).unwrap(), value),
                want,
                "{pattern} {value}"
            );
        }
        assert!(
            Condition::regex("a)|(b")
                .unwrap_err()
                .contains("unopened group")
        );
        assert!(Condition::regex("(").is_err() && Condition::regex(r"(a)\1").is_err());
    }
}
