//! Memory of `tc-serve`: with many open streams, and after many requests.

use crate::ask::Connection;
use crate::mock::Shape;
use crate::number;
use crate::server::{Server, own, tc_serve};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

/// Opens streams of 4 kB and then sends requests; prints KiB.
pub async fn run(words: &[&str]) -> Result<(), String> {
    let (mut streams, mut requests) = (1000, 100_000);
    for pair in words.chunks(2) {
        match pair {
            ["--streams", n] => streams = number(n),
            ["--requests", n] => requests = number(n),
            _ => return Err(format!("{pair:?} is not an option")),
        }
    }
    let mock = Server::start("mock", 0, &own(&["mock", "0"])).await?;
    let served = Server::start("tc-serve", 1, &tc_serve(mock.port, &[])).await?;
    let held = || served.memory().unwrap_or_default();
    println!("start: {} KiB", held().0);
    // 100 pieces of 40 bytes in ten seconds: all streams are open at once.
    let shape = Shape {
        events: 100,
        rate: 10,
        bytes: 40,
    };
    let port = served.port;
    let tasks: Vec<_> = (0..streams)
        .map(|n| {
            // One a millisecond: a thousand pieces in one instant would measure this machine's
            // burst, not the server.
            let begin = Instant::now() + Duration::from_nanos(1_000_000 * n);
            tokio::task::spawn_local(async move {
                sleep_until(begin).await;
                Connection::open(port).await?.ask(shape, true).await
            })
        })
        .collect();
    let (mut late, mut worst, mut wrong) = (0, 0, Vec::new());
    for task in tasks {
        match task.await.map_err(|e| e.to_string())? {
            Ok(answer) => {
                late += answer
                    .lateness
                    .iter()
                    .filter(|ns| **ns > 50_000_000)
                    .count();
                worst = worst.max(answer.lateness.iter().copied().max().unwrap_or(0));
            }
            Err(why) => wrong.push(why),
        }
    }
    println!(
        "{streams} open streams: at most {} KiB; {late} events later than 50 ms (worst {} ms); {} failed {}",
        held().1,
        worst / 1_000_000,
        wrong.len(),
        wrong.first().cloned().unwrap_or_default()
    );
    let small = Shape {
        events: 1,
        rate: 0,
        bytes: 200,
    };
    let places = Rc::new(Semaphore::new(32));
    let mut connections: Vec<_> = Vec::new();
    for _ in 0..32 {
        connections.push(Connection::open(port).await?);
    }
    let pool = Rc::new(std::cell::RefCell::new(connections));
    for part in 1..=10 {
        let tasks: Vec<_> = (0..requests / 10)
            .map(|n| {
                let (places, pool) = (Rc::clone(&places), Rc::clone(&pool));
                tokio::task::spawn_local(async move {
                    let _place = places.acquire().await.map_err(|e| e.to_string())?;
                    let mut connection = pool.borrow_mut().pop().ok_or("no connection")?;
                    let asked = connection.ask(small, n % 2 == 0).await.map(|_| ());
                    pool.borrow_mut().push(connection);
                    asked
                })
            })
            .collect();
        for task in tasks {
            task.await.map_err(|e| e.to_string())??;
        }
        println!(
            "{} requests: {} KiB, at most {} KiB",
            part * requests / 10,
            held().0,
            held().1
        );
    }
    Ok(())
}
