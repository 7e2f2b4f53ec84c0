//! An OpenAPI document (<https://spec.openapis.org/oas/v3.1.1.html>) as tools that send requests:
//! each operation is a tool.

use anyhow::{Context, bail};
use event::Glob;
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::collections::HashSet;
use std::net::IpAddr;
use tool::Tools;

/// The methods of operations that are tools, with the class of what they may do.
const METHODS: [(&str, &str); 5] = [
    ("get", "read"),
    ("post", "write"),
    ("put", "write"),
    ("patch", "write"),
    ("delete", "danger"),
];

/// How many tools a document may have: the most that providers take.
const MOST: usize = 128;

/// How deep a schema may be, with what its references lead to. What is deeper may be anything.
const DEEPEST: usize = 12;

/// How many schemas a tool may have.
const LARGEST: usize = 2_000;

/// The longest name of a tool that all providers take.
const LONGEST_NAME: usize = 64;

/// What of a schema describes its documentation, and is of no use to a model.
const OMITTED: [&str; 6] = [
    "example",
    "examples",
    "xml",
    "externalDocs",
    "discriminator",
    "deprecated",
];

/// Whether a text is an OpenAPI document, of any version.
pub(crate) fn is_document(root: &Value) -> bool {
    ["openapi", "swagger"]
        .iter()
        .any(|name| root.get(name).is_some_and(Value::is_string))
}

/// The entries of the tools of a document whose names match one of `globs` (all without any), and
/// why other operations cannot be tools. `base` is the address of the document, if it has one.
///
/// # Errors
/// A document that cannot be used, or of which no operation or too many match.
pub(crate) fn tools(
    root: &Value,
    base: Option<&str>,
    globs: &[&str],
) -> anyhow::Result<(Vec<Value>, Vec<String>)> {
    if root.get("openapi").is_none() {
        bail!("it is of OpenAPI 2 (Swagger), convert it to OpenAPI 3");
    }
    let globs: Vec<Glob> = globs.iter().map(|glob| Glob::new(glob)).collect();
    let document = Document {
        root,
        base,
        left: Cell::new(0),
    };
    let (mut tools, mut left_out, mut names) = (Vec::new(), Vec::new(), Vec::new());
    let mut known = HashSet::new();
    let mut count = 0;
    let paths = root.get("paths").and_then(Value::as_object);
    for (path, item) in paths.context("it has no paths")? {
        let item = document.resolved(item).unwrap_or(item);
        for (method, class) in METHODS {
            let Some(operation) = item.get(method) else {
                continue;
            };
            let name = name_of(operation, method, path);
            if !globs.is_empty() && !globs.iter().any(|glob| glob.matches(&name)) {
                names.push(name);
                continue;
            }
            if known.contains(&name) {
                left_out.push(format!(
                    "the second operation {name:?} is left out, rename it"
                ));
                continue;
            }
            if count > MOST {
                // They are too many already: the others are only counted.
                count += usize::from(known.insert(name));
                continue;
            }
            match document.tool(&name, (method, class), path, item, operation) {
                Ok(tool) => {
                    tools.push(tool);
                    known.insert(name);
                    count += 1;
                }
                Err(e) => left_out.push(format!("the operation {name:?} is left out: {e:#}")),
            }
        }
    }
    match (count, names.len()) {
        (0, 0) if left_out.is_empty() => bail!("it has no operation"),
        (0, 0) => bail!("{}", left_out.join("; ")),
        (0, _) if left_out.is_empty() => {
            names.truncate(8);
            bail!("no operation matches, it has {}, …", names.join(", "))
        }
        (0, _) => bail!("{}", left_out.join("; ")),
        (1..=MOST, _) => Ok((tools, left_out)),
        _ => bail!(
            "{count} operations, and a model takes {MOST} tools at most; choose some: \
             #GLOB[,GLOB…] after its name, as in api.json#list*,getHut"
        ),
    }
}

/// The name of the tool of an operation: its id, else its method and its path.
fn name_of(operation: &Value, method: &str, path: &str) -> String {
    let id = operation.get("operationId").and_then(Value::as_str);
    let text = id.map_or_else(|| format!("{method}_{path}"), str::to_owned);
    let mut name = String::new();
    for c in text.chars().filter(|c| !"{}".contains(*c)) {
        match c {
            c if c.is_ascii_alphanumeric() || c == '-' || c == '_' => name.push(c),
            _ if name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    name.truncate(LONGEST_NAME);
    name.trim_end_matches('_').to_owned()
}

/// A document.
struct Document<'d> {
    root: &'d Value,
    base: Option<&'d str>,
    /// How many schemas the tool at hand may still have: references multiply.
    left: Cell<usize>,
}

/// Where a parameter goes.
struct Places {
    /// The path with a place for each of its parameters.
    path: String,
    /// The pairs of the query.
    query: Vec<String>,
}

impl<'d> Document<'d> {
    /// What a reference leads to; the value itself where it is not one.
    fn resolved(&self, value: &'d Value) -> anyhow::Result<&'d Value> {
        let mut value = value;
        for _ in 0..DEEPEST {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else {
                return Ok(value);
            };
            let place = reference.strip_prefix('#').with_context(|| {
                format!(
                    "{reference} is in another document, which is not read; bundle them into one"
                )
            })?;
            let place = percent_decoded(place);
            value = self
                .root
                .pointer(&place)
                .with_context(|| format!("{reference} leads nowhere"))?;
        }
        bail!("its references go round in a circle")
    }

    /// The entry of an operation.
    fn tool(
        &self,
        name: &str,
        (method, class): (&str, &str),
        path: &str,
        item: &'d Value,
        operation: &'d Value,
    ) -> anyhow::Result<Value> {
        self.left.set(LARGEST);
        let mut properties = Map::new();
        let mut required: Vec<String> = Vec::new();
        let mut places = Places {
            path: path.to_owned(),
            query: Vec::new(),
        };
        for parameter in self.parameters(item, operation)? {
            self.add_parameter(parameter, &mut places, &mut properties, &mut required)?;
        }
        let body = match operation.get("requestBody") {
            None => json!(false),
            Some(body) => {
                let body = self.resolved(body)?;
                self.add_body(body, &mut properties, &mut required)?
            }
        };
        if !places.path.starts_with('/') {
            // "http://local" and "host/x" would be an address of another server.
            bail!("its path does not begin with /");
        }
        let mut url = self.server(item, operation)? + &places.path;
        for (number, pair) in places.query.iter().enumerate() {
            url.push(if number == 0 { '?' } else { '&' });
            url.push_str(pair);
        }
        if is_of_this_machine(&url) && self.base.is_some_and(|base| !is_of_this_machine(base)) {
            bail!("its address is {url}, this machine, and the document comes from another one");
        }
        let text = |name: &str| operation.get(name).and_then(Value::as_str).map(str::trim);
        let mut texts: Vec<&str> = [text("summary"), text("description")]
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty())
            .collect();
        texts.dedup();
        let mut tool = json!({"name": name});
        if !texts.is_empty() {
            tool["description"] = texts.join("\n").into();
        }
        tool["parameters"] = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            tool["parameters"]["required"] = required.into();
        }
        tool["parameters"]["additionalProperties"] = false.into();
        let mut http = json!({"method": method.to_uppercase(), "url": url});
        if body != json!(false) || !["get", "delete"].contains(&method) {
            http["body"] = body;
        }
        tool["exec"] = json!({"http": http, "class": class});
        Tools::read(&json!([tool]).to_string())?;
        Ok(tool)
    }

    /// The parameters of an operation: those of its path, and its own, which replace them.
    fn parameters(&self, item: &'d Value, operation: &'d Value) -> anyhow::Result<Vec<&'d Value>> {
        let lists = [item, operation].map(|owner| owner.get("parameters")?.as_array());
        let all = lists.into_iter().flatten().flatten();
        let mut all = all
            .map(|parameter| self.resolved(parameter))
            .collect::<anyhow::Result<Vec<_>>>()?;
        // The last of each name and place counts.
        let mut known = HashSet::new();
        all.reverse();
        all.retain(|parameter| known.insert((parameter.get("name"), parameter.get("in"))));
        all.reverse();
        Ok(all)
    }

    fn add_parameter(
        &self,
        parameter: &'d Value,
        places: &mut Places,
        properties: &mut Map<String, Value>,
        required: &mut Vec<String>,
    ) -> anyhow::Result<()> {
        let name = parameter.get("name").and_then(Value::as_str);
        let name = name.context("a parameter has no name")?;
        let place = parameter
            .get("in")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if place != "path" && place != "query" {
            // No header comes from a model.
            return Ok(());
        }
        let argument: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "_-.".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let content = parameter.get("content").and_then(Value::as_object);
        let content = content.and_then(|content| content.values().next()?.get("schema"));
        let schema = parameter.get("schema").or(content);
        let mut schema = match schema {
            Some(schema) => self.schema(schema, 0)?,
            None => json!({"type": "string"}),
        };
        if let (Some(text), Some(members)) = (parameter.get("description"), schema.as_object_mut())
        {
            members.insert("description".to_owned(), text.clone());
        }
        let is_list = schema.get("type").is_some_and(|of| of == "array");
        let is_apart = parameter.get("explode") != Some(&json!(false));
        let count = if is_list && is_apart { "*" } else { "" };
        if place == "path" {
            places.path = places
                .path
                .replace(&format!("{{{name}}}"), &format!("{{{argument}}}"));
        } else {
            let key = event::url::percent_encoded(name);
            places.query.push(format!("{key}={{{argument}{count}}}"));
        }
        if place == "path" || parameter.get("required") == Some(&json!(true)) {
            required.push(argument.clone());
        }
        if properties.insert(argument, schema).is_some() {
            bail!("two of its parameters have the name {name:?}");
        }
        Ok(())
    }

    /// Adds the members of a body to the arguments. Returns how the body is written.
    fn add_body(
        &self,
        body: &'d Value,
        properties: &mut Map<String, Value>,
        required: &mut Vec<String>,
    ) -> anyhow::Result<Value> {
        let content = body.get("content").and_then(Value::as_object);
        let is_json = |name: &str| {
            let name = name.split(';').next().unwrap_or_default().trim();
            name == "application/json" || name.ends_with("+json") || name == "*/*"
        };
        let of_kind = |is_it: &dyn Fn(&str) -> bool| {
            let mut all = content.into_iter().flatten();
            all.find(|(name, _)| is_it(name))
                .and_then(|(_, of)| of.get("schema"))
        };
        let (schema, form) = match of_kind(&is_json) {
            Some(schema) => (schema, json!(true)),
            None => match of_kind(&|name| name == "application/x-www-form-urlencoded") {
                Some(schema) => (schema, json!("form")),
                None => bail!("its body is neither JSON nor a form"),
            },
        };
        let schema = self.schema(schema, 0)?;
        let members = schema.get("properties").and_then(Value::as_object);
        let members = members.context("its body is not an object of named members")?;
        for (name, of) in members {
            if of.get("readOnly") == Some(&json!(true)) {
                continue;
            }
            if properties.insert(name.clone(), of.clone()).is_some() {
                bail!("{name:?} is a parameter and a member of its body");
            }
        }
        let needed = schema.get("required").and_then(Value::as_array);
        let needed = needed.into_iter().flatten().filter_map(Value::as_str);
        if body.get("required") == Some(&json!(true)) {
            required.extend(
                needed
                    .filter(|name| properties.contains_key(*name))
                    .map(str::to_owned),
            );
        }
        Ok(form)
    }

    /// A schema without references: what they lead to takes their place.
    fn schema(&self, schema: &'d Value, depth: usize) -> anyhow::Result<Value> {
        let left = self.left.get().checked_sub(1);
        self.left.set(left.context("its schema is too large")?);
        if depth > DEEPEST {
            return Ok(json!({}));
        }
        let found = self.resolved(schema)?;
        let Value::Object(members) = found else {
            return Ok(found.clone());
        };
        let mut out = Map::new();
        for (name, value) in members {
            if name.starts_with("x-") || OMITTED.contains(&name.as_str()) {
                continue;
            }
            let value = match (name.as_str(), value) {
                ("properties" | "patternProperties", Value::Object(of)) => {
                    let member = |(name, of): (&String, &'d Value)| {
                        Ok((name.clone(), self.schema(of, depth + 1)?))
                    };
                    Value::Object(of.iter().map(member).collect::<anyhow::Result<_>>()?)
                }
                ("items" | "not" | "additionalProperties", of) => self.schema(of, depth + 1)?,
                ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(of)) => {
                    let all = of.iter().map(|of| self.schema(of, depth + 1));
                    Value::Array(all.collect::<anyhow::Result<_>>()?)
                }
                // A flag in OpenAPI 3.0, a number in JSON Schema.
                ("exclusiveMinimum", Value::Bool(_)) | ("exclusiveMaximum", Value::Bool(_)) => {
                    let bound = if name == "exclusiveMinimum" {
                        "minimum"
                    } else {
                        "maximum"
                    };
                    match (value, members.get(bound)) {
                        (Value::Bool(true), Some(bound)) => bound.clone(),
                        _ => continue,
                    }
                }
                (_, value) => value.clone(),
            };
            out.insert(name.clone(), value);
        }
        Ok(merged(out))
    }

    /// The address of the server of an operation, without a slash at its end.
    fn server(&self, item: &'d Value, operation: &'d Value) -> anyhow::Result<String> {
        let first = |owner: &'d Value| owner.get("servers")?.as_array()?.first();
        let server = first(operation).or(first(item)).or(first(self.root));
        let mut url = server
            .and_then(|server| server.get("url")?.as_str())
            .unwrap_or("/")
            .to_owned();
        let variables = server.and_then(|server| server.get("variables")?.as_object());
        for (name, variable) in variables.into_iter().flatten() {
            let value = variable
                .get("default")
                .and_then(Value::as_str)
                .unwrap_or_default();
            url = url.replace(&format!("{{{name}}}"), value);
        }
        if !url.contains("://") {
            let base = self.base.context(
                "servers has no whole address, write one into the document: \
                 \"servers\":[{\"url\":\"https://HOST/PATH\"}]",
            )?;
            let base = base.split(['?', '#']).next().unwrap_or_default();
            let begin = base.find("://").map_or(0, |at| at + 3);
            let end = base[begin..].find('/').map_or(base.len(), |at| begin + at);
            url = match url.strip_prefix('/') {
                Some(path) => format!("{}/{path}", &base[..end]),
                None => {
                    let folder = base[end..].rfind('/').map_or(base.len(), |at| end + at);
                    format!("{}/{url}", &base[..folder])
                }
            };
        }
        Ok(url.trim_end_matches('/').to_owned())
    }
}

/// Objects in `allOf` as one object, where the schema is nothing else: a body has named members.
fn merged(mut schema: Map<String, Value>) -> Value {
    let all = schema.get("allOf").and_then(Value::as_array);
    let is_object = |of: &Value| of.get("properties").is_some_and(Value::is_object);
    let Some(parts) = all.filter(|parts| parts.iter().all(is_object)).cloned() else {
        return Value::Object(schema);
    };
    schema.remove("allOf");
    let mut properties = Map::new();
    let mut required = HashSet::new();
    let mut names = Vec::new();
    let own = Value::Object(schema.clone());
    for part in parts.iter().chain([&own]) {
        let members = part.get("properties").and_then(Value::as_object);
        properties.extend(
            members
                .into_iter()
                .flatten()
                .map(|(name, of)| (name.clone(), of.clone())),
        );
        let needed = part.get("required").and_then(Value::as_array);
        for name in needed.into_iter().flatten() {
            if required.insert(name.to_string()) {
                names.push(name.clone());
            }
        }
    }
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !names.is_empty() {
        schema.insert("required".to_owned(), Value::Array(names));
    }
    Value::Object(schema)
}

/// Whether an address names this machine.
fn is_of_this_machine(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
    let host = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((number, _)) => number,
        None => host.split(':').next().unwrap_or_default(),
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if let Ok(ip) = host.parse::<IpAddr>() {
        return ip.to_canonical().is_loopback();
    }
    // A client reads numbers in other notations as an address, too (`0177.1`, `0x7f.1`,
    // https://url.spec.whatwg.org/#ends-in-a-number-checker).
    let last = host.rsplit('.').next().unwrap_or_default();
    host == "localhost"
        || host.ends_with(".localhost")
        || last.starts_with("0x")
        || last.bytes().all(|b| b.is_ascii_digit())
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = text.get(at + 1..at + 3).filter(|_| byte == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                out.push(value);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_this_machine_is_known() {
        for url in [
            "http://localhost",
            "https://u@LOCALHOST.:80/x",
            "http://api.localhost/",
            "http://127.0.0.1:8080/",
            "http://127.1",
            "http://0177.0.0.1?",
            "http://0x7f.1",
            "http://2130706433/",
            "http://[::1]:80/",
            "http://[::ffff:127.0.0.1]",
        ] {
            assert!(is_of_this_machine(url), "{url}");
        }
        for url in [
            "https://api.example.com",
            "http://localhost.example/",
            "http://10.0.0.1",
            "http://[fe80::1]/",
            "https://h/127.0.0.1",
        ] {
            assert!(!is_of_this_machine(url), "{url}");
        }
    }

    #[test]
    fn no_document_of_another_machine_leads_to_this_one() {
        let read = |server: &str, path: &str, base: Option<&str>| {
            let document = json!({"openapi": "3.1.0", "servers": [{"url": server, "variables": {
                "v": {"default": "host"}, "empty": {"default": ""}}}], "paths": {path: {"get": {}}}});
            tools(&document, base, &[])
                .map(|(tools, _)| tools[0]["exec"]["http"]["url"].clone())
                .map_err(|e| e.to_string())
        };
        let base = Some("https://h.example/api.json");
        for (server, path) in [
            ("http://0177.1/", "/a"),
            ("http://local", "host:8080/x"),
            ("http://local", "host/x"),
            ("http://127.0.0", ".1:8080/x"),
            ("http://local{v}:8080", "/x"),
            ("http://[::", "1]/x"),
            ("http://", "/localhost/x"),
            ("http://", "localhost/x"),
            ("http://h{empty}", "@localhost/x"),
        ] {
            let said = read(server, path, base).unwrap_err();
            assert!(said.contains("left out"), "{server} {path}: {said}");
        }
        assert_eq!(
            read("http://0177.1/", "/a", None).unwrap(),
            "http://0177.1/a"
        );
        assert_eq!(
            read("http://h", "/localhost", base).unwrap(),
            "http://h/localhost"
        );
    }

    #[test]
    fn of_a_document_that_is_too_large_no_more_is_read_than_is_needed() {
        let paths: Map<String, Value> = (0..8_000)
            .map(|n| {
                (
                    format!("/p{n}"),
                    json!({"get": {"operationId": format!("op{n}")}}),
                )
            })
            .collect();
        let document =
            json!({"openapi": "3.1.0", "servers": [{"url": "https://h"}], "paths": paths});
        let said = tools(&document, None, &[]).unwrap_err().to_string();
        assert!(said.starts_with("8000 operations"), "{said}");
        let (some, _) = tools(&document, None, &["op799?"]).unwrap();
        assert_eq!(some.len(), 10);
    }

    #[test]
    fn a_server_may_be_relative_to_the_document() {
        for (server, base, want) in [
            (
                "/v1/",
                "https://h.example:8/a/api.json?x",
                "https://h.example:8/v1/a",
            ),
            (
                "v1",
                "https://h.example/a/api.json",
                "https://h.example/a/v1/a",
            ),
            ("/", "https://h.example", "https://h.example/a"),
            ("v1", "https://h.example", "https://h.example/v1/a"),
        ] {
            let document = json!({"openapi": "3.1.0", "servers": [{"url": server}], "paths": {"/a": {"get": {}}}});
            let (tools, _) = tools(&document, Some(base), &[]).unwrap();
            assert_eq!(tools[0]["exec"]["http"]["url"], want, "{server} {base}");
        }
    }
}
