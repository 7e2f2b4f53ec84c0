//! The crate `jsonschema`, for the schemas that `own.rs` leaves to it.
//!
//! The crate has no limit of time. Alternatives and references that lead to each other multiply:
//! thirty pairs of references, 2 kB of schema, are a billion steps. So the steps of a validation are
//! counted before it, on the same value.

use super::fault::{self, About, Fault};
use super::own::{Exhausted, MAX_OPEN, MAX_STEPS};
use super::references::References;
use super::size::{MAX_PATTERN_SIZE, SchemaError, cut, short};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// A schema that the crate compiled.
#[derive(Debug)]
pub(super) struct Library(Validator);

impl Library {
    /// Compiles a schema.
    ///
    /// # Errors
    /// It is not valid.
    pub(super) fn new(root: &Value) -> Result<Library, SchemaError> {
        jsonschema::options()
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(MAX_PATTERN_SIZE)
                    .dfa_size_limit(MAX_PATTERN_SIZE),
            )
            .build(root)
            .map(Library)
            .map_err(|e| SchemaError::Invalid(invalid(&e)))
    }

    /// Whether `value` fits.
    ///
    /// # Errors
    /// It could take more steps than `most`.
    pub(super) fn fits(&self, root: &Value, value: &Value, most: u64) -> Result<bool, Exhausted> {
        Count::new(root, most, true).schema(root, value)?;
        Ok(self.0.is_valid(value))
    }

    /// What does not fit.
    ///
    /// # Errors
    /// It could take too many steps.
    pub(super) fn faults(&self, root: &Value, value: &Value) -> Result<Vec<Fault>, Exhausted> {
        // The crate remembers nothing while it lists errors.
        Count::new(root, MAX_STEPS, false).schema(root, value)?;
        Ok(self.0.iter_errors(value).map(|e| of(&e)).collect())
    }

    /// Whether a fault of the member at `place` depends on no condition.
    pub(super) fn has_fault(&self, root: &Value, value: &Value, place: &str) -> bool {
        let is_about_it = |error: ValidationError<'_>| {
            let path = error.evaluation_path().to_string();
            let conditional = |step: &str| {
                matches!(step, "if" | "then" | "else" | "anyOf" | "oneOf" | "not")
                    || step.starts_with("dependent")
            };
            let (before, _) = path.split_once("/properties/").unwrap_or(("/not", ""));
            error.instance_path().to_string() == place && !before.split('/').any(conditional)
        };
        Count::new(root, MAX_STEPS, false)
            .schema(root, value)
            .is_ok()
            && self.0.iter_errors(value).any(is_about_it)
    }
}

/// The message for an invalid schema. It names the place of the error in the schema.
fn invalid(error: &ValidationError<'_>) -> String {
    let what = match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => format!(
            "{} is no pattern that can be matched in linear time (no look-around, no back-reference, not too large)",
            cut(&error.instance().to_string(), 100)
        ),
        _ => error.to_string(),
    };
    let path = error.instance_path().to_string();
    short(&if path.is_empty() {
        what
    } else {
        format!("{path}: {what}")
    })
}

/// An error of the crate.
fn of(error: &ValidationError<'_>) -> Fault {
    Fault {
        path: error.instance_path().to_string(),
        message: message(error),
        about: match error.kind() {
            ValidationErrorKind::Required { property } => {
                About::Missing(property.as_str().unwrap_or_default().to_owned())
            }
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                About::Unexpected(unexpected.clone())
            }
            _ => About::Value,
        },
    }
}

fn message(error: &ValidationError<'_>) -> String {
    let value = error.instance();
    match error.kind() {
        ValidationErrorKind::Type { kind } => match kind {
            TypeKind::Single(one) => fault::not_of_type([one.as_str()].into_iter(), value),
            TypeKind::Multiple(many) => fault::not_of_type(many.iter().map(|t| t.as_str()), value),
        },
        ValidationErrorKind::Enum { options } => fault::not_one_of(options, value),
        ValidationErrorKind::Constant { expected_value } => {
            fault::not_constant(expected_value, value)
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            fault::none_of(
                context
                    .iter()
                    .filter_map(|errors| errors.first())
                    .map(message),
            )
        }
        _ => fault::given(&error.masked().to_string(), value),
    }
}

/// A count of the steps that the crate takes at most. It follows every alternative, and each name
/// to the schemas of all patterns.
struct Count<'s> {
    references: References<'s>,
    /// The parts in place of each schema, which take long to find.
    places: HashMap<*const Value, Rc<[&'s Value]>>,
    steps: u64,
    open: u32,
    /// The targets of references that are being counted, and those among them that a reference
    /// below them leads to. The crate looks at each of the latter once for each list and object, if
    /// it `remembers`.
    targets: Vec<*const Value>,
    recursive: HashSet<*const Value>,
    known: HashSet<(*const Value, *const Value)>,
    remembers: bool,
}

impl<'s> Count<'s> {
    fn new(root: &'s Value, steps: u64, remembers: bool) -> Count<'s> {
        Count {
            references: References::new(root),
            places: HashMap::new(),
            steps,
            open: 0,
            targets: Vec::new(),
            recursive: HashSet::new(),
            known: HashSet::new(),
            remembers,
        }
    }

    fn spend(&mut self, steps: usize) -> Result<(), Exhausted> {
        self.steps = self.steps.checked_sub(steps as u64).ok_or(Exhausted)?;
        Ok(())
    }

    fn schema(&mut self, schema: &'s Value, value: &Value) -> Result<(), Exhausted> {
        self.spend(4 + value.as_str().map_or(0, str::len) / 32)?;
        let Value::Object(members) = schema else {
            return Ok(());
        };
        self.open += 1;
        if self.open > MAX_OPEN {
            return Err(Exhausted);
        }
        // What was evaluated is found out again by each keyword that asks for it.
        let marks = ["unevaluatedProperties", "unevaluatedItems"];
        let marks = marks
            .iter()
            .filter(|key| members.contains_key(**key))
            .count();
        let places = self.places.entry(std::ptr::from_ref(schema));
        let places = places.or_insert_with(|| self.references.in_place(members).into());
        for part in places.clone().iter() {
            for _ in 0..=2 * marks {
                self.in_place(part, value)?;
            }
        }
        for (key, argument) in members {
            self.below(key, argument, members, value)?;
        }
        self.open -= 1;
        Ok(())
    }

    fn in_place(&mut self, part: &'s Value, value: &Value) -> Result<(), Exhausted> {
        let address = std::ptr::from_ref(part);
        self.spend(self.targets.len() / 32)?;
        if self.targets.contains(&address) {
            self.recursive.insert(address);
        }
        let is_kept = value.is_array() || value.is_object();
        if self.remembers
            && is_kept
            && self.recursive.contains(&address)
            && !self.known.insert((address, std::ptr::from_ref(value)))
        {
            return Ok(());
        }
        self.targets.push(address);
        self.schema(part, value)?;
        self.targets.pop();
        Ok(())
    }

    /// The keywords of a schema for what is in the value.
    fn below(
        &mut self,
        key: &str,
        argument: &'s Value,
        schema: &'s Map<String, Value>,
        value: &Value,
    ) -> Result<(), Exhausted> {
        match (key, argument, value) {
            ("properties", Value::Object(declared), Value::Object(members)) => {
                self.spend(declared.len().min(members.len()))?;
                for (name, member) in members {
                    if let Some(schema) = declared.get(name) {
                        self.schema(schema, member)?;
                    }
                }
            }
            ("patternProperties", Value::Object(patterns), Value::Object(members)) => {
                for (name, member) in members {
                    for schema in patterns.values() {
                        self.spend(name.len())?;
                        self.schema(schema, member)?;
                    }
                }
            }
            ("propertyNames", schema, Value::Object(members)) => {
                for name in members.keys() {
                    self.schema(schema, &Value::from(name.as_str()))?;
                }
            }
            ("additionalProperties" | "unevaluatedProperties", other, Value::Object(members)) => {
                let patterns = schema.get("patternProperties").and_then(Value::as_object);
                for (name, member) in members {
                    self.spend(1 + name.len() * patterns.map_or(0, Map::len))?;
                    self.schema(other, member)?;
                }
            }
            ("items" | "prefixItems", Value::Array(schemas), Value::Array(items)) => {
                for (schema, item) in schemas.iter().zip(items) {
                    self.schema(schema, item)?;
                }
            }
            (
                "items" | "additionalItems" | "contains" | "unevaluatedItems",
                schema,
                Value::Array(items),
            ) => {
                for item in items {
                    self.schema(schema, item)?;
                }
            }
            ("pattern", Value::String(pattern), Value::String(text)) => {
                self.spend(text.len().saturating_mul(1 + pattern.len() / 32))?;
            }
            ("uniqueItems", _, Value::Array(_)) => self.spend(8 * parts(value))?,
            ("enum" | "const", data, _) => self.spend(parts(data))?,
            ("required" | "dependentRequired" | "dependencies", _, Value::Object(_)) => {
                self.spend(parts(argument))?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// How many values a value holds.
fn parts(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(parts).sum::<usize>() + 1,
        Value::Object(members) => members.values().map(parts).sum::<usize>() + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::own::{Own, most_steps};
    use crate::schema::size::Size;
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};
    use serde_json::json;
    use std::path::Path;

    /// Both validators have the same verdicts and faults; `is_any` schema may list its keywords in any
    /// order. Returns `false` if ours does not take the schema.
    fn agree(schema: &Value, values: &[Value], is_any: bool) -> bool {
        let Ok(own) = Own::new(schema) else {
            return false;
        };
        let library = Library::new(schema).unwrap();
        let most = most_steps(0);
        for value in values {
            let what = || format!("{schema} {value}");
            let fits = own.fits(schema, value, most);
            assert_eq!(fits, library.fits(schema, value, most), "{}", what());
            if fits == Ok(true) {
                continue;
            }
            let sorted = |faults: Result<Vec<Fault>, Exhausted>| {
                let mut faults = faults.unwrap();
                for fault in &mut faults {
                    // The two validators list faults in different orders, and this message quotes
                    // the first fault of each form.
                    if is_any && fault.message.starts_with("fits none") {
                        fault.message.clear();
                    }
                }
                faults.sort_by_key(|fault| format!("{fault:?}"));
                faults
            };
            let ours = sorted(own.faults(schema, value));
            assert!(!ours.is_empty(), "{}", what());
            if !has_other_words(schema) {
                assert_eq!(ours, sorted(library.faults(schema, value)), "{}", what());
            }
        }
        true
    }

    /// Whether the crate has other words for a fault: for a name that does not fit, for a member where
    /// the schema lists none, and where a member is both required and not allowed, which it calls
    /// missing.
    fn has_other_words(schema: &Value) -> bool {
        match schema {
            Value::Array(all) => all.iter().any(has_other_words),
            Value::Object(members) => {
                let declared = members.get("properties");
                let required = members.get("required").and_then(Value::as_array);
                let mut required = required.into_iter().flatten().filter_map(Value::as_str);
                let no_other = members.get("additionalProperties") == Some(&Value::Bool(false));
                no_other
                    && (declared.is_none()
                        || required.any(|name| declared.is_some_and(|d| d.get(name).is_none())))
                    || members.contains_key("propertyNames")
                    || members.values().any(has_other_words)
            }
            _ => false,
        }
    }

    /// Everything in the fixtures that is the schema of a tool or the arguments of a call.
    #[derive(Default)]
    struct Found {
        schemas: HashMap<String, Value>,
        arguments: HashMap<String, Value>,
    }

    impl Found {
        fn folder(&mut self, folder: &Path) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    self.folder(&path);
                } else if let Ok(text) = std::fs::read_to_string(&path) {
                    match serde_json::from_str(&text) {
                        Ok(value) => self.value(&value),
                        Err(_) => text.lines().for_each(|line| self.text(line)),
                    }
                }
            }
        }

        fn text(&mut self, text: &str) {
            let text = text.trim_start_matches("data:").trim_start();
            if text.starts_with(['{', '['])
                && let Ok(value) = serde_json::from_str(text)
            {
                self.value(&value);
            }
        }

        fn value(&mut self, value: &Value) {
            match value {
                Value::Array(items) => items.iter().for_each(|item| self.value(item)),
                Value::Object(members) => {
                    for (key, value) in members {
                        let decoded = value
                            .as_str()
                            .and_then(|text| serde_json::from_str(text).ok());
                        let value = decoded.as_ref().unwrap_or(value);
                        let list = match key.as_str() {
                            "parameters" | "input_schema" | "inputSchema" => &mut self.schemas,
                            "arguments" | "input" | "args" => &mut self.arguments,
                            _ => {
                                self.value(value);
                                continue;
                            }
                        };
                        if value.is_object() {
                            list.insert(value.to_string(), value.clone());
                        }
                    }
                }
                Value::String(text) => self.text(text),
                _ => {}
            }
        }
    }

    /// The value, and others that differ from it at one place.
    fn mutations(value: &Value) -> Vec<Value> {
        let mut all = vec![value.clone()];
        let others = [
            json!(null),
            json!(7),
            json!(-1.5),
            json!("x"),
            json!([]),
            json!({}),
        ];
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    let mut less = members.clone();
                    less.remove(key);
                    all.push(Value::Object(less));
                    for other in mutations(member) {
                        let mut changed = members.clone();
                        changed.insert(key.clone(), other);
                        all.push(Value::Object(changed));
                    }
                }
                let mut more = members.clone();
                more.insert("another".to_owned(), json!(1));
                all.push(Value::Object(more));
            }
            Value::Array(items) => {
                for (n, item) in items.iter().enumerate().take(3) {
                    for other in mutations(item) {
                        let mut changed = items.clone();
                        changed[n] = other;
                        all.push(Value::Array(changed));
                    }
                }
            }
            _ => {}
        }
        all.extend(others);
        all
    }

    #[test]
    fn the_tools_of_the_fixtures_have_the_same_verdicts() {
        let mut found = Found::default();
        found.folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures"));
        // A call of each tool with the parameters that it declares, beside those that were recorded.
        let mut values: Vec<Value> = found.arguments.into_values().collect();
        values.sort_by_key(Value::to_string);
        let (mut own, mut all, mut tried) = (0, 0, 0);
        for mut schema in found.schemas.into_values() {
            if Size::default().schema(&mut schema, 0).is_err()
                || References::new(&schema).check().is_err()
            {
                continue;
            }
            all += 1;
            let declared = schema.get("properties").and_then(Value::as_object).cloned();
            let declared = declared.unwrap_or_default();
            // Arguments that share no name with the schema have all the same faults.
            let shares = |value: &&Value| {
                declared.is_empty() || declared.keys().any(|key| value.get(key).is_some())
            };
            let mut near: Vec<Value> = values
                .iter()
                .filter(shares)
                .take(20)
                .flat_map(mutations)
                .collect();
            let sample = declared
                .iter()
                .map(|(key, schema)| (key.clone(), sample(schema)));
            near.extend(mutations(&Value::Object(sample.collect())));
            tried += near.len();
            own += usize::from(agree(&schema, &near, false));
        }
        println!("{own} of {all} schemas, {tried} values");
        assert!(
            own > 30 && tried > 3_000,
            "{own} of {all} schemas, {tried} values"
        );
    }

    /// A value that may fit.
    fn sample(schema: &Value) -> Value {
        if let Some(option) = schema.get("enum").and_then(|options| options.get(0)) {
            return option.clone();
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("integer" | "number") => json!(3),
            Some("boolean") => json!(true),
            Some("array") => json!([schema.get("items").map_or(json!(1), sample)]),
            Some("object") => {
                let members = schema.get("properties").and_then(Value::as_object);
                let members = members.into_iter().flatten();
                Value::Object(
                    members
                        .map(|(key, schema)| (key.clone(), sample(schema)))
                        .collect(),
                )
            }
            _ => json!("text"),
        }
    }

    const NAMES: [&str; 4] = ["a", "b/~", "c", "x y"];

    fn number() -> impl Strategy<Value = Value> {
        let texts = [
            "0",
            "1",
            "-1",
            "2.5",
            "1.0",
            "1e1",
            "10",
            "-0.5",
            "3",
            "0.01",
            "12345678901234567890",
        ];
        select(texts.to_vec()).prop_map(|text| serde_json::from_str(text).unwrap())
    }

    fn value() -> impl Strategy<Value = Value> {
        let texts = ["", "a", "ab", "abc", "é", "A1 ", "1-2"];
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            number(),
            select(texts.to_vec()).prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((select(&NAMES[..]), inner), 0..4).prop_map(|members| {
                    Value::Object(
                        members
                            .into_iter()
                            .map(|(k, v)| (k.to_owned(), v))
                            .collect(),
                    )
                }),
            ]
        })
    }

    /// Keywords with their values, of which a schema has some.
    fn schema() -> impl Strategy<Value = Value> {
        let types = [
            "null", "boolean", "integer", "number", "string", "array", "object",
        ];
        let limits = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
        let lengths = [
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
        ];
        let patterns = [
            "^a",
            "b$",
            r"^\w+$",
            r"^[^a-c]*$",
            r"\d-\d|é",
            "^(?:ab?){1,2}c?$",
            "^.{2}$",
            r"\s",
        ];
        let references = ["#", "#/$defs/x", "#/$defs/y", "#/properties/b~1~0"];
        let keyword = |key: &'static str, value: Value| (key.to_owned(), value);
        let leaf = prop_oneof![
            select(types.to_vec()).prop_map(move |name| keyword("type", json!(name))),
            subsequence(types.to_vec(), 1..4).prop_map(move |names| keyword("type", json!(names))),
            prop::collection::vec(value(), 1..4)
                .prop_map(move |options| keyword("enum", json!(options))),
            value().prop_map(move |constant| keyword("const", constant)),
            (select(limits.to_vec()), number()).prop_map(move |(key, limit)| keyword(key, limit)),
            (select(lengths.to_vec()), 0..4)
                .prop_map(move |(key, limit)| keyword(key, json!(limit))),
            select(&["1", "2", "0.5", "0.01", "3"][..])
                .prop_map(move |text| keyword("multipleOf", serde_json::from_str(text).unwrap())),
            select(patterns.to_vec()).prop_map(move |pattern| keyword("pattern", json!(pattern))),
            subsequence(&NAMES[..], 0..4).prop_map(move |names| keyword("required", json!(names))),
            select(references.to_vec())
                .prop_map(move |reference| keyword("$ref", json!(reference))),
            Just(keyword("format", json!("date"))),
        ];
        let object = |members: Vec<(String, Value)>| Value::Object(members.into_iter().collect());
        let leaves = prop::collection::vec(leaf.clone(), 0..3).prop_map(object);
        let leaves = prop_oneof![8 => leaves, 1 => any::<bool>().prop_map(Value::from)];
        leaves.prop_recursive(3, 24, 4, move |inner| {
            let forms = ["anyOf", "oneOf", "allOf"];
            let named = prop::collection::vec((select(&NAMES[..]), inner.clone()), 0..4);
            let applicator = prop_oneof![
                named.prop_map(move |named| {
                    let named: Map<_, _> =
                        named.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
                    keyword("properties", Value::Object(named))
                }),
                (
                    select(&["additionalProperties", "items", "propertyNames"][..]),
                    inner.clone()
                )
                    .prop_map(move |(key, schema)| keyword(key, schema)),
                Just(keyword("additionalProperties", json!(false))),
                (select(forms.to_vec()), prop::collection::vec(inner, 1..4))
                    .prop_map(move |(key, all)| keyword(key, json!(all))),
            ];
            prop::collection::vec(prop_oneof![leaf.clone(), applicator], 0..5).prop_map(object)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        #[test]
        fn any_schema_has_the_same_verdicts(
            schema in schema(), x in schema(), y in schema(), values in prop::collection::vec(value(), 1..8), is_draft_7: bool,
        ) {
            let mut schema = schema;
            if let Value::Object(members) = &mut schema {
                members.insert("$defs".to_owned(), json!({"x": x, "y": y}));
                let b = members.entry("properties").or_insert(json!({}));
                b.as_object_mut().unwrap().entry("b/~").or_insert(json!({"type": "string"}));
                if is_draft_7 {
                    members.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
                }
            }
            // What refers to itself at one value is refused before either of them sees it.
            if References::new(&schema).check().is_ok() {
                prop_assert!(agree(&schema, &values, true), "{schema} is not taken");
            }
        }
    }
}
