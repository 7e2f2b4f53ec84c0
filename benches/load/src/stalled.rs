//! Readers that stall: what a thousand clients that take nothing cost those that read.

use crate::ask::Connection;
use crate::figures::quantile;
use crate::mock::Shape;
use crate::number;
use crate::rounds::streams;
use crate::server::{Server, own, tc_serve};
use std::time::Duration;

/// Measures 100 streams of 50 events a second: alone, and beside readers that stall.
pub async fn run(words: &[&str]) -> Result<(), String> {
    let (mut readers, mut events) = (1000, 2000);
    for pair in words.chunks(2) {
        match pair {
            ["--readers", n] => readers = number(n),
            ["--events", n] => events = number(n),
            _ => return Err(format!("{pair:?} is not an option")),
        }
    }
    let mock = Server::start("mock", 0, &own(&["mock", "0"])).await?;
    let served = Server::start("tc-serve", 1, &tc_serve(mock.port, &[])).await?;
    measure("alone", &served).await?;
    let mut stalled = Vec::new();
    for _ in 0..readers {
        // Two megabytes at once: more than the buffers of the system between the two hold.
        let shape = Shape {
            events,
            rate: 0,
            bytes: 1000,
        };
        let mut connection = Connection::narrow(served.port).await?;
        let answer = connection.begin(shape, true).await?;
        stalled.push((connection, answer));
    }
    settled(&served).await;
    measure(&format!("beside {readers} stalled readers"), &served).await?;
    let (now, most) = served.memory().unwrap_or_default();
    println!("memory of tc-serve: {now} KiB, at most {most} KiB");
    Ok(())
}

/// Waits until the server works no more: what can be buffered is buffered.
async fn settled(server: &Server) {
    let mut before = None;
    while before != server.processor() {
        before = server.processor();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

async fn measure(when: &str, server: &Server) -> Result<(), String> {
    let mut failures = Vec::new();
    let mut late = streams(
        server.port,
        Shape {
            events: 150,
            rate: 50,
            bytes: 40,
        },
        100,
        &mut failures,
    )
    .await;
    let count = late.iter().filter(|ms| **ms > 50.0).count();
    let (p50, p99) = (quantile(&mut late, 0.5), quantile(&mut late, 0.99));
    let pieces = late.len();
    println!("{when}: {pieces} events, p50 {p50:.3} ms, p99 {p99:.3} ms, {count} later than 50 ms");
    failures.first().map_or(Ok(()), |why| {
        Err(format!("{} streams failed: {why}", failures.len()))
    })
}
