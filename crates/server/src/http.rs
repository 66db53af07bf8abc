//! From HTTP to calls and back: one service over the table of routes, within limits.

use crate::api::ROUTES;
use crate::auth::{Client, Denied, Guard};
use crate::body::{Budget, Held, stream, whole};
use crate::call::{Call, Content, Params, Reply};
use crate::error::ApiError;
use crate::filter_path::FilterPath;
use crate::log::Level;
use crate::metrics::Work;
use crate::node::Node;
use crate::origin;
use crate::route::{Reads, Role, Route};
use crate::watch::{watch, watch_at_once};
use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::any;
use lanewise_engine::allowed_bytes;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// What clients may ask for at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Bytes of a body, once unpacked.
    pub body_bytes: usize,
    /// Bytes of a bulk's body, which is read as it comes.
    pub stream_bytes: usize,
    /// Memory of all bodies together, each taken for sixteen times its bytes: read JSON may be so large.
    pub memory_bytes: usize,
    /// How long a client may take until the next bytes of its body are there; a body takes no longer than this, and a second
    /// for each 16 KiB.
    pub body_time: Duration,
    /// How long a client may take to send its head, and between requests.
    pub head_time: Duration,
    /// How long a client may take to read any of its answer.
    pub write_time: Duration,
    /// How long requests may take to end, once the node is told to stop.
    pub drain: Duration,
    /// Requests that are worked on at a time; others wait. A quarter of them may be bulks.
    pub at_once: usize,
    /// Connections; others are closed at once.
    pub connections: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        HttpLimits {
            body_bytes: 100 << 20,
            stream_bytes: 2 << 30,
            memory_bytes: allowed_bytes().map_or(2 << 30, |bytes| (bytes / 4) as usize),
            body_time: Duration::from_secs(30),
            head_time: Duration::from_secs(30),
            write_time: Duration::from_secs(30),
            drain: Duration::from_secs(30),
            at_once: 256,
            connections: 8192,
        }
    }
}

/// The address that a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// What every request needs.
struct Shared {
    node: Arc<Node>,
    limits: HttpLimits,
    guard: Option<Arc<Guard>>,
    at_once: Semaphore,
    streams: Semaphore,
    bodies: Arc<Budget>,
}

/// All routes of `node`, for whom `guard` lets in; for everybody, if there is none.
pub(crate) fn router(node: Arc<Node>, limits: HttpLimits, guard: Option<Arc<Guard>>) -> Router {
    let shared = Arc::new(Shared {
        node,
        limits,
        guard,
        at_once: Semaphore::new(limits.at_once),
        streams: Semaphore::new(limits.at_once.div_ceil(4)),
        bodies: Budget::new(limits.memory_bytes),
    });
    let mut by_path: BTreeMap<&str, Vec<&'static Route>> = BTreeMap::new();
    for route in ROUTES.iter().copied().flatten() {
        for path in route.paths {
            by_path.entry(path).or_default().push(route);
        }
    }
    let mut router = Router::new();
    for (path, routes) in by_path {
        let routes: Arc<[&'static Route]> = routes.into();
        let answer = move |State(shared): State<Arc<Shared>>, names: Given, request: Request| {
            let (routes, names) = (routes.clone(), named(names));
            async move { answer(shared, &routes, names, request).await }
        };
        router = router.route(path, any(answer));
    }
    let unknown = |State(shared): State<Arc<Shared>>, request: Request| async move {
        let (method, uri) = (request.method(), request.uri());
        let reason = format!("no handler found for uri [{uri}] and method [{method}]");
        answer(shared, &[], Err(ApiError::argument(reason)), request).await
    };
    router.fallback(unknown).with_state(shared)
}

/// What the braces of a path stand for, as it was given; as it is used.
type Given = Result<RawPathParams, RawPathParamsRejection>;
type Names = BTreeMap<String, String>;

fn named(given: Given) -> Result<Names, ApiError> {
    let given = given.map_err(|_| ApiError::argument("the path is not UTF-8"))?;
    Ok(given.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Answers a request to one of `routes`, which differ in their verbs; `names` says why there are none.
async fn answer(
    shared: Arc<Shared>,
    routes: &[&'static Route],
    names: Result<Names, ApiError>,
    request: Request,
) -> Response {
    let (began, from) = (Instant::now(), from(&request));
    let opaque = request.headers().get("x-opaque-id").cloned();
    let params = Params::parse(request.uri().query().unwrap_or_default());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut later = None;
    let credentials = request.headers().get(header::AUTHORIZATION).cloned();
    let site = origin::check(&request, shared.guard.is_some());
    let reply = match shared.let_in(site, credentials, from).await {
        Ok(client) => replied(&shared, routes, names, params.clone(), request, client.as_ref()).await,
        Err((error, wait)) => {
            later = wait;
            Err(error)
        }
    };
    let (log, metrics) = (&shared.node.log, &shared.node.metrics);
    if let Err(error) = &reply
        && error.status().is_server_error()
    {
        let more = [("path", path.as_str().into()), ("reason", error.to_string().into())];
        log.seldom(Level::Error, "a request failed", &more);
    }
    let mut response = written(reply, &params);
    let status = response.status();
    metrics.answered(status.as_u16());
    if log.takes(Level::Debug) {
        let more = [
            ("from", from.to_string().into()),
            ("method", method.as_str().into()),
            ("path", path.into()),
            ("status", status.as_u16().into()),
            ("took_ms", (began.elapsed().as_millis() as u64).into()),
        ];
        log.say(Level::Debug, "request", &more);
    }
    let headers = response.headers_mut();
    if let Some(opaque) = opaque {
        headers.insert("x-opaque-id", opaque);
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_static(BASIC));
        headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_static("ApiKey"));
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        let seconds = later.map_or(1, |wait: Duration| wait.as_secs() + 1);
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// How passwords are asked for.
const BASIC: &str = r#"Basic realm="lanewise", charset="UTF-8""#;

/// Where a request came from; nowhere, if nobody said.
fn from(request: &Request) -> IpAddr {
    request.extensions().get().map_or(Ipv4Addr::UNSPECIFIED.into(), |&Peer(from)| from)
}

impl Shared {
    /// Who asks, if somebody has to; `site` is what is wrong with where it comes from.
    async fn let_in(
        &self,
        site: Result<(), ApiError>,
        credentials: Option<HeaderValue>,
        from: IpAddr,
    ) -> Result<Option<Client>, (ApiError, Option<Duration>)> {
        site.map_err(|error| (error, None))?;
        let Some(guard) = &self.guard else { return Ok(None) };
        let credentials = credentials.as_ref().map(HeaderValue::as_bytes);
        let denied = match guard.who(credentials, from).await {
            Ok(client) => return Ok(Some(client)),
            Err(denied) => denied,
        };
        let (metrics, mut later) = (&self.node.metrics, None);
        let (status, reason) = match denied {
            Denied::Missing => {
                metrics.unknown.add();
                let reason = "who asks? Send user and password (Authorization: Basic) or an API key (Authorization: ApiKey)";
                (StatusCode::UNAUTHORIZED, reason)
            }
            Denied::Wrong => {
                metrics.unknown.add();
                (StatusCode::UNAUTHORIZED, "user and password, or the API key, are wrong")
            }
            Denied::Later(wait) => {
                metrics.throttled.add();
                later = Some(wait);
                (StatusCode::TOO_MANY_REQUESTS, "too many wrong passwords: try again later")
            }
            Denied::Busy => {
                metrics.throttled.add();
                (StatusCode::TOO_MANY_REQUESTS, "too many passwords are looked at: try again later")
            }
        };
        // Not who it says to be: people type passwords where names go.
        let more = [("from", from.to_string().into()), ("reason", reason.into())];
        self.node.log.seldom(Level::Warn, "not let in", &more);
        Err((ApiError::new(status, "security_exception", reason), later))
    }
}

async fn replied(
    shared: &Arc<Shared>,
    routes: &[&'static Route],
    names: Result<Names, ApiError>,
    params: Params,
    request: Request,
    client: Option<&Client>,
) -> Result<Reply, ApiError> {
    let (method, path) = (request.method().as_str(), request.uri().path());
    let names = names?;
    let Some(route) = routes.iter().find(|route| route.verbs.iter().any(|verb| verb.name() == method)) else {
        let allowed: Vec<&str> =
            routes.iter().flat_map(|route| route.verbs).map(|verb| verb.name()).collect();
        let reason = format!(
            "Incorrect HTTP method for uri [{path}] and method [{method}], allowed: [{}]",
            allowed.join(", ")
        );
        return Err(ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed_exception", reason));
    };
    if let Some(client) = client
        && client.role < route.role
    {
        shared.node.metrics.forbidden.add();
        return Err(forbidden(client, route.role));
    }
    params.check(path, route.params)?;
    let mut held = Held::nothing(&shared.bodies);
    // Whole bodies are read before their turn, so that slow clients keep nobody else waiting.
    let (body, _stream) = match route.reads {
        Reads::Whole => (whole(request, &shared.limits, &mut held).await?, None),
        Reads::Stream => {
            let place = shared.streams.acquire().await.expect("it is never closed");
            (stream(request, &shared.limits)?, Some(place))
        }
    };
    let _turn = shared.at_once.acquire().await.expect("it is never closed");
    let (handler, node, work) = (route.handler, shared.node.clone(), Work::of(route));
    let mut call = Call::new(names, params, body);
    let bug = || ApiError::internal("the request met a bug: please report it; nothing else is touched");
    if let Some(at_once) = route.at_once {
        let done = catch_unwind(AssertUnwindSafe(|| watch_at_once(&node, work, &mut call, at_once)));
        match done {
            Ok(None) => {}
            Ok(Some(reply)) => return reply,
            Err(_) => return Err(bug()),
        }
    }
    let done = tokio::task::spawn_blocking(move || {
        // Until the work is done, whoever still waits for it.
        let _held = held;
        watch(&node, work, &mut call, handler)
    });
    done.await.unwrap_or_else(|_| Err(bug()))
}

fn forbidden(client: &Client, role: Role) -> ApiError {
    ApiError::new(
        StatusCode::FORBIDDEN,
        "security_exception",
        format!(
            "no permissions: {:?} has the role {}, this needs {}",
            client.name,
            client.role.name(),
            role.name()
        ),
    )
}

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The answer as it is sent.
fn written(reply: Result<Reply, ApiError>, params: &Params) -> Response {
    let reply = reply.unwrap_or_else(|error| Reply::json(error.body()).with_status(error.status()));
    let pretty = params.flag("pretty", false).unwrap_or(false);
    let (kind, bytes) = match reply.content {
        Content::Nothing => ("application/json; charset=UTF-8", Vec::new()),
        Content::Text(text) => ("text/plain; charset=UTF-8", text.into_bytes()),
        Content::Asset { kind, text } => (kind, text.as_bytes().to_vec()),
        Content::Bytes(bytes) => ("application/json; charset=UTF-8", bytes),
        Content::Json(mut value) => {
            if let Some(paths) = params.get("filter_path") {
                value = FilterPath::parse(paths).apply(value);
            }
            let bytes = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) };
            ("application/json; charset=UTF-8", bytes.expect("keys are strings"))
        }
    };
    let mut response = Response::new(bytes.into());
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    // For browsers: what indexes hold is not to be run, and nobody shows the console within a page of theirs.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}
