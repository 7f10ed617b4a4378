//! Whether somebody answers on a port of this machine.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(2);

fn connect(port: u16) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    Some(stream)
}

/// Whether somebody listens.
pub(super) fn is_taken(port: u16) -> bool {
    connect(port).is_some()
}

/// Whether somebody answers a GET of this path with 200.
pub(super) fn answers(port: u16, path: &str) -> bool {
    let ask = || -> Option<bool> {
        let mut stream = connect(port)?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).ok()?;
        Some(&head[9..12] == b"200")
    };
    ask().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn only_a_200_is_an_answer() {
        for (status, expected) in [("200 OK", true), ("503 Busy", false)] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap())
                    .lines()
                    .map_while(Result::ok);
                let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).unwrap();
                head
            });
            assert_eq!(answers(port, "/ready"), expected);
            assert_eq!(server.join().unwrap()[0], "GET /ready HTTP/1.1");
        }
    }
}
