//! What happened, a line each, as text or as JSON. Whoever says something never waits: a thread writes, and what it cannot
//! keep up with is left out and counted. What clients sent is escaped; secrets are never given to it.

use crate::node::now_ms;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::io::Write;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Lines that wait to be written.
const WAITING: usize = 4096;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

impl Level {
    const ALL: [Level; 4] = [Level::Error, Level::Warn, Level::Info, Level::Debug];

    fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }
}

impl FromStr for Level {
    type Err = ();

    fn from_str(name: &str) -> Result<Level, ()> {
        Level::ALL.into_iter().find(|level| level.name() == name).ok_or(())
    }
}

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Form {
    Text,
    Json,
}

impl FromStr for Form {
    type Err = ();

    fn from_str(name: &str) -> Result<Form, ()> {
        match name {
            "text" => Ok(Form::Text),
            "json" => Ok(Form::Json),
            _ => Err(()),
        }
    }
}

/// Where lines go.
pub(crate) struct Log {
    level: Level,
    form: Form,
    send: Mutex<Option<SyncSender<String>>>,
    left_out: AtomicU64,
    /// The second in which something that may come often was said last.
    second: AtomicU64,
}

impl Log {
    /// A log, and what is to be run to write it: it returns once the log is ended and all is written.
    pub(crate) fn new(level: Level, form: Form, to: impl Write + Send) -> (Log, impl FnOnce() + Send) {
        let (send, lines) = sync_channel(WAITING);
        let log = Log { level, form, send: Mutex::new(Some(send)), ..Log::silent() };
        (log, move || write(&lines, to))
    }

    /// Nobody listens.
    pub(crate) fn silent() -> Log {
        Log {
            level: Level::Error,
            form: Form::Text,
            send: Mutex::new(None),
            left_out: AtomicU64::new(0),
            second: AtomicU64::new(0),
        }
    }

    /// Whether such lines are wanted.
    pub(crate) fn takes(&self, level: Level) -> bool {
        level <= self.level
    }

    /// Lines that were left out.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// Says what happened.
    pub(crate) fn say(&self, level: Level, what: &str, more: &[(&str, Value)]) {
        if !self.takes(level) {
            return;
        }
        let line = line(self.form, now_ms(), level, what, more);
        let send = self.send.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(send) = &*send
            && send.try_send(line).is_err()
        {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The same for what clients can bring about: one such line a second.
    pub(crate) fn seldom(&self, level: Level, what: &str, more: &[(&str, Value)]) {
        let now = now_ms() / 1000;
        if self.second.swap(now, Ordering::Relaxed) != now {
            self.say(level, what, more);
        }
    }

    /// Nothing comes any more.
    pub(crate) fn end(&self) {
        *self.send.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn write(lines: &Receiver<String>, mut to: impl Write) {
    // A standard error that takes nothing is no reason to stop.
    for line in lines {
        let _ = to.write_all(line.as_bytes());
    }
    let _ = to.flush();
}

fn line(form: Form, now_ms: u64, level: Level, what: &str, more: &[(&str, Value)]) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(now_ms) * 1_000_000);
    let time = time.ok().and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_default();
    if form == Form::Json {
        let mut all = Map::new();
        all.insert("time".to_owned(), time.into());
        all.insert("level".to_owned(), level.name().into());
        all.insert("message".to_owned(), what.into());
        all.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        return Value::Object(all).to_string() + "\n";
    }
    let mut line = format!("{time} {:5} {what}", level.name());
    for (name, value) in more {
        match value {
            Value::String(text) if plain(text) => write!(line, " {name}={text}"),
            // Quoted, with what is no letter escaped.
            Value::String(text) => write!(line, " {name}={text:?}"),
            other => write!(line, " {name}={other}"),
        }
        .expect("a text takes all");
    }
    line.push('\n');
    line
}

/// Whether a value needs no quotes.
fn plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\' | b'='))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn a_line_is_one_line_whatever_is_in_it() {
        let hostile = "a\nERROR forged \u{1b}[31m\u{2028}\"";
        let more = [("index", "products".into()), ("took_ms", 7.into()), ("source", hostile.into())];
        let text = line(Form::Text, 1_700_000_000_123, Level::Warn, "slow", &more);
        assert!(
            text.starts_with("2023-11-14T22:13:20.123Z warn  slow index=products took_ms=7 source="),
            "{text}"
        );
        assert_eq!(
            text.trim_end().chars().filter(|c| c.is_control() || *c == '\u{2028}').count(),
            0,
            "{text}"
        );
        let read: Value = serde_json::from_str(&line(Form::Json, 0, Level::Warn, "slow", &more)).unwrap();
        let expected = json!({"time": "1970-01-01T00:00:00Z", "level": "warn", "message": "slow",
            "index": "products", "took_ms": 7, "source": hostile});
        assert_eq!(read, expected);
    }

    #[test]
    fn nobody_waits_for_who_writes() {
        let (log, write) = Log::new(Level::Info, Form::Text, Kept::default());
        for n in 0..WAITING + 3 {
            log.say(Level::Info, "line", &[("n", n.into())]);
            log.say(Level::Debug, "not wanted", &[]);
        }
        assert_eq!(log.left_out(), 3);
        log.end();
        log.say(Level::Info, "after the end", &[]);
        write();
    }

    /// What was written, in whole lines.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            assert_eq!(text.lines().count(), WAITING);
            assert!(text.lines().next().unwrap().ends_with(" info  line n=0"), "{text}");
            Ok(())
        }
    }
}
