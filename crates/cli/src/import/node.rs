//! The node that is written to, over HTTP.

use crate::failure::Failure;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, http};

/// How long an answer may take: a batch is written and synced in far less.
const TIME: Duration = Duration::from_secs(120);
/// Bytes of an answer.
const ANSWER_BYTES: u64 = 64 << 20;
/// How often a node that is busy is asked again, and the first wait; each is twice the one before.
const AGAIN: u32 = 8;
const WAIT: Duration = Duration::from_millis(100);

/// Which node, and who asks. Credentials come by variables, which other users of the machine do not see: LANEWISE_API_KEY, or
/// LANEWISE_USER and LANEWISE_PASSWORD.
#[derive(clap::Args)]
pub(super) struct NodeArguments {
    /// Where the node is; who asks is said by LANEWISE_API_KEY, or LANEWISE_USER and LANEWISE_PASSWORD [variable: LANEWISE_URL]
    /// [default: http://127.0.0.1:9200]
    #[arg(long)]
    url: Option<String>,
    /// Who signed the node's certificate, PEM [default: the authorities that browsers know]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// A node to be asked.
pub(super) struct Node {
    agent: Agent,
    url: String,
    authorization: Option<String>,
}

/// Why a request was given up.
pub(super) enum Refused {
    /// The user stopped it.
    Stopped,
    Said(String),
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Failure {
        match refused {
            Refused::Stopped => Failure::Interrupted("interrupted".to_owned()),
            Refused::Said(what) => Failure::Failed(what),
        }
    }
}

impl NodeArguments {
    pub(super) fn connect(&self) -> Result<Node, Failure> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = self.url.clone().or_else(|| variable("LANEWISE_URL"));
        let url = url.unwrap_or_else(|| "http://127.0.0.1:9200".to_owned()).trim_end_matches('/').to_owned();
        let usage = |what: &str| Failure::Usage(format!("--url {url}: {what}"));
        let uri: Uri = url.parse().map_err(|_| usage("give an address such as https://host:9200"))?;
        let secret = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(usage("begin it with http:// or https://")),
        };
        let user = variable("LANEWISE_USER").zip(variable("LANEWISE_PASSWORD"));
        let authorization = match (variable("LANEWISE_API_KEY"), user) {
            (Some(key), _) => Some(format!("ApiKey {key}")),
            (None, Some((user, password))) => Some(basic(&user, &password)),
            (None, None) => None,
        };
        if authorization.is_some() && !secret && !is_here(uri.host().unwrap_or_default()) {
            return Err(usage("a password or key goes to other machines by https:// alone"));
        }
        let roots = self.ca.as_deref().map(authorities).transpose()?.unwrap_or(RootCerts::WebPki);
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(TIME))
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build()
            .new_agent();
        Ok(Node { agent, url, authorization })
    }
}

fn basic(user: &str, password: &str) -> String {
    use base64::Engine;
    let encoded = base64::prelude::BASE64_STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {encoded}")
}

/// Whether a host is this machine.
fn is_here(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn authorities(path: &Path) -> Result<RootCerts, Failure> {
    let failed = |what: String| Failure::Failed(format!("--ca {}: {what}", path.display()));
    let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let all = parse_pem(&text).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let all: Vec<Certificate<'static>> = all.collect();
    if all.is_empty() {
        return Err(failed("it has no certificate in PEM form".to_owned()));
    }
    Ok(RootCerts::from(all))
}

impl Node {
    /// Whether an index is there.
    pub(super) fn has(&self, index: &str) -> Result<bool, Refused> {
        match self.ask("HEAD", &format!("/{}", escaped(index)), None)? {
            (200, _) => Ok(true),
            (404, _) => Ok(false),
            (status, _) => Err(Refused::Said(format!("{}: index {index}: status {status}", self.url))),
        }
    }

    /// Makes an index.
    pub(super) fn make(&self, index: &str, body: &Value) -> Result<(), Refused> {
        let body = body.to_string();
        let (status, answer) = self.ask("PUT", &format!("/{}", escaped(index)), Some(&body))?;
        if status == 200 { Ok(()) } else { Err(self.refused(status, &answer)) }
    }

    /// Writes documents. A node that is busy is asked again, unless `stop` says otherwise.
    pub(super) fn bulk(&self, index: &str, body: &str, stop: &dyn Fn() -> bool) -> Result<Value, Refused> {
        let path = format!("/{}/_bulk", escaped(index));
        let mut wait = WAIT;
        for left in (0..AGAIN).rev() {
            let (status, answer) = self.ask("POST", &path, Some(body))?;
            match status {
                200 => {
                    let wrong =
                        |error| Refused::Said(format!("{}: the answer is no JSON: {error}", self.url));
                    return serde_json::from_slice(&answer).map_err(wrong);
                }
                429 if left > 0 && !stop() => std::thread::sleep(wait),
                _ if stop() => return Err(Refused::Stopped),
                _ => return Err(self.refused(status, &answer)),
            }
            wait *= 2;
        }
        unreachable!("the last answer was returned")
    }

    fn ask(&self, method: &str, path: &str, body: Option<&str>) -> Result<(u16, Vec<u8>), Refused> {
        let failed = |error: String| Refused::Said(format!("{}: {error}", self.url));
        let mut request = http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let answered = match body {
            Some(body) => {
                let kind = if method == "POST" { "application/x-ndjson" } else { "application/json" };
                let request = request.header("Content-Type", kind).body(body);
                request
                    .map_err(|error| failed(error.to_string()))
                    .and_then(|request| self.agent.run(request).map_err(|error| failed(error.to_string())))
            }
            None => request
                .body(())
                .map_err(|error| failed(error.to_string()))
                .and_then(|request| self.agent.run(request).map_err(|error| failed(error.to_string()))),
        };
        let mut answered: http::Response<Body> = answered?;
        let read = answered.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec();
        Ok((answered.status().as_u16(), read.map_err(|error| failed(error.to_string()))?))
    }

    /// What an answer says went wrong.
    fn refused(&self, status: u16, answer: &[u8]) -> Refused {
        let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
        let reason = answer["error"]["reason"].as_str().unwrap_or("it does not say why");
        let hint = match status {
            401 => " (LANEWISE_API_KEY, or LANEWISE_USER and LANEWISE_PASSWORD)",
            _ => "",
        };
        Refused::Said(format!("{}: status {status}: {reason}{hint}", self.url))
    }
}

/// A part of a path.
fn escaped(name: &str) -> String {
    let each = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(each).collect()
}
