//! The service: what listens, the connections, and the end.

mod connection;
mod ending;
mod listener;
mod phase;
mod timed;

pub use ending::Ending;
pub use phase::ConnectionPhase;

use crate::args::Settings;
use crate::command::Command;
use crate::http::Service;
use crate::log::{self, Notices};
use crate::source::Source;
use crate::startup;
use crate::upstream::Upstream;
use anyhow::Result;
use connection::Connections;
use listener::Listener;
use std::rc::Rc;
use std::time::Duration;
use stdio::{Failure, Signals, Status};
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::UnixStream;
use tokio::task::LocalSet;

/// Serves until a signal comes.
///
/// # Errors
/// One line for an address that cannot be listened on, and for options of the source.
pub fn serve(settings: &Settings) -> Result<Status> {
    listener::raise_descriptor_limit();
    stdio::check_descriptors(16)?;
    let limit = |error| Failure::Limit {
        what: "the runtime cannot be started",
        error,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(limit)?;
    let signal = LocalSet::new().block_on(&runtime, run(settings))?;
    // Work in other threads, such as a lookup of a name, must not delay the end.
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(Status::Signal(signal))
}

async fn run(settings: &Settings) -> Result<i32> {
    let signals = Signals::new()?;
    let (log, notices) = log::open(settings.log.as_ref())?;
    let (timeout, model) = (
        settings.upstream.connection.timeout,
        settings.upstream.provider.model.clone(),
    );
    let source = match Command::new(
        &settings.command,
        settings.limits.queue,
        timeout,
        settings.grace,
        model,
        &notices,
    )? {
        Some(command) => Source::Command(command),
        None => Source::Upstream(Box::new(Upstream::new(
            &settings.upstream,
            settings.limits.answer,
            &notices,
        )?)),
    };
    let listener = Listener::bind(&settings.listen)?;
    let ending = Ending::default();
    let service = Rc::new(Service::new(settings, source, log.clone(), ending.clone())?);
    let reaching = Rc::clone(&service);
    tokio::task::spawn_local(async move { reaching.warn_unreachable().await });
    let mut connections = Connections::new(Rc::clone(&service), settings.limits, ending.clone());
    // Where no file has keys, SIGHUP ends the process, as it does when its terminal closes.
    let hangups = service
        .has_key_files()
        .then(stdio::hangups)
        .transpose()?
        .map(UnixStream::from_std)
        .transpose()?;
    startup::print(settings, &listener.address(), &notices)?;
    let signal = tokio::select! {
        signal = signalled(&signals) => signal?,
        failure = read_keys(&service, hangups, &notices) => return Err(failure.into()),
        () = connections.accept(&listener) => unreachable!("connections are accepted until a signal comes"),
    };
    drop(listener);
    ending.begin();
    if tokio::time::timeout(settings.grace, connections.wait())
        .await
        .is_err()
    {
        ending.cut();
        // What is left to write is an error a stream. A client that does not take even that is not
        // waited for.
        let _ = tokio::time::timeout(Duration::from_secs(1), connections.wait()).await;
    }
    connections.close().await;
    // Commands end within their grace, and are killed after it.
    let _ = tokio::time::timeout(settings.grace + Duration::from_secs(2), service.ended()).await;
    log.iter().for_each(log::LogLines::flush);
    notices.flush();
    Ok(signal)
}

/// Reads the files of keys again with each byte of `hangups`.
async fn read_keys(service: &Service, hangups: Option<UnixStream>, notices: &Notices) -> Failure {
    let Some(mut hangups) = hangups else {
        return std::future::pending().await;
    };
    loop {
        if let Err(error) = hangups.read_u8().await {
            return Failure::Limit {
                what: "signals cannot be watched",
                error,
            };
        }
        service.read_keys_again(notices);
    }
}

/// Waits for a signal.
async fn signalled(signals: &Signals) -> Result<i32, Failure> {
    use std::os::fd::AsFd as _;
    let limit = |error| Failure::Limit {
        what: "signals cannot be watched",
        error,
    };
    let wake = signals.as_fd().try_clone_to_owned().map_err(limit)?;
    let wake = UnixStream::from_std(wake.into()).map_err(limit)?;
    loop {
        if let Some(signal) = signals.seen() {
            return Ok(signal);
        }
        wake.ready(Interest::READABLE).await.map_err(limit)?;
    }
}
