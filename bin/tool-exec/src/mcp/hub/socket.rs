//! The socket of a hub, in a folder that this user alone can enter.

use anyhow::Context;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::net::{UnixListener, UnixStream};

/// The longest path of a socket on Linux, in bytes (unix(7)).
const LONGEST: usize = 107;

/// The socket of a hub. Its folder is removed when this is dropped.
#[derive(Debug)]
pub struct Socket {
    folder: PathBuf,
    path: PathBuf,
    listener: UnixListener,
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// How many PID namespaces a process is in, counted from that of /proc; `None` where it is gone, or
/// where there is no /proc.
fn namespaces(process: &str) -> Option<usize> {
    let status = std::fs::read_to_string(Path::new("/proc").join(process).join("status")).ok()?;
    Some(
        status
            .lines()
            .find_map(|line| line.strip_prefix("NSpid:"))?
            .split_whitespace()
            .count(),
    )
}

impl Socket {
    /// Opens it below `XDG_RUNTIME_DIR`, else below the folder for temporary files.
    ///
    /// # Errors
    /// When there is no place for it.
    pub fn open() -> anyhow::Result<Socket> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let name = format!("toolpipe-hub-{}-{:x}", std::process::id(), now.as_nanos());
        let places = std::env::var_os("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .into_iter();
        let places = places
            .filter(|place| place.is_absolute() && place.is_dir())
            .chain([std::env::temp_dir(), "/tmp".into()]);
        let mut fits = places
            .map(|place| place.join(&name))
            .filter(|folder| folder.as_os_str().len() + 2 <= LONGEST);
        let folder = fits
            .next()
            .context("no folder for the socket of the hub has a short enough path, set TMPDIR")?;
        let failed =
            |path: &Path| format!("{}: the socket of the hub cannot be made", path.display());
        // Fails where something has that name already, even a link: another user may have put it
        // there.
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .with_context(|| failed(&folder))?;
        let path = folder.join(OsStr::from_bytes(b"s"));
        match UnixListener::bind(&path) {
            Ok(listener) => Ok(Socket {
                folder,
                path,
                listener,
            }),
            Err(e) => {
                let _ = std::fs::remove_dir(&folder);
                Err(e).with_context(|| failed(&path))
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next client; `None` for one of another user, for a process in a PID namespace below this
    /// one, as the commands of tools are, and where none could be accepted.
    pub async fn accept(&self) -> Option<UnixStream> {
        match self.listener.accept().await {
            Ok((stream, _)) => {
                let peer = stream.peer_cred().ok()?;
                let is_ours = peer.uid() == rustix::process::geteuid().as_raw();
                let is_beside = || {
                    peer.pid()
                        .is_some_and(|pid| namespaces(&pid.to_string()) == namespaces("self"))
                };
                (is_ours && is_beside()).then_some(stream)
            }
            Err(_) => {
                // Too many open files, say: the listener stays ready, so do not spin.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                None
            }
        }
    }
}
