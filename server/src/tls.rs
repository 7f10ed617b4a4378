//! TLS: a certificate and its key from files, read again when they change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use crate::error::Error;

/// The files of a certificate and its private key, as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// The certificate, followed by those that signed it.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

impl TlsFiles {
    /// A certificate, followed by those that signed it, and its private key.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            certificate: certificate.into(),
            key: key.into(),
        }
    }

    /// Reports whether the files can be used, without starting a server.
    pub fn check(&self) -> Result<(), Error> {
        Loaded::read(self).map(drop)
    }
}

/// What a connection speaks after the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alpn {
    Http1,
    Http2,
}

/// The certificate that new connections get.
#[derive(Debug)]
pub(crate) struct Tls {
    files: TlsFiles,
    current: Mutex<Loaded>,
}

#[derive(Debug, Clone)]
struct Loaded {
    /// Of both files.
    digest: [u8; 32],
    http1: Arc<ServerConfig>,
    http2: Arc<ServerConfig>,
}

impl Tls {
    pub(crate) fn load(files: TlsFiles) -> Result<Self, Error> {
        let current = Mutex::new(Loaded::read(&files)?);
        Ok(Self { files, current })
    }

    /// Takes the files as they are now. An error changes nothing. True if they are others than before.
    pub(crate) fn reload(&self) -> Result<bool, Error> {
        let contents = Contents::read(&self.files)?;
        if self.current().digest == contents.digest() {
            return Ok(false);
        }
        let loaded = Loaded::parse(&self.files, &contents)?;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(true)
    }

    fn current(&self) -> Loaded {
        self.current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        alpn: Alpn,
    ) -> std::io::Result<TlsStream<S>> {
        let config = match alpn {
            Alpn::Http1 => self.current().http1,
            Alpn::Http2 => self.current().http2,
        };
        TlsAcceptor::from(config).accept(stream).await
    }
}

/// What the files have.
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Contents {
    fn read(files: &TlsFiles) -> Result<Self, Error> {
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
        })
    }

    fn digest(&self) -> [u8; 32] {
        let parts = Sha256::new()
            .chain_update(Sha256::digest(&self.certificate))
            .chain_update(Sha256::digest(&self.key));
        parts.finalize().into()
    }
}

impl Loaded {
    fn read(files: &TlsFiles) -> Result<Self, Error> {
        Self::parse(files, &Contents::read(files)?)
    }

    fn parse(files: &TlsFiles, contents: &Contents) -> Result<Self, Error> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&contents.certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| invalid(&files.certificate, &error))?;
        if chain.is_empty() {
            return Err(invalid(&files.certificate, &"it has no certificate in PEM form"));
        }
        let key =
            PrivateKeyDer::from_pem_slice(&contents.key).map_err(|error| invalid(&files.key, &error))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| invalid(&files.certificate, &error))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| invalid(&files.key, &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut http2 = config.clone();
        http2.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self {
            digest: contents.digest(),
            http1: Arc::new(config),
            http2: Arc::new(http2),
        })
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(file).map_err(|error| invalid(file, &error))
}

fn invalid(file: &Path, problem: &dyn std::fmt::Display) -> Error {
    Error::Tls {
        file: file.to_owned(),
        problem: problem.to_string(),
    }
}
