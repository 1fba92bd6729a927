//! ECH between drivers and with what is built in.

use std::path::{Path, PathBuf};

use tls::ech::{Case, ClientLibrary};
use tls_drivers::{EchClient, EchJob, EchServer, HostError, Supervisor, function};

use super::object;

fn job(client: EchClient, server: EchServer) -> EchJob {
    EchJob {
        client,
        server,
        names: vec!["a.test".to_owned(), "a-rather-longer-name-than-the-other.test".to_owned()],
        public_name: "public.test".to_owned(),
        hellos: true,
        stranger: false,
    }
}

/// The harness's own driver, which says that it has ECH.
fn pretender(folder: &Path, name: &str, more: &str, changes: &str) -> PathBuf {
    let drivers = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../drivers");
    let text = format!(
        "#include <stdlib.h>\n#include <unistd.h>\n#include \"{drivers}/shim/null.c\"\n\
         static uint64_t many(void) {{ return functions() | WT_ECH_CLIENT | WT_ECH_SERVER; }}\n{more}\n\
         const struct wt_driver *wiretax_driver(void) {{\n\
         static struct wt_driver changed; changed = driver; changed.functions = many; {changes}\n\
         return &changed; }}"
    );
    object(folder, name, &text)
}

/// A library that crashes is named, and takes nothing with it.
pub fn crashes(supervisor: &Supervisor, folder: &Path) {
    let more = "static int dies(wt_conn *conn) { (void)conn; abort(); }";
    let object = pretender(folder, "dies", more, "changed.handshake = dies;");
    let job = job(EchClient::Driver(object), EchServer::BuiltIn);
    let error = supervisor.ech(&job).expect_err("it dies");
    assert!(matches!(error, HostError::Crashed { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("a built-in library with dies: ") && said.contains("signal 6"), "{said}");
}

/// One that says that it has ECH and has none: its hello shows no name, and no server reads it.
pub fn pretends(supervisor: &Supervisor, folder: &Path) {
    let object = pretender(folder, "pretends", "", "");
    let wanted = job(EchClient::Driver(object.clone()), EchServer::BuiltIn);
    let error = supervisor.ech(&wanted).expect_err("it shows").to_string();
    assert!(error.contains("no name"), "{error}");
    let quiet = EchJob { hellos: false, ..wanted };
    let server = EchServer::Driver(object);
    let client = EchClient::BuiltIn(ClientLibrary::Rustls);
    for job in [quiet.clone(), EchJob { client, server, ..quiet }] {
        let reply = supervisor.ech(&job).expect("it answers");
        assert_eq!(reply.visits.len(), Case::ALL.len());
        assert!(reply.visits.iter().all(|(_, came)| came.is_err()), "{reply:?}");
    }
}

/// A client that finishes whatever became of ECH (RFC 9849 §6.1.6).
pub fn goes_on(supervisor: &Supervisor, folder: &Path) {
    let more = "static int told(wt_conn *conn, struct wt_facts *reported) {\n\
                int done = facts(conn, reported); reported->ech = WT_ECH_REJECTED; return done; }";
    let object = pretender(folder, "goes_on", more, "changed.facts = told;");
    let pair = job(EchClient::Driver(object.clone()), EchServer::Driver(object));
    let reply = supervisor.ech(&EchJob { hellos: false, ..pair }).expect("it answers");
    for (case, came) in reply.visits {
        let error = came.expect_err("it is found out");
        assert!(error.contains("finished although ECH was rejected"), "{case}: {error}");
    }
}

/// All that have ECH, each with each and with what is built in; the number of failures. How a pair is judged stands
/// with the job.
pub fn all(supervisor: &Supervisor, built: &[(String, PathBuf)]) -> u32 {
    let mut clients: Vec<(String, EchClient)> = ClientLibrary::ALL
        .iter()
        .map(|library| (format!("built-in {library}"), EchClient::BuiltIn(*library)))
        .collect();
    let mut servers = vec![("built-in aws-lc".to_owned(), EchServer::BuiltIn)];
    for (name, object) in built {
        let functions = supervisor.describe(object).map_or(0, |described| described.functions);
        if functions & function::ECH_CLIENT != 0 {
            clients.push((name.clone(), EchClient::Driver(object.clone())));
        }
        if functions & function::ECH_SERVER != 0 {
            servers.push((name.clone(), EchServer::Driver(object.clone())));
        }
    }
    let mut failures = 0;
    for (client_name, client) in &clients {
        for (server_name, server) in &servers {
            failures += pair(supervisor, &job(client.clone(), server.clone()), |line| {
                println!("ECH, {client_name} to {server_name}: {line}");
            });
        }
    }
    failures + strangers(supervisor, &clients)
}

fn pair(supervisor: &Supervisor, job: &EchJob, say: impl Fn(String)) -> u32 {
    let reply = match supervisor.ech(job) {
        Ok(reply) => reply,
        Err(error) => {
            say(error.to_string());
            return 1;
        }
    };
    let mut failures = 0;
    let mut marks = String::new();
    for (case, came) in &reply.visits {
        let retries = matches!(case, Case::NewKey | Case::Dropped);
        let hidden = matches!(case, Case::Accepted | Case::NewKey);
        match came {
            Ok(came) => {
                let connections = 1 + usize::from(retries);
                let is = (came.connections, came.quic_round_trips, came.hidden);
                if is == (connections, connections, hidden) {
                    marks.push('.');
                    continue;
                }
                say(format!("{case}: {came:?}"));
            }
            Err(error) => say(format!("{case}: {error}")),
        }
        marks.push('!');
        failures += 1;
    }
    let sizes: Vec<String> = reply
        .hellos
        .iter()
        .map(|hello| format!("{} {} {} {}", hello.group, hello.plain, hello.placeholder, hello.ech))
        .collect();
    say(format!("{marks} {}", sizes.join(", ")));
    // A name does not show by its length.
    let long = reply.hellos.chunks(job.names.len());
    for sizes in long.filter(|sizes| sizes.iter().any(|hello| hello.ech != sizes[0].ech)) {
        say(format!("the hello's length tells the name's: {sizes:?}"));
        failures += 1;
    }
    failures
}

/// A rejection from a server that is not who the public name says is an error, with every client.
fn strangers(supervisor: &Supervisor, clients: &[(String, EchClient)]) -> u32 {
    let mut failures = 0;
    for (name, client) in clients {
        let job =
            EchJob { stranger: true, hellos: false, ..job(client.clone(), EchServer::BuiltIn) };
        let reply = supervisor.ech(&job).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (case, came) in reply.visits {
            let fails = matches!(case, Case::NewKey | Case::Dropped);
            // Each library has its own words for it.
            let certificate = |why: &String| why.to_lowercase().contains("certificate");
            let is_right = if fails { came.as_ref().is_err_and(certificate) } else { came.is_ok() };
            if !is_right {
                println!("ECH, {name} to a stranger, {case}: {came:?}");
                failures += 1;
            }
        }
    }
    failures
}
