//! The file of users and keys: TOML that its owner alone may read, replaced as a whole. No secret is in it.

use crate::route::Role;
use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use subtle::ConstantTimeEq;

/// Bytes of a file: more is none.
const FILE_BYTES: u64 = 16 << 20;
/// Of passwords that are set.
const PASSWORD_LEN: std::ops::RangeInclusive<usize> = 8..=1024;
/// Bytes of a key's id and of its secret.
const ID_BYTES: usize = 12;
const SECRET_BYTES: usize = 32;

/// Users and keys, as a file has them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsersFile {
    #[serde(default)]
    users: BTreeMap<String, User>,
    #[serde(default)]
    keys: BTreeMap<String, ApiKey>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct User {
    role: Role,
    /// Of the password: a PHC string.
    hash: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiKey {
    name: String,
    role: Role,
    /// Of the secret: SHA-256 in base64.
    hash: String,
}

/// A key that was just made.
pub struct NewKey {
    /// What names it in lists, and removes it.
    pub id: String,
    /// What stands behind `ApiKey` in a request. It is nowhere else.
    pub encoded: String,
}

/// What is wrong with users, keys or their file.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum UsersError {
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
    #[error("{path}: others may read it: run `chmod 600 {path}`")]
    Open { path: String },
    #[error("{path}: {what}")]
    Contents { path: String, what: String },
    #[error("role {0:?}: give read, write or admin")]
    Role(String),
    #[error("name {0:?}: give 1 to 255 bytes without `:` or control characters")]
    Name(String),
    #[error("the password has {0} bytes: give 8 to 1024")]
    Password(usize),
    #[error("there is no {0}")]
    Missing(String),
    #[error("the system gives no random numbers")]
    Random,
}

impl UsersFile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, others than its owner may read it, or it is none.
    pub fn read(path: &Path) -> Result<UsersFile, UsersError> {
        let name = || path.display().to_string();
        let failed = |error| UsersError::File { path: name(), error };
        let file = File::open(path).map_err(failed)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            if file.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
                return Err(UsersError::Open { path: name() });
            }
        }
        let mut text = String::new();
        file.take(FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
        // The parser's own message shows lines of the file, which hold hashes.
        let wrong = |what: String| UsersError::Contents { path: name(), what };
        let read: UsersFile = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
            wrong(format!("line {line}: {}", error.message()))
        })?;
        for (user, User { hash, .. }) in &read.users {
            if argon2::PasswordHash::new(hash).is_err() {
                return Err(wrong(format!("user {user:?}: its hash is no PHC string")));
            }
        }
        Ok(read)
    }

    /// Replaces the file, so that whoever reads it sees the old one or the new one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), UsersError> {
        let failed = |error| UsersError::File { path: path.display().to_string(), error };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // It is made readable for its owner alone.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        let text = toml::to_string(self).map_err(|error| failed(io::Error::other(error)))?;
        file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Adds a user, or gives one another password and role. Takes tens of milliseconds.
    ///
    /// # Errors
    /// If name, password or role cannot be.
    pub fn set_user(&mut self, name: &str, password: &str, role: &str) -> Result<(), UsersError> {
        let (role, name) = (role_of(role)?, checked(name)?);
        if !PASSWORD_LEN.contains(&password.len()) {
            return Err(UsersError::Password(password.len()));
        }
        let hash = hashed(password)?;
        self.users.insert(name.to_owned(), User { role, hash });
        Ok(())
    }

    /// Removes a user.
    ///
    /// # Errors
    /// If there is none.
    pub fn remove_user(&mut self, name: &str) -> Result<(), UsersError> {
        self.users.remove(name).map(drop).ok_or_else(|| UsersError::Missing(format!("user {name:?}")))
    }

    /// Users' names and roles.
    pub fn users(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.users.iter().map(|(name, user)| (name.as_str(), user.role.name()))
    }

    /// Makes a key; its name is for people.
    ///
    /// # Errors
    /// If name or role cannot be, or the system fails.
    pub fn add_key(&mut self, name: &str, role: &str) -> Result<NewKey, UsersError> {
        let (role, name) = (role_of(role)?, checked(name)?.to_owned());
        let (id, secret) = (random::<ID_BYTES>()?, random::<SECRET_BYTES>()?);
        let [id, secret] = [&id[..], &secret].map(|bytes| BASE64_URL_SAFE_NO_PAD.encode(bytes));
        let hash = BASE64_STANDARD.encode(digest(&SHA256, secret.as_bytes()));
        self.keys.insert(id.clone(), ApiKey { name, role, hash });
        Ok(NewKey { encoded: BASE64_STANDARD.encode(format!("{id}:{secret}")), id })
    }

    /// Removes a key by its id.
    ///
    /// # Errors
    /// If there is none.
    pub fn remove_key(&mut self, id: &str) -> Result<(), UsersError> {
        self.keys.remove(id).map(drop).ok_or_else(|| UsersError::Missing(format!("key {id:?}")))
    }

    /// Keys' ids, names and roles.
    pub fn keys(&self) -> impl Iterator<Item = (&str, &str, &'static str)> {
        self.keys.iter().map(|(id, key)| (id.as_str(), key.name.as_str(), key.role.name()))
    }

    /// Whether nobody is known.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty() && self.keys.is_empty()
    }

    /// The role of the user with this password. It takes as long for a user that there is not: `decoy` is tried then.
    pub(super) fn of_password(&self, name: &str, password: &str, decoy: &str) -> Option<Role> {
        let user = self.users.get(name);
        let hash = user.map_or(decoy, |user| &user.hash);
        let right = Argon2::default().verify_password(password.as_bytes(), hash).is_ok();
        user.filter(|_| right).map(|user| user.role)
    }

    /// The name and the role of the key with this secret.
    pub(super) fn of_key(&self, id: &str, secret: &str) -> Option<(&str, Role)> {
        let key = self.keys.get(id);
        let hash = BASE64_STANDARD.encode(digest(&SHA256, secret.as_bytes()));
        let right = hash.as_bytes().ct_eq(key.map_or(&[][..], |key| key.hash.as_bytes()));
        key.filter(|_| bool::from(right)).map(|key| (key.name.as_str(), key.role))
    }
}

/// What a password is stored as.
pub(super) fn hashed(password: &str) -> Result<String, UsersError> {
    let hash = Argon2::default().hash_password(password.as_bytes()).map_err(|_| UsersError::Random)?;
    Ok(hash.to_string())
}

fn random<const N: usize>() -> Result<[u8; N], UsersError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| UsersError::Random)?;
    Ok(bytes)
}

fn role_of(text: &str) -> Result<Role, UsersError> {
    let role = [Role::Read, Role::Write, Role::Admin].into_iter().find(|role| role.name() == text);
    role.ok_or_else(|| UsersError::Role(text.to_owned()))
}

/// A name that goes into `name:password`, and into logs.
fn checked(name: &str) -> Result<&str, UsersError> {
    let fits = (1..=255).contains(&name.len()) && !name.contains(|c: char| c == ':' || c.is_control());
    if fits { Ok(name) } else { Err(UsersError::Name(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_holds_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.toml");
        let mut users = UsersFile::default();
        users.set_user("anna", "correct horse", "admin").unwrap();
        let key = users.add_key("ingest", "write").unwrap();
        users.write(&path).unwrap();
        let read = UsersFile::read(&path).unwrap();
        assert_eq!(read, users);
        let text = std::fs::read_to_string(&path).unwrap();
        let plain = String::from_utf8(BASE64_STANDARD.decode(&key.encoded).unwrap()).unwrap();
        let (id, secret) = plain.split_once(':').unwrap();
        assert!(text.contains("$argon2id$") && text.contains(id), "{text}");
        assert!(!text.contains("correct horse") && !text.contains(secret), "{text}");

        assert_eq!(read.of_password("anna", "correct horse", &users.users["anna"].hash), Some(Role::Admin));
        assert_eq!(read.of_password("anna", "correct hors", &users.users["anna"].hash), None);
        // The decoy's own password opens nothing.
        assert_eq!(read.of_password("otto", "correct horse", &users.users["anna"].hash), None);
        assert_eq!(read.of_key(id, secret), Some(("ingest", Role::Write)));
        assert_eq!(read.of_key(id, &secret[1..]), None);
        assert_eq!(read.of_key("", secret), None);
        assert_eq!(read.of_key("", ""), None);
    }

    #[test]
    #[cfg(unix)]
    fn a_file_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.toml");
        UsersFile::default().write(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(UsersFile::read(&path).unwrap_err().to_string().contains("chmod 600"));
    }

    #[test]
    fn errors_show_nothing_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.toml");
        for text in [
            "[users.a]\nrole = \"read\"\nhash = \"sesame\"",
            "[users.a]\nrole = \"king\"\nhash = \"sesame\"",
            "sesame",
        ] {
            let file = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
            std::fs::write(file.path(), text).unwrap();
            file.persist(&path).unwrap();
            let said = UsersFile::read(&path).unwrap_err().to_string();
            assert!(!said.contains("sesame") && !said.contains('\n'), "{said}");
        }
    }
}
