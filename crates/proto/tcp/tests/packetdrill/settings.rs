//! Settings of scripts: options, kernel parameters, and what socket options and expected SYNs tell of the endpoint.

use std::time::Duration;

use tcp::{Config, Congestion, KeepAlive};

use super::packet::{Options, Protocol};
use super::script::{Call, Script, What, parse_number};
use super::verdict::Verdict;

/// The endpoint and the player, as a script wants them.
#[derive(Debug)]
pub struct Settings {
    pub config: Config,
    pub ipv6: bool,
    pub tolerance: Duration,
}

impl Settings {
    /// The settings of a script, or the reason why they are not to be had.
    pub fn of(script: &Script) -> Result<Settings, Verdict> {
        let mut settings =
            Settings { config: linux(), ipv6: false, tolerance: Duration::from_millis(4) };
        let refuse = |line, reason| Verdict::NotApplicable { line, reason };
        for (name, value) in &script.options {
            settings.option(name, value).map_err(|reason| refuse(1, reason))?;
        }
        for text in &script.setup {
            shell(text, &mut settings.config).map_err(|reason| refuse(1, reason))?;
        }
        for event in &script.events {
            let result = match &event.what {
                What::Shell(text) => shell(text, &mut settings.config),
                What::Call(call) if call.name == "setsockopt" => {
                    socket_option(call, &mut settings.config)
                }
                What::Packet { inbound: false, line } => {
                    if let Protocol::Tcp(segment) = &line.protocol
                        && segment.is_syn()
                        && let Some(text) = &segment.options
                        && let Ok(options) = Options::parse(text)
                    {
                        settings.follow_syn(&options);
                    }
                    Ok(())
                }
                _ => Ok(()),
            };
            result.map_err(|reason| refuse(event.line, reason))?;
        }
        Ok(settings)
    }

    fn option(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = || parse_number(value).ok_or_else(|| format!("--{name}={value}"));
        match name {
            "tolerance_usecs" => self.tolerance = Duration::from_micros(number()?.max(0) as u64),
            "ip_version" => self.ipv6 = value == "ipv6",
            "mtu" => self.config.mtu = number()? as u16,
            "speed" | "tcp_ts_tick_usecs" | "send_omit_free" | "non_fatal" | "bind_port"
            | "code_command" | "code_format" | "code_sockopt" | "code_verbose" | "connect_port"
            | "local_ip" | "remote_ip" | "gateway_ip" | "netmask_ip" | "init_scripts"
            | "strict_segments" | "dry_run" | "verbose" => {}
            _ => return Err(format!("the option --{name}")),
        }
        Ok(())
    }

    /// The buffer and the MTU that make the endpoint's SYN the expected one.
    fn follow_syn(&mut self, options: &Options) {
        if let Some(shift) = options.scale {
            self.config.receive_buffer = usize::from(u16::MAX) << shift.min(14);
            self.config.window_scale = true;
        }
        if let Some(mss) = options.mss {
            self.config.mtu = mss.saturating_add(if self.ipv6 { 60 } else { 40 });
        }
    }
}

/// An endpoint as near to a Linux host as may be.
fn linux() -> Config {
    Config { nagle: true, unvalidated_rate: 10_000, ..Config::default() }
}

/// Takes the commands of a shell.
fn shell(text: &str, config: &mut Config) -> Result<(), String> {
    let text = text.replace("\\\n", " ").replace("&&", "\n").replace(';', "\n");
    for line in
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let mut words = line.split_whitespace();
        let program = words.next().unwrap_or("");
        let name = program.rsplit('/').next().unwrap_or(program);
        match name {
            "defaults.sh" | "set_sysctls.sh" | "true" | "sleep" | "sync" | "echo" | "kldload" => {}
            // They look at the host, or put it back.
            "sockstat" | "netstat" | "ss" | "nstat" | "sysctl_restore_${PPID}.sh" | "grep" => {}
            "ip" if line.contains("tcp_metrics") => {}
            "sysctl" | "set_sysctls.py" => {
                let rest =
                    words.filter(|word| !word.starts_with('-')).collect::<Vec<_>>().join(" ");
                for (name, value) in assignments(&rest) {
                    parameter(&name, &value, config)?;
                }
            }
            _ => return Err(format!("the command `{line}`")),
        }
    }
    Ok(())
}

/// `name=value` pairs, whose values may be several numbers in quotes or not.
fn assignments(text: &str) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for word in text.replace(['"', '\''], " ").replace("= ", "=").split_whitespace() {
        match (word.split_once('='), pairs.last_mut()) {
            (Some((name, value)), _) => {
                let name = name.trim_start_matches("/proc/sys/").replace('/', ".");
                pairs.push((name, value.to_owned()));
            }
            (None, Some((_, value))) => {
                value.push(' ');
                value.push_str(word);
            }
            (None, None) => {}
        }
    }
    pairs
}

/// Kernel parameters without a meaning for the endpoint, or whose usual value is the endpoint's only one.
const OF_NO_MATTER: [&str; 42] = [
    "tcp_no_metrics_save",
    "tcp_moderate_rcvbuf",
    "tcp_min_tso_segs",
    "tcp_tso_win_divisor",
    "tcp_autocorking",
    "tcp_syncookies",
    "tcp_max_syn_backlog",
    "tcp_rfc1337",
    "tcp_tw_reuse",
    "tcp_orphan_retries",
    "tcp_max_orphans",
    "tcp_mem",
    "tcp_recovery",
    "tcp_early_retrans",
    "tcp_limit_output_bytes",
    "tcp_challenge_ack_limit",
    "tcp_invalid_ratelimit",
    "tcp_pacing_ss_ratio",
    "tcp_pacing_ca_ratio",
    "tcp_fastopen_key",
    "tcp_fastopen_blackhole_timeout_sec",
    "tcp_max_reordering",
    "tcp_reordering",
    "tcp_retrans_collapse",
    "tcp_slow_start_after_idle",
    "tcp_adv_win_scale",
    "tcp_app_win",
    "tcp_fack",
    "tcp_frto",
    "tcp_dsack",
    "tcp_retries1",
    "ip_local_port_range",
    "icmp_ratelimit",
    "icmp_msgs_per_sec",
    "tcp_shrink_window",
    "tcp_comp_sack_delay_ns",
    "tcp_comp_sack_nr",
    "tcp_comp_sack_slack_ns",
    "tcp_mtu_probing",
    "tcp_notsent_lowat",
    "tcp_backlog_ack_defer",
    "optmem_max",
];

fn parameter(name: &str, value: &str, config: &mut Config) -> Result<(), String> {
    let refuse = || Err(format!("the kernel parameter {name}={value}"));
    let numbers: Vec<u64> = value.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    let first = numbers.first().copied().unwrap_or(0);
    let (flag, seconds) = (first != 0, Duration::from_secs(first));
    let last = name.rsplit('.').next().unwrap_or(name);
    if name.starts_with("kern.") {
        return Ok(());
    }
    if name.starts_with("net.inet") {
        return free_bsd(name, first, config).or_else(|()| refuse());
    }
    match last {
        "tcp_sack" => config.sack = flag,
        "tcp_timestamps" => config.timestamps = flag,
        "tcp_window_scaling" => config.window_scale = flag,
        "tcp_syn_retries" => config.syn_retries = first as u32,
        "tcp_synack_retries" => config.syn_ack_retries = first as u32,
        "tcp_retries2" => config.retries = first as u32,
        "tcp_fin_timeout" => config.fin_wait = seconds,
        "tcp_keepalive_time" => keep_alive(config, |it| it.idle = seconds),
        "tcp_keepalive_intvl" => keep_alive(config, |it| it.interval = seconds),
        "tcp_keepalive_probes" => keep_alive(config, |it| it.probes = first as u32),
        "tcp_rto_min_us" => config.min_rto = Duration::from_micros(first),
        "tcp_rmem" | "rmem_max" | "rmem_default" => {
            let most = numbers.last().copied().unwrap_or(first) as usize;
            config.receive_buffer = most.max(2304);
        }
        "tcp_wmem" | "wmem_max" | "wmem_default" => {
            config.send_buffer = (numbers.last().copied().unwrap_or(first) as usize).max(4096);
        }
        "tcp_congestion_control" => config.congestion = congestion(value)?,
        "tcp_fastopen" => {}
        // 2 accepts what the peer asks for, which no script of these does.
        "tcp_ecn" if first == 0 || first == 2 => {}
        "tcp_thin_linear_timeouts" | "tcp_abort_on_overflow" | "tcp_migrate_req" if !flag => {}
        "default_qdisc" => {}
        other if OF_NO_MATTER.contains(&other) => {}
        _ => return refuse(),
    }
    Ok(())
}

fn free_bsd(name: &str, first: u64, config: &mut Config) -> Result<(), ()> {
    let flag = first != 0;
    match name.trim_start_matches("net.inet.tcp.") {
        "sack.enable" => config.sack = flag,
        "rfc1323" => (config.timestamps, config.window_scale) = (flag, flag),
        "delacktime" => config.delayed_ack = Duration::from_millis(first),
        "recvbuf_max" | "recvspace" => config.receive_buffer = first as usize,
        "sendbuf_max" | "sendspace" => config.send_buffer = first as usize,
        "rexmit_initial" => config.initial_rto = Duration::from_millis(first),
        "rexmit_min" => config.min_rto = Duration::from_millis(first),
        "ecn.enable" if first == 0 || first == 2 => {}
        "delayed_ack" | "icmp_may_rst" if flag => {}
        "ecn.enable" | "delayed_ack" | "icmp_may_rst" => return Err(()),
        // The rest tunes what the endpoint does in its own way.
        _ => {}
    }
    Ok(())
}

fn congestion(name: &str) -> Result<Congestion, String> {
    match name.trim_matches('"') {
        "reno" | "newreno" => Ok(Congestion::NewReno),
        "cubic" => Ok(Congestion::Cubic),
        other => Err(format!("the congestion control {other}")),
    }
}

fn keep_alive(config: &mut Config, change: impl FnOnce(&mut KeepAlive)) {
    let usual =
        KeepAlive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 };
    let mut wanted = config.keep_alive.unwrap_or(usual);
    change(&mut wanted);
    // Off until a socket asks for it; until then the idle time never comes.
    config.keep_alive = Some(wanted);
}

/// The value of a socket option: a number in brackets, or a text.
pub fn option_value(call: &Call) -> Option<i64> {
    parse_number(call.arguments.get(3)?.trim_matches(['[', ']']))
}

/// Socket options that the endpoint has once for all connections.
fn socket_option(call: &Call, config: &mut Config) -> Result<(), String> {
    let name = call.arguments.get(2).map_or("", String::as_str);
    let value = option_value(call).unwrap_or(0);
    let seconds = Duration::from_secs(value.max(0) as u64);
    // A call that is to fail sets nothing.
    if call.result.is_some_and(|result| result < 0) {
        return Ok(());
    }
    match name {
        "TCP_NODELAY" => config.nagle = value == 0,
        "SO_KEEPALIVE" if value != 0 => keep_alive(config, |_| {}),
        "TCP_KEEPIDLE" => keep_alive(config, |it| it.idle = seconds),
        "TCP_KEEPINTVL" => keep_alive(config, |it| it.interval = seconds),
        "TCP_KEEPCNT" => keep_alive(config, |it| it.probes = value as u32),
        "TCP_LINGER2" => config.fin_wait = seconds,
        "TCP_SYNCNT" => config.syn_retries = value as u32,
        "TCP_CONGESTION" => {
            let name = call.arguments.get(3).map_or("", String::as_str);
            config.congestion = congestion(name.trim_matches(['[', ']', '"']))?;
        }
        "TCP_MAXSEG" => config.mtu = config.mtu.min(value as u16 + 40),
        "SO_SNDBUF" | "SO_SNDBUFFORCE" => config.send_buffer = (2 * value.max(2304)) as usize,
        "SO_RCVBUF" | "SO_RCVBUFFORCE" => config.receive_buffer = value.max(2304) as usize,
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_parameters_are_taken() {
        let mut config = linux();
        shell(
            "./defaults.sh
             sysctl -q net.ipv4.tcp_sack=0 net.ipv4.tcp_rmem=\"4096 87380 1000000\"
             ../common/set_sysctls.py /proc/sys/net/ipv4/tcp_timestamps=0",
            &mut config,
        )
        .unwrap();
        assert!(!config.sack && !config.timestamps && config.window_scale);
        assert_eq!(config.receive_buffer, 1_000_000);
        assert!(shell("sysctl -w net.ipv4.tcp_ecn=1", &mut config).is_err());
        assert!(shell("tc qdisc add dev tun0 root fq", &mut config).is_err());
        shell("sysctl -w net.inet.tcp.sack.enable=1", &mut config).unwrap();
        assert!(config.sack);
    }
}
