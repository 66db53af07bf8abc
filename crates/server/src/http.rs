//! From HTTP to calls and back: one service over the table of routes, within limits.

use crate::api::ROUTES;
use crate::call::{Body, Call, Content, Params, Reply};
use crate::error::ApiError;
use crate::filter_path::FilterPath;
use crate::node::Node;
use crate::route::{Reads, Route};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::any;
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

/// What clients may ask for at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Bytes of a body, once unpacked (`http.max_content_length`).
    pub body_bytes: usize,
    /// Bytes of a bulk's body, which is read as it comes.
    pub stream_bytes: usize,
    /// How long a client may take until the next bytes of its body are there.
    pub body_time: Duration,
    /// How long a client may take to send its head, and between requests.
    pub head_time: Duration,
    /// How long requests may take to end, once the node is told to stop.
    pub drain: Duration,
    /// Requests that are worked on at a time; others wait.
    pub at_once: usize,
    /// Connections; others are closed at once.
    pub connections: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        HttpLimits {
            body_bytes: 100 << 20,
            stream_bytes: 2 << 30,
            body_time: Duration::from_secs(30),
            head_time: Duration::from_secs(30),
            drain: Duration::from_secs(30),
            at_once: 256,
            connections: 8192,
        }
    }
}

/// What every request needs.
struct Shared {
    node: Arc<Node>,
    limits: HttpLimits,
    at_once: Semaphore,
}

/// All routes of `node`.
pub(crate) fn router(node: Arc<Node>, limits: HttpLimits) -> Router {
    let shared = Arc::new(Shared { node, limits, at_once: Semaphore::new(limits.at_once) });
    let mut by_path: BTreeMap<&str, Vec<&'static Route>> = BTreeMap::new();
    for route in ROUTES.iter().copied().flatten() {
        for path in route.paths {
            by_path.entry(path).or_default().push(route);
        }
    }
    let mut router = Router::new();
    for (path, routes) in by_path {
        let answer = move |State(shared): State<Arc<Shared>>, names: RawPathParams, request: Request| {
            let routes = routes.clone();
            async move {
                let names = names.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                answer(shared, &routes, names, request).await
            }
        };
        router = router.route(path, any(answer));
    }
    let unknown = |request: Request| async move {
        let (method, uri) = (request.method(), request.uri());
        let reason = format!("no handler found for uri [{uri}] and method [{method}]");
        written(Err(ApiError::argument(reason)), &Params::default())
    };
    router.fallback(unknown).with_state(shared)
}

async fn answer(
    shared: Arc<Shared>,
    routes: &[&'static Route],
    names: BTreeMap<String, String>,
    request: Request,
) -> Response {
    let opaque = request.headers().get("x-opaque-id").cloned();
    let params = Params::parse(request.uri().query().unwrap_or_default());
    let reply = replied(shared, routes, names, params.clone(), request).await;
    let mut response = written(reply, &params);
    if let Some(opaque) = opaque {
        response.headers_mut().insert("x-opaque-id", opaque);
    }
    response
}

async fn replied(
    shared: Arc<Shared>,
    routes: &[&'static Route],
    names: BTreeMap<String, String>,
    params: Params,
    request: Request,
) -> Result<Reply, ApiError> {
    let (method, path) = (request.method().as_str(), request.uri().path());
    let Some(route) = routes.iter().find(|route| route.verbs.iter().any(|verb| verb.name() == method)) else {
        let allowed: Vec<&str> =
            routes.iter().flat_map(|route| route.verbs).map(|verb| verb.name()).collect();
        let reason = format!(
            "Incorrect HTTP method for uri [{path}] and method [{method}], allowed: [{}]",
            allowed.join(", ")
        );
        return Err(ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed_exception", reason));
    };
    params.check(path, route.params)?;
    let _turn = shared.at_once.acquire().await.expect("it is never closed");
    let body = match route.reads {
        Reads::Whole => whole(request, &shared.limits).await?,
        Reads::Stream => stream(request, &shared.limits)?,
    };
    let (handler, node) = (route.handler, shared.node.clone());
    let mut call = Call { names, params, body };
    let done = tokio::task::spawn_blocking(move || handler(&node, &mut call)).await;
    done.unwrap_or_else(|_| {
        let reason = "the request met a bug: please report it; nothing else is touched";
        Err(ApiError::internal(reason))
    })
}

fn too_large(limit: usize) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "content_too_long_exception",
        format!(
            "the body has more than {limit} bytes: send less at a time, or raise http.max_content_length"
        ),
    )
}

fn packed(request: &Request) -> Result<bool, ApiError> {
    match request.headers().get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(false),
        Some(b"gzip") => Ok(true),
        Some(other) => Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "illegal_argument_exception",
            format!("Content-Encoding {:?}: send gzip, or nothing", String::from_utf8_lossy(other)),
        )),
    }
}

/// The body, read to its end.
async fn whole(request: Request, limits: &HttpLimits) -> Result<Body, ApiError> {
    let (packed, limit) = (packed(&request)?, limits.body_bytes);
    let mut source = Incoming::new(request, limits.body_time);
    let mut bytes = Vec::new();
    while let Some(piece) = source.next().await? {
        if bytes.len() + piece.len() > limit {
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&piece);
    }
    if !packed {
        return Ok(Body::Whole(bytes));
    }
    let unpack = move || {
        let mut unpacked = Vec::new();
        let read = GzDecoder::new(&bytes[..]).take(limit as u64 + 1).read_to_end(&mut unpacked);
        read.map_err(|error| ApiError::parsing(format!("the body is no gzip: {error}")))?;
        if unpacked.len() > limit { Err(too_large(limit)) } else { Ok(Body::Whole(unpacked)) }
    };
    tokio::task::spawn_blocking(unpack).await.expect("it does not panic")
}

/// The body, as it comes.
fn stream(request: Request, limits: &HttpLimits) -> Result<Body, ApiError> {
    let (packed, limit) = (packed(&request)?, limits.stream_bytes);
    let mut source = Incoming::new(request, limits.body_time);
    let (send, pieces) = mpsc::channel(4);
    tokio::spawn(async move {
        loop {
            let piece = match source.next().await {
                Ok(None) => return,
                Ok(Some(piece)) => Ok(piece),
                Err(error) => Err(io::Error::other(error)),
            };
            let over = piece.is_err();
            if send.send(piece).await.is_err() || over {
                return;
            }
        }
    });
    let pieces = Pieces { pieces, now: Bytes::new() };
    let read: Box<dyn Read + Send> =
        if packed { Box::new(Unpacked::Not(Some(pieces))) } else { Box::new(pieces) };
    Ok(Body::Stream(Box::new(Limited { read, left: limit, limit })))
}

/// A body's bytes, each piece within a time.
struct Incoming {
    data: axum::body::BodyDataStream,
    within: Duration,
}

impl Incoming {
    fn new(request: Request, within: Duration) -> Incoming {
        Incoming { data: request.into_body().into_data_stream(), within }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        use futures_core::Stream;
        let data = &mut self.data;
        let next = std::future::poll_fn(|context| std::pin::Pin::new(&mut *data).poll_next(context));
        match tokio::time::timeout(self.within, next).await {
            Ok(piece) => piece
                .transpose()
                .map_err(|error| ApiError::parsing(format!("the body cannot be read: {error}"))),
            Err(_) => Err(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "timeout_exception",
                format!("nothing of the body came for {} s", self.within.as_secs()),
            )),
        }
    }
}

/// The other end of [`stream`].
struct Pieces {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    now: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.now.is_empty() {
            match self.pieces.blocking_recv() {
                None => return Ok(0),
                Some(piece) => self.now = piece?,
            }
        }
        let len = to.len().min(self.now.len());
        to[..len].copy_from_slice(&self.now.split_to(len));
        Ok(len)
    }
}

/// What gzip packed. Its decoder reads as soon as it is made, so that is done by whoever reads, who may wait.
enum Unpacked {
    Not(Option<Pieces>),
    By(GzDecoder<Pieces>),
}

impl Read for Unpacked {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if let Unpacked::Not(pieces) = self {
            let pieces = pieces.take().ok_or_else(|| io::Error::other("it ended before"))?;
            *self = Unpacked::By(GzDecoder::new(pieces));
        }
        let Unpacked::By(decoder) = self else { unreachable!("it was just made") };
        decoder.read(to)
    }
}

/// Ends with an error after so many bytes.
struct Limited {
    read: Box<dyn Read + Send>,
    left: usize,
    limit: usize,
}

impl Read for Limited {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.read.read(to)?;
        self.left = self.left.checked_sub(read).ok_or_else(|| io::Error::other(too_large(self.limit)))?;
        Ok(read)
    }
}

/// The answer as it is sent.
fn written(reply: Result<Reply, ApiError>, params: &Params) -> Response {
    let reply = reply.unwrap_or_else(|error| Reply::json(error.body()).with_status(error.status()));
    let pretty = params.flag("pretty", false).unwrap_or(false);
    let (kind, bytes) = match reply.content {
        Content::Nothing => ("application/json; charset=UTF-8", Vec::new()),
        Content::Text(text) => ("text/plain; charset=UTF-8", text.into_bytes()),
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
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
