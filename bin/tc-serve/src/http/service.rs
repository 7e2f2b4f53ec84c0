//! What all requests share, and what is known of one after its head.

use super::gate::Gate;
use super::passed_paths::PassedPaths;
use super::route::Route;
use crate::args::{Keys, Limits, Settings};
use crate::budget::Budget;
use crate::log::{LogLines, Notices};
use crate::pipe::PipeSettings;
use crate::places::{KeyPlace, Places};
use crate::server::Ending;
use crate::source::Source;
use anyhow::Result;
use sha2::{Digest, Sha256};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

/// What all requests share.
pub struct Service {
    pub(super) source: Source,
    pub(super) pipe: PipeSettings,
    pub(super) gate: Gate,
    pub(super) passed: PassedPaths,
    pub(super) keys: RefCell<Keys>,
    pub(super) limits: Limits,
    pub(super) keep_alive: Duration,
    pub(super) extras: bool,
    pub(super) log: Option<LogLines>,
    pub(super) ending: Ending,
    /// Of which the ids of requests are made.
    seed: [u8; 16],
    requests: Cell<u64>,
    /// The places for answers, by the place of the key in the list.
    places: RefCell<HashMap<KeyPlace, Places>>,
}

/// What is known of a request once its head has passed the gate.
pub struct Admitted {
    /// The id of the request, 32 hexadecimal digits.
    pub id: String,
    /// What its path is for.
    pub route: Route,
    /// The place of the client's key in the list.
    pub key: KeyPlace,
    /// The provider's path, for a request that is passed.
    pub passed: Option<String>,
}

impl Service {
    /// A service that gets its events from `source`.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn new(
        settings: &Settings,
        source: Source,
        log: Option<LogLines>,
        ending: Ending,
    ) -> Result<Service> {
        let streams = tag::Streams::new(tag::Options {
            always: true,
            needs_tools: true,
            by_model: true,
            dialects: source.dialects(),
            ..tag::Options::default()
        });
        let accumulate = Rc::new(accumulate::Options {
            live: true,
            // A client runs a call that has ended, and nothing takes it back: the upstream must
            // have closed it.
            emit_on: accumulate::EmitOn::Sealed,
            ..accumulate::Options::default()
        });
        Ok(Service {
            source,
            pipe: PipeSettings {
                streams: Rc::new(streams),
                accumulate,
                most: settings.limits.answer,
                budget: Budget::new(settings.limits.memory),
            },
            passed: settings.passed.clone(),
            gate: Gate::new(&settings.hosts, &settings.origins),
            keys: RefCell::new(settings.keys.clone()),
            limits: settings.limits,
            keep_alive: settings.keep_alive,
            extras: settings.extras,
            log,
            ending,
            seed: crate::args::random()?,
            requests: Cell::new(0),
            places: RefCell::default(),
        })
    }

    /// Warns where the provider cannot be reached.
    pub async fn warn_unreachable(&self) {
        if let Some(upstream) = self.source.upstream() {
            upstream.direct().warn_unreachable().await;
        }
    }

    /// Waits until nothing is left of what was started for requests that have ended.
    pub async fn ended(&self) {
        self.source.ended().await;
    }

    /// Whether a file has keys that [`Service::read_keys_again`] would read.
    pub fn has_key_files(&self) -> bool {
        self.keys.borrow().file.is_some() || self.source.has_key_file()
    }

    /// Reads the files of keys again: those of the clients, and that of the provider. Keys of a
    /// file that cannot be used stay as they are.
    pub fn read_keys_again(&self, notices: &Notices) {
        let file = self.keys.borrow().file.clone();
        let of_clients =
            file.map(|file| Keys::read(&file).map(|keys| *self.keys.borrow_mut() = keys));
        for read in of_clients.into_iter().chain([self.source.read_key_again()]) {
            if let Err(error) = read {
                notices.warn(
                    "keys_not_read",
                    &format!("SIGHUP: {error:#}; the keys of this file stay as they were"),
                );
            }
        }
        notices.warn("keys_read", "SIGHUP: the files of keys were read again");
    }

    /// An id that no other request has, which cannot be guessed.
    pub(super) fn new_id(&self) -> String {
        let number = self.requests.get();
        self.requests.set(number + 1);
        let hash = Sha256::new()
            .chain_update(self.seed)
            .chain_update(number.to_le_bytes())
            .finalize();
        hash.iter()
            .take(16)
            .fold(String::with_capacity(32), |id, byte| {
                id + &format!("{byte:02x}")
            })
    }

    /// The places for answers of one key.
    pub(super) fn places(&self, key: KeyPlace) -> Places {
        let mut all = self.places.borrow_mut();
        all.entry(key)
            .or_insert_with(|| Places::new(self.limits.streams, self.limits.queue))
            .clone()
    }
}
