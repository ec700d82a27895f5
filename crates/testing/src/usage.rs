//! CPU time and memory of processes, from `/proc`.

use std::time::Duration;

/// Returns the CPU time that a process has used, in user and system mode.
pub fn cpu_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
    // The name stands in parentheses and may have any character. The times are the 12th and 13th field behind it, in
    // hundredths of a second.
    let times = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    times.map(|ticks| Duration::from_millis(10) * ticks.parse::<u32>().expect("a number")).sum()
}

/// Returns the resident memory of a process, in bytes.
pub fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).expect("a number") << 10
}
