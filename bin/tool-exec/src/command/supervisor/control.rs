//! What goes over the socket between `tool-exec` and a supervisor, and between a supervisor and its
//! launch stage.

use super::in_force::InForce;
use serde_json::{Value, json};

/// The first argument of a supervisor.
pub const SUPERVISE: &str = "--supervise";
/// The second argument of a supervisor that tries no namespaces.
pub const PLAIN: &str = "plain";
/// The first argument of a launch stage.
pub const LAUNCH: &str = "--launch";
/// The second argument of a launch stage that is the init of a PID namespace.
pub const INIT: &str = "init";

/// What the supervisor receives after its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// End the command: SIGTERM, and SIGKILL after the grace.
    End,
    /// Kill the command.
    Kill,
}

impl Order {
    /// The body of its frame.
    pub fn to_bytes(self) -> &'static [u8] {
        match self {
            Order::End => b"end",
            Order::Kill => b"kill",
        }
    }

    /// Reads the body of a frame.
    pub fn read(body: &[u8]) -> Option<Order> {
        [Order::End, Order::Kill]
            .into_iter()
            .find(|order| order.to_bytes() == body)
    }
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status, 128 plus the signal's number if a signal ended it; `None`: unknown, it was
    /// ended from outside.
    pub status: Option<i32>,
    /// Whether its deadline ended it.
    pub is_timeout: bool,
    /// Whether the system killed one of its processes because they used more memory than they may
    /// together.
    pub is_out_of_memory: bool,
    /// Its processes that could not be ended, by their numbers outside of its namespace; the first
    /// of them.
    pub left: Vec<i32>,
}

/// What a launch stage reports to its supervisor, and that to `tool-exec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The command runs.
    Started(InForce),
    /// The command did not run, and why: text for the answer.
    NotStarted(String),
    /// Namespaces were begun and could not be finished: nothing ran, and a supervisor that tries
    /// none would do.
    Unusable,
    /// The command has ended with this status; what it started may still run. From the launch stage
    /// alone.
    Exited(i32),
    /// The command and all that it started have ended. From the supervisor alone.
    Ended(Ended),
}

impl Notice {
    /// The body of its frame.
    pub fn to_bytes(&self) -> Vec<u8> {
        let value = match self {
            Notice::Started(in_force) => json!({"started": in_force.to_json()}),
            Notice::NotStarted(why) => json!({"not_started": why}),
            Notice::Unusable => json!({"unusable": true}),
            Notice::Exited(status) => json!({"exited": status}),
            Notice::Ended(ended) => {
                let Ended {
                    status,
                    is_timeout,
                    is_out_of_memory,
                    left,
                } = ended;
                json!({"ended": {"status": status, "is_timeout": is_timeout, "is_out_of_memory": is_out_of_memory, "left": left}})
            }
        };
        value.to_string().into_bytes()
    }

    /// Reads the body of a frame.
    pub fn read(body: &[u8]) -> Option<Notice> {
        let value: Value = serde_json::from_slice(body).ok()?;
        let (kind, value) = value.as_object()?.iter().next()?;
        let number = |value: &Value| value.as_i64().and_then(|n| i32::try_from(n).ok());
        Some(match kind.as_str() {
            "started" => Notice::Started(InForce::read(value)),
            "not_started" => Notice::NotStarted(value.as_str()?.to_owned()),
            "unusable" => Notice::Unusable,
            "exited" => Notice::Exited(number(value)?),
            "ended" => Notice::Ended(Ended {
                status: number(&value["status"]),
                is_timeout: value["is_timeout"] == true,
                is_out_of_memory: value["is_out_of_memory"] == true,
                left: value["left"]
                    .as_array()?
                    .iter()
                    .filter_map(number)
                    .collect(),
            }),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_and_orders_read_back() {
        let ended = Ended {
            status: Some(143),
            is_timeout: true,
            is_out_of_memory: true,
            left: vec![7, 8],
        };
        for notice in [
            Notice::Started(InForce::LEAST),
            Notice::NotStarted("it is \"text\"".to_owned()),
            Notice::Unusable,
            Notice::Exited(137),
            Notice::Ended(ended),
            Notice::Ended(Ended::default()),
        ] {
            assert_eq!(Notice::read(&notice.to_bytes()), Some(notice));
        }
        assert_eq!(Notice::read(b"{}"), None);
        assert_eq!(
            [Order::End, Order::Kill].map(|order| Order::read(order.to_bytes())),
            [Some(Order::End), Some(Order::Kill)]
        );
    }
}
