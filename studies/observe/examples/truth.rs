//! The generator of truth at its quick scale, and what comes of it: `cargo run --example truth`.

use observe_study::truth::{self, Plan};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    lab::enter(&lab::EnterOptions::new())?;
    let plan = Plan::quick(lab::LabOptions { seed: 1, ..lab::LabOptions::default() });
    let mut progress = |step: &str, done, total| eprintln!("{step}: {done} of {total}");
    let truth = truth::run(&plan, &mut progress, &|| false)?;
    println!("{}", truth.findings.text(120));
    println!("{:#?}", truth.agreement);
    Ok(())
}
