//! Looks at a request's credentials. Passwords that were right are remembered (by a keyed hash, for as long as the file
//! stays as it is), so that Argon2 runs once for each and not once for each request.

use super::Client;
use super::file::{UsersError, UsersFile, hashed};
use super::tries::Tries;
use arc_swap::ArcSwap;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::hmac;
use ring::rand::SystemRandom;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Right passwords that are remembered.
const REMEMBERED: usize = 1024;
/// Passwords that are hashed at a time (19 MiB each), and that wait for it.
const HASHED: usize = 2;
const WAITING: usize = 64;

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// It says nothing of who asks, or nothing that is understood.
    Missing,
    /// It says something wrong.
    Wrong,
    /// Too much was wrong lately: it is to come back later.
    Later(Duration),
    /// Too many passwords wait to be looked at.
    Busy,
}

/// Lets in who is known.
pub(crate) struct Guard {
    path: PathBuf,
    known: ArcSwap<Known>,
    tries: Mutex<Tries>,
    /// Of remembered passwords; made anew with each start.
    key: hmac::Key,
    /// A hash whose password nobody has.
    decoy: Arc<str>,
    hashing: Arc<Semaphore>,
    waiting: Semaphore,
    began: Instant,
}

/// A state of the file, and what was right by it.
struct Known {
    users: UsersFile,
    /// Of the file.
    stamp: Option<Stamp>,
    right: ArcSwap<HashMap<[u8; 32], Client>>,
}

/// What changes when a file is replaced.
type Stamp = (SystemTime, u64, u64);

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = path.metadata().ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&meta);
    #[cfg(not(unix))]
    let inode = 0;
    Some((meta.modified().ok()?, meta.len(), inode))
}

/// What a header says.
enum Credentials {
    Password { name: String, password: String },
    Key { id: String, secret: String },
}

impl Credentials {
    fn parse(header: &[u8]) -> Option<Credentials> {
        let (scheme, rest) = std::str::from_utf8(header).ok()?.split_once(' ')?;
        let plain = String::from_utf8(BASE64_STANDARD.decode(rest.trim()).ok()?).ok()?;
        let (name, secret) = plain.split_once(':')?;
        let (name, secret) = (name.to_owned(), secret.to_owned());
        match scheme.to_ascii_lowercase().as_str() {
            "basic" => Some(Credentials::Password { name, password: secret }),
            "apikey" => Some(Credentials::Key { id: name, secret }),
            _ => None,
        }
    }
}

impl Guard {
    /// Reads the file.
    ///
    /// # Errors
    /// If that fails, or nobody is in it.
    pub(crate) fn open(path: &Path) -> Result<Guard, UsersError> {
        let known = Known::read(path)?;
        if known.users.is_empty() {
            let what = "nobody is in it: add somebody with `lanewise user add`".to_owned();
            return Err(UsersError::Contents { path: path.display().to_string(), what });
        }
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_| UsersError::Random)?;
        Ok(Guard {
            path: path.to_owned(),
            known: ArcSwap::from_pointee(known),
            tries: Mutex::default(),
            // Of whatever: what it is of is no user's password.
            decoy: hashed("a password that opens nothing")?.into(),
            key,
            hashing: Arc::new(Semaphore::new(HASHED)),
            waiting: Semaphore::new(HASHED + WAITING),
            began: Instant::now(),
        })
    }

    /// Reads the file again, if it is another one; whether it was. What was known stays if that fails.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn refresh(&self, anyway: bool) -> Result<bool, UsersError> {
        if !anyway && stamp(&self.path) == self.known.load().stamp {
            return Ok(false);
        }
        let known = Known::read(&self.path);
        match known {
            Ok(known) => {
                self.known.store(Arc::new(known));
                Ok(true)
            }
            Err(error) => {
                // Said once, not each time that somebody looks.
                let before = self.known.load_full();
                let right = ArcSwap::new(before.right.load_full());
                let known = Known { users: before.users.clone(), stamp: stamp(&self.path), right };
                self.known.store(Arc::new(known));
                Err(error)
            }
        }
    }

    /// Who asks, by the request's `Authorization` and the address that it came from.
    ///
    /// # Errors
    /// If it is nobody.
    pub(crate) async fn who(&self, header: Option<&[u8]>, from: IpAddr) -> Result<Client, Denied> {
        let known = self.known.load_full();
        match header.and_then(Credentials::parse).ok_or(Denied::Missing)? {
            Credentials::Key { id, secret } => {
                let (name, role) = known.users.of_key(&id, &secret).ok_or(Denied::Wrong)?;
                Ok(Client { name: name.into(), role })
            }
            Credentials::Password { name, password } => self.by_password(known, name, password, from).await,
        }
    }

    async fn by_password(
        &self,
        known: Arc<Known>,
        name: String,
        password: String,
        from: IpAddr,
    ) -> Result<Client, Denied> {
        let tag = self.tag(&name, &password);
        if let Some(client) = known.remembered(&tag) {
            return Ok(client);
        }
        self.may_try(from, &name)?;
        let _place = self.waiting.try_acquire().map_err(|_| Denied::Busy)?;
        let turn = self.hashing.clone().acquire_owned().await.expect("it is never closed");
        // Others may have tried the same meanwhile.
        if let Some(client) = known.remembered(&tag) {
            return Ok(client);
        }
        self.may_try(from, &name)?;
        let (tried, decoy, by) = (name.clone(), self.decoy.clone(), known.clone());
        let role = tokio::task::spawn_blocking(move || {
            // The hash is made to its end, whoever still waits for it.
            let _turn = turn;
            by.users.of_password(&tried, &password, &decoy)
        });
        let role = role.await.ok().flatten();
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(role) = role else {
            tries.failed(from, &name, self.began.elapsed());
            return Err(Denied::Wrong);
        };
        tries.succeeded(from, &name);
        let client = Client { name: name.into(), role };
        known.remember(tag, client.clone());
        Ok(client)
    }

    fn may_try(&self, from: IpAddr, name: &str) -> Result<(), Denied> {
        let tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        tries.wait(from, name, self.began.elapsed()).map_or(Ok(()), |wait| Err(Denied::Later(wait)))
    }

    /// What a right password is remembered by.
    fn tag(&self, name: &str, password: &str) -> [u8; 32] {
        let mut tag = hmac::Context::with_key(&self.key);
        // A name has no colon.
        tag.update(name.as_bytes());
        tag.update(b":");
        tag.update(password.as_bytes());
        tag.sign().as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

impl Known {
    fn read(path: &Path) -> Result<Known, UsersError> {
        // Before it is read: a change in between is seen the next time.
        let stamp = stamp(path);
        Ok(Known { users: UsersFile::read(path)?, stamp, right: ArcSwap::default() })
    }

    fn remembered(&self, tag: &[u8; 32]) -> Option<Client> {
        self.right.load().get(tag).cloned()
    }

    fn remember(&self, tag: [u8; 32], client: Client) {
        self.right.rcu(|right| {
            let mut right = HashMap::clone(right);
            // More users than places are rare: whoever is forgotten is hashed again.
            if right.len() >= REMEMBERED
                && let Some(&some) = right.keys().next()
            {
                right.remove(&some);
            }
            right.insert(tag, client.clone());
            right
        });
    }
}
