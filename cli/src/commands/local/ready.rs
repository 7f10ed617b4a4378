//! Checks of a local port.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(2);

fn connect(port: u16) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), TIMEOUT).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    Some(stream)
}

/// Whether a process listens on the port.
pub(super) fn is_in_use(port: u16) -> bool {
    connect(port).is_some()
}

/// Whether a GET of this path returns 200.
pub(super) fn responds(port: u16, path: &str) -> bool {
    let get = || -> Option<bool> {
        let mut stream = connect(port)?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).ok()?;
        Some(&head[9..12] == b"200")
    };
    get().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn only_status_200_counts_as_a_response() {
        for (status, expected) in [("200 OK", true), ("503 Busy", false)] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap())
                    .lines()
                    .map_while(Result::ok);
                let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(response.as_bytes()).unwrap();
                head
            });
            assert_eq!(responds(port, "/ready"), expected);
            assert_eq!(server.join().unwrap()[0], "GET /ready HTTP/1.1");
        }
    }
}
