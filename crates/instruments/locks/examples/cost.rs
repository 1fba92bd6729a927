//! Prints what locks cost on two cores of this machine: the C library's and the light ones.
//! usage: cargo run --release -p locks --example cost

use std::error::Error;
use std::process::Command;

use locks::{Object, Operation, contended_cost, cost};

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(name) = std::env::args().nth(1) {
        let operation = Operation::named(&name).ok_or("no such operation")?;
        println!("{}", serde_json::to_string(&cost::measure(operation)?)?);
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    println!("operation  locks    uncontended         handed over         contended  (ns)");
    for operation in Operation::ALL {
        for object in [None, Some(Object::Light)] {
            let host = Command::new(std::env::current_exe()?);
            let cost = contended_cost(operation, object, host, dir.path())?;
            let show =
                |e: stats::Estimate| format!("{:6.1} [{:.1}, {:.1}]", e.value, e.low, e.high);
            println!(
                "{:9}  {:7}  {:18}  {:18}  {}  rounds {} left out {}",
                operation.name(),
                object.map_or("pthread", Object::name),
                show(cost.uncontended),
                show(cost.handed_over),
                show(cost.contended),
                cost.rounds,
                cost.left_out
            );
        }
    }
    Ok(())
}
