//! Load for a server of HTTP, as `make bench-node` needs it: clients that each send a request as soon as the last is
//! answered, over a connection that stays open, and take little of the CPU that the server needs.
//!
//! Requests are made ready before; of an answer its status and length are read. Prints what was measured as JSON.

use clap::Parser;
use lanewise_bench::clock::Start;
use lanewise_bench::measure::percentile;
use serde_json::json;
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Longest that an answer may take: merges are long.
const PATIENCE: Duration = Duration::from_secs(900);

/// Sends requests over HTTP and times the answers
#[derive(Parser)]
#[command(name = "load")]
struct Arguments {
    /// The server
    #[arg(long)]
    address: SocketAddr,
    /// Where the bodies are posted to
    #[arg(long)]
    path: String,
    /// Bodies, each behind its length (4 bytes, the lowest first); sent in turn
    #[arg(long)]
    bodies: PathBuf,
    /// Connections, each with one request under way
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    clients: u16,
    /// How long requests are sent, round after round; without it each body is sent once
    #[arg(long)]
    seconds: Option<f64>,
    /// File for the answers in the order of the bodies, a line each
    #[arg(long, conflicts_with = "seconds")]
    answers: Option<PathBuf>,
}

fn main() -> ExitCode {
    match measured(&Arguments::parse()) {
        Ok(told) => {
            let _ = writeln!(io::stdout(), "{told}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measured(arguments: &Arguments) -> Result<serde_json::Value, Box<dyn Error>> {
    let requests = requests(arguments)?;
    if requests.is_empty() {
        return Err(format!("{} holds no body", arguments.bodies.display()).into());
    }
    let limit = arguments.seconds.map(Duration::try_from_secs_f64).transpose()?;
    let answers = arguments.answers.is_some().then(|| Mutex::new(vec![Vec::new(); requests.len()]));
    let next = AtomicUsize::new(0);
    let start = Start::now();
    let client = || -> Result<Vec<Duration>, String> {
        let mut connection = Connection::new(arguments.address).map_err(|error| error.to_string())?;
        let mut times = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let over = limit.map_or(number >= requests.len(), |limit| start.elapsed() >= limit);
            if over {
                return Ok(times);
            }
            let number = number % requests.len();
            let sent = Start::now();
            let body = connection.ask(&requests[number]).map_err(|error| error.to_string())?;
            times.push(sent.elapsed());
            if let Some(answers) = &answers {
                answers.lock().expect("no client panics")[number] = body.to_vec();
            }
        }
    };
    #[expect(clippy::disallowed_methods, reason = "clients of a benchmark, which end with it")]
    let done: Vec<_> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..arguments.clients).map(|_| scope.spawn(client)).collect();
        clients.into_iter().map(|client| client.join().expect("no client panics")).collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    let mut times: Vec<Duration> = done.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    if let (Some(path), Some(answers)) = (&arguments.answers, answers) {
        std::fs::write(path, answers.into_inner().expect("no client panics").join(&b'\n'))?;
    }
    let requests = times.len();
    let mut us = |percent| percentile(&mut times, percent).as_secs_f64() * 1e6;
    Ok(json!({"requests": requests, "seconds": seconds, "p50_us": us(50), "p99_us": us(99)}))
}

/// Whole requests, one for each body.
fn requests(arguments: &Arguments) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let bytes = std::fs::read(&arguments.bodies)?;
    let mut rest = bytes.as_slice();
    let mut requests = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let body = after.get(..length).ok_or("the last body is cut")?;
        rest = &after[length..];
        let (path, address) = (&arguments.path, arguments.address);
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        requests.push([head.as_bytes(), body].concat());
    }
    Ok(requests)
}

/// A connection that stays open, and what was read of it.
struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    fn new(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Connection { stream, read: Vec::new() })
    }

    /// Sends a request; the body of the answer.
    fn ask(&mut self, request: &[u8]) -> Result<&[u8], Box<dyn Error>> {
        self.read.clear();
        self.stream.write_all(request)?;
        let mut piece = [0; 16 * 1024];
        let end = loop {
            if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            self.more(&mut piece)?;
        };
        let head = str::from_utf8(&self.read[..end])?.to_ascii_lowercase();
        let length: usize = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))
            .ok_or("an answer without Content-Length")?
            .trim()
            .parse()?;
        while self.read.len() < end + length {
            self.more(&mut piece)?;
        }
        let body = &self.read[end..];
        if head.split(' ').nth(1) != Some("200") {
            return Err(format!("{head}{}", String::from_utf8_lossy(body)).into());
        }
        Ok(body)
    }

    fn more(&mut self, piece: &mut [u8]) -> Result<(), Box<dyn Error>> {
        match self.stream.read(piece)? {
            0 => Err("the server closed the connection".into()),
            length => {
                self.read.extend_from_slice(&piece[..length]);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn answers_come_in_the_order_of_their_bodies_however_they_are_cut() {
        let folder = tempfile::tempdir().unwrap();
        let (bodies, answers) = (folder.path().join("bodies"), folder.path().join("answers"));
        std::fs::write(&bodies, b"\x01\0\0\0a\x02\0\0\0bc").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        #[expect(clippy::disallowed_methods, reason = "the server runs beside the test")]
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for body in ["a", "bc"] {
                let mut read = Vec::new();
                let mut byte = [0];
                while !read.ends_with(format!("\r\n\r\n{body}").as_bytes()) {
                    stream.read_exact(&mut byte).unwrap();
                    read.push(byte[0]);
                }
                for part in ["HTTP/1.1 200 OK\r\ncontent-Length: 3\r\n\r", "\n", "<", body, ">"] {
                    let part = if body == "bc" && part == ">" { "" } else { part };
                    stream.write_all(part.as_bytes()).unwrap();
                    stream.flush().unwrap();
                }
            }
        });
        let arguments = Arguments {
            address,
            path: "/x".into(),
            bodies,
            clients: 1,
            seconds: None,
            answers: Some(answers.clone()),
        };
        assert_eq!(measured(&arguments).unwrap()["requests"], 2);
        assert_eq!(std::fs::read(answers).unwrap(), b"<a>\n<bc");
        server.join().unwrap();
    }
}
