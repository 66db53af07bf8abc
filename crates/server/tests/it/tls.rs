//! TLS: who speaks it is answered, whatever else comes is not, and nobody is harmed.

use crate::served::Served;
use lanewise_server::HttpLimits;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{
    self, ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion, version,
};

const SHORT: Duration = Duration::from_millis(500);

/// A certificate for `localhost`, written beside its key.
fn certificate(folder: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), signing_key.serialize_pem()).unwrap();
    cert.der().clone()
}

fn served(folder: &Path) -> Served {
    let limits = HttpLimits { head_time: SHORT, ..HttpLimits::default() };
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    Served::with(&folder.join("data"), limits, move |server| server.set_tls(&certificate, &key).unwrap())
}

/// Who trusts one certificate.
fn trusting(
    certificate: CertificateDer<'static>,
    versions: &[&'static SupportedProtocolVersion],
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    config.with_protocol_versions(versions).unwrap().with_root_certificates(roots).with_no_client_auth()
}

fn ask(node: &Served, config: ClientConfig, name: &'static str) -> std::io::Result<String> {
    let client = ClientConnection::new(Arc::new(config), name.try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(client, TcpStream::connect(node.address)?);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn who_trusts_the_certificate_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path());
    let node = served(folder.path());
    for version in [&version::TLS12, &version::TLS13] {
        let answer = ask(&node, trusting(certificate.clone(), &[version]), "localhost").unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("lanewise"), "{answer}");
    }
}

#[test]
fn who_does_not_trust_it_goes_and_the_next_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let other = certificate(folder.path());
    let ours = certificate(folder.path());
    let node = served(folder.path());
    let versions = rustls::DEFAULT_VERSIONS;
    assert!(ask(&node, trusting(other, versions), "localhost").is_err());
    assert!(ask(&node, trusting(ours.clone(), versions), "example.com").is_err());
    ask(&node, trusting(ours, versions), "localhost").unwrap();
}

#[test]
fn what_is_no_tls_is_told_so_or_cut() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path());
    let node = served(folder.path());
    let said = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(node.address).unwrap();
        stream.set_read_timeout(Some(SHORT * 20)).unwrap();
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        if let Err(error) = stream.read_to_end(&mut answer) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "not cut: {error}");
        }
        String::from_utf8_lossy(&answer).into_owned()
    };
    let plain = said(b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic eDp5\r\n\r\n");
    assert!(plain.starts_with("HTTP/1.1 400") && plain.contains("HTTPS"), "{plain}");
    // A handshake that breaks off, one that never ends, one of an old version, noise.
    let hello = [&[22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3][..], &[7; 193]].concat();
    let old = [&[22, 3, 0, 0, 47, 1, 0, 0, 43, 3, 0][..], &[7; 41]].concat();
    let noise = [22].repeat(100_000);
    for bytes in [&hello[..20], &hello, &old, &noise, b"", b"\x80\x2e\x01\x00\x02", b"\0\0\0\0"] {
        let said = said(bytes);
        assert!(!said.contains("HTTP"), "{said}");
    }
    ask(&node, trusting(certificate, rustls::DEFAULT_VERSIONS), "localhost").unwrap();
}

#[test]
fn files_that_are_none_are_named() {
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path());
    let path = folder.path().to_owned();
    std::fs::copy(path.join("key.pem"), path.join("key1.pem")).unwrap();
    std::fs::write(path.join("empty.pem"), "").unwrap();
    certificate(folder.path());
    let _node = Served::with(&folder.path().join("data"), HttpLimits::default(), move |server| {
        for (certificate, key, word) in [
            ("none.pem", "key.pem", "none.pem"),
            ("empty.pem", "key.pem", "empty.pem"),
            ("key.pem", "key.pem", "key.pem"),
            ("cert.pem", "cert.pem", "private key"),
            ("cert.pem", "key1.pem", "key1.pem"),
        ] {
            let error = server.set_tls(&path.join(certificate), &path.join(key)).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
    });
}
