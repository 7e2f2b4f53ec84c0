//! Builds the request that follows a redirect.

use api::Request;
use api::tape::Head;
use url::Url;

/// Why a redirect must not be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// The redirect's target is not a URL.
    #[error("the server redirects to a place that is not a URL")]
    Invalid,
    /// The target's scheme is neither http nor https, or the target has no host.
    #[error("the server redirects to a {0} address, which is neither http nor https")]
    Scheme(String),
    /// The next request would be unencrypted, but this one was encrypted.
    #[error("the server redirects from https to http")]
    Downgrade,
    /// The target URL contains credentials.
    #[error("the server redirects to an address with a user in it")]
    User,
}

/// Returns the redirect target as the server wrote it, or `None` if the response is not a redirect.
pub fn redirect(head: &Head) -> Option<&str> {
    matches!(head.status, 301 | 302 | 303 | 307 | 308).then(|| head.header("location"))?
}

/// Returns the request that follows a redirect of `request` with this status to `place`, by the
/// rules of browsers (<https://fetch.spec.whatwg.org/#http-redirect-fetch>). If the scheme, host or
/// port changes, all headers except the body's media type are dropped, because credentials are
/// meant only for the original server.
///
/// # Errors
/// See [`RedirectError`].
pub fn follow(request: &Request, status: u16, place: &str) -> Result<Request, RedirectError> {
    let base = Url::parse(&request.url).map_err(|_| RedirectError::Invalid)?;
    let mut url = base.join(place).map_err(|_| RedirectError::Invalid)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(RedirectError::Scheme(
            url.scheme().chars().take(20).collect(),
        ));
    }
    if base.scheme() == "https" && url.scheme() == "http" {
        return Err(RedirectError::Downgrade);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(RedirectError::User);
    }
    url.set_fragment(None);
    let mut next = Request {
        url: url.to_string(),
        ..request.clone()
    };
    let drops_body = match status {
        303 => next.method != "GET",
        301 | 302 => next.method == "POST",
        _ => false,
    };
    if drops_body {
        (next.method, next.body) = ("GET", String::new());
    }
    let is_other = url.origin() != base.origin();
    next.headers.retain(|(name, _)| {
        if name == "content-type" {
            !drops_body
        } else {
            !is_other
        }
    });
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &'static str, url: &str) -> Request {
        let headers = ["authorization", "x-tenant", "content-type"]
            .map(|name| (name.to_owned(), "v".to_owned()));
        Request {
            method,
            url: url.to_owned(),
            headers: headers.to_vec(),
            body: "{}".to_owned(),
        }
    }

    fn headers(request: &Request) -> String {
        request
            .headers
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn headers_stay_with_their_scheme_host_and_port() {
        let all = "authorization x-tenant content-type";
        for (place, url, kept) in [
            ("/b?x=1#top", "https://h/b?x=1", all),
            ("c", "https://h/a/c", all),
            ("https://H:443/b", "https://h/b", all),
            ("//other/b", "https://other/b", "content-type"),
            ("https://h:8443/b", "https://h:8443/b", "content-type"),
            (
                "https://h.evil.example/",
                "https://h.evil.example/",
                "content-type",
            ),
            ("https://h./", "https://h./", "content-type"),
        ] {
            let next = follow(&request("PUT", "https://h/a/b"), 307, place).unwrap();
            assert_eq!(
                (next.url.as_str(), headers(&next).as_str()),
                (url, kept),
                "{place}"
            );
        }
        let next = follow(&request("GET", "http://h/"), 302, "https://h/").unwrap();
        assert_eq!(headers(&next), "content-type");
    }

    #[test]
    fn the_method_changes_as_in_browsers() {
        for (status, method, next_method) in [
            (301, "POST", "GET"),
            (302, "POST", "GET"),
            (302, "PUT", "PUT"),
            (303, "PUT", "GET"),
            (303, "GET", "GET"),
            (307, "POST", "POST"),
            (308, "DELETE", "DELETE"),
        ] {
            let next = follow(&request(method, "https://h/"), status, "/b").unwrap();
            assert_eq!(next.method, next_method, "{status}");
            assert_eq!(
                next.body.is_empty(),
                next_method != method,
                "{status} {method}"
            );
        }
    }

    #[test]
    fn some_places_are_refused() {
        for (place, says) in [
            ("file:///etc/passwd", "a file address"),
            ("gopher://h/", "a gopher address"),
            ("javascript:alert(1)", "a javascript address"),
            ("http://h/b", "from https to http"),
            ("https://me:pw@h/", "with a user"),
            ("https://user@h/", "with a user"),
            ("https://", "not a URL"),
            ("https://h:99999/", "not a URL"),
        ] {
            let refused = follow(&request("GET", "https://h/"), 302, place)
                .unwrap_err()
                .to_string();
            assert!(refused.contains(says), "{place}: {refused}");
        }
        let head = |status, headers: &[(&str, &str)]| {
            let headers = headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            Head {
                status,
                headers,
                ..Head::default()
            }
        };
        assert_eq!(redirect(&head(302, &[("location", "/b")])), Some("/b"));
        assert_eq!(redirect(&head(302, &[])), None);
        assert_eq!(redirect(&head(200, &[("location", "/b")])), None);
    }
}
