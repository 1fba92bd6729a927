//! scratch
use load::*;
fn main() {
    let mut a = std::env::args().skip(1);
    let addr: std::net::SocketAddr = a.next().unwrap().parse().unwrap();
    let mut o = Options::new(addr, "test.example");
    o.trust = tls::Trust::Insecure;
    let mut json = false;
    while let Some(x) = a.next() {
        let mut v = || a.next().unwrap();
        match x.as_str() {
            "-c" => o.connections = v().parse().unwrap(),
            "-t" => o.threads = v().parse().unwrap(),
            "-d" => o.duration = Some(std::time::Duration::from_secs_f64(v().parse().unwrap())),
            "-g" => o.get("test.example", &v(), 1),
            "-r" => o.resume = v().parse().unwrap(),
            "-R" => o.pace = Pace::Open { rate: v().parse().unwrap() },
            "-ca" => { let pem = std::fs::read(v()).unwrap(); use rustls_pki_types::pem::PemObject; o.trust = tls::Trust::Roots(rustls_pki_types::CertificateDer::pem_slice_iter(&pem).map(|c| c.unwrap().to_vec()).collect()) }
            "-close" => o.close = match v().as_str() { "rst" => Close::Reset, "notify" => Close::Notify, "server" => Close::Server, _ => Close::Fin },
            "-j" => json = true,
            _ => panic!("{x}"),
        }
    }
    let r = run(&o, &Control::default()).unwrap();
    if json { println!("{}", serde_json::to_string_pretty(&r).unwrap()); }
    println!("{:.0}/s completed {} failed {} full {} resumed {} cpu {:.1} us/conn busy {:.2} p50 {:.0} tcp {:.0} tls {:.0} fb {:.0} {:?} {:?}", r.connections_per_second, r.completed, r.failed, r.handshakes.full, r.handshakes.resumed, r.cpu.us_per_connection.unwrap_or(0.0), r.cpu.busy, r.latency.total.p50_us, r.latency.tcp_connect.p50_us, r.latency.tls.p50_us, r.latency.first_byte.p50_us, r.failures, r.agreed);
}
