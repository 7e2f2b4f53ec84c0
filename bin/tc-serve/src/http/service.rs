//! The state that all requests share, and what is known about a request after its head.

use super::gate::Gate;
use crate::args::{LimitArgs, ServeSettings};
use crate::budget::MemoryBudget;
use crate::keys::{ClientKey, CurrentKeys, KEY_REMOVED, KeyHash, Keys};
use crate::life::ServiceEnd;
use crate::log::{LogLines, Notices};
use crate::metrics::ServiceMetrics;
use crate::page::Page;
use crate::pipe::PipeSettings;
use crate::places::AnswerSlots;
use crate::route::{Endpoint, PassedPaths};
use crate::sessions::Sessions;
use crate::source::Source;
use crate::tools::ServiceTools;
use crate::traces::{TraceFile, answer_trace};
use crate::upstream::Upstream;
use anyhow::Result;
use sha2::{Digest, Sha256};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use trace::TraceContext;

/// The state that all requests share.
pub(crate) struct Service {
    pub(super) source: Source,
    /// The sessions; `None` if responses are not stored.
    pub(super) sessions: Option<Rc<Sessions>>,
    /// The page at `/`; `None` if the service has no page.
    pub(super) page: Option<Page>,
    /// The tools that the service runs itself, if there are any.
    pub(super) tools: Option<Rc<ServiceTools>>,
    pub(super) pipe: PipeSettings,
    pub(super) gate: Gate,
    pub(super) passed: PassedPaths,
    pub(super) keys: CurrentKeys,
    pub(super) limits: LimitArgs,
    pub(super) keep_alive: Duration,
    pub(super) extras: bool,
    pub(super) traces: Option<TraceFile>,
    pub(super) log: Option<LogLines>,
    pub(super) ending: ServiceEnd,
    /// The random seed of request ids.
    seed: [u8; 16],
    requests: Cell<u64>,
    /// The slots for responses of each key.
    places: RefCell<HashMap<ClientKey, AnswerSlots>>,
}

/// The service's outputs for logs, traces and metrics.
#[derive(Clone, Debug)]
pub(crate) struct Reports {
    /// The access log, if there is one.
    pub log: Option<LogLines>,
    /// The trace file set with `--otlp-file`; `None` if the option is absent.
    pub traces: Option<TraceFile>,
    /// The metrics for `/metrics`.
    pub metrics: ServiceMetrics,
}

/// What is known about a request once its head was accepted.
pub(super) struct Admitted {
    /// The id of the request, 32 hexadecimal digits.
    pub id: String,
    /// The endpoint that its path names.
    pub route: Endpoint,
    /// The client's key.
    pub key: ClientKey,
    /// The provider's path; `None` if the request is not forwarded.
    pub passed: Option<String>,
}

impl Service {
    /// Creates a service that gets its events from `source`, stores responses in `sessions`, runs
    /// `tools` itself, and reports its work. What it keeps in memory is limited by `budget`.
    ///
    /// # Errors
    /// If the system cannot supply random bytes.
    pub(crate) fn new(
        settings: &ServeSettings,
        budget: MemoryBudget,
        source: Source,
        sessions: Option<Rc<Sessions>>,
        tools: Option<ServiceTools>,
        reports: Reports,
        ending: ServiceEnd,
    ) -> Result<Service> {
        let recent = Rc::<json::RecentTools>::default();
        let streams = tag::Streams::new(tag::TagOptions {
            recent: Rc::clone(&recent),
            always: true,
            needs_tools: true,
            by_model: true,
            // If the end of the prompt is unknown it counts as empty, so the first word is sent at
            // once.
            eager: true,
            dialects: source.dialects(),
            ..tag::TagOptions::default()
        });
        let accumulate = Rc::new(accumulate::AccumulateOptions {
            recent,
            live: true,
            // Clients run a call as soon as it is complete, and nothing can revoke it. So the
            // upstream must have closed the call first.
            emit_on: accumulate::EmitOn::Sealed,
            ..accumulate::AccumulateOptions::default()
        });
        let args = &settings.args;
        Ok(Service {
            page: settings.has_page().then(Page::new),
            source,
            sessions,
            tools: tools.map(Rc::new),
            pipe: PipeSettings {
                streams: Rc::new(streams),
                accumulate,
                most: args.limits.max_answer,
                budget,
                metrics: reports.metrics,
            },
            passed: settings.passed.clone(),
            gate: Gate::new(&args.access.allow_hosts, &settings.origins),
            keys: CurrentKeys::new(settings.keys.clone()),
            limits: args.limits,
            keep_alive: args.service.keep_alive,
            extras: args.service.extras,
            traces: reports.traces,
            log: reports.log,
            ending,
            seed: crate::keys::random()?,
            requests: Cell::new(0),
            places: RefCell::default(),
        })
    }

    /// Warns if the provider cannot be reached.
    pub(crate) async fn warn_unreachable(&self) {
        for upstream in self.source.upstreams() {
            upstream.warn_unreachable().await;
        }
    }

    /// Waits until everything started for finished requests has ended.
    pub(crate) async fn ended(&self) {
        self.source.ended().await;
    }

    /// Whether any keys come from files, so that [`Service::read_keys_again`] has work to do.
    pub(crate) fn has_key_files(&self) -> bool {
        let mut upstreams = self.source.upstreams();
        self.keys.file().is_some() || upstreams.any(Upstream::has_key_file)
    }

    /// Reads the key files of the clients and of the provider again. If a file is invalid, its
    /// previous keys stay in use.
    pub(crate) fn read_keys_again(&self, notices: &Notices) {
        let of_clients = self.keys.file();
        let of_clients = of_clients.map(|file| Keys::read(&file).map(|keys| self.set_keys(keys)));
        let of_provider = self.source.upstreams().map(Upstream::read_key_again);
        for read in of_clients.into_iter().chain(of_provider) {
            if let Err(error) = read {
                notices.warn(
                    "keys_not_read",
                    &format!("SIGHUP: {error:#}; the keys of this file stay as they were"),
                );
            }
        }
        notices.warn("keys_read", "SIGHUP: the key files were reread");
    }

    /// Replaces the clients' keys. Responses started with a removed key end.
    fn set_keys(&self, keys: Keys) {
        self.keys.replace(keys);
        self.places
            .borrow_mut()
            .retain(|key, _| self.keys.admit(*key));
        let running = self.sessions.iter().flat_map(|sessions| sessions.running());
        for response in running {
            let key = response.key.as_deref().and_then(KeyHash::parse);
            if !self.keys.admit(key) {
                response.cancel(KEY_REMOVED);
            }
        }
    }

    /// Returns a unique id that cannot be guessed.
    pub(super) fn new_id(&self) -> String {
        let number = self.requests.get();
        self.requests.set(number + 1);
        let hash = Sha256::new()
            .chain_update(self.seed)
            .chain_update(number.to_le_bytes())
            .finalize();
        crate::keys::hex(&hash[..16])
    }

    /// Returns the name by which a session refers to a client: the start of its key's hash.
    pub(super) fn client_name(&self, key: ClientKey) -> String {
        match key {
            Some(key) => format!("key {}", key.name()),
            None => "client".to_owned(),
        }
    }

    /// Returns the span of the response `id`. Returns `None` unless the client named a span or the
    /// service writes traces.
    pub(super) fn trace_of(&self, id: &str, client: Option<&TraceContext>) -> Option<TraceContext> {
        let is_traced = client.is_some() || self.traces.is_some();
        is_traced.then(|| answer_trace(id, client))
    }

    /// Returns the response slots of one key.
    pub(super) fn places(&self, key: ClientKey) -> AnswerSlots {
        let mut all = self.places.borrow_mut();
        let streams = usize::try_from(self.limits.max_streams).unwrap_or(usize::MAX);
        all.entry(key)
            .or_insert_with(|| AnswerSlots::new(streams, self.limits.queue))
            .clone()
    }
}
