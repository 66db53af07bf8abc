//! The file that a command writes: checked before the work begins, so that hours are not lost to a wrong name.

use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// Whether the file `path`, named by `option`, may be written: it does not exist or `force` is given, it is none of `inputs`, and its folder
/// takes files.
pub(crate) fn check(option: &str, path: &Path, force: bool, inputs: &[&Path]) -> Result<(), Failure> {
    let usage = |what: &str| Err(Failure::Usage(format!("{option} {}: {what}", path.display())));
    if path.file_name().is_none() || path.is_dir() {
        return usage("is a folder: name a file");
    }
    if path.metadata().is_ok_and(|m| !m.is_file()) {
        return usage("is a device or a pipe, which cannot be replaced: name a file");
    }
    let place = |path: &Path| path.canonicalize().ok();
    if inputs.iter().any(|input| place(input).is_some_and(|input| Some(input) == place(path))) {
        return usage("is an input of this very command: name another file");
    }
    // A link that leads nowhere exists too.
    if path.symlink_metadata().is_ok() && !force {
        return usage("exists already: name another file, or give --force to replace it");
    }
    let folder =
        path.parent().filter(|p| !p.as_os_str().is_empty()).map_or(PathBuf::from("."), Path::to_owned);
    match tempfile::tempfile_in(&folder) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Failed(format!(
            "{option} {}: the folder {} takes no files ({error}): create it, or name another",
            path.display(),
            folder.display()
        ))),
    }
}
