//! A command line with places for arguments. There is no shell: each item reaches the command unchanged.
//!
//! - `{name}` alone is an item that holds that argument; text around it is kept (`https://host/{name}`).
//! - An item that begins with `-` takes an argument only after a `=`: `--unit={name}`.
//! - A value that begins with `-` is refused where the item would begin with it, unless an item `--` precedes it.
//! - An argument that is missing or `null` drops its item, and only that one: write `--unit={unit}`, not `--unit`, `{unit}`.
//! - `{{name}}` is the text `{name}`. Braces that hold anything but a name are text.
//! - A string gives its text, any other value its JSON.

use crate::argument::{Arguments, plain};
use crate::refusal::{MAX_ITEM, Refusal};

/// A command line with places for arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    items: Vec<Vec<ItemPart>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ItemPart {
    Text(String),
    Argument(String),
}

impl Template {
    /// Reads the items of a command; the first is the program and has no place for an argument. `declared` returns whether the schema
    /// declares an argument of that name.
    ///
    /// # Errors
    /// What is wrong, with the remedy, for the author of the tools file.
    pub fn read(command: &[String], declared: &dyn Fn(&str) -> bool) -> Result<Self, String> {
        let mut items = Vec::new();
        for (n, item) in command.iter().enumerate() {
            if item.contains('\0') {
                return Err(format!("item {} of the command holds U+0000, leave it out", n + 1));
            }
            let parts = parts(item);
            for part in &parts {
                let ItemPart::Argument(name) = part else { continue };
                if n == 0 {
                    return Err("the program itself must not come from an argument, write its name".to_owned());
                }
                if !declared(name) {
                    return Err(format!(
                        "{{{name}}} in the command is no declared argument, declare it under properties, or write {{{{{name}}}}} for the text itself"
                    ));
                }
            }
            if let [ItemPart::Text(text), ItemPart::Argument(name), ..] = &parts[..]
                && text.starts_with('-')
                && !text.contains('=')
            {
                return Err(format!(
                    "{item:?} lets an argument choose the option, write --flag={{{name}}}, or {{{name}}} as an item of its own after \"--\""
                ));
            }
            items.push(parts);
        }
        if command.first().is_none_or(String::is_empty) {
            return Err("the command is empty, give it at least a program".to_owned());
        }
        Ok(Template { items })
    }

    /// The command line with the arguments in their places. The program is the first item.
    ///
    /// # Errors
    /// [`Refusal::Option`] and [`Refusal::TooLong`].
    pub fn fill(&self, arguments: &Arguments) -> Result<Vec<String>, Refusal> {
        let mut argv = Vec::with_capacity(self.items.len());
        let mut only_operands = false; // a literal "--" was passed
        for parts in &self.items {
            let mut item = String::new();
            let mut last = "";
            let mut complete = true;
            for part in parts {
                match part {
                    ItemPart::Text(text) => item.push_str(text),
                    ItemPart::Argument(name) => {
                        last = name;
                        match arguments.get(name) {
                            Some(value) => item.push_str(&plain(value)),
                            None => complete = false,
                        }
                    }
                }
            }
            if !complete {
                continue;
            }
            match parts.first() {
                Some(ItemPart::Argument(name)) if item.starts_with('-') && !only_operands => {
                    return Err(Refusal::Option(name.clone()));
                }
                Some(ItemPart::Text(_)) if parts.len() == 1 && item == "--" && !argv.is_empty() => only_operands = true,
                _ => {}
            }
            if item.len() > MAX_ITEM {
                return Err(Refusal::TooLong(last.to_owned(), item.len()));
            }
            argv.push(item);
        }
        Ok(argv)
    }
}

/// Splits an item at its places for arguments.
fn parts(item: &str) -> Vec<ItemPart> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = item;
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        let inner = &rest[at + 1..];
        if let Some(name) = inner.strip_prefix('{').and_then(named)
            && inner[1 + name.len()..].starts_with("}}")
        {
            text.extend(["{", name, "}"]);
            rest = &inner[name.len() + 3..];
        } else if let Some(name) = named(inner) {
            if !text.is_empty() {
                parts.push(ItemPart::Text(std::mem::take(&mut text)));
            }
            parts.push(ItemPart::Argument(name.to_owned()));
            rest = &inner[name.len() + 1..];
        } else {
            text.push('{');
            rest = inner;
        }
    }
    text.push_str(rest);
    if !text.is_empty() || parts.is_empty() {
        parts.push(ItemPart::Text(text));
    }
    parts
}

/// The name that `text` begins with, if a closing brace follows it.
fn named(text: &str) -> Option<&str> {
    let name = &text[..text.find('}')?];
    let plain = |c: char| c.is_alphanumeric() || "_.-".contains(c);
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(items: &[&str]) -> Result<Template, String> {
        let declared = |name: &str| ["city", "unit", "n"].contains(&name);
        Template::read(&items.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(), &declared)
    }

    fn fill(items: &[&str], arguments: &str) -> Result<Vec<String>, Refusal> {
        template(items).unwrap().fill(&Arguments::read(arguments).unwrap())
    }

    #[test]
    fn values_are_literal_and_stay_one_item() {
        for value in ["'; rm -rf ~ #", "$(id)", "`id`", "${HOME}", "a\nb", "{unit}", "*", ""] {
            let arguments = format!(r#"{{"city":{},"unit":"C"}}"#, event::quoted(value));
            assert_eq!(fill(&["w", "{city}"], &arguments).unwrap(), ["w", value]);
            assert_eq!(
                fill(&["w", "--at={city}/{unit}"], &arguments).unwrap(),
                ["w".to_owned(), format!("--at={value}/C")]
            );
        }
    }

    #[test]
    fn other_values_are_their_json() {
        let args = r#"{"city":["a", {"b":1.50}],"n":23456789012345678901234,"unit":true}"#;
        assert_eq!(
            fill(&["w", "{city}", "{n}", "{unit}"], args).unwrap(),
            ["w", r#"["a",{"b":1.50}]"#, "23456789012345678901234", "true"]
        );
    }

    #[test]
    fn a_missing_argument_drops_its_item() {
        assert_eq!(fill(&["w", "--unit={unit}", "{city}", "end"], r#"{"unit":null}"#).unwrap(), ["w", "end"]);
    }

    #[test]
    fn a_value_is_never_an_option() {
        assert_eq!(fill(&["w", "{city}"], r#"{"city":"--output=/etc/x"}"#), Err(Refusal::Option("city".into())));
        assert_eq!(fill(&["w", "{city}{unit}"], r#"{"city":"","unit":"-x"}"#), Err(Refusal::Option("city".into())));
        assert_eq!(fill(&["w", "{n}"], r#"{"n":-5}"#), Err(Refusal::Option("n".into())));
        assert_eq!(fill(&["w", "--", "{city}"], r#"{"city":"-x"}"#).unwrap(), ["w", "--", "-x"]);
        assert_eq!(fill(&["w", "--c={city}"], r#"{"city":"-x"}"#).unwrap(), ["w", "--c=-x"]);
        // A "--" that a model writes does not protect the values after it.
        assert_eq!(
            fill(&["w", "{city}", "{unit}"], r#"{"city":"--","unit":"-x"}"#),
            Err(Refusal::Option("city".into()))
        );
    }

    #[test]
    fn an_item_longer_than_the_system_takes_is_refused_before_the_start() {
        let long = |n| format!(r#"{{"city":"{}"}}"#, "x".repeat(n));
        assert_eq!(fill(&["w", "{city}"], &long(131_072)), Err(Refusal::TooLong("city".into(), 131_072)));
        assert_eq!(fill(&["w", "{city}"], &long(131_071)).unwrap()[1].len(), 131_071);
    }

    #[test]
    fn mistakes_in_the_file_are_told_with_the_remedy() {
        assert!(template(&["{city}"]).unwrap_err().contains("the program itself"));
        assert!(template(&["w", "{ctiy}"]).unwrap_err().contains("{{ctiy}}"));
        assert!(template(&["w", "-{city}"]).unwrap_err().contains("--flag={city}"));
        assert!(template(&[]).unwrap_err().contains("empty") && template(&[""]).unwrap_err().contains("empty"));
    }

    #[test]
    fn braces_that_hold_no_name_are_text() {
        let argv = fill(&["w", "{print $1}", "{{city}}", "%{{http_code}}", "{}", "{", "a{b"], "{}").unwrap();
        assert_eq!(argv, ["w", "{print $1}", "{city}", "%{http_code}", "{}", "{", "a{b"]);
    }
}
