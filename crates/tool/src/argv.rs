//! A command line with placeholders for arguments. There is no shell: each item reaches the command
//! unchanged.
//!
//! - `{name}` is replaced by the value of that argument; text around it is kept
//!   (`https://host/{name}`).
//! - In an item that begins with `-`, an argument may only follow a `=`: `--unit={name}`.
//! - If a value would make its item begin with `-`, the call is rejected, unless an item `--` comes
//!   first.
//! - `--tag={tags*}` adds one item for each element of a list, and `--force{force?}` adds the item
//!   `--force` if the argument is `true`.
//! - A missing or `null` argument drops its own item and no other: write `--unit={unit}`, not
//!   `--unit`, `{unit}`. Dropping an item must not change the meaning of another item; see
//!   [`Template::check_places`].
//! - `{{name}}` is the literal text `{name}`. Braces around anything but a name are literal.
//! - A string is inserted as its text, any other value as JSON.

use super::argument::{ArgumentRefusal, Arguments, MAX_ITEM, plain};

/// A command line with placeholders for arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    items: Vec<Vec<ItemPart>>,
    /// For each item, how many times it is added.
    counts: Vec<ItemCount>,
}

/// How many times an item is added to the command line if its arguments are present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemCount {
    /// Once.
    Once,
    /// Once per element of a list argument: `--tag={tags*}`.
    Each,
    /// Once, without a value, if the argument is `true`: `--force{force?}`.
    IfTrue,
}

/// A part of a text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ItemPart {
    /// Literal text.
    Text(String),
    /// A placeholder for the argument with this name.
    Argument(String),
}

impl Template {
    /// Parses the items of a command. The first item is the program and must not contain a
    /// placeholder. `declared` returns whether the schema declares an argument with that name.
    ///
    /// # Errors
    /// Returns what is wrong and how to fix it, for the author of the tools file.
    pub fn read(command: &[String], declared: &dyn Fn(&str) -> bool) -> Result<Self, String> {
        let (mut items, mut counts) = (Vec::new(), Vec::new());
        for (n, item) in command.iter().enumerate() {
            if item.contains('\0') {
                return Err(format!(
                    "item {} of the command holds U+0000, leave it out",
                    n + 1
                ));
            }
            let (parts, count) = match counted(item, declared) {
                Some((parts, count)) if n > 0 => (parts, count),
                _ => (parts(item), ItemCount::Once),
            };
            counts.push(count);
            for part in &parts {
                let ItemPart::Argument(name) = part else {
                    continue;
                };
                if n == 0 {
                    return Err(
                        "the program itself must not come from an argument, write its name"
                            .to_owned(),
                    );
                }
                if !declared(name) {
                    return Err(format!(
                        "{{{name}}} in the command is not a declared argument, declare it under \
                         properties, or write {{{{{name}}}}} for the text itself"
                    ));
                }
            }
            if let [ItemPart::Text(text), ItemPart::Argument(name), ..] = &parts[..]
                && text.starts_with('-')
                && !text.contains('=')
            {
                return Err(format!(
                    "{item:?} lets an argument choose the option, write --flag={{{name}}}, or \
                     {{{name}}} as an item of its own after \"--\""
                ));
            }
            if count == ItemCount::Each && parts.len() == 1 && n + 1 < command.len() {
                return Err(format!(
                    "{item:?} is any number of items, and what follows it would move: put it \
                     last, or write --name={item}"
                ));
            }
            items.push(parts);
        }
        if command.first().is_none_or(String::is_empty) {
            return Err("the command is empty, give it at least a program".to_owned());
        }
        Ok(Template { items, counts })
    }

    /// Returns the program, or `None` if the template has no literal first item.
    pub fn program(&self) -> Option<&str> {
        match self.items.first().map(Vec::as_slice) {
            Some([ItemPart::Text(program)]) => Some(program),
            _ => None,
        }
    }

    /// Checks that no item changes its meaning when an item before it is dropped: `["cp", "--",
    /// "{from}", "{to}"]` without `from` would leave `cp` with only the destination. An item may be
    /// dropped if it carries its own name (`--unit={unit}`, `of={file}`), or if only options that
    /// carry their own values follow it. `always` returns whether every valid call has the argument
    /// with that name.
    ///
    /// # Errors
    /// Returns the item that may be dropped, the item that would move, and how to fix it, for the
    /// author of the tools file.
    pub fn check_places(&self, always: &dyn Fn(&str) -> bool) -> Result<(), String> {
        let mut only_operands = false;
        for (n, parts) in self.items.iter().enumerate().skip(1) {
            only_operands |= is_literal(parts, "--");
            let optional: Vec<_> = arguments(parts).filter(|name| !always(name)).collect();
            let Some(name) = optional
                .first()
                .filter(|_| !names_itself(parts, only_operands))
            else {
                continue;
            };
            // An item with the same arguments is dropped together with this one.
            let is_dropped_too = |later: &[ItemPart]| {
                optional
                    .iter()
                    .all(|name| arguments(later).any(|n| n == *name))
            };
            // If this item is dropped, the option before it would take the next item as its value.
            let fills_option = !only_operands && is_bare_option(&self.items[n - 1]);
            let mut after_dashes = only_operands;
            let moves = self
                .items
                .iter()
                .enumerate()
                .skip(n + 1)
                .find(|(_, later)| {
                    after_dashes |= is_literal(later, "--");
                    let is_fixed = is_literal(later, "--")
                        || !after_dashes && is_option(later)
                        || names_itself(later, after_dashes);
                    (fills_option || !is_fixed) && !is_dropped_too(later)
                });
            if let Some((m, _)) = moves {
                return Err(format!(
                    "item {} of the command has {{{name}}}, which may be missing, and item {} \
                     would move to its place: list {name:?} under \"required\" \
                     (with a type that does not allow null), write --flag={{{name}}}, or put it last",
                    n + 1,
                    m + 1
                ));
            }
        }
        Ok(())
    }

    /// Returns the command line with the arguments filled in. The first item is the program.
    ///
    /// # Errors
    /// Returns [`ArgumentRefusal::Option`] or [`ArgumentRefusal::TooLong`].
    pub fn fill(&self, arguments: &Arguments) -> Result<Vec<String>, ArgumentRefusal> {
        let mut argv = Vec::with_capacity(self.items.len());
        let mut only_operands = false; // a literal "--" was passed
        for (parts, count) in self.items.iter().zip(&self.counts) {
            let mut item = String::new();
            let mut last = "";
            let mut values = Vec::new();
            let mut complete = true;
            for part in parts {
                match part {
                    ItemPart::Text(text) => item.push_str(text),
                    ItemPart::Argument(name) => {
                        last = name;
                        match (arguments.get(name), count) {
                            (Some(value), ItemCount::Once) => item.push_str(&plain(value)),
                            (Some(value), ItemCount::IfTrue) => complete &= value.text() == "true",
                            (Some(value), ItemCount::Each) if value.is_array() => {
                                values.extend(value.items().map(plain));
                            }
                            (Some(value), ItemCount::Each) => values.push(plain(value)),
                            (None, _) => complete = false,
                        }
                    }
                }
            }
            if !complete {
                continue;
            }
            let filled = match count {
                ItemCount::Each => values
                    .iter()
                    .map(|value| format!("{item}{value}"))
                    .collect(),
                ItemCount::IfTrue => vec![item.trim_end_matches('=').to_owned()],
                ItemCount::Once => vec![item],
            };
            for item in filled {
                match parts.first() {
                    Some(ItemPart::Argument(name)) if item.starts_with('-') && !only_operands => {
                        return Err(ArgumentRefusal::Option(name.clone()));
                    }
                    Some(ItemPart::Text(_))
                        if parts.len() == 1 && item == "--" && !argv.is_empty() =>
                    {
                        only_operands = true
                    }
                    _ => {}
                }
                if item.len() > MAX_ITEM {
                    return Err(ArgumentRefusal::TooLong(last.to_owned(), item.len()));
                }
                argv.push(item);
            }
        }
        Ok(argv)
    }
}

/// Parses an item of the form `{name*}`, `--text={name*}` or `--text{name?}` into its parts and its
/// count. Returns `None` for any other item: braces around anything but the name of a declared
/// argument are literal.
fn counted(item: &str, declared: &dyn Fn(&str) -> bool) -> Option<(Vec<ItemPart>, ItemCount)> {
    let (text, rest) = item.split_once('{')?;
    let inner = rest.strip_suffix('}')?;
    let is_option = text.starts_with('-');
    let (name, count) = match (inner.strip_suffix('*'), inner.strip_suffix('?')) {
        (Some(name), _) if text.is_empty() || is_option && text.ends_with('=') => {
            (name, ItemCount::Each)
        }
        (_, Some(name)) if is_option && !text.contains('=') => (name, ItemCount::IfTrue),
        _ => return None,
    };
    if !declared(name) {
        return None;
    }
    // Stored as an option with a value, so that `check_places` treats the flag like one.
    let text = match count {
        ItemCount::IfTrue => format!("{text}="),
        _ => text.to_owned(),
    };
    let parts = [ItemPart::Text(text), ItemPart::Argument(name.to_owned())];
    let is_empty = |part: &ItemPart| matches!(part, ItemPart::Text(text) if text.is_empty());
    Some((
        parts.into_iter().filter(|part| !is_empty(part)).collect(),
        count,
    ))
}

/// Returns the names of an item's arguments.
fn arguments(parts: &[ItemPart]) -> impl Iterator<Item = &String> {
    parts.iter().filter_map(|part| {
        if let ItemPart::Argument(name) = part {
            Some(name)
        } else {
            None
        }
    })
}

fn is_literal(parts: &[ItemPart], text: &str) -> bool {
    matches!(parts, [ItemPart::Text(only)] if only == text)
}

/// Whether an item has the same meaning at any position: `--name=…`, or `name=…` as dd and make
/// parse it. After `--` only the second form does.
fn names_itself(parts: &[ItemPart], only_operands: bool) -> bool {
    let Some(ItemPart::Text(text)) = parts.first() else {
        return false;
    };
    let Some((name, _)) = text.split_once('=') else {
        return false;
    };
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
    };
    is_name(name.trim_start_matches('-')) && !(only_operands && name.starts_with('-'))
}

/// Whether an item is an option, that is, its literal text begins with `-`.
fn is_option(parts: &[ItemPart]) -> bool {
    matches!(parts.first(), Some(ItemPart::Text(text)) if text.starts_with('-') && text.len() > 1)
}

/// Whether an item is an option that may take the next item as its value, such as `-o` or `--unit`.
fn is_bare_option(parts: &[ItemPart]) -> bool {
    matches!(parts, [ItemPart::Text(text)] if text.starts_with('-') && text.len() > 1 && text != "--" && !text.contains('='))
}

/// Splits an item at its placeholders.
pub(crate) fn parts(item: &str) -> Vec<ItemPart> {
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

/// Returns the name at the start of `text` if a closing brace follows it, or `None` otherwise.
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
        Template::read(
            &items.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(),
            &declared,
        )
    }

    fn fill(items: &[&str], arguments: &str) -> Result<Vec<String>, ArgumentRefusal> {
        template(items)
            .unwrap()
            .fill(&Arguments::read(arguments).unwrap())
    }

    #[test]
    fn values_are_literal_and_stay_one_item() {
        for value in [
            "'; rm -rf ~ #",
            "$(id)",
            "`id`",
            "${HOME}",
            "a\nb",
            "{unit}",
            "*",
            "",
        ] {
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
            [
                "w",
                r#"["a",{"b":1.50}]"#,
                "23456789012345678901234",
                "true"
            ]
        );
    }

    #[test]
    fn a_missing_argument_drops_its_item() {
        assert_eq!(
            fill(&["w", "--unit={unit}", "{city}", "end"], r#"{"unit":null}"#).unwrap(),
            ["w", "end"]
        );
    }

    #[test]
    fn a_list_is_items_and_a_flag_is_an_item() {
        let list = r#"{"city":["a b","-c",{"x":1}],"unit":true}"#;
        let command = ["w", "--at={city*}", "--force{unit?}", "--", "{city*}"];
        let want = [
            "w",
            "--at=a b",
            "--at=-c",
            r#"--at={"x":1}"#,
            "--force",
            "--",
            "a b",
            "-c",
            r#"{"x":1}"#,
        ];
        assert_eq!(fill(&command, list).unwrap(), want);
        assert_eq!(
            fill(&command, r#"{"city":[],"unit":false}"#).unwrap(),
            ["w", "--"]
        );
        assert_eq!(fill(&command, "{}").unwrap(), ["w", "--"]);
        assert_eq!(
            fill(&["w", "{city*}"], list),
            Err(ArgumentRefusal::Option("city".to_owned()))
        );
        let moved = template(&["w", "{city*}", "{unit}"]).unwrap_err();
        assert!(moved.contains("put it last"), "{moved}");
        // What no argument is called stays text, as it was.
        assert_eq!(
            fill(&["jq", "{other?}", "-n{other?}", "{other*}"], "{}").unwrap(),
            ["jq", "{other?}", "-n{other?}", "{other*}"]
        );
    }

    #[test]
    fn no_operand_moves_to_the_place_of_one_that_is_missing() {
        let places = |items: &[&str], always: &[&str]| {
            template(items)
                .unwrap()
                .check_places(&|name| always.contains(&name))
        };
        for items in [
            &["cp", "--", "{city}", "{unit}"][..],
            &["cp", "{city}", "{unit}"],
            &["cp", "{city}", "--", "{unit}"],
            &["cp", "{city}", "end"],
            &["cp", "{city}", "-o", "out"],
            &["cp", "{city}{n}", "{unit}"],
            &["cp", "http://host/?q={city}", "{unit}"],
            // The option would take the next item for its value.
            &["cp", "--at", "{city}", "--unit={unit}"],
            &["cp", "--at", "{city}", "--", "{unit}"],
            // After "--" it is not an option.
            &["cp", "--", "--at={city}", "{unit}"],
            &["cp", "{city}", "--", "--unit={unit}"],
            &["cp", "{city}", "-"],
        ] {
            let said = places(items, &["unit", "n"]).unwrap_err();
            assert!(
                said.contains("{city}, which may be missing") && said.contains("put it last"),
                "{items:?}: {said}"
            );
            assert_eq!(places(items, &["city", "unit", "n"]), Ok(()), "{items:?}");
        }
        for items in [
            &["w", "{city}"][..],
            &["w", "--at", "{city}"],
            &["w", "-v", "{n}", "--", "{city}"],
            &["w", "--at={city}", "{unit}"],
            &["w", "--at={city}", "--", "{unit}"],
            &["w", "{unit}", "{city}", "-v", "--n={n}"],
            &["dd", "if={city}", "of={unit}"],
            &["env", "--", "A={city}", "{unit}"],
            &["w", "{unit}", "end", "http://host/{city}"],
            &["w", "{city}", "{city}", "{unit}{city}"],
        ] {
            assert_eq!(places(items, &["unit", "n"]), Ok(()), "{items:?}");
        }
        assert!(places(&["w", "{city}", "{unit}"], &[]).is_err());
        assert!(places(&["w", "{city}{unit}", "{city}"], &[]).is_err());
    }

    #[test]
    fn a_value_is_never_an_option() {
        assert_eq!(
            fill(&["w", "{city}"], r#"{"city":"--output=/etc/x"}"#),
            Err(ArgumentRefusal::Option("city".into()))
        );
        assert_eq!(
            fill(&["w", "{city}{unit}"], r#"{"city":"","unit":"-x"}"#),
            Err(ArgumentRefusal::Option("city".into()))
        );
        assert_eq!(
            fill(&["w", "{n}"], r#"{"n":-5}"#),
            Err(ArgumentRefusal::Option("n".into()))
        );
        assert_eq!(
            fill(&["w", "--", "{city}"], r#"{"city":"-x"}"#).unwrap(),
            ["w", "--", "-x"]
        );
        assert_eq!(
            fill(&["w", "--c={city}"], r#"{"city":"-x"}"#).unwrap(),
            ["w", "--c=-x"]
        );
        // A "--" that a model writes does not protect the values after it.
        assert_eq!(
            fill(&["w", "{city}", "{unit}"], r#"{"city":"--","unit":"-x"}"#),
            Err(ArgumentRefusal::Option("city".into()))
        );
    }

    #[test]
    fn an_item_longer_than_the_system_takes_is_refused_before_the_start() {
        let long = |n| format!(r#"{{"city":"{}"}}"#, "x".repeat(n));
        assert_eq!(
            fill(&["w", "{city}"], &long(131_072)),
            Err(ArgumentRefusal::TooLong("city".into(), 131_072))
        );
        assert_eq!(
            fill(&["w", "{city}"], &long(131_071)).unwrap()[1].len(),
            131_071
        );
    }

    #[test]
    fn mistakes_in_the_file_are_told_with_the_remedy() {
        assert!(
            template(&["{city}"])
                .unwrap_err()
                .contains("the program itself")
        );
        assert!(template(&["w", "{ctiy}"]).unwrap_err().contains("{{ctiy}}"));
        assert!(
            template(&["w", "-{city}"])
                .unwrap_err()
                .contains("--flag={city}")
        );
        assert!(
            template(&[]).unwrap_err().contains("empty")
                && template(&[""]).unwrap_err().contains("empty")
        );
    }

    #[test]
    fn braces_that_hold_no_name_are_text() {
        let argv = fill(
            &[
                "w",
                "{print $1}",
                "{{city}}",
                "%{{http_code}}",
                "{}",
                "{",
                "a{b",
            ],
            "{}",
        )
        .unwrap();
        assert_eq!(
            argv,
            [
                "w",
                "{print $1}",
                "{city}",
                "%{http_code}",
                "{}",
                "{",
                "a{b"
            ]
        );
    }
}
