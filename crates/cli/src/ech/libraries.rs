//! The same by the libraries of built drivers: each as client and as server, with all others.

use std::path::PathBuf;

use fault::{Fault, Problem};
use serde::Serialize;
use tls::ech::{Case, ClientLibrary};
use tls_drivers::{
    Catalog, Driver, EchClient, EchJob, EchReply, EchServer, Folders, Supervisor, function,
};

use super::EchArgs;
use super::count::{Counts, Hello, Size, Visited};
use crate::diagnostics::Diagnostics;
use crate::interrupt::Interrupt;

/// Stands for all drivers that are built and have ECH.
const BUILT: &str = "built";

/// A library of a driver that has ECH.
#[derive(Debug, Clone, Serialize)]
pub struct Library {
    /// The driver's name.
    pub name: String,
    /// Its version, as the library says it.
    pub version: String,
    #[serde(skip)]
    object: PathBuf,
    #[serde(skip)]
    functions: u64,
}

impl Library {
    /// The library of a driver; `None` if it has no ECH.
    fn of(driver: &Driver, supervisor: &Supervisor) -> Result<Option<Library>, Problem> {
        let Some(object) = driver.object() else {
            let what = format!("the library `{}` is not built", driver.name);
            let remedy = format!("`wiretax drivers build {}` builds it", driver.name);
            return Err(Problem::new(Fault::Machine, what).with_remedy(remedy));
        };
        let described = supervisor.describe(object)?;
        let has_ech = described.functions & (function::ECH_CLIENT | function::ECH_SERVER) != 0;
        Ok(has_ech.then(|| Library {
            name: driver.name.clone(),
            version: described.version,
            object: object.to_path_buf(),
            functions: described.functions,
        }))
    }
}

/// A visit that did not come to its end, or contradicts itself.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// The client's library.
    pub library: String,
    /// The server's library.
    pub server: String,
    /// What was to happen to ECH.
    pub case: Case,
    /// What went wrong.
    pub why: String,
}

/// What all pairs came to.
pub struct Pairs {
    /// Sizes and visits, with those of the built-in libraries.
    pub counts: Counts,
    /// What did not work.
    pub failures: Vec<Failure>,
    /// The libraries of drivers.
    pub libraries: Vec<Library>,
}

/// Lets every client meet every server; `None` if it was interrupted.
pub fn pairs(args: &EchArgs, diagnostics: &Diagnostics) -> Result<Option<Pairs>, Problem> {
    crate::drivers::say_sources(args.drivers.as_deref(), diagnostics)?;
    let catalog = Catalog::read(&Folders::find(args.drivers.as_deref())?)?;
    let supervisor = crate::drivers::supervisor()?;
    let interrupt = Interrupt::listen()?;
    let stop = interrupt.clone();
    let supervisor = supervisor.stopping_when(move || stop.came());
    let made = meet(args, &catalog, &supervisor, diagnostics);
    if interrupt.came() { Ok(None) } else { made.map(Some) }
}

fn meet(
    args: &EchArgs,
    catalog: &Catalog,
    supervisor: &Supervisor,
    diagnostics: &Diagnostics,
) -> Result<Pairs, Problem> {
    let libraries = chosen(&args.library, catalog, supervisor)?;
    let with = |bit: u64| libraries.iter().filter(move |library| library.functions & bit != 0);
    let mut clients: Vec<(String, EchClient)> = ClientLibrary::ALL
        .iter()
        .map(|library| (library.to_string(), EchClient::BuiltIn(*library)))
        .collect();
    clients.extend(
        with(function::ECH_CLIENT)
            .map(|library| (library.name.clone(), EchClient::Driver(library.object.clone()))),
    );
    let mut servers = vec![(ClientLibrary::AwsLc.to_string(), EchServer::BuiltIn)];
    servers.extend(
        with(function::ECH_SERVER)
            .map(|library| (library.name.clone(), EchServer::Driver(library.object.clone()))),
    );
    let counts = Counts { config_bytes: 0, hellos: Vec::new(), visits: Vec::new() };
    let mut pairs = Pairs { counts, failures: Vec::new(), libraries };
    let mut progress = diagnostics.progress();
    for (client_name, client) in &clients {
        for (at, (server_name, server)) in servers.iter().enumerate() {
            progress.show_without_end(&format!("handshakes of {client_name} with {server_name}"));
            let job = EchJob {
                client: client.clone(),
                server: server.clone(),
                names: args.name.clone(),
                public_name: args.public_name.clone(),
                hellos: at == 0,
                stranger: false,
            };
            let reply = supervisor.ech(&job)?;
            pairs.add(client_name, server_name, reply, args);
        }
    }
    progress.finish();
    Ok(pairs)
}

impl Pairs {
    fn add(&mut self, client: &str, server: &str, reply: EchReply, args: &EchArgs) {
        self.counts.config_bytes = reply.config_bytes;
        self.counts.hellos.extend(reply.hellos.into_iter().map(|hello| Hello {
            library: client.to_owned(),
            groups: vec![hello.group],
            name: hello.name,
            plain: Size::in_records(hello.plain, args),
            placeholder: Size::in_records(hello.placeholder, args),
            ech: Size::in_records(hello.ech, args),
        }));
        let (library, server) = (client.to_owned(), server.to_owned());
        for (case, came) in reply.visits {
            let (library, server) = (library.clone(), server.clone());
            match came {
                Ok(counts) => {
                    let server = Some(server);
                    self.counts.visits.push(Visited { library, server, case, counts });
                }
                Err(why) => self.failures.push(Failure { library, server, case, why }),
            }
        }
    }
}

/// The libraries of these names, each once.
fn chosen(
    names: &[String],
    catalog: &Catalog,
    supervisor: &Supervisor,
) -> Result<Vec<Library>, Problem> {
    let given: Vec<&str> = names.iter().map(String::as_str).filter(|name| *name != BUILT).collect();
    let named = catalog.select(&given).map_err(|error| {
        Problem::new(Fault::Caller, error.to_string()).with_remedy(
            "`wiretax drivers list` has the names, `wiretax drivers build NAME` builds one",
        )
    })?;
    let mut libraries: Vec<Library> = Vec::new();
    for driver in named {
        let Some(library) = Library::of(&driver, supervisor)? else {
            let what = format!("the driver of `{}` has no ECH", driver.name);
            let remedy = "openssl-4.0.3, boringssl and awslc-5.12.0 have it";
            return Err(Problem::new(Fault::Caller, what).with_remedy(remedy));
        };
        libraries.push(library);
    }
    if names.iter().any(|name| name == BUILT) {
        for driver in catalog.drivers().iter().filter(|driver| driver.object().is_some()) {
            if libraries.iter().all(|library| library.name != driver.name) {
                libraries.extend(Library::of(driver, supervisor)?);
            }
        }
    }
    if libraries.is_empty() {
        let remedy = "`wiretax drivers build openssl-4.0.3 boringssl awslc-5.12.0` builds some";
        let what = "no library with ECH is built";
        return Err(Problem::new(Fault::Machine, what).with_remedy(remedy));
    }
    Ok(libraries)
}
