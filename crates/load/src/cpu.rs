//! CPU time and memory of processes on this machine, from `/proc`. Empty on other systems.

use std::fs;

use super::plan::Plan;

/// Unit of CPU time in `/proc`, the same on every Linux.
const TICKS_PER_SECOND: u64 = 100;

/// CPU time and memory of a process at a point in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// CPU time of all its threads, user and system, also of those that have ended.
    pub(super) cpu_us: u64,
    /// Resident memory.
    pub(super) rss_bytes: u64,
}

/// CPU time and memory of this process, and of those of the plan.
#[derive(Debug, Clone)]
pub(super) struct Usages {
    pub(super) own: Option<Usage>,
    pub(super) others: Vec<Option<Usage>>,
}

impl Usages {
    pub(super) fn new(plan: &Plan) -> Self {
        Self { own: usage(None), others: plan.pids.iter().map(|pid| usage(Some(*pid))).collect() }
    }
}

/// CPU time of the process with this id, or of this process without one.
pub(super) fn usage(pid: Option<u32>) -> Option<Usage> {
    let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    Some(Usage { cpu_us: cpu_us(&stat)?, rss_bytes: rss_bytes(&status)? })
}

/// The 14th and 15th fields. The second is a name in parentheses, which may have spaces.
fn cpu_us(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) * (1_000_000 / TICKS_PER_SECOND))
}

fn rss_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procs_files_are_read() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 1 0 0 0 12 34 0 0 20 0 1 0 99 1000 5";
        assert_eq!(cpu_us(stat), Some(460_000));
        assert_eq!(rss_bytes("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(cpu_us("7 no"), None);
    }
}
