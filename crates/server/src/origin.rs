//! Whether a request comes from a page of another site that somebody looks at in a browser: such a page can send requests to
//! this machine's own ports, too.
//!
//! A page of another site is known by its `Origin`. A page whose name was made to lead here (DNS rebinding) has our address
//! and its own name, which then stands in `Host`: where nobody is asked who they are, names with dots are refused.

use crate::error::ApiError;
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode, Version, header};
use std::net::IpAddr;

/// Refuses what no client of ours sends.
///
/// # Errors
/// If its `Origin` is another site, its `Host` is missing or there twice, or it is a name that may be another's.
pub(crate) fn check(request: &Request, guarded: bool) -> Result<(), ApiError> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (None, _) if request.version() < Version::HTTP_11 => return Ok(()),
        (Some(host), None) => host,
        _ => return Err(ApiError::argument("Host: give one")),
    };
    let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    let host = host.ok_or_else(|| ApiError::argument("Host: it is no address"))?;
    // `GET http://name/ HTTP/1.1`: it goes before `Host` (RFC 9112, 3.2.2).
    let host = request.uri().authority().cloned().unwrap_or(host);
    let refused = |reason: String| Err(ApiError::new(StatusCode::FORBIDDEN, "security_exception", reason));
    if let Some(origin) = request.headers().get(header::ORIGIN)
        && !is_ours(origin, &host)
    {
        return refused(format!("pages of other sites are not answered: {origin:?} is not {host}"));
    }
    let name = host.host();
    let literal = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    if !guarded && !literal && name.contains('.') && !name.ends_with(".localhost") {
        return refused(format!(
            "Host: {name} may be a name that somebody made to lead here: without users, give an address, or a name without dots"
        ));
    }
    Ok(())
}

fn is_ours(origin: &HeaderValue, host: &Authority) -> bool {
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, origin)| origin.eq_ignore_ascii_case(host.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn checked(headers: &[(&str, &str)], guarded: bool) -> Option<StatusCode> {
        let mut request = Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check(&request.body(Body::empty()).unwrap(), guarded).err().map(|error| error.status())
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let ours = [("Host", "localhost:9200"), ("Origin", "http://localhost:9200")];
        assert_eq!(checked(&ours, false), None);
        for origin in ["http://localhost:3000", "https://evil.example", "null", "localhost:9200", ""] {
            for guarded in [false, true] {
                let headers = [("Host", "localhost:9200"), ("Origin", origin)];
                assert_eq!(checked(&headers, guarded), Some(StatusCode::FORBIDDEN), "{origin}");
            }
        }
    }

    #[test]
    fn names_that_somebody_may_have_made_are_refused_where_nobody_is_asked_who_they_are() {
        for host in
            ["127.0.0.1:9200", "127.0.0.1", "[::1]:9200", "localhost", "lanewise:9200", "a.localhost:1"]
        {
            assert_eq!(checked(&[("Host", host)], false), None, "{host}");
        }
        for host in ["evil.example:9200", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example."]
        {
            assert_eq!(checked(&[("Host", host)], false), Some(StatusCode::FORBIDDEN), "{host}");
            assert_eq!(checked(&[("Host", host)], true), None, "{host}");
        }
        assert_eq!(checked(&[], true), Some(StatusCode::BAD_REQUEST));
        let twice = [("Host", "localhost"), ("Host", "127.0.0.1")];
        assert_eq!(checked(&twice, true), Some(StatusCode::BAD_REQUEST));
        assert_eq!(checked(&[("Host", "a b")], true), Some(StatusCode::BAD_REQUEST));
    }
}
