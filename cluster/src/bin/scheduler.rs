//! Ballista's scheduler on a port of loopback.
//! usage: scheduler PORT

use std::error::Error;
use std::sync::Arc;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use cluster::{LOOPBACK, at, end_with_parent, runtime};

fn main() -> Result<(), Box<dyn Error>> {
    end_with_parent()?;
    let port = std::env::args().nth(1).ok_or("usage: scheduler PORT")?.parse()?;
    let config = SchedulerConfig {
        bind_host: LOOPBACK.to_string(),
        external_host: LOOPBACK.to_string(),
        bind_port: port,
        // Executors ask for work: they need no port on which they are given it.
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        ..SchedulerConfig::default()
    };
    runtime()?.block_on(async {
        let cluster = BallistaCluster::new_from_config(&config).await?;
        start_server(cluster, at(port), Arc::new(config)).await?;
        Ok(())
    })
}
