//! The gateway between Debian's curl, openssl and nginx, over emulated links; and how it ends.

mod carry;
mod ending;
mod peers;
mod redirect;
mod refusals;
mod rounds;
mod silent;
mod survey;
mod world;

use lab_test::Test;

pub fn tests() -> Vec<Test> {
    [
        refusals::tests(),
        carry::tests(),
        peers::tests(),
        redirect::tests(),
        silent::tests(),
        ending::tests(),
        survey::tests(),
    ]
    .concat()
}
