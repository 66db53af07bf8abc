//! `lanewise user` and `lanewise key`: who may ask a node. They change a file that a running node reads anew.

use crate::failure::Failure;
use crate::say;
use crate::table as markdown;
use lanewise_server::{UsersError, UsersFile};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Add, remove and list users of `lanewise serve`
#[derive(clap::Args)]
pub(crate) struct Users {
    #[command(subcommand)]
    command: UserCommand,
}

#[derive(clap::Subcommand)]
enum UserCommand {
    /// Add a user, or give one another password and role; the password is asked for, or read from standard input
    Add {
        name: String,
        #[command(flatten)]
        role: RoleArgument,
        #[command(flatten)]
        file: FileArgument,
    },
    /// Remove a user
    Remove {
        name: String,
        #[command(flatten)]
        file: FileArgument,
    },
    /// List users and their roles
    List {
        #[command(flatten)]
        file: FileArgument,
    },
}

/// Add, remove and list API keys of `lanewise serve`
#[derive(clap::Args)]
pub(crate) struct Keys {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(clap::Subcommand)]
enum KeyCommand {
    /// Make a key and print it, this once; it goes behind `Authorization: ApiKey`
    Add {
        /// What it is for
        name: String,
        #[command(flatten)]
        role: RoleArgument,
        #[command(flatten)]
        file: FileArgument,
    },
    /// Remove a key by its id
    Remove {
        id: String,
        #[command(flatten)]
        file: FileArgument,
    },
    /// List ids, names and roles
    List {
        #[command(flatten)]
        file: FileArgument,
    },
}

#[derive(clap::Args)]
struct RoleArgument {
    /// What they may: read; write documents too; admin makes and drops indexes too
    #[arg(long, value_parser = ["read", "write", "admin"], default_value = "read")]
    role: String,
}

#[derive(clap::Args)]
struct FileArgument {
    /// The file, made if it is missing [variable: LANEWISE_USERS]
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
}

impl FileArgument {
    fn path(&self) -> Result<PathBuf, Failure> {
        let path = self.users.clone().or_else(|| std::env::var_os("LANEWISE_USERS").map(PathBuf::from));
        path.ok_or_else(|| {
            Failure::Usage("--users: name the file of users, for instance users.toml".to_owned())
        })
    }

    fn read(&self) -> Result<UsersFile, Failure> {
        Ok(UsersFile::read(&self.path()?)?)
    }

    /// Reads the file, or begins one; changes and writes it.
    fn change<T>(&self, change: impl FnOnce(&mut UsersFile) -> Result<T, Failure>) -> Result<T, Failure> {
        let path = self.path()?;
        let mut users = if exists(&path) { UsersFile::read(&path)? } else { UsersFile::default() };
        let done = change(&mut users)?;
        users.write(&path)?;
        Ok(done)
    }
}

/// A link that leads nowhere exists too.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

impl From<UsersError> for Failure {
    fn from(error: UsersError) -> Self {
        match error {
            UsersError::Name(_) | UsersError::Role(_) | UsersError::Password(_) => {
                Failure::Usage(error.to_string())
            }
            _ => Failure::Failed(error.to_string()),
        }
    }
}

impl Users {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            UserCommand::Add { name, role, file } => {
                // Wrong arguments are said before a password is asked for.
                file.path()?;
                let password = password(&name)?;
                file.change(|users| Ok(users.set_user(&name, &password, &role.role)?))
            }
            UserCommand::Remove { name, file } => file.change(|users| Ok(users.remove_user(&name)?)),
            UserCommand::List { file } => {
                let rows = file.read()?;
                let rows: Vec<_> =
                    rows.users().map(|(name, role)| [name, role].map(str::to_owned).to_vec()).collect();
                Ok(markdown::write(out, &["user", "role"].map(str::to_owned), &rows)?)
            }
        }
    }
}

impl Keys {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            KeyCommand::Add { name, role, file } => {
                let key = file.change(|users| Ok(users.add_key(&name, &role.role)?))?;
                say(format_args!("note: id {}; the key is shown this once", key.id));
                Ok(writeln!(out, "{}", key.encoded)?)
            }
            KeyCommand::Remove { id, file } => file.change(|users| Ok(users.remove_key(&id)?)),
            KeyCommand::List { file } => {
                let rows = file.read()?;
                let row = |(id, name, role): (&str, &str, &str)| [id, name, role].map(str::to_owned).to_vec();
                let rows: Vec<_> = rows.keys().map(row).collect();
                Ok(markdown::write(out, &["id", "name", "role"].map(str::to_owned), &rows)?)
            }
        }
    }
}

/// A password, typed unseen and twice, or a line of standard input.
fn password(name: &str) -> Result<String, Failure> {
    let failed = |error: io::Error| Failure::Failed(format!("the password cannot be read: {error}"));
    if io::stdin().is_terminal() {
        let password = rpassword::prompt_password(format!("password of {name}: ")).map_err(failed)?;
        let again = rpassword::prompt_password("again: ").map_err(failed)?;
        return if password == again {
            Ok(password)
        } else {
            Err(Failure::Usage("they differ: nothing was changed".to_owned()))
        };
    }
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(failed)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
