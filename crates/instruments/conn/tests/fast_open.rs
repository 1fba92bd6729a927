//! TCP Fast Open, in a network namespace of its own: beliefs about this kernel, and what we make of them.
//!
//! The test starts its own program again in new user and network namespaces, which needs no root.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::common::*;
use conn::{
    ClientPlan, ClientTransport, FastOpen, Outcome, Running, Server, ServerPlan, ServerRecord,
    ServerTransport, SynData, connect,
};
use lab_test::{Need, skip};
use tls::{Client, Group, Library, Version};

/// Set in the child.
const INSIDE: &str = "CONN_TEST_INSIDE_NAMESPACE";

#[test]
fn fast_open_in_a_namespace() {
    // SAFETY: these only ask the kernel.
    let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
    let maps = [
        (c"/proc/self/uid_map", format!("0 {uid} 1")),
        (c"/proc/self/setgroups", "deny".to_owned()),
        (c"/proc/self/gid_map", format!("0 {gid} 1")),
    ];
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "fast_open::inside", "--ignored", "--nocapture"]).env(INSIDE, "1");
    // SAFETY: between fork and exec only system calls are made: unshare, open, write, close.
    unsafe {
        child.pre_exec(move || {
            if libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            for (path, text) in &maps {
                let file = libc::open(path.as_ptr(), libc::O_WRONLY);
                libc::write(file, text.as_ptr().cast(), text.len());
                libc::close(file);
            }
            Ok(())
        });
    }
    match child.status() {
        Ok(status) => assert!(status.success(), "the test inside the namespace failed"),
        Err(error) => skip!(Need::Lab, "no user and network namespaces here: {error}"),
    }
}

#[test]
#[ignore = "fast_open_in_a_namespace runs it, in a namespace"]
fn inside() {
    assert!(std::env::var_os(INSIDE).is_some(), "run fast_open_in_a_namespace instead");
    if !loopback_up() {
        skip!(Need::Host, "this namespace gives no rights over its own loopback interface");
    }
    // 0x1: clients may; 0x2: servers may. Cookies are needed but where a socket option says otherwise.
    std::fs::write("/proc/sys/net/ipv4/tcp_fastopen", "3").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        data_rides_in_the_first_syn_without_a_cookie().await;
        a_cookie_is_got_once_and_used().await;
        early_data_rides_in_the_syn().await;
        a_client_hello_too_long_for_the_syn_is_sent_in_two_writes().await;
        a_server_without_fast_open_gets_the_data_again().await;
        a_closed_port_refuses_the_syn_with_data().await;
    });
}

/// The loopback interface, up and with Ethernet's MTU. `false` where a security module forbids it, as
/// Ubuntu 24.04's does in an ordinary user's namespace.
fn loopback_up() -> bool {
    // SAFETY: `request` is a whole ifreq that lives through the calls, and `socket` is a socket.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        if libc::ioctl(socket, libc::SIOCSIFFLAGS, &request) != 0 {
            return false;
        }
        request.ifr_ifru.ifru_mtu = 1500;
        assert_eq!(libc::ioctl(socket, libc::SIOCSIFMTU, &request), 0);
        libc::close(socket);
    }
    true
}

fn serve(fast_open: FastOpen, tls: Option<tls::Server>) -> Running {
    let plan = ServerPlan::new(ServerTransport::Tcp { fast_open, tls });
    Server::bind(loopback(), plan).unwrap().spawn()
}

fn plain(server: &Running, fast_open: FastOpen) -> ClientPlan {
    over(server, ClientTransport::Tcp { fast_open, tls: None })
}

/// TLS, the hello in the first SYN.
fn cookieless(server: &Running, client: &Client) -> ClientPlan {
    let tls = Some(client.clone());
    over(server, ClientTransport::Tcp { fast_open: FastOpen::Cookieless, tls })
}

fn over(server: &Running, transport: ClientTransport) -> ClientPlan {
    let new = ClientPlan::new(server.address(), transport);
    ClientPlan { timeout: PATIENCE, linger: PATIENCE, ..new }
}

async fn exchange(server: &Running, plan: ClientPlan) -> (Outcome, ServerRecord) {
    let outcome = connect(plan).await.unwrap();
    let record = server.log().wait_for(outcome.local, PATIENCE).await.expect("a record");
    assert_eq!(record.error, None);
    (outcome, record)
}

fn tls13(max_early_data: u32, groups: Vec<Group>) -> tls::Server {
    let config = server_config(Library::Rustls, Version::Tls13);
    tls::Server::new(&tls::ServerConfig { max_early_data, groups, ..config }).unwrap()
}

async fn data_rides_in_the_first_syn_without_a_cookie() {
    let server = serve(FastOpen::Cookieless, None);
    let (outcome, record) = exchange(&server, plain(&server, FastOpen::Cookieless)).await;
    let timeline = outcome.timeline;
    assert_eq!((outcome.syn_data, outcome.syn_bytes), (SynData::Acknowledged, 1));
    assert!(record.syn_data);
    // Ready at once, and the SYN-ACK came after the request went out.
    assert!(timeline.started <= timeline.ready && timeline.ready <= timeline.request_sent);
    assert!(timeline.request_sent <= timeline.connected);
    assert!(timeline.connected <= timeline.first_response_byte);
    assert_eq!((outcome.writes, outcome.partial_writes), (1, 0));

    let server = serve(FastOpen::Cookieless, Some(tls13(0, vec![Group::X25519])));
    let client = Client::new(&client_config(Library::Rustls, Version::Tls13)).unwrap();
    let plan = cookieless(&server, &client);
    let (outcome, record) = exchange(&server, plan).await;
    assert_eq!(outcome.syn_data, SynData::Acknowledged);
    assert_eq!(outcome.syn_bytes, outcome.facts.unwrap().client_hello_len);
    assert!(record.syn_data && outcome.timeline.hello_sent <= outcome.timeline.connected);
}

async fn a_cookie_is_got_once_and_used() {
    let server = serve(FastOpen::Cookie, None);
    let (first, record) = exchange(&server, plain(&server, FastOpen::Cookie)).await;
    assert_eq!((first.syn_data, record.syn_data), (SynData::NotSent, false));
    assert_in_order(&first.timeline);
    for _ in 0..3 {
        let (next, record) = exchange(&server, plain(&server, FastOpen::Cookie)).await;
        assert_eq!((next.syn_data, record.syn_data), (SynData::Acknowledged, true));
    }
    let (off, record) = exchange(&server, plain(&server, FastOpen::Off)).await;
    assert_eq!((off.syn_data, record.syn_data), (SynData::NotSent, false));
}

async fn early_data_rides_in_the_syn() {
    let server = serve(FastOpen::Cookieless, Some(tls13(1000, vec![Group::X25519])));
    let config = client_config(Library::Rustls, Version::Tls13);
    let client = Client::new(&tls::ClientConfig { early_data: true, ..config }).unwrap();
    let prime = ClientPlan { await_ticket: Some(PATIENCE), ..cookieless(&server, &client) };
    let (mut primed, _) = exchange(&server, prime).await;
    let ticket = primed.tickets.pop().unwrap();
    let plan =
        ClientPlan { ticket: Some(ticket), early_data: true, ..cookieless(&server, &client) };
    let (outcome, record) = exchange(&server, plan).await;
    assert!(outcome.early_data_accepted());
    assert_eq!((outcome.syn_data, outcome.partial_writes), (SynData::Acknowledged, 0));
    assert!(outcome.syn_bytes > outcome.facts.as_ref().unwrap().client_hello_len);
    assert!(record.early_request && record.syn_data);
    assert!(outcome.timeline.request_sent <= outcome.timeline.connected);
}

/// What this kernel puts into a SYN at MTU 1500: 1460 bytes less the 40 that TCP options may take.
const SYN_ROOM: usize = 1420;

/// A ClientHello with shares for X25519MLKEM768 (1216 bytes, draft-ietf-tls-ecdhe-mlkem) and X25519 does
/// not fit the SYN; the rest follows the SYN-ACK.
async fn a_client_hello_too_long_for_the_syn_is_sent_in_two_writes() {
    let groups = vec![Group::X25519MlKem768, Group::X25519];
    let server = serve(FastOpen::Cookieless, Some(tls13(0, groups.clone())));
    let config = client_config(Library::Rustls, Version::Tls13);
    let client = Client::new(&tls::ClientConfig { groups, key_shares: 2, ..config }).unwrap();
    let plan = cookieless(&server, &client);
    let (outcome, _) = exchange(&server, plan).await;
    let hello = outcome.facts.unwrap().client_hello_len;
    assert!(hello > SYN_ROOM, "a ClientHello of {hello} bytes");
    assert_eq!(outcome.syn_data, SynData::Acknowledged);
    assert_eq!((outcome.partial_writes, outcome.syn_bytes), (1, SYN_ROOM));
}

async fn a_server_without_fast_open_gets_the_data_again() {
    let server = serve(FastOpen::Off, None);
    let (outcome, record) = exchange(&server, plain(&server, FastOpen::Cookieless)).await;
    assert_eq!(outcome.syn_data, SynData::NotAcknowledged);
    assert_eq!(outcome.syn_bytes, 1);
    assert!(!record.syn_data);
}

/// With a deferred connect the refusal comes after the first write.
async fn a_closed_port_refuses_the_syn_with_data() {
    let listener = std::net::TcpListener::bind(loopback()).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let cookieless = ClientTransport::Tcp { fast_open: FastOpen::Cookieless, tls: None };
    let failure = connect(ClientPlan::new(address, cookieless)).await.unwrap_err();
    assert_eq!(failure.name(), "refused", "{failure}");
}
