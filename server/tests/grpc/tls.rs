//! TLS on both listeners, with certificates that change.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tonic::transport::{Channel, Uri};
use zae_limiter::RateLimiter;
use zae_limiter_server::{Error, Server, ServerHandle, Settings, TlsFiles};

use crate::grpc::client::{MAPPING, RateLimitClient, calls, limits, request};
use crate::grpc::messages::Code;

/// The files of a certificate that can be replaced.
struct Files {
    directory: TempDir,
}

impl Files {
    fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn files(&self) -> TlsFiles {
        TlsFiles::new(self.path("cert.pem"), self.path("key.pem"))
    }

    /// Writes a new certificate for localhost.
    fn renew(&self) -> CertificateDer<'static> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(self.path("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(self.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
        made.cert.der().clone()
    }
}

struct Serving {
    http: SocketAddr,
    grpc: SocketAddr,
    handle: ServerHandle,
    _stop: oneshot::Sender<()>,
}

async fn serve(files: &Files, settings: Settings) -> Serving {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let limiter = RateLimiter::embedded().default_limits(limits()).await.unwrap();
    let builder = Server::builder(limiter)
        .settings(settings)
        .tls(files.files())
        .envoy(MAPPING.parse().unwrap(), any);
    let server = builder.bind(any).await.unwrap();
    let (stop, stopped) = oneshot::channel();
    let serving = Serving {
        http: server.address(),
        grpc: server.grpc_address().unwrap(),
        handle: server.handle(),
        _stop: stop,
    };
    tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    serving
}

async fn connect(
    address: SocketAddr,
    trusted: CertificateDer<'static>,
    protocol: &[u8],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// The status line of `GET /healthz`.
async fn health(address: SocketAddr, trusted: &CertificateDer<'static>) -> std::io::Result<String> {
    let mut stream = connect(address, trusted.clone(), b"http/1.1").await?;
    let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    let _ = stream.read_to_string(&mut response).await;
    Ok(response.lines().next().unwrap_or_default().to_owned())
}

const OK: &str = "HTTP/1.1 200 OK";

#[tokio::test]
async fn both_listeners_serve_the_certificate_of_the_files() {
    let files = Files::new();
    let certificate = files.renew();
    let server = serve(&files, Settings::default()).await;
    assert_eq!(health(server.http, &certificate).await.unwrap(), OK);

    let address = server.grpc;
    let connector = tower::service_fn(move |_: Uri| {
        let trusted = certificate.clone();
        async move { connect(address, trusted, b"h2").await.map(TokioIo::new) }
    });
    let endpoint = Channel::from_static("https://localhost");
    let channel = endpoint.connect_with_connector(connector).await.unwrap();
    let mut client = RateLimitClient::new(channel);
    let response = client
        .should_rate_limit(request(1, [calls("ada")]))
        .await
        .unwrap();
    assert_eq!(response.into_inner().overall_code(), Code::Ok);
}

#[tokio::test]
async fn a_new_certificate_is_used_without_a_restart_and_a_broken_one_is_not() {
    let files = Files::new();
    let first = files.renew();
    let server = serve(&files, Settings::default()).await;
    assert_eq!(health(server.http, &first).await.unwrap(), OK);
    assert!(!server.handle.reload_tls().unwrap(), "nothing has changed");

    let second = files.renew();
    assert!(server.handle.reload_tls().unwrap());
    assert_eq!(health(server.http, &second).await.unwrap(), OK);
    assert!(health(server.http, &first).await.is_err(), "the old one is gone");

    std::fs::write(files.path("cert.pem"), "half a fi").unwrap();
    let error = server.handle.reload_tls().unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error}");
    assert_eq!(health(server.http, &second).await.unwrap(), OK);
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let files = Files::new();
    let named = |files: &Files, name: &str| {
        let error = files.files().check().unwrap_err().to_string();
        assert!(error.contains(&files.path(name).display().to_string()), "{error}");
    };
    named(&files, "cert.pem");
    files.renew();
    files.files().check().unwrap();
    let key = std::fs::read(files.path("key.pem")).unwrap();
    files.renew();
    std::fs::write(files.path("key.pem"), key).unwrap();
    named(&files, "key.pem");
    std::fs::write(files.path("cert.pem"), "").unwrap();
    named(&files, "cert.pem");
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_handshake_is_cut_off() {
    let files = Files::new();
    files.renew();
    let mut settings = Settings::default();
    settings.header_timeout = Duration::from_millis(50);
    let server = serve(&files, settings).await;
    let mut stream = TcpStream::connect(server.http).await.unwrap();
    // Returns because the server ends it.
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    let mut plain = TcpStream::connect(server.http).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").await.unwrap();
    let mut response = vec![];
    let _ = plain.read_to_end(&mut response).await;
    assert!(!response.starts_with(b"HTTP"), "plain text is not served");
}
