//! A URL with placeholders for arguments. The tools file fixes the scheme, host and port.
//!
//! - An argument fills part of one path segment or part of one query value. Every character except
//!   letters, digits and `-._~` is percent-encoded, so no value can end its segment or its pair.
//! - An argument is rejected if it makes its segment `.`, `..` or empty. It is also rejected if a
//!   server could decode the segment, any number of times, into several segments with such a
//!   segment among them (`..%2Fadmin`).
//! - A missing or `null` argument drops its pair from the query; in the path it is an error.

use crate::argument::{ArgumentRefusal, Arguments, MAX_URL, plain};
use crate::argv::{ItemPart, parts};
use event::url::{leads_elsewhere, percent_encoded};

/// A URL with placeholders for arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UrlTemplate {
    /// Scheme, host and port, such as `https://example.com:8443`.
    pub origin: String,
    /// The segments of the path, each of which follows a `/`.
    segments: Vec<Vec<ItemPart>>,
    /// The pairs of the query.
    pairs: Vec<Vec<ItemPart>>,
    /// The indices of the pairs that are repeated for each element of a list.
    each: Vec<usize>,
}

impl UrlTemplate {
    /// Parses a URL. `declared` returns whether the schema declares an argument with that name.
    ///
    /// # Errors
    /// Returns what is wrong and how to fix it. The message never quotes the query, which may
    /// contain a key.
    pub(crate) fn read(url: &str, declared: &dyn Fn(&str) -> bool) -> Result<Self, String> {
        let Some(rest) = url
            .strip_prefix("https://")
            .or_else(|| url.strip_prefix("http://"))
        else {
            return Err("exec.http.url must begin with https:// or http://".to_owned());
        };
        let scheme = &url[..url.len() - rest.len()];
        let (authority, rest) =
            rest.split_at(rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len()));
        check_authority(authority)?;
        if rest.contains('#') {
            return Err(
                "exec.http.url has a part after #, which is never sent: leave it out, or write %23"
                    .to_owned(),
            );
        }
        let (path, query) = rest
            .split_once('?')
            .map_or((rest, None), |(path, query)| (path, Some(query)));
        let path = path.strip_prefix('/').unwrap_or(path);
        let pairs: Vec<&str> = query
            .map(|query| query.split('&').collect())
            .unwrap_or_default();
        let repeated = |pair: &str| {
            let (text, name) = pair.strip_suffix("*}")?.split_once("={")?;
            let name = name.to_owned();
            declared(&name)
                .then(|| vec![ItemPart::Text(format!("{text}=")), ItemPart::Argument(name)])
        };
        let template = UrlTemplate {
            origin: format!("{scheme}{}", authority.to_ascii_lowercase()),
            segments: path.split('/').map(parts).collect(),
            each: (0..pairs.len())
                .filter(|n| repeated(pairs[*n]).is_some())
                .collect(),
            pairs: pairs
                .into_iter()
                .map(|pair| repeated(pair).unwrap_or_else(|| parts(pair)))
                .collect(),
        };
        for part in template.segments.iter().chain(&template.pairs).flatten() {
            template.check(part, declared)?;
        }
        for pair in &template.pairs {
            if pair.iter().any(is_argument)
                && !matches!(&pair[0], ItemPart::Text(text) if text.contains('='))
            {
                return Err(
                    "an argument in the query of exec.http.url must be a value, write ?name={name}"
                        .to_owned(),
                );
            }
        }
        Ok(template)
    }

    /// Adds a pair to the query. `value` may contain placeholders.
    ///
    /// # Errors
    /// The same errors as [`UrlTemplate::read`].
    pub(crate) fn add_pair(
        &mut self,
        name: &str,
        value: &str,
        declared: &dyn Fn(&str) -> bool,
    ) -> Result<(), String> {
        let mut pair = vec![ItemPart::Text(format!("{}=", percent_encoded(name)))];
        for part in parts(value) {
            pair.push(match part {
                ItemPart::Text(text) => ItemPart::Text(percent_encoded(&text)),
                ItemPart::Argument(_) => {
                    self.check(&part, declared)?;
                    part
                }
            });
        }
        self.pairs.push(pair);
        Ok(())
    }

    /// Whether the URL has a placeholder for the argument `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        let mut all = self.segments.iter().chain(&self.pairs).flatten();
        all.any(|part| matches!(part, ItemPart::Argument(argument) if argument == name))
    }

    /// Returns the URL without its placeholders.
    pub(crate) fn fixed(&self) -> String {
        let text = |parts: &Vec<ItemPart>| -> String {
            parts
                .iter()
                .map(|part| {
                    if let ItemPart::Text(text) = part {
                        text.as_str()
                    } else {
                        ""
                    }
                })
                .collect()
        };
        let path: Vec<_> = self.segments.iter().map(text).collect();
        let query: Vec<_> = self.pairs.iter().map(text).collect();
        format!("{}/{}?{}", self.origin, path.join("/"), query.join("&"))
    }

    /// Returns the host in lower case, without the port.
    pub(crate) fn host(&self) -> &str {
        let authority = self
            .origin
            .split_once("://")
            .map_or("", |(_, authority)| authority);
        authority
            .rsplit_once(':')
            .map_or(authority, |(host, port)| {
                if port.ends_with(']') { authority } else { host }
            })
    }

    /// Returns the URL with the arguments filled in.
    ///
    /// # Errors
    /// Returns [`ArgumentRefusal::NoSegment`], [`ArgumentRefusal::Segment`] or
    /// [`ArgumentRefusal::LongUrl`].
    pub(crate) fn fill(&self, arguments: &Arguments) -> Result<String, ArgumentRefusal> {
        let mut url = self.origin.clone();
        for segment in &self.segments {
            url.push('/');
            push_segment(&mut url, segment, arguments)?;
        }
        let mut mark = '?';
        for (n, pair) in self.pairs.iter().enumerate() {
            if self.each.contains(&n)
                && let [ItemPart::Text(text), ItemPart::Argument(name)] = &pair[..]
                && let Some(list) = arguments.get(name).filter(|value| value.is_array())
            {
                for value in list.items() {
                    url.push(mark);
                    url.push_str(text);
                    url.push_str(&percent_encoded(&plain(value)));
                    mark = '&';
                }
                continue;
            }
            let begin = url.len();
            url.push(mark);
            if pair.iter().all(|part| push(&mut url, part, arguments)) {
                mark = '&';
            } else {
                url.truncate(begin);
            }
        }
        if url.len() > MAX_URL {
            Err(ArgumentRefusal::LongUrl(url.len()))
        } else {
            Ok(url)
        }
    }

    fn check(&self, part: &ItemPart, declared: &dyn Fn(&str) -> bool) -> Result<(), String> {
        match part {
            ItemPart::Argument(name) if !declared(name) => Err(format!(
                "{{{name}}} in exec.http.url is not a declared argument, declare it under properties"
            )),
            // Characters that other programs would escape or interpret (a backslash as a slash).
            ItemPart::Text(text)
                if !text
                    .bytes()
                    .all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&b)) =>
            {
                Err(
                    "exec.http.url holds a space or another character that is not allowed there, \
                 write it percent-encoded, such as %20"
                        .to_owned(),
                )
            }
            ItemPart::Text(text) if !text.split('%').skip(1).all(begins_with_hex) => {
                Err("exec.http.url holds a % that begins no escape, write %25".to_owned())
            }
            _ => Ok(()),
        }
    }
}

fn begins_with_hex(text: &str) -> bool {
    text.len() > 1 && text.bytes().take(2).all(|b| b.is_ascii_hexdigit())
}

/// Checks the host and port.
fn check_authority(authority: &str) -> Result<(), String> {
    if authority.contains('{') {
        return Err(
            "the host and port of exec.http.url must not come from an argument, write them"
                .to_owned(),
        );
    }
    if authority.contains('@') {
        return Err(
            "exec.http.url holds a user, put it into exec.http.headers: {\"Authorization\":\"Basic $NAME\"}".to_owned()
        );
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    if port.is_some_and(|port| port.parse::<u16>().is_err() || port.starts_with(['+', '0'])) {
        return Err("exec.http.url has a port that is not a number from 1 to 65535".to_owned());
    }
    let is_number = host
        .strip_prefix('[')
        .and_then(|h| h.strip_suffix(']'))
        .is_some_and(|h| h.parse::<core::net::Ipv6Addr>().is_ok());
    let is_name = host
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    if host.is_empty() || !(is_number || is_name) {
        return Err(
            "exec.http.url has no host, or one that is not ASCII: write \
            https://HOST/PATH, an international name as xn--…"
                .to_owned(),
        );
    }
    Ok(())
}

fn is_argument(part: &ItemPart) -> bool {
    matches!(part, ItemPart::Argument(_))
}

/// Appends a part to `url`. Returns `false` if its argument is missing.
fn push(url: &mut String, part: &ItemPart, arguments: &Arguments) -> bool {
    match part {
        ItemPart::Text(text) => url.push_str(text),
        ItemPart::Argument(name) => match arguments.get(name) {
            Some(value) => url.push_str(&percent_encoded(&plain(value))),
            None => return false,
        },
    }
    true
}

fn push_segment(
    url: &mut String,
    segment: &[ItemPart],
    arguments: &Arguments,
) -> Result<(), ArgumentRefusal> {
    let begin = url.len();
    let mut last = None;
    for part in segment {
        if let ItemPart::Argument(name) = part {
            last = Some(name);
        }
        if !push(url, part, arguments) {
            return Err(ArgumentRefusal::NoSegment(
                last.cloned().unwrap_or_default(),
            ));
        }
    }
    if url.len() > MAX_URL {
        return Err(ArgumentRefusal::LongUrl(url.len()));
    }
    match last {
        Some(name) if leads_elsewhere(&url[begin..]) => Err(ArgumentRefusal::Segment(name.clone())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<UrlTemplate, String> {
        UrlTemplate::read(url, &|name| ["city", "unit", "n"].contains(&name))
    }

    fn fill(url: &str, arguments: &str) -> Result<String, ArgumentRefusal> {
        read(url)
            .unwrap()
            .fill(&Arguments::read(arguments).unwrap())
    }

    #[test]
    fn values_are_encoded_and_stay_in_their_place() {
        for (value, encoded) in [
            ("Oslo", "Oslo"),
            ("São Paulo", "S%C3%A3o%20Paulo"),
            ("a/b?c#d&e=f", "a%2Fb%3Fc%23d%26e%3Df"),
            ("@evil.example", "%40evil.example"),
            ("a\r\nX-Evil: 1", "a%0D%0AX-Evil%3A%201"),
            ("100%", "100%25"),
            ("a+b;c", "a%2Bb%3Bc"),
            ("-._~", "-._~"),
            ("...", "..."),
            ("a..b", "a..b"),
            ("{unit}", "%7Bunit%7D"),
        ] {
            let arguments = format!(r#"{{"city":{}}}"#, event::quoted(value));
            assert_eq!(
                fill("https://h/w/{city}.json", &arguments).unwrap(),
                format!("https://h/w/{encoded}.json")
            );
            assert_eq!(
                fill("https://h/w?q={city}&x=1", &arguments).unwrap(),
                format!("https://h/w?q={encoded}&x=1")
            );
        }
        assert_eq!(
            fill("https://h/{n}", r#"{"n":[1,"a"]}"#).unwrap(),
            "https://h/%5B1%2C%22a%22%5D"
        );
    }

    #[test]
    fn a_list_is_a_pair_for_each_element() {
        for (arguments, want) in [
            (
                r#"{"city":["a&b","c"],"n":1}"#,
                "https://h/w?q=a%26b&q=c&n=1",
            ),
            (r#"{"city":[],"n":1}"#, "https://h/w?n=1"),
            (r#"{"city":"a","n":1}"#, "https://h/w?q=a&n=1"),
            (r#"{"n":1}"#, "https://h/w?n=1"),
        ] {
            assert_eq!(
                fill("https://h/w?q={city*}&n={n}", arguments).unwrap(),
                want
            );
        }
    }

    #[test]
    fn a_missing_argument_drops_its_pair_and_is_refused_in_the_path() {
        let url = "https://h/w?q={city}&u=x{unit}&x=1";
        assert_eq!(
            fill(url, r#"{"city":"a","unit":null}"#).unwrap(),
            "https://h/w?q=a&x=1"
        );
        assert_eq!(
            fill(url, r#"{"unit":"C"}"#).unwrap(),
            "https://h/w?u=xC&x=1"
        );
        assert_eq!(fill("https://h/w?q={city}", "{}").unwrap(), "https://h/w");
        assert_eq!(
            fill("https://h/w?q={city}", r#"{"city":""}"#).unwrap(),
            "https://h/w?q="
        );
        for missing in ["{}", r#"{"city":null}"#] {
            assert_eq!(
                fill("https://h/w/{city}", missing),
                Err(ArgumentRefusal::NoSegment("city".to_owned()))
            );
        }
    }

    #[test]
    fn no_value_leads_to_another_folder() {
        for value in [
            "",
            ".",
            "..",
            "../admin",
            "a/../../admin",
            "..\\admin",
            "%2e%2e",
            "%2e%2e%2fadmin",
            "%252e%252e%252fadmin",
            "a%2f..",
            "..;/admin",
            ".;x",
            "..?",
            "..#x",
            "..\t",
            ".. ",
            "%252525252525252525",
        ] {
            let arguments = format!(r#"{{"city":{}}}"#, event::quoted(value));
            assert_eq!(
                fill("https://h/w/{city}/x", &arguments),
                Err(ArgumentRefusal::Segment("city".to_owned())),
                "{value}"
            );
        }
        // The text around it counts too.
        assert_eq!(
            fill("https://h/w/%2E{city}", r#"{"city":"."}"#),
            Err(ArgumentRefusal::Segment("city".to_owned()))
        );
        assert_eq!(
            fill("https://h/w/{city}{unit}", r#"{"city":".","unit":"."}"#),
            Err(ArgumentRefusal::Segment("unit".to_owned()))
        );
        assert_eq!(
            fill("https://h/w/v{city}", r#"{"city":".."}"#).unwrap(),
            "https://h/w/v.."
        );
    }

    #[test]
    fn where_it_leads_is_fixed() {
        for (url, says) in [
            ("https://{city}/", "must not come from an argument"),
            ("https://h:{n}/", "must not come from an argument"),
            (
                "https://{city}.example.com/",
                "must not come from an argument",
            ),
            ("{city}://h/", "must begin with https:// or http://"),
            ("ftp://h/", "must begin with https:// or http://"),
            ("file:///etc/passwd", "must begin with https:// or http://"),
            (
                "unix:/run/docker.sock",
                "must begin with https:// or http://",
            ),
            ("gopher://h/", "must begin with https:// or http://"),
            ("HTTPS://h/", "must begin with https:// or http://"),
            ("https:///x", "has no host"),
            ("https://b\u{fc}cher.example/", "xn--"),
            ("https://h\t/", "has no host"),
            ("https://[::1/", "has no host"),
            ("https://me:pw@h/", "holds a user"),
            ("https://h\\@evil/", "not allowed there"),
            ("https://h:99999/", "has a port"),
            ("https://h:/", "has a port"),
            (
                "https://h/{town}",
                "{town} in exec.http.url is not a declared argument",
            ),
            ("https://h/a b", "write it percent-encoded"),
            ("https://h/{{city}}", "write it percent-encoded"),
            ("https://h/\n", "write it percent-encoded"),
            ("https://h/%{city}", "write %25"),
            ("https://h/?q=100%", "write %25"),
            ("https://h/#x", "after #"),
            ("https://h/?{city}=1", "must be a value"),
            ("https://h/?{city}", "must be a value"),
        ] {
            let said = read(url).unwrap_err();
            assert!(said.contains(says), "{url}: {said}");
        }
        for (url, host) in [
            ("https://H.example:8443/x", "h.example"),
            ("http://[::1]:80", "[::1]"),
            ("http://[::1]/", "[::1]"),
        ] {
            assert_eq!(read(url).unwrap().host(), host);
        }
        assert_eq!(
            fill("https://H.example:8443", "{}").unwrap(),
            "https://h.example:8443/"
        );
    }

    #[test]
    fn an_address_that_servers_would_not_take_is_refused() {
        let long = format!(r#"{{"city":"{}"}}"#, "x".repeat(MAX_URL));
        assert!(
            matches!(fill("https://h/?q={city}", &long), Err(ArgumentRefusal::LongUrl(n)) if n > MAX_URL)
        );
    }
}
