//! A tool that sends an HTTP request: the member `http` of `exec`. The tools file fixes the whole
//! request except for the arguments in its URL and body: a model cannot choose the server, the
//! method or a header.

mod url;

use crate::argument::{ArgumentRefusal, Arguments, plain};
use crate::argv::{ItemPart, parts};
use crate::members::{FLAG, MemberKind, Members, strings};
use crate::variables::VariableText;
use core::net::IpAddr;
use event::Object;
use event::url::percent_encoded;
use serde_json::Value;
use url::UrlTemplate;

/// The known members of `exec.http`.
const MEMBERS: [&str; 9] = [
    "method",
    "url",
    "query",
    "headers",
    "body",
    "redirects",
    "proxy",
    "allow",
    "insecure",
];

/// The supported methods, each with whether its request has a body by default.
const METHODS: [(&str, bool); 5] = [
    ("GET", false),
    ("POST", true),
    ("PUT", true),
    ("PATCH", true),
    ("DELETE", false),
];

/// Maximum for the number of redirects that a tool may follow.
const MAX_REDIRECTS: u64 = 10;

/// Headers that the HTTP client sets itself. Setting them here could route the request to another
/// server, or make the server find the end of the request at the wrong place.
const OWN_HEADERS: [&str; 9] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "te",
    "trailer",
    "upgrade",
    "accept-encoding",
    "proxy-authorization",
];

/// A request that a tool sends.
#[derive(Clone, Debug)]
pub struct HttpRun {
    /// The HTTP method.
    method: &'static str,
    /// The URL, with placeholders for arguments.
    url: UrlTemplate,
    /// Query parameters that come from the environment: percent-encoded names and their values.
    pub query: Vec<(String, VariableText)>,
    /// The headers, with lower-case names.
    pub headers: Vec<(String, VariableText)>,
    /// The content of the body.
    body: RequestBody,
    /// Maximum number of redirects to follow.
    pub redirects: u32,
    /// The proxy for the request, or `None` if the tools file names none.
    pub proxy: Option<String>,
    /// Addresses outside the public internet that the request may still connect to.
    pub allow: AllowedAddresses,
    /// Whether a request with a secret may be sent unencrypted, over http, to another machine.
    pub insecure: bool,
}

/// The content of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestBody {
    /// No body.
    None,
    /// The arguments that are not used in the URL, as a JSON object.
    Json,
    /// The arguments that are not used in the URL, as form fields.
    Form,
}

/// One request, with the arguments of its call filled in. It does not include values from the
/// environment: see [`HttpRun::query`] and [`HttpRun::headers`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method, in upper case.
    pub method: &'static str,
    /// The URL.
    pub url: String,
    /// The media type and the body, or `None` if the request has no body.
    pub body: Option<(&'static str, String)>,
}

impl HttpRun {
    /// Parses `member`. `declared` returns whether the schema declares an argument with that name.
    ///
    /// # Errors
    /// Returns the first mistake and how to fix it. The message never quotes a value of a header or
    /// of the query, since the value may be a secret.
    pub(crate) fn read(member: Value, declared: &dyn Fn(&str) -> bool) -> Result<HttpRun, String> {
        let example = "{\"method\":\"GET\",\"url\":\"https://HOST/PATH\"}";
        let mut http = Members::of(member, "exec.http", &MEMBERS, example)?;
        let method = MemberKind(
            "GET, POST, PUT, PATCH or DELETE",
            |value| METHODS.into_iter().find(|(name, _)| *value == *name),
            true,
        );
        let (method, has_body) = http.take("method", &method)?.unwrap_or(METHODS[0]);
        let Some(Value::String(url)) = http.value("url") else {
            return Err("exec.http has no url, write \"url\":\"https://HOST/PATH\"".to_owned());
        };
        let mut url = UrlTemplate::read(&url, declared)?;
        let mut query = Vec::new();
        for (name, value) in http.take("query", &TEXTS)?.unwrap_or_default() {
            match VariableText::read(&value).filter(VariableText::is_filled) {
                Some(_) if has_argument(&value) => {
                    return Err(format!(
                        "exec.http.query.{name} has an argument and a variable, make two parameters of it"
                    ));
                }
                Some(text) => query.push((percent_encoded(&name), text)),
                None => url.add_pair(&name, &value.replace("$$", "$"), declared)?,
            }
        }
        let body = match http.value("body") {
            None if has_body => RequestBody::Json,
            None | Some(Value::Bool(false)) => RequestBody::None,
            Some(Value::Bool(true)) if method != "GET" => RequestBody::Json,
            Some(Value::String(form)) if form == "form" && method != "GET" => RequestBody::Form,
            Some(_) if method == "GET" => {
                return Err(
                    "exec.http: GET has no body, put the arguments into the url, or use POST"
                        .to_owned(),
                );
            }
            Some(_) => {
                return Err("exec.http: body must be true (JSON), \"form\" or false".to_owned());
            }
        };
        let headers = headers(&mut http)?;
        let redirects = MemberKind(
            "a number from 0 to 10, or false",
            |value: &Value| {
                let number = value.as_u64().or((*value == false).then_some(0));
                number.filter(|n| *n <= MAX_REDIRECTS)
            },
            true,
        );
        let proxy = MemberKind(
            "an address, such as \"http://proxy.example:3128\"",
            |value| {
                let url = value.as_str()?;
                let is_url = url.starts_with("http://") || url.starts_with("https://");
                is_url.then(|| url.to_owned())
            },
            false,
        );
        let run = HttpRun {
            method,
            url,
            query,
            headers,
            body,
            redirects: http
                .take("redirects", &redirects)?
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(0),
            proxy: http.take("proxy", &proxy)?,
            allow: AllowedAddresses::take(&mut http)?,
            insecure: http.take("insecure", &FLAG)?.unwrap_or(false),
        };
        if run.is_exposed() {
            return Err("exec.http sends a secret over http, where anybody on the way can read it: use https, \
                        or allow it with \"insecure\":true"
                .to_owned());
        }
        Ok(run)
    }

    /// Returns the request of a call with these arguments.
    ///
    /// # Errors
    /// Returns an [`ArgumentRefusal`] whose message is written for the model.
    pub(crate) fn fill(&self, arguments: &Arguments) -> Result<HttpRequest, ArgumentRefusal> {
        let url = self.url.fill(arguments)?;
        let rest = || arguments.members().filter(|(name, _)| !self.url.has(name));
        let body = match self.body {
            RequestBody::None => None,
            RequestBody::Json => {
                let mut json = Vec::new();
                let mut object = Object::open(&mut json);
                rest().for_each(|(name, value)| {
                    object.raw(&name, value.text());
                });
                object.close();
                Some((
                    "application/json",
                    String::from_utf8(json).unwrap_or_default(),
                ))
            }
            RequestBody::Form => {
                let pair = |(name, value): (_, event::Raw<'_>)| {
                    let name: std::borrow::Cow<'_, str> = name;
                    format!(
                        "{}={}",
                        percent_encoded(&name),
                        percent_encoded(&plain(value))
                    )
                };
                let pairs: Vec<_> = rest()
                    .filter(|(_, value)| !value.is_null())
                    .map(pair)
                    .collect();
                Some(("application/x-www-form-urlencoded", pairs.join("&")))
            }
        };
        Ok(HttpRequest {
            method: self.method,
            url,
            body,
        })
    }

    /// Returns the scheme, host and port of the server.
    pub fn origin(&self) -> &str {
        &self.url.origin
    }

    /// Returns the parts of the URL that the tools file fixes. Their query may contain a key.
    pub fn fixed_url(&self) -> String {
        self.url.fixed()
    }

    /// Returns the names of the environment variables that the request needs.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.query
            .iter()
            .chain(&self.headers)
            .flat_map(|(_, text)| text.variables())
    }

    /// Whether an environment variable, which counts as a secret, would be sent over http to
    /// another machine although the tools file does not allow that.
    fn is_exposed(&self) -> bool {
        let host = self.url.host();
        let ip = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<core::net::IpAddr>();
        let is_local = host == "localhost"
            || host.ends_with(".localhost")
            || ip.is_ok_and(|ip| ip.is_loopback());
        self.url.origin.starts_with("http:")
            && !is_local
            && !self.insecure
            && self.variables().next().is_some()
    }
}

/// An object of strings.
const TEXTS: MemberKind<Vec<(String, String)>> = MemberKind(
    "an object of strings",
    |value| {
        let text =
            |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        value.as_object()?.iter().map(text).collect()
    },
    false,
);

fn headers(http: &mut Members) -> Result<Vec<(String, VariableText)>, String> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let mut headers: Vec<(String, VariableText)> = Vec::new();
    for (name, value) in http.take("headers", &TEXTS)?.unwrap_or_default() {
        let lower = name.to_ascii_lowercase();
        if name.is_empty() || !name.bytes().all(token) {
            return Err(format!(
                "exec.http.headers: {name:?} is not the name of a header, write {{\"X-Title\":\"my app\"}}"
            ));
        }
        if OWN_HEADERS.contains(&lower.as_str()) {
            return Err(format!(
                "exec.http.headers.{name} cannot be set, leave it out"
            ));
        }
        if headers.iter().any(|(other, _)| *other == lower) {
            return Err(format!("exec.http.headers.{name} is there twice, keep one"));
        }
        if has_argument(&value) {
            return Err(format!(
                "exec.http.headers.{name} has a place for an argument: no header comes from a model, write its value"
            ));
        }
        let text = VariableText::read(&value);
        let text = text.ok_or_else(|| {
            format!("exec.http.headers.{name} holds a line break or another character that a header cannot hold")
        })?;
        headers.push((lower, text));
    }
    Ok(headers)
}

fn has_argument(text: &str) -> bool {
    // The braces of `${NAME}` are not a placeholder.
    parts(&text.replace("${", "$"))
        .iter()
        .any(|part| matches!(part, ItemPart::Argument(_)))
}

// Addresses outside the public internet that an HTTP tool may connect to: `"127.0.0.1:8080"`,
// `"10.0.0.0/8"`, `"[::1]:80"`, `"localhost:8080"`, `"registry.internal"`.

// `core::net` only has address types, so this code cannot open a socket.

/// Addresses outside the public internet that an HTTP tool may connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedAddresses {
    entries: Vec<AllowedAddress>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct AllowedAddress {
    host: AllowedHost,
    /// The allowed port, or `None` for any port.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AllowedHost {
    /// A network: an address and the length of its prefix in bits.
    Network(IpAddr, u32),
    /// A host name in lower case, allowed at any address.
    Name(String),
}

impl AllowedAddresses {
    /// Parses the member `allow`.
    ///
    /// # Errors
    /// Returns the first mistake and how to fix it.
    pub(crate) fn take(members: &mut Members) -> Result<Self, String> {
        let list = MemberKind("a list, such as [\"127.0.0.1:8080\"]", strings, true);
        let entries = members.take("allow", &list)?.unwrap_or_default();
        AllowedAddresses::read(&entries).map_err(|entry| {
            let name = members.name("allow");
            format!(
                "{name}: {entry:?} is not an address, write it \
                as \"127.0.0.1:8080\", \"10.0.0.0/8\" or \"localhost:8080\""
            )
        })
    }

    /// Parses the entries.
    ///
    /// # Errors
    /// Returns the first entry that is not an address.
    fn read(entries: &[String]) -> Result<AllowedAddresses, String> {
        let read = |text: &String| AllowedAddress::read(text).ok_or_else(|| text.clone());
        Ok(AllowedAddresses {
            entries: entries.iter().map(read).collect::<Result<_, _>>()?,
        })
    }

    /// Whether a connection to `host` (in lower case) at this address and port is allowed. The
    /// caller must convert an IPv4-mapped IPv6 address to IPv4 first (see
    /// [`IpAddr::to_canonical`]).
    pub fn allows(&self, host: &str, address: IpAddr, port: u16) -> bool {
        let is_host = |allowed: &AllowedHost| match allowed {
            AllowedHost::Name(name) => name == host,
            AllowedHost::Network(network, bits) => is_in(address, *network, *bits),
        };
        self.entries
            .iter()
            .any(|entry| is_host(&entry.host) && entry.port.is_none_or(|allowed| allowed == port))
    }
}

impl AllowedAddress {
    fn read(text: &str) -> Option<AllowedAddress> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']')?;
                (
                    host,
                    if rest.is_empty() {
                        None
                    } else {
                        Some(rest.strip_prefix(':')?)
                    },
                )
            }
            None if text.matches(':').count() == 1 => text
                .split_once(':')
                .map(|(host, port)| (host, Some(port)))?,
            None => (text, None),
        };
        let port = match port {
            Some(port) => Some(port.parse().ok().filter(|port| *port > 0)?),
            None => None,
        };
        let (address, bits) = match host.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
            None => (host, None),
        };
        let host = match (address.parse::<IpAddr>(), bits) {
            (Ok(address), bits) => {
                let all = if address.is_ipv4() { 32 } else { 128 };
                AllowedHost::Network(address, bits.or(Some(all)).filter(|bits| *bits <= all)?)
            }
            (Err(_), None) if is_host_name(host) => AllowedHost::Name(host.to_ascii_lowercase()),
            _ => return None,
        };
        Some(AllowedAddress { host, port })
    }
}

/// Whether `text` is a host name. A name that ends in a digit is rejected, since it would be parsed
/// as a number (`127.1`).
fn is_host_name(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
        && text.ends_with(|c: char| c.is_ascii_alphabetic())
}

fn is_in(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            bits == 0 || (a.to_bits() ^ b.to_bits()) >> (32 - bits) == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            bits == 0 || (a.to_bits() ^ b.to_bits()) >> (128 - bits) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(http: Value) -> Result<HttpRun, String> {
        HttpRun::read(http, &|name| ["city", "unit", "n"].contains(&name))
    }

    fn fill(http: Value, arguments: &str) -> HttpRequest {
        read(http)
            .unwrap()
            .fill(&Arguments::read(arguments).unwrap())
            .unwrap()
    }

    #[test]
    fn arguments_go_into_the_address_and_what_is_left_into_the_body() {
        let arguments = r#"{"city":"São Paulo","n":1.50,"unit":null}"#;
        let get = fill(
            json!({"url": "https://h/{city}", "query": {"n": "{n}", "u": "{unit}", "v": "a b$$"}}),
            arguments,
        );
        assert_eq!(
            (get.method, get.url.as_str(), get.body),
            ("GET", "https://h/S%C3%A3o%20Paulo?n=1.50&v=a%20b%24", None)
        );
        let post = |more: Value| {
            let mut http = json!({"method": "POST", "url": "https://h/{city}"});
            http.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            fill(http, arguments).body
        };
        assert_eq!(
            post(json!({})),
            Some(("application/json", r#"{"n":1.50,"unit":null}"#.to_owned()))
        );
        assert_eq!(
            post(json!({"body": "form"})),
            Some(("application/x-www-form-urlencoded", "n=1.50".to_owned()))
        );
        assert_eq!(post(json!({"body": false})), None);
        assert_eq!(
            fill(
                json!({"method": "DELETE", "url": "https://h/{city}"}),
                arguments
            )
            .body,
            None
        );
    }

    #[test]
    fn what_comes_from_the_environment_is_not_in_the_request() {
        let http = json!({"url": "https://h/", "query": {"app id": "$KEY"}, "headers": {"Authorization": "Bearer ${TOKEN}", "X-A": "1"}});
        let run = read(http).unwrap();
        assert_eq!(
            run.fill(&Arguments::read("{}").unwrap()).unwrap().url,
            "https://h/"
        );
        assert_eq!(
            (run.query[0].0.as_str(), run.headers[0].0.as_str()),
            ("app%20id", "authorization")
        );
        assert_eq!(run.variables().collect::<Vec<_>>(), ["KEY", "TOKEN"]);
    }

    #[test]
    fn mistakes_in_the_file_are_told_with_the_remedy_and_without_secrets() {
        for (http, says) in [
            (json!("https://h/"), "exec.http must be an object"),
            (json!({}), "exec.http has no url"),
            (
                json!({"url": "https://h/", "verb": "GET"}),
                "exec.http.verb is unknown, exec.http may have method, url",
            ),
            (
                json!({"url": "https://h/", "method": "get"}),
                "GET, POST, PUT, PATCH or DELETE",
            ),
            (
                json!({"url": "https://h/", "method": "{n}"}),
                "GET, POST, PUT, PATCH or DELETE",
            ),
            (
                json!({"url": "https://h/", "body": true}),
                "GET has no body",
            ),
            (
                json!({"url": "https://h/", "method": "POST", "body": {}}),
                "body must be true",
            ),
            (
                json!({"url": "https://h/", "headers": []}),
                "must be an object of strings",
            ),
            (
                json!({"url": "https://h/", "headers": {"a": 1}}),
                "must be an object of strings",
            ),
            (
                json!({"url": "https://h/", "headers": {"a b": "1"}}),
                "is not the name of a header",
            ),
            (
                json!({"url": "https://h/", "headers": {"a\r\nb": "1"}}),
                "is not the name of a header",
            ),
            (
                json!({"url": "https://h/", "headers": {"X-City": "{city}"}}),
                "no header comes from a model",
            ),
            (
                json!({"url": "https://h/", "headers": {"X": "k3y-canary\r\nB: 1"}}),
                "holds a line break",
            ),
            (
                json!({"url": "https://h/", "headers": {"Host": "other"}}),
                "cannot be set",
            ),
            (
                json!({"url": "https://h/", "headers": {"content-length": "0"}}),
                "cannot be set",
            ),
            (
                json!({"url": "https://h/", "headers": {"X-A": "1", "x-a": "2"}}),
                "is there twice",
            ),
            (
                json!({"url": "https://h/", "query": {"k": "{city}$KEY"}}),
                "an argument and a variable",
            ),
            (
                json!({"url": "https://h/", "query": {"k": "{town}"}}),
                "not a declared argument",
            ),
            (
                json!({"url": "https://h/?key=k3y-canary&{city}"}),
                "must be a value",
            ),
            (json!({"url": "https://me:k3y-canary@h/"}), "holds a user"),
            (
                json!({"url": "https://h/", "redirects": 11}),
                "a number from 0 to 10",
            ),
            (
                json!({"url": "https://h/", "redirects": true}),
                "a number from 0 to 10",
            ),
            (
                json!({"url": "https://h/", "proxy": "socks5://p"}),
                "exec.http.proxy must be an address",
            ),
            (
                json!({"url": "https://h/", "allow": "10.0.0.1"}),
                "exec.http.allow must be a list",
            ),
            (
                json!({"url": "https://h/", "allow": ["*"]}),
                "\"*\" is not an address",
            ),
            (
                json!({"url": "http://h/", "headers": {"X": "$KEY"}}),
                "a secret over http",
            ),
            (
                json!({"url": "http://h/", "query": {"x": "$KEY"}}),
                "a secret over http",
            ),
        ] {
            let said = read(http.clone()).unwrap_err();
            assert!(
                said.contains(says) && !said.contains("canary") && !said.contains('\n'),
                "{http}: {said}"
            );
        }
        for http in [
            json!({"url": "http://h/", "headers": {"X": "$KEY"}, "insecure": true}),
            json!({"url": "http://localhost:1/", "headers": {"X": "$KEY"}}),
            json!({"url": "http://127.0.0.1:1/", "headers": {"X": "${KEY}"}}),
            json!({"url": "http://[::1]/", "headers": {"X": "$KEY", "Y": "{\"a\":1}"}}),
            json!({"url": "http://h/", "headers": {"X": "5$$"}, "redirects": false, "allow": ["10.0.0.0/8"]}),
        ] {
            assert!(read(http.clone()).is_ok(), "{http}");
        }
    }
}

#[cfg(test)]
mod allow_tests {
    use super::*;

    #[test]
    fn addresses_networks_and_names_are_allowed_with_a_port_or_any() {
        for (entry, host, address, port, is_allowed) in [
            ("127.0.0.1:8080", "localhost", "127.0.0.1", 8080, true),
            ("127.0.0.1:8080", "localhost", "127.0.0.1", 8081, false),
            ("127.0.0.1:8080", "localhost", "127.0.0.2", 8080, false),
            ("127.0.0.1", "h", "127.0.0.1", 1, true),
            ("10.0.0.0/8", "h", "10.255.0.1", 1, true),
            ("10.0.0.0/8", "h", "11.0.0.1", 1, false),
            ("10.1.2.3/8:443", "h", "10.255.0.1", 443, true),
            ("10.1.2.3/8:443", "h", "10.255.0.1", 80, false),
            ("0.0.0.0/0", "h", "169.254.169.254", 80, true),
            ("0.0.0.0/0", "h", "::1", 80, false),
            ("[::1]:80", "[::1]", "::1", 80, true),
            ("[::1]:80", "[::1]", "::1", 81, false),
            ("::1", "[::1]", "::1", 81, true),
            ("fd00::/8", "h", "fd12::1", 1, true),
            ("[fd00::/8]:443", "h", "fd12::1", 1, false),
            ("[fd00::/8]:443", "h", "fe12::1", 443, false),
            ("LocalHost:80", "localhost", "127.0.0.1", 80, true),
            (
                "registry.internal",
                "registry.internal",
                "10.0.0.1",
                5000,
                true,
            ),
            (
                "registry.internal",
                "x.registry.internal",
                "10.0.0.1",
                5000,
                false,
            ),
        ] {
            let allowed = AllowedAddresses::read(&[entry.to_owned()]).unwrap();
            assert_eq!(
                allowed.allows(host, address.parse().unwrap(), port),
                is_allowed,
                "{entry} {host} {address} {port}"
            );
        }
    }

    #[test]
    fn other_texts_are_no_addresses() {
        for entry in [
            "",
            "*",
            "127.1",
            "10.0.0.0/33",
            "::/129",
            "h:0",
            "h:x",
            "h/8",
            "[::1",
            "[::1]8",
            "http://h",
            "a b",
            "h:1:2",
        ] {
            assert_eq!(
                AllowedAddresses::read(&[entry.to_owned()]),
                Err(entry.to_owned()),
                "{entry}"
            );
        }
    }
}
