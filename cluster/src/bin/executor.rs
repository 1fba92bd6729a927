//! Ballista's executor on ports of loopback. It asks the scheduler for work.
//! usage: executor PORT SCHEDULER_PORT FOLDER

use std::error::Error;
use std::sync::Arc;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use cluster::{LOOPBACK, end_with_parent, runtime};

fn main() -> Result<(), Box<dyn Error>> {
    end_with_parent()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, scheduler, folder] = &arguments[..] else {
        return Err("usage: executor PORT SCHEDULER_PORT FOLDER".into());
    };
    let config = ExecutorProcessConfig {
        bind_host: LOOPBACK.to_string(),
        external_host: Some(LOOPBACK.to_string()),
        port: port.parse()?,
        scheduler_host: LOOPBACK.to_string(),
        scheduler_port: scheduler.parse()?,
        scheduler_connect_timeout_seconds: 60,
        concurrent_tasks: 1,
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        work_dir: Some(folder.clone()),
        ..ExecutorProcessConfig::default()
    };
    runtime()?.block_on(start_executor_process(Arc::new(config)))?;
    Ok(())
}
