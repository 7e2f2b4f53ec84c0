//! What confines one command, as it is handed from process to process.

use super::place::Place;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tool::{Network, SandboxKind};

/// What confines one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// What confines it.
    pub kind: SandboxKind,
    /// The program of bubblewrap, for [`SandboxKind::Bwrap`].
    pub bwrap: PathBuf,
    /// What it may read and execute.
    pub read: Vec<Place>,
    /// What it may read, execute, write, make and remove, besides its home.
    pub write: Vec<Place>,
    /// What it may reach of the network.
    pub network: Network,
}

/// The command that a confinement holds.
#[derive(Clone, Copy, Debug)]
pub struct Confined<'a> {
    /// Its program.
    pub program: &'a Path,
    /// Its arguments; the first is the name that the program gets.
    pub argv: &'a [OsString],
    /// Its home, which exists.
    pub home: &'a Path,
    /// How much each of its folders in memory may hold, in bytes.
    pub room: u64,
    /// Its working folder.
    pub cwd: &'a Path,
}

impl Confinement {
    /// How many processes between the supervisor and the command belong to its group: the launch
    /// stage, and those of bubblewrap.
    pub fn own_processes(&self) -> u64 {
        if self.kind == SandboxKind::Bwrap {
            3
        } else {
            1
        }
    }

    /// The confinement as JSON, null where nothing confines; paths that are not UTF-8 are refused
    /// when it is made.
    pub fn to_json(&self) -> Value {
        if self.kind == SandboxKind::None {
            return Value::Null;
        }
        let network = match &self.network {
            Network::Off => json!("off"),
            Network::On => json!("on"),
            Network::NoTcp => json!("no-tcp"),
            Network::Ports(ports) => json!(ports),
        };
        let places = |places: &[Place]| places.iter().map(Place::to_json).collect::<Vec<_>>();
        let (read, write) = (places(&self.read), places(&self.write));
        json!({"kind": self.kind.name(), "bwrap": self.bwrap, "read": read, "write": write, "network": network})
    }

    /// Reads what [`Confinement::to_json`] returns. `None`: it is anything else.
    pub fn from_json(value: &Value) -> Option<Self> {
        if value.is_null() {
            return Some(Confinement::default());
        }
        let places = |key: &str| {
            value[key]
                .as_array()?
                .iter()
                .map(Place::from_json)
                .collect::<Option<Vec<_>>>()
        };
        let port = |value: &Value| value.as_u64().and_then(|n| u16::try_from(n).ok());
        Some(Confinement {
            kind: SandboxKind::of(value["kind"].as_str()?)?,
            bwrap: value["bwrap"].as_str()?.into(),
            read: places("read")?,
            write: places("write")?,
            network: match &value["network"] {
                Value::Array(ports) => {
                    Network::Ports(ports.iter().map(port).collect::<Option<_>>()?)
                }
                word => match word.as_str()? {
                    "off" => Network::Off,
                    "on" => Network::On,
                    "no-tcp" => Network::NoTcp,
                    _ => return None,
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confinement_survives_its_way_through_json() {
        for network in [
            Network::Off,
            Network::On,
            Network::NoTcp,
            Network::Ports(vec![1, 65535]),
        ] {
            for kind in [SandboxKind::Landlock, SandboxKind::Bwrap] {
                let place = |name: &str, real: &str| Place {
                    name: name.into(),
                    real: real.into(),
                };
                let (read, write) = (
                    vec![place("/a b", "/c"), place("/é", "/é")],
                    vec![place("/w", "/w")],
                );
                let given = Confinement {
                    kind,
                    bwrap: "/bin/b".into(),
                    read,
                    write,
                    network: network.clone(),
                };
                assert_eq!(Confinement::from_json(&given.to_json()), Some(given));
            }
        }
        assert_eq!(
            Confinement::from_json(&Confinement::default().to_json()),
            Some(Confinement::default())
        );
        assert_eq!(Confinement::from_json(&json!({"kind": "landlock"})), None);
    }
}
