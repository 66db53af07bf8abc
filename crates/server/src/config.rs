//! What a node is told: by a file, by the environment and by arguments, all by the same keys. Whoever comes later wins.

use crate::http::HttpLimits;
use crate::log::{Form, Level};
use crate::settings::{bytes, time_ms};
use crate::watch::SlowSearches;
use lanewise_engine::MemoryLimit;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use toml::{Table, Value};

/// What every variable of the environment begins with.
const PREFIX: &str = "LANEWISE_";
/// Variables that say something else: the kernels' level, the file itself, and where `import` goes.
const OTHERS: &[&str] = &["ISA", "CONFIG", "URL", "USER", "PASSWORD", "API_KEY"];

/// What a node is told.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "`KEYS` says what each is")]
pub struct Config {
    pub data: PathBuf,
    pub listen: IpAddr,
    pub port: u16,
    pub name: String,
    pub memory_limit: MemoryLimit,
    pub threads: Option<NonZeroUsize>,
    pub users: Option<PathBuf>,
    pub repositories: Vec<PathBuf>,
    pub certificate: Option<PathBuf>,
    pub private_key: Option<PathBuf>,
    pub limits: HttpLimits,
    pub log_level: Level,
    pub log_form: Form,
    pub slow: SlowSearches,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            data: "lanewise-data".into(),
            listen: Ipv4Addr::LOCALHOST.into(),
            port: 9200,
            name: "lanewise".to_owned(),
            memory_limit: MemoryLimit::default(),
            threads: None,
            users: None,
            repositories: Vec::new(),
            certificate: None,
            private_key: None,
            limits: HttpLimits::default(),
            log_level: Level::Info,
            log_form: Form::Text,
            slow: SlowSearches::default(),
        }
    }
}

/// One thing that a node can be told.
pub struct Key {
    /// Its name: in a file; in upper case with `_` for `.` behind `LANEWISE_` in the environment.
    pub name: &'static str,
    /// What holds if nobody says it.
    pub usual: &'static str,
    /// What it means, for the documentation.
    pub says: &'static str,
    set: fn(&mut Config, &str) -> Result<(), String>,
}

/// Everything that a node can be told.
pub const KEYS: &[Key] = &[
    Key {
        name: "data",
        usual: "lanewise-data",
        says: "the folder of its data, made if it is missing",
        set: |config, value| path(value).map(|value| config.data = value),
    },
    Key {
        name: "listen",
        usual: "127.0.0.1",
        says: "the address that it listens at; one that is not this machine's alone needs TLS and users",
        set: |config, value| {
            parsed(value, "an IP address such as 127.0.0.1 or ::1").map(|value| config.listen = value)
        },
    },
    Key {
        name: "port",
        usual: "9200",
        says: "the port; 0: any that is free",
        set: |config, value| {
            let what = match value.contains("://") {
                true => {
                    "a number up to 65535; Kubernetes sets LANEWISE_PORT where a service is called lanewise: set \
                         enableServiceLinks: false, or call it otherwise"
                }
                false => "a number up to 65535",
            };
            parsed(value, what).map(|value| config.port = value)
        },
    },
    Key {
        name: "name",
        usual: "lanewise",
        says: "what the node is called in answers",
        set: |config, value| {
            let fits = (1..=255).contains(&value.len()) && !value.chars().any(char::is_control);
            config.name = value.to_owned();
            if fits { Ok(()) } else { Err("give 1 to 255 bytes without control characters".to_owned()) }
        },
    },
    Key {
        name: "memory_limit",
        usual: "70%",
        says: "what tables, searches and merges may take: bytes, a share of what the container or the machine has, or `none`",
        set: |config, value| parsed(value, "512mb, 70% or none").map(|value| config.memory_limit = value),
    },
    Key {
        name: "threads",
        usual: "all",
        says: "threads that build indexes; searches use every core that the process may",
        set: |config, value| {
            config.threads = match value {
                "all" => None,
                number => Some(parsed(number, "a number from 1, or all")?),
            };
            Ok(())
        },
    },
    Key {
        name: "users",
        usual: "none",
        says: "the file of users and API keys (`lanewise user`, `lanewise key`)",
        set: |config, value| path(value).map(|value| config.users = Some(value)),
    },
    Key {
        name: "path.repo",
        usual: "none",
        says: "folders below which snapshots may be made, with `:` between them",
        set: |config, value| {
            path(value).map(|_| config.repositories = std::env::split_paths(value).collect())
        },
    },
    Key {
        name: "tls.certificate",
        usual: "none",
        says: "the certificate and those that signed it, PEM",
        set: |config, value| path(value).map(|value| config.certificate = Some(value)),
    },
    Key {
        name: "tls.key",
        usual: "none",
        says: "the certificate's private key, PEM",
        set: |config, value| path(value).map(|value| config.private_key = Some(value)),
    },
    Key {
        name: "limits.body",
        usual: "100mb",
        says: "bytes of a request's body, unpacked",
        set: |config, value| size(value).map(|value| config.limits.body_bytes = value),
    },
    Key {
        name: "limits.stream",
        usual: "2gb",
        says: "bytes of the body of a `_bulk`, which is read as it comes",
        set: |config, value| size(value).map(|value| config.limits.stream_bytes = value),
    },
    Key {
        name: "limits.memory",
        usual: "a quarter",
        says: "what all bodies together may take, each counted sixteen times; unless said, a quarter of what the process may have",
        set: |config, value| size(value).map(|value| config.limits.memory_bytes = value),
    },
    Key {
        name: "limits.body_time",
        usual: "30s",
        says: "how long the next bytes of a body may take",
        set: |config, value| time(value).map(|value| config.limits.body_time = value),
    },
    Key {
        name: "limits.head_time",
        usual: "30s",
        says: "how long a request's head may take, and a connection may do nothing",
        set: |config, value| time(value).map(|value| config.limits.head_time = value),
    },
    Key {
        name: "limits.write_time",
        usual: "30s",
        says: "how long a client may take nothing of its answer",
        set: |config, value| time(value).map(|value| config.limits.write_time = value),
    },
    Key {
        name: "limits.drain",
        usual: "30s",
        says: "how long requests may take to end once the node is told to stop",
        set: |config, value| time(value).map(|value| config.limits.drain = value),
    },
    Key {
        name: "limits.at_once",
        usual: "256",
        says: "requests that are worked on at a time; others wait",
        set: |config, value| count(value).map(|value| config.limits.at_once = value),
    },
    Key {
        name: "limits.connections",
        usual: "8192",
        says: "connections; others are closed at once",
        set: |config, value| count(value).map(|value| config.limits.connections = value),
    },
    Key {
        name: "log.level",
        usual: "info",
        says: "what is written to the log: error, warn, info, debug",
        set: |config, value| {
            parsed(value, "error, warn, info or debug").map(|value| config.log_level = value)
        },
    },
    Key {
        name: "log.format",
        usual: "text",
        says: "how: text, json",
        set: |config, value| parsed(value, "text or json").map(|value| config.log_form = value),
    },
    Key {
        name: "slowlog.warn",
        usual: "none",
        says: "searches that take so long are written to the log as warnings, where their index says nothing else",
        set: |config, value| time(value).map(|value| config.slow.warn = Some(value)),
    },
    Key {
        name: "slowlog.info",
        usual: "none",
        says: "the same as information",
        set: |config, value| time(value).map(|value| config.slow.info = Some(value)),
    },
];

fn parsed<T: FromStr>(value: &str, what: &str) -> Result<T, String> {
    value.trim().parse().map_err(|_| format!("give {what}"))
}

fn path(value: &str) -> Result<PathBuf, String> {
    if value.is_empty() { Err("give a path".to_owned()) } else { Ok(value.into()) }
}

fn size(value: &str) -> Result<usize, String> {
    let size = bytes(value).filter(|&bytes| bytes > 0).and_then(|bytes| usize::try_from(bytes).ok());
    size.ok_or_else(|| "give a size such as 100mb".to_owned())
}

fn time(value: &str) -> Result<Duration, String> {
    // A day: longer ones overflow nothing, and mean nothing.
    let ms = time_ms(value).filter(|ms| (1..=86_400_000).contains(ms));
    ms.map(Duration::from_millis).ok_or_else(|| "give a time such as 30s, at most 1d".to_owned())
}

fn count(value: &str) -> Result<usize, String> {
    let count = value.parse().ok().filter(|count| (1..=1 << 20).contains(count));
    count.ok_or_else(|| "give a number from 1 to 1048576".to_owned())
}

/// What is wrong with what a node was told, and where it was told that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct ConfigError {
    place: String,
    what: String,
}

impl ConfigError {
    fn new(place: impl ToString, what: impl ToString) -> ConfigError {
        ConfigError { place: place.to_string(), what: what.to_string() }
    }
}

/// The name that a wrong one was meant to be, if one is near.
fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.map(|name| (strsim::osa_distance(wrong, name), name));
    near.min().filter(|(distance, name)| *distance <= 1 + name.len() / 3).map(|(_, name)| name)
}

impl Config {
    /// Says one thing; `place` is who says it.
    ///
    /// # Errors
    /// If there is no such key, or it has no such value.
    pub fn set(&mut self, key: &str, value: &str, place: &str) -> Result<(), ConfigError> {
        let Some(known) = KEYS.iter().find(|known| known.name == key) else {
            let near = nearest(key, KEYS.iter().map(|key| key.name));
            let hint = near.map_or_else(
                || "docs/serve.md lists all".to_owned(),
                |name| format!("did you mean `{name}`?"),
            );
            return Err(ConfigError::new(place, format!("there is no key `{key}`: {hint}")));
        };
        (known.set)(self, value)
            .map_err(|what| ConfigError::new(place, format!("{key} is {value:?}: {what}")))
    }

    /// Says what a file says (TOML).
    ///
    /// # Errors
    /// If it cannot be read, or something in it is wrong.
    pub fn read_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let failed = |what: &dyn ToString| ConfigError::new(path.display(), what.to_string());
        let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let what: Vec<&str> = error.message().split_whitespace().collect();
            let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
            failed(&format!("line {line}: {}", what.join(" ")))
        })?;
        self.read_table("", &table, &path.display().to_string())
    }

    fn read_table(&mut self, within: &str, table: &Table, place: &str) -> Result<(), ConfigError> {
        for (name, value) in table {
            let key = format!("{within}{name}");
            let value = match value {
                Value::Table(table) => {
                    self.read_table(&format!("{key}."), table, place)?;
                    continue;
                }
                Value::String(text) => text.clone(),
                Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => value.to_string(),
                Value::Array(_) | Value::Datetime(_) => {
                    return Err(ConfigError::new(place, format!("{key}: give a text or a number")));
                }
            };
            self.set(&key, &value, place)?;
        }
        Ok(())
    }

    /// Says what variables of the environment say. The names that begin like a key's and are none: others may have set them.
    ///
    /// # Errors
    /// If a value is wrong.
    pub fn read_environment(
        &mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Vec<String>, ConfigError> {
        let mut unknown = Vec::new();
        for (name, value) in variables {
            let Some(name) = name.to_str() else { continue };
            let Some(rest) = name.strip_prefix(PREFIX) else { continue };
            let Some(key) = KEYS.iter().find(|key| variable(key) == name) else {
                if !OTHERS.contains(&rest) {
                    unknown.push(name.to_owned());
                }
                continue;
            };
            let value = value.to_str().ok_or_else(|| ConfigError::new(name, "it is not UTF-8"))?;
            self.set(key.name, value, name)?;
        }
        Ok(unknown)
    }

    /// Whether all that was said goes together.
    ///
    /// # Errors
    /// If others than this machine could reach the node without TLS or without being asked who they are; if of certificate
    /// and key one is missing.
    pub fn check(&self) -> Result<(), ConfigError> {
        let missing = match (&self.certificate, &self.private_key) {
            (Some(_), None) => Some("tls.key"),
            (None, Some(_)) => Some("tls.certificate"),
            _ => None,
        };
        if let Some(missing) = missing {
            return Err(ConfigError::new(missing, "it is missing: give certificate and key, or neither"));
        }
        let missing: Vec<&str> = [
            self.certificate.is_none().then_some("TLS (tls.certificate and tls.key)"),
            self.users.is_none().then_some("users (`lanewise user add NAME --users FILE`, then users=FILE)"),
        ]
        .into_iter()
        .flatten()
        .collect();
        if self.listen.to_canonical().is_loopback() || missing.is_empty() {
            return Ok(());
        }
        let what = format!(
            "{} can be reached from other machines, which needs {}; or listen at 127.0.0.1. See docs/serve.md",
            self.listen,
            missing.join(" and ")
        );
        Err(ConfigError::new("listen", what))
    }
}

/// A key's variable of the environment.
fn variable(key: &Key) -> String {
    format!("{PREFIX}{}", key.name.replace('.', "_").to_uppercase())
}

/// The keys as Markdown: a part of `docs/serve.md` is this.
#[cfg(test)]
fn reference() -> String {
    let mut table = "| key | variable | unless said | what it is |\n| --- | --- | --- | --- |\n".to_owned();
    for key in KEYS {
        table += &format!("| `{}` | `{}` | `{}` | {} |\n", key.name, variable(key), key.usual, key.says);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_documentation_names_every_key() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serve.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (begin, end) = ("<!-- keys -->\n", "<!-- /keys -->");
        let (before, rest) = page.split_once(begin).unwrap();
        let (_, after) = rest.split_once(end).unwrap();
        let new = [before, begin, &reference(), end, after].concat();
        if std::env::var_os("LANEWISE_BLESS").is_some() {
            std::fs::write(path, &new).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap();
        assert!(page == new, "docs/serve.md is stale: run this test with LANEWISE_BLESS=1");
    }

    #[test]
    fn what_keys_usually_say_is_what_holds() {
        for key in KEYS.iter().filter(|key| !["none", "a quarter"].contains(&key.usual)) {
            let mut config = Config::default();
            config.set(key.name, key.usual, "test").unwrap();
            assert_eq!(config, Config::default(), "{}", key.name);
        }
    }

    #[test]
    fn every_key_can_be_said_by_each_way_and_the_last_wins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, "port = 1\nthreads = 3\nname = \"a\"\n[limits]\nbody = \"1kb\"\nat_once = 5")
            .unwrap();
        let mut config = Config::default();
        config.read_file(&path).unwrap();
        let set = |name: &str, value: &str| (name.into(), value.into());
        let variables = [
            set("LANEWISE_PORT", "2"),
            set("LANEWISE_LIMITS_BODY", "2kb"),
            set("LANEWISE_ISA", "x"),
            set("PATH", "/"),
            set("LANEWISE_PROT", "7"),
        ];
        assert_eq!(config.read_environment(variables).unwrap(), ["LANEWISE_PROT"]);
        config.set("port", "3", "--port").unwrap();
        assert_eq!((config.port, config.name.as_str(), config.limits.body_bytes), (3, "a", 2048));
        assert_eq!((config.threads, config.limits.at_once), (NonZeroUsize::new(3), 5));
    }

    proptest! {
        #[test]
        fn no_value_is_taken_that_cannot_be(key in 0..KEYS.len(), value in ".{0,12}") {
            let mut config = Config::default();
            if config.set(KEYS[key].name, &value, "test").is_err() {
                return Ok(());
            }
            prop_assert!(config.limits.body_bytes > 0 && config.limits.connections > 0 && config.limits.at_once > 0);
            prop_assert!(!config.limits.drain.is_zero() && config.limits.drain <= Duration::from_secs(86_400));
        }
    }
}
