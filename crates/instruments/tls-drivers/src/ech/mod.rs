//! Encrypted Client Hello (RFC 9849) between two libraries, each a driver's or one that is built in: the sizes of hellos
//! and whole visits, in memory. Each pair has a host process of its own.

mod endpoint;
mod parties;

use std::path::{Path, PathBuf};

use ::host::{Outlet, Worker};
use fault::Problem;
use serde::{Deserialize, Serialize};
use tls::ech::{Answer, Case, ClientLibrary, Connection, Offer, Visit, exchange, visit};

use self::parties::{Clients, Servers};
use crate::{DriverError, Group, function};

/// Who begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EchClient {
    /// A library that is built in.
    BuiltIn(ClientLibrary),
    /// The shared object of a driver.
    Driver(PathBuf),
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EchServer {
    /// AWS-LC, which is built in.
    BuiltIn,
    /// The shared object of a driver.
    Driver(PathBuf),
}

/// What a host is asked about a pair of libraries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchJob {
    /// Who begins.
    pub client: EchClient,
    /// Who answers.
    pub server: EchServer,
    /// Names to hide, one at least; visits are to the first.
    pub names: Vec<String>,
    /// The name that hellos show outside.
    pub public_name: String,
    /// Whether the sizes of hellos are wanted: they are the client's alone.
    pub hellos: bool,
    /// Whether the server has no certificate for the public name: then its rejection may count for nothing, or anybody
    /// on the path could take ECH away (RFC 9849 §6.1.6).
    pub stranger: bool,
}

/// Bytes of one client's hellos for one name, in TLS records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchHello {
    /// The one group, of which there is a key share.
    pub group: Group,
    /// The name that ECH hides.
    pub name: String,
    /// Without ECH.
    pub plain: usize,
    /// With a placeholder (GREASE).
    pub placeholder: usize,
    /// With ECH, sealed.
    pub ech: usize,
}

/// What came of a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchReply {
    /// The group of the visits: the hybrid one where both sides have it, else X25519.
    pub group: Group,
    /// Bytes of the ECHConfigList.
    pub config_bytes: usize,
    /// Sizes, if they were wanted.
    pub hellos: Vec<EchHello>,
    /// A visit for each case, or why there is none.
    pub visits: Vec<(Case, Result<Visit, String>)>,
}

/// Makes a pair's handshakes.
pub(crate) struct Ech;

impl Worker for Ech {
    const KIND: &'static str = "ech-drivers";
    type Job = EchJob;
    type Answer = EchReply;

    fn work(&self, job: EchJob, _: &mut Outlet<'_>) -> Result<EchReply, Problem> {
        Ok(work(&job)?)
    }
}

/// The objects of drivers, the server's first, for errors.
pub(crate) fn objects(job: &EchJob) -> (Option<&Path>, Option<&Path>) {
    let server = match &job.server {
        EchServer::BuiltIn => None,
        EchServer::Driver(object) => Some(object.as_path()),
    };
    let client = match &job.client {
        EchClient::BuiltIn(_) => None,
        EchClient::Driver(object) => Some(object.as_path()),
    };
    (server, client)
}

fn work(job: &EchJob) -> Result<EchReply, DriverError> {
    let Some(name) = job.names.first() else {
        return Err(DriverError::Unsupported { what: "no name is to be hidden".to_owned() });
    };
    let names: Vec<&str> = job.names.iter().map(String::as_str).collect();
    let public = (!job.stranger).then_some(job.public_name.as_str());
    let all: Vec<&str> = names.iter().copied().chain(public).collect();
    let identity = tls::Identity::generate(crate::Key::EcdsaP256, 1, &all)?;
    let clients = Clients::new(&job.client, &identity)?;
    let hybrid = |functions: u64| functions & function::POST_QUANTUM != 0;
    let servers = Servers::new(&job.server, &identity, &job.public_name)?;
    let group = if hybrid(clients.functions()) && hybrid(servers.functions()) {
        Group::X25519MlKem768
    } else {
        Group::X25519
    };
    let mut hellos = Vec::new();
    if job.hellos {
        let hybrid = hybrid(clients.functions()).then_some(Group::X25519MlKem768);
        for group in [Group::X25519].into_iter().chain(hybrid) {
            for name in &names {
                hellos.push(hello(&clients, group, name, servers.published())?);
            }
        }
    }
    let visits = Case::ALL.iter().map(|case| {
        let came = one_visit(&clients, &servers, *case, group, name, &job.public_name);
        (*case, came.map_err(|error| error.to_string()))
    });
    let (visits, config_bytes) = (visits.collect(), servers.published().len());
    Ok(EchReply { group, config_bytes, hellos, visits })
}

/// The sizes of a client's hellos; one that does not hide the name is an error.
fn hello(
    clients: &Clients,
    group: Group,
    name: &str,
    published: &[u8],
) -> Result<EchHello, DriverError> {
    let bytes = |offer: &Offer| -> Result<Vec<u8>, DriverError> {
        let mut hello = Vec::new();
        clients.start(group, name, offer)?.write_tls(&mut hello)?;
        Ok(hello)
    };
    let shows = |hello: &[u8]| hello.windows(name.len()).any(|part| part == name.as_bytes());
    let (plain, placeholder) = (bytes(&Offer::Nothing)?, bytes(&Offer::Placeholder)?);
    let ech = bytes(&Offer::Sealed(published.to_vec()))?;
    if !shows(&plain) || !shows(&placeholder) {
        return Err(DriverError::OnTheWire {
            shown: "no name",
            asked: "a name in a hello without ECH",
        });
    }
    if shows(&ech) {
        return Err(DriverError::OnTheWire { shown: "the name", asked: "a hello that hides it" });
    }
    let (plain, placeholder, ech) = (plain.len(), placeholder.len(), ech.len());
    Ok(EchHello { group, name: name.to_owned(), plain, placeholder, ech })
}

fn one_visit(
    clients: &Clients,
    servers: &Servers,
    case: Case,
    group: Group,
    name: &str,
    public_name: &str,
) -> Result<Visit, DriverError> {
    let mut is_first = true;
    visit(name, &case.offer(servers.published()), |offer| {
        let mut client = clients.start(group, name, offer)?;
        let mut server = servers.accept(case, group)?;
        let connection = exchange(&mut *client, &mut *server)?;
        judge(&connection, case, is_first, servers, (name, public_name))?;
        is_first = false;
        Ok(connection)
    })
}

/// Holds what the two sides say of a connection against each other, and against what has to come of the case.
fn judge(
    connection: &Connection,
    case: Case,
    is_first: bool,
    servers: &Servers,
    (name, public_name): (&str, &str),
) -> Result<(), DriverError> {
    let rejected = Answer::Rejected(match case {
        Case::NewKey => Some(servers.new_list().to_vec()),
        _ => None,
    });
    let (answer, opened, asked) = match (case, is_first) {
        (Case::Plain | Case::Placeholder, _) | (Case::Dropped, false) => {
            (Answer::NotOffered, false, name)
        }
        (Case::Accepted, _) | (Case::NewKey, false) => (Answer::Accepted, true, name),
        (Case::NewKey | Case::Dropped, true) => (rejected, false, public_name),
    };
    let wrong = |what: String| Err(DriverError::Failed { doing: "the handshake with ECH", what });
    if connection.answer != answer {
        let what =
            format!("the client says `{}` for `{}`", text(&connection.answer), text(&answer));
        return wrong(what);
    }
    if connection.opened != opened {
        let says = if opened { "did not open" } else { "opened" };
        return wrong(format!("the server says that it {says} the hello"));
    }
    match connection.server_name.as_deref() {
        Some(shown) if shown == asked => Ok(()),
        shown => {
            let shown = shown.unwrap_or("nothing");
            wrong(format!("the server was asked for {shown}, not {asked}"))
        }
    }
}

/// An answer in a line.
fn text(answer: &Answer) -> String {
    match answer {
        Answer::NotOffered => "no ECH".to_owned(),
        Answer::Accepted => "accepted".to_owned(),
        Answer::Rejected(None) => "rejected, nothing to retry with".to_owned(),
        Answer::Rejected(Some(list)) => {
            let bytes: Vec<String> =
                list.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            format!("rejected, retry with {} bytes: {} ...", list.len(), bytes.concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(client: ClientLibrary) -> EchJob {
        EchJob {
            client: EchClient::BuiltIn(client),
            server: EchServer::BuiltIn,
            names: vec!["a.test".to_owned(), "a-longer-name.test".to_owned()],
            public_name: "public.test".to_owned(),
            hellos: true,
            stranger: false,
        }
    }

    #[test]
    fn libraries_that_are_built_in_take_part_as_drivers_do() {
        for client in ClientLibrary::ALL {
            let reply = work(&job(*client)).unwrap();
            assert_eq!(reply.group, Group::X25519MlKem768, "{client}");
            assert_eq!(reply.hellos.len(), 4, "{client}");
            for hello in &reply.hellos {
                assert!(hello.ech > hello.plain && hello.placeholder > hello.plain, "{hello:?}");
            }
            for (case, came) in &reply.visits {
                let came = came.as_ref().unwrap_or_else(|error| panic!("{client} {case}: {error}"));
                let retries = matches!(case, Case::NewKey | Case::Dropped);
                let hidden = matches!(case, Case::Accepted | Case::NewKey);
                assert_eq!(came.connections, 1 + usize::from(retries), "{client} {case}");
                assert_eq!(came.quic_round_trips, came.connections, "{client} {case}");
                assert_eq!(came.hidden, hidden, "{client} {case}");
            }
            let text = serde_json::to_string(&reply).unwrap();
            assert_eq!(serde_json::from_str::<EchReply>(&text).unwrap(), reply);
            let none = EchJob { hellos: false, ..job(*client) };
            assert!(work(&none).unwrap().hellos.is_empty());
        }
    }

    #[test]
    fn a_rejection_by_a_stranger_is_an_error() {
        for client in ClientLibrary::ALL {
            let job = EchJob { stranger: true, hellos: false, ..job(*client) };
            for (case, came) in work(&job).unwrap().visits {
                let fails = matches!(case, Case::NewKey | Case::Dropped);
                assert_eq!(came.is_err(), fails, "{client} {case}: {came:?}");
            }
        }
    }

    #[test]
    fn what_is_no_name_and_a_driver_without_ech_are_errors() {
        let nothing = EchJob { names: Vec::new(), ..job(ClientLibrary::Rustls) };
        assert!(work(&nothing).unwrap_err().to_string().contains("no name"));
        let wrong = EchJob { public_name: "no name".to_owned(), ..job(ClientLibrary::Rustls) };
        assert!(work(&wrong).is_err());
        let folder = tempfile::tempdir().unwrap();
        let null = folder.path().join("null.so");
        std::fs::write(&null, crate::NULL).unwrap();
        let client =
            EchJob { client: EchClient::Driver(null.clone()), ..job(ClientLibrary::Rustls) };
        let server = EchJob { server: EchServer::Driver(null), ..job(ClientLibrary::Rustls) };
        for (job, side) in [(client, "client"), (server, "server")] {
            let error = work(&job).unwrap_err().to_string();
            assert!(error.contains(&format!("null: its driver's {side} has no ECH")), "{error}");
        }
    }

    #[test]
    fn a_library_that_says_what_is_not_so_is_found_out() {
        let identity = tls::Identity::generate(crate::Key::EcdsaP256, 1, &["a.test"]).unwrap();
        let servers = Servers::new(&EchServer::BuiltIn, &identity, "p.test").unwrap();
        let good = Connection {
            hello: 1,
            flights: Vec::new(),
            round_trips: 1,
            answer: Answer::Accepted,
            opened: true,
            server_name: Some("a.test".to_owned()),
        };
        let judged = |connection: &Connection, case, is_first| {
            judge(connection, case, is_first, &servers, ("a.test", "p.test"))
                .map_err(|error| error.to_string())
        };
        assert_eq!(judged(&good, Case::Accepted, true), Ok(()));
        let closed = Connection { opened: false, ..good.clone() };
        assert!(judged(&closed, Case::Accepted, true).unwrap_err().contains("did not open"));
        let shown = Connection { server_name: None, ..good.clone() };
        assert!(judged(&shown, Case::Accepted, true).unwrap_err().contains("asked for nothing"));
        assert!(judged(&good, Case::Placeholder, true).unwrap_err().contains("for `no ECH`"));
        let old = Answer::Rejected(Some(servers.published().to_vec()));
        let rejected = Connection {
            answer: old,
            opened: false,
            server_name: Some("p.test".to_owned()),
            ..good
        };
        // The configurations that it gave are the old ones.
        assert!(judged(&rejected, Case::NewKey, true).unwrap_err().contains("retry with"));
        let right = Answer::Rejected(Some(servers.new_list().to_vec()));
        let rejected = Connection { answer: right, ..rejected };
        assert_eq!(judged(&rejected, Case::NewKey, true), Ok(()));
        assert!(judged(&rejected, Case::Dropped, true).is_err());
    }
}
