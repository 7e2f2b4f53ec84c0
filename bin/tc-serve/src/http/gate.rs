//! Checks the Host and Origin headers of requests. A web page that a user visits must not be able
//! to send requests to a server on the user's machine, whatever name the page gives to its own
//! server (DNS rebinding, <https://en.wikipedia.org/wiki/DNS_rebinding>).

use super::response::{Content, Refusal, ResponseBody};
use crate::route::Endpoint;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, StatusCode, Uri};
use std::net::IpAddr;

/// The hosts and origins whose requests are accepted.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// What the gate determined about an accepted request.
#[derive(Clone, Debug, Default)]
pub(super) struct Pass {
    /// The page's origin, if a page of another origin sent the request.
    pub origin: Option<HeaderValue>,
    /// Whether the request is a browser's CORS preflight.
    pub is_preflight: bool,
}

impl Gate {
    /// Creates a gate that also accepts these hosts and these lowercase origins.
    pub(super) fn new(hosts: &[String], origins: &[String]) -> Gate {
        Gate {
            hosts: hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            origins: origins.to_vec(),
        }
    }

    /// Checks a request to the address `local`. `None` means a Unix socket, which no web page can
    /// open.
    ///
    /// # Errors
    /// A refusal with status 403.
    pub(super) fn check<B>(
        &self,
        request: &Request<B>,
        local: Option<IpAddr>,
        route: Endpoint,
    ) -> Result<Pass, Refusal> {
        let headers = request.headers();
        if let Some(local) = local {
            let authority = request.uri().authority().map(Authority::as_str);
            let mut named = authority.into_iter().chain(hosts(headers)).peekable();
            if named.peek().is_none() || !named.all(|host| self.knows_host(host, local)) {
                let message = "the request's Host is not a name of this server; ask 127.0.0.1 \
                    or localhost, or start it with --allow-host";
                return Err(Refusal::new(403, "host_not_allowed", message));
            }
        }
        let origin = self.origin(headers)?;
        let header = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
        let is_navigation = request.method() == Method::GET
            && route == Endpoint::Root
            && header("sec-fetch-mode") == Some(b"navigate")
            && header("sec-fetch-dest") == Some(b"document");
        if header("sec-fetch-site") == Some(b"cross-site") && origin.is_none() && !is_navigation {
            return Err(Refusal::new(
                403,
                "cross_site",
                "requests from pages of other sites are refused",
            ));
        }
        let is_preflight = request.method() == Method::OPTIONS
            && origin.is_some()
            && headers.contains_key("access-control-request-method");
        Ok(Pass {
            origin,
            is_preflight,
        })
    }

    /// Returns the origin of the page that sent the request, or `None` for a page of this server
    /// and for a client that is not a page.
    fn origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Refusal> {
        let refusal = |message| Err(Refusal::new(403, "origin_not_allowed", message));
        let mut origins = headers.get_all("origin").iter();
        let Some(origin) = origins.next() else {
            return Ok(None);
        };
        // A proxy that adds a second Origin hides which page sent the request.
        if origins.next().is_some() {
            return refusal("the request has several origins");
        }
        let text = origin.to_str().unwrap_or_default().to_ascii_lowercase();
        if self.origins.contains(&text) {
            Ok(Some(origin.clone()))
        } else if hosts(headers)
            .next()
            .is_some_and(|host| is_own(&text, host))
        {
            Ok(None)
        } else {
            refusal(
                "requests from pages of this origin are refused; start the server with --allow-origin",
            )
        }
    }

    fn knows_host(&self, host: &str, local: IpAddr) -> bool {
        let host = host.to_ascii_lowercase();
        let Ok(uri) = Uri::try_from(&host) else {
            return false;
        };
        let Some(authority) = uri
            .authority()
            .filter(|authority| !authority.as_str().contains('@'))
        else {
            return false;
        };
        let name = authority.host();
        let address = name
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>()
            .ok();
        matches!(name, "localhost" | "127.0.0.1" | "[::1]")
            // DNS rebinding does not work with an IP address as host.
            || address.is_some_and(|address| address.to_canonical() == local.to_canonical())
            || self.hosts.iter().any(|known| known == name || *known == host)
    }
}

fn hosts(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let hosts = headers.get_all("host").iter();
    hosts.map(|host| host.to_str().unwrap_or_default())
}

/// Whether `origin` is a page of the server that the request addresses as `host`.
fn is_own(origin: &str, host: &str) -> bool {
    let name = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    name.is_some_and(|name| !name.is_empty() && name.eq_ignore_ascii_case(host))
}

/// Returns the response to a CORS preflight.
pub(super) fn preflight(headers: &HeaderMap) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::new(Content::Whole(Bytes::new())));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let allowed = response.headers_mut();
    allowed.insert(
        "access-control-allow-methods",
        HeaderValue::from_static("GET, HEAD, POST, DELETE"),
    );
    if let Some(asked) = headers.get("access-control-request-headers") {
        allowed.insert("access-control-allow-headers", asked.clone());
    }
    if headers.contains_key("access-control-request-private-network") {
        allowed.insert(
            "access-control-allow-private-network",
            HeaderValue::from_static("true"),
        );
    }
    allowed.insert("access-control-max-age", HeaderValue::from_static("600"));
    response
}

/// Allows the page of `origin` to read a response.
pub(super) fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert("access-control-allow-origin", origin);
    headers.insert("vary", HeaderValue::from_static("origin"));
    let exposed = HeaderValue::from_static(
        "request-id, x-request-id, retry-after, x-toolpipe-estimate, x-toolpipe-notes, \
         x-session-id, etag, stream-next-offset, stream-up-to-date, stream-closed, stream-cursor",
    );
    headers.insert("access-control-expose-headers", exposed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(headers: &[(&str, &str)], uri: &str, method: &str) -> u16 {
        let gate = Gate::new(
            &["box.lan".to_owned()],
            &["https://chat.example.com".to_owned()],
        );
        let mut request = Request::builder().uri(uri).method(method);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let local = "192.168.1.5".parse().unwrap();
        let result = gate.check(&request, Some(local), Endpoint::of(request.uri().path()));
        result.map_or_else(|refusal| refusal.failure.status, |_| 200)
    }

    #[test]
    fn hosts() {
        for host in [
            "localhost",
            "localhost:8790",
            "127.0.0.1:1",
            "[::1]:8790",
            "LOCALHOST:1",
            "box.lan:8790",
            "192.168.1.5:9",
        ] {
            assert_eq!(status(&[("host", host)], "/", "GET"), 200, "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil@localhost",
            "localhost@evil.example",
            "",
            "192.168.1.6",
            "127.0.0.2",
            "localhost evil",
            "localhost,evil.example",
        ] {
            assert_eq!(status(&[("host", host)], "/", "GET"), 403, "{host}");
        }
        assert_eq!(status(&[], "/", "GET"), 403);
        assert_eq!(
            status(
                &[("host", "localhost"), ("host", "evil.example")],
                "/",
                "GET"
            ),
            403
        );
        assert_eq!(
            status(&[("host", "localhost")], "http://evil.example/", "GET"),
            403
        );
    }

    #[test]
    fn origins() {
        for origin in [
            "http://localhost:8790",
            "https://chat.example.com",
            "https://CHAT.example.com",
        ] {
            let headers = [("host", "localhost:8790"), ("origin", origin)];
            assert_eq!(status(&headers, "/v1/messages", "POST"), 200, "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "http://localhost:3000",
            "http://localhost",
            "https://chat.example.com.evil.example",
            "http://chat.example.com",
            "file://",
            "chrome-extension://abc",
        ] {
            let headers = [("host", "localhost:8790"), ("origin", origin)];
            assert_eq!(status(&headers, "/v1/messages", "POST"), 403, "{origin}");
        }
    }

    #[test]
    fn several_origins_are_none_that_is_known() {
        for second in ["http://localhost:8790", "http://evil.example"] {
            let origins = [
                ("host", "localhost:8790"),
                ("origin", "http://localhost:8790"),
                ("origin", second),
            ];
            assert_eq!(status(&origins, "/v1/messages", "POST"), 403, "{second}");
        }
    }

    #[test]
    fn other_sites_may_only_link_to_the_page() {
        let site = [("host", "localhost"), ("sec-fetch-site", "cross-site")];
        let navigation = [
            site[0],
            site[1],
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert_eq!(status(&site, "/v1/models", "GET"), 403);
        assert_eq!(status(&navigation, "/v1/models", "GET"), 403);
        assert_eq!(status(&navigation, "/", "GET"), 200);
        assert_eq!(
            status(
                &[
                    site[0],
                    site[1],
                    navigation[2],
                    ("sec-fetch-dest", "iframe")
                ],
                "/",
                "GET"
            ),
            403
        );
        assert_eq!(
            status(
                &[site[0], ("sec-fetch-site", "same-origin")],
                "/v1/models",
                "GET"
            ),
            200
        );
        assert_eq!(
            status(
                &[site[0], site[1], ("origin", "https://chat.example.com")],
                "/v1/models",
                "GET"
            ),
            200
        );
    }
}
