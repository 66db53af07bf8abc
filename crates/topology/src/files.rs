//! Reads small files below a root folder, and gives `None` for whatever is not one.
//!
//! The only place of this crate that opens files. Sizes are capped because even a kernel file can be
//! replaced (bind mounts, lxcfs) by something endless.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The mount table is the longest file that is read whole; a busy container host fills a few hundred KiB.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// A folder with Linux's `proc` and `sys` below it.
pub(crate) struct Files {
    root: PathBuf,
}

impl Files {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// The text of the file at `path`, which is relative to the root, without white space at the ends.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.head(path, MAX_FILE_BYTES)
    }

    /// As [`Self::text`], of the first `max_bytes` only.
    pub(crate) fn head(&self, path: &str, max_bytes: u64) -> Option<String> {
        let path = self.root.join(path);
        // Opening a named pipe would wait for its writer for ever.
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(&path).ok()?.take(max_bytes).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The file's text as a `T`.
    pub(crate) fn parse<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Names of what the folder at `path` holds, in no particular order.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.root.join(path)) else { return Vec::new() };
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}
