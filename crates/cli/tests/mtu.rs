//! `wiretax link --mtu-table`: computed, as text and as JSON, and nothing written.

use crate::support::{data, files_below, run, talk};

#[test]
fn the_table_is_computed_in_either_form() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["link", "--mtu-table"]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    let text = data(&output);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for part in ["1420", "1440", "1446", "1450", "1468", "1478", "ip link set dev wg0 mtu 1440"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let arguments =
        ["link", "--mtu-table", "--pppoe", "--protocol", "wireguard", "--outer", "ipv6", "--json"];
    let output = run(folder.path(), &arguments);
    let table: serde_json::Value = serde_json::from_str(&data(&output)).unwrap();
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(1));
    let row = &table["rows"][0];
    assert_eq!(
        (&row["mtu"], &row["mss_ipv4"], &row["mss_ipv6"]),
        (&1412.into(), &1372.into(), &1352.into())
    );
    assert_eq!(row["layers"], serde_json::json!(["wireguard", "udp", "ipv6", "pppoe"]));
    assert_eq!(files_below(folder.path()), Vec::<String>::new());
}

#[test]
fn what_makes_no_table_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, says) in [
        (&["link", "--mtu-table", "--load", "1000pps"][..], "--load changes nothing"),
        (&["link", "--mtu-table", "--path-mtu", "100"], "576"),
        (&["link", "--path-mtu", "1500"], "--mtu-table"),
        (&["link", "--mtu-table", "--protocol", "macsec", "--pppoe"], "does not fit PPPoE"),
        (&["link", "--mtu-table", "--protocol", "openvpn"], "wireguard"),
        (&["link", "--protocol", "macsec", "--pppoe"], "PPPoE carries IP packets"),
    ] {
        let output = run(folder.path(), arguments);
        let text = talk(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(says), "{arguments:?}: {text}");
    }
}
