//! What enters the lab: paths out of our engine and of the kernel's features, and our planes against the kernel's.

mod judges;
mod own;

use std::process::ExitCode;

use lab_test::Test;

fn main() -> ExitCode {
    let judges = [
        Test::inside("what_a_kernel_lacks_is_found_before_anything_stands", judges::lacking),
        Test::inside("every_path_carries_frames_of_the_computed_length", judges::sizes),
        Test::inside("our_nodes_and_the_kernels_understand_each_other", judges::peers),
        Test::inside("what_is_forged_or_replayed_goes_nowhere", judges::forged),
        Test::inside("esp_with_extended_numbers_goes_on_beyond_their_lower_half", judges::extended),
        Test::inside("macsec_goes_on_with_the_next_key", judges::rekey),
        Test::inside("wireguard_takes_our_transport_data", judges::wireguard),
        Test::inside("wpa_supplicant_agrees_on_keys_with_us", judges::key_agreement),
    ];
    lab_test::main(&[&judges[..], &own::tests()].concat())
}
