//! The certificate authorities that this system trusts. They are loaded once per process, mostly
//! when the first server presents a certificate.
//!
//! The locations are those of rustls-native-certs. That crate decodes base64 in constant time, as
//! private keys require, which would dominate the startup time.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

/// No usable certificate of an authority was found.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "install the certificates of authorities (Debian: ca-certificates), or name a file of them in \
     SSL_CERT_FILE: {0}"
)]
pub(super) struct NoAuthorities(String);

/// The TLS state shared by all clients of this process: the authorities, and the sessions that
/// later connections to a server resume.
static TLS: LazyLock<(ClientConfig, Arc<Authorities>)> = LazyLock::new(|| {
    // A process can set this only once. If another library has set it, its choice works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authorities = Arc::new(Authorities::of(Places::of_system()));
    (config(authorities.clone()), authorities)
});

/// Returns the TLS configuration.
pub(super) fn tls() -> ClientConfig {
    TLS.0.clone()
}

/// Checks that there are authorities, without loading them all.
///
/// # Errors
/// If none were found.
pub(super) fn check() -> Result<(), NoAuthorities> {
    TLS.1.missing.clone().map_or(Ok(()), Err)
}

fn config(authorities: Arc<Authorities>) -> ClientConfig {
    let mut config = ClientConfig::builder()
        // rustls calls each verifier of another crate dangerous. This one asks rustls's own.
        .dangerous()
        .with_custom_certificate_verifier(authorities)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

/// The locations of certificates.
#[derive(Debug)]
struct Places {
    file: Option<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Places {
    /// Returns the locations named by OpenSSL's variables, or, if they are not set, the usual
    /// locations of systems.
    fn of_system() -> Places {
        let folders = std::env::var_os("SSL_CERT_DIR").unwrap_or_default();
        let folders = std::env::split_paths(&folders).filter(|path| !path.as_os_str().is_empty());
        let named = Places {
            file: std::env::var_os("SSL_CERT_FILE").map(PathBuf::from),
            folders: folders.collect(),
        };
        if named.file.is_some() || !named.folders.is_empty() {
            return named;
        }
        let found = openssl_probe::probe();
        Places {
            file: found.cert_file,
            folders: found.cert_dir,
        }
    }
}

/// The verifier for a set of certificates; `None` if no certificate in it is usable.
type Verifier = Option<Arc<WebPkiServerVerifier>>;

/// A verifier that is created on first use.
type LazyVerifier = LazyLock<Verifier, Box<dyn FnOnce() -> Verifier + Send>>;

/// The authorities of a system. The folders mostly contain the same certificates as the file, so
/// they are loaded only for a server that the file's authorities do not verify.
struct Authorities {
    file: LazyVerifier,
    folders: LazyVerifier,
    missing: Option<NoAuthorities>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl std::fmt::Debug for Authorities {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Authorities")
            .field("missing", &self.missing)
            .finish_non_exhaustive()
    }
}

impl Authorities {
    fn of(Places { file, folders }: Places) -> Authorities {
        let mut why = vec![];
        let mut is_first_usable = false;
        let mut text = vec![];
        let mut seen = HashSet::new();
        if let Some(file) = &file {
            // Taken before the file is read, because a pipe yields its content only once.
            seen.extend(fs::metadata(file).ok().as_ref().map(identity));
            match fs::read(file) {
                Ok(read) => text = read,
                Err(error) => why.push(format!("{}: {error}", file.display())),
            }
            is_first_usable =
                certificates(&text).any(|der| RootCertStore::empty().add(der).is_ok());
            if !is_first_usable && why.is_empty() {
                why.push(format!("{} has none", file.display()));
            }
        }
        if folders.is_empty() && file.is_none() {
            why.push("there are none in the usual places".to_owned());
        }
        why.extend(
            folders
                .iter()
                .map(|path| format!("{} has none", path.display())),
        );
        let folders: LazyVerifier = LazyLock::new(Box::new(move || {
            verifier(texts_in(&folders, seen).iter().map(Vec::as_slice))
        }));
        let is_missing = !is_first_usable && folders.is_none();
        Authorities {
            file: LazyLock::new(Box::new(move || verifier([&*text].into_iter()))),
            folders,
            missing: is_missing.then(|| NoAuthorities(why.join(", "))),
            algorithms: rustls::crypto::ring::default_provider().signature_verification_algorithms,
        }
    }
}

impl ServerCertVerifier for Authorities {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let unknown = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let mut refusal = match &self.missing {
            Some(missing) => rustls::Error::General(missing.to_string()),
            None => unknown.clone(),
        };
        for verifier in [&self.file, &self.folders] {
            let Some(verifier) = &**verifier else {
                continue;
            };
            let (name, ocsp) = (server_name, ocsp_response);
            match verifier.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
                Ok(verified) => return Ok(verified),
                // A verifier that knows the authority returns a more specific error.
                Err(error) if refusal == unknown => refusal = error,
                Err(_) => {}
            }
        }
        Err(refusal)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Returns the verifier for all certificates in these texts. Unreadable certificates are skipped.
fn verifier<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Verifier {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(texts.flat_map(certificates));
    WebPkiServerVerifier::builder(roots.into()).build().ok()
}

/// Returns the content of each file in the folders once, however many names it has, except those in
/// `seen`.
fn texts_in(folders: &[PathBuf], mut seen: HashSet<(u64, u64)>) -> Vec<Vec<u8>> {
    let entries = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let files = entries.flatten().filter_map(|entry| {
        let path = entry.ok()?.path();
        let metadata = fs::metadata(&path).ok()?;
        let is_new = metadata.is_file() && seen.insert(identity(&metadata));
        is_new.then(|| fs::read(path).ok())?
    });
    files.collect()
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Returns the certificates in a PEM text (RFC 7468). Everything else is skipped.
fn certificates(text: &[u8]) -> impl Iterator<Item = CertificateDer<'static>> {
    let mut lines = text.split(|byte| matches!(byte, b'\n' | b'\r'));
    let mut base64 = Vec::new();
    let mut is_inside = false;
    std::iter::from_fn(move || {
        loop {
            let line = lines.next()?.trim_ascii_end();
            if line.starts_with(b"-----BEGIN ") {
                is_inside = line == b"-----BEGIN CERTIFICATE-----";
                base64.clear();
            } else if is_inside && line == b"-----END CERTIFICATE-----" {
                is_inside = false;
                if let Ok(der) = BASE64_STANDARD.decode(&base64) {
                    return Some(CertificateDer::from(der));
                }
            } else if is_inside {
                base64.extend_from_slice(line);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::{ClientConnection, ServerConfig, ServerConnection};
    use std::path::Path;
    use testkit::Scratch;

    /// Returns the path of a file in tests/tls. `ca` signed `server` and `expired`; all certificates
    /// except `expired` are valid from the year 2000 to 9999.
    fn pem(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/tls")
            .join(name)
    }

    /// Connects a client that trusts `authorities` to a server with this certificate. Returns the
    /// client's error if it rejects the server.
    fn greeted(
        authorities: &Arc<Authorities>,
        certificate: &str,
        name: &str,
    ) -> Result<(), String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let chain = CertificateDer::pem_file_iter(pem(certificate)).unwrap();
        let key = PrivateKeyDer::from_pem_file(pem("server.key")).unwrap();
        let server = ServerConfig::builder().with_no_client_auth();
        let server = server.with_single_cert(chain.map(Result::unwrap).collect(), key);
        let mut server = ServerConnection::new(server.unwrap().into()).unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = ClientConnection::new(config(authorities.clone()).into(), name).unwrap();
        while client.is_handshaking() {
            let mut bytes = vec![];
            client.write_tls(&mut bytes).unwrap();
            server.read_tls(&mut &*bytes).unwrap();
            server.process_new_packets().unwrap();
            bytes.clear();
            server.write_tls(&mut bytes).unwrap();
            client.read_tls(&mut &*bytes).unwrap();
            client.process_new_packets().map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn of(file: Option<PathBuf>, folders: &[&Path]) -> Arc<Authorities> {
        let folders = folders.iter().map(|path| path.to_path_buf()).collect();
        Arc::new(Authorities::of(Places { file, folders }))
    }

    #[test]
    fn a_server_is_trusted_by_its_authority_alone() {
        let known = of(Some(pem("ca.pem")), &[]);
        assert_eq!(greeted(&known, "server.pem", "server.example"), Ok(()));
        assert_eq!(greeted(&known, "server.pem", "127.0.0.1"), Ok(()));
        let says = |authorities: &Arc<Authorities>, certificate: &str, name: &str, what: &str| {
            let refused = greeted(authorities, certificate, name).unwrap_err();
            assert!(refused.contains(what), "{certificate} {name}: {refused}");
        };
        says(&known, "server.pem", "other.example", "not valid for name");
        says(&known, "expired.pem", "server.example", "expired");
        let other = of(Some(pem("other.pem")), &[]);
        says(&other, "server.pem", "server.example", "UnknownIssuer");
    }

    #[test]
    fn the_folders_add_to_the_file_and_their_refusal_hides_no_other() {
        let folder = Scratch::new();
        let other = of(Some(pem("other.pem")), &[&folder]);
        std::fs::copy(pem("ca.pem"), folder.join("0a775a30.0")).unwrap();
        std::fs::write(folder.join("README"), "not a certificate").unwrap();
        // The file does not verify this server, so the folder is read.
        assert_eq!(greeted(&other, "server.pem", "server.example"), Ok(()));
        let refused = greeted(&other, "server.pem", "other.example").unwrap_err();
        assert!(refused.contains("not valid for name"), "{refused}");
        let turned = Scratch::new();
        std::fs::copy(pem("other.pem"), turned.join("other.pem")).unwrap();
        let known = of(Some(pem("ca.pem")), &[&turned]);
        let refused = greeted(&known, "server.pem", "other.example").unwrap_err();
        assert!(refused.contains("not valid for name"), "{refused}");
        let alone = of(None, &[&folder]);
        assert!(alone.missing.is_none());
        assert_eq!(greeted(&alone, "server.pem", "server.example"), Ok(()));
    }

    #[test]
    fn a_file_that_other_names_lead_to_is_read_once() {
        let folder = Scratch::new();
        let file = folder.join("ca.pem");
        std::fs::copy(pem("ca.pem"), &file).unwrap();
        for name in ["0a775a30.0", "again.pem"] {
            std::os::unix::fs::symlink(&file, folder.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("nowhere", folder.join("dangling.pem")).unwrap();
        let folders = [folder.to_path_buf()];
        assert_eq!(texts_in(&folders, HashSet::new()).len(), 1);
        let seen = HashSet::from([identity(&fs::metadata(&file).unwrap())]);
        assert_eq!(texts_in(&folders, seen).len(), 0);
    }

    #[test]
    fn what_no_authority_is_in_is_named() {
        let empty = Scratch::new();
        let (place, key) = (empty.display(), pem("server.key"));
        let absent =
            format!("{place}/no: No such file or directory (os error 2), {place} has none");
        for (file, folders, why) in [
            (Some("/dev/null".into()), &[][..], "/dev/null has none"),
            (
                Some(key.clone()),
                &[],
                &format!("{} has none", key.display()),
            ),
            (Some(empty.join("no")), &[&*empty], &absent),
            (None, &[], "there are none in the usual places"),
        ] {
            let none = of(file, folders);
            let missing = none.missing.clone().unwrap();
            assert_eq!(missing.0, why);
            let refused = greeted(&none, "server.pem", "server.example").unwrap_err();
            assert!(refused.contains(&missing.to_string()), "{refused}");
        }
    }

    #[test]
    fn the_certificates_of_a_text_are_those_of_another_reader() {
        let ca = std::fs::read_to_string(pem("ca.pem")).unwrap();
        let key = std::fs::read_to_string(pem("server.key")).unwrap();
        let inner = ca.lines().nth(1).unwrap();
        for text in [
            format!("# a comment\n\n{ca}more\n{key}{ca}"),
            ca.replace('\n', "\r\n"),
            ca.replace('\n', "\r"),
            ca.trim_end().to_owned(),
            ca.replace('\n', " \n"),
            // None of these is a trusted certificate.
            ca.replace("-----BEGIN", "# -----BEGIN"),
            ca.replace("-----BEGIN", " -----BEGIN"),
            ca.replace("CERTIFICATE", "TRUSTED CERTIFICATE"),
            ca.replace("CERTIFICATE", "CERTIFICATE REQUEST"),
            format!("{}{ca}", &key[..40]),
            ca.replace("-----END", "-----AND"),
            String::new(),
            "\u{feff}".to_owned(),
        ] {
            let read: Vec<_> = certificates(text.as_bytes()).collect();
            let other = CertificateDer::pem_slice_iter(text.as_bytes());
            assert_eq!(
                read,
                other.filter_map(Result::ok).collect::<Vec<_>>(),
                "{text}"
            );
        }
        // A damaged certificate does not affect the next one.
        let damaged = format!("{}{ca}", ca.replace(inner, "!!!"));
        assert_eq!(certificates(damaged.as_bytes()).count(), 1);
    }
}
