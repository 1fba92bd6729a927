//! The command line of `wiretax guest`.

use clap::{Args, Subcommand};
use guest::Part;

use crate::exit::{Exit, epilogue};
use crate::options::JsonArg;
use crate::value::value;

/// What the exit status means.
const MEANINGS: [(Exit, &str); 5] = [
    (Exit::Done, "done"),
    (Exit::Usage, "the command line is wrong"),
    (
        Exit::Machine,
        "this machine cannot do it: something is missing, cannot be fetched or does not start",
    ),
    (Exit::Measurement, "the guest did not come up"),
    (Exit::Interrupted, "interrupted: what was fetched is kept"),
];

/// `wiretax guest`.
#[derive(Debug, Args)]
#[command(after_help = epilogue("Examples:
  wiretax guest fetch                      once: QEMU, Debian's kernel, programs
  wiretax guest fetch --with full-kernel   the kernel with Wi-Fi, too
  wiretax guest fetch --with daemons       that, and access points, DHCP and IKE
  wiretax guest check                      what is there, and does it start?
  wiretax handshake --clock virtual        then: measure in it

A guest is a machine in QEMU with Debian's stock kernel and one processor, on which an instruction
takes a nanosecond and idle time is skipped: measurements in it repeat exactly, on every machine.
Packages are unpacked into ~/.cache/wiretax/guest (XDG_CACHE_HOME moves it), without root;
nothing is installed. QEMU and other programs that this machine already has are used.", &MEANINGS))]
pub struct GuestArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: GuestCommand,
}

/// What to do with guests.
#[derive(Debug, Subcommand)]
pub enum GuestCommand {
    /// Fetch what a guest needs: some 50 MB of Debian packages, once
    Fetch {
        /// Fetch another part, too: full-kernel, daemons
        #[arg(long = "with", value_name = "PART", value_parser = value::<Part>)]
        with: Option<Part>,
        /// Fetch again, for newer packages
        #[arg(long)]
        again: bool,
    },
    /// Check what is there, start a guest, and show how long that takes
    Check {
        /// Start this kernel: cloud-kernel, full-kernel
        #[arg(long, value_name = "PART", default_value = "cloud-kernel", value_parser = value::<Part>)]
        kernel: Part,
        #[command(flatten)]
        json: JsonArg,
    },
}
