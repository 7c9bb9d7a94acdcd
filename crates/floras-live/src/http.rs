//! The part of HTTP/1.1 that the page needs: GET requests, and responses that close the connection.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// Maximum size of a request's head, in bytes.
const MAX_HEAD: usize = 8 << 10;
/// A request must be complete after this time.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The Content-Security-Policy of the page: it may load resources of this server only.
pub(crate) const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The Content-Security-Policy of a report: it contains its style and its script, and links to files beside it.
pub(crate) const REPORT_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
     img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The response to a request that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    BadRequest,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    Busy,
}

impl Refusal {
    fn status(self) -> (&'static str, &'static str) {
        match self {
            Self::BadRequest => ("400 Bad Request", "the request is not a valid HTTP request"),
            Self::Forbidden => {
                ("403 Forbidden", "the Host of the request must be 127.0.0.1 or localhost, with the port")
            }
            Self::NotFound => ("404 Not Found", "the live view has no such page"),
            Self::MethodNotAllowed => ("405 Method Not Allowed", "the live view only answers GET"),
            Self::Busy => ("503 Service Unavailable", "too many connections"),
        }
    }

    /// Writes the response.
    pub(crate) fn write(self, out: &mut impl Write) -> io::Result<()> {
        let (status, words) = self.status();
        let allow = if self == Self::MethodNotAllowed { "Allow: GET\r\n" } else { "" };
        let text = format!("{words}\n");
        head(out, status, "text/plain; charset=utf-8", PAGE_POLICY, Some(text.len() as u64), allow)?;
        out.write_all(text.as_bytes())
    }
}

/// Reads a request and returns its path. Refuses all methods except GET, and a `Host` other than this server's port on
/// 127.0.0.1 or localhost.
pub(crate) fn read_path(stream: &mut impl Read, port: u16) -> Result<String, Refusal> {
    let bytes = read_head(stream).ok_or(Refusal::BadRequest)?;
    path_of(&bytes, port)
}

/// The head of a request, up to its empty line; `None` if it is incomplete, too late or too large.
fn read_head(stream: &mut impl Read) -> Option<Vec<u8>> {
    let (start, mut bytes, mut part) = (Instant::now(), Vec::new(), [0; 1024]);
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        if start.elapsed() > MAX_WAIT || bytes.len() > MAX_HEAD {
            return None;
        }
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&part[..count]),
        }
    }
    Some(bytes)
}

fn path_of(head: &[u8], port: u16) -> Result<String, Refusal> {
    let text = std::str::from_utf8(head).map_err(|_| Refusal::BadRequest)?;
    let mut lines = text.split("\r\n");
    let request: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = request[..] else { return Err(Refusal::BadRequest) };
    if !version.starts_with("HTTP/1.") {
        return Err(Refusal::BadRequest);
    }
    let hosts: Vec<&str> = lines
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, host)| host.trim())
        .collect();
    let [host] = hosts[..] else { return Err(Refusal::BadRequest) };
    if !is_this_host(host, port) {
        return Err(Refusal::Forbidden);
    }
    if method != "GET" {
        return Err(Refusal::MethodNotAllowed);
    }
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    if !path.starts_with('/') {
        return Err(Refusal::BadRequest);
    }
    Ok(path.to_owned())
}

fn is_this_host(host: &str, port: u16) -> bool {
    let (name, given) = host.rsplit_once(':').unwrap_or((host, "80"));
    given.parse() == Ok(port) && (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost"))
}

/// Writes the head of a response.
pub(crate) fn head(
    out: &mut impl Write,
    status: &str,
    content_type: &str,
    policy: &str,
    length: Option<u64>,
    more: &str,
) -> io::Result<()> {
    let length = length.map_or(String::new(), |length| format!("Content-Length: {length}\r\n"));
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n{length}Content-Security-Policy: {policy}\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n{more}\r\n"
    );
    out.write_all(head.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(request: &str) -> Result<String, Refusal> {
        read_path(&mut request.as_bytes(), 8080)
    }

    #[test]
    fn the_path_of_a_request_is_read() {
        assert_eq!(path("GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"), Ok("/".to_owned()));
        let request = "GET /events?last=3 HTTP/1.1\r\nAccept: */*\r\nhost:LOCALHOST:8080\r\n\r\n";
        assert_eq!(path(request), Ok("/events".to_owned()));
    }

    #[test]
    fn other_hosts_are_refused() {
        for host in
            ["example.org", "example.org:8080", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.example.org:8080"]
        {
            let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(path(&request), Err(Refusal::Forbidden), "{host}");
        }
        assert_eq!(path("GET / HTTP/1.1\r\n\r\n"), Err(Refusal::BadRequest), "no host");
        let twice = "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nHost: example.org\r\n\r\n";
        assert_eq!(path(twice), Err(Refusal::BadRequest));
    }

    #[test]
    fn other_methods_are_refused() {
        for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"] {
            let request = format!("{method} / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n");
            assert_eq!(path(&request), Err(Refusal::MethodNotAllowed), "{method}");
        }
    }

    #[test]
    fn invalid_requests_are_refused() {
        let long =
            format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nX: {}\r\n\r\n", "x".repeat(MAX_HEAD + 2000));
        let cases =
            ["", "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n", "hello\r\n\r\n", "GET /\r\n\r\n", &long];
        for request in cases {
            assert_eq!(path(request), Err(Refusal::BadRequest), "{request:.40}");
        }
    }
}
