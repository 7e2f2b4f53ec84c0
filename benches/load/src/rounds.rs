//! Interleaved rounds: in each round every server gets the same work, one after the other, so that
//! a busy machine disturbs all alike.

use crate::ask::Connection;
use crate::figures::{median, quantile};
use crate::mock::Shape;
use crate::number;
use crate::server::{Server, own, tc_serve};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;

/// What to run.
#[derive(Debug)]
pub struct Plan {
    rounds: u64,
    seconds: u64,
    others: Vec<(String, u16)>,
    upstream: Option<u16>,
}

impl Plan {
    /// Reads the words behind `run`.
    pub fn of(words: &[&str]) -> Plan {
        let mut plan = Plan {
            rounds: 7,
            seconds: 2,
            others: Vec::new(),
            upstream: None,
        };
        for pair in words.chunks(2) {
            match pair {
                ["--rounds", n] => plan.rounds = number(n),
                ["--seconds", n] => plan.seconds = number(n),
                ["--upstream-port", n] => plan.upstream = Some(number(n) as u16),
                ["--server", named] => {
                    let (name, port) = named.split_once('=').unwrap_or(("other", named));
                    plan.others.push((name.to_owned(), number(port) as u16));
                }
                _ => {
                    eprintln!("load: {pair:?} is not an option");
                    std::process::exit(2);
                }
            }
        }
        plan
    }
}

/// What one server showed in all rounds.
#[derive(Debug, Default)]
struct Record {
    /// The median of each round and all samples, in ms: whole answers at a constant rate.
    whole: (Vec<f64>, Vec<f64>),
    /// The same for each piece of 100 streams.
    event: (Vec<f64>, Vec<f64>),
    /// Answers a second with 32 connections that never pause.
    throughput: Vec<f64>,
    /// Microseconds of processor time for each event of a stream.
    processor: Vec<f64>,
    failures: Vec<String>,
}

/// Runs the plan and prints the figures.
pub async fn run(plan: &Plan) -> Result<(), String> {
    let port = plan.upstream.unwrap_or(0).to_string();
    let mock = Server::start("mock", 0, &own(&["mock", &port])).await?;
    let upstream = mock.port.to_string();
    let proxy = Server::start("byte-copying proxy", 1, &own(&["proxy", "0", &upstream])).await?;
    let served = Server::start("tc-serve", 1, &tc_serve(mock.port, &[])).await?;
    let mut servers = vec![mock, proxy, served];
    servers.extend(
        plan.others
            .iter()
            .map(|(name, port)| Server::running(name, *port)),
    );
    let mut records: Vec<Record> = servers.iter().map(|_| Record::default()).collect();
    for round in 0..=plan.rounds {
        for (server, record) in servers.iter().zip(&mut records) {
            let mut fresh = Record::default();
            one_round(server, plan, &mut fresh).await;
            record.failures.extend(std::mem::take(&mut fresh.failures));
            // The first round warms up.
            if round > 0 {
                record.whole.0.extend(fresh.whole.0);
                record.whole.1.extend(fresh.whole.1);
                record.event.0.extend(fresh.event.0);
                record.event.1.extend(fresh.event.1);
                record.throughput.extend(fresh.throughput);
                record.processor.extend(fresh.processor);
            }
        }
        eprintln!("load: round {round} of {} is done", plan.rounds);
    }
    report(&servers, &mut records);
    Ok(())
}

/// Gives one server one round of each kind of work.
async fn one_round(server: &Server, plan: &Plan, record: &mut Record) {
    let small = Shape {
        events: 1,
        rate: 0,
        bytes: 200,
    };
    let samples = constant_rate(server.port, small, 200, plan.seconds, &mut record.failures).await;
    record.whole.0.push(median(&samples));
    record.whole.1.extend(samples);
    record
        .throughput
        .push(saturated(server.port, small, 32, plan.seconds, &mut record.failures).await);
    let stream = Shape {
        events: 50 * plan.seconds,
        rate: 50,
        bytes: 40,
    };
    let before = server.processor();
    let samples = streams(server.port, stream, 100, &mut record.failures).await;
    if let Some(time) = server
        .processor()
        .zip(before)
        .map(|(after, before)| after - before)
    {
        record
            .processor
            .push(time * 1e6 / (100 * stream.events) as f64);
    }
    record.event.0.push(median(&samples));
    record.event.1.extend(samples);
}

/// Whole answers, asked for at a constant rate whatever the server does; milliseconds each.
async fn constant_rate(
    port: u16,
    shape: Shape,
    rate: u64,
    seconds: u64,
    failures: &mut Vec<String>,
) -> Vec<f64> {
    let idle: Rc<RefCell<Vec<Connection>>> = Rc::default();
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for n in 0..rate * seconds {
        tokio::time::sleep_until(begun + Duration::from_nanos(1_000_000_000 * n / rate)).await;
        let idle = Rc::clone(&idle);
        tasks.push(tokio::task::spawn_local(async move {
            let free = idle.borrow_mut().pop();
            let mut connection = match free {
                Some(connection) => connection,
                None => Connection::open(port).await?,
            };
            let answer = connection.ask(shape, false).await?;
            idle.borrow_mut().push(connection);
            Ok::<f64, String>(answer.whole as f64 / 1e6)
        }));
    }
    collect(tasks, failures).await
}

/// Answers a second, from connections that ask again at once.
async fn saturated(
    port: u16,
    shape: Shape,
    connections: u64,
    seconds: u64,
    failures: &mut Vec<String>,
) -> f64 {
    let end = Instant::now() + Duration::from_secs(seconds);
    let tasks = (0..connections).map(|_| {
        tokio::task::spawn_local(async move {
            let mut connection = Connection::open(port).await?;
            let mut answers = 0.0;
            while Instant::now() < end {
                connection.ask(shape, false).await?;
                answers += 1.0;
            }
            Ok::<f64, String>(answers)
        })
    });
    collect(tasks.collect(), failures).await.iter().sum::<f64>() / seconds as f64
}

/// Streams at the same time; the milliseconds by which each piece was late.
pub async fn streams(port: u16, shape: Shape, count: u64, failures: &mut Vec<String>) -> Vec<f64> {
    let tasks = (0..count).map(|_| {
        tokio::task::spawn_local(
            async move { Connection::open(port).await?.ask(shape, true).await },
        )
    });
    let answers = collect(tasks.collect(), failures).await;
    answers
        .iter()
        .flat_map(|answer| answer.lateness.iter().map(|ns| *ns as f64 / 1e6))
        .collect()
}

async fn collect<T: 'static>(
    tasks: Vec<tokio::task::JoinHandle<Result<T, String>>>,
    failures: &mut Vec<String>,
) -> Vec<T> {
    let mut done = Vec::new();
    for task in tasks {
        match task.await {
            Ok(Ok(value)) => done.push(value),
            Ok(Err(why)) => failures.push(why),
            Err(why) => failures.push(why.to_string()),
        }
    }
    done
}

fn report(servers: &[Server], records: &mut [Record]) {
    let base = (median(&records[0].whole.0), median(&records[0].event.0));
    let mut figures = Vec::new();
    println!(
        "| server | whole: added p50, p99 (ms) | answers/s | event: added p50, p99 (ms) | processor µs/event | failures |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let (whole99, event99) = (
        quantile(&mut records[0].whole.1, 0.99),
        quantile(&mut records[0].event.1, 0.99),
    );
    for (server, record) in servers.iter().zip(records) {
        let whole = (
            median(&record.whole.0) - base.0,
            quantile(&mut record.whole.1, 0.99) - whole99,
        );
        let event = (
            median(&record.event.0) - base.1,
            quantile(&mut record.event.1, 0.99) - event99,
        );
        let (rate, processor) = (median(&record.throughput), median(&record.processor));
        println!(
            "| {} | {:.3}, {:.3} | {rate:.0} | {:.3}, {:.3} | {processor:.1} | {} |",
            server.name,
            whole.0,
            whole.1,
            event.0,
            event.1,
            record.failures.len()
        );
        if let Some(first) = record.failures.first() {
            eprintln!("load: {}: {first}", server.name);
        }
        figures.push(serde_json::json!({
            "server": server.name, "whole_added_ms": [whole.0, whole.1], "answers_per_second": rate,
            "event_added_ms": [event.0, event.1], "processor_us_per_event": processor, "failures": record.failures.len(),
        }));
    }
    println!(
        "{}",
        serde_json::json!({"base_ms": {"whole": base.0, "event": base.1}, "servers": figures})
    );
}
