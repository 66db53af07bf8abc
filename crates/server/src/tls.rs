//! TLS by rustls: the certificate and its key, read again when asked.

use arc_swap::ArcSwap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TlsError {
    #[error("{path}: {error}: give a {what} in PEM form")]
    File { path: String, what: &'static str, error: pem::Error },
    #[error("{certificate} and {key}: {error}")]
    Pair { certificate: String, key: String, error: rustls::Error },
}

/// Makes connections secret.
pub(crate) struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    config: ArcSwap<ServerConfig>,
}

impl Tls {
    /// Reads both files.
    ///
    /// # Errors
    /// If one cannot be read, or they do not belong together.
    pub(crate) fn open(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
        let config = ArcSwap::from_pointee(read(certificate, key)?);
        Ok(Tls { certificate: certificate.to_owned(), key: key.to_owned(), config })
    }

    /// Reads both files again; new connections get what they say.
    ///
    /// # Errors
    /// As [`open`](Self::open); all stays as it was then.
    pub(crate) fn refresh(&self) -> Result<(), TlsError> {
        self.config.store(Arc::new(read(&self.certificate, &self.key)?));
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.load_full())
    }
}

fn read(certificate: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let name = |path: &Path| path.display().to_string();
    let failed = |path, what| move |error| TlsError::File { path: name(path), what, error };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(failed(certificate, "certificate"))?;
    if chain.is_empty() {
        return Err(failed(certificate, "certificate")(pem::Error::NoItemsFound));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(failed(key, "private key"))?;
    let wrong = |error| TlsError::Pair { certificate: name(certificate), key: name(key), error };
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(wrong)?;
    let mut config = config.with_no_client_auth().with_single_cert(chain, private).map_err(wrong)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
