//! Entering the lab as the environment asks, and the lab of two nodes that most tests use.

use lab::{Backend, EnterOptions, Lab, LabOptions, Node};
use lab_test::TestResult;

/// Enters the lab; in a scenario only.
pub fn enter() -> TestResult {
    let keep = std::env::var_os("LAB_TEST_KEEP_RIGHTS").is_some();
    lab::enter(&EnterOptions::new().keep_rights(keep))?;
    Ok(())
}

/// The backend that the environment asks for, veth if none.
pub fn backend() -> Backend {
    std::env::var("LAB_TEST_BACKEND").map_or(Backend::Veth, |name| name.parse().unwrap())
}

pub fn options() -> LabOptions {
    LabOptions { seed: 7, backend: backend(), ..LabOptions::default() }
}

/// Enters the lab and joins a client and a server.
pub fn pair(rtt: &str) -> TestResult<(Lab, Node, Node, lab::Link)> {
    enter()?;
    let mut lab = Lab::new(options())?;
    let client = lab.add_node("client")?;
    let server = lab.add_node("server")?;
    let path = linkmodel::Path::symmetric(rtt.parse()?);
    let link = lab.connect(&client, &server, &path)?;
    Ok((lab, client, server, link))
}
