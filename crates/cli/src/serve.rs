//! `lanewise serve`: a node that answers OpenSearch's clients until it is told to stop.

use crate::failure::Failure;
use crate::say;
use lanewise_server::{Config, ConfigError, RunError};
use std::io::Write;
use std::path::PathBuf;

/// Serve a folder of tables with OpenSearch's REST API, until Ctrl-C or SIGTERM
///
/// Without arguments: ./lanewise-data at 127.0.0.1:9200. Arguments win over variables (LANEWISE_…), these over the file.
/// docs/serve.md lists every key.
#[derive(clap::Args)]
pub(crate) struct Serve {
    /// What to do, as TOML [variable: LANEWISE_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The folder of its data, made if it is missing [default: lanewise-data]
    #[arg(long, value_name = "FOLDER")]
    data: Option<String>,
    /// The address to listen at [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The port; 0: any that is free [default: 9200]
    #[arg(long)]
    port: Option<String>,
    /// What the node is called [default: lanewise]
    #[arg(long)]
    name: Option<String>,
    /// What tables, searches and merges may take: 512mb, 70%, none [default: 70%]
    #[arg(long, value_name = "LIMIT")]
    memory_limit: Option<String>,
    /// Threads that build indexes, or all [default: all]
    #[arg(long, value_name = "N")]
    threads: Option<String>,
    /// The file of users and API keys
    #[arg(long, value_name = "FILE")]
    users: Option<String>,
    /// The certificate, PEM
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<String>,
    /// The certificate's private key, PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,
    /// Any other key, as in the file: --set limits.body=200mb
    #[arg(long = "set", value_name = "KEY=VALUE")]
    others: Vec<String>,
}

/// What is wrong with a configuration is the user's to mend.
impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::Usage(error.to_string())
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Failure::Failed(error.to_string())
    }
}

impl Serve {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let config = self.config()?;
        let mut told = Ok(());
        let ended = lanewise_server::run(&config, |serving| {
            let scheme = if config.certificate.is_some() { "https" } else { "http" };
            told = writeln!(
                out,
                "lanewise {} serves {} ({} indexes) at {scheme}://{}",
                env!("CARGO_PKG_VERSION"),
                serving.data.display(),
                serving.indices,
                serving.address
            )
            .and_then(|()| out.flush());
            if config.users.is_none() {
                say(
                    "note: no users are known: whoever can log into this machine may read and write everything",
                );
            }
        })?;
        told?;
        match ended.cut {
            0 => Ok(()),
            cut => Err(Failure::Failed(format!(
                "{cut} connections were cut before their requests were done; what was acknowledged is on disk"
            ))),
        }
    }

    /// By the file, the environment and the arguments.
    fn config(&self) -> Result<Config, Failure> {
        let mut config = Config::default();
        let file = self.config.clone().or_else(|| std::env::var_os("LANEWISE_CONFIG").map(PathBuf::from));
        if let Some(file) = file {
            config.read_file(&file)?;
        }
        for name in config.read_environment(std::env::vars_os())? {
            say(format_args!("note: the variable {name} says nothing to `lanewise serve`"));
        }
        let given = [
            ("data", "--data", &self.data),
            ("listen", "--listen", &self.listen),
            ("port", "--port", &self.port),
            ("name", "--name", &self.name),
            ("memory_limit", "--memory-limit", &self.memory_limit),
            ("threads", "--threads", &self.threads),
            ("users", "--users", &self.users),
            ("tls.certificate", "--tls-certificate", &self.tls_certificate),
            ("tls.key", "--tls-key", &self.tls_key),
        ];
        for (key, argument, value) in given {
            if let Some(value) = value {
                config.set(key, value, argument)?;
            }
        }
        for one in &self.others {
            let Some((key, value)) = one.split_once('=') else {
                return Err(Failure::Usage(format!("--set {one}: give KEY=VALUE")));
            };
            config.set(key, value, "--set")?;
        }
        config.check()?;
        Ok(config)
    }
}
