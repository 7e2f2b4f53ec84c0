//! Clients that leave: how soon the upstream's connection is closed.

use crate::ask::Connection;
use crate::figures::quantile;
use crate::mock::Shape;
use crate::server::{Server, own, tc_serve};
use crate::stamp;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Leaves a hundred answers after their first piece, and prints milliseconds.
pub async fn run() -> Result<(), String> {
    let mock = Server::start("mock", 0, &own(&["mock", "0"])).await?;
    let served = Server::start("tc-serve", 1, &tc_serve(mock.port, &[])).await?;
    // A piece a second: the close has to be noticed without a write that fails.
    let shape = Shape {
        events: 100_000,
        rate: 1,
        bytes: 40,
    };
    let mut times = Vec::new();
    for _ in 0..100 {
        let mut connection = Connection::open(served.port).await?;
        let mut answer = connection.begin(shape, true).await?;
        answer.first().await?;
        let left = stamp::now();
        drop((answer, connection));
        times.push(closed(mock.port).await?.saturating_sub(left) as f64 / 1e6);
    }
    let (p50, p99, worst) = (
        quantile(&mut times, 0.5),
        quantile(&mut times, 0.99),
        quantile(&mut times, 1.0),
    );
    println!(
        "client leaves, upstream closed after: p50 {p50:.2} ms, p99 {p99:.2} ms, worst {worst:.2} ms"
    );
    Ok(())
}

/// Waits until the mock has no open stream; when the last one was closed, in nanoseconds.
async fn closed(port: u16) -> Result<u64, String> {
    for _ in 0..2500 {
        let state = open(port).await.map_err(|e| e.to_string())?;
        let (open, closed) = state
            .split_once(' ')
            .ok_or("the mock's state is not two numbers")?;
        if open == "0" {
            return closed
                .parse()
                .map_err(|_| format!("{closed:?} is not a time"));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Err("the upstream's stream was open five seconds after its client had left".to_owned())
}

/// The mock's count of open streams and the time of the last close.
async fn open(port: u16) -> std::io::Result<String> {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await?;
    socket
        .write_all(b"GET /open HTTP/1.1\r\nhost: m\r\nconnection: close\r\n\r\n")
        .await?;
    let mut text = String::new();
    socket.read_to_string(&mut text).await?;
    Ok(text
        .rsplit_once("\r\n\r\n")
        .map_or("", |(_, body)| body)
        .to_owned())
}
