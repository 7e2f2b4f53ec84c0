//! Runs the service: listens, serves connections and shuts down.

mod connection;
mod listener;
mod timed;

use crate::args::{Listen, ServeSettings};
use crate::budget::MemoryBudget;
use crate::command::AnsweringCommand;
use crate::front::AnyFront;
use crate::http::{Reports, Service};
use crate::life::ServiceEnd;
use crate::log::{self, LogLine, Notices};
use crate::metrics::ServiceMetrics;
use crate::models::Providers;
use crate::panics;
use crate::places::AnswerSlots;
use crate::sessions::Sessions;
use crate::source::Source;
use crate::tools::ServiceTools;
use crate::traces::TraceFile;
use anyhow::Result;
use config::Configured;
use connection::Connections;
use listener::Listener;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;
use stdio::{Failure, Status, StopSignals};
use store::{FolderStore, StoreError};
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::UnixStream;
use tokio::task::LocalSet;

/// Serves until a signal arrives.
///
/// # Errors
/// A one-line error for an address that cannot be listened on, and for invalid options of the
/// source.
pub(crate) fn serve(settings: &ServeSettings, configured: &Configured) -> Result<Status> {
    listener::raise_descriptor_limit();
    stdio::check_descriptors(16)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::limit("the runtime cannot be started"))?;
    let signal = LocalSet::new().block_on(&runtime, run(settings, configured))?;
    // Work on other threads, such as a name lookup, must not delay the shutdown.
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(Status::Signal(signal))
}

async fn run(settings: &ServeSettings, configured: &Configured) -> Result<i32> {
    let signals = StopSignals::new()?;
    let args = &settings.args;
    let grace = args.service.grace;
    let (log, notices) = log::open(args.service.access_log.as_ref())?;
    panics::report(&notices);
    let source = match AnsweringCommand::new(settings, &notices)? {
        Some(command) => Source::Command(command),
        None => Source::Providers(Box::new(Providers::new(args, configured, &notices)?)),
    };
    let listener = Listener::bind(&settings.listen)?;
    let ending = ServiceEnd::default();
    let processes = AnswerSlots::new(usize::try_from(args.command.processes)?, args.limits.queue);
    let tools = ServiceTools::new(&args.tools, grace, processes, &notices)?;
    let traces = traces(settings, &notices)?;
    let metrics = metrics(tools.as_ref());
    let budget = MemoryBudget::new(args.limits.max_memory);
    let sessions = sessions(settings, &budget, traces.clone(), &metrics)?;
    let kept = sessions.clone();
    let reports = Reports {
        log: log.clone(),
        traces: traces.clone(),
        metrics,
    };
    let service = Service::new(
        settings,
        budget,
        source,
        kept,
        tools,
        reports,
        ending.clone(),
    );
    let service = Rc::new(service?);
    let reaching = Rc::clone(&service);
    tokio::task::spawn_local(async move { reaching.warn_unreachable().await });
    service.go_on()?;
    let connections = || Connections::new(Rc::clone(&service), args.limits, ending.clone());
    let mut open = connections();
    // If no keys come from files, SIGHUP keeps its default: it ends the process, such as when its
    // terminal closes.
    let hangups = service
        .has_key_files()
        .then(stdio::hangups)
        .transpose()?
        .map(UnixStream::from_std)
        .transpose()?;
    print(settings, &listener.address(), &notices)?;
    if let Some(sessions) = &sessions {
        let rules = args.sessions.retain.clone();
        tokio::task::spawn_local(Rc::clone(sessions).keep_house(rules));
    }
    let signal = tokio::select! {
        signal = signalled(&signals) => signal?,
        failure = read_keys(&service, hangups, &notices) => return Err(failure.into()),
        failure = watch(sessions.as_deref()) => return Err(failure.into()),
        () = open.accept(&listener) => unreachable!("connections are accepted until a signal comes"),
    };
    ending.begin();
    // While responses are open, new requests get 503 `shutting_down`, and `/ready` still answers.
    // The shutdown does not wait for the connections of such requests.
    let mut late = connections();
    let answered = async {
        open.wait().await;
        if let Some(sessions) = &sessions {
            sessions.idle().await;
        }
    };
    let are_answered = tokio::select! {
        biased;
        () = answered => true,
        () = tokio::time::sleep(grace) => false,
        () = late.accept(&listener) => unreachable!("connections are accepted until the select ends"),
    };
    drop((late, listener));
    if !are_answered {
        ending.cut();
        if let Some(sessions) = &sessions {
            // Only the end of each response remains to be written.
            let _ = tokio::time::timeout(Duration::from_secs(1), sessions.idle()).await;
        }
        // Only one error per stream remains to be written. A client that does not read even that is
        // not waited for.
        let _ = tokio::time::timeout(Duration::from_secs(1), open.wait()).await;
    }
    open.close().await;
    // Commands have their grace period to exit, and are then killed.
    let _ = tokio::time::timeout(grace + Duration::from_secs(2), service.ended()).await;
    log.iter().for_each(log::LogLines::flush);
    traces.iter().for_each(TraceFile::flush);
    notices.flush();
    Ok(signal)
}

/// Opens the file set with `--otlp-file`. Returns `None` if the option is absent.
///
/// # Errors
/// A one-line error if the file cannot be opened.
fn traces(settings: &ServeSettings, notices: &Notices) -> Result<Option<TraceFile>> {
    let service = &settings.args.service;
    let open = |path| TraceFile::open(path, notices);
    service.otlp_file.as_deref().map(open).transpose()
}

/// Creates the metrics of the service.
fn metrics(tools: Option<&ServiceTools>) -> ServiceMetrics {
    let tools = tools.into_iter().flat_map(|tools| tools.list.names());
    ServiceMetrics::new(AnyFront::all().map(AnyFront::name), tools)
}

/// Opens the folder of the sessions. Returns `None` if responses are not stored.
///
/// # Errors
/// A one-line error for an unusable folder.
fn sessions(
    settings: &ServeSettings,
    budget: &MemoryBudget,
    traces: Option<TraceFile>,
    metrics: &ServiceMetrics,
) -> Result<Option<Rc<Sessions>>> {
    let Some(folder) = &settings.args.sessions.sessions else {
        return Ok(None);
    };
    let options = settings.args.common.filter("tc-serve", vec![]);
    let store = FolderStore::open(folder, options)?;
    let limits = settings.args.sessions.limits();
    Ok(Some(Rc::new(Sessions::new(
        store, limits, budget, traces, metrics,
    ))))
}

/// Notifies followers of changed sessions.
async fn watch(sessions: Option<&Sessions>) -> StoreError {
    match sessions {
        Some(sessions) => sessions.watch().await,
        None => std::future::pending().await,
    }
}

/// Reads the key files again for each byte of `hangups`.
async fn read_keys(service: &Service, hangups: Option<UnixStream>, notices: &Notices) -> Failure {
    let Some(mut hangups) = hangups else {
        return std::future::pending().await;
    };
    loop {
        if let Err(error) = hangups.read_u8().await {
            return Failure::limit(UNWATCHED)(error);
        }
        service.read_keys_again(notices);
    }
}

/// The error context for signals that cannot be waited for.
const UNWATCHED: &str = "signals cannot be watched";

/// Waits for a signal, and returns its number.
async fn signalled(signals: &StopSignals) -> Result<i32, Failure> {
    use std::os::fd::AsFd as _;
    let limit = Failure::limit(UNWATCHED);
    let wake = signals.as_fd().try_clone_to_owned().map_err(&limit)?;
    let wake = UnixStream::from_std(wake.into()).map_err(&limit)?;
    loop {
        if let Some(signal) = signals.seen() {
            return Ok(signal);
        }
        wake.ready(Interest::READABLE).await.map_err(&limit)?;
    }
}

/// Prints the address on standard output, and instructions for setting up clients on standard
/// error.
///
/// # Errors
/// Failures of standard output.
fn print(settings: &ServeSettings, address: &str, notices: &Notices) -> Result<()> {
    let key = settings.keys.made.as_deref();
    let text = text(settings, address);
    notices.write(LogLine::Start {
        address,
        key,
        text: &text,
    });
    // Flush first, so that a reader of the address finds the notices already written.
    notices.flush();
    let mut out = stdio::Output::new();
    out.put(format!("{address}\n").as_bytes())?;
    out.flush()?;
    Ok(())
}

fn text(settings: &ServeSettings, address: &str) -> String {
    let made = settings.keys.made.as_deref();
    let has_keys = !settings.keys.hashes.is_empty();
    let key = made.unwrap_or(if has_keys { "YOUR-KEY" } else { "none" });
    let mut text = format!("tc-serve: listening on {address}\n");
    if let Some(made) = made {
        let _ = writeln!(text, "tc-serve: the key of this run is {made}");
    }
    if let Listen::Unix(path) = &settings.listen {
        let _ = writeln!(
            text,
            "  curl            curl --unix-socket {} http://localhost/v1/models",
            path.display()
        );
        return text;
    }
    text += &clients(address, key, has_keys);
    if settings.has_page() {
        // A URL fragment is not sent to any server. The page removes the key from the address bar.
        let fragment = made.map(|key| format!("#key={key}")).unwrap_or_default();
        let _ = writeln!(text, "  Page            {address}/{fragment}");
    }
    text
}

/// Returns how to set up each client, one line each. [The documentation
/// page](../../../docs/serve.md) contains the same lines.
fn clients(address: &str, key: &str, has_keys: bool) -> String {
    let mut header = String::new();
    let mut variable = String::new();
    let mut name = "";
    if has_keys {
        header = format!(" -H 'authorization: Bearer {key}'");
        // The key is passed in the environment, since all users of the machine can read a process's
        // arguments.
        variable = format!("TC_SERVE_KEY={key} ");
        name = ",env_key=\"TC_SERVE_KEY\"";
    }
    format!(
        "  curl            curl{header} {address}/v1/models
  OpenAI          OpenAI(base_url=\"{address}/v1\", api_key=\"{key}\")
  Anthropic       Anthropic(base_url=\"{address}\", api_key=\"{key}\")
  Claude Code     ANTHROPIC_BASE_URL={address} ANTHROPIC_AUTH_TOKEN={key} claude
  Codex           {variable}codex -c \
  'model_providers.toolpipe={{name=\"toolpipe\",base_url=\"{address}/v1\",wire_api=\"responses\"{name}}}' -c model_provider=toolpipe
  AI SDK          new DefaultChatTransport({{ api: \"{address}/api/chat\" }})
  AG-UI           new HttpAgent({{ url: \"{address}/api/ag-ui\" }})
  Open WebUI      OPENAI_API_BASE_URL={address}/v1 OPENAI_API_KEY={key} open-webui serve
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_sets_up_each_client_as_the_lines_at_the_start_do() {
        let page = include_str!("../../../docs/serve.md");
        let address = "http://127.0.0.1:8790";
        let lines = clients(address, "none", false);
        assert!(
            page.contains(&format!("```text\n{lines}```\n")),
            "docs/serve.md lacks:\n{lines}"
        );
        // The page lists more details of a client under the same name.
        for line in lines.lines().skip(1) {
            let name = line.trim_start().split("  ").next().unwrap_or_default();
            assert!(page.contains(&format!("\n| {name} | ")), "{name}");
        }
        // The lines for a file are equivalent to the shell command.
        let of_file = page
            .lines()
            .find(|line| line.starts_with("model_providers.toolpipe = "))
            .map(|line| line.replace(' ', ""));
        assert!(of_file.is_some_and(|of_file| lines.contains(&of_file)));
        // A key must never appear in the arguments of a process.
        let with_key = clients(address, "SECRET", true);
        let codex = with_key.lines().find(|line| line.starts_with("  Codex "));
        let arguments = codex
            .and_then(|line| line.split_once(" codex "))
            .map(|(_, arguments)| arguments);
        assert!(
            arguments.is_some_and(|arguments| !arguments.contains("SECRET")),
            "{with_key}"
        );
    }
}
