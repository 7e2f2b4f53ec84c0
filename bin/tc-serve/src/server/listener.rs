//! What the service listens on.

use crate::args::Listen;
use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixSocket};

/// How many connections the system keeps until they are accepted. One that finds no room tries
/// again after a second.
const BACKLOG: u32 = 4096;

/// What the service listens on.
#[derive(Debug)]
pub(super) enum Listener {
    /// A port.
    Tcp(TcpListener),
    /// A socket in the file system, which is removed at the end.
    Unix(UnixListener, PathBuf),
}

/// A connection of either kind.
pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Wire for T {}

/// An accepted connection.
pub(super) struct Accepted {
    /// Its bytes.
    pub wire: Box<dyn Wire>,
    /// The address that the client connected to; `None` for a socket in the file system.
    pub local: Option<IpAddr>,
}

impl Listener {
    /// Starts to listen.
    ///
    /// # Errors
    /// One line that names the address.
    pub(super) fn bind(listen: &Listen) -> Result<Listener> {
        match listen {
            Listen::Tcp(addresses) => {
                let mut listener = listen_on(addresses[0]);
                for address in &addresses[1..] {
                    listener = listener.or_else(|_| listen_on(*address));
                }
                let what = || {
                    format!(
                        "--listen {}: choose another port, or 0 for a free one",
                        addresses[0]
                    )
                };
                Ok(Listener::Tcp(listener.with_context(what)?))
            }
            Listen::Unix(path) => {
                clear(path)?;
                let listener = private_socket(path).and_then(|socket| socket.listen(BACKLOG));
                let listener = listener.with_context(|| format!("--unix {}", path.display()))?;
                Ok(Listener::Unix(listener, path.clone()))
            }
        }
    }

    /// Its address: a URL, or `unix:PATH`.
    pub(super) fn address(&self) -> String {
        match self {
            Listener::Tcp(listener) => listener
                .local_addr()
                .map(|at| format!("http://{at}"))
                .unwrap_or_default(),
            Listener::Unix(_, path) => format!("unix:{}", path.display()),
        }
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// When the system has no more descriptors, or the client has left already.
    pub(super) async fn accept(&self) -> std::io::Result<Accepted> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Small events are sent at once. An error means that the client has left, which the
                // first read reports.
                let _ = stream.set_nodelay(true);
                let local = stream.local_addr().ok().as_ref().map(SocketAddr::ip);
                Ok(Accepted {
                    wire: Box::new(stream),
                    local,
                })
            }
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok(Accepted {
                    wire: Box::new(stream),
                    local: None,
                })
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            // The error is ignored: somebody else may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn listen_on(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    // A service that is started again finds its port free.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A socket at `path` that this user alone can open. The socket gets its permissions before it
/// listens, and nobody can connect to a socket that does not listen, so another user can never
/// connect.
fn private_socket(path: &Path) -> std::io::Result<UnixSocket> {
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(socket)
}

/// Removes the socket of a service that has ended without doing so.
fn clear(path: &Path) -> Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    match std::fs::symlink_metadata(path) {
        Err(_) => return Ok(()),
        Ok(found) if !found.file_type().is_socket() => {
            bail!(
                "--unix {}: a file that is not a socket has this name, choose another",
                path.display()
            )
        }
        Ok(_) => {}
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).with_context(|| format!("--unix {}", path.display()))
        }
        _ => bail!(
            "--unix {}: another service listens there, choose another path",
            path.display()
        ),
    }
}

/// Lets this process open as many files as the system allows it: each stream takes two.
pub(super) fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // The error is ignored: the limit that is in force holds then, and a connection that cannot be
    // opened is refused.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn nobody_connects_to_a_socket_before_it_is_its_owners_alone() {
        let path =
            std::env::temp_dir().join(format!("tc-serve-private-{}.sock", std::process::id()));
        let socket = private_socket(&path).unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            UnixStream::connect(&path).unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _entered = runtime.enter();
        let listener = socket.listen(1).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        drop(listener);
        std::fs::remove_file(&path).unwrap();
    }
}
