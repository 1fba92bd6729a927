//! Programs that know nothing of SSLmTCP talk with the listener by ordinary TCP and TLS.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use lab::Node;
use tempfile::TempDir;
use tls::{Identity, KeyExchange, Library, Server, ServerConfig, Version};

use super::service::{BODY, Keys, NAME, Site, keys, request};
use lab_test::{Need, Test, TestResult, skip};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("curl_is_served_tls13", curl13),
        Test::new("curl_is_served_tls12", curl12),
        Test::new("s_client_is_served_tls13", s_client13),
        Test::new("s_client_is_served_tls12", s_client12),
    ]
}

/// A site that serves, with the root certificate in a file.
struct Served {
    site: Site,
    _folder: TempDir,
    root: PathBuf,
}

fn served(version: Version, key_exchange: KeyExchange) -> TestResult<Served> {
    let site = Site::new()?;
    let Keys { identity, server, .. } = keys(version, None)?;
    let server = match key_exchange {
        KeyExchange::Rsa => server,
        KeyExchange::Ecdhe => ecdhe(version, &identity)?,
    };
    site.serve(server)?;
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("root.pem");
    std::fs::write(&root, identity.root_pem()?)?;
    Ok(Served { site, _folder: folder, root })
}

/// Programs of today do not offer RSA key exchange everywhere.
fn ecdhe(version: Version, identity: &std::sync::Arc<Identity>) -> TestResult<Server> {
    let mut config = ServerConfig::new(Library::Rustls, std::sync::Arc::clone(identity));
    config.versions = vec![version];
    Ok(Server::new(&config)?)
}

/// Runs a program on a node with this standard input.
fn run(node: &Node, mut command: Command, input: &'static [u8]) -> TestResult<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = node.run(move || {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        // Dropped with the child, so that the program keeps its connection until the server ends it.
        let mut stdin = child.stdin.take().ok_or_else(|| io::Error::other("no standard input"))?;
        stdin.write_all(input)?;
        child.wait_with_output().inspect(|_| drop(stdin))
    })?;
    match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            skip(Need::of_program(&name), format!("{name} is not installed"))
        }
        other => Ok(other?),
    }
}

fn curl(version: Version, key_exchange: KeyExchange, flags: &[&str]) -> TestResult {
    let served = served(version, key_exchange)?;
    let (port, ip) = (served.site.to.port(), served.site.to.ip());
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "15", "--noproxy", "*"]).args(flags);
    command.arg("--cacert").arg(&served.root);
    command.args(["--resolve", &format!("{NAME}:{port}:{ip}")]);
    command.arg(format!("https://{NAME}:{port}/"));
    let output = run(&served.site.pair.client, command, b"")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), BODY);
    Ok(())
}

fn curl13() -> TestResult {
    curl(Version::Tls13, KeyExchange::Ecdhe, &["--tlsv1.3"])
}

fn curl12() -> TestResult {
    curl(Version::Tls12, KeyExchange::Ecdhe, &["--tls-max", "1.2"])
}

fn s_client(version: Version, key_exchange: KeyExchange, flags: &[&str]) -> TestResult {
    let served = served(version, key_exchange)?;
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", &served.site.to.to_string(), "-servername", NAME]);
    command.args(["-verify_return_error", "-verify_hostname", NAME, "-ign_eof"]).args(flags);
    command.arg("-CAfile").arg(&served.root);
    let output = run(&served.site.pair.client, command, request())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}\n{text}", output.status);
    assert!(text.contains("Verify return code: 0 (ok)"), "{text}");
    assert!(text.contains(BODY), "{text}");
    Ok(())
}

fn s_client13() -> TestResult {
    s_client(Version::Tls13, KeyExchange::Ecdhe, &["-tls1_3"])
}

// With RSA key exchange, as the SSLmTCP paper has it.
fn s_client12() -> TestResult {
    s_client(Version::Tls12, KeyExchange::Rsa, &["-tls1_2", "-cipher", "AES128-GCM-SHA256"])
}
