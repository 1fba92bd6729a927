//! A job of the crate `host`, done in a machine of its own: Debian's stock kernel in QEMU, in virtual time.
//!
//! ```no_run
//! # struct Adder;
//! # impl host::Worker for Adder {
//! #     const KIND: &'static str = "add";
//! #     type Job = (u32, u32);
//! #     type Answer = u32;
//! #     fn work(&self, job: (u32, u32), _: &mut host::Outlet<'_>) -> Result<u32, fault::Problem> { Ok(job.0 + job.1) }
//! # }
//! # fn workers() -> host::Registry { host::Registry::new().with(Adder) }
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     guest::init_if_guest(workers); // first thing in main: the guest runs this same program
//!     let launch = guest::Guest::find()?.launch()?;
//!     let host = host::Host::new(host::Place::Process(launch));
//!     let limit = std::time::Duration::from_secs(60);
//!     let answer = host.run::<Adder>("a sum", &(1, 2), limit, |_| {})?;
//!     # let _ = answer;
//!     Ok(())
//! }
//! ```
//!
//! The machine has one processor, which takes a nanosecond for an instruction, whatever the instruction; a
//! time in which nothing is to be done is skipped. What is measured in it is instruction cost: it knows no
//! cache and no pipeline. Nothing that the machine reads comes from outside but the job, which is there
//! before it starts: the clock of the day begins at a fixed date, random numbers come from a seed. The same
//! job so takes the same virtual time again.
//!
//! The job comes in and its answer goes out by the ports of three small devices (`ports`), which need no
//! driver. The machine stands still while what it says is taken.
//!
//! [`Cache::fetch`] gets QEMU, kernels and programs as Debian packages once, without being root.

mod boot;
mod cache;
mod cpio;
mod elf;
mod error;
mod fetch;
mod image;
mod inside;
mod libraries;
mod machine;
mod modules;

pub use boot::Booted;
pub use cache::{Cache, Package, Part};
pub use error::Error;
pub use fetch::Step;
pub use inside::init_if_guest;
pub use machine::{Guest, LAB_MODULES, LINK_MODULES, RADIO_MODULES, Versions};
