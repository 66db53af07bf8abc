//! Bodies of requests: read whole or as they come, unpacked, within limits of size, time and memory.

use crate::call::Body;
use crate::error::ApiError;
use crate::http::HttpLimits;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use flate2::read::GzDecoder;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// What a byte of JSON may take once it is read: `[1,1,…]` has 32 bytes for each two.
const READ: usize = 16;
/// Bytes that are unpacked at a time.
const STEP: usize = 64 << 10;
/// Bytes a second that a body must come with, once its time is over.
const RATE: u64 = 16 << 10;

fn too_large(limit: usize) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "content_too_long_exception",
        format!(
            "the body has more than {limit} bytes: send less at a time, or raise limits.body, limits.stream or limits.memory"
        ),
    )
}

/// Memory for all bodies together.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    limit: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Budget> {
        Arc::new(Budget { used: AtomicUsize::new(0), limit })
    }
}

/// What one body has of it, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Held {
    pub(crate) fn nothing(budget: &Arc<Budget>) -> Held {
        Held { budget: budget.clone(), bytes: 0 }
    }

    /// Has enough for a body of `len` bytes.
    ///
    /// # Errors
    /// If others have too much, or it would not fit alone.
    fn fit(&mut self, len: usize) -> Result<(), ApiError> {
        let more = len.saturating_mul(READ).saturating_sub(self.bytes);
        let limit = self.budget.limit;
        // Relaxed: the number alone is shared.
        let used = self.budget.used.fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
        if used.saturating_add(more) <= limit {
            return Ok(());
        }
        if self.bytes > limit {
            return Err(too_large(limit / READ));
        }
        Err(ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "circuit_breaking_exception",
            format!(
                "bodies of requests would take {} bytes of memory, limits.memory is {limit}: send again later",
                used + more
            ),
        ))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
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
///
/// # Errors
/// If it is too large or too slow, or breaks off.
pub(crate) async fn whole(request: Request, limits: &HttpLimits, held: &mut Held) -> Result<Body, ApiError> {
    let (packed, limit) = (packed(&request)?, limits.body_bytes);
    let mut source = Incoming::new(request, limits.body_time);
    let mut bytes = Vec::new();
    while let Some(piece) = source.next().await? {
        if bytes.len() + piece.len() > limit {
            return Err(too_large(limit));
        }
        held.fit(bytes.len() + piece.len())?;
        bytes.extend_from_slice(&piece);
    }
    if !packed {
        return Ok(Body::Whole(bytes));
    }
    let mut ours = std::mem::replace(held, Held::nothing(&held.budget));
    let unpack = move || {
        let (mut from, mut unpacked) = (GzDecoder::new(&bytes[..]).take(limit as u64 + 1), Vec::new());
        loop {
            let read = from.by_ref().take(STEP as u64).read_to_end(&mut unpacked);
            let read = read.map_err(|error| ApiError::parsing(format!("the body is no gzip: {error}")))?;
            if unpacked.len() > limit {
                return Err(too_large(limit));
            }
            ours.fit(unpacked.len() + bytes.len())?;
            if read == 0 {
                return Ok((Body::Whole(unpacked), ours));
            }
        }
    };
    let (body, ours) = tokio::task::spawn_blocking(unpack).await.expect("it does not panic")?;
    *held = ours;
    Ok(body)
}

/// The body, as it comes.
///
/// # Errors
/// If it is packed in a way that is not known.
pub(crate) fn stream(request: Request, limits: &HttpLimits) -> Result<Body, ApiError> {
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

/// A body's bytes, each piece within a time, and all at a rate.
struct Incoming {
    data: axum::body::BodyDataStream,
    within: Duration,
    /// Time that was waited for it: whoever reads slowly is not the client.
    waited: Duration,
    bytes: u64,
}

impl Incoming {
    fn new(request: Request, within: Duration) -> Incoming {
        Incoming { data: request.into_body().into_data_stream(), within, waited: Duration::ZERO, bytes: 0 }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        use futures_core::Stream;
        let allowed = self.within + Duration::from_secs(self.bytes / RATE);
        let left = allowed.saturating_sub(self.waited).min(self.within);
        let (data, began) = (&mut self.data, Instant::now());
        let next = std::future::poll_fn(|context| std::pin::Pin::new(&mut *data).poll_next(context));
        let next = tokio::time::timeout(left, next).await;
        self.waited += began.elapsed();
        let Ok(piece) = next else {
            return Err(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "timeout_exception",
                format!("{} bytes of the body came in {:.1} s", self.bytes, self.waited.as_secs_f64()),
            ));
        };
        let piece = piece.transpose();
        let piece = piece.map_err(|error| ApiError::parsing(format!("the body cannot be read: {error}")))?;
        self.bytes += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Ok(piece)
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
